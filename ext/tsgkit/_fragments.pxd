# Elementary trees, each stored once: a fragment is a rule and, for every child, the fragment below it or a code.
# Subtrees are fragments themselves, so they are shared, and comparing fragments is comparing numbers.
#
# Plain fragments have FRONTIER where a child is a substitution site (or absent) and FOOT at the foot of an auxiliary
# tree. Customers order them directly. Refined fragments have the symbol of a frontier instead (`frontier_code`), and
# NO_CHILD where there is no child; their root has no subcategory, so that those that differ in nothing else share it. A
# dish is a refined fragment with a root symbol. Refined fragments know who is above them (`FragmentLinks`), so that
# those that match a tree are found without trying all pairs of children.
#
# A fragment lives as long as it is part of another one or somebody orders it; `release_fragment` removes it, and what
# only it used, when neither holds any more. Numbers are given again: memory does not grow beyond what is in use.
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.vector cimport vector

from tsgkit._codes cimport FOOT, MISSING
from tsgkit._prefetch cimport prefetch
from tsgkit._restaurant cimport Tables
from tsgkit._types cimport symbol_t

cdef enum:
    FREE = -1          # the rule of a number that is free
    EMPTY = -1         # a slot of the hash table
    NO_CHILD = -1      # of a refined fragment


# 64 bytes: one line of the processor's cache.
cdef cppclass Fragment:
    symbol_t rule
    symbol_t left
    symbol_t right
    int32_t n_above_left      # fragments of which this is the left (or only) part
    int32_t n_above_right     # and the right part
    uint32_t epoch            # of its cached log base probability; 0: none
    double log_base
    Tables tables             # of the customers who ordered it, where it is plain


cdef struct RootedDish:
    symbol_t symbol
    int32_t dish
    double weight    # `old_weight` of a dish with internal nodes


# A fragment with its rule and its other child, as its part sees it. What a match needs of it is here, since the
# fragments themselves lie anywhere in memory.
cdef struct FragmentAbove:
    symbol_t rule
    symbol_t beside
    int32_t number


# Of a refined fragment.
cdef cppclass FragmentLinks:
    vector[FragmentAbove] above_left     # fragments of which it is the left (or only) part, sorted
    vector[FragmentAbove] above_right    # those of which it is the right part, with a frontier on their left, sorted
    vector[RootedDish] dishes


cdef struct Slot:
    int32_t number
    uint32_t tag     # bits of the hash that do not decide the slot: they save most looks at other fragments


cdef cppclass FragmentTable:
    vector[Fragment] fragments
    vector[FragmentLinks] links                # of refined fragments, one each; empty where all are plain
    vector[vector[int32_t]] single_parts       # per rule, where fragments are refined: of it alone, parts of others
    cpp_bool is_refined
    vector[Slot] slots
    vector[int32_t] free_numbers
    vector[int32_t] waiting                    # scratch of `release_fragment`
    size_t n_used
    uint64_t n_removed                         # numbers hold as long as this does not change


cdef inline symbol_t frontier_code(symbol_t symbol) noexcept nogil:
    """What stands for a frontier with this symbol where a part could stand."""
    return -2 - symbol


cdef inline symbol_t frontier_symbol(symbol_t code) noexcept nogil:
    return -2 - code


cdef inline bint is_frontier(symbol_t code) noexcept nogil:
    return code <= -2


cdef inline bint is_auxiliary(const Fragment* fragment) noexcept nogil:
    return fragment.left == FOOT or fragment.right == FOOT


cdef inline bint is_single(const Fragment* fragment) noexcept nogil:
    """Whether a fragment is a single rule."""
    return fragment.left < 0 and fragment.right < 0


cdef inline uint64_t hash_fragment(symbol_t rule, symbol_t left, symbol_t right) noexcept nogil:
    cdef uint64_t state = (<uint64_t><uint32_t>rule << 32) ^ <uint32_t>left
    state *= <uint64_t>0x9e3779b97f4a7c15
    state ^= state >> 29
    state += <uint32_t>right
    state *= <uint64_t>0xbf58476d1ce4e5b9
    return state ^ (state >> 32)


cdef inline bint is_fragment(const FragmentTable* table, int32_t number, symbol_t rule, symbol_t left,
                             symbol_t right) noexcept nogil:
    cdef const Fragment* fragment = &table.fragments[number]
    return fragment.rule == rule and fragment.left == left and fragment.right == right


cdef inline int32_t find_fragment(const FragmentTable* table, symbol_t rule, symbol_t left,
                                  symbol_t right) noexcept nogil:
    """The number of a fragment, MISSING if it is not stored."""
    cdef uint64_t code = hash_fragment(rule, left, right)
    cdef size_t mask = table.slots.size() - 1, slot = code & mask
    cdef uint32_t tag = <uint32_t>(code >> 32)
    while table.slots[slot].number != EMPTY:
        if table.slots[slot].tag == tag and is_fragment(table, table.slots[slot].number, rule, left, right):
            return table.slots[slot].number
        slot = (slot + 1) & mask
    return MISSING


cdef inline void prefetch_slot(const FragmentTable* table, symbol_t rule, symbol_t left, symbol_t right) noexcept nogil:
    prefetch(&table.slots[hash_fragment(rule, left, right) & (table.slots.size() - 1)])


cdef inline bint precedes(const FragmentAbove* one, symbol_t rule, symbol_t beside) noexcept nogil:
    """Whether a fragment comes before one with this rule and other child."""
    return one.rule < rule or one.rule == rule and one.beside < beside


cdef inline size_t position_above(const vector[FragmentAbove]* above, symbol_t rule, symbol_t beside) noexcept nogil:
    """The first of these fragments that does not come before one with this rule and other child."""
    cdef size_t low = 0, high = above.size(), middle
    while low < high:
        middle = (low + high) >> 1
        if precedes(&above[0][middle], rule, beside):
            low = middle + 1
        else:
            high = middle
    return low


cdef inline bint is_used(const FragmentTable* table, int32_t number) noexcept nogil:
    cdef const Fragment* fragment = &table.fragments[number]
    if fragment.tables.n_customers or fragment.n_above_left or fragment.n_above_right:
        return True
    return table.is_refined and not table.links[number].dishes.empty()


cdef inline int32_t intern_fragment(FragmentTable* table, symbol_t rule, symbol_t left, symbol_t right) except -1 nogil:
    """The number of a fragment, which is stored if it was not."""
    cdef int32_t number = find_fragment(table, rule, left, right)
    return number if number != MISSING else store_fragment(table, rule, left, right)


cdef inline int release_fragment(FragmentTable* table, int32_t number) except -1 nogil:
    """Remove a fragment that nobody uses; one that is in use stays."""
    if table.fragments[number].rule == FREE or is_used(table, number):
        return 0
    return remove_fragment(table, number)


# No fragment yet; refined ones need the number of rules.
cdef int start_fragments(FragmentTable* table, cpp_bool is_refined, size_t n_rules) except -1 nogil
cdef int32_t store_fragment(FragmentTable* table, symbol_t rule, symbol_t left, symbol_t right) except -1 nogil
cdef int remove_fragment(FragmentTable* table, int32_t number) except -1 nogil
