# The state of a symbol-refined tree-substitution grammar over known trees: which nodes are substitution sites, the
# symbols of nodes, and who sits where.
#
#     G_{x_k}  over fragments, their roots and frontiers refined, their internal nodes not
#     P(e | x_k) = prod_{frontiers f} s_f  prod_{internal nodes i} (1 - s_i)  sum_{refinements of i} prod_{rules r} H(r)
#
# A new table of G draws one refinement of its dish's internal nodes, keeps it, and seats the dish's refined rules in
# the restaurants of rules (`_backoff`).
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.vector cimport vector

from tsgkit._backoff cimport BackOff, RefinedRule
from tsgkit._fragments cimport FragmentTable, RootedDish
from tsgkit._label_parts cimport N_PARTS, LabelParts
from tsgkit._random cimport Rng
from tsgkit._restaurant cimport Restaurant, SeatingLog, StopProbabilities, Tables, old_weight
from tsgkit._rule_list cimport RuleList
from tsgkit._trees cimport BinaryTrees
from tsgkit._types cimport index_t, symbol_t
from tsgkit._worker_pool cimport worker_vector

cdef enum:
    DISHES = -1    # the array of dishes in the log of seatings; arrays of the back-off are numbered from 0


# A table with the subcategories that were drawn for its dish's internal nodes when it opened.
cdef cppclass RefinedTable:
    int32_t size
    vector[int16_t] refinement    # of the internal nodes from the root down, level by level
    int64_t identity              # of a table that a frozen tree left; 0: none
    int32_t frozen_rules          # where its rules begin in `TrackedTables.rules`, if it was removed by freezing


# A fragment with a root symbol: what customers order.
cdef cppclass Dish:
    int32_t fragment                 # -1: the number is free
    symbol_t symbol
    # Of a single rule: its entry among `singles`, and its cell at the first level of the back-off, or NOT_SEEN if it is
    # not known; with internal nodes both are -1.
    int32_t single
    int32_t cell
    Tables tables
    vector[RefinedTable] refined     # the same tables one by one, if the dish has internal nodes


# A table that a frozen batch of trees left, told apart from others of its size.
cdef struct TrackedTable:
    int32_t array        # as in the log of seatings
    int32_t dish
    int32_t size         # its customers now
    int32_t size_before  # its customers when the batch was frozen
    int32_t next         # tracked table of the same dish, or -1
    int32_t below[2]     # where its own customer sits at the next level, or at the two of a word, if it was removed


# A rule of a refined table that was removed by freezing.
cdef struct FrozenRule:
    RefinedRule rule
    int32_t part         # of its label
    int32_t below[2]     # as of a tracked table: where its customer sits


cdef cppclass TrackedTables:
    cpp_bool is_active
    # Per part of the labels; `tracked_at` finds a table by its number.
    worker_vector[TrackedTable] tables[N_PARTS]
    worker_vector[FrozenRule] rules[N_PARTS]
    int64_t n_identities[N_PARTS]
    vector[vector[int32_t]] first    # per array, those of dishes first, and dish: a tracked table, or -1


# The derivation of one tree, or of all: what its nodes are, counted from `first` on.
cdef struct Derivation:
    const uint8_t* is_site
    const symbol_t* symbol
    index_t first


# The refined rules of a dish, in an array with room for those of any dish.
cdef cppclass RuleListing:
    vector[RefinedRule] rules
    vector[int32_t] fragments     # the part of the dish that has the rule as its root
    size_t n_rules


# What the base probability of a fragment is computed with: its nodes from the root down, level by level, and values of
# their subcategories. Everything has its full size from the beginning, so that nothing here allocates.
cdef cppclass FragmentValues:
    vector[int32_t] nodes
    size_t n_nodes
    vector[double] values
    vector[double] one_left
    vector[double] one_right


cdef cppclass RefinedState:
    BinaryTrees trees
    LabelParts parts
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
    # Dishes of a single rule: the rule with the subcategories of its root and frontiers, weighted by `old_weight`.
    RuleList singles
    vector[int32_t] dish_of_single
    vector[double] stops_of_rule      # per rule: the probability of stopping at its children
    # What a rejected proposal is rolled back by.
    SeatingLog seatings
    vector[RefinedTable] removed      # tables that were removed since the log began
    TrackedTables tracked
    # Where values of a tree's nodes begin in arrays with one value per subcategory.
    vector[int32_t] offset
    int32_t n_most_subcategories
    int32_t n_longest                 # values of the tree with the most of them
    index_t n_most_nodes              # of a tree
    # Scratch: the fragment below every node while dishes are found; the fragment at work and its rules.
    vector[int32_t] below
    FragmentValues at_work
    RuleListing listing


