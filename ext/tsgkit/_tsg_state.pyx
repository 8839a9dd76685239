"""The derivations of a tree-substitution grammar: the fragments of a tree, and the seating of whole trees.

The contract, and what kernels use inline, is in ``_tsg_state.pxd``. With the log of a tree's seatings a rejected
proposal is rolled back exactly.

A batch of trees is proposed against the counts without all of its trees. Its proposals must depend on nothing but the
customers outside of it, so each tree must leave, when it is its turn, the very tables that it left when the batch was
frozen. Sizes alone do not tell tables apart once other trees of the batch have moved: the tables where the batch sat
are tracked, by their present sizes.
"""

from libc.math cimport log, log1p
from libc.stdint cimport int32_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._codes cimport INTERNAL, LEFT_FOOT, MISSING
from tsgkit._fragments cimport find_fragment, intern_fragment, is_fragment, release_fragment
from tsgkit._random cimport RNG_START, Rng
from tsgkit._restaurant cimport (
    LogProduct, Restaurant, Seating, SeatingLog, Tables, draw_customer, log_of, log_product, n_tables_of_size, note,
    seat, set_stop, shrink, undo,
)
from tsgkit._trees cimport n_nodes_of, n_trees
from tsgkit._types cimport index_t, symbol_t
from tsgkit._vectors cimport fill


# ---- derivations of one tree ----------------------------------------------------------------------------------

cdef int resize_derivation(TreeDerivation* derivation, index_t n_nodes) except -1 nogil:
    derivation.state.resize(n_nodes)
    derivation.number.resize(n_nodes)
    derivation.base.resize(n_nodes)
    derivation.waiting.resize(n_nodes)
    return 0


cdef void describe(const TsgState* tsg, index_t tree, TreeDerivation* derivation) noexcept nogil:
    cdef index_t first = tsg.trees.tree_start[tree], node
    cdef symbol_t rule
    cdef Parts parts
    derivation.n_removed = tsg.fragments.n_removed
    for node in range(n_nodes_of(&tsg.trees, tree) - 1, -1, -1):
        rule = tsg.trees.rule[first + node]
        parts = parts_at(tsg, first, node, derivation)
        if parts.left == MISSING or parts.right == MISSING:
            derivation.number[node] = MISSING
        else:
            derivation.number[node] = find_fragment(&tsg.fragments, rule, parts.left, parts.right)
        derivation.base[node] = base_of_parts(tsg, rule, parts.left, parts.left_base, parts.right, parts.right_base)


cdef void describe_present(const TsgState* tsg, index_t tree, TreeDerivation* derivation) noexcept nogil:
    cdef index_t first = tsg.trees.tree_start[tree], node
    cdef Parts parts
    for node in range(n_nodes_of(&tsg.trees, tree) - 1, -1, -1):
        derivation.state[node] = tsg.state[first + node]
        derivation.number[node] = MISSING
        if tsg.state[first + node] != INTERNAL:
            derivation.number[node] = tsg.dish[first + node]
        parts = parts_at(tsg, first, node, derivation)
        derivation.base[node] = base_of_parts(
            tsg, tsg.trees.rule[first + node], parts.left, parts.left_base, parts.right, parts.right_base
        )


cdef double log_base_below(
    const TsgState* tsg, index_t first, index_t node, const uint8_t* state, index_t* waiting
) noexcept nogil:
    cdef double log_base = 0.0
    cdef index_t left, right, n_waiting = 1
    waiting[0] = node
    while n_waiting:
        n_waiting -= 1
        node = waiting[n_waiting]
        left = continues_at(tsg, first, node, 0, state)
        right = continues_at(tsg, first, node, 1, state)
        log_base = add_log_base(log_base, tsg, tsg.trees.rule[first + node], <symbol_t>left, 0.0, <symbol_t>right, 0.0)
        if left >= 0:
            waiting[n_waiting] = left
            n_waiting += 1
        if right >= 0:
            waiting[n_waiting] = right
            n_waiting += 1
    return log_base


cdef double log_insertions(const TsgState* tsg, index_t tree, const TreeDerivation* derivation) noexcept nogil:
    cdef double result = 0.0
    cdef index_t first = tsg.trees.tree_start[tree], node
    cdef symbol_t label
    if not tsg.has_insertion:
        return result
    for node in range(n_nodes_of(&tsg.trees, tree)):
        label = tsg.trees.label[first + node]
        if derivation.state[node] == INTERNAL:
            result += tsg.log_no_insertion[label]
        elif derivation.state[node] >= LEFT_FOOT:
            result += tsg.log_insertion[label]
            if not tsg.is_stacked:
                result -= tsg.log_no_insertion[label]    # the foot's
    return result


# ---- seating of whole trees -----------------------------------------------------------------------------------

