"""Blocked Metropolis-Hastings over whole refined trees: sites, or sites and subcategories together.

On a known tree, with the counts frozen, for every node v and its subcategories k:

    B_k(v) = sum_{l,m} H(x_k -> y_l z_m)  prod_{children y_l} [ s I_l(y) + (1 - s) B_l(y) ]
    S_g(v) = prod_{children y}  I_l(y) where g has a frontier y_l,  S_{g_y}(y) where y is internal
    I_k(v) = sum_{cached e rooted in x_k that match at v} w_e S_e(v)  +  b_{x_k} B_k(v)

where, if subcategories are given, I_l(v) is zero for all l but k_v. The values of a node are divided by the largest
I(v), so that deep trees do not underflow.

A proposal unseats a tree, draws from the frozen counts, seats the sites again one after the other, and is accepted or
rejected by the true probabilities: also where nothing but seats has changed. What is rejected is rolled back.
"""

from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._backoff cimport RefinedRule
from tsgkit._fragments cimport (
    NO_CHILD,
    Fragment,
    find_fragment,
    frontier_code,
    frontier_symbol,
    is_frontier,
)
from tsgkit._random cimport RNG_REFINED_TREE, RNG_REFINED_TREE_ORDER, Rng, random_order, rng_for
from tsgkit._refined_rules cimport draw_children, n_subcategories, sums
from tsgkit._refined_seating cimport log_predictive_at, rollback_state, seat_site, unseat_site
from tsgkit._refined_state cimport (
    Dish,
    RefinedState,
    SweepCounts,
    find_dish,
    find_dish_at,
    forget_seatings,
    release_dish,
    sort_state,
    subcategory_of,
)
from tsgkit._restaurant cimport Restaurant, denominator, new_weight, old_weight
from tsgkit._trees cimport n_trees
from tsgkit._types cimport index_t, symbol_t

# How a node that is still to be drawn is derived, where it is not by the part of a fragment.
cdef enum:
    AT_SITE = -1
    BY_BASE = -2


cdef struct Range:
    int32_t begin
    int32_t end


cdef struct Waiting:
    int32_t node
    int32_t derived_by     # the number of a fragment, or one of the above
    symbol_t subcategory


cdef cppclass Scratch:
    # The inside pass: I, B and s I + (1 - s) B by node and subcategory; fragments that match at each node with their S.
    vector[double] inside
    vector[double] base
    vector[double] mixed
    vector[Range] matches         # per node
    vector[int32_t] match
    vector[double] value
    # When a fragment was last found at a right child, and its S there.
    vector[int64_t] stamp
    vector[double] stamp_value
    int64_t now
    # The proposal, and the derivation before it.
    vector[uint8_t] site
    vector[symbol_t] symbol
    vector[int32_t] dish
    vector[int32_t] new_dish
    vector[Waiting] waiting


cdef int blocked_sweep(RefinedState* state, uint64_t iteration, bint joint, SweepCounts* counts) except -1 nogil:
    """One proposal for every tree, in a random order."""
    cdef Scratch scratch
    cdef Rng rng
    cdef int64_t tree
    cdef size_t item
    cdef vector[int64_t] order = random_order(
        n_trees(&state.trees), rng_for(state.seed, iteration, RNG_REFINED_TREE_ORDER, 0)
    )
    scratch.now = 0
    for item in range(order.size()):
        tree = order[item]
        rng = rng_for(state.seed, iteration, RNG_REFINED_TREE, tree)
        resample_tree(state, &scratch, tree, joint, &rng, counts)
    return sort_state(state)


