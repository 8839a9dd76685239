"""What a refined state's probability and parameters depend on: numbers of tables by size, of stops, of rules.

    log p(sites, symbols of sites, seating, refinements of tables | parameters)

is the sum over all restaurants of the log probability of their seating, over the tables of G of the stops in their
dishes, and over the tables that draw from a base distribution of its log probability.
"""

from libc.math cimport log
from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._backoff cimport (
    NOT_SEEN,
    Address,
    BackOff,
    Level,
    Place,
    RefinedRule,
    add_log_class_shares,
    class_level,
    count_tables,
    class_of_dish,
    is_label_class_level,
    label_class_level,
    label_class_place,
    n_classes,
    n_levels,
    resample_label,
    resample_label_classes,
    word_level,
)
from tsgkit._fragments cimport Fragment
from tsgkit._random cimport RNG_REFINED_HYPER, RNG_REFINED_STOP, Rng, rng_for
from tsgkit._refined_rules cimport class_cell, find_address, find_cell, rule_of_cell, symbol_of
from tsgkit._refined_state cimport Dish, RefinedState, RuleListing, has_internal_nodes, list_rules, reserve_listing
from tsgkit._restaurant cimport (
    Restaurant,
    Tables,
    add_sizes,
    grow_table,
    log_seating,
    resample_pair,
    set_stop,
)
from tsgkit._trees cimport child_label
from tsgkit._types cimport symbol_t
from tsgkit._vectors cimport fill


cdef int add_up(const RefinedState* state, RefinedTotals* totals) except -1 nogil:
    """Numbers of tables by size and restaurant, and numbers over the dishes of all tables of G."""
    cdef size_t n_labels = state.stops.stop.size(), number
    cdef const Dish* dish
    count_tables(&state.rules, &totals.rule_sizes)
    totals.dish_sizes.clear()
    totals.dish_sizes.resize(state.restaurants.size())
    fill(totals.frontier, n_labels, 0)
    fill(totals.internal, n_labels, 0)
    fill(totals.rules, state.trees.rule_label.size(), 0)
    for number in range(state.dishes.size()):
        dish = &state.dishes[number]
        if dish.fragment >= 0 and dish.tables.n_tables:
            add_sizes(&dish.tables, &totals.dish_sizes[dish.symbol])
            add_nodes(state, dish, totals)
    return 0


cdef int add_nodes(const RefinedState* state, const Dish* dish, RefinedTotals* totals) except -1 nogil:
    """Add the nodes and rules of a dish, once for each of its tables."""
    cdef vector[int32_t] waiting
    cdef const Fragment* fragment
    cdef symbol_t label, code
    cdef int side
    waiting.push_back(dish.fragment)
    while not waiting.empty():
        fragment = &state.fragments.fragments[waiting.back()]
        waiting.pop_back()
        totals.rules[fragment.rule] += dish.tables.n_tables
        for side in range(2):
            label = child_label(&state.trees, fragment.rule, side)
            code = fragment.right if side else fragment.left
            if label < 0:
                continue
            if code < 0:
                totals.frontier[label] += dish.tables.n_tables
            else:
                totals.internal[label] += dish.tables.n_tables
                waiting.push_back(code)
    return 0


# ---- the log joint --------------------------------------------------------------------------------------------

cdef double log_joint(const RefinedState* state, const RefinedTotals* totals) noexcept nogil:
    cdef double result = 0.0
    cdef const Level* level
    cdef size_t number
    cdef int at
    for at in range(n_levels(&state.rules)):
        level = &state.rules.levels[at]
        for number in range(level.restaurants.size()):
            result += log_seating(&level.restaurants[number], &totals.rule_sizes[at][number])
    for number in range(state.restaurants.size()):
        result += log_seating(&state.restaurants[number], &totals.dish_sizes[number])
    for number in range(state.stops.stop.size()):
        if totals.frontier[number]:
            result += totals.frontier[number] * state.stops.log_stop[number]
        if totals.internal[number]:
            result += totals.internal[number] * state.stops.log_internal[number]
    return add_log_base_of_words(&state.rules, add_log_base_of_rules(&state.rules, totals, result))


cdef double add_log_base_of_rules(const BackOff* b, const RefinedTotals* totals, double result) noexcept nogil:
    """Add the log probability of all draws of rules without words from P0."""
    cdef const Level* level
    cdef size_t cell
    cdef symbol_t rule
    if b.n_used == 0:
        for cell in range(b.rule_label.size()):
            if b.rule_class[cell] < 0 and totals.rules[cell]:
                result += totals.rules[cell] * log(b.rule_share[b.rule_label[cell]] * b.rule_base[cell])
        return result
    level = &b.levels[0]
    for cell in range(level.cells.size()):
        rule = level.rules.rule[cell]
        if b.rule_class[rule] < 0:
            result += level.cells[cell].n_tables * log(b.rule_share[b.rule_label[rule]])
    level = &b.levels[b.n_used - 1]
    for cell in range(level.cells.size()):
        rule = level.rules.rule[cell]
        if b.rule_class[rule] < 0:
            result += level.cells[cell].n_tables * log(b.rule_base[rule])
    return result


