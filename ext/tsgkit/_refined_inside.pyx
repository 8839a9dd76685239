"""The grammar transform on a known tree with refined symbols: inside pass, fragments that match, and draw.

On a known tree, with the counts frozen, for every node v and its subcategories k:

    B_k(v) = sum_{l,m} H(x_k -> y_l z_m)  prod_{children y_l} [ s I_l(y) + (1 - s) B_l(y) ]
    S_g(v) = prod_{children y}  I_l(y) where g has a frontier y_l,  S_{g_y}(y) where y is internal
    I_k(v) = sum_{cached e rooted in x_k that match at v} w_e S_e(v)  +  b_{x_k} B_k(v)

where, if subcategories are given, I_l(v) is zero for all l but k_v. The values of a node are divided by the largest
I(v), so that deep trees do not underflow.

Most fragments are single rules. Those are not searched for: their terms are summed as those of H are, over a list.
"""

from libc.limits cimport INT_MIN
from libc.stdint cimport int32_t
from libcpp.vector cimport vector

from tsgkit._backoff cimport RefinedRule
from tsgkit._fragments cimport (
    NO_CHILD,
    Fragment,
    FragmentAbove,
    RootedDish,
    find_fragment,
    frontier_code,
    frontier_symbol,
    is_frontier,
    position_above,
)
from tsgkit._random cimport Rng
from tsgkit._refined_rules cimport draw_children, n_subcategories, sums
from tsgkit._refined_state cimport (
    Derivation,
    Dish,
    FragmentValues,
    RefinedState,
    collect_nodes,
    find_dish,
    is_site_at,
    reserve_values,
    subcategory_of,
    symbol_at,
)
from tsgkit._restaurant cimport Restaurant, denominator, new_weight, old_weight
from tsgkit._rule_list cimport add_terms, draw_entry
from tsgkit._trees cimport child, n_nodes_of
from tsgkit._types cimport index_t, symbol_t

cdef int reserve_inside(const RefinedState* state, RefinedInside* values) except -1 nogil:
    cdef size_t n_fragments = state.fragments.fragments.size()
    values.inside.resize(state.n_longest)
    values.base.resize(state.n_longest)
    values.mixed.resize(state.n_longest)
    values.scale.resize(state.n_most_nodes)
    values.matches.resize(state.n_most_nodes)
    values.open_nodes.resize(state.n_most_nodes + 1)
    values.below.resize(state.n_most_nodes)
    if values.at_work.nodes.empty():
        reserve_values(state, &values.at_work)
    if values.stamps.size() < n_fragments:
        values.stamps.resize(2 * n_fragments, no_stamp())
    return 0


cdef inline Stamp no_stamp() noexcept nogil:
    cdef Stamp result
    result.time, result.value = 0, 0.0
    return result


cdef int resize_derivation(TreeDerivation* derivation, index_t n_nodes) except -1 nogil:
    derivation.is_site.resize(n_nodes)
    derivation.symbol.resize(n_nodes)
    derivation.dish.resize(n_nodes)
    return 0


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


cdef double ONE = 1.0


cdef inline const double* values_of(
    const RefinedState* state, const vector[double]* values, symbol_t node
) noexcept nogil:
    """The values of a child; the one value 1 if there is none."""
    if node < 0:
        return &ONE
    return &values[0][state.offset[node]]


cdef void fill_inside(const RefinedState* state, RefinedInside* values, index_t tree, bint joint) noexcept nogil:
    cdef index_t first = state.trees.tree_start[tree], node = state.trees.tree_start[tree + 1]
    values.match.clear()
    values.value.clear()
    while node > first:
        node -= 1
        fill_at(state, values, first, node, joint)


cdef void fill_at(
    const RefinedState* state, RefinedInside* values, index_t first, index_t node, bint joint
) noexcept nogil:
    """The inside values of a node, whose children have theirs."""
    cdef MatchRange matches
    sums(
        &state.rules, state.trees.rule[node], values_of(state, &values.mixed, state.trees.left[node]),
        values_of(state, &values.mixed, state.trees.right[node]), &values.base[state.offset[node]],
    )
    matches.begin = <int32_t>values.match.size()
    matches.first_large = find_matches(state, values, first, node, joint)
    matches.end = <int32_t>values.match.size()
    values.matches[node - first] = matches
    fill_node(state, values, first, node, joint)


