# Seating and unseating the customers of refined sites. Probabilities are multiplied into products: `LogProduct`.
from libc.stdint cimport int32_t, int64_t

from tsgkit._backoff cimport NOT_SEEN, Address, RefinedRule
from tsgkit._random cimport Rng
from tsgkit._refined_rules cimport address_of_cell, find_address
from tsgkit._refined_state cimport Derivation, Dish, FragmentValues, RefinedState, subcategory_of, symbol_at
from tsgkit._restaurant cimport LogProduct
from tsgkit._types cimport symbol_t

cdef enum:
    ANY_TABLE = -1


# What is known of a fragment with internal nodes, besides what is in `at_work`.
cdef struct Description:
    double log_base
    double total        # the sum over refinements at the root

cdef inline RefinedRule rule_at(const RefinedState* state, const Derivation* derivation, int32_t node) noexcept nogil:
    """The refined rule at a node whose children are sites."""
    cdef RefinedRule rule
    cdef symbol_t left = state.trees.left[node], right = state.trees.right[node]
    rule.rule, rule.parent = state.trees.rule[node], subcategory_of(state, symbol_at(derivation, node))
    rule.left = rule.right = 0
    if left >= 0:
        rule.left = subcategory_of(state, symbol_at(derivation, left))
    if right >= 0:
        rule.right = subcategory_of(state, symbol_at(derivation, right))
    return rule


cdef inline void find_address_of(
    const RefinedState* state, const RefinedRule* rule, const Dish* dish, Address* address
) noexcept nogil:
    """Where the rule of a dish has its tables; the dish is NULL if it is not stored."""
    if dish is not NULL and dish.cell != NOT_SEEN:
        address_of_cell(&state.rules, rule, dish.cell, address)
    else:
        find_address(&state.rules, rule, address)


# The position of the table of a customer drawn uniformly.
cdef int32_t draw_refined_customer(const Dish* dish, Rng* rng) noexcept nogil
# Multiply by the predictive probability of the fragment at a site of a derivation, with the counts as they are. Its
# dish is -1 if it is not stored.
cdef void multiply_predictive(const RefinedState* state, const Derivation* derivation, int32_t node, int32_t dish,
                              FragmentValues* at_work, LogProduct* product) noexcept nogil
# The log of that for the present derivation.
cdef double log_predictive_at(RefinedState* state, int32_t node) noexcept nogil
# Seat the customer of a site. The product is multiplied by the probability of the seats over that of drawing them: the
# predictive probability and, where a table opens, that of its rules one after the other over all at once. With
# `annotate`, internal nodes take the symbols that their table has.
cdef int seat_site(RefinedState* state, int32_t node, Rng* rng, bint annotate, LogProduct* product) except -1 nogil
# The log of the predictive probability of a fragment with internal nodes, which is described for `seat_refined`.
cdef double describe_refined(RefinedState* state, int32_t node, Description* found) noexcept nogil
# The same as `seat_site` and `unseat_site` for such a fragment: seating where it was described last and counts are the
# same, unseating without the predictive probability.
cdef int seat_refined(RefinedState* state, int32_t node, const Description* found, Rng* rng, bint annotate,
                      LogProduct* product) except -1 nogil
cdef int unseat_refined(RefinedState* state, int32_t node, Rng* rng, int64_t table, LogProduct* product) except -1 nogil
# Unseat it; the product, unless it is NULL, is multiplied by what `seat_site` would multiply by for the same seats. The
# table is ANY_TABLE, or the one that its customer left when the tree was frozen (`FrozenBatch.table`).
cdef int unseat_site(RefinedState* state, int32_t node, Rng* rng, int64_t table, LogProduct* product) except -1 nogil
cdef int seat_all(RefinedState* state) except -1 nogil
cdef int unseat_all(RefinedState* state) except -1 nogil
# Undo everything since the log of seatings began.
cdef int rollback_state(RefinedState* state) except -1 nogil