cdef double add_log_base_of_words(const BackOff* b, double result) noexcept nogil:
    """Add the same of words with classes, and of classes."""
    cdef const Level* level = &b.levels[word_level(b)]
    cdef size_t cell
    for cell in range(level.cells.size()):
        if level.cells[cell].n_customers:
            result += level.cells[cell].n_customers * log(b.lexical_share[b.rule_label[cell]])
            result += level.cells[cell].n_tables * log(b.class_word_base[b.rule_class[cell]])
    return add_log_class_shares(b, result)


# ---- parameters -----------------------------------------------------------------------------------------------

cdef int resample_stops(RefinedState* state, uint64_t iteration, const RefinedTotals* totals) except -1 nogil:
    """Resample the probability of stopping at every label, given the dishes of all tables."""
    cdef size_t label
    cdef Rng rng
    for label in range(state.stops.stop.size()):
        rng = rng_for(state.seed, iteration, RNG_REFINED_STOP, label)
        set_stop(&state.stops, label, rng.beta(1.0 + totals.frontier[label], 1.0 + totals.internal[label]))
    return 0


cdef int resample_hyper(RefinedState* state, uint64_t iteration, const RefinedTotals* totals) except -1 nogil:
    """Resample one pair (discount, strength) per refined symbol for fragments; below, as the back-off shares them."""
    cdef symbol_t label, symbol
    cdef vector[int64_t] one
    cdef Rng rng
    for label in range(state.rules.n_labels):
        rng = rng_for(state.seed, iteration, RNG_REFINED_HYPER, label)
        for symbol in range(state.rules.first_symbol[label], state.rules.first_symbol[label + 1]):
            fill(one, 1, symbol)
            resample_pair(&state.restaurants, &totals.dish_sizes, &one, &rng, False)
        resample_label(&state.rules, &totals.rule_sizes, label, &rng)
    rng = rng_for(state.seed, iteration, RNG_REFINED_HYPER, state.rules.n_labels)
    return resample_label_classes(&state.rules, &totals.rule_sizes, &rng)


# ---- whether counts agree -------------------------------------------------------------------------------------

# Per level of the back-off and cell: how many customers the tables above it order.
ctypedef vector[vector[int64_t]] cell_orders


cdef bint counts_agree(const RefinedState* state) except -1 nogil:
    """Whether every number of customers is what the level above it orders, and every total is that of its parts."""
    cdef cell_orders orders
    cdef int level
    orders.resize(n_levels(&state.rules))
    for level in range(n_levels(&state.rules)):
        fill(orders[level], state.rules.levels[level].cells.size(), 0)
    if not dishes_agree(state, &orders):
        return False
    for level in range(n_levels(&state.rules)):
        if not level_agrees(&state.rules, level, &orders):
            return False
    return True


cdef bint dishes_agree(const RefinedState* state, cell_orders* orders) except -1 nogil:
    """Whether the dishes have the customers of the sites; adds what their tables order to `orders`."""
    cdef vector[int64_t] n_sites, customers, tables
    cdef const Dish* dish
    cdef size_t number
    fill(n_sites, state.dishes.size(), 0)
    fill(customers, state.restaurants.size(), 0)
    fill(tables, state.restaurants.size(), 0)
    for number in range(state.dish.size()):
        if (state.dish[number] >= 0) != <bint>state.is_site[number]:
            return False
        if state.dish[number] >= 0:
            n_sites[state.dish[number]] += 1
    for number in range(state.dishes.size()):
        dish = &state.dishes[number]
        if dish.fragment < 0:
            continue
        if dish.tables.n_customers != n_sites[number] or not dish_agrees(state, dish, orders):
            return False
        customers[dish.symbol] += dish.tables.n_customers
        tables[dish.symbol] += dish.tables.n_tables
    return totals_agree(&state.restaurants, &customers, &tables)


