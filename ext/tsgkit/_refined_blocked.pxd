# Sweeps over whole refined trees.
from libc.stdint cimport uint64_t

from tsgkit._refined_state cimport RefinedState, SweepCounts

cdef int blocked_sweep(RefinedState* state, uint64_t iteration, bint joint, SweepCounts* counts) except -1 nogil
