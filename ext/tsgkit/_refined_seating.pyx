"""Seating the customers of refined sites, with the base probability of their fragments, and rolling back.

The base probability of a fragment sums over the refinements of its internal nodes, by a small inside pass over the
fragment. A new table draws one of them from its conditional.
"""

from libc.math cimport exp, log
from libc.stdint cimport int16_t, int32_t, int64_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._backoff cimport RefinedRule
from tsgkit._random cimport RNG_REFINED_START, Rng, rng_for
from tsgkit._refined_rules cimport (
    draw_children,
    n_subcategories,
    probability,
    seat_rule,
    sort_cells,
    sum_for,
    sums,
    unseat_rule,
)
from tsgkit._refined_state cimport (
    DISHES,
    Dish,
    RefinedState,
    RefinedTable,
    find_all_dishes,
    forget_seatings,
    has_internal_nodes,
    list_rules,
    release_dish,
    sort_state,
    subcategory_of,
)
from tsgkit._restaurant cimport (
    Restaurant,
    Seating,
    denominator,
    draw_customer,
    draw_table,
    grow,
    new_weight,
    note,
    old_weight,
    shrink,
    undo,
)
from tsgkit._trees cimport child, n_nodes, n_trees
from tsgkit._types cimport index_t, symbol_t


# ---- the fragment at a site -----------------------------------------------------------------------------------

cdef int collect_nodes(RefinedState* state, int32_t root) except -1 nogil:
    """The nodes of the fragment at a site, from the root down, level by level."""
    cdef size_t item = 0
    cdef symbol_t below
    cdef int side
    state.nodes.assign(1, root)
    while item < state.nodes.size():
        for side in range(2):
            below = child(&state.trees, state.nodes[item], side)
            if below >= 0 and not state.is_site[below]:
                state.nodes.push_back(below)
        item += 1
    return 0


cdef const double* child_values(RefinedState* state, symbol_t below, vector[double]* one) noexcept nogil:
    """Values of the subcategories of a child: those of the inside pass, or the one that a site has."""
    if below >= 0 and not state.is_site[below]:
        return &state.values[state.offset[below]]
    one[0][0 if below < 0 else subcategory_of(state, state.symbol[below])] = 1.0
    return one.data()


cdef void clear_child(RefinedState* state, symbol_t below, vector[double]* one) noexcept nogil:
    if below < 0:
        one[0][0] = 0.0
    elif state.is_site[below]:
        one[0][subcategory_of(state, state.symbol[below])] = 0.0


cdef RefinedRule rule_at(const RefinedState* state, int32_t node) noexcept nogil:
    """The refined rule at a node whose children are sites."""
    cdef RefinedRule rule
    cdef symbol_t left = state.trees.left[node], right = state.trees.right[node]
    rule.rule, rule.parent = state.trees.rule[node], subcategory_of(state, state.symbol[node])
    rule.left = 0 if left < 0 else subcategory_of(state, state.symbol[left])
    rule.right = 0 if right < 0 else subcategory_of(state, state.symbol[right])
    return rule


cdef double log_stops_below(const RefinedState* state, int32_t node) noexcept nogil:
    """The log probability of stopping, or not, at the children of a node."""
    cdef double result = 0.0
    cdef symbol_t below
    cdef int side
    for side in range(2):
        below = child(&state.trees, node, side)
        if below >= 0 and state.is_site[below]:
            result += state.stops.log_stop[state.trees.label[below]]
        elif below >= 0:
            result += state.stops.log_internal[state.trees.label[below]]
    return result


