# Sweeps over whole refined trees.
from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from tsgkit._refined_state cimport RefinedState, SweepCounts
from tsgkit._types cimport index_t
from tsgkit._worker_pool cimport WorkerPool

cdef int blocked_sweep(RefinedState* state, uint64_t iteration, bint joint, int batch, int n_threads,
                       double temperature, WorkerPool* pool, SweepCounts* counts) except -1 nogil
# New sites and symbols for these trees, drawn from the grammar of all others and of those of them that were drawn
# before; none is rejected.
cdef int redraw_trees(RefinedState* state, uint64_t iteration, const vector[index_t]* trees,
                      WorkerPool* pool) except -1 nogil
