# Moves of types over refined trees.
from libc.stdint cimport uint8_t, uint64_t

from tsgkit._refined_state cimport RefinedState, SweepCounts
from tsgkit._types cimport index_t


# What insertions add: the log probability that an internal node of a label has none, and whether a node is a foot.
cdef struct InsertionsAround:
    const double* log_none
    const uint8_t* is_foot


# Moves at nodes drawn at random. With `joint`, the symbol that a node gets where a fragment is cut is sampled, too;
# otherwise it is the present one. `around` is NULL where there are no insertions.
cdef int type_sweep(RefinedState* state, uint64_t iteration, index_t n_moves, bint joint, double temperature,
                    const InsertionsAround* around, SweepCounts* counts) except -1 nogil
