# Refined rules with a weight each, listed by treebank rule, for sums over what was seen of one treebank rule.
#
# The entries of a rule lie one after the other, so that a sum reads memory in order. They are sorted by the children's
# subcategories first: successive entries then add to different sums, and no addition waits for the one before. Entries
# that were added since the list was sorted are found by their numbers.
from libc.stdint cimport int32_t, uint16_t, uint64_t
from libcpp.algorithm cimport sort
from libcpp.pair cimport pair
from libcpp.vector cimport vector

from tsgkit._types cimport symbol_t


# Subcategories counted within their labels; 0 for a child that the rule does not have.
cdef struct RuleEntry:
    uint16_t parent
    uint16_t left
    uint16_t right


cdef cppclass RuleList:
    vector[int32_t] first                # per rule and one more: its entries when the list was sorted
    vector[vector[int32_t]] added        # per rule: its entries since then
    vector[symbol_t] grown               # the rules that have some
    vector[symbol_t] rule                # per entry
    vector[RuleEntry] entries
    vector[double] weight


cdef inline int start_list(RuleList* rules, size_t n_rules) except -1 nogil:
    """No entry yet."""
    rules.first.clear()
    rules.first.resize(n_rules + 1, 0)
    rules.added.clear()
    rules.added.resize(n_rules)
    rules.grown.clear()
    rules.rule.clear()
    rules.entries.clear()
    rules.weight.clear()
    return 0


cdef inline int32_t add_entry(RuleList* rules, symbol_t rule, symbol_t parent, symbol_t left,
                              symbol_t right) except -1 nogil:
    """The number of a new entry, of weight 0."""
    cdef int32_t number = <int32_t>rules.entries.size()
    cdef RuleEntry entry
    entry.parent, entry.left, entry.right = <uint16_t>parent, <uint16_t>left, <uint16_t>right
    if rules.added[rule].empty():
        rules.grown.push_back(rule)
    rules.added[rule].push_back(number)
    rules.rule.push_back(rule)
    rules.entries.push_back(entry)
    rules.weight.push_back(0.0)
    return number


cdef inline uint64_t sort_key(const RuleList* rules, int32_t number) noexcept nogil:
    cdef RuleEntry entry = rules.entries[number]
    return (
        <uint64_t>rules.rule[number] << 30 | <uint64_t>entry.left << 20 | <uint64_t>entry.right << 10
        | <uint64_t>entry.parent
    )


cdef inline int sort_list(RuleList* rules, vector[int32_t]* kept) except -1 nogil:
    """Keep these entries alone, in order; `kept` then has the former number of each."""
    cdef vector[pair[uint64_t, int32_t]] order
    cdef RuleList old
    cdef size_t position
    cdef int32_t number
    for position in range(kept.size()):
        number = kept[0][position]
        order.push_back(pair[uint64_t, int32_t](sort_key(rules, number), number))
    sort(order.begin(), order.end())
    for position in range(rules.grown.size()):
        rules.added[rules.grown[position]].clear()
    rules.grown.clear()
    old.rule.swap(rules.rule)
    old.entries.swap(rules.entries)
    old.weight.swap(rules.weight)
    for position in range(rules.first.size()):
        rules.first[position] = 0
    for position in range(order.size()):
        number = order[position].second
        kept[0][position] = number
        rules.rule.push_back(old.rule[number])
        rules.entries.push_back(old.entries[number])
        rules.weight.push_back(old.weight[number])
        rules.first[old.rule[number] + 1] += 1
    for position in range(1, rules.first.size()):
        rules.first[position] += rules.first[position - 1]
    return 0


# ---- sums over the children's subcategories -------------------------------------------------------------------

# A child that the rule does not have has the one value 1.

cdef inline double term_of(const RuleList* rules, int32_t number, const double* left,
                           const double* right) noexcept nogil:
    return rules.weight[number] * left[rules.entries[number].left] * right[rules.entries[number].right]


cdef inline void add_terms(const RuleList* rules, symbol_t rule, const double* left, const double* right,
                           double* sums) noexcept nogil:
    """Add weight times the children's values to the sum of each entry's parent."""
    cdef const vector[int32_t]* added = &rules.added[rule]
    cdef int32_t number
    cdef size_t item
    for number in range(rules.first[rule], rules.first[rule + 1]):
        sums[rules.entries[number].parent] += term_of(rules, number, left, right)
    for item in range(added.size()):
        number = added[0][item]
        sums[rules.entries[number].parent] += term_of(rules, number, left, right)


cdef inline double sum_of_terms(const RuleList* rules, symbol_t rule, symbol_t parent, const double* left,
                                const double* right) noexcept nogil:
    """The same sum for one parent."""
    cdef const vector[int32_t]* added = &rules.added[rule]
    cdef double result = 0.0
    cdef int32_t number
    cdef size_t item
    for number in range(rules.first[rule], rules.first[rule + 1]):
        if rules.entries[number].parent == parent:
            result += term_of(rules, number, left, right)
    for item in range(added.size()):
        number = added[0][item]
        if rules.entries[number].parent == parent:
            result += term_of(rules, number, left, right)
    return result


cdef inline int32_t draw_entry(const RuleList* rules, symbol_t rule, symbol_t parent, const double* left,
                               const double* right, double scale, double* target) noexcept nogil:
    """Subtract the terms of one parent, times `scale`, until the target is negative: that entry, or -1."""
    cdef const vector[int32_t]* added = &rules.added[rule]
    cdef int32_t number
    cdef size_t item
    for number in range(rules.first[rule], rules.first[rule + 1]):
        if rules.entries[number].parent == parent:
            target[0] -= scale * term_of(rules, number, left, right)
            if target[0] < 0.0:
                return number
    for item in range(added.size()):
        number = added[0][item]
        if rules.entries[number].parent == parent:
            target[0] -= scale * term_of(rules, number, left, right)
            if target[0] < 0.0:
                return number
    return -1