cdef int resample_tree(
    RefinedState* state, Scratch* scratch, index_t tree, bint joint, Rng* rng, SweepCounts* counts
) except -1 nogil:
    cdef index_t first = state.trees.tree_start[tree], end = state.trees.tree_start[tree + 1], node = end
    cdef double log_ratio = 0.0
    forget_seatings(state)
    while node > first:
        node -= 1
        if state.is_site[node]:
            log_ratio -= unseat_site(state, <int32_t>node, rng)
    fill_inside(state, scratch, tree, joint)
    draw_derivation(state, scratch, tree, rng)
    log_ratio += log_proposals(state, scratch, tree)
    for node in range(first, end):
        if state.is_site[node]:
            log_ratio += seat_site(state, <int32_t>node, rng, joint)
    counts.n_proposed += 1
    if log_ratio >= 0.0 or rng.uniform() < exp(log_ratio):
        counts.n_accepted += 1
        counts.n_changed += scratch.dish != scratch.new_dish
        forget_seatings(state)
    else:
        rollback_state(state)
        swap_derivation(state, scratch, first)
    for node in range(end - first):
        if scratch.dish[node] >= 0:
            release_dish(state, scratch.dish[node])
    return 0


cdef int redraw_trees(RefinedState* state, uint64_t iteration, const vector[index_t]* trees) except -1 nogil:
    cdef Scratch scratch
    cdef Rng rng
    cdef index_t node
    cdef size_t item
    for item in range(trees.size()):
        rng = rng_for(state.seed, iteration, RNG_REFINED_TREE_ORDER, trees[0][item])
        node = state.trees.tree_start[trees[0][item] + 1]
        while node > state.trees.tree_start[trees[0][item]]:
            node -= 1
            if state.is_site[node]:
                unseat_site(state, <int32_t>node, &rng)
                release_dish(state, state.dish[node])
                state.dish[node] = -1
                forget_seatings(state)
    scratch.now = 0
    for item in range(trees.size()):
        rng = rng_for(state.seed, iteration, RNG_REFINED_TREE, trees[0][item])
        redraw_tree(state, &scratch, trees[0][item], &rng)
    return sort_state(state)


cdef int redraw_tree(RefinedState* state, Scratch* scratch, index_t tree, Rng* rng) except -1 nogil:
    """Draw sites and symbols of a tree that is not seated from the frozen grammar, and seat it."""
    cdef index_t first = state.trees.tree_start[tree], node = state.trees.tree_start[tree + 1]
    fill_inside(state, scratch, tree, True)
    draw_derivation(state, scratch, tree, rng)
    scratch.dish.assign(node - first, -1)
    swap_derivation(state, scratch, first)
    while node > first:
        node -= 1
        find_dish_at(state, <int32_t>node)
    for node in range(first, state.trees.tree_start[tree + 1]):
        if state.is_site[node]:
            seat_site(state, <int32_t>node, rng, True)
    forget_seatings(state)
    return 0


cdef double log_proposals(RefinedState* state, Scratch* scratch, index_t tree) except? -1 nogil:
    """Make the drawn derivation that of the tree; log q(before) - log q(after), what they share left out."""
    cdef index_t first = state.trees.tree_start[tree], node = state.trees.tree_start[tree + 1]
    cdef double result
    scratch.dish.assign(node - first, -1)
    swap_derivation(state, scratch, first)
    while node > first:
        node -= 1
        find_dish_at(state, <int32_t>node)
    result = -log_weight(state, tree, &scratch.dish)
    scratch.new_dish.resize(scratch.dish.size())
    for node in range(<index_t>scratch.dish.size()):
        scratch.new_dish[node] = state.dish[first + node]
    swap_derivation(state, scratch, first)
    result += log_weight(state, tree, &scratch.new_dish)
    swap_derivation(state, scratch, first)
    return result


cdef void swap_derivation(RefinedState* state, Scratch* scratch, index_t first) noexcept nogil:
    """Exchange the derivation of a tree with the one in `scratch`."""
    cdef size_t item
    for item in range(scratch.site.size()):
        scratch.site[item], state.is_site[first + item] = state.is_site[first + item], scratch.site[item]
        scratch.symbol[item], state.symbol[first + item] = state.symbol[first + item], scratch.symbol[item]
        scratch.dish[item], state.dish[first + item] = state.dish[first + item], scratch.dish[item]


