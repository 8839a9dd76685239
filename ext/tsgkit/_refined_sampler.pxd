# The sampler of sites of refined trees, for the one that samples insertions, too.
from libc.stdint cimport int32_t, uint64_t

from tsgkit._refined_state cimport RefinedState, SweepCounts
from tsgkit._types cimport index_t
from tsgkit._worker_pool cimport WorkerPool


cdef class RefinedSampler:
    cdef RefinedState state
    cdef WorkerPool pool
    cdef readonly object trees
    cdef readonly tuple kinds
    cdef bint is_seated
    cdef bint is_changing      # while a move runs; it stays so if memory runs out in the middle

    cdef int require_usable(self) except -1
    cdef int require_seated(self, bint wanted) except -1
    cdef int require_plain(self) except -1
    cdef int move_types(self, uint64_t iteration, index_t n_moves, bint joint, double temperature,
                        SweepCounts* counts) except -1
    cdef int put_state(self, symbols, sites) except -1
    cdef object node_labels(self)
    cdef tuple name_of_cell(self, int level, index_t cell)
    cdef int n_columns(self, int level) noexcept
    cdef dict seating_of_dishes(self)
    cdef int seat_dishes(self, seating) except -1
    cdef int add_refined_table(self, index_t number, int32_t size, list values) except -1
    cdef int seat_cells(self, int level, rows) except -1


# Raises ValueError unless they are.
cdef int require_positive(int batch, int threads, double temperature) except -1
