# Sweeps over single sites of refined trees.
from libc.stdint cimport uint64_t

from tsgkit._refined_state cimport RefinedState, SweepCounts

cdef int local_sweep(RefinedState* state, uint64_t iteration, double temperature, SweepCounts* counts) except -1 nogil