cdef bint dish_agrees(const RefinedState* state, const Dish* dish, cell_orders* orders) except -1 nogil:
    """Whether the refined tables of a dish are those of its histogram; adds their rules to `orders`."""
    cdef RuleListing listing
    cdef Tables again
    cdef size_t table, item
    cdef int32_t size
    reserve_listing(state, &listing)
    if not has_internal_nodes(dish):
        list_rules(state, dish, NULL, &listing)
        return order_rule(&state.rules, &listing.rules[0], dish.tables.n_tables, orders)
    again.n_customers = again.n_tables = 0
    for table in range(dish.refined.size()):
        for size in range(dish.refined[table].size):
            grow_table(&again, size)
        list_rules(state, dish, dish.refined[table].refinement.data(), &listing)
        for item in range(listing.n_rules):
            if not order_rule(&state.rules, &listing.rules[item], 1, orders):
                return False
    if again.n_customers != dish.tables.n_customers or again.by_size.size() != dish.tables.by_size.size():
        return False
    for item in range(again.by_size.size()):
        if again.by_size[item].size != dish.tables.by_size[item].size:
            return False
        if again.by_size[item].n_tables != dish.tables.by_size[item].n_tables:
            return False
    return True


cdef bint order_rule(const BackOff* b, const RefinedRule* rule, int64_t n, cell_orders* orders) noexcept nogil:
    """Add customers of a rule at the first level; whether there is a cell for them."""
    cdef Address address
    find_address(b, rule, &address)
    if b.n_used:
        return order_cell(orders, 0, address.rules[0].cell, n)
    return order_word(b, rule.rule, symbol_of(b, rule), n, orders)


cdef bint order_cell(cell_orders* orders, int level, int32_t cell, int64_t n) noexcept nogil:
    if cell == NOT_SEEN:
        return n == 0
    orders[0][level][cell] += n
    return True


cdef bint order_word(const BackOff* b, symbol_t rule, symbol_t symbol, int64_t n, cell_orders* orders) noexcept nogil:
    """Add customers of a word with a class, and of its class; other rules need none."""
    if b.rule_class[rule] < 0:
        return True
    orders[0][word_level(b)][rule] += n
    orders[0][class_level(b)][class_cell(b, symbol, b.rule_class[rule])] += n
    return True


cdef bint level_agrees(const BackOff* b, int at, cell_orders* orders) except -1 nogil:
    """Whether a level has the customers that were ordered; adds what its tables order to `orders`."""
    cdef vector[int64_t] customers, tables
    cdef const Level* level = &b.levels[at]
    cdef const Tables* here
    cdef size_t cell
    fill(customers, level.restaurants.size(), 0)
    fill(tables, level.restaurants.size(), 0)
    for cell in range(level.cells.size()):
        here = &level.cells[cell]
        if here.n_customers != orders[0][at][cell]:
            return False
        if here.n_customers == 0:
            continue
        customers[level.restaurant_of_cell[cell]] += here.n_customers
        tables[level.restaurant_of_cell[cell]] += here.n_tables
        if not order_below(b, at, <int32_t>cell, here.n_tables, orders):
            return False
    return totals_agree(&level.restaurants, &customers, &tables)


cdef bint order_below(const BackOff* b, int at, int32_t cell, int64_t n, cell_orders* orders) noexcept nogil:
    """Add what the tables of a cell order at the next level."""
    cdef const Level* level = &b.levels[at]
    cdef symbol_t restaurant = level.restaurant_of_cell[cell], label
    cdef RefinedRule rule
    cdef Place place
    cdef int number
    if at == class_level(b):
        place = label_class_place(b, 0, b.symbol_label[restaurant], cell % n_classes(b))
        orders[0][label_class_level(b)][place.cell] += n
    elif is_label_class_level(b, at) and at + 1 < word_level(b):
        number = at - label_class_level(b)
        place = label_class_place(b, number + 1, restaurant, class_of_dish(b, number, cell % b.n_class_dishes[number]))
        orders[0][at + 1][place.cell] += n
    if at >= b.n_rule_levels:
        return True
    rule = rule_of_cell(level, cell)
    if b.rule_class[rule.rule] >= 0:
        # The restaurants of the first level, the only one that words have, are the symbols.
        return order_word(b, rule.rule, restaurant, n, orders)
    if at + 1 >= b.n_used:
        return True
    label = b.rule_label[rule.rule]
    rule.parent = level.backs_off_to[restaurant] - b.levels[at + 1].first_context[label]
    return order_cell(orders, at + 1, find_cell(b, at + 1, &rule), n)


cdef bint totals_agree(
    const vector[Restaurant]* restaurants, const vector[int64_t]* customers, const vector[int64_t]* tables
) noexcept nogil:
    cdef size_t number
    for number in range(restaurants.size()):
        if restaurants[0][number].n_customers != customers[0][number]:
            return False
        if restaurants[0][number].n_tables != tables[0][number]:
            return False
    return True