cdef int seat_tree(
    TsgState* tsg, index_t tree, TreeDerivation* derivation, SeatingLog* seatings, Rng* rng, double* log_probability
) except -1 nogil:
    cdef index_t first = tsg.trees.tree_start[tree], node
    cdef LogProduct probability = log_product()
    cdef Restaurant* restaurant
    cdef Tables* tables
    cdef int32_t number, size, table
    intern_tree(tsg, tree, derivation)
    probability.log += log_insertions(tsg, tree, derivation)
    for node in range(n_nodes_of(&tsg.trees, tree)):
        tsg.state[first + node] = derivation.state[node]
        tsg.dish[first + node] = -1
        if derivation.state[node] == INTERNAL:
            continue
        multiply_predictive(&probability, tsg, first, node, derivation)
        number = derivation.number[node]
        restaurant = &tsg.restaurants[restaurant_at(tsg, first + node, derivation.state[node])]
        tables = &tsg.fragments.fragments[number].tables
        size = seat(restaurant, tables, derivation.base[node], rng)
        table = -1
        if size:
            table = draw_tracked(tsg, number, size, tables, 1, rng)
        if table >= 0:
            tsg.tracked.tables[table].size += 1
        note(seatings, restaurant, 0, number, size, table, True)
        tsg.dish[first + node] = number
    log_probability[0] = log_of(&probability)
    return 0


cdef int intern_tree(TsgState* tsg, index_t tree, TreeDerivation* derivation) except -1 nogil:
    """Store the fragments of a tree that are not stored. If some were removed since, a number may be another's."""
    cdef index_t first = tsg.trees.tree_start[tree], node
    cdef bint all_hold = derivation.n_removed == tsg.fragments.n_removed
    cdef symbol_t rule
    cdef int32_t number
    cdef Parts parts
    for node in range(n_nodes_of(&tsg.trees, tree) - 1, -1, -1):
        number = derivation.number[node]
        if all_hold and number != MISSING:
            continue
        rule = tsg.trees.rule[first + node]
        parts = parts_at(tsg, first, node, derivation)
        if number == MISSING or not is_fragment(&tsg.fragments, number, rule, parts.left, parts.right):
            derivation.number[node] = intern_fragment(&tsg.fragments, rule, parts.left, parts.right)
    return 0


cdef int unseat_tree(
    TsgState* tsg, index_t tree, TreeDerivation* derivation, SeatingLog* seatings, Rng* rng, const int32_t* frozen,
    double* log_probability,
) except -1 nogil:
    cdef index_t first = tsg.trees.tree_start[tree], node
    cdef LogProduct probability = log_product()
    cdef Restaurant* restaurant
    cdef Tables* tables
    cdef int32_t number, size, table, n_unseated = 0
    probability.log += log_insertions(tsg, tree, derivation)
    for node in range(n_nodes_of(&tsg.trees, tree) - 1, -1, -1):
        if derivation.state[node] == INTERNAL:
            continue
        number = derivation.number[node]
        restaurant = &tsg.restaurants[restaurant_at(tsg, first + node, derivation.state[node])]
        tables = &tsg.fragments.fragments[number].tables
        table = -1 if frozen is NULL else frozen[n_unseated]
        n_unseated += 1
        if table < 0:
            size = draw_customer(tables, rng)
        else:
            size = tsg.tracked.tables[table].size
            tsg.tracked.tables[table].size -= 1
        shrink(restaurant, tables, size)
        note(seatings, restaurant, 0, number, size, table, False)
        multiply_predictive(&probability, tsg, first, node, derivation)
    log_probability[0] = log_of(&probability)
    return 0


cdef int rollback_seatings(TsgState* tsg, SeatingLog* seatings) except -1 nogil:
    cdef const Seating* last
    while not seatings.entries.empty():
        last = &seatings.entries.back()
        undo(last, &tsg.fragments.fragments[last.dish].tables)
        if last.table >= 0:
            tsg.tracked.tables[last.table].size += -1 if last.is_seated else 1
        seatings.entries.pop_back()
    return 0


cdef int seat_all(TsgState* tsg) except -1 nogil:
    """Seat all trees as the states say; nobody may be seated yet."""
    cdef TreeDerivation derivation
    cdef SeatingLog seatings
    cdef Rng rng
    cdef index_t tree, node
    cdef double log_probability
    fill(tsg.dish, tsg.trees.label.size(), -1)
    for tree in range(n_trees(&tsg.trees)):
        rng = tsg_rng(tsg, 0, RNG_START, tree)
        seatings.entries.clear()
        resize_derivation(&derivation, n_nodes_of(&tsg.trees, tree))
        for node in range(n_nodes_of(&tsg.trees, tree)):
            derivation.state[node] = tsg.state[tsg.trees.tree_start[tree] + node]
        describe(tsg, tree, &derivation)
        seat_tree(tsg, tree, &derivation, &seatings, &rng, &log_probability)
    return 0