cdef void fill_node(
    const RefinedState* state, RefinedInside* values, index_t first, index_t node, bint joint
) noexcept nogil:
    """I(v) from B(v) and the fragments that match at v, then all of them scaled."""
    cdef symbol_t label = state.trees.label[node]
    cdef int32_t n_values = n_subcategories(&state.rules, label), number, item
    cdef double* inside = &values.inside[state.offset[node]]
    cdef double* base = &values.base[state.offset[node]]
    cdef double* mixed = &values.mixed[state.offset[node]]
    cdef const Restaurant* restaurants = &state.restaurants[state.rules.first_symbol[label]]
    cdef Range sites = allowed(state, node, joint)
    cdef MatchRange matches = values.matches[node - first]
    cdef double largest = 0.0, scale, stop = state.stops.stop[label]
    for number in range(n_values):
        inside[number] = 0.0
    add_singles(state, values, node, joint, inside)
    add_matches(state, values, matches, sites, state.rules.first_symbol[label], inside)
    for number in range(sites.begin, sites.end):
        inside[number] = (
            (inside[number] + new_weight(&restaurants[number]) * base[number]) / denominator(&restaurants[number])
        )
        largest = max(largest, inside[number])
    scale = 1.0 / largest
    for number in range(n_values):
        inside[number] *= scale
        base[number] *= scale
        mixed[number] = stop * inside[number] + (1.0 - stop) * base[number]
    for item in range(matches.begin, matches.end):
        values.value[item] *= scale
    values.scale[node - first] = scale


cdef inline int32_t present_single(const RefinedState* state, index_t node) noexcept nogil:
    """The dish of the rule at a node, if it and its children were sites with their present symbols, or -1."""
    cdef symbol_t left = state.trees.left[node], right = state.trees.right[node]
    cdef int32_t fragment = find_fragment(
        &state.fragments, state.trees.rule[node], NO_CHILD if left < 0 else frontier_code(state.symbol[left]),
        NO_CHILD if right < 0 else frontier_code(state.symbol[right]),
    )
    return find_dish(state, fragment, state.symbol[node]) if fragment >= 0 else -1


cdef inline double term_of_present(const RefinedState* state, const RefinedInside* values, index_t node) noexcept nogil:
    """The weight of that dish times the inside values of the children."""
    cdef symbol_t left = state.trees.left[node], right = state.trees.right[node]
    cdef int32_t dish = present_single(state, node)
    cdef double result
    if dish < 0:
        return 0.0
    result = state.singles.weight[state.dishes[dish].single]
    if left >= 0:
        result *= values.inside[state.offset[left] + subcategory_of(state, state.symbol[left])]
    if right >= 0:
        result *= values.inside[state.offset[right] + subcategory_of(state, state.symbol[right])]
    return result


cdef void add_singles(
    const RefinedState* state, const RefinedInside* values, index_t node, bint joint, double* inside
) noexcept nogil:
    """Add what the fragments of a single rule weigh, before division by denominators."""
    if joint:
        add_terms(
            &state.singles, state.trees.rule[node], values_of(state, &values.inside, state.trees.left[node]),
            values_of(state, &values.inside, state.trees.right[node]), inside,
        )
    else:
        inside[subcategory_of(state, state.symbol[node])] += term_of_present(state, values, node)


cdef void add_matches(
    const RefinedState* state, const RefinedInside* values, MatchRange matches, Range sites, symbol_t first_symbol,
    double* inside,
) noexcept nogil:
    """Add what the fragments with internal nodes weigh, before division by denominators."""
    cdef const vector[RootedDish]* dishes
    cdef symbol_t subcategory
    cdef int32_t item
    cdef size_t entry
    for item in range(matches.first_large, matches.end):
        dishes = &state.fragments.links[values.match[item]].dishes
        for entry in range(dishes.size()):
            subcategory = dishes[0][entry].symbol - first_symbol
            if sites.begin <= subcategory < sites.end:
                inside[subcategory] += dishes[0][entry].weight * values.value[item]


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
    MatchRange left_matches
    MatchRange right_matches


cdef inline void add_match(RefinedInside* values, int32_t fragment, double value) noexcept nogil:
    if fragment >= 0 and value > 0.0:
        values.match.push_back(fragment)
        values.value.push_back(value)


cdef inline symbol_t right_code(const Place* place, int32_t subcategory) noexcept nogil:
    return frontier_code(place.right_first + subcategory) if place.has_right else NO_CHILD


