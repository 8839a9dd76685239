# The base probability of refined fragments with internal nodes: an inside pass over one fragment.
from libc.stdint cimport int16_t, int32_t
from libcpp.vector cimport vector

from tsgkit._random cimport Rng
from tsgkit._refined_state cimport Derivation, FragmentValues, RefinedState

# log P(e | x_k) of the fragment at a site; its nodes and their values are left in `at_work`. `total` is the sum over
# refinements at the root, with the values as they are left.
cdef double log_base_of(const RefinedState* state, const Derivation* derivation, int32_t root, FragmentValues* at_work,
                        double* total) noexcept nogil
# Draw a refinement of the fragment at work, which `log_base_of` has just described.
cdef int draw_refinement(RefinedState* state, vector[int16_t]* refinement, double total, Rng* rng) except -1 nogil
