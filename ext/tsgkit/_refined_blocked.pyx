"""Blocked Metropolis-Hastings over whole refined trees: sites, or sites and subcategories together.

The proposals of a batch are drawn from the counts without any of its trees (`tsgkit._refined_inside`), by worker
threads. Then they are accepted or rejected one by one, by the true probabilities. Each tree has its streams of random
numbers: the result depends on the seed and on the size of the batch, not on the number of threads.

Most sites of a proposal order what they ordered before. Their customers stay where they sit, since the reverse move
would keep them as well: with r the counts without the batch, and c those with everybody but the customers who move,

    accept with min(1, P(new customers | c) q(old derivation | r) / [P(old customers | c) q(new derivation | r)])

where P, as always, is of seats over that of drawing them. Seats themselves are resampled when a tree's turn comes to
have all its customers moved, once in so many sweeps. What is rejected is rolled back.
"""

from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._random cimport (
    RNG_REFINED_PROPOSE,
    RNG_REFINED_TREE,
    RNG_REFINED_TREE_ORDER,
    Rng,
    random_order,
    rng_for,
)
from tsgkit._refined_freezing cimport freeze_trees, restore_trees
from tsgkit._refined_inside cimport (
    RefinedInside,
    TreeDerivation,
    draw_derivation,
    fill_inside,
    reserve_inside,
    resize_derivation,
)
from tsgkit._refined_seating cimport ANY_TABLE, multiply_predictive, rollback_state, seat_site, unseat_site
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
from tsgkit._refined_tracking cimport forget_tracked
from tsgkit._restaurant cimport LogProduct, log_of, log_product
from tsgkit._trees cimport n_nodes_of, n_trees
from tsgkit._types cimport index_t
from tsgkit._worker_pool cimport WorkerPool

cdef enum:
    ALL_EVERY = 8    # sweeps after which all customers of a tree move, even those of sites that have not changed


# ---- sweeps ---------------------------------------------------------------------------------------------------

cdef void start_batches(
    ProposalBatch* work, RefinedState* state, uint64_t iteration, bint joint, double temperature, int n_threads
) noexcept nogil:
    work.state, work.iteration, work.joint = state, iteration, joint
    work.temperature, work.n_threads = temperature, n_threads


cdef int sweep_trees(
    ProposalBatch* work, const ProposalKind* kind, int batch, WorkerPool* pool, SweepCounts* counts
) except -1 nogil:
    cdef RefinedState* state = work.state
    cdef index_t first = 0, n_items = n_trees(&state.trees)
    cdef int size
    cdef vector[int64_t] order = random_order(
        n_items, rng_for(state.seed, work.iteration, RNG_REFINED_TREE_ORDER, 0)
    )
    work.proposals.resize(batch)
    while first < n_items:
        size = <int>min(<index_t>batch, n_items - first)
        work.trees = &order[first]
        move_batch(work, kind, size, pool, counts)
        first += size
    return sort_state(state)


cdef int make_proposals(ProposalBatch* work, const ProposalKind* kind, int size, WorkerPool* pool) except -1 nogil:
    """Proposals for trees that are not seated, or frozen."""
    cdef int item
    for item in range(size):
        resize_derivation(&work.proposals[item].derivation, n_nodes_of(&work.state.trees, work.trees[item]))
        work.proposals[item].is_kept.resize(n_nodes_of(&work.state.trees, work.trees[item]))
        work.proposals[item].log_beside = 0.0
    kind.reserve(kind.context, size)
    pool.run(work.n_threads, size, kind.propose, kind.context)
    return 0


cdef int move_batch(
    ProposalBatch* work, const ProposalKind* kind, int size, WorkerPool* pool, SweepCounts* counts
) except -1 nogil:
    """Metropolis-Hastings for a batch of trees."""
    cdef int item
    freeze_trees(&work.frozen, work.state, work.trees, size, work.iteration, work.n_threads, pool)
    make_proposals(work, kind, size, pool)
    restore_trees(&work.frozen, work.n_threads, pool)
    for item in range(size):
        accept_or_reject(work, kind, item, counts)
    forget_tracked(work.state)
    return 0


cdef int redraw_trees(
    RefinedState* state, uint64_t iteration, const vector[index_t]* trees, WorkerPool* pool
) except -1 nogil:
    cdef ProposalBatch work
    cdef SiteProposals proposals
    cdef ProposalKind kind = site_proposals(&work, &proposals)
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
                unseat_site(state, <int32_t>node, &rng, ANY_TABLE, NULL)
                release_dish(state, state.dish[node])
                state.dish[node] = -1
                forget_seatings(state)
    start_batches(&work, state, iteration, True, 1.0, 1)
    work.proposals.resize(1)
    for item in range(trees.size()):
        rng = rng_for(state.seed, iteration, RNG_REFINED_TREE, trees[0][item])
        work.trees = &trees[0][item]
        make_proposals(&work, &kind, 1, pool)
        take_proposal(state, trees[0][item], &work.proposals[0], True, &rng, &ignored)
        forget_seatings(state)
    return sort_state(state)


cdef int unseat_changed(
    RefinedState* state, index_t tree, const uint8_t* is_kept, const int64_t* frozen, Rng* rng, LogProduct* product
) except -1 nogil:
    """Unseat the customers of a tree who move, from the last to the root: from the tables that they left before."""
    cdef index_t first = state.trees.tree_start[tree], node = state.trees.tree_start[tree + 1]
    while node > first:
        node -= 1
        if state.is_site[node] and not is_kept[node - first]:
            unseat_site(state, <int32_t>node, rng, frozen[node - first], product)
    return 0


