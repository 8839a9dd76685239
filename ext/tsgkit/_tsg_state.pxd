# The state of a Bayesian tree-substitution grammar over known trees: which derivation every tree has, and who sits
# where in the restaurants of its labels. All moves of `tsgkit._tsg_*` change this state; here is what they share.
#
# A derivation cuts a tree into elementary trees, or fragments. With insertion, a node inside of a fragment whose label
# X one of its children has too can be the root of an auxiliary tree with that child as its foot: the fragment in which
# it stands, its host, then continues at the foot. The base distribution of a fragment e with root label c is
#
#     P0(e | c) = prod_{rules r of e} P(r)  prod_{frontiers f} s_f  prod_{internal nodes i} (1 - s_i)
#
# where P is P', the probability of a rule with one child as the foot, at the root of an auxiliary tree, and the foot is
# neither a frontier nor internal. A node has index `first + node`, where `first` is the first node of its tree.
from libc.math cimport exp, log
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.vector cimport vector

from tsgkit._codes cimport FOOT, FRONTIER, INTERNAL, LEFT_FOOT, MISSING, SITE
from tsgkit._fragments cimport Fragment, FragmentTable, find_fragment
from tsgkit._random cimport Purpose, Rng, rng_for
from tsgkit._restaurant cimport (
    LogProduct, Restaurant, SeatingLog, StopProbabilities, Tables, denominator, multiply, new_weight, old_weight,
)
from tsgkit._trees cimport BinaryTrees, child
from tsgkit._types cimport index_t, symbol_t


# A table that a frozen batch of trees left, told apart from others of its size.
cdef struct TrackedTable:
    int32_t fragment
    int32_t size        # its customers now
    int32_t next        # tracked table of the same fragment, or -1

cdef struct TrackedList:
    int32_t first       # tracked table of a fragment, or -1
    int32_t last

cdef cppclass TrackedTables:
    vector[TrackedTable] tables
    vector[TrackedList] of_fragment


cdef cppclass TsgState:
    BinaryTrees trees
    # Per rule; P' is 0 for rules that no auxiliary tree can have at its root.
    vector[double] rule_probability
    vector[double] rule_log_probability
    vector[double] foot_probability
    vector[double] foot_log_probability
    # Per label.
    vector[Restaurant] restaurants       # of initial trees; with insertion, those of auxiliary trees follow
    StopProbabilities stops
    vector[double] insertion             # a_X, the probability of an insertion at an internal node
    vector[double] log_insertion
    vector[double] log_no_insertion
    # The derivations: the state of every node, and at roots of elementary trees the number of the fragment (else -1).
    vector[uint8_t] state
    vector[symbol_t] dish
    FragmentTable fragments
    TrackedTables tracked
    uint64_t seed
    uint32_t epoch                       # of the stop probabilities: log P0 is cached with fragments until they change
    cpp_bool has_insertion               # whether there are auxiliary trees at all
    cpp_bool is_stacked                  # whether a foot may be the host of another insertion


cdef struct SweepCounts:
    index_t n_proposed
    index_t n_accepted
    index_t n_changed      # accepted proposals that differ from the present state; nodes that changed


# A derivation of one tree. For every node, the fragment that has its root there or that its host continues with: its
# number, MISSING where it is not stored or not known, and P0 of it.
cdef cppclass TreeDerivation:
    vector[uint8_t] state
    vector[int32_t] number
    vector[double] base          # 0 where it is too small for a double
    uint64_t n_removed           # fragments removed from the table when the numbers were found
    vector[index_t] waiting      # scratch, one per node


cdef inline Rng tsg_rng(const TsgState* tsg, uint64_t iteration, Purpose purpose, uint64_t item) noexcept nogil:
    return rng_for(tsg.seed, iteration, purpose, item)


cdef inline size_t n_labels(const TsgState* tsg) noexcept nogil:
    return tsg.stops.stop.size()


# ---- insertions -----------------------------------------------------------------------------------------------

cdef inline symbol_t foot_of(const TsgState* tsg, index_t node, uint8_t state) noexcept nogil:
    """The foot below the root of an auxiliary tree."""
    return child(&tsg.trees, node, state - LEFT_FOOT)


cdef inline bint is_foot(const TsgState* tsg, index_t node) noexcept nogil:
    cdef symbol_t above = tsg.trees.parent[node]
    return above >= 0 and tsg.state[above] >= LEFT_FOOT and foot_of(tsg, above, tsg.state[above]) == node