cdef double log_base_of(RefinedState* state, int32_t root) except? -1 nogil:
    """log P(e | x_k) of the fragment at a site; leaves its nodes in `nodes` and their values in `values`."""
    cdef double result = 0.0
    cdef size_t item
    cdef int32_t node
    cdef RefinedRule rule
    cdef const double* left
    cdef const double* right
    collect_nodes(state, root)
    if state.nodes.size() == 1:
        rule = rule_at(state, root)
        return log_stops_below(state, root) + log(probability(&state.rules, &rule))
    item = state.nodes.size()
    while item > 0:
        item -= 1
        node = state.nodes[item]
        result += log_stops_below(state, node)
        left = child_values(state, state.trees.left[node], &state.one_left)
        right = child_values(state, state.trees.right[node], &state.one_right)
        if item == 0:
            result += log(sum_for(
                &state.rules, state.trees.rule[node], subcategory_of(state, state.symbol[node]), left, right
            ))
        else:
            result += scaled_sums(state, node, left, right)
        clear_child(state, state.trees.left[node], &state.one_left)
        clear_child(state, state.trees.right[node], &state.one_right)
    return result


cdef double scaled_sums(RefinedState* state, int32_t node, const double* left, const double* right) noexcept nogil:
    """The inside values of an internal node, divided by the largest; returns its log."""
    cdef double* values = &state.values[state.offset[node]]
    cdef int32_t n_values = n_subcategories(&state.rules, state.trees.label[node]), number
    cdef double largest
    sums(&state.rules, state.trees.rule[node], left, right, values)
    largest = values[0]
    for number in range(1, n_values):
        largest = max(largest, values[number])
    for number in range(n_values):
        values[number] /= largest
    return log(largest)


cdef int draw_refinement(RefinedState* state, vector[int16_t]* refinement, Rng* rng) except -1 nogil:
    """Draw a refinement of the fragment that `log_base_of` has just described."""
    cdef RefinedRule drawn
    cdef bint has_left, has_right
    cdef size_t item
    cdef symbol_t left, right
    refinement.clear()
    for item in range(state.nodes.size()):
        left, right = state.trees.left[state.nodes[item]], state.trees.right[state.nodes[item]]
        has_left, has_right = left >= 0 and not state.is_site[left], right >= 0 and not state.is_site[right]
        if not has_left and not has_right:
            continue
        drawn.rule = state.trees.rule[state.nodes[item]]
        # Refinements come in the order of `nodes`, without the root.
        if item:
            drawn.parent = refinement[0][item - 1]
        else:
            drawn.parent = subcategory_of(state, state.symbol[state.nodes[item]])
        drawn.left = drawn.right = 0
        draw_children(
            &state.rules, &drawn, child_values(state, left, &state.one_left),
            child_values(state, right, &state.one_right), rng,
        )
        clear_child(state, left, &state.one_left)
        clear_child(state, right, &state.one_right)
        if has_left:
            refinement.push_back(<int16_t>drawn.left)
        if has_right:
            refinement.push_back(<int16_t>drawn.right)
    return 0


cdef double log_predictive(const RefinedState* state, const Dish* dish, double log_base) noexcept nogil:
    cdef const Restaurant* restaurant = &state.restaurants[dish.symbol]
    cdef double from_base = log(new_weight(restaurant)) + log_base
    if dish.tables.n_customers == 0:
        return from_base - log(denominator(restaurant))
    return log(old_weight(restaurant, &dish.tables) + exp(from_base)) - log(denominator(restaurant))


cdef double log_predictive_at(RefinedState* state, int32_t node) except? -1 nogil:
    """The log predictive probability of the fragment at a site, with the counts as they are."""
    cdef double log_base = log_base_of(state, node)
    return log_predictive(state, &state.dishes[state.dish[node]], log_base)


# ---- seating --------------------------------------------------------------------------------------------------

