"""The grammar transform on a known tree: inside values under frozen counts, and the draw of a derivation.

With the counts frozen, the restaurant of a label c has a weight for every stored fragment e and one for the base:

    w_e = (n_e - d t_e) / (theta + n)        b_c = (theta + d t) / (theta + n)

On a known tree, for every node v with label c,

    B(v)   = P(rule at v)  prod_{children y} [ s I(y) + (1 - s) N_B(y) ]
    S_g(v) = prod_{children y}  I(y) where g has a frontier,  N_{g_y}(y) where g continues with its part g_y
    I(v)   = sum_{stored e that match at v} w_e S_e(v)  +  b_c B(v)

N_h(v) is the value of a host that continues into v in the state h, the base or a fragment's part. Without insertion it
is h(v). With it, v can be the root of an auxiliary tree whose foot is a child u of the same label X:

    A(v, u) = sum_{stored auxiliary e' that match} w'_e' S_e'(v)
              +  b'_X P'(rule at v, u the foot) [ s I(y) + (1 - s) N_B(y) ]
    N_h(v)  = (1 - a_X) h(v)  +  a_X sum_u A(v, u) h(u)

where y is the sibling of u; if insertions may be stacked, N_h(u) takes the place of h(u). All values of a node are
divided by its I(v), whose logarithms are summed, so that deep trees do not underflow. A derivation is drawn from the
root down.
"""

from libc.stdint cimport int32_t, uint8_t

from tsgkit._codes cimport FOOT, FRONTIER, INTERNAL, LEFT_FOOT, MISSING, SITE
from tsgkit._fragments cimport Fragment, find_fragment
from tsgkit._random cimport Rng
from tsgkit._restaurant cimport (
    LogProduct, Restaurant, Tables, denominator, log_of, log_product, multiply, new_weight, old_weight,
)
from tsgkit._trees cimport child, n_nodes_of
from tsgkit._tsg_state cimport TreeDerivation, TsgState, can_be_foot, can_insert, n_labels
from tsgkit._types cimport index_t, symbol_t

# How a node is expanded in a draw, where it is not by a fragment's part.
cdef enum:
    NEW_FRAGMENT = -4    # it is a substitution site
    FROM_BASE = -5       # it is internal, and the base generates what is below


cdef int reserve_inside(const TsgState* tsg, InsideValues* values, index_t n_nodes) except -1 nogil:
    if <index_t>values.base.size() < n_nodes:
        values.base.resize(n_nodes)
        values.base_internal.resize(n_nodes)
        values.foot_weight.resize(2 * n_nodes)
        values.matching.resize(n_nodes)
        values.continuing.resize(n_nodes)
        values.open_nodes.resize(n_nodes)
    if tsg.has_insertion and values.position.size() < tsg.fragments.fragments.size():
        values.position.resize(tsg.fragments.fragments.size(), -1)
    return 0


# ---- the inside pass ------------------------------------------------------------------------------------------

cdef inline double stored_weight(const TsgState* tsg, int32_t number, const Restaurant* restaurant) noexcept nogil:
    """w_e of a stored fragment."""
    cdef const Tables* tables = &tsg.fragments.fragments[number].tables
    return old_weight(restaurant, tables) / denominator(restaurant) if tables.n_customers else 0.0


cdef inline double base_weight(const Restaurant* restaurant) noexcept nogil:
    """b_c, the weight of the base."""
    return new_weight(restaurant) / denominator(restaurant)


cdef inline double base_child(const TsgState* tsg, index_t first, symbol_t below,
                              const InsideValues* values) noexcept nogil:
    """s I(y) + (1 - s) N_B(y), divided by I(y)."""
    cdef double stop = tsg.stops.stop[tsg.trees.label[below]]
    return stop + (1.0 - stop) * values.base_internal[below - first]


cdef void inside(const TsgState* tsg, index_t tree, InsideValues* values) noexcept nogil:
    cdef index_t first = tsg.trees.tree_start[tree], node
    cdef LogProduct product = log_product()
    cdef const Restaurant* restaurant
    cdef MatchRange* own
    cdef symbol_t label, below
    cdef double base, total
    cdef int32_t item
    cdef int side
    values.matches.clear()
    for node in range(n_nodes_of(&tsg.trees, tree) - 1, -1, -1):
        label = tsg.trees.label[first + node]
        restaurant = &tsg.restaurants[label]
        own = &values.matching[node]
        own.begin = <int32_t>values.matches.size()
        find_matches(tsg, first, node, values)
        own.end = <int32_t>values.matches.size()
        own.factor = 1.0
        base = tsg.rule_probability[tsg.trees.rule[first + node]]
        for side in range(2):
            below = child(&tsg.trees, first + node, side)
            if below >= 0:
                base *= base_child(tsg, first, below, values)
        total = base_weight(restaurant) * base
        for item in range(own.begin, own.end):
            total += stored_weight(tsg, values.matches[item].number, restaurant) * values.matches[item].value
        for item in range(own.begin, own.end):
            values.matches[item].value /= total
        values.base[node] = base / total
        multiply(&product, total)
        values.continuing[node] = own[0]
        values.continuing[node].factor = 1.0 - tsg.insertion[label]
        values.base_internal[node] = (1.0 - tsg.insertion[label]) * values.base[node]
        if can_insert(tsg, first + node):
            inside_insertions(tsg, first, node, total, values)
    values.log_inside = log_of(&product)