cdef double log_weight(RefinedState* state, index_t tree, const vector[int32_t]* other) except? -1 nogil:
    """The log weight of a tree's fragments in the frozen grammar, without those that `other` has at the same node."""
    cdef double result = 0.0
    cdef index_t first = state.trees.tree_start[tree], node
    for node in range(first, state.trees.tree_start[tree + 1]):
        if state.is_site[node] and state.dish[node] != other[0][node - first]:
            result += log_predictive_at(state, <int32_t>node)
    return result


# ---- the inside pass ------------------------------------------------------------------------------------------

cdef inline double cached_weight(const RefinedState* state, const Dish* dish) noexcept nogil:
    """w_e: the cached part of a dish's probability."""
    cdef const Restaurant* restaurant = &state.restaurants[dish.symbol]
    return old_weight(restaurant, &dish.tables) / denominator(restaurant) if dish.tables.n_customers else 0.0


cdef inline Range allowed(const RefinedState* state, index_t node, bint joint) noexcept nogil:
    """Which subcategories of a node may be those of a site."""
    cdef Range result
    if joint:
        result.begin, result.end = 0, n_subcategories(&state.rules, state.trees.label[node])
    else:
        result.begin = subcategory_of(state, state.symbol[node])
        result.end = result.begin + 1
    return result


cdef int fill_inside(RefinedState* state, Scratch* scratch, index_t tree, bint joint) except -1 nogil:
    cdef index_t first = state.trees.tree_start[tree], node = state.trees.tree_start[tree + 1]
    cdef symbol_t left, right
    cdef double one = 1.0
    scratch.inside.assign(state.n_longest, 0.0)
    scratch.base.resize(state.n_longest)
    scratch.mixed.resize(state.n_longest)
    scratch.matches.resize(node - first)
    scratch.match.clear()
    scratch.value.clear()
    scratch.stamp.resize(state.fragments.fragments.size(), 0)
    scratch.stamp_value.resize(state.fragments.fragments.size(), 0.0)
    while node > first:
        node -= 1
        left, right = state.trees.left[node], state.trees.right[node]
        sums(
            &state.rules, state.trees.rule[node],
            &one if left < 0 else &scratch.mixed[state.offset[left]],
            &one if right < 0 else &scratch.mixed[state.offset[right]],
            &scratch.base[state.offset[node]],
        )
        scratch.matches[node - first].begin = <int32_t>scratch.match.size()
        find_matches(state, scratch, first, node, joint)
        scratch.matches[node - first].end = <int32_t>scratch.match.size()
        fill_node(state, scratch, node, scratch.matches[node - first], allowed(state, node, joint))
    return 0


cdef void fill_node(RefinedState* state, Scratch* scratch, index_t node, Range matches, Range sites) noexcept nogil:
    """I(v) from B(v) and the fragments that match at v, then all of them scaled."""
    cdef symbol_t label = state.trees.label[node], first_symbol = state.rules.first_symbol[label], subcategory
    cdef int32_t n_values = n_subcategories(&state.rules, label), item, number
    cdef double* inside = &scratch.inside[state.offset[node]]
    cdef double* base = &scratch.base[state.offset[node]]
    cdef double* mixed = &scratch.mixed[state.offset[node]]
    cdef const Restaurant* restaurant
    cdef double largest, scale, stop = state.stops.stop[label]
    cdef size_t entry
    for number in range(sites.begin, sites.end):
        restaurant = &state.restaurants[first_symbol + number]
        inside[number] = new_weight(restaurant) / denominator(restaurant) * base[number]
    for item in range(matches.begin, matches.end):
        for entry in range(state.fragments.links[scratch.match[item]].dishes.size()):
            subcategory = state.fragments.links[scratch.match[item]].dishes[entry].symbol - first_symbol
            if sites.begin <= subcategory < sites.end:
                number = state.fragments.links[scratch.match[item]].dishes[entry].dish
                inside[subcategory] += cached_weight(state, &state.dishes[number]) * scratch.value[item]
    largest = inside[0]
    for number in range(1, n_values):
        largest = max(largest, inside[number])
    scale = 1.0 / largest
    for number in range(n_values):
        inside[number] *= scale
        base[number] *= scale
        mixed[number] = stop * inside[number] + (1.0 - stop) * base[number]
    for item in range(matches.begin, matches.end):
        scratch.value[item] *= scale