cdef double seat_site(RefinedState* state, int32_t node, Rng* rng, bint annotate) except? -1 nogil:
    """Seat the customer of a site.

    Returns the log of the ratio of the probability of the seats to that of drawing them: the predictive probability,
    and where a table opens, that of its rules one after the other against all at once. With `annotate`, internal nodes
    take the symbols that their table has.
    """
    cdef double log_base = log_base_of(state, node), old_part, new_part, result
    cdef Dish* dish = &state.dishes[state.dish[node]]
    cdef Restaurant* restaurant = &state.restaurants[dish.symbol]
    cdef bint is_refined = state.nodes.size() > 1, joins
    cdef int32_t size = 0, table = -1
    cdef RefinedRule rule
    result = log_predictive(state, dish, log_base)
    old_part = old_weight(restaurant, &dish.tables) if dish.tables.n_customers else 0.0
    new_part = new_weight(restaurant) * exp(log_base)
    joins = dish.tables.n_customers and rng.uniform() * (old_part + new_part) < old_part
    if joins and is_refined:
        table = draw_refined_table(dish, old_part, restaurant.discount, rng)
        size = dish.refined[table].size
        dish.refined[table].size += 1
    elif joins:
        size = draw_table(&dish.tables, restaurant.discount, rng)
    elif is_refined:
        table = <int32_t>dish.refined.size()
        dish.refined.resize(table + 1)
        dish.refined[table].size = 1
        draw_refinement(state, &dish.refined[table].refinement, rng)
    grow(restaurant, &dish.tables, size)
    note(&state.seatings, restaurant, DISHES, state.dish[node], size, table, True)
    if annotate and is_refined:
        take_symbols(state, &dish.refined[table])
    if joins:
        return result
    if is_refined:
        return result + seat_rules(state, dish, table, rng)
    rule = rule_at(state, node)
    seat_rule(&state.rules, &rule, rng, &state.seatings)
    return result


cdef int32_t draw_refined_table(const Dish* dish, double total, double discount, Rng* rng) noexcept nogil:
    """An occupied table drawn with weight size - discount; the last one if rounding leaves a rest."""
    cdef double target = rng.uniform() * total
    cdef int32_t table = 0
    while table + 1 < <int32_t>dish.refined.size():
        target -= dish.refined[table].size - discount
        if target < 0.0:
            break
        table += 1
    return table


cdef void take_symbols(RefinedState* state, const RefinedTable* table) noexcept nogil:
    """Give the internal nodes of the fragment at work the symbols of its table."""
    cdef size_t item
    cdef symbol_t label
    for item in range(1, state.nodes.size()):
        label = state.trees.label[state.nodes[item]]
        state.symbol[state.nodes[item]] = state.rules.first_symbol[label] + table.refinement[item - 1]


cdef double seat_rules(RefinedState* state, const Dish* dish, int32_t table, Rng* rng) except? -1 nogil:
    """Seat the rules of a new table, one after the other: the log of that against all at once."""
    cdef double result = 0.0
    cdef size_t item
    list_rules(state, dish, dish.refined[table].refinement.data(), &state.rule_list)
    for item in range(state.rule_list.size()):
        result -= log(probability(&state.rules, &state.rule_list[item]))
    for item in range(state.rule_list.size()):
        result += log(seat_rule(&state.rules, &state.rule_list[item], rng, &state.seatings))
    return result


cdef double unseat_site(RefinedState* state, int32_t node, Rng* rng) except? -1 nogil:
    """Unseat the customer of a site; returns what `seat_site` would return for the same seats."""
    cdef Dish* dish = &state.dishes[state.dish[node]]
    cdef Restaurant* restaurant = &state.restaurants[dish.symbol]
    cdef bint is_refined = has_internal_nodes(state, dish)
    cdef int32_t size, table = -1
    cdef double result = 0.0
    cdef RefinedRule rule
    if is_refined:
        table = draw_refined_customer(dish, rng)
        size = dish.refined[table].size
        dish.refined[table].size -= 1
    else:
        size = draw_customer(&dish.tables, rng)
    shrink(restaurant, &dish.tables, size)
    note(&state.seatings, restaurant, DISHES, state.dish[node], size, table, False)
    if size == 1 and is_refined:
        result = unseat_rules(state, dish, table, rng)
    elif size == 1:
        rule = rule_at(state, node)
        unseat_rule(&state.rules, &rule, rng, &state.seatings)
    return result + log_predictive_at(state, node)


