# Local Gibbs sampling: one node after the other, given all others.
from libc.stdint cimport uint64_t

from tsgkit._tsg_state cimport SweepCounts, TsgState


# One draw for every node that can be in more than one state, in a random order.
cdef int local_sweep(TsgState* tsg, uint64_t iteration, double temperature, SweepCounts* counts) except -1 nogil