cdef struct SweepCounts:
    index_t n_proposed
    index_t n_accepted
    index_t n_changed


cdef inline symbol_t subcategory_of(const RefinedState* state, symbol_t symbol) noexcept nogil:
    """The number of a symbol within its label."""
    return symbol - state.rules.first_symbol[state.symbol_label[symbol]]


cdef inline bint has_internal_nodes(const Dish* dish) noexcept nogil:
    return dish.single < 0


cdef inline Derivation present(const RefinedState* state) noexcept nogil:
    """The derivations of all trees."""
    cdef Derivation result
    result.is_site = &state.is_site[0]
    result.symbol = &state.symbol[0]
    result.first = 0
    return result


cdef inline bint is_site_at(const Derivation* derivation, index_t node) noexcept nogil:
    return derivation.is_site[node - derivation.first]


cdef inline symbol_t symbol_at(const Derivation* derivation, index_t node) noexcept nogil:
    return derivation.symbol[node - derivation.first]


cdef inline int32_t find_dish(const RefinedState* state, int32_t fragment, symbol_t root) noexcept nogil:
    """The dish of a fragment with this root symbol, or -1."""
    cdef size_t item
    for item in range(state.fragments.links[fragment].dishes.size()):
        if state.fragments.links[fragment].dishes[item].symbol == root:
            return state.fragments.links[fragment].dishes[item].dish
    return -1


cdef inline double old_weight_of(const Restaurant* restaurant, const Dish* dish) noexcept nogil:
    """The weight of all tables that serve a dish; 0 if there is none."""
    return old_weight(restaurant, &dish.tables) if dish.tables.n_customers else 0.0


cdef inline TrackedTable* tracked_at(RefinedState* state, int32_t number) noexcept nogil:
    """A tracked table."""
    return &state.tracked.tables[<uint32_t>number % N_PARTS][<uint32_t>number // N_PARTS]


cdef inline void weigh_single(RefinedState* state, const Dish* dish) noexcept nogil:
    """Bring the weight of a single rule in line with its customers."""
    state.singles.weight[dish.single] = old_weight(&state.restaurants[dish.symbol], &dish.tables)


cdef inline void weigh_refined(RefinedState* state, const Dish* dish) noexcept nogil:
    """The same of a fragment with internal nodes."""
    cdef vector[RootedDish]* dishes = &state.fragments.links[dish.fragment].dishes
    cdef size_t entry = 0
    while dishes[0][entry].symbol != dish.symbol:
        entry += 1
    dishes[0][entry].weight = old_weight_of(&state.restaurants[dish.symbol], dish)


# ---- dishes -------------------------------------------------------------------------------------------------

cdef int build_state(RefinedState* state) except -1 nogil
cdef int reserve_values(const RefinedState* state, FragmentValues* at_work) except -1 nogil
# Bring everything that is kept of the parameters in line with them.
cdef void cache_parameters(RefinedState* state) noexcept nogil
cdef int clear_seating(RefinedState* state) except -1 nogil
cdef int find_all_dishes(RefinedState* state) except -1 nogil
cdef int find_dish_at(RefinedState* state, int32_t node) except -1 nogil
# The nodes of the fragment with its root at a node.
cdef void collect_nodes(const RefinedState* state, const Derivation* derivation, int32_t root,
                        FragmentValues* at_work) noexcept nogil
# The fragments and the dish below a site.
cdef int find_dish_below(RefinedState* state, int32_t root) except -1 nogil
cdef int release_dish(RefinedState* state, int32_t number) except -1 nogil
cdef int sort_state(RefinedState* state) except -1 nogil
cdef int sort_rules(RefinedState* state) except -1 nogil
cdef int reserve_listing(const RefinedState* state, RuleListing* listing) except -1 nogil
# The refined rules of a dish, its root's first, with these subcategories of its internal nodes.
cdef void list_rules(const RefinedState* state, const Dish* dish, const int16_t* refinement,
                     RuleListing* listing) noexcept nogil
cdef int list_internal_labels(const RefinedState* state, int32_t dish, vector[symbol_t]* labels) except -1 nogil


cdef inline void forget_seatings(RefinedState* state) noexcept nogil:
    """Keep what has happened."""
    state.seatings.entries.clear()
    state.removed.clear()