cdef inline bint can_be_foot(const TsgState* tsg, index_t node, int side) noexcept nogil:
    """Whether this child of a node can be the foot of an insertion."""
    cdef symbol_t below = child(&tsg.trees, node, side)
    return (below >= 0 and tsg.trees.label[below] == tsg.trees.label[node]
            and tsg.foot_probability[tsg.trees.rule[node]] > 0.0)


cdef inline bint can_insert(const TsgState* tsg, index_t node) noexcept nogil:
    """Whether there can be an insertion at a node, if it is internal."""
    if not tsg.has_insertion or not tsg.insertion[tsg.trees.label[node]] > 0.0:
        return False
    return can_be_foot(tsg, node, 0) or can_be_foot(tsg, node, 1)


cdef inline int32_t restaurant_at(const TsgState* tsg, index_t node, uint8_t state) noexcept nogil:
    """The restaurant of the fragment that has its root at a node of this state."""
    return tsg.trees.label[node] + (<int32_t>n_labels(tsg) if state >= LEFT_FOOT else 0)


# ---- the base distribution ------------------------------------------------------------------------------------

# The children of a fragment's root where they are not another fragment: FRONTIER, also without a child, and FOOT. Any
# other code, MISSING too, stands for an internal node; P0 of what is below it comes with it.

cdef inline double base_of_parts(const TsgState* tsg, symbol_t rule, symbol_t left, double left_base, symbol_t right,
                                 double right_base) noexcept nogil:
    """P0 of a fragment, from P0 of its parts."""
    cdef symbol_t left_label = tsg.trees.rule_left_label[rule], right_label = tsg.trees.rule_right_label[rule]
    cdef double base
    if left == FOOT or right == FOOT:
        base = tsg.foot_probability[rule]
    else:
        base = tsg.rule_probability[rule]
    if left_label >= 0 and left != FOOT:
        base *= tsg.stops.stop[left_label] if left == FRONTIER else (1.0 - tsg.stops.stop[left_label]) * left_base
    if right_label >= 0 and right != FOOT:
        base *= tsg.stops.stop[right_label] if right == FRONTIER else (1.0 - tsg.stops.stop[right_label]) * right_base
    return base


cdef inline double add_log_base(double log_base, const TsgState* tsg, symbol_t rule, symbol_t left,
                                double left_log_base, symbol_t right, double right_log_base) noexcept nogil:
    """Its logarithm, however small it is, added to a number."""
    cdef symbol_t left_label = tsg.trees.rule_left_label[rule], right_label = tsg.trees.rule_right_label[rule]
    if left == FOOT or right == FOOT:
        log_base += tsg.foot_log_probability[rule]
    else:
        log_base += tsg.rule_log_probability[rule]
    if left_label >= 0 and left != FOOT:
        if left == FRONTIER:
            log_base += tsg.stops.log_stop[left_label]
        else:
            log_base += tsg.stops.log_internal[left_label] + left_log_base
    if right_label >= 0 and right != FOOT:
        if right == FRONTIER:
            log_base += tsg.stops.log_stop[right_label]
        else:
            log_base += tsg.stops.log_internal[right_label] + right_log_base
    return log_base


cdef inline index_t continues_at(const TsgState* tsg, index_t first, index_t node, int side,
                                 const uint8_t* state) noexcept nogil:
    """Where a fragment continues below one of its nodes, insertions left out; FRONTIER or FOOT where it ends.

    Nodes are counted from `first` on, and so are their states.
    """
    cdef index_t below
    if state[node] == LEFT_FOOT + side:
        return FOOT
    below = child(&tsg.trees, first + node, side)
    if below < 0:
        return FRONTIER
    below -= first
    while state[below] >= LEFT_FOOT:
        below = foot_of(tsg, first + below, state[below]) - first
    return FRONTIER if state[below] == SITE else below


# log P0 of the fragment with its root at a node, from the states of the nodes alone, summed from the root down;
# `waiting` has room for all nodes below.
cdef double log_base_below(const TsgState* tsg, index_t first, index_t node, const uint8_t* state,
                           index_t* waiting) noexcept nogil


# ---- derivations of one tree ----------------------------------------------------------------------------------

# What is below a node in its fragment: per child, its code, and P0 of it where the fragment continues.
cdef struct Parts:
    symbol_t left
    symbol_t right
    double left_base
    double right_base