# ---- fragments that match -------------------------------------------------------------------------------------

# A node with its children, as the search for fragments that match there sees them.
cdef struct Place:
    symbol_t rule
    bint has_right
    Range left_sites           # subcategories that the left child may have as a site
    Range right_sites
    symbol_t left_first        # the first symbol of the left child's label
    symbol_t right_first
    const double* left_inside
    const double* right_inside
    Range left_matches
    Range right_matches


cdef inline int add_match(Scratch* scratch, int32_t fragment, double value) except -1 nogil:
    if fragment >= 0 and value > 0.0:
        scratch.match.push_back(fragment)
        scratch.value.push_back(value)
    return 0


cdef inline symbol_t right_code(const Place* place, int32_t subcategory) noexcept nogil:
    return frontier_code(place.right_first + subcategory) if place.has_right else NO_CHILD


cdef int find_matches(RefinedState* state, Scratch* scratch, index_t first, index_t node, bint joint) except -1 nogil:
    """All stored fragments with the rule at a node that match below it, and their S(v)."""
    cdef symbol_t left = state.trees.left[node], right = state.trees.right[node]
    cdef Place place
    cdef double one = 1.0
    cdef size_t item
    place.rule = state.trees.rule[node]
    if left < 0:
        for item in range(state.fragments.without_parts[place.rule].size()):
            add_match(scratch, state.fragments.without_parts[place.rule][item], 1.0)
        return 0
    place.has_right = right >= 0
    place.left_sites = allowed(state, left, joint)
    place.left_first = state.rules.first_symbol[state.trees.label[left]]
    place.left_inside = &scratch.inside[state.offset[left]]
    place.left_matches = scratch.matches[left - first]
    if place.has_right:
        place.right_sites = allowed(state, right, joint)
        place.right_first = state.rules.first_symbol[state.trees.label[right]]
        place.right_inside = &scratch.inside[state.offset[right]]
        place.right_matches = scratch.matches[right - first]
    else:
        place.right_sites.begin, place.right_sites.end = 0, 1
        place.right_first = 0
        place.right_inside = &one
        place.right_matches.begin = place.right_matches.end = 0
    match_frontiers(state, scratch, &place, joint)
    stamp_right(scratch, &place)
    match_left_parts(state, scratch, &place)
    return match_right_parts(state, scratch, &place)


cdef int match_frontiers(RefinedState* state, Scratch* scratch, const Place* place, bint joint) except -1 nogil:
    """Fragments of a single rule."""
    cdef const Fragment* fragment
    cdef double right_value
    cdef size_t item
    if not joint:
        return add_match(
            scratch,
            find_fragment(
                &state.fragments, place.rule, frontier_code(place.left_first + place.left_sites.begin),
                right_code(place, place.right_sites.begin),
            ),
            place.left_inside[place.left_sites.begin] * place.right_inside[place.right_sites.begin],
        )
    for item in range(state.fragments.without_parts[place.rule].size()):
        fragment = &state.fragments.fragments[state.fragments.without_parts[place.rule][item]]
        right_value = 1.0
        if place.has_right:
            right_value = place.right_inside[frontier_symbol(fragment.right) - place.right_first]
        add_match(
            scratch, state.fragments.without_parts[place.rule][item],
            place.left_inside[frontier_symbol(fragment.left) - place.left_first] * right_value,
        )
    return 0


cdef void stamp_right(Scratch* scratch, const Place* place) noexcept nogil:
    """Note which fragments match at the right child."""
    cdef int32_t item
    scratch.now += 1
    for item in range(place.right_matches.begin, place.right_matches.end):
        scratch.stamp[scratch.match[item]] = scratch.now
        scratch.stamp_value[scratch.match[item]] = scratch.value[item]