cdef inline const MatchRange* matches_at(index_t node, bint is_internal, const InsideValues* values) noexcept nogil:
    if is_internal:
        return &values.continuing[node]
    return &values.matching[node]


cdef inline MatchRange continuing_at(symbol_t below, index_t first, const InsideValues* values) noexcept nogil:
    """The matches at a child with which a fragment can continue there; none where there is no child."""
    cdef MatchRange nothing
    if below >= 0:
        return values.continuing[below - first]
    nothing.begin = nothing.end = 0
    nothing.factor = 1.0
    return nothing


cdef void find_matches(const TsgState* tsg, index_t first, index_t node, InsideValues* values) noexcept nogil:
    """All stored fragments with the rule at a node whose parts match at its children."""
    cdef symbol_t rule = tsg.trees.rule[first + node]
    cdef MatchRange left = continuing_at(tsg.trees.left[first + node], first, values)
    cdef MatchRange right = continuing_at(tsg.trees.right[first + node], first, values)
    cdef int32_t left_item, right_item, left_part, right_part
    cdef double left_value
    cdef Match found
    # The first item of either side is a frontier.
    for left_item in range(left.begin - 1, left.end):
        left_part, left_value = FRONTIER, 1.0
        if left_item >= left.begin:
            left_part = values.matches[left_item].number
            if tsg.fragments.fragments[left_part].n_above_left == 0:
                continue
            left_value = left.factor * values.matches[left_item].value
        for right_item in range(right.begin - 1, right.end):
            right_part, found.value = FRONTIER, left_value
            if right_item >= right.begin:
                right_part = values.matches[right_item].number
                if tsg.fragments.fragments[right_part].n_above_right == 0:
                    continue
            found.number = find_fragment(&tsg.fragments, rule, left_part, right_part)
            if found.number == MISSING:
                continue
            if right_item >= right.begin:
                found.value = left_value * (right.factor * values.matches[right_item].value)
            values.matches.push_back(found)


cdef void inside_insertions(
    const TsgState* tsg, index_t first, index_t node, double total, InsideValues* values
) noexcept nogil:
    """N_h(v) of all states h of a host, where `inside` has left h(v) itself."""
    cdef MatchRange* own = &values.continuing[node]
    cdef const MatchRange* below_foot
    cdef double no_insertion = own.factor, weight
    cdef symbol_t below
    cdef int32_t item
    cdef int side
    own.begin = <int32_t>values.matches.size()
    own.factor = 1.0
    for item in range(values.matching[node].begin, values.matching[node].end):
        add_continuing(tsg, item, no_insertion, values)
    for side in range(2):
        values.foot_weight[2 * node + side] = 0.0
        if not can_be_foot(tsg, first + node, side):
            continue
        weight = weight_beside(tsg, first, node, side, values) * (tsg.insertion[tsg.trees.label[first + node]] / total)
        values.foot_weight[2 * node + side] = weight
        below = <symbol_t>(child(&tsg.trees, first + node, side) - first)
        below_foot = matches_at(below, tsg.is_stacked, values)
        for item in range(below_foot.begin, below_foot.end):
            add_continuing(tsg, item, weight * below_foot.factor, values)
        values.base_internal[node] += weight * value_of(below, FROM_BASE, tsg.is_stacked, values)
    own.end = <int32_t>values.matches.size()
    for item in range(own.begin, own.end):
        values.position[values.matches[item].number] = -1


cdef inline void add_continuing(const TsgState* tsg, int32_t item, double factor, InsideValues* values) noexcept nogil:
    """Add a match's value, times a factor, to what a host can continue with into the node that is being computed."""
    cdef Match found = values.matches[item]
    cdef const Fragment* fragment = &tsg.fragments.fragments[found.number]
    if fragment.n_above_left == 0 and fragment.n_above_right == 0:
        return
    found.value = factor * found.value
    if values.position[found.number] >= 0:
        values.matches[values.position[found.number]].value += found.value
        return
    values.position[found.number] = <int32_t>values.matches.size()
    values.matches.push_back(found)


