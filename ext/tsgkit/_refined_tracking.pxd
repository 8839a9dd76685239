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

# Track the table of the last entry of the log, whose customer has left; its number.
cdef int32_t track_left(RefinedState* state, size_t entry, Rng* rng) except -1 nogil
# The same for the entries of a rule from `mark` on, level by level; `below` is for where its customer sat.
cdef int track_rule_left(RefinedState* state, size_t mark, int32_t* below, Rng* rng) except -1 nogil
# Entries from `mark` on are of customers who sat down: some at tracked tables.
cdef void track_seated(RefinedState* state, size_t mark, Rng* rng) noexcept nogil
# Unseat the customer of a rule from these tables.
cdef int unseat_rule_below(RefinedState* state, const Address* address, const int32_t* below) except -1 nogil
cdef void forget_tracked(RefinedState* state) noexcept nogil
