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


cdef struct SiteMove:
    # One step for a node: the fragment around it, whose root is above, and if the node is a site the one below.
    int32_t node
    int32_t root
    bint was_site
    bint was_refined             # whether the fragment at the root had internal nodes
    bint is_site
    int32_t root_dishes[2]       # of the root with the node internal, and with the node as a site
    int32_t node_dish            # of the node as a site
    int32_t old_dishes[2]        # of root and node before
    double log_weights[2]        # of the node internal, and as a site
    Description found            # of the fragment at the root as it was, if it had internal nodes
    LogProduct before            # probabilities of the seats over those of drawing them
    LogProduct after


cdef int resample_site(
    RefinedState* state, int32_t node, double temperature, Rng* rng, SweepCounts* counts
) except -1 nogil:
    """With the counts frozen, the weight of a node as internal is that of one fragment, as a site that of two.

    The base probability of a fragment is a sum over its nodes and most of the cost. The present state comes last, so
    that unseating and, if nothing changes, seating need no sum of their own for the fragment around the node.
    """
    cdef SiteMove move
    move.node, move.root, move.was_site = node, state.trees.parent[node], state.is_site[node]
    move.before, move.after = log_product(), log_product()
    while not state.is_site[move.root]:
        move.root = state.trees.parent[move.root]
    forget_seatings(state)
    unseat_around(state, &move, rng)
    weigh_options(state, &move)
    move.is_site = rng.uniform() * (1.0 + exp(move.log_weights[1] - move.log_weights[0])) >= 1.0
    seat_around(state, &move, rng)
    if is_accepted(&move, temperature, rng):
        counts.n_accepted += 1
        counts.n_changed += move.is_site != move.was_site
        forget_seatings(state)
    else:
        rollback_state(state)
        state.is_site[node] = move.was_site
        state.dish[move.root], state.dish[node] = move.old_dishes[0], move.old_dishes[1]
    counts.n_proposed += 1
    return release_dishes(state, &move)


cdef int unseat_around(RefinedState* state, SiteMove* move, Rng* rng) except -1 nogil:
    """Unseat the one or two fragments at the node; the predictive probability of a refined one is left out."""
    move.old_dishes[0], move.old_dishes[1] = state.dish[move.root], state.dish[move.node]
    if move.was_site:
        unseat_site(state, move.node, rng, ANY_TABLE, &move.before)
    move.was_refined = has_internal_nodes(&state.dishes[state.dish[move.root]])
    if move.was_refined:
        return unseat_refined(state, move.root, rng, ANY_TABLE, &move.before)
    return unseat_site(state, move.root, rng, ANY_TABLE, &move.before)


cdef int weigh_options(RefinedState* state, SiteMove* move) except -1 nogil:
    """The weights of both options, the present one last, and what unseating has left out."""
    cdef int32_t is_site, turn
    cdef double log_below
    state.is_site[move.node] = True
    find_dish_below(state, move.node)
    move.node_dish = state.dish[move.node]
    log_below = log_predictive_at(state, move.node)
    for turn in range(2):
        is_site = move.was_site if turn else not move.was_site
        state.is_site[move.node] = is_site
        find_dish_below(state, move.root)
        move.root_dishes[is_site] = state.dish[move.root]
        if turn and move.was_refined:
            move.log_weights[is_site] = describe_refined(state, move.root, &move.found)
            move.before.log += move.log_weights[is_site]
        else:
            move.log_weights[is_site] = log_predictive_at(state, move.root)
    move.log_weights[1] += log_below
    return 0


cdef int seat_around(RefinedState* state, SiteMove* move, Rng* rng) except -1 nogil:
    """Seat the fragments of the option that was drawn."""
    state.is_site[move.node] = move.is_site
    state.dish[move.root] = move.root_dishes[move.is_site]
    state.dish[move.node] = move.node_dish if move.is_site else -1
    if move.was_refined and move.is_site == move.was_site:
        seat_refined(state, move.root, &move.found, rng, False, &move.after)
    else:
        seat_site(state, move.root, rng, False, &move.after)
    if move.is_site:
        seat_site(state, move.node, rng, False, &move.after)
    return 0


cdef bint is_accepted(SiteMove* move, double temperature, Rng* rng) noexcept nogil:
    cdef double log_ratio = (log_of(&move.after) - log_of(&move.before)) / temperature
    log_ratio = log_ratio + move.log_weights[move.was_site] - move.log_weights[move.is_site]
    return log_ratio >= 0.0 or rng.uniform() < exp(log_ratio)


cdef int release_dishes(RefinedState* state, const SiteMove* move) except -1 nogil:
    """Forget the dishes that nobody has."""
    cdef int item
    for item in range(2):
        if move.old_dishes[item] >= 0:
            release_dish(state, move.old_dishes[item])
    for item in range(2):
        if move.root_dishes[item] >= 0:
            release_dish(state, move.root_dishes[item])
    if move.node_dish >= 0:
        release_dish(state, move.node_dish)
    return 0
