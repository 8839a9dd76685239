"""The base probability of refined fragments with internal nodes, and drawing their refinements.

It sums over the refinements of the internal nodes, by a small inside pass over the fragment:

    P(e | x_k) = product of the probabilities of stopping, or not, below its nodes
                 * sum over refinements of the product of its rules' probabilities

A new table draws one of the refinements from its conditional, from the root down.
"""

from libc.math cimport log
from libc.stdint cimport int16_t, int32_t
from libcpp.vector cimport vector

from tsgkit._backoff cimport RefinedRule
from tsgkit._random cimport Rng
from tsgkit._refined_rules cimport draw_children, n_subcategories, sum_for, sums
from tsgkit._refined_state cimport (
    Derivation,
    FragmentValues,
    RefinedState,
    collect_nodes,
    is_site_at,
    present,
    subcategory_of,
    symbol_at,
)
from tsgkit._trees cimport child
from tsgkit._types cimport symbol_t


cdef const double* child_values(
    const RefinedState* state, const Derivation* derivation, symbol_t below, FragmentValues* at_work,
    vector[double]* one,
) noexcept nogil:
    """Values of the subcategories of a child: those of the inside pass, or the one that a site has."""
    if below >= 0 and not is_site_at(derivation, below):
        return &at_work.values[state.offset[below]]
    one[0][0 if below < 0 else subcategory_of(state, symbol_at(derivation, below))] = 1.0
    return one.data()


cdef void clear_child(
    const RefinedState* state, const Derivation* derivation, symbol_t below, vector[double]* one
) noexcept nogil:
    if below < 0:
        one[0][0] = 0.0
    elif is_site_at(derivation, below):
        one[0][subcategory_of(state, symbol_at(derivation, below))] = 0.0


cdef double log_stops_below(const RefinedState* state, const Derivation* derivation, int32_t node) noexcept nogil:
    """The log probability of stopping, or not, at the children of a node."""
    cdef double result = 0.0
    cdef symbol_t below
    cdef int side
    for side in range(2):
        below = child(&state.trees, node, side)
        if below >= 0 and is_site_at(derivation, below):
            result += state.stops.log_stop[state.trees.label[below]]
        elif below >= 0:
            result += state.stops.log_internal[state.trees.label[below]]
    return result


cdef double log_base_of(
    const RefinedState* state, const Derivation* derivation, int32_t root, FragmentValues* at_work, double* total
) noexcept nogil:
    cdef double result = 0.0
    cdef size_t item
    cdef int32_t node
    cdef const double* left
    cdef const double* right
    collect_nodes(state, derivation, root, at_work)
    item = at_work.n_nodes
    while item > 0:
        item -= 1
        node = at_work.nodes[item]
        result += log_stops_below(state, derivation, node)
        left = child_values(state, derivation, state.trees.left[node], at_work, &at_work.one_left)
        right = child_values(state, derivation, state.trees.right[node], at_work, &at_work.one_right)
        if item == 0:
            total[0] = sum_for(
                &state.rules, state.trees.rule[node], subcategory_of(state, symbol_at(derivation, node)), left, right
            )
            result += log(total[0])
        else:
            result += scaled_sums(state, node, left, right, &at_work.values[state.offset[node]])
        clear_child(state, derivation, state.trees.left[node], &at_work.one_left)
        clear_child(state, derivation, state.trees.right[node], &at_work.one_right)
    return result


cdef double scaled_sums(
    const RefinedState* state, int32_t node, const double* left, const double* right, double* values
) noexcept nogil:
    """The inside values of an internal node, divided by the largest; returns its log."""
    cdef int32_t n_values = n_subcategories(&state.rules, state.trees.label[node]), number
    cdef double largest
    sums(&state.rules, state.trees.rule[node], left, right, values)
    largest = values[0]
    for number in range(1, n_values):
        largest = max(largest, values[number])
    for number in range(n_values):
        values[number] /= largest
    return log(largest)


cdef int draw_refinement(RefinedState* state, vector[int16_t]* refinement, double total, Rng* rng) except -1 nogil:
    cdef Derivation derivation = present(state)
    cdef FragmentValues* at_work = &state.at_work
    cdef RefinedRule drawn
    cdef const double* lefts
    cdef const double* rights
    cdef bint has_left, has_right
    cdef size_t item
    cdef symbol_t left, right
    refinement.clear()
    for item in range(at_work.n_nodes):
        left, right = state.trees.left[at_work.nodes[item]], state.trees.right[at_work.nodes[item]]
        has_left, has_right = left >= 0 and not state.is_site[left], right >= 0 and not state.is_site[right]
        if not has_left and not has_right:
            continue
        drawn.rule = state.trees.rule[at_work.nodes[item]]
        drawn.left = drawn.right = 0
        lefts = child_values(state, &derivation, left, at_work, &at_work.one_left)
        rights = child_values(state, &derivation, right, at_work, &at_work.one_right)
        # Refinements come in the order of `nodes`, without the root.
        if item:
            drawn.parent = refinement[0][item - 1]
            total = sum_for(&state.rules, drawn.rule, drawn.parent, lefts, rights)
        else:
            drawn.parent = subcategory_of(state, state.symbol[at_work.nodes[item]])
        draw_children(&state.rules, &drawn, lefts, rights, total, rng)
        clear_child(state, &derivation, left, &at_work.one_left)
        clear_child(state, &derivation, right, &at_work.one_right)
        if has_left:
            refinement.push_back(<int16_t>drawn.left)
        if has_right:
            refinement.push_back(<int16_t>drawn.right)
    return 0