cdef int32_t find_matches(
    const RefinedState* state, RefinedInside* values, index_t first, index_t node, bint joint
) noexcept nogil:
    """Fragments with the rule at a node that match below it, and their S(v); where those with parts begin."""
    cdef symbol_t left = state.trees.left[node], right = state.trees.right[node]
    cdef const vector[int32_t]* parts = &state.fragments.single_parts[state.trees.rule[node]]
    cdef Place place
    cdef size_t item
    cdef int32_t first_large
    if left < 0:
        for item in range(parts.size()):
            add_match(values, parts[0][item], 1.0)
        return <int32_t>values.match.size()
    place.rule = state.trees.rule[node]
    place.has_right = right >= 0
    place.left_sites = allowed(state, left, joint)
    place.left_first = state.rules.first_symbol[state.trees.label[left]]
    place.left_inside = &values.inside[state.offset[left]]
    place.left_matches = values.matches[left - first]
    place.right_sites.begin, place.right_sites.end, place.right_first = 0, 1, 0
    place.right_inside = &ONE
    place.right_matches.begin = place.right_matches.end = 0
    if place.has_right:
        place.right_sites = allowed(state, right, joint)
        place.right_first = state.rules.first_symbol[state.trees.label[right]]
        place.right_inside = &values.inside[state.offset[right]]
        place.right_matches = values.matches[right - first]
    for item in range(parts.size()):
        match_single_part(state, values, &place, parts[0][item])
    first_large = <int32_t>values.match.size()
    if place.left_matches.begin < place.left_matches.end:
        stamp_right(values, &place)
        match_left_parts(state, values, &place)
    match_right_parts(state, values, &place)
    return first_large


cdef void match_single_part(
    const RefinedState* state, RefinedInside* values, const Place* place, int32_t number
) noexcept nogil:
    """A single rule that is a part of others."""
    cdef const Fragment* fragment = &state.fragments.fragments[number]
    cdef double value = place.left_inside[frontier_symbol(fragment.left) - place.left_first]
    if place.has_right:
        value *= place.right_inside[frontier_symbol(fragment.right) - place.right_first]
    add_match(values, number, value)


cdef void stamp_right(RefinedInside* values, const Place* place) noexcept nogil:
    """Note which fragments match at the right child."""
    cdef int32_t item
    values.now += 1
    for item in range(place.right_matches.begin, place.right_matches.end):
        values.stamps[values.match[item]].time = values.now
        values.stamps[values.match[item]].value = values.value[item]


cdef void match_left_parts(const RefinedState* state, RefinedInside* values, const Place* place) noexcept nogil:
    """Fragments with a part on the left."""
    cdef const vector[FragmentAbove]* above
    cdef const FragmentAbove* fragment
    cdef double right_value
    cdef int32_t item
    cdef size_t position
    for item in range(place.left_matches.begin, place.left_matches.end):
        above = &state.fragments.links[values.match[item]].above_left
        for position in range(first_with_rule(above, place.rule), above.size()):
            fragment = &above[0][position]
            if fragment.rule != place.rule:
                break
            right_value = 1.0
            if fragment.beside >= 0:
                right_value = 0.0
                if values.stamps[fragment.beside].time == values.now:
                    right_value = values.stamps[fragment.beside].value
            elif fragment.beside != NO_CHILD:
                right_value = place.right_inside[frontier_symbol(fragment.beside) - place.right_first]
            add_match(values, fragment.number, values.value[item] * right_value)


cdef inline size_t first_with_rule(const vector[FragmentAbove]* above, symbol_t rule) noexcept nogil:
    """The first of these fragments whose rule is not before this one; its other child is before all others."""
    return position_above(above, rule, INT_MIN)


cdef void match_right_parts(const RefinedState* state, RefinedInside* values, const Place* place) noexcept nogil:
    """Fragments with a frontier on the left and a part on the right."""
    cdef const vector[FragmentAbove]* above
    cdef const FragmentAbove* fragment
    cdef int32_t item
    cdef size_t position
    for item in range(place.right_matches.begin, place.right_matches.end):
        above = &state.fragments.links[values.match[item]].above_right
        for position in range(first_with_rule(above, place.rule), above.size()):
            fragment = &above[0][position]
            if fragment.rule != place.rule:
                break
            add_match(
                values, fragment.number,
                place.left_inside[frontier_symbol(fragment.beside) - place.left_first] * values.value[item],
            )