cdef int unseat_all(TsgState* tsg) except -1 nogil:
    """Unseat all trees; every restaurant is empty then."""
    cdef TreeDerivation derivation
    cdef SeatingLog seatings
    cdef Rng rng = tsg_rng(tsg, 0, RNG_START, n_trees(&tsg.trees))
    cdef index_t tree
    cdef size_t entry
    cdef double log_probability
    for tree in range(n_trees(&tsg.trees)):
        seatings.entries.clear()
        resize_derivation(&derivation, n_nodes_of(&tsg.trees, tree))
        describe_present(tsg, tree, &derivation)
        unseat_tree(tsg, tree, &derivation, &seatings, &rng, NULL, &log_probability)
        for entry in range(seatings.entries.size()):
            release_fragment(&tsg.fragments, seatings.entries[entry].dish)
    fill(tsg.dish, tsg.trees.label.size(), -1)
    return 0


# ---- tracked tables -------------------------------------------------------------------------------------------

cdef int freeze_tree(
    TsgState* tsg, index_t tree, SeatingLog* seatings, vector[int32_t]* frozen, Rng* rng
) except -1 nogil:
    cdef index_t node
    cdef Restaurant* restaurant
    cdef Tables* tables
    cdef int32_t number, size, table
    for node in range(tsg.trees.tree_start[tree + 1] - 1, tsg.trees.tree_start[tree] - 1, -1):
        if tsg.state[node] == INTERNAL:
            continue
        number = tsg.dish[node]
        restaurant = &tsg.restaurants[restaurant_at(tsg, node, tsg.state[node])]
        tables = &tsg.fragments.fragments[number].tables
        size = draw_customer(tables, rng)
        table = draw_tracked(tsg, number, size, tables, 0, rng)
        if table < 0:
            table = track_table(tsg, number, size)
        shrink(restaurant, tables, size)
        tsg.tracked.tables[table].size -= 1
        note(seatings, restaurant, 0, number, size, table, False)
        frozen.push_back(table)
    return 0


cdef int32_t track_table(TsgState* tsg, int32_t fragment, int32_t size) except -1 nogil:
    cdef TrackedTable table
    cdef TrackedList* tables_of
    cdef TrackedList nobody
    cdef int32_t number = <int32_t>tsg.tracked.tables.size()
    table.fragment, table.size, table.next = fragment, size, -1
    tsg.tracked.tables.push_back(table)
    if tsg.tracked.of_fragment.size() < tsg.fragments.fragments.size():
        nobody.first = nobody.last = -1
        tsg.tracked.of_fragment.resize(tsg.fragments.fragments.size(), nobody)
    tables_of = &tsg.tracked.of_fragment[fragment]
    if tables_of.first < 0:
        tables_of.first = number
    else:
        tsg.tracked.tables[tables_of.last].next = number
    tables_of.last = number
    return number


cdef int32_t draw_tracked(
    const TsgState* tsg, int32_t fragment, int32_t size, const Tables* tables, int32_t n_absent, Rng* rng
) noexcept nogil:
    """One of a fragment's tables of this size, all alike: its number if it is tracked, or -1.

    `n_absent` of them are no longer in the histogram.
    """
    cdef uint64_t target
    cdef int32_t table
    if <size_t>fragment >= tsg.tracked.of_fragment.size() or tsg.tracked.of_fragment[fragment].first < 0:
        return -1
    target = rng.below(<uint64_t>(n_tables_of_size(tables, size) + n_absent))
    table = tsg.tracked.of_fragment[fragment].first
    while table >= 0:
        if tsg.tracked.tables[table].size == size:
            if target == 0:
                return table
            target -= 1
        table = tsg.tracked.tables[table].next
    return -1


cdef void forget_tracked(TsgState* tsg) noexcept nogil:
    cdef size_t table
    cdef TrackedList* tables_of
    for table in range(tsg.tracked.tables.size()):
        tables_of = &tsg.tracked.of_fragment[tsg.tracked.tables[table].fragment]
        tables_of.first = tables_of.last = -1
    tsg.tracked.tables.clear()


# ---- parameters -----------------------------------------------------------------------------------------------

cdef void set_stop_probability(TsgState* tsg, size_t label, double probability) noexcept nogil:
    set_stop(&tsg.stops, label, probability)
    tsg.epoch += 1


cdef void set_insertion(TsgState* tsg, size_t label, double probability) noexcept nogil:
    tsg.insertion[label] = probability
    tsg.log_insertion[label] = log(probability)
    tsg.log_no_insertion[label] = log1p(-probability)
