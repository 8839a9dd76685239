"""Seating the customers of refined sites, with the predictive probability of their fragments, and rolling back.

With `n_e` customers of a fragment `e` at `t_e` tables, of `n` at `t` in the restaurant of its root symbol,

    p(e | x_k) = [n_e - d t_e + (theta + d t) P(e | x_k)] / (theta + n)

The base probability of a fragment with internal nodes is computed by `_refined_base`. A fragment of a single rule has
no refinement to sum over: its base probability is that of one rule of the back-off.
"""

from libc.math cimport exp, log
from libc.stdint cimport int32_t, int64_t, uint64_t

from tsgkit._backoff cimport NOT_SEEN, Address, RefinedRule, probability_at, unseat_at
from tsgkit._random cimport RNG_REFINED_START, Rng, rng_for
from tsgkit._refined_base cimport draw_refinement, log_base_of
from tsgkit._refined_rules cimport (
    find_address,
    make_address,
    probability,
    seat_rule_at,
    sort_cells,
    weigh,
    weigh_cell,
)
from tsgkit._refined_state cimport (
    DISHES,
    Derivation,
    Dish,
    FragmentValues,
    RefinedState,
    RefinedTable,
    cache_parameters,
    find_all_dishes,
    forget_seatings,
    has_internal_nodes,
    is_site_at,
    list_rules,
    old_weight_of,
    present,
    release_dish,
    sort_state,
    symbol_at,
    tracked_at,
    weigh_refined,
    weigh_single,
)
from tsgkit._refined_tracking cimport track_seated, unseat_rule_below
from tsgkit._restaurant cimport (
    LogProduct,
    Restaurant,
    Seating,
    denominator,
    draw_customer,
    draw_table,
    grow,
    log_of,
    log_product,
    multiply,
    new_weight,
    note,
    shrink,
    undo,
)
from tsgkit._trees cimport n_nodes, n_trees
from tsgkit._types cimport index_t, symbol_t


# ---- fragments of a single rule ---------------------------------------------------------------------------------

cdef inline double weight_of_single(
    const RefinedState* state, const RefinedRule* rule, double rule_probability, const Restaurant* restaurant
) noexcept nogil:
    """The weight of a new table that serves a single rule."""
    return new_weight(restaurant) * state.stops_of_rule[rule.rule] * rule_probability


cdef int seat_single(RefinedState* state, int32_t node, Rng* rng, LogProduct* product) except -1 nogil:
    cdef Derivation derivation = present(state)
    cdef Dish* dish = &state.dishes[state.dish[node]]
    cdef Restaurant* restaurant = &state.restaurants[dish.symbol]
    cdef RefinedRule rule = rule_at(state, &derivation, node)
    cdef double old_part = old_weight_of(restaurant, dish), new_part
    cdef int32_t size = 0
    cdef Address address
    find_address_of(state, &rule, dish, &address)
    new_part = weight_of_single(state, &rule, probability_at(&state.rules, &address), restaurant)
    multiply(product, (old_part + new_part) / denominator(restaurant))
    if dish.tables.n_customers and rng.uniform() * (old_part + new_part) < old_part:
        size = draw_table(&dish.tables, restaurant.discount, rng)
    grow(restaurant, &dish.tables, size)
    weigh_single(state, dish)
    note(&state.seatings, restaurant, DISHES, state.dish[node], size, -1, True)
    if size:
        if state.tracked.is_active:
            track_seated(state, state.seatings.entries.size() - 1, rng)
        return 0
    if dish.cell == NOT_SEEN:
        make_address(&state.rules, &rule, &address)
        if state.rules.n_used:
            dish.cell = address.rules[0].cell
    seat_tracked_rule(state, &address, rng)
    return 0


cdef double seat_tracked_rule(RefinedState* state, const Address* address, Rng* rng) except -1.0 nogil:
    """Seat the customer of a rule, some perhaps at tracked tables; its probability before."""
    cdef size_t mark = state.seatings.entries.size()
    cdef double result = seat_rule_at(&state.rules, address, rng, &state.seatings)
    if state.tracked.is_active:
        track_seated(state, mark, rng)
    return result