# ---- beside the foot ------------------------------------------------------------------------------------------

cdef inline double base_beside(
    const TsgState* tsg, index_t first, index_t node, int foot_side, const InsideValues* values
) noexcept nogil:
    """The second summand of A(v, u): the base generates what stands beside the foot."""
    cdef symbol_t sibling = child(&tsg.trees, first + node, 1 - foot_side)
    cdef const Restaurant* restaurant = &tsg.restaurants[tsg.trees.label[first + node] + n_labels(tsg)]
    cdef double result = base_weight(restaurant) * tsg.foot_probability[tsg.trees.rule[first + node]]
    if sibling >= 0:
        result *= base_child(tsg, first, sibling, values)
    return result


cdef inline MatchRange items_beside(
    const TsgState* tsg, index_t first, index_t node, int foot_side, const InsideValues* values
) noexcept nogil:
    """The items of `stored_beside`: a frontier, then what an auxiliary tree can continue with beside its foot."""
    cdef MatchRange items = continuing_at(child(&tsg.trees, first + node, 1 - foot_side), first, values)
    items.begin -= 1
    return items


cdef inline int32_t stored_beside(
    const TsgState* tsg, index_t first, index_t node, int foot_side, const MatchRange* items, int32_t item,
    const InsideValues* values, double* weight,
) noexcept nogil:
    """The stored auxiliary tree with an item beside its foot, and its summand of A(v, u); MISSING and 0 without."""
    cdef symbol_t rule = tsg.trees.rule[first + node]
    cdef const Restaurant* restaurant = &tsg.restaurants[tsg.trees.label[first + node] + n_labels(tsg)]
    cdef const Fragment* fragment
    cdef int32_t part = FRONTIER, number
    cdef double value = 1.0
    weight[0] = 0.0
    if item > items.begin:
        part = values.matches[item].number
        fragment = &tsg.fragments.fragments[part]
        if (fragment.n_above_left if foot_side else fragment.n_above_right) == 0:
            return MISSING
        value = items.factor * values.matches[item].value
    if foot_side:
        number = find_fragment(&tsg.fragments, rule, part, FOOT)
    else:
        number = find_fragment(&tsg.fragments, rule, FOOT, part)
    if number != MISSING:
        weight[0] = stored_weight(tsg, number, restaurant) * value
    return number


cdef double weight_beside(
    const TsgState* tsg, index_t first, index_t node, int foot_side, const InsideValues* values
) noexcept nogil:
    """A(v, u), divided by I(y)."""
    cdef MatchRange items = items_beside(tsg, first, node, foot_side, values)
    cdef double total = base_beside(tsg, first, node, foot_side, values), weight
    cdef int32_t item
    for item in range(items.begin, items.end):
        if stored_beside(tsg, first, node, foot_side, &items, item, values, &weight) != MISSING:
            total += weight
    return total


# ---- the draw -------------------------------------------------------------------------------------------------

cdef inline void open_node(
    InsideValues* values, size_t* n_open, index_t node, int32_t expansion, bint may_insert
) noexcept nogil:
    cdef OpenNode* opened = &values.open_nodes[n_open[0]]
    opened.node, opened.expansion, opened.may_insert = <int32_t>node, expansion, may_insert
    n_open[0] += 1


cdef inline int32_t expansion_of(symbol_t part) noexcept nogil:
    return NEW_FRAGMENT if part == FRONTIER else part


cdef void draw_derivation(
    const TsgState* tsg, index_t tree, InsideValues* values, TreeDerivation* derivation, Rng* rng
) noexcept nogil:
    cdef index_t first = tsg.trees.tree_start[tree], node
    cdef int32_t expansion
    cdef symbol_t below
    cdef size_t n_open = 0
    cdef OpenNode top
    cdef int side
    open_node(values, &n_open, 0, NEW_FRAGMENT, False)
    while n_open:
        n_open -= 1
        top = values.open_nodes[n_open]
        node, expansion = top.node, top.expansion
        derivation.state[node] = INTERNAL
        if expansion == NEW_FRAGMENT:
            derivation.state[node] = SITE
            expansion = draw_fragment(tsg, first, node, values, rng)
        elif top.may_insert and can_insert(tsg, first + node):
            derivation.state[node] = draw_insertion(tsg, first, node, expansion, values, &n_open, rng)
            if derivation.state[node] != INTERNAL:
                continue
        for side in range(1, -1, -1):
            below = child(&tsg.trees, first + node, side)
            if below < 0:
                continue
            open_node(values, &n_open, below - first, draw_child(tsg, first, below, expansion, side, values, rng), True)


