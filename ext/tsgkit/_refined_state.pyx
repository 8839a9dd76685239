"""Dishes of a symbol-refined grammar: which fragment every site has, found from sites and symbols alone."""

from libc.stdint cimport int16_t, int32_t
from libcpp.vector cimport vector

from tsgkit._backoff cimport NOT_SEEN, RefinedRule, empty_restaurants, n_levels
from tsgkit._fragments cimport (
    NO_CHILD,
    Fragment,
    RootedDish,
    frontier_code,
    frontier_symbol,
    intern_fragment,
    is_frontier,
    is_single,
    release_fragment,
    start_fragments,
)
from tsgkit._label_parts cimport N_PARTS, divide_labels
from tsgkit._refined_rules cimport find_cell, n_subcategories, sort_cells, weigh_all
from tsgkit._restaurant cimport empty_restaurant, start_stops
from tsgkit._rule_list cimport RuleEntry, add_entry, sort_list, start_list
from tsgkit._trees cimport child, child_label, n_nodes, n_nodes_of, n_trees
from tsgkit._types cimport index_t, symbol_t
from tsgkit._vectors cimport fill


cdef int build_state(RefinedState* state) except -1 nogil:
    """Lay out everything that depends on the trees and symbols alone; nobody is seated."""
    cdef index_t tree, node
    cdef int32_t length, n_values
    fill(state.restaurants, state.symbol_label.size(), empty_restaurant())
    start_stops(&state.stops, state.rules.first_symbol.size() - 1)
    state.offset.resize(n_nodes(&state.trees))
    state.n_most_subcategories = 1
    state.n_longest, state.n_most_nodes = 0, 0
    for tree in range(n_trees(&state.trees)):
        length = 0
        for node in range(state.trees.tree_start[tree], state.trees.tree_start[tree + 1]):
            n_values = n_subcategories(&state.rules, state.trees.label[node])
            state.offset[node] = length
            length += n_values
            state.n_most_subcategories = max(state.n_most_subcategories, n_values)
        state.n_longest = max(state.n_longest, length)
        state.n_most_nodes = max(state.n_most_nodes, n_nodes_of(&state.trees, tree))
    reserve_values(state, &state.at_work)
    reserve_listing(state, &state.listing)
    divide_labels(&state.trees, <symbol_t>(state.rules.first_symbol.size() - 1), &state.parts)
    start_tracked(state)
    state.below.resize(n_nodes(&state.trees))
    state.stops_of_rule.resize(state.trees.rule_label.size())
    return clear_seating(state)


cdef int reserve_values(const RefinedState* state, FragmentValues* at_work) except -1 nogil:
    """Room for any fragment."""
    at_work.nodes.resize(state.n_most_nodes)
    at_work.n_nodes = 0
    at_work.values.resize(state.n_longest)
    fill(at_work.one_left, state.n_most_subcategories, 0.0)
    fill(at_work.one_right, state.n_most_subcategories, 0.0)
    return 0


cdef int reserve_listing(const RefinedState* state, RuleListing* listing) except -1 nogil:
    """Room for the rules of any fragment."""
    listing.rules.resize(state.n_most_nodes)
    listing.fragments.resize(state.n_most_nodes)
    listing.n_rules = 0
    return 0


cdef int start_tracked(RefinedState* state) except -1 nogil:
    """No table is tracked."""
    cdef int part
    state.tracked.is_active = False
    state.tracked.first.resize(n_levels(&state.rules) + 1)
    for part in range(N_PARTS):
        state.tracked.n_identities[part] = 0
    return 0


cdef void cache_parameters(RefinedState* state) noexcept nogil:
    cdef const Dish* dish
    cdef size_t rule, number
    cdef symbol_t label
    cdef int side
    for rule in range(state.stops_of_rule.size()):
        state.stops_of_rule[rule] = 1.0
        for side in range(2):
            label = child_label(&state.trees, rule, side)
            if label >= 0:
                state.stops_of_rule[rule] *= state.stops.stop[label]
    weigh_all(&state.rules)
    for number in range(state.dishes.size()):
        dish = &state.dishes[number]
        if dish.fragment < 0:
            continue
        if has_internal_nodes(dish):
            weigh_refined(state, dish)
        else:
            weigh_single(state, dish)


cdef int clear_seating(RefinedState* state) except -1 nogil:
    """Empty all restaurants."""
    cdef size_t number
    empty_restaurants(&state.rules)
    sort_cells(&state.rules)
    for number in range(state.restaurants.size()):
        state.restaurants[number].n_customers = state.restaurants[number].n_tables = 0
    start_dishes(state)
    forget_seatings(state)
    return 0


