"""Single fragments of derivations: described under a change of one node's state, with log P0, and cut in two.

Gibbs sampling of one node compares the fragment around it with the two into which it falls if the node is cut off. The
upper one is seated first; the lower one then finds its customer and, if it is new, its table, where both have the same
root label or are even the same fragment:

    p(upper, lower) = sum over the upper one's table, an old or a new one, of  p(table) p(lower | table)
"""

from libc.math cimport exp
from libc.stdint cimport int32_t, uint8_t
from libcpp.vector cimport vector

from tsgkit._codes cimport LEFT_FOOT, MISSING
from tsgkit._fragments cimport Fragment, find_fragment, intern_fragment
from tsgkit._random cimport Rng
from tsgkit._restaurant cimport Restaurant, Tables, denominator, draw_table, grow, new_weight, old_weight, seat
from tsgkit._trees cimport child
from tsgkit._tsg_state cimport TsgState, add_log_base, continues_at, foot_of
from tsgkit._types cimport index_t, symbol_t
from tsgkit._vectors cimport fill


cdef symbol_t descend(const TsgState* tsg, symbol_t root, const Path* path) noexcept nogil:
    """The node to which a path from another occurrence of a fragment leads from this root."""
    cdef size_t item = path.goes_right.size()
    cdef symbol_t node = root
    while item > 0:
        item -= 1
        node = child(&tsg.trees, node, path.goes_right[item])
        while tsg.state[node] >= LEFT_FOOT:
            node = foot_of(tsg, node, tsg.state[node])
    return node


# ---- description of a fragment --------------------------------------------------------------------------------

cdef int fragment_below(
    TsgState* tsg, symbol_t root, symbol_t node, uint8_t state, bint is_stored, FragmentScratch* scratch,
    Description* result,
) except -1 nogil:
    cdef size_t item = 0
    cdef index_t below
    cdef int side
    cdef uint8_t old_state = tsg.state[node]
    if scratch.below.size() < tsg.trees.label.size():
        scratch.below.resize(tsg.trees.label.size())
    fill(scratch.nodes, 1, root)
    tsg.state[node] = state
    while item < scratch.nodes.size():
        for side in range(2):
            below = continues_at(tsg, 0, scratch.nodes[item], side, tsg.state.data())
            if below >= 0:
                scratch.nodes.push_back(<symbol_t>below)
        item += 1
    # Children come after their parents.
    while item > 0:
        item -= 1
        describe_node(tsg, scratch.nodes[item], is_stored, scratch)
    tsg.state[node] = old_state
    result[0] = scratch.below[root]
    return 0


cdef int describe_node(TsgState* tsg, symbol_t node, bint is_stored, FragmentScratch* scratch) except -1 nogil:
    """Describe what is below a node of a fragment, from what is below its children."""
    cdef symbol_t rule = tsg.trees.rule[node]
    cdef Description parts[2]
    cdef Description* result = &scratch.below[node]
    cdef index_t below
    cdef int side
    for side in range(2):
        below = continues_at(tsg, 0, node, side, tsg.state.data())
        if below >= 0:
            parts[side] = scratch.below[below]
        else:
            parts[side].number, parts[side].log_base = <int32_t>below, 0.0
    result.log_base = add_log_base(
        0.0, tsg, rule, parts[0].number, parts[0].log_base, parts[1].number, parts[1].log_base
    )
    if is_stored:
        result.number = intern_fragment(&tsg.fragments, rule, parts[0].number, parts[1].number)
    elif parts[0].number == MISSING or parts[1].number == MISSING:
        result.number = MISSING
    else:
        result.number = find_fragment(&tsg.fragments, rule, parts[0].number, parts[1].number)
    return 0


cdef int compute_log_base(TsgState* tsg, int32_t number) except -1 nogil:
    cdef vector[int32_t] waiting
    cdef Fragment* fragment
    cdef bint is_ready
    waiting.push_back(number)
    while not waiting.empty():
        fragment = &tsg.fragments.fragments[waiting.back()]
        is_ready = True
        if fragment.left >= 0 and tsg.fragments.fragments[fragment.left].epoch != tsg.epoch:
            waiting.push_back(fragment.left)
            is_ready = False
        if fragment.right >= 0 and tsg.fragments.fragments[fragment.right].epoch != tsg.epoch:
            waiting.push_back(fragment.right)
            is_ready = False
        if not is_ready:
            continue
        fragment.log_base = add_log_base(
            0.0, tsg, fragment.rule, fragment.left, known_log_base(tsg, fragment.left), fragment.right,
            known_log_base(tsg, fragment.right),
        )
        fragment.epoch = tsg.epoch
        waiting.pop_back()
    return 0


cdef inline double known_log_base(const TsgState* tsg, symbol_t part) noexcept nogil:
    return tsg.fragments.fragments[part].log_base if part >= 0 else 0.0


# ---- a fragment cut in two ------------------------------------------------------------------------------------

cdef void weigh_split(const TsgState* tsg, Split* split) noexcept nogil:
    """The weights of the two fragments, by whether the upper one sits at an old or at a new table."""
    cdef double upper_denominator = denominator(split.upper_restaurant)
    cdef double lower_base = exp(split.log_lower)
    cdef double n_customers, n_tables, old_part
    cdef const Tables* tables
    cdef Restaurant after
    cdef int opens
    split.weights[0] = 0.0
    if customers_of(tsg, split.upper):
        tables = &tsg.fragments.fragments[split.upper].tables
        split.weights[0] = old_weight(split.upper_restaurant, tables) / upper_denominator
    split.weights[1] = new_weight(split.upper_restaurant) * exp(split.log_upper) / upper_denominator
    for opens in range(2):
        after = split.lower_restaurant[0]
        n_customers = customers_of(tsg, split.lower)
        n_tables = tsg.fragments.fragments[split.lower].tables.n_tables if n_customers > 0.0 else 0.0
        if split.upper_restaurant == split.lower_restaurant:
            after.n_customers += 1
            after.n_tables += opens
        if split.upper == split.lower and split.lower != MISSING:
            n_customers += 1.0
            n_tables += opens
        old_part = n_customers - after.discount * n_tables if n_customers > 0.0 else 0.0
        split.weights[opens] *= (old_part + new_weight(&after) * lower_base) / denominator(&after)


cdef int seat_split(TsgState* tsg, Split* split, double lower_base, Rng* rng) except -1 nogil:
    """Seat the two fragments, which are stored now, as their weights say; the lower one has this base probability."""
    cdef Tables* tables = &tsg.fragments.fragments[split.upper].tables
    cdef int32_t size = 0
    cdef bint opens = rng.uniform() * (split.weights[0] + split.weights[1]) >= split.weights[0]
    if not opens:
        size = draw_table(tables, split.upper_restaurant.discount, rng)
    grow(split.upper_restaurant, tables, size)
    seat(split.lower_restaurant, &tsg.fragments.fragments[split.lower].tables, lower_base, rng)
    return 0
