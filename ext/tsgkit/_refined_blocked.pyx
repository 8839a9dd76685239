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


# What the workers need to make the proposals of a batch.
cdef cppclass ProposalBatch:
    const RefinedState* state
    const int64_t* trees
    uint64_t iteration
    bint joint
    Rng* rng                         # of the only tree of a batch of one; NULL: each tree's own for proposals
    vector[RefinedInside] values     # per thread
    vector[Proposal] proposals       # per tree of the batch
    vector[int64_t] frozen           # per site of the batch: the table that its customer left when it was frozen


# ---- sweeps ---------------------------------------------------------------------------------------------------

cdef int start_batches(
    ProposalBatch* work, const RefinedState* state, uint64_t iteration, bint joint, int batch, int n_threads
) except -1 nogil:
    cdef int thread
    work.state, work.iteration, work.joint = state, iteration, joint
    work.proposals.resize(batch)
    work.values.resize(n_threads)
    for thread in range(n_threads):
        work.values[thread].now = 0
    return 0


cdef int blocked_sweep(
    RefinedState* state, uint64_t iteration, bint joint, int batch, int n_threads, double temperature, WorkerPool* pool,
    SweepCounts* counts,
) except -1 nogil:
    """One proposal for every tree, in a random order."""
    cdef ProposalBatch work
    cdef index_t first = 0, n_items = n_trees(&state.trees)
    cdef int size
    cdef vector[int64_t] order = random_order(n_items, rng_for(state.seed, iteration, RNG_REFINED_TREE_ORDER, 0))
    start_batches(&work, state, iteration, joint, batch, n_threads)
    while first < n_items:
        size = <int>min(<index_t>batch, n_items - first)
        work.trees = &order[first]
        if size == 1:
            move_tree(state, &work, temperature, pool, counts)
        else:
            move_batch(state, &work, size, temperature, pool, counts)
        first += size
    return sort_state(state)


cdef int make_proposals(RefinedState* state, ProposalBatch* work, int size, WorkerPool* pool) except -1 nogil:
    """Proposals for trees that are not seated, or frozen; all memory that can be known is taken before."""
    cdef int item
    cdef size_t thread
    for item in range(size):
        resize_derivation(&work.proposals[item].derivation, n_nodes_of(&state.trees, work.trees[item]))
    for thread in range(work.values.size()):
        reserve_inside(state, &work.values[thread])
    pool.run(<int>work.values.size(), size, propose_item, work)
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
    RefinedState* state, ProposalBatch* work, double temperature, WorkerPool* pool, SweepCounts* counts
) except -1 nogil:
    """Metropolis-Hastings for one tree."""
    cdef index_t tree = work.trees[0]
    cdef Rng rng = rng_for(state.seed, work.iteration, RNG_REFINED_TREE, tree)
    cdef LogProduct before = log_product()
    forget_seatings(state)
    unseat_tree(state, tree, NULL, &rng, &before)
    work.rng = &rng
    make_proposals(state, work, 1, pool)
    return accept_or_reject(
        state, tree, &work.proposals[0], log_of(&before), temperature, work.joint, &rng, counts
    )


cdef int move_batch(
    RefinedState* state, ProposalBatch* work, int size, double temperature, WorkerPool* pool, SweepCounts* counts
) except -1 nogil:
    """Metropolis-Hastings for a batch of trees."""
    cdef index_t tree, n_unseated = 0
    cdef LogProduct before
    cdef Rng rng
    cdef int item
    freeze_batch(state, work, size)
    work.rng = NULL
    make_proposals(state, work, size, pool)
    rollback_state(state)
    for item in range(size):
        tree = work.trees[item]
        rng = rng_for(state.seed, work.iteration, RNG_REFINED_TREE, tree)
        before = log_product()
        forget_seatings(state)
        n_unseated += unseat_tree(state, tree, &work.frozen[n_unseated], &rng, &before)
        accept_or_reject(
            state, tree, &work.proposals[item], log_of(&before), temperature, work.joint, &rng, counts
        )
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
    start_batches(&work, state, iteration, True, 1, 1)
    for item in range(trees.size()):
        rng = rng_for(state.seed, iteration, RNG_REFINED_TREE, trees[0][item])
        work.trees = &trees[0][item]
        work.rng = &rng
        make_proposals(state, &work, 1, pool)
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
    cdef index_t tree = work.trees[item]
    cdef Rng rng
    if work.rng is NULL:
        rng = rng_for(work.state.seed, work.iteration, RNG_REFINED_PROPOSE, tree)
        propose(work.state, tree, work.joint, &work.values[thread], &work.proposals[item], &rng)
    else:
        propose(work.state, tree, work.joint, &work.values[thread], &work.proposals[item], work.rng)


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