cdef int start_dishes(RefinedState* state) except -1 nogil:
    start_fragments(&state.fragments, True, state.trees.rule_label.size())
    start_list(&state.singles, state.trees.rule_label.size())
    state.dish_of_single.clear()
    state.dishes.clear()
    state.free_dishes.clear()
    fill(state.dish, n_nodes(&state.trees), -1)
    return 0


cdef int find_all_dishes(RefinedState* state) except -1 nogil:
    """Find the dishes of all sites, in an order that depends on sites and symbols alone; nobody is seated."""
    cdef index_t node = n_nodes(&state.trees)
    start_dishes(state)
    while node > 0:
        node -= 1
        find_dish_at(state, <int32_t>node)
    return sort_singles(state)


cdef int sort_singles(RefinedState* state) except -1 nogil:
    """Put the entries of single rules in order; each is that of a dish."""
    cdef vector[int32_t] kept, dishes
    cdef size_t entry
    for entry in range(state.dish_of_single.size()):
        kept.push_back(<int32_t>entry)
    sort_list(&state.singles, &kept)
    for entry in range(kept.size()):
        dishes.push_back(state.dish_of_single[kept[entry]])
        state.dishes[dishes[entry]].single = <int32_t>entry
    state.dish_of_single.swap(dishes)
    return 0


cdef void collect_nodes(
    const RefinedState* state, const Derivation* derivation, int32_t root, FragmentValues* at_work
) noexcept nogil:
    """The nodes of a fragment, from the root down, level by level."""
    cdef size_t item = 0
    cdef symbol_t below
    cdef int side
    at_work.nodes[0] = root
    at_work.n_nodes = 1
    while item < at_work.n_nodes:
        for side in range(2):
            below = child(&state.trees, at_work.nodes[item], side)
            if below >= 0 and not is_site_at(derivation, below):
                at_work.nodes[at_work.n_nodes] = below
                at_work.n_nodes += 1
        item += 1


cdef int find_dish_below(RefinedState* state, int32_t root) except -1 nogil:
    cdef Derivation derivation = present(state)
    cdef size_t item
    collect_nodes(state, &derivation, root, &state.at_work)
    item = state.at_work.n_nodes
    while item > 0:
        item -= 1
        find_dish_at(state, state.at_work.nodes[item])
    return 0


cdef int find_dish_at(RefinedState* state, int32_t node) except -1 nogil:
    """The fragment below a node, whose children have theirs; and its dish if it is a site."""
    cdef symbol_t codes[2]
    cdef symbol_t below
    cdef int side
    for side in range(2):
        below = child(&state.trees, node, side)
        if below < 0:
            codes[side] = NO_CHILD
        elif state.is_site[below]:
            codes[side] = frontier_code(state.symbol[below])
        else:
            codes[side] = state.below[below]
    state.below[node] = intern_fragment(&state.fragments, state.trees.rule[node], codes[0], codes[1])
    state.dish[node] = intern_dish(state, state.below[node], state.symbol[node]) if state.is_site[node] else -1
    return 0


cdef int32_t intern_dish(RefinedState* state, int32_t fragment, symbol_t root) except -1 nogil:
    cdef int32_t number = find_dish(state, fragment, root)
    cdef RootedDish entry
    cdef Dish* dish
    if number >= 0:
        return number
    if state.free_dishes.empty():
        number = <int32_t>state.dishes.size()
        state.dishes.resize(number + 1)
    else:
        number = state.free_dishes.back()
        state.free_dishes.pop_back()
    dish = &state.dishes[number]
    dish.fragment, dish.symbol, dish.single, dish.cell = fragment, root, -1, NOT_SEEN
    if is_single(&state.fragments.fragments[fragment]):
        dish.single = add_single(state, fragment, root)
        state.dish_of_single.push_back(number)
    entry.symbol, entry.dish, entry.weight = root, number, 0.0
    state.fragments.links[fragment].dishes.push_back(entry)
    return number


cdef int32_t add_single(RefinedState* state, int32_t fragment, symbol_t root) except -1 nogil:
    """The entry of a dish of a single rule."""
    cdef const Fragment* rule = &state.fragments.fragments[fragment]
    cdef symbol_t left = 0, right = 0
    if rule.left != NO_CHILD:
        left = subcategory_of(state, frontier_symbol(rule.left))
    if rule.right != NO_CHILD:
        right = subcategory_of(state, frontier_symbol(rule.right))
    return add_entry(&state.singles, rule.rule, subcategory_of(state, root), left, right)


