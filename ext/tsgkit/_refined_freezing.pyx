"""Unseating and seating the trees of a batch, part by part of the labels; see ``_refined_freezing.pxd``.

Each tree has a stream of random numbers for every part, and the first tree of a batch one for the rules of other
labels: the result does not depend on which thread takes which part.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

from tsgkit._backoff cimport (
    Address,
    BackOff,
    Place,
    class_level,
    label_class_level,
    label_class_place,
    restaurant_at,
    word_level,
)
from tsgkit._label_parts cimport N_PARTS
from tsgkit._prefetch cimport prefetch
from tsgkit._random cimport RNG_REFINED_FREEZE, RNG_REFINED_FREEZE_RULES, Rng, rng_for
from tsgkit._refined_rules cimport find_address, weigh_cell
from tsgkit._refined_seating cimport draw_refined_customer, find_address_of, rule_at
from tsgkit._refined_state cimport (
    DISHES,
    Derivation,
    Dish,
    FrozenRule,
    RefinedState,
    RefinedTable,
    TrackedTable,
    has_internal_nodes,
    list_rules,
    present,
    reserve_listing,
    tracked_at,
    weigh_refined,
    weigh_single,
)
from tsgkit._refined_tracking cimport first_tracked, reserve_tracked
from tsgkit._restaurant cimport Restaurant, Tables, n_tables_of_size, size_at_customer
from tsgkit._trees cimport n_nodes_of
from tsgkit._types cimport index_t
from tsgkit._worker_pool cimport WorkerPool


cdef int freeze_trees(
    FrozenBatch* batch, RefinedState* state, const int64_t* trees, int size, uint64_t iteration, int n_threads,
    WorkerPool* pool,
) except -1 nogil:
    cdef index_t n_nodes = 0
    cdef size_t n_rules = 0
    cdef int item, part
    batch.state, batch.trees, batch.size, batch.iteration = state, trees, size, iteration
    batch.first.resize(size)
    for item in range(size):
        batch.first[item] = n_nodes
        n_nodes += n_nodes_of(&state.trees, trees[item])
    batch.table.resize(n_nodes)
    for part in range(N_PARTS):
        reserve_listing(state, &batch.parts[part].listing)
    reserve_tracked(state)
    state.tracked.is_active = True
    pool.run(n_threads, N_PARTS, freeze_part, batch)
    for part in range(N_PARTS):
        n_rules += state.tracked.rules[part].size()
    if n_rules:
        pool.run(n_threads, N_PARTS, freeze_rules, batch)
    return 0


cdef int restore_trees(FrozenBatch* batch, int n_threads, WorkerPool* pool) except -1 nogil:
    pool.run(n_threads, N_PARTS, restore_part, batch)
    return 0


# ---- on worker threads ----------------------------------------------------------------------------------------------

# What allocates lets std::bad_alloc pass; see `tsgkit._worker_pool`.

cdef void freeze_part(void* context, int part, int thread) noexcept nogil:
    """Unseat the sites of a part, from the last node of every tree to its root."""
    cdef FrozenBatch* batch = <FrozenBatch*>context
    cdef RefinedState* state = batch.state
    cdef const int32_t* start
    cdef int32_t position, node
    cdef int64_t* left
    cdef int item
    cdef Rng rng
    batch.parts[part].customers.clear()
    for item in range(batch.size):
        prefetch_dishes(state, batch.trees[item], part)
    for item in range(batch.size):
        start = &state.parts.start[batch.trees[item] * (N_PARTS + 1)]
        if start[part] == start[part + 1]:
            continue
        rng = rng_for(state.seed, batch.iteration, RNG_REFINED_FREEZE, batch.trees[item] * N_PARTS + part)
        for position in range(start[part + 1] - 1, start[part] - 1, -1):
            node = state.parts.nodes[position]
            if not state.is_site[node]:
                continue
            left = &batch.table[batch.first[item] + node - state.trees.tree_start[batch.trees[item]]]
            if has_internal_nodes(&state.dishes[state.dish[node]]):
                left[0] = freeze_refined(state, &batch.parts[part], part, node, &rng)
            else:
                left[0] = freeze_single(state, &batch.parts[part], part, node, &rng)


cdef inline void prefetch_dishes(const RefinedState* state, index_t tree, int part) noexcept nogil:
    """Have the dishes of a tree brought to the cache, all at once: they lie anywhere."""
    cdef const int32_t* start = &state.parts.start[tree * (N_PARTS + 1)]
    cdef int32_t position, node
    for position in range(start[part], start[part + 1]):
        node = state.parts.nodes[position]
        if state.is_site[node]:
            prefetch(&state.dishes[state.dish[node]])
            prefetch(&state.dishes[state.dish[node]].tables.by_size)


cdef int32_t freeze_single(RefinedState* state, FrozenPart* part, int number, int32_t node, Rng* rng) noexcept nogil:
    """Unseat the customer of a single rule; the table."""
    cdef Dish* dish = &state.dishes[state.dish[node]]
    cdef Derivation derivation = present(state)
    cdef int32_t table
    cdef int32_t below[2]
    cdef bint was_last
    cdef Address address
    table = leave_table(
        state, part, number, DISHES, state.dish[node], &state.restaurants[dish.symbol], &dish.tables, rng, &was_last
    )
    weigh_single(state, dish)
    if was_last:
        rule = rule_at(state, &derivation, node)
        find_address_of(state, &rule, dish, &address)
        freeze_rule(state, part, number, &address, below, rng)
        tracked_at(state, table).below[0], tracked_at(state, table).below[1] = below[0], below[1]
    return table


cdef int64_t freeze_refined(RefinedState* state, FrozenPart* part, int number, int32_t node, Rng* rng) noexcept nogil:
    """Unseat the customer of a fragment with internal nodes; the identity of the table."""
    cdef Dish* dish = &state.dishes[state.dish[node]]
    cdef int32_t position = draw_refined_customer(dish, rng)
    cdef RefinedTable* table = &dish.refined[position]
    cdef FrozenRule rule
    cdef size_t item
    if table.identity == 0:
        state.tracked.n_identities[number] += 1
        table.identity = state.tracked.n_identities[number]
    table.size -= 1
    remove_customer(
        part, DISHES, state.dish[node], &state.restaurants[dish.symbol], &dish.tables, position, table.size == 0
    )
    weigh_refined(state, dish)
    if table.size == 0:
        table.frozen_rules = <int32_t>state.tracked.rules[number].size()
        list_rules(state, dish, table.refinement.data(), &part.listing)
        for item in range(part.listing.n_rules):
            rule.rule = part.listing.rules[item]
            rule.part = state.parts.of_label[state.trees.rule_label[rule.rule.rule]]
            rule.below[0] = rule.below[1] = -1
            state.tracked.rules[number].push_back(rule)
    return table.identity


cdef void freeze_rules(void* context, int part, int thread) noexcept nogil:
    """Unseat the rules of a part that tables of any part have left."""
    cdef FrozenBatch* batch = <FrozenBatch*>context
    cdef RefinedState* state = batch.state
    cdef Rng rng = rng_for(state.seed, batch.iteration, RNG_REFINED_FREEZE_RULES, batch.trees[0] * N_PARTS + part)
    cdef FrozenRule* rule
    cdef Address address
    cdef size_t item
    cdef int other
    for other in range(N_PARTS):
        for item in range(state.tracked.rules[other].size()):
            rule = &state.tracked.rules[other][item]
            if rule.part == part:
                find_address(&state.rules, &rule.rule, &address)
                freeze_rule(state, &batch.parts[part], part, &address, rule.below, &rng)


cdef void freeze_rule(
    RefinedState* state, FrozenPart* part, int number, const Address* address, int32_t* below, Rng* rng
) noexcept nogil:
    """Unseat the customer of a rule, as `tsgkit._backoff.unseat_at`, and note which tables its customers left."""
    cdef BackOff* b = &state.rules
    cdef int level = 0, n_used = min(b.n_used, 1) if address.word_class >= 0 else b.n_used
    cdef int32_t table = -1, above, of_rule
    cdef bint was_last = True
    cdef Place place
    below[0] = below[1] = -1
    while level < n_used and was_last:
        above = table
        table = leave_cell(state, part, number, level, &address.rules[level], rng, &was_last)
        weigh_cell(&b.levels[level], address.rules[level].cell)
        note_below(state, above, 0, table, below)
        level += 1
    if address.word_class < 0 or not was_last:
        return
    of_rule = table
    table = leave_cell(state, part, number, class_level(b), &address.of_class, rng, &was_last)
    note_below(state, of_rule, 0, table, below)
    level = 0
    while was_last and level < b.n_class_levels:
        above = table
        place = label_class_place(b, level, address.label, address.word_class)
        table = leave_cell(state, part, number, label_class_level(b) + level, &place, rng, &was_last)
        note_below(state, above, 0, table, below)
        level += 1
    table = leave_cell(state, part, number, word_level(b), &address.of_word, rng, &was_last)
    note_below(state, of_rule, 1, table, below)


cdef inline void note_below(
    RefinedState* state, int32_t above, int which, int32_t table, int32_t* below
) noexcept nogil:
    """Where the customer of a table sat, or that of the rule itself if there is no table above."""
    if above < 0:
        below[which] = table
    else:
        tracked_at(state, above).below[which] = table


cdef inline int32_t leave_cell(
    RefinedState* state, FrozenPart* part, int number, int level, const Place* place, Rng* rng, bint* was_last
) noexcept nogil:
    return leave_table(
        state, part, number, level, place.cell, restaurant_at(&state.rules, level, place),
        &state.rules.levels[level].cells[place.cell], rng, was_last,
    )


cdef inline int32_t leave_table(
    RefinedState* state, FrozenPart* part, int number, int32_t array, int32_t dish, Restaurant* restaurant,
    Tables* tables, Rng* rng, bint* was_last,
) noexcept nogil:
    """Unseat a customer of a dish, any of those who are still there; the number of the table."""
    cdef int32_t table = draw_table_left(state, number, array, dish, tables, rng)
    tracked_at(state, table).size -= 1
    was_last[0] = tracked_at(state, table).size == 0
    remove_customer(part, array, dish, restaurant, tables, table, was_last[0])
    return table


cdef inline void remove_customer(
    FrozenPart* part, int32_t array, int32_t dish, Restaurant* restaurant, Tables* tables, int32_t table,
    bint was_last,
) noexcept nogil:
    cdef FrozenCustomer customer
    customer.restaurant, customer.tables, customer.array, customer.dish = restaurant, tables, array, dish
    customer.table, customer.was_last = table, was_last
    part.customers.push_back(customer)
    tables.n_customers -= 1
    restaurant.n_customers -= 1
    if was_last:
        tables.n_tables -= 1
        restaurant.n_tables -= 1


cdef int32_t draw_table_left(
    RefinedState* state, int part, int32_t array, int32_t dish, const Tables* tables, Rng* rng
) noexcept nogil:
    """The table of a customer drawn uniformly from those who are still there; it is tracked from now on.

    The histogram has all tables as they were: who has left is drawn again.
    """
    cdef int32_t first = first_tracked(state, array, dish), number = first, n_left = 0, size
    cdef const TrackedTable* table
    cdef uint64_t target
    while number >= 0:
        n_left += tracked_at(state, number).size_before - tracked_at(state, number).size
        number = tracked_at(state, number).next
    while True:
        size = size_at_customer(tables, <int64_t>rng.below(<uint64_t>(tables.n_customers + n_left)))
        if first < 0:
            break
        target = rng.below(<uint64_t>n_tables_of_size(tables, size))
        number = first
        while number >= 0:
            table = tracked_at(state, number)
            if table.size_before == size:
                if target == 0:
                    break
                target -= 1
            number = table.next
        if number < 0:
            break
        if <int32_t>rng.below(<uint64_t>size) < table.size:
            return number
    return track(state, part, array, dish, size)


cdef int32_t track(RefinedState* state, int part, int32_t array, int32_t dish, int32_t size) noexcept nogil:
    """Track a table of this size."""
    cdef int32_t number = <int32_t>state.tracked.tables[part].size() * N_PARTS + part
    cdef TrackedTable table
    table.array, table.dish, table.size, table.size_before = array, dish, size, size
    table.next = first_tracked(state, array, dish)
    table.below[0] = table.below[1] = -1
    state.tracked.tables[part].push_back(table)
    state.tracked.first[array + 1][dish] = number
    return number


cdef void restore_part(void* context, int part, int thread) noexcept nogil:
    """Seat the customers of a part where they sat."""
    cdef FrozenBatch* batch = <FrozenBatch*>context
    cdef RefinedState* state = batch.state
    cdef const FrozenCustomer* customer
    cdef Dish* dish
    cdef size_t item = batch.parts[part].customers.size()
    while item > 0:
        item -= 1
        customer = &batch.parts[part].customers[item]
        customer.tables.n_customers += 1
        customer.restaurant.n_customers += 1
        if customer.was_last:
            customer.tables.n_tables += 1
            customer.restaurant.n_tables += 1
        if customer.array != DISHES:
            tracked_at(state, customer.table).size += 1
            if customer.array < state.rules.n_rule_levels:
                weigh_cell(&state.rules.levels[customer.array], customer.dish)
            continue
        dish = &state.dishes[customer.dish]
        if has_internal_nodes(dish):
            dish.refined[customer.table].size += 1
            weigh_refined(state, dish)
        else:
            tracked_at(state, customer.table).size += 1
            weigh_single(state, dish)
