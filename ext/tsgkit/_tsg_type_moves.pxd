# Moves of types: a fragment is cut, or joined, wherever it occurs, at once.
from libc.stdint cimport uint64_t

from tsgkit._tsg_state cimport SweepCounts, TsgState
from tsgkit._types cimport index_t


# So many proposals, at nodes drawn at random.
cdef int type_sweep(TsgState* tsg, uint64_t iteration, index_t n_moves, double temperature,
                    SweepCounts* counts) except -1 nogil
