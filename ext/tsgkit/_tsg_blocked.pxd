# Blocked Metropolis-Hastings: a new derivation for one tree after the other, drawn by the grammar transform.
from libc.stdint cimport uint64_t

from tsgkit._tsg_state cimport SweepCounts, TsgState
from tsgkit._worker_pool cimport WorkerPool


# One proposal for every tree, in a random order, `batch` trees at a time.
cdef int blocked_sweep(TsgState* tsg, uint64_t iteration, int batch, int n_threads, double temperature,
                       WorkerPool* pool, SweepCounts* counts) except -1 nogil