# ---- drawing a derivation -------------------------------------------------------------------------------------

cdef void draw_derivation(
    const RefinedState* state, RefinedInside* values, index_t tree, bint joint, TreeDerivation* drawn, Rng* rng
) noexcept nogil:
    """Draw sites and their symbols from the inside pass, from the root down; then find the dishes that are stored."""
    cdef index_t first = state.trees.tree_start[tree]
    cdef OpenNode next
    open_root(state, values, tree, drawn)
    while values.n_open:
        values.n_open -= 1
        next = values.open_nodes[values.n_open]
        if next.derived_by == AT_SITE:
            draw_site(state, values, first, joint, &next, drawn, rng)
        elif state.trees.left[next.node] >= 0:
            if next.derived_by == BY_BASE:
                draw_base_children(state, values, first, next.node, next.subcategory, rng)
            else:
                open_parts(state, values, next.node, next.derived_by)
    find_stored_dishes(state, values, tree, drawn)


cdef void open_root(
    const RefinedState* state, RefinedInside* values, index_t tree, TreeDerivation* drawn
) noexcept nogil:
    """Nothing of a tree is drawn yet."""
    cdef index_t first = state.trees.tree_start[tree], node
    for node in range(n_nodes_of(&state.trees, tree)):
        drawn.is_site[node] = 0
        drawn.symbol[node] = state.symbol[first + node]
        drawn.dish[node] = -1
    values.n_open = 0
    open_node(values, <int32_t>first, AT_SITE, subcategory_of(state, state.symbol[first]))


cdef void draw_site(
    const RefinedState* state, RefinedInside* values, index_t first, bint joint, const OpenNode* next,
    TreeDerivation* drawn, Rng* rng
) noexcept nogil:
    """Which cached fragment stands at a site, or whether it comes from the base; its dish if it is cached."""
    cdef int32_t node = next.node, item, number
    cdef symbol_t root = state.rules.first_symbol[state.trees.label[node]] + next.subcategory
    cdef const Restaurant* restaurant = &state.restaurants[root]
    cdef double target = rng.uniform() * values.inside[state.offset[node] + next.subcategory], weight
    drawn.is_site[node - first] = 1
    drawn.symbol[node - first] = root
    number = draw_single(state, values, first, joint, next, &target)
    if number >= 0:
        drawn.dish[node - first] = number
        open_parts(state, values, node, state.dishes[number].fragment)
        return
    for item in range(values.matches[node - first].first_large, values.matches[node - first].end):
        weight = weight_of_root(state, values.match[item], root, &number)
        target -= weight / denominator(restaurant) * values.value[item]
        if target < 0.0:
            drawn.dish[node - first] = number
            open_parts(state, values, node, values.match[item])
            return
    if state.trees.left[node] >= 0:
        draw_base_children(state, values, first, node, next.subcategory, rng)


cdef inline double weight_of_root(
    const RefinedState* state, int32_t fragment, symbol_t root, int32_t* dish
) noexcept nogil:
    """The weight of the dish of a fragment with this root symbol, and its number; 0 if it is not stored."""
    cdef const vector[RootedDish]* dishes = &state.fragments.links[fragment].dishes
    cdef size_t entry
    for entry in range(dishes.size()):
        if dishes[0][entry].symbol == root:
            dish[0] = dishes[0][entry].dish
            return dishes[0][entry].weight
    return 0.0


cdef int32_t draw_single(
    const RefinedState* state, const RefinedInside* values, index_t first, bint joint, const OpenNode* next,
    double* target
) noexcept nogil:
    """The dish of a single rule, if the target falls on one, or -1."""
    cdef int32_t node = next.node, number
    cdef symbol_t root = state.rules.first_symbol[state.trees.label[node]] + next.subcategory
    cdef double scale = values.scale[node - first] / denominator(&state.restaurants[root])
    if joint:
        number = draw_entry(
            &state.singles, state.trees.rule[node], next.subcategory,
            values_of(state, &values.inside, state.trees.left[node]),
            values_of(state, &values.inside, state.trees.right[node]), scale, target,
        )
        return state.dish_of_single[number] if number >= 0 else -1
    target[0] -= scale * term_of_present(state, values, node)
    return present_single(state, node) if target[0] < 0.0 else -1


