"""Blocked Metropolis-Hastings over whole refined trees: sites, or sites and subcategories together.

A proposal unseats a tree, draws a derivation from the frozen counts (`tsgkit._refined_inside`), seats its sites one
after the other, and is accepted or rejected by the true probabilities: also where nothing but seats has changed. What
is rejected is rolled back.
"""

from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._random cimport RNG_REFINED_TREE, RNG_REFINED_TREE_ORDER, Rng, random_order, rng_for
from tsgkit._refined_inside cimport (
    RefinedInside,
    TreeDerivation,
    draw_derivation,
    fill_inside,
    reserve_inside,
    resize_derivation,
)
from tsgkit._refined_seating cimport multiply_predictive, rollback_state, seat_site, unseat_site
from tsgkit._refined_state cimport (
    Derivation,
    RefinedState,
    SweepCounts,
    find_dish_below,
    forget_seatings,
    present,
    release_dish,
    sort_state,
)
from tsgkit._restaurant cimport LogProduct, log_of, log_product
from tsgkit._trees cimport n_nodes_of, n_trees
from tsgkit._types cimport index_t
from tsgkit._worker_pool cimport WorkerPool


cdef cppclass Proposal:
    TreeDerivation derivation
    double log_ratio          # log q of the derivation before - log q of the proposed one


# What a worker needs to make a proposal.
cdef cppclass ProposalBatch:
    const RefinedState* state
    index_t tree
    bint joint
    Rng* rng
    RefinedInside values
    Proposal proposal


cdef int blocked_sweep(
    RefinedState* state, uint64_t iteration, bint joint, double temperature, WorkerPool* pool, SweepCounts* counts
) except -1 nogil:
    """One proposal for every tree, in a random order."""
    cdef ProposalBatch work
    cdef Rng rng
    cdef size_t item
    cdef vector[int64_t] order = random_order(
        n_trees(&state.trees), rng_for(state.seed, iteration, RNG_REFINED_TREE_ORDER, 0)
    )
    work.state, work.joint = state, joint
    work.values.now = 0
    for item in range(order.size()):
        rng = rng_for(state.seed, iteration, RNG_REFINED_TREE, order[item])
        work.tree, work.rng = order[item], &rng
        resample_tree(state, &work, temperature, pool, counts)
    return sort_state(state)


cdef int resample_tree(
    RefinedState* state, ProposalBatch* work, double temperature, WorkerPool* pool, SweepCounts* counts
) except -1 nogil:
    cdef index_t first = state.trees.tree_start[work.tree], node = state.trees.tree_start[work.tree + 1]
    cdef LogProduct before = log_product()
    forget_seatings(state)
    while node > first:
        node -= 1
        if state.is_site[node]:
            unseat_site(state, <int32_t>node, work.rng, &before)
    make_proposal(state, work, pool)
    return accept_or_reject(
        state, work.tree, &work.proposal, log_of(&before), temperature, work.joint, work.rng, counts
    )


cdef int redraw_trees(
    RefinedState* state, uint64_t iteration, const vector[index_t]* trees, WorkerPool* pool
) except -1 nogil:
    cdef ProposalBatch work
    cdef LogProduct ignored = log_product()
    cdef Rng rng
    cdef index_t node
    cdef size_t item
    for item in range(trees.size()):
        rng = rng_for(state.seed, iteration, RNG_REFINED_TREE_ORDER, trees[0][item])
        node = state.trees.tree_start[trees[0][item] + 1]
        while node > state.trees.tree_start[trees[0][item]]:
            node -= 1
            if state.is_site[node]:
                unseat_site(state, <int32_t>node, &rng, &ignored)
                release_dish(state, state.dish[node])
                state.dish[node] = -1
                forget_seatings(state)
    work.state, work.joint = state, True
    work.values.now = 0
    for item in range(trees.size()):
        rng = rng_for(state.seed, iteration, RNG_REFINED_TREE, trees[0][item])
        work.tree, work.rng = trees[0][item], &rng
        make_proposal(state, &work, pool)
        take_proposal(state, work.tree, &work.proposal, True, &rng, &ignored)
        forget_seatings(state)
    return sort_state(state)


cdef int make_proposal(RefinedState* state, ProposalBatch* work, WorkerPool* pool) except -1 nogil:
    reserve_inside(state, &work.values)
    resize_derivation(&work.proposal.derivation, n_nodes_of(&state.trees, work.tree))
    pool.run(1, 1, propose_item, work)
    return 0


