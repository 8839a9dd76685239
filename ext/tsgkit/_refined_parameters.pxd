# The log joint probability of a refined state, its parameters given the seating, and whether its counts agree.
from libc.stdint cimport int64_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._refined_state cimport RefinedState
from tsgkit._restaurant cimport table_counts


cdef cppclass RefinedTotals:
    vector[vector[table_counts]] rule_sizes    # per level of the back-off and restaurant: numbers of tables by size
    vector[table_counts] dish_sizes            # the same of G
    # Over the dishes of all tables of G: frontier and internal nodes by label, rules.
    vector[int64_t] frontier
    vector[int64_t] internal
    vector[int64_t] rules


cdef int add_up(const RefinedState* state, RefinedTotals* totals) except -1 nogil
cdef double log_joint(const RefinedState* state, const RefinedTotals* totals) noexcept nogil
cdef int resample_stops(RefinedState* state, uint64_t iteration, const RefinedTotals* totals) except -1 nogil
cdef int resample_hyper(RefinedState* state, uint64_t iteration, const RefinedTotals* totals) except -1 nogil
cdef bint counts_agree(const RefinedState* state) except -1 nogil