cdef int match_left_parts(RefinedState* state, Scratch* scratch, const Place* place) except -1 nogil:
    """Fragments with a part on the left: found from the part upwards, or by trying all that match on the right."""
    cdef size_t n_right = place.right_sites.end - place.right_sites.begin
    cdef int32_t item, other, below, subcategory
    cdef double left_value
    n_right += place.right_matches.end - place.right_matches.begin
    for item in range(place.left_matches.begin, place.left_matches.end):
        below = scratch.match[item]
        if state.fragments.links[below].above_left.empty():
            continue
        left_value = scratch.value[item]
        if state.fragments.links[below].above_left.size() <= n_right:
            match_above_left(state, scratch, place, below, left_value)
            continue
        for subcategory in range(place.right_sites.begin, place.right_sites.end):
            add_match(
                scratch, find_fragment(&state.fragments, place.rule, below, right_code(place, subcategory)),
                left_value * place.right_inside[subcategory],
            )
        for other in range(place.right_matches.begin, place.right_matches.end):
            if state.fragments.fragments[scratch.match[other]].n_above_right:
                add_match(
                    scratch, find_fragment(&state.fragments, place.rule, below, scratch.match[other]),
                    left_value * scratch.value[other],
                )
    return 0


cdef int match_above_left(
    RefinedState* state, Scratch* scratch, const Place* place, int32_t below, double left_value
) except -1 nogil:
    """Fragments of which `below` is the left part."""
    cdef const Fragment* fragment
    cdef double right_value
    cdef int32_t number
    cdef size_t item
    for item in range(state.fragments.links[below].above_left.size()):
        number = state.fragments.links[below].above_left[item]
        fragment = &state.fragments.fragments[number]
        if fragment.rule != place.rule:
            continue
        right_value = 1.0
        if fragment.right >= 0:
            right_value = 0.0
            if scratch.stamp[fragment.right] == scratch.now:
                right_value = scratch.stamp_value[fragment.right]
        elif fragment.right != NO_CHILD:
            right_value = place.right_inside[frontier_symbol(fragment.right) - place.right_first]
        add_match(scratch, number, left_value * right_value)
    return 0


cdef int match_right_parts(RefinedState* state, Scratch* scratch, const Place* place) except -1 nogil:
    """Fragments with a frontier on the left and a part on the right."""
    cdef size_t n_left = place.left_sites.end - place.left_sites.begin, above
    cdef const Fragment* fragment
    cdef int32_t item, below, number, subcategory
    cdef double right_value
    for item in range(place.right_matches.begin, place.right_matches.end):
        below = scratch.match[item]
        right_value = scratch.value[item]
        if state.fragments.links[below].above_right.size() > n_left:
            for subcategory in range(place.left_sites.begin, place.left_sites.end):
                add_match(
                    scratch,
                    find_fragment(
                        &state.fragments, place.rule, frontier_code(place.left_first + subcategory), below
                    ),
                    place.left_inside[subcategory] * right_value,
                )
            continue
        for above in range(state.fragments.links[below].above_right.size()):
            number = state.fragments.links[below].above_right[above]
            fragment = &state.fragments.fragments[number]
            if fragment.rule == place.rule:
                add_match(
                    scratch, number,
                    place.left_inside[frontier_symbol(fragment.left) - place.left_first] * right_value,
                )
    return 0


# ---- drawing a derivation -------------------------------------------------------------------------------------

