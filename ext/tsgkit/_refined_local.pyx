"""Single sites of refined trees: whether a node is one is drawn by frozen counts, seated, and accepted or rejected.

Stage 2 of the symbol-refined grammar: subcategories are given, z_v is sampled node by node in a random order.
"""

from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._random cimport RNG_REFINED_SITE, RNG_REFINED_SITE_ORDER, Rng, random_order, rng_for
from tsgkit._refined_seating cimport (
    ANY_TABLE,
    Description,
    describe_refined,
    log_predictive_at,
    rollback_state,
    seat_refined,
    seat_site,
    unseat_refined,
    unseat_site,
)
from tsgkit._refined_state cimport (
    RefinedState,
    SweepCounts,
    find_dish_below,
    forget_seatings,
    has_internal_nodes,
    release_dish,
    sort_state,
)
from tsgkit._restaurant cimport LogProduct, log_of, log_product
from tsgkit._trees cimport n_nodes


cdef int local_sweep(
    RefinedState* state, uint64_t iteration, double temperature, SweepCounts* counts
) except -1 nogil:
    """One step for every node but the roots, in a random order."""
    cdef Rng rng
    cdef size_t item
    cdef vector[int64_t] order = random_order(
        n_nodes(&state.trees), rng_for(state.seed, iteration, RNG_REFINED_SITE_ORDER, 0)
    )
    for item in range(order.size()):
        if state.trees.parent[order[item]] >= 0:
            rng = rng_for(state.seed, iteration, RNG_REFINED_SITE, order[item])
            resample_site(state, <int32_t>order[item], temperature, &rng, counts)
    return sort_state(state)


cdef int resample_site(
    RefinedState* state, int32_t node, double temperature, Rng* rng, SweepCounts* counts
) except -1 nogil:
    """With the counts frozen, the weight of a node as internal is that of one fragment, as a site that of two.

    The base probability of a fragment is a sum over its nodes and most of the cost. The present state comes last, so
    that unseating and, if nothing changes, seating need no sum of their own for the fragment around the node.
    """
    cdef int32_t root = state.trees.parent[node], item, turn
    cdef int32_t released[5]       # dishes before, and with the node internal and as a site
    cdef double log_weights[2]
    cdef double log_ratio, log_below
    cdef Description found
    cdef LogProduct before = log_product(), after = log_product()
    cdef bint was_site = state.is_site[node], is_site, was_refined
    while not state.is_site[root]:
        root = state.trees.parent[root]
    forget_seatings(state)
    released[0], released[1] = state.dish[root], state.dish[node]
    if was_site:
        unseat_site(state, node, rng, ANY_TABLE, &before)
    was_refined = has_internal_nodes(&state.dishes[state.dish[root]])
    if was_refined:
        unseat_refined(state, root, rng, ANY_TABLE, &before)
    else:
        unseat_site(state, root, rng, ANY_TABLE, &before)
    state.is_site[node] = True
    find_dish_below(state, node)
    released[4] = state.dish[node]
    log_below = log_predictive_at(state, node)
    for turn in range(2):
        item = was_site if turn else not was_site
        state.is_site[node] = item
        find_dish_below(state, root)
        released[2 + item] = state.dish[root]
        if turn and was_refined:
            log_weights[item] = describe_refined(state, root, &found)
            before.log += log_weights[item]
        else:
            log_weights[item] = log_predictive_at(state, root)
    log_weights[1] += log_below
    is_site = rng.uniform() * (1.0 + exp(log_weights[1] - log_weights[0])) >= 1.0
    state.is_site[node] = is_site
    state.dish[root], state.dish[node] = released[2 + is_site], released[4] if is_site else -1
    if was_refined and is_site == was_site:
        seat_refined(state, root, &found, rng, False, &after)
    else:
        seat_site(state, root, rng, False, &after)
    if is_site:
        seat_site(state, node, rng, False, &after)
    log_ratio = (log_of(&after) - log_of(&before)) / temperature + log_weights[was_site] - log_weights[is_site]
    counts.n_proposed += 1
    if log_ratio >= 0.0 or rng.uniform() < exp(log_ratio):
        counts.n_accepted += 1
        counts.n_changed += is_site != was_site
        forget_seatings(state)
    else:
        rollback_state(state)
        state.is_site[node] = was_site
        state.dish[root], state.dish[node] = released[0], released[1]
    for item in range(5):
        if released[item] >= 0:
            release_dish(state, released[item])
    return 0