cdef int32_t draw_refined_customer(const Dish* dish, Rng* rng) noexcept nogil:
    """The table of a customer drawn uniformly."""
    cdef int64_t target = <int64_t>rng.below(<uint64_t>dish.tables.n_customers)
    cdef int32_t table = 0
    while table + 1 < <int32_t>dish.refined.size():
        target -= dish.refined[table].size
        if target < 0:
            break
        table += 1
    return table


cdef double unseat_rules(RefinedState* state, Dish* dish, int32_t table, Rng* rng) except? -1 nogil:
    """Remove a table, which is empty, and unseat its rules: the log of one after the other against all at once."""
    cdef double result = 0.0
    cdef size_t item
    list_rules(state, dish, dish.refined[table].refinement.data(), &state.rule_list)
    state.removed.resize(state.removed.size() + 1)
    swap_tables(&dish.refined[table], &dish.refined.back())
    swap_tables(&dish.refined.back(), &state.removed.back())
    dish.refined.pop_back()
    item = state.rule_list.size()
    while item > 0:
        item -= 1
        result += log(unseat_rule(&state.rules, &state.rule_list[item], rng, &state.seatings))
    for item in range(state.rule_list.size()):
        result -= log(probability(&state.rules, &state.rule_list[item]))
    return result


cdef void swap_tables(RefinedTable* one, RefinedTable* other) noexcept nogil:
    one.size, other.size = other.size, one.size
    if one is not other:
        one.refinement.swap(other.refinement)


# ---- all trees ------------------------------------------------------------------------------------------------

cdef int seat_all(RefinedState* state) except -1 nogil:
    """Seat all trees as sites and symbols say."""
    cdef index_t tree, node
    cdef Rng rng
    find_all_dishes(state)
    for tree in range(n_trees(&state.trees)):
        rng = rng_for(state.seed, 0, RNG_REFINED_START, tree)
        for node in range(state.trees.tree_start[tree], state.trees.tree_start[tree + 1]):
            if state.is_site[node]:
                seat_site(state, <int32_t>node, &rng, False)
        forget_seatings(state)
    return sort_state(state)


cdef int unseat_all(RefinedState* state) except -1 nogil:
    """Unseat all trees; every restaurant must be empty then."""
    cdef index_t node = n_nodes(&state.trees)
    cdef Rng rng = rng_for(state.seed, 0, RNG_REFINED_START, n_trees(&state.trees))
    while node > 0:
        node -= 1
        if state.is_site[node]:
            unseat_site(state, <int32_t>node, &rng)
            release_dish(state, state.dish[node])
            state.dish[node] = -1
            forget_seatings(state)
    return sort_cells(&state.rules)


# ---- rolling back ---------------------------------------------------------------------------------------------

cdef int rollback_state(RefinedState* state) except -1 nogil:
    """Undo everything since the log began, the last seating first."""
    cdef const Seating* entry
    while not state.seatings.entries.empty():
        entry = &state.seatings.entries.back()
        if entry.array == DISHES:
            undo_dish(state, entry)
        else:
            undo(entry, &state.rules.levels[entry.array].cells[entry.dish])
        state.seatings.entries.pop_back()
    forget_seatings(state)
    return 0


cdef int undo_dish(RefinedState* state, const Seating* entry) except -1 nogil:
    cdef Dish* dish = &state.dishes[entry.dish]
    undo(entry, &dish.tables)
    if entry.table < 0:
        return 0
    if entry.is_seated:
        dish.refined[entry.table].size -= 1
        if dish.refined[entry.table].size == 0:
            dish.refined.pop_back()
        return 0
    if entry.size == 1:
        dish.refined.resize(dish.refined.size() + 1)
        swap_tables(&dish.refined.back(), &state.removed.back())
        state.removed.pop_back()
        swap_tables(&dish.refined[entry.table], &dish.refined.back())
    dish.refined[entry.table].size += 1
    return 0