cdef int draw_derivation(RefinedState* state, Scratch* scratch, index_t tree, Rng* rng) except -1 nogil:
    """Draw sites and their symbols from the inside pass, from the root down."""
    cdef index_t first = state.trees.tree_start[tree], end = state.trees.tree_start[tree + 1], node
    cdef Waiting next
    cdef int32_t derived_by
    scratch.site.assign(end - first, 0)
    scratch.symbol.resize(end - first)
    for node in range(first, end):
        scratch.symbol[node - first] = state.symbol[node]
    next.node, next.derived_by = <int32_t>first, AT_SITE
    next.subcategory = subcategory_of(state, state.symbol[first])
    scratch.waiting.assign(1, next)
    while not scratch.waiting.empty():
        next = scratch.waiting.back()
        scratch.waiting.pop_back()
        derived_by = next.derived_by
        if derived_by == AT_SITE:
            derived_by = draw_fragment(state, scratch, first, next.node, next.subcategory, rng)
        if state.trees.left[next.node] < 0:
            continue
        if derived_by == BY_BASE:
            draw_base_children(state, scratch, next.node, next.subcategory, rng)
        else:
            await_parts(state, scratch, next.node, derived_by)
    return 0


cdef int32_t draw_fragment(
    RefinedState* state, Scratch* scratch, index_t first, int32_t node, symbol_t subcategory, Rng* rng
) noexcept nogil:
    """Which cached fragment stands at a site, or whether it comes from the base."""
    cdef symbol_t root = state.rules.first_symbol[state.trees.label[node]] + subcategory
    cdef double target = rng.uniform() * scratch.inside[state.offset[node] + subcategory]
    cdef int32_t item, number
    scratch.site[node - first] = 1
    scratch.symbol[node - first] = root
    for item in range(scratch.matches[node - first].begin, scratch.matches[node - first].end):
        number = find_dish(state, scratch.match[item], root)
        if number < 0:
            continue
        target -= cached_weight(state, &state.dishes[number]) * scratch.value[item]
        if target < 0.0:
            return scratch.match[item]
    return BY_BASE


cdef int draw_base_children(
    RefinedState* state, Scratch* scratch, int32_t node, symbol_t subcategory, Rng* rng
) except -1 nogil:
    """Draw the children's subcategories from the base, and whether it stops at them."""
    cdef symbol_t left = state.trees.left[node], right = state.trees.right[node]
    cdef double one = 1.0
    cdef RefinedRule drawn
    drawn.rule, drawn.parent, drawn.left, drawn.right = state.trees.rule[node], subcategory, 0, 0
    draw_children(
        &state.rules, &drawn, &scratch.mixed[state.offset[left]],
        &one if right < 0 else &scratch.mixed[state.offset[right]], rng,
    )
    draw_stop(state, scratch, left, drawn.left, rng)
    if right >= 0:
        draw_stop(state, scratch, right, drawn.right, rng)
    return 0


cdef int draw_stop(RefinedState* state, Scratch* scratch, int32_t node, symbol_t subcategory, Rng* rng) except -1 nogil:
    cdef int32_t offset = state.offset[node] + subcategory
    cdef double stops = state.stops.stop[state.trees.label[node]] * scratch.inside[offset]
    cdef bint is_site = rng.uniform() * scratch.mixed[offset] < stops
    return await_node(scratch, node, AT_SITE if is_site else BY_BASE, subcategory)


cdef int await_parts(RefinedState* state, Scratch* scratch, int32_t node, int32_t fragment) except -1 nogil:
    """The children of a node are derived by the parts of a fragment."""
    cdef symbol_t left = state.fragments.fragments[fragment].left, right = state.fragments.fragments[fragment].right
    await_part(state, scratch, state.trees.left[node], left)
    if state.trees.right[node] >= 0:
        await_part(state, scratch, state.trees.right[node], right)
    return 0


cdef int await_part(RefinedState* state, Scratch* scratch, int32_t node, symbol_t code) except -1 nogil:
    if is_frontier(code):
        return await_node(scratch, node, AT_SITE, subcategory_of(state, frontier_symbol(code)))
    return await_node(scratch, node, code, 0)


cdef int await_node(Scratch* scratch, int32_t node, int32_t derived_by, symbol_t subcategory) except -1 nogil:
    cdef Waiting waiting
    waiting.node, waiting.derived_by, waiting.subcategory = node, derived_by, subcategory
    scratch.waiting.push_back(waiting)
    return 0
