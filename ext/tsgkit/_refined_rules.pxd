# Any refinement of the rules of a treebank in a `BackOff`: addresses by hashing, sums over subcategories.
#
# Subcategories are counted from 0 within their label. Symbols come label by label, contexts in the order of symbols.
from libc.stdint cimport int32_t

from tsgkit._backoff cimport Address, BackOff, Level, RefinedRule, n_classes, probability_at, seat_at, unseat_at
from tsgkit._random cimport Rng
from tsgkit._restaurant cimport SeatingLog, old_weight
from tsgkit._rule_list cimport RuleEntry
from tsgkit._types cimport symbol_t


# Open the restaurants and cells of all levels, with nobody in them.
cdef int open_hashed(BackOff* b) except -1 nogil

cdef inline symbol_t n_subcategories(const BackOff* b, symbol_t label) noexcept nogil:
    """Of a label; 1 of a child that a rule does not have."""
    return 1 if label < 0 else b.first_symbol[label + 1] - b.first_symbol[label]


cdef inline symbol_t symbol_of(const BackOff* b, const RefinedRule* rule) noexcept nogil:
    """The refined symbol of a rule's parent."""
    return b.first_symbol[b.rule_label[rule.rule]] + rule.parent


cdef inline RefinedRule rule_of_cell(const Level* level, int32_t cell) noexcept nogil:
    """The rule of a cell, with its restaurant, counted within its label, in place of the parent's subcategory."""
    cdef RefinedRule rule
    cdef RuleEntry entry = level.rules.entries[cell]
    rule.rule, rule.parent, rule.left, rule.right = level.rules.rule[cell], entry.parent, entry.left, entry.right
    return rule


cdef inline double probability(const BackOff* b, const RefinedRule* rule) noexcept nogil:
    """The probability of a refined rule for the next customer."""
    cdef Address address
    find_address(b, rule, &address)
    return probability_at(b, &address)


cdef inline void weigh(BackOff* b, const Address* address) noexcept nogil:
    """Bring the weights of a rule's cells in line with their customers."""
    cdef int level, n_used = min(b.n_used, 1) if address.word_class >= 0 else b.n_used
    for level in range(n_used):
        weigh_cell(&b.levels[level], address.rules[level].cell)


cdef inline void weigh_cell(Level* level, int32_t cell) noexcept nogil:
    level.rules.weight[cell] = old_weight(&level.restaurants[level.restaurant_of_cell[cell]], &level.cells[cell])


cdef inline double seat_rule_at(BackOff* b, const Address* address, Rng* rng, SeatingLog* seatings) except -1.0 nogil:
    """Seat a customer of the rule at an address of `make_address`; its probability before that."""
    cdef double result = seat_at(b, address, rng, seatings)
    weigh(b, address)
    return result


cdef inline double unseat_rule_at(BackOff* b, const Address* address, Rng* rng, SeatingLog* seatings) except -1.0 nogil:
    """Unseat a customer of the rule at an address; its probability after that."""
    cdef double result = unseat_at(b, address, rng, seatings)
    weigh(b, address)
    return result


cdef inline double seat_rule(BackOff* b, const RefinedRule* rule, Rng* rng, SeatingLog* seatings) except -1.0 nogil:
    """Seat a customer of a refined rule; its probability before that."""
    cdef Address address
    make_address(b, rule, &address)
    return seat_rule_at(b, &address, rng, seatings)


cdef inline double unseat_rule(BackOff* b, const RefinedRule* rule, Rng* rng, SeatingLog* seatings) except -1.0 nogil:
    """Unseat a customer of a refined rule; its probability after that."""
    cdef Address address
    find_address(b, rule, &address)
    return unseat_rule_at(b, &address, rng, seatings)


cdef inline int32_t class_cell(const BackOff* b, symbol_t symbol, symbol_t word_class) noexcept nogil:
    """The cell of a class in J_{x_k}."""
    return symbol * n_classes(b) + word_class


cdef void find_address(const BackOff* b, const RefinedRule* rule, Address* address) noexcept nogil
cdef int make_address(BackOff* b, const RefinedRule* rule, Address* address) except -1 nogil
# The address of a rule whose cell at the first level is known.
cdef void address_of_cell(const BackOff* b, const RefinedRule* rule, int32_t cell, Address* address) noexcept nogil
# The cell at a level of a rule as `rule_of_cell` gives it: NOT_SEEN if there is none, or made if it is new.
cdef int32_t find_cell(const BackOff* b, int level, const RefinedRule* rule) noexcept nogil
cdef int32_t make_cell(BackOff* b, int level, const RefinedRule* rule) except -1 nogil

# Sums over the children's subcategories of the rule's probability times their values, for every subcategory of the
# parent and for one. A child that the rule does not have has the one value 1.
cdef void sums(const BackOff* b, symbol_t rule, const double* left, const double* right, double* result) noexcept nogil
cdef double sum_for(const BackOff* b, symbol_t rule, symbol_t parent, const double* left,
                    const double* right) noexcept nogil
# Draw the children's subcategories from the terms of `sum_for`, whose value is `total`.
cdef void draw_children(const BackOff* b, RefinedRule* rule, const double* left, const double* right, double total,
                        Rng* rng) noexcept nogil
# Forget empty cells of rules, and bring the others into an order that does not depend on how they came.
cdef int sort_cells(BackOff* b) except -1 nogil
# Bring the weights of all cells in line with the parameters.
cdef void weigh_all(BackOff* b) noexcept nogil
