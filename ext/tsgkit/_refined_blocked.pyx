"""Blocked Metropolis-Hastings over whole refined trees: sites, or sites and subcategories together.

A proposal for a tree is drawn from the counts without it (`tsgkit._refined_inside`). Its sites are seated one after the
other, and it is accepted or rejected by the true probabilities: also where nothing but seats has changed. What is
rejected is rolled back.

The proposals of a batch are made against the counts without any of its trees, by worker threads, and then accepted or
rejected one by one. Each tree has its streams of random numbers: the result depends on the seed and on the size of the
batch, not on the number of threads.
"""

from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._random cimport (
    RNG_REFINED_FREEZE,
    RNG_REFINED_PROPOSE,
    RNG_REFINED_TREE,
    RNG_REFINED_TREE_ORDER,
    Rng,
    random_order,
    rng_for,
)
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
        if size == 1:
            move_tree(work, kind, pool, counts)
        else:
            move_batch(work, kind, size, pool, counts)
        first += size
    return sort_state(state)


cdef int make_proposals(ProposalBatch* work, const ProposalKind* kind, int size, WorkerPool* pool) except -1 nogil:
    """Proposals for trees that are not seated, or frozen."""
    cdef int item
    for item in range(size):
        resize_derivation(&work.proposals[item].derivation, n_nodes_of(&work.state.trees, work.trees[item]))
        work.proposals[item].log_beside = 0.0
    kind.reserve(kind.context, size)
    pool.run(work.n_threads, size, kind.propose, kind.context)
    return 0


cdef index_t unseat_tree(
    RefinedState* state, index_t tree, const int64_t* frozen, Rng* rng, LogProduct* product
) except -1 nogil:
    """Unseat the sites of a tree, from the last to the root; if it was frozen, from the same tables. How many."""
    cdef index_t node = state.trees.tree_start[tree + 1], n_unseated = 0
    cdef int64_t table = ANY_TABLE
    while node > state.trees.tree_start[tree]:
        node -= 1
        if state.is_site[node]:
            if frozen is not NULL:
                table = frozen[n_unseated]
            unseat_site(state, <int32_t>node, rng, table, product)
            n_unseated += 1
    return n_unseated


cdef int move_tree(
    ProposalBatch* work, const ProposalKind* kind, WorkerPool* pool, SweepCounts* counts
) except -1 nogil:
    """Metropolis-Hastings for one tree."""
    cdef Rng rng = rng_for(work.state.seed, work.iteration, RNG_REFINED_TREE, work.trees[0])
    cdef LogProduct before = log_product()
    forget_seatings(work.state)
    unseat_tree(work.state, work.trees[0], NULL, &rng, &before)
    work.rng = &rng
    make_proposals(work, kind, 1, pool)
    return accept_or_reject(work, kind, 0, log_of(&before), &rng, counts)


cdef int move_batch(
    ProposalBatch* work, const ProposalKind* kind, int size, WorkerPool* pool, SweepCounts* counts
) except -1 nogil:
    """Metropolis-Hastings for a batch of trees."""
    cdef RefinedState* state = work.state
    cdef index_t n_unseated = 0
    cdef LogProduct before
    cdef Rng rng
    cdef int item
    freeze_batch(state, work, size)
    work.rng = NULL
    make_proposals(work, kind, size, pool)
    rollback_state(state)
    for item in range(size):
        rng = rng_for(state.seed, work.iteration, RNG_REFINED_TREE, work.trees[item])
        before = log_product()
        forget_seatings(state)
        n_unseated += unseat_tree(state, work.trees[item], &work.frozen[n_unseated], &rng, &before)
        accept_or_reject(work, kind, item, log_of(&before), &rng, counts)
    forget_tracked(state)
    return 0


cdef int freeze_batch(RefinedState* state, ProposalBatch* work, int size) except -1 nogil:
    """Unseat all trees of a batch, and note which tables they left."""
    cdef index_t node
    cdef Rng rng
    cdef int item
    forget_seatings(state)
    state.tracked.is_active = True
    work.frozen.clear()
    for item in range(size):
        rng = rng_for(state.seed, work.iteration, RNG_REFINED_FREEZE, work.trees[item])
        node = state.trees.tree_start[work.trees[item] + 1]
        while node > state.trees.tree_start[work.trees[item]]:
            node -= 1
            if state.is_site[node]:
                unseat_site(state, <int32_t>node, &rng, ANY_TABLE, NULL)
                work.frozen.push_back(state.tracked.last_left)
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
        work.rng = &rng
        make_proposals(&work, &kind, 1, pool)
        take_proposal(state, trees[0][item], &work.proposals[0], True, &rng, &ignored)
        forget_seatings(state)
    return sort_state(state)


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
    ProposalBatch* work, const ProposalKind* kind, int item, double log_old, Rng* rng, SweepCounts* counts
) except -1 nogil:
    """Seat the proposal for a tree, and keep it or roll back; the log says how the tree was unseated."""
    cdef RefinedState* state = work.state
    cdef Proposal* proposal = &work.proposals[item]
    cdef index_t first = state.trees.tree_start[work.trees[item]], node
    cdef LogProduct after = log_product()
    cdef double log_ratio
    if kind.exchange is not NULL:
        kind.exchange(kind.context, item)
    take_proposal(state, work.trees[item], proposal, work.joint, rng, &after)
    log_ratio = (log_of(&after) - log_old + proposal.log_beside) / work.temperature + proposal.log_ratio
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

cdef Rng* rng_of_proposal(const ProposalBatch* work, int item, Rng* own) noexcept nogil:
    if work.rng is not NULL:
        return work.rng
    own[0] = rng_for(work.state.seed, work.iteration, RNG_REFINED_PROPOSE, work.trees[item])
    return own


cdef void propose_sites(void* context, int item, int thread) noexcept nogil:
    cdef SiteProposals* proposals = <SiteProposals*>context
    cdef ProposalBatch* work = proposals.work
    cdef Rng own
    propose(
        work.state, work.trees[item], work.joint, &proposals.values[thread], &work.proposals[item],
        rng_of_proposal(work, item, &own),
    )


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
