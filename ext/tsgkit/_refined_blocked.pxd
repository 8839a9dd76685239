# Sweeps over whole refined trees.
from libc.stdint cimport int64_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._random cimport Rng
from tsgkit._refined_inside cimport TreeDerivation
from tsgkit._refined_state cimport RefinedState, SweepCounts
from tsgkit._restaurant cimport LogProduct
from tsgkit._types cimport index_t
from tsgkit._worker_pool cimport WorkerPool


cdef cppclass Proposal:
    TreeDerivation derivation
    double log_ratio          # log q of the derivation before - log q of the proposed one


cdef int blocked_sweep(RefinedState* state, uint64_t iteration, bint joint, int batch, int n_threads,
                       double temperature, WorkerPool* pool, SweepCounts* counts) except -1 nogil
# New sites and symbols for these trees, drawn from the grammar of all others and of those of them that were drawn
# before; none is rejected.
cdef int redraw_trees(RefinedState* state, uint64_t iteration, const vector[index_t]* trees,
                      WorkerPool* pool) except -1 nogil

# ---- steps of a sweep, for one tree -----------------------------------------------------------------------------

# Unseat the sites of a tree, from the last to the root; if it was frozen, from the same tables. How many.
cdef index_t unseat_tree(RefinedState* state, index_t tree, const int64_t* frozen, Rng* rng,
                         LogProduct* product) except -1 nogil
# Seat the proposal for a tree, and keep it or roll back; the log says how the tree was unseated.
cdef int accept_or_reject(RefinedState* state, index_t tree, Proposal* proposal, double log_old, double temperature,
                          bint joint, Rng* rng, SweepCounts* counts) except -1 nogil
