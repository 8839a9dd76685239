# Blocked Metropolis-Hastings: a new derivation for one tree after the other, drawn by the grammar transform.
from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from tsgkit._tsg_state cimport SweepCounts, TreeDerivation, TsgState
from tsgkit._types cimport index_t
from tsgkit._worker_pool cimport WorkerPool


# One proposal for every tree, in a random order, `batch` trees at a time.
cdef int blocked_sweep(TsgState* tsg, uint64_t iteration, int batch, int n_threads, double temperature,
                       WorkerPool* pool, SweepCounts* counts) except -1 nogil

# New derivations for these trees, drawn from the grammar of all others and of those of them that were drawn before;
# `batch` at a time, and none is rejected.
cdef int redraw_trees(TsgState* tsg, uint64_t iteration, const vector[index_t]* trees, int batch, int n_threads,
                      WorkerPool* pool) except -1 nogil

# log prod_e (w_e + b P0(e)) over the fragments of a derivation, and the log probability of its insertions.
cdef double log_weight(const TsgState* tsg, index_t tree, TreeDerivation* derivation) noexcept nogil