cdef int take_proposal(
    RefinedState* state, index_t tree, Proposal* proposal, bint joint, Rng* rng, LogProduct* product
) except -1 nogil:
    """Seat the proposal for a tree, which is not seated; the derivation before it is then in its place."""
    cdef index_t first = state.trees.tree_start[tree], end = state.trees.tree_start[tree + 1], node = end
    swap_derivation(state, &proposal.derivation, first)
    while node > first:
        node -= 1
        if state.is_site[node] and state.dish[node] < 0:
            find_dish_below(state, <int32_t>node)
    for node in range(first, end):
        if state.is_site[node]:
            seat_site(state, <int32_t>node, rng, joint, product)
    return 0


cdef int accept_or_reject(
    RefinedState* state, index_t tree, Proposal* proposal, double log_old, double temperature, bint joint, Rng* rng,
    SweepCounts* counts,
) except -1 nogil:
    """Seat the proposal for a tree, and keep it or roll back; the log says how the tree was unseated."""
    cdef index_t first = state.trees.tree_start[tree], node
    cdef LogProduct after = log_product()
    cdef double log_ratio
    take_proposal(state, tree, proposal, joint, rng, &after)
    log_ratio = (log_of(&after) - log_old) / temperature + proposal.log_ratio
    counts.n_proposed += 1
    if log_ratio >= 0.0 or rng.uniform() < exp(log_ratio):
        counts.n_accepted += 1
        counts.n_changed += has_changed(state, first, &proposal.derivation)
        forget_seatings(state)
    else:
        rollback_state(state)
        swap_derivation(state, &proposal.derivation, first)
    for node in range(n_nodes_of(&state.trees, tree)):
        if proposal.derivation.dish[node] >= 0:
            release_dish(state, proposal.derivation.dish[node])
    return 0


cdef bint has_changed(const RefinedState* state, index_t first, const TreeDerivation* before) noexcept nogil:
    """Whether the fragments of a tree are others than before."""
    cdef size_t node
    for node in range(before.dish.size()):
        if state.dish[first + node] != before.dish[node]:
            return True
    return False


cdef void swap_derivation(RefinedState* state, TreeDerivation* other, index_t first) noexcept nogil:
    """Exchange the derivation of a tree with another one."""
    cdef size_t item
    for item in range(other.is_site.size()):
        other.is_site[item], state.is_site[first + item] = state.is_site[first + item], other.is_site[item]
        other.symbol[item], state.symbol[first + item] = state.symbol[first + item], other.symbol[item]
        other.dish[item], state.dish[first + item] = state.dish[first + item], other.dish[item]


# ---- proposals ------------------------------------------------------------------------------------------------

# What follows runs on worker threads, which raise no Python exception; see `tsgkit._worker_pool`.

cdef void propose_item(void* context, int item, int thread) noexcept nogil:
    cdef ProposalBatch* work = <ProposalBatch*>context
    propose(work.state, work.tree, work.joint, &work.values, &work.proposal, work.rng)


cdef void propose(
    const RefinedState* state, index_t tree, bint joint, RefinedInside* values, Proposal* proposal, Rng* rng
) noexcept nogil:
    """Draw a derivation of a tree from the frozen grammar; its log q against that of the present one."""
    cdef TreeDerivation* drawn = &proposal.derivation
    cdef index_t first = state.trees.tree_start[tree], node
    cdef LogProduct before = log_product(), after = log_product()
    cdef Derivation old = present(state), new
    fill_inside(state, values, tree, joint)
    draw_derivation(state, values, tree, joint, drawn, rng)
    new.is_site = &drawn.is_site[0]
    new.symbol = &drawn.symbol[0]
    new.first = first
    for node in range(n_nodes_of(&state.trees, tree)):
        if drawn.dish[node] >= 0 and drawn.dish[node] == state.dish[first + node]:
            continue
        if drawn.is_site[node]:
            multiply_predictive(state, &new, <int32_t>(first + node), drawn.dish[node], &values.at_work, &after)
        if state.is_site[first + node]:
            multiply_predictive(
                state, &old, <int32_t>(first + node), state.dish[first + node], &values.at_work, &before
            )
    proposal.log_ratio = log_of(&before) - log_of(&after)