cdef double unseat_tracked_rule(
    RefinedState* state, const Address* address, const int32_t* below, Rng* rng
) except -1.0 nogil:
    """Unseat the customer of a rule, from these tables or, if that is NULL, any; its probability after that."""
    if below is not NULL:
        unseat_rule_below(state, address, below)
    else:
        unseat_at(&state.rules, address, rng, &state.seatings)
    weigh(&state.rules, address)
    return probability_at(&state.rules, address)


cdef int unseat_single(
    RefinedState* state, int32_t node, Rng* rng, int32_t table, LogProduct* product
) except -1 nogil:
    cdef Derivation derivation = present(state)
    cdef Dish* dish = &state.dishes[state.dish[node]]
    cdef Restaurant* restaurant = &state.restaurants[dish.symbol]
    cdef RefinedRule rule = rule_at(state, &derivation, node)
    cdef bint is_tracked = table >= 0
    cdef const int32_t* below = NULL
    cdef int32_t size
    cdef double rule_probability
    cdef Address address
    if is_tracked:
        size = tracked_at(state, table).size
        tracked_at(state, table).size -= 1
    else:
        size = draw_customer(&dish.tables, rng)
    shrink(restaurant, &dish.tables, size)
    weigh_single(state, dish)
    note(&state.seatings, restaurant, DISHES, state.dish[node], size, table, False)
    if size > 1 and product is NULL:
        return 0
    find_address_of(state, &rule, dish, &address)
    if size == 1:
        if is_tracked:
            below = tracked_at(state, table).below
        rule_probability = unseat_tracked_rule(state, &address, below, rng)
    else:
        rule_probability = probability_at(&state.rules, &address)
    if product is NULL:
        return 0
    rule_probability = weight_of_single(state, &rule, rule_probability, restaurant)
    multiply(product, (old_weight_of(restaurant, dish) + rule_probability) / denominator(restaurant))
    return 0


# ---- any fragment -------------------------------------------------------------------------------------------------

cdef inline double log_predictive(
    const Restaurant* restaurant, double old_part, double log_base
) noexcept nogil:
    cdef double from_base = log(new_weight(restaurant)) + log_base
    if old_part == 0.0:
        return from_base - log(denominator(restaurant))
    return log((old_part + exp(from_base)) / denominator(restaurant))


cdef inline bint is_single_at(const RefinedState* state, const Derivation* derivation, int32_t node) noexcept nogil:
    """Whether the fragment at a site is a single rule."""
    cdef symbol_t left = state.trees.left[node], right = state.trees.right[node]
    return (left < 0 or is_site_at(derivation, left)) and (right < 0 or is_site_at(derivation, right))


cdef void multiply_predictive(
    const RefinedState* state, const Derivation* derivation, int32_t node, int32_t dish, FragmentValues* at_work,
    LogProduct* product,
) noexcept nogil:
    cdef const Restaurant* restaurant = &state.restaurants[symbol_at(derivation, node)]
    cdef const Dish* stored = NULL
    cdef double old_part = 0.0, total
    cdef RefinedRule rule
    cdef Address address
    if dish >= 0:
        stored = &state.dishes[dish]
        old_part = old_weight_of(restaurant, stored)
    if not is_single_at(state, derivation, node):
        product.log += log_predictive(restaurant, old_part, log_base_of(state, derivation, node, at_work, &total))
        return
    rule = rule_at(state, derivation, node)
    find_address_of(state, &rule, stored, &address)
    multiply(
        product,
        (old_part + weight_of_single(state, &rule, probability_at(&state.rules, &address), restaurant))
        / denominator(restaurant),
    )


cdef double log_predictive_at(RefinedState* state, int32_t node) noexcept nogil:
    cdef LogProduct product = log_product()
    cdef Derivation derivation = present(state)
    multiply_predictive(state, &derivation, node, state.dish[node], &state.at_work, &product)
    return log_of(&product)


# ---- seating --------------------------------------------------------------------------------------------------

