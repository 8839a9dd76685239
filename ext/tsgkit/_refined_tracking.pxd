# Tables that are told apart while a batch of trees is resampled.
#
# A restaurant knows how many tables there are of each size, not who sits where. The proposals of a batch are drawn from
# the counts without its trees, so these must leave the same tables when their turn comes. So whoever leaves a table
# while a batch is frozen has it tracked, with its present size; and a table that is removed then notes where its own
# customers sat, at the levels below. Whoever sits down later may come to a tracked table.
from libc.stdint cimport int32_t

from tsgkit._backoff cimport Address
from tsgkit._random cimport Rng
from tsgkit._refined_state cimport RefinedState

cdef inline int32_t first_tracked(const RefinedState* state, int32_t array, int32_t dish) noexcept nogil:
    """A tracked table of a dish, or -1."""
    if <size_t>dish >= state.tracked.first[array + 1].size():
        return -1
    return state.tracked.first[array + 1][dish]


# Before a batch is frozen.
cdef int reserve_tracked(RefinedState* state) except -1 nogil
# Entries from `mark` on are of customers who sat down: some at tracked tables.
cdef void track_seated(RefinedState* state, size_t mark, Rng* rng) noexcept nogil
# Unseat the customer of a rule from these tables.
cdef int unseat_rule_below(RefinedState* state, const Address* address, const int32_t* below) except -1 nogil
cdef void forget_tracked(RefinedState* state) noexcept nogil