cdef inline int32_t draw_child(
    const TsgState* tsg, index_t first, symbol_t below, int32_t expansion, int side, const InsideValues* values,
    Rng* rng,
) noexcept nogil:
    """How a child is expanded, given its parent's expansion."""
    if expansion == FROM_BASE:
        return draw_base_child(tsg, first, below, values, rng)
    cdef const Fragment* fragment = &tsg.fragments.fragments[expansion]
    return expansion_of(fragment.right if side else fragment.left)


cdef int32_t draw_fragment(
    const TsgState* tsg, index_t first, index_t node, const InsideValues* values, Rng* rng
) noexcept nogil:
    """The stored fragment with which a site is expanded, or FROM_BASE."""
    cdef const Restaurant* restaurant = &tsg.restaurants[tsg.trees.label[first + node]]
    cdef double target = rng.uniform()
    cdef int32_t item
    for item in range(values.matching[node].begin, values.matching[node].end):
        target -= stored_weight(tsg, values.matches[item].number, restaurant) * values.matches[item].value
        if target < 0.0:
            return values.matches[item].number
    return FROM_BASE


cdef inline int32_t draw_base_child(
    const TsgState* tsg, index_t first, symbol_t below, const InsideValues* values, Rng* rng
) noexcept nogil:
    """Whether the base stops at a child or continues."""
    cdef double stop = tsg.stops.stop[tsg.trees.label[below]]
    cdef double internal = (1.0 - stop) * values.base_internal[below - first]
    return NEW_FRAGMENT if rng.uniform() * (stop + internal) < stop else FROM_BASE


cdef double value_of(index_t node, int32_t expansion, bint is_internal, const InsideValues* values) noexcept nogil:
    """S_g(v) or B(v), or N_g(v) or N_B(v) for an internal node, all divided by I(v)."""
    cdef const MatchRange* own = matches_at(node, is_internal, values)
    cdef int32_t item
    if expansion == FROM_BASE:
        if is_internal:
            return values.base_internal[node]
        return values.base[node]
    for item in range(own.begin, own.end):
        if values.matches[item].number == expansion:
            return own.factor * values.matches[item].value
    return 0.0


cdef uint8_t draw_insertion(
    const TsgState* tsg, index_t first, index_t node, int32_t expansion, InsideValues* values, size_t* n_open, Rng* rng
) noexcept nogil:
    """The state of a node into which a host continues with this expansion: INTERNAL, or the root of an auxiliary tree.

    If there is an insertion, its foot and the foot's sibling are opened.
    """
    cdef double no_insertion = (1.0 - tsg.insertion[tsg.trees.label[first + node]]) * value_of(
        node, expansion, False, values)
    cdef double weights[2]
    cdef double target
    cdef symbol_t sibling
    cdef int side
    weights[0] = weights[1] = 0.0
    for side in range(2):
        if can_be_foot(tsg, first + node, side):
            weights[side] = values.foot_weight[2 * node + side] * value_of(
                child(&tsg.trees, first + node, side) - first, expansion, tsg.is_stacked, values)
    target = rng.uniform() * (no_insertion + weights[0] + weights[1])
    if target < no_insertion or weights[0] + weights[1] == 0.0:
        return INTERNAL
    side = 0 if target < no_insertion + weights[0] or weights[1] == 0.0 else 1
    sibling = child(&tsg.trees, first + node, 1 - side)
    open_node(values, n_open, child(&tsg.trees, first + node, side) - first, expansion, tsg.is_stacked)
    if sibling >= 0:
        open_node(values, n_open, sibling - first, draw_beside(tsg, first, node, side, values, rng), True)
    return <uint8_t>(LEFT_FOOT + side)


cdef int32_t draw_beside(
    const TsgState* tsg, index_t first, index_t node, int foot_side, const InsideValues* values, Rng* rng
) noexcept nogil:
    """How the sibling of a foot is expanded."""
    cdef MatchRange items = items_beside(tsg, first, node, foot_side, values)
    cdef double target = rng.uniform() * weight_beside(tsg, first, node, foot_side, values), weight
    cdef int32_t item, number, chosen = MISSING
    target -= base_beside(tsg, first, node, foot_side, values)
    if target >= 0.0:
        for item in range(items.begin, items.end):
            number = stored_beside(tsg, first, node, foot_side, &items, item, values, &weight)
            if weight > 0.0:
                chosen = number      # the last one stays, should rounding leave a rest
            target -= weight
            if number != MISSING and target < 0.0:
                break
    if chosen == MISSING:
        return draw_base_child(tsg, first, child(&tsg.trees, first + node, 1 - foot_side), values, rng)
    cdef const Fragment* fragment = &tsg.fragments.fragments[chosen]
    return expansion_of(fragment.left if foot_side else fragment.right)
