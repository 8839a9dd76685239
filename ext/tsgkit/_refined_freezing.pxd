# Unseating all trees of a batch for the time of its proposals, and seating them again.
#
# Only what proposals depend on is changed: numbers of customers and tables, and weights. Histograms of table sizes stay
# as they are; which tables the customers have left is tracked (`tsgkit._refined_tracking`). Nothing here allocates but
# the lists of what was done, so that worker threads can do it: part by part of the labels, which share no restaurant.
# Tables of fragments that lose their last customer leave rules of other labels to a second loop over the parts.
from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.vector cimport vector

from tsgkit._label_parts cimport N_PARTS
from tsgkit._refined_state cimport RefinedState, RuleListing
from tsgkit._restaurant cimport Restaurant, Tables
from tsgkit._types cimport index_t
from tsgkit._worker_pool cimport WorkerPool, worker_vector


# A customer who was unseated; pointers hold as long as the batch is frozen.
cdef struct FrozenCustomer:
    Restaurant* restaurant
    Tables* tables
    int32_t array           # as in the log of seatings
    int32_t dish
    int32_t table           # the number of a tracked table, or the position of a refined one
    cpp_bool was_last       # at the table


cdef cppclass FrozenPart:
    worker_vector[FrozenCustomer] customers
    RuleListing listing


cdef cppclass FrozenBatch:
    RefinedState* state
    const int64_t* trees
    int size
    uint64_t iteration
    FrozenPart parts[N_PARTS]
    vector[index_t] first       # per tree: where its nodes begin in `table`
    vector[int64_t] table       # per node that is a site: the tracked table, or the identity of the refined one


cdef int freeze_trees(FrozenBatch* batch, RefinedState* state, const int64_t* trees, int size, uint64_t iteration,
                      int n_threads, WorkerPool* pool) except -1 nogil
# Seat everybody again. What is tracked stays known until `forget_tracked`.
cdef int restore_trees(FrozenBatch* batch, int n_threads, WorkerPool* pool) except -1 nogil