cdef int seat_site(RefinedState* state, int32_t node, Rng* rng, bint annotate, LogProduct* product) except -1 nogil:
    cdef Description found
    if not has_internal_nodes(&state.dishes[state.dish[node]]):
        return seat_single(state, node, rng, product)
    describe_refined(state, node, &found)
    return seat_refined(state, node, &found, rng, annotate, product)


cdef double describe_refined(RefinedState* state, int32_t node, Description* found) noexcept nogil:
    cdef const Dish* dish = &state.dishes[state.dish[node]]
    cdef const Restaurant* restaurant = &state.restaurants[dish.symbol]
    cdef Derivation derivation = present(state)
    found.log_base = log_base_of(state, &derivation, node, &state.at_work, &found.total)
    return log_predictive(restaurant, old_weight_of(restaurant, dish), found.log_base)


cdef int seat_refined(
    RefinedState* state, int32_t node, const Description* found, Rng* rng, bint annotate, LogProduct* product
) except -1 nogil:
    cdef Dish* dish = &state.dishes[state.dish[node]]
    cdef Restaurant* restaurant = &state.restaurants[dish.symbol]
    cdef double old_part = old_weight_of(restaurant, dish), new_part = new_weight(restaurant) * exp(found.log_base)
    cdef int32_t size = 0, table
    product.log += log_predictive(restaurant, old_part, found.log_base)
    if dish.tables.n_customers and rng.uniform() * (old_part + new_part) < old_part:
        table = draw_refined_table(dish, old_part, restaurant.discount, rng)
        size = dish.refined[table].size
    else:
        table = <int32_t>dish.refined.size()
        dish.refined.resize(table + 1)
        draw_refinement(state, &dish.refined[table].refinement, found.total, rng)
    dish.refined[table].size = size + 1
    grow(restaurant, &dish.tables, size)
    weigh_refined(state, dish)
    note(&state.seatings, restaurant, DISHES, state.dish[node], size, table, True)
    if annotate:
        take_symbols(state, &dish.refined[table])
    return 0 if size else seat_rules(state, dish, table, rng, product)


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
    for item in range(1, state.at_work.n_nodes):
        label = state.trees.label[state.at_work.nodes[item]]
        state.symbol[state.at_work.nodes[item]] = state.rules.first_symbol[label] + table.refinement[item - 1]


cdef int seat_rules(
    RefinedState* state, const Dish* dish, int32_t table, Rng* rng, LogProduct* product
) except -1 nogil:
    """Seat the rules of a new table, one after the other: the probability of that over all at once."""
    cdef Address address
    cdef size_t item
    list_rules(state, dish, dish.refined[table].refinement.data(), &state.listing)
    for item in range(state.listing.n_rules):
        multiply(product, 1.0 / probability(&state.rules, &state.listing.rules[item]))
    for item in range(state.listing.n_rules):
        make_address(&state.rules, &state.listing.rules[item], &address)
        multiply(product, seat_tracked_rule(state, &address, rng))
    return 0


cdef int unseat_site(RefinedState* state, int32_t node, Rng* rng, int64_t table, LogProduct* product) except -1 nogil:
    cdef Derivation derivation
    if not has_internal_nodes(&state.dishes[state.dish[node]]):
        return unseat_single(state, node, rng, <int32_t>table, product)
    unseat_refined(state, node, rng, table, product)
    if product is NULL:
        return 0
    derivation = present(state)
    multiply_predictive(state, &derivation, node, state.dish[node], &state.at_work, product)
    return 0


cdef int unseat_refined(
    RefinedState* state, int32_t node, Rng* rng, int64_t table, LogProduct* product
) except -1 nogil:
    cdef Dish* dish = &state.dishes[state.dish[node]]
    cdef Restaurant* restaurant = &state.restaurants[dish.symbol]
    cdef int32_t size, position
    position = draw_refined_customer(dish, rng) if table == ANY_TABLE else position_of(dish, table)
    size = dish.refined[position].size
    dish.refined[position].size -= 1
    shrink(restaurant, &dish.tables, size)
    weigh_refined(state, dish)
    note(&state.seatings, restaurant, DISHES, state.dish[node], size, position, False)
    if size == 1:
        unseat_rules(state, dish, position, rng, table != ANY_TABLE, product)
    return 0