cdef void draw_base_children(
    const RefinedState* state, RefinedInside* values, index_t first, int32_t node, symbol_t subcategory, Rng* rng
) noexcept nogil:
    """Draw the children's subcategories from the base, and whether it stops at them."""
    cdef symbol_t left = state.trees.left[node], right = state.trees.right[node]
    cdef double total = values.base[state.offset[node] + subcategory] / values.scale[node - first]
    cdef RefinedRule drawn
    drawn.rule, drawn.parent, drawn.left, drawn.right = state.trees.rule[node], subcategory, 0, 0
    draw_children(
        &state.rules, &drawn, values_of(state, &values.mixed, left), values_of(state, &values.mixed, right), total, rng
    )
    draw_stop(state, values, left, drawn.left, rng)
    if right >= 0:
        draw_stop(state, values, right, drawn.right, rng)


cdef void draw_stop(
    const RefinedState* state, RefinedInside* values, int32_t node, symbol_t subcategory, Rng* rng
) noexcept nogil:
    cdef int32_t offset = state.offset[node] + subcategory
    cdef double stops = state.stops.stop[state.trees.label[node]] * values.inside[offset]
    cdef bint is_site = rng.uniform() * values.mixed[offset] < stops
    open_node(values, node, AT_SITE if is_site else BY_BASE, subcategory)


cdef void open_parts(const RefinedState* state, RefinedInside* values, int32_t node, int32_t fragment) noexcept nogil:
    """The children of a node are derived by the parts of a fragment."""
    if state.trees.left[node] >= 0:
        open_part(state, values, state.trees.left[node], state.fragments.fragments[fragment].left)
    if state.trees.right[node] >= 0:
        open_part(state, values, state.trees.right[node], state.fragments.fragments[fragment].right)


cdef void open_part(const RefinedState* state, RefinedInside* values, int32_t node, symbol_t code) noexcept nogil:
    if is_frontier(code):
        open_node(values, node, AT_SITE, subcategory_of(state, frontier_symbol(code)))
    else:
        open_node(values, node, code, 0)


cdef void open_node(RefinedInside* values, int32_t node, int32_t derived_by, symbol_t subcategory) noexcept nogil:
    cdef OpenNode* next = &values.open_nodes[values.n_open]
    next.node, next.derived_by, next.subcategory = node, derived_by, subcategory
    values.n_open += 1


cdef void find_stored_dishes(
    const RefinedState* state, RefinedInside* values, index_t tree, TreeDerivation* drawn
) noexcept nogil:
    """The dishes of sites that come from the base, where somebody orders them."""
    cdef index_t first = state.trees.tree_start[tree], node
    cdef Derivation derivation
    cdef int32_t number
    derivation.is_site = &drawn.is_site[0]
    derivation.symbol = &drawn.symbol[0]
    derivation.first = first
    for node in range(n_nodes_of(&state.trees, tree)):
        if drawn.is_site[node] and drawn.dish[node] < 0:
            number = find_stored_dish(
                state, &derivation, <int32_t>(first + node), &values.at_work, values.below.data()
            )
            # What nobody orders is kept for the tree itself alone, and may be gone before the proposal is seated.
            if number >= 0 and (state.dishes[number].tables.n_customers or number == state.dish[first + node]):
                drawn.dish[node] = number


cdef int32_t find_stored_dish(
    const RefinedState* state, const Derivation* derivation, int32_t root, FragmentValues* at_work, int32_t* below_node
) noexcept nogil:
    cdef size_t item
    cdef int32_t node, fragment = -1
    cdef symbol_t codes[2]
    cdef symbol_t below
    cdef int side
    collect_nodes(state, derivation, root, at_work)
    item = at_work.n_nodes
    while item > 0:
        item -= 1
        node = at_work.nodes[item]
        for side in range(2):
            below = child(&state.trees, node, side)
            codes[side] = NO_CHILD
            if below >= 0 and is_site_at(derivation, below):
                codes[side] = frontier_code(symbol_at(derivation, below))
            elif below >= 0:
                codes[side] = below_node[below - derivation.first]
                if codes[side] < 0:
                    return -1
        fragment = find_fragment(&state.fragments, state.trees.rule[node], codes[0], codes[1])
        below_node[node - derivation.first] = fragment
    return find_dish(state, fragment, symbol_at(derivation, root)) if fragment >= 0 else -1