cdef inline symbol_t part_at(const TsgState* tsg, index_t first, index_t node, int side,
                             const TreeDerivation* derivation, double* base) noexcept nogil:
    cdef index_t below = continues_at(tsg, first, node, side, derivation.state.data())
    if below < 0:
        base[0] = 0.0
        return <symbol_t>below
    base[0] = derivation.base[below]
    return derivation.number[below]


cdef inline Parts parts_at(const TsgState* tsg, index_t first, index_t node,
                           const TreeDerivation* derivation) noexcept nogil:
    cdef Parts parts
    parts.left = part_at(tsg, first, node, 0, derivation, &parts.left_base)
    parts.right = part_at(tsg, first, node, 1, derivation, &parts.right_base)
    return parts


# Room for a tree of so many nodes; all other functions of derivations allocate nothing.
cdef int resize_derivation(TreeDerivation* derivation, index_t n_nodes) except -1 nogil
# Numbers and P0 of the fragments that the states make.
cdef void describe(const TsgState* tsg, index_t tree, TreeDerivation* derivation) noexcept nogil
# The same for the present derivation of a tree; only the numbers at roots of fragments are known then.
cdef void describe_present(const TsgState* tsg, index_t tree, TreeDerivation* derivation) noexcept nogil
# The log probability of a tree's insertions, and of there being no others.
cdef double log_insertions(const TsgState* tsg, index_t tree, const TreeDerivation* derivation) noexcept nogil


# ---- predictive probabilities ---------------------------------------------------------------------------------

cdef inline void multiply_predictive(LogProduct* product, const TsgState* tsg, index_t first, index_t node,
                                     TreeDerivation* derivation) noexcept nogil:
    """Multiply by the probability of the fragment at a root for the next customer, with the counts as they are."""
    cdef const Restaurant* restaurant = &tsg.restaurants[restaurant_at(tsg, first + node, derivation.state[node])]
    cdef int32_t number = derivation.number[node]
    cdef double weight = new_weight(restaurant) * derivation.base[node]
    if number != MISSING:
        weight += old_weight(restaurant, &tsg.fragments.fragments[number].tables)
    if weight > 1e-120:
        multiply(product, weight / denominator(restaurant))
        return
    product.log += log(new_weight(restaurant) / denominator(restaurant)) + log_base_below(
        tsg, first, node, derivation.state.data(), derivation.waiting.data())


cdef inline double log_predictive(const Restaurant* restaurant, const Tables* tables, double log_base) noexcept nogil:
    """log p of a dish for the next customer; `tables` is NULL for a fragment that is not stored."""
    cdef double from_base = log(new_weight(restaurant)) + log_base
    if tables is NULL or tables.n_customers == 0:
        return from_base - log(denominator(restaurant))
    return log(old_weight(restaurant, tables) + exp(from_base)) - log(denominator(restaurant))


# ---- seating of whole trees -----------------------------------------------------------------------------------

# Seat a tree's fragments one by one, from the root down, and note it in the log; the log probability of the derivation.
cdef int seat_tree(TsgState* tsg, index_t tree, TreeDerivation* derivation, SeatingLog* seatings, Rng* rng,
                   double* log_probability) except -1 nogil
# Unseat a tree's fragments, as `derivation` describes them, in reverse order; the same for them. They stay in the table
# until they are released. A tree that was frozen leaves the same tables again: `frozen`, NULL for others.
cdef int unseat_tree(TsgState* tsg, index_t tree, TreeDerivation* derivation, SeatingLog* seatings, Rng* rng,
                     const int32_t* frozen, double* log_probability) except -1 nogil
# Undo all entries of a log, the last one first, with the tables that are tracked.
cdef int rollback_seatings(TsgState* tsg, SeatingLog* seatings) except -1 nogil
cdef int seat_all(TsgState* tsg) except -1 nogil
cdef int unseat_all(TsgState* tsg) except -1 nogil


# ---- tracked tables -------------------------------------------------------------------------------------------

# Unseat a tree, track the tables it leaves, and add their numbers to `frozen`.
cdef int freeze_tree(TsgState* tsg, index_t tree, SeatingLog* seatings, vector[int32_t]* frozen,
                     Rng* rng) except -1 nogil
cdef void forget_tracked(TsgState* tsg) noexcept nogil


# ---- parameters -----------------------------------------------------------------------------------------------

cdef void set_stop_probability(TsgState* tsg, size_t label, double probability) noexcept nogil
cdef void set_insertion(TsgState* tsg, size_t label, double probability) noexcept nogil