cdef int32_t position_of(const Dish* dish, int64_t identity) noexcept nogil:
    """Where the table with this identity is."""
    cdef int32_t position = 0
    while dish.refined[position].identity != identity:
        position += 1
    return position


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


cdef int unseat_rules(
    RefinedState* state, Dish* dish, int32_t position, Rng* rng, bint is_tracked, LogProduct* product
) except -1 nogil:
    """Remove a table, which is empty, and unseat its rules: the probability of one after the other over all at once."""
    cdef const int32_t* below = NULL
    cdef RefinedTable* table
    cdef Address address
    cdef size_t item
    cdef int part
    list_rules(state, dish, dish.refined[position].refinement.data(), &state.listing)
    state.removed.resize(state.removed.size() + 1)
    swap_tables(&dish.refined[position], &dish.refined.back())
    swap_tables(&dish.refined.back(), &state.removed.back())
    dish.refined.pop_back()
    table = &state.removed.back()
    part = state.parts.of_label[state.symbol_label[dish.symbol]]
    item = state.listing.n_rules
    while item > 0:
        item -= 1
        find_address(&state.rules, &state.listing.rules[item], &address)
        if is_tracked:
            below = state.tracked.rules[part][table.frozen_rules + item].below
        multiply_unless_null(product, unseat_tracked_rule(state, &address, below, rng))
    for item in range(state.listing.n_rules):
        multiply_unless_null(product, 1.0 / probability(&state.rules, &state.listing.rules[item]))
    return 0


cdef inline void multiply_unless_null(LogProduct* product, double factor) noexcept nogil:
    if product is not NULL:
        multiply(product, factor)


cdef void swap_tables(RefinedTable* one, RefinedTable* other) noexcept nogil:
    if one is not other:
        one.size, other.size = other.size, one.size
        one.identity, other.identity = other.identity, one.identity
        one.refinement.swap(other.refinement)
        one.frozen_rules, other.frozen_rules = other.frozen_rules, one.frozen_rules


# ---- all trees ------------------------------------------------------------------------------------------------

cdef int seat_all(RefinedState* state) except -1 nogil:
    """Seat all trees as sites and symbols say."""
    cdef LogProduct product = log_product()
    cdef index_t tree, node
    cdef Rng rng
    find_all_dishes(state)
    cache_parameters(state)
    for tree in range(n_trees(&state.trees)):
        rng = rng_for(state.seed, 0, RNG_REFINED_START, tree)
        for node in range(state.trees.tree_start[tree], state.trees.tree_start[tree + 1]):
            if state.is_site[node]:
                seat_site(state, <int32_t>node, &rng, False, &product)
        forget_seatings(state)
    return sort_state(state)


cdef int unseat_all(RefinedState* state) except -1 nogil:
    """Unseat all trees; every restaurant must be empty then."""
    cdef index_t node = n_nodes(&state.trees)
    cdef Rng rng = rng_for(state.seed, 0, RNG_REFINED_START, n_trees(&state.trees))
    while node > 0:
        node -= 1
        if state.is_site[node]:
            unseat_site(state, <int32_t>node, &rng, ANY_TABLE, NULL)
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
            undo_tracked(state, entry)
            if entry.array < state.rules.n_rule_levels:
                weigh_cell(&state.rules.levels[entry.array], entry.dish)
        state.seatings.entries.pop_back()
    forget_seatings(state)
    return 0


cdef inline void undo_tracked(RefinedState* state, const Seating* entry) noexcept nogil:
    if entry.table >= 0:
        tracked_at(state, entry.table).size += -1 if entry.is_seated else 1


cdef int undo_dish(RefinedState* state, const Seating* entry) except -1 nogil:
    cdef Dish* dish = &state.dishes[entry.dish]
    undo(entry, &dish.tables)
    if not has_internal_nodes(dish):
        undo_tracked(state, entry)
        weigh_single(state, dish)
        return 0
    weigh_refined(state, dish)
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