cdef int release_dish(RefinedState* state, int32_t number) except -1 nogil:
    """Remove a dish that nobody orders, and its fragment; one that somebody orders stays."""
    cdef int32_t fragment = state.dishes[number].fragment
    cdef vector[RootedDish]* dishes
    cdef size_t item = 0
    if fragment < 0 or state.dishes[number].tables.n_customers:
        return 0
    dishes = &state.fragments.links[fragment].dishes
    while dishes[0][item].dish != number:
        item += 1
    dishes[0][item] = dishes.back()
    dishes.pop_back()
    release_fragment(&state.fragments, fragment)
    state.dishes[number].fragment = -1
    state.dishes[number].refined.clear()
    state.free_dishes.push_back(number)
    return 0


cdef int sort_state(RefinedState* state) except -1 nogil:
    """Bring everything into an order that does not depend on how it came about.

    A run that is resumed from a checkpoint finds what one that never stopped has.
    """
    cdef vector[Dish] old_dishes
    cdef vector[int32_t] old_dish
    cdef Dish* dish
    cdef Dish* old
    cdef size_t node
    old_dishes.swap(state.dishes)
    old_dish.swap(state.dish)
    find_all_dishes(state)
    for node in range(state.dish.size()):
        if state.dish[node] < 0:
            continue
        dish = &state.dishes[state.dish[node]]
        if dish.tables.n_customers:
            continue
        old = &old_dishes[old_dish[node]]
        dish.tables.n_customers, dish.tables.n_tables = old.tables.n_customers, old.tables.n_tables
        dish.tables.by_size.swap(old.tables.by_size)
        dish.refined.swap(old.refined)
    return sort_rules(state)


cdef int sort_rules(RefinedState* state) except -1 nogil:
    """Put the cells of rules in order; dishes of a single rule find theirs at the first level of the back-off."""
    cdef RefinedRule rule
    cdef RuleEntry entry
    cdef size_t number
    sort_cells(&state.rules)
    cache_parameters(state)
    if state.rules.n_used == 0:
        return 0
    for number in range(state.singles.entries.size()):
        entry = state.singles.entries[number]
        rule.rule, rule.parent = state.singles.rule[number], entry.parent
        rule.left, rule.right = entry.left, entry.right
        state.dishes[state.dish_of_single[number]].cell = find_cell(&state.rules, 0, &rule)
    return 0


cdef void list_rules(
    const RefinedState* state, const Dish* dish, const int16_t* refinement, RuleListing* listing
) noexcept nogil:
    cdef const Fragment* fragment
    cdef RefinedRule* rule
    cdef symbol_t subcategory[2]
    cdef symbol_t code
    cdef size_t item = 0
    cdef int side
    listing.n_rules = 1
    listing.fragments[0] = dish.fragment
    listing.rules[0].parent = subcategory_of(state, dish.symbol)
    while item < listing.n_rules:
        fragment = &state.fragments.fragments[listing.fragments[item]]
        for side in range(2):
            code = fragment.right if side else fragment.left
            subcategory[side] = 0
            if is_frontier(code):
                subcategory[side] = subcategory_of(state, frontier_symbol(code))
            elif code >= 0:
                subcategory[side] = refinement[0]
                refinement += 1
                listing.fragments[listing.n_rules] = code
                listing.rules[listing.n_rules].parent = subcategory[side]
                listing.n_rules += 1
        rule = &listing.rules[item]
        rule.rule, rule.left, rule.right = fragment.rule, subcategory[0], subcategory[1]
        item += 1


cdef int list_internal_labels(const RefinedState* state, int32_t dish, vector[symbol_t]* labels) except -1 nogil:
    """The labels of the internal nodes of a dish, in the order of refinements."""
    cdef vector[int32_t] waiting
    cdef const Fragment* fragment
    cdef size_t item = 0
    labels.clear()
    waiting.push_back(state.dishes[dish].fragment)
    while item < waiting.size():
        fragment = &state.fragments.fragments[waiting[item]]
        if fragment.left >= 0:
            waiting.push_back(fragment.left)
        if fragment.right >= 0:
            waiting.push_back(fragment.right)
        if item:
            labels.push_back(state.trees.rule_label[fragment.rule])
        item += 1
    return 0