cdef int take_proposal(
    RefinedState* state, index_t tree, Proposal* proposal, bint joint, Rng* rng, LogProduct* product
) except -1 nogil:
    """Seat the customers of the proposal for a tree who move; the derivation before it is then in its place."""
    cdef index_t first = state.trees.tree_start[tree], end = state.trees.tree_start[tree + 1], node = end
    swap_derivation(state, &proposal.derivation, first)
    while node > first:
        node -= 1
        if state.is_site[node] and state.dish[node] < 0:
            find_dish_below(state, <int32_t>node)
    for node in range(first, end):
        if state.is_site[node] and not proposal.is_kept[node - first]:
            seat_site(state, <int32_t>node, rng, joint, product)
    return 0


cdef int accept_or_reject(
    ProposalBatch* work, const ProposalKind* kind, int item, SweepCounts* counts
) except -1 nogil:
    """Seat the proposal for a tree, and keep it or roll back."""
    cdef RefinedState* state = work.state
    cdef Proposal* proposal = &work.proposals[item]
    cdef index_t first = state.trees.tree_start[work.trees[item]], node
    cdef LogProduct before = log_product(), after = log_product()
    cdef Rng rng = rng_for(state.seed, work.iteration, RNG_REFINED_TREE, work.trees[item])
    cdef double log_ratio
    forget_seatings(state)
    unseat_changed(
        state, work.trees[item], proposal.is_kept.data(), &work.frozen.table[work.frozen.first[item]], &rng, &before
    )
    if kind.exchange is not NULL:
        kind.exchange(kind.context, item)
    take_proposal(state, work.trees[item], proposal, work.joint, &rng, &after)
    log_ratio = (log_of(&after) - log_of(&before) + proposal.log_beside) / work.temperature + proposal.log_ratio
    counts.n_proposed += 1
    if log_ratio >= 0.0 or rng.uniform() < exp(log_ratio):
        counts.n_accepted += 1
        counts.n_changed += has_changed(state, first, &proposal.derivation)
        forget_seatings(state)
    else:
        rollback_state(state)
        swap_derivation(state, &proposal.derivation, first)
        if kind.exchange is not NULL:
            kind.exchange(kind.context, item)
    for node in range(<index_t>proposal.derivation.dish.size()):
        if proposal.derivation.dish[node] >= 0 and not proposal.is_kept[node]:
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


# ---- proposals of sites ---------------------------------------------------------------------------------------

cdef cppclass SiteProposals:
    ProposalBatch* work
    vector[RefinedInside] values     # per thread


cdef ProposalKind site_proposals(ProposalBatch* work, SiteProposals* proposals) noexcept nogil:
    cdef ProposalKind kind
    proposals.work = work
    kind.context, kind.reserve, kind.propose = proposals, reserve_sites, propose_sites
    kind.exchange = NULL
    return kind


cdef int blocked_sweep(
    RefinedState* state, uint64_t iteration, bint joint, int batch, int n_threads, double temperature, WorkerPool* pool,
    SweepCounts* counts,
) except -1 nogil:
    cdef ProposalBatch work
    cdef SiteProposals proposals
    cdef ProposalKind kind = site_proposals(&work, &proposals)
    start_batches(&work, state, iteration, joint, temperature, n_threads)
    return sweep_trees(&work, &kind, batch, pool, counts)


cdef int reserve_sites(void* context, int size) except -1 nogil:
    cdef SiteProposals* proposals = <SiteProposals*>context
    cdef size_t thread, n_threads = proposals.values.size()
    if n_threads == 0:
        n_threads = proposals.work.n_threads
        proposals.values.resize(n_threads)
        for thread in range(n_threads):
            proposals.values[thread].now = 0
    for thread in range(n_threads):
        reserve_inside(proposals.work.state, &proposals.values[thread])
    return 0


# What follows runs on worker threads, which raise no Python exception; see `tsgkit._worker_pool`.

cdef Rng rng_of_proposal(const ProposalBatch* work, int item) noexcept nogil:
    return rng_for(work.state.seed, work.iteration, RNG_REFINED_PROPOSE, work.trees[item])


cdef void keep_customers(ProposalBatch* work, int item) noexcept nogil:
    cdef const RefinedState* state = work.state
    cdef Proposal* proposal = &work.proposals[item]
    cdef index_t tree = work.trees[item], first = state.trees.tree_start[tree], node
    cdef bint all_move = (<uint64_t>tree + work.iteration) % ALL_EVERY == 0
    for node in range(n_nodes_of(&state.trees, tree)):
        proposal.is_kept[node] = (
            not all_move and proposal.derivation.dish[node] >= 0
            and proposal.derivation.dish[node] == state.dish[first + node]
        )


cdef void propose_sites(void* context, int item, int thread) noexcept nogil:
    cdef SiteProposals* proposals = <SiteProposals*>context
    cdef ProposalBatch* work = proposals.work
    cdef Rng rng = rng_of_proposal(work, item)
    propose(work.state, work.trees[item], work.joint, &proposals.values[thread], &work.proposals[item], &rng)
    keep_customers(work, item)


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
