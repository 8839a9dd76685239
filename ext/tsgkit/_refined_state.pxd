# The state of a symbol-refined tree-substitution grammar over known trees: which nodes are substitution sites, the
# symbols of nodes, and who sits where.
#
#     G_{x_k}  over fragments, their roots and frontiers refined, their internal nodes not
#     P(e | x_k) = prod_{frontiers f} s_f  prod_{internal nodes i} (1 - s_i)  sum_{refinements of i} prod_{rules r} H(r)
#
# A new table of G draws one refinement of its dish's internal nodes, keeps it, and seats the dish's refined rules in
# the restaurants of rules (`_backoff`).
from libc.stdint cimport int16_t, int32_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._backoff cimport BackOff, RefinedRule
from tsgkit._fragments cimport FragmentTable
from tsgkit._random cimport Rng
from tsgkit._restaurant cimport Restaurant, SeatingLog, StopProbabilities, Tables
from tsgkit._trees cimport BinaryTrees
from tsgkit._types cimport index_t, symbol_t

cdef enum:
    DISHES = -1    # the array of dishes in the log of seatings; arrays of the back-off are numbered from 0


# A table with the subcategories that were drawn for its dish's internal nodes when it opened.
cdef cppclass RefinedTable:
    int32_t size
    vector[int16_t] refinement    # of the internal nodes from the root down, level by level


# A fragment with a root symbol: what customers order.
cdef cppclass Dish:
    int32_t fragment                 # -1: the number is free
    symbol_t symbol
    Tables tables
    vector[RefinedTable] refined     # the same tables one by one, if the dish has internal nodes


cdef cppclass RefinedState:
    BinaryTrees trees
    BackOff rules
    vector[symbol_t] symbol_label
    StopProbabilities stops
    vector[Restaurant] restaurants    # G, by refined symbol
    uint64_t seed
    # The state. Of an internal node, the symbol is the one it would have as a site where sites alone are sampled.
    vector[uint8_t] is_site
    vector[symbol_t] symbol
    vector[int32_t] dish              # at sites, -1 elsewhere
    FragmentTable fragments
    vector[Dish] dishes
    vector[int32_t] free_dishes
    # What a rejected proposal is rolled back by.
    SeatingLog seatings
    vector[RefinedTable] removed      # tables that were removed since the log began
    # Where values of a tree's nodes begin in arrays with one value per subcategory.
    vector[int32_t] offset
    int32_t n_most_subcategories
    int32_t n_longest                 # values of the tree with the most of them
    # Scratch. The fragment below every node, while dishes are found.
    vector[int32_t] below
    # The fragment at work: its nodes from the root down, level by level, and values of their subcategories.
    vector[int32_t] nodes
    vector[double] values
    vector[double] one_left
    vector[double] one_right
    vector[RefinedRule] rule_list


cdef struct SweepCounts:
    index_t n_proposed
    index_t n_accepted
    index_t n_changed


cdef inline symbol_t subcategory_of(const RefinedState* state, symbol_t symbol) noexcept nogil:
    """The number of a symbol within its label."""
    return symbol - state.rules.first_symbol[state.symbol_label[symbol]]


cdef inline bint has_internal_nodes(const RefinedState* state, const Dish* dish) noexcept nogil:
    return state.fragments.fragments[dish.fragment].left >= 0 or state.fragments.fragments[dish.fragment].right >= 0


cdef inline int32_t find_dish(const RefinedState* state, int32_t fragment, symbol_t root) noexcept nogil:
    """The dish of a fragment with this root symbol, or -1."""
    cdef size_t item
    for item in range(state.fragments.links[fragment].dishes.size()):
        if state.fragments.links[fragment].dishes[item].symbol == root:
            return state.fragments.links[fragment].dishes[item].dish
    return -1


# ---- dishes -------------------------------------------------------------------------------------------------

cdef int build_state(RefinedState* state) except -1 nogil
cdef int clear_seating(RefinedState* state) except -1 nogil
cdef int find_all_dishes(RefinedState* state) except -1 nogil
cdef int find_dish_at(RefinedState* state, int32_t node) except -1 nogil
cdef int release_dish(RefinedState* state, int32_t number) except -1 nogil
cdef int sort_state(RefinedState* state) except -1 nogil
cdef int list_rules(const RefinedState* state, const Dish* dish, const int16_t* refinement,
                    vector[RefinedRule]* rules) except -1 nogil
cdef int list_internal_labels(const RefinedState* state, int32_t dish, vector[symbol_t]* labels) except -1 nogil


cdef inline void forget_seatings(RefinedState* state) noexcept nogil:
    """Keep what has happened."""
    state.seatings.entries.clear()
    state.removed.clear()
