"""Blocked Metropolis-Hastings over the derivations of whole trees.

A derivation is drawn from the grammar transform of the counts without the tree (`tsgkit._tsg_inside`) and accepted with
probability

    min(1, [ P(new) / q(new) ] [ q(old) / P(old) ])

where q(derivation) = prod_e (w_e + b P0(e)) / I(root) by the frozen counts, both ways to a fragment summed, and P is
the product of the predictive probabilities while the fragments are seated one by one.

The proposals of a batch are made against the counts without any of its trees, by worker threads, and then accepted or
rejected one by one. Each tree has its streams of random numbers: the result depends on the seed and on the size of the
batch, not on the number of threads.
"""

from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._codes cimport INTERNAL
from tsgkit._fragments cimport release_fragment
from tsgkit._random cimport RNG_FREEZE, RNG_PROPOSE, RNG_TREE, RNG_TREE_ORDER, Rng, random_order
from tsgkit._restaurant cimport LogProduct, SeatingLog, log_of, log_product
from tsgkit._trees cimport n_nodes_of, n_trees
from tsgkit._tsg_inside cimport InsideValues, draw_derivation, inside, reserve_inside
from tsgkit._tsg_state cimport (
    SweepCounts, TreeDerivation, TsgState, describe, describe_present, forget_tracked, freeze_tree, log_insertions,
    multiply_predictive, resize_derivation, rollback_seatings, seat_tree, tsg_rng, unseat_tree,
)
from tsgkit._types cimport index_t
from tsgkit._worker_pool cimport WorkerPool


cdef cppclass Proposal:
    TreeDerivation before
    TreeDerivation after
    double log_before      # log q of both
    double log_after


# What the workers need to make the proposals of a batch.
cdef cppclass ProposalBatch:
    const TsgState* tsg
    const int64_t* trees
    uint64_t iteration
    Rng* rng                              # of the only tree of a batch of one; NULL: each tree's own for proposals
    vector[InsideValues] inside_values    # per thread
    vector[Proposal] proposals            # per tree of the batch


# ---- sweeps ---------------------------------------------------------------------------------------------------

cdef int blocked_sweep(
    TsgState* tsg, uint64_t iteration, int batch, int n_threads, double temperature, WorkerPool* pool,
    SweepCounts* counts,
) except -1 nogil:
    cdef vector[int64_t] order = random_order(n_trees(&tsg.trees), tsg_rng(tsg, iteration, RNG_TREE_ORDER, 0))
    cdef ProposalBatch work
    cdef SeatingLog seatings
    cdef vector[int32_t] frozen
    cdef index_t first = 0, n_items = <index_t>order.size()
    cdef int size
    work.tsg, work.iteration = tsg, iteration
    work.inside_values.resize(n_threads)
    work.proposals.resize(batch)
    counts.n_proposed = counts.n_accepted = counts.n_changed = 0
    while first < n_items:
        size = <int>min(<index_t>batch, n_items - first)
        work.trees = &order[first]
        reserve_batch(&work, size)
        if size == 1:
            move_tree(tsg, &work, temperature, pool, &seatings, counts)
        else:
            move_batch(tsg, &work, size, n_threads, temperature, pool, &seatings, &frozen, counts)
        first += size
    return 0


cdef int reserve_batch(ProposalBatch* work, int size) except -1 nogil:
    """Room for the trees of a batch, so that workers allocate only what they cannot know before."""
    cdef index_t n_nodes, largest = 0
    cdef int item
    cdef size_t thread
    for item in range(size):
        n_nodes = n_nodes_of(&work.tsg.trees, work.trees[item])
        resize_derivation(&work.proposals[item].before, n_nodes)
        resize_derivation(&work.proposals[item].after, n_nodes)
        largest = max(largest, n_nodes)
    for thread in range(work.inside_values.size()):
        reserve_inside(work.tsg, &work.inside_values[thread], largest)
    return 0


cdef int move_tree(
    TsgState* tsg, ProposalBatch* work, double temperature, WorkerPool* pool, SeatingLog* seatings, SweepCounts* counts
) except -1 nogil:
    """Metropolis-Hastings for one tree."""
    cdef index_t tree = work.trees[0]
    cdef Rng rng = tsg_rng(tsg, work.iteration, RNG_TREE, tree)
    cdef double log_old
    seatings.entries.clear()
    describe_present(tsg, tree, &work.proposals[0].before)
    unseat_tree(tsg, tree, &work.proposals[0].before, seatings, &rng, NULL, &log_old)
    work.rng = &rng
    pool.run(1, 1, propose_item, work)
    return accept_or_reject(tsg, tree, &work.proposals[0], log_old, temperature, seatings, &rng, counts)


cdef int move_batch(
    TsgState* tsg, ProposalBatch* work, int size, int n_threads, double temperature, WorkerPool* pool,
    SeatingLog* seatings, vector[int32_t]* frozen, SweepCounts* counts,
) except -1 nogil:
    """Metropolis-Hastings for a batch of trees."""
    cdef index_t tree
    cdef int item
    cdef size_t n_unseated = 0
    cdef Rng rng
    cdef double log_old
    frozen.clear()
    seatings.entries.clear()
    for item in range(size):
        tree = work.trees[item]
        rng = tsg_rng(tsg, work.iteration, RNG_FREEZE, tree)
        freeze_tree(tsg, tree, seatings, frozen, &rng)
    work.rng = NULL
    pool.run(n_threads, size, propose_item, work)
    rollback_seatings(tsg, seatings)
    for item in range(size):
        tree = work.trees[item]
        rng = tsg_rng(tsg, work.iteration, RNG_TREE, tree)
        seatings.entries.clear()
        unseat_tree(tsg, tree, &work.proposals[item].before, seatings, &rng, &frozen[0][n_unseated], &log_old)
        n_unseated += seatings.entries.size()
        accept_or_reject(tsg, tree, &work.proposals[item], log_old, temperature, seatings, &rng, counts)
    forget_tracked(tsg)
    return 0


cdef int accept_or_reject(
    TsgState* tsg, index_t tree, Proposal* proposal, double log_old, double temperature, SeatingLog* seatings, Rng* rng,
    SweepCounts* counts,
) except -1 nogil:
    """Seat the proposal for a tree, and keep it or roll back; the log says how the tree was unseated."""
    cdef size_t n_unseated = seatings.entries.size(), entry
    cdef double log_new, log_ratio
    seat_tree(tsg, tree, &proposal.after, seatings, rng, &log_new)
    log_ratio = (log_new - log_old) / temperature + proposal.log_before - proposal.log_after
    counts.n_proposed += 1
    if log_ratio >= 0.0 or rng.uniform() < exp(log_ratio):
        counts.n_accepted += 1
        counts.n_changed += proposal.before.state != proposal.after.state
        for entry in range(n_unseated):
            release_fragment(&tsg.fragments, seatings.entries[entry].dish)
        return 0
    rollback_seatings(tsg, seatings)
    return restore_tree(tsg, tree, proposal)


cdef int restore_tree(TsgState* tsg, index_t tree, const Proposal* proposal) except -1 nogil:
    """Put a tree's former derivation back, and release the fragments of the rejected one."""
    cdef index_t first = tsg.trees.tree_start[tree], node
    cdef uint8_t state
    for node in range(n_nodes_of(&tsg.trees, tree)):
        state = proposal.before.state[node]
        tsg.state[first + node] = state
        tsg.dish[first + node] = -1
        if state != INTERNAL:
            tsg.dish[first + node] = proposal.before.number[node]
    for node in range(n_nodes_of(&tsg.trees, tree)):
        if proposal.after.state[node] != INTERNAL:
            release_fragment(&tsg.fragments, proposal.after.number[node])
    return 0


# ---- some trees given the others ------------------------------------------------------------------------------

cdef int redraw_trees(
    TsgState* tsg, uint64_t iteration, const vector[index_t]* trees, int batch, int n_threads, WorkerPool* pool
) except -1 nogil:
    cdef ProposalBatch work
    cdef SeatingLog seatings
    cdef Rng rng
    cdef double log_probability
    cdef size_t item, first = 0, size
    for item in range(trees.size()):
        forget_tree(tsg, iteration, trees[0][item], &seatings)
    work.tsg, work.iteration = tsg, iteration
    work.rng = NULL
    work.inside_values.resize(n_threads)
    work.proposals.resize(batch)
    while first < trees.size():
        size = min(<size_t>batch, trees.size() - first)
        work.trees = &trees[0][first]
        reserve_batch(&work, <int>size)
        pool.run(n_threads, <int>size, redraw_item, &work)
        for item in range(size):
            rng = tsg_rng(tsg, iteration, RNG_TREE, work.trees[item])
            seatings.entries.clear()
            seat_tree(tsg, work.trees[item], &work.proposals[item].after, &seatings, &rng, &log_probability)
        first += size
    return 0


cdef int forget_tree(TsgState* tsg, uint64_t iteration, index_t tree, SeatingLog* seatings) except -1 nogil:
    """Unseat a tree for good."""
    cdef Rng rng = tsg_rng(tsg, iteration, RNG_FREEZE, tree)
    cdef TreeDerivation present
    cdef double log_probability
    cdef size_t entry
    seatings.entries.clear()
    resize_derivation(&present, n_nodes_of(&tsg.trees, tree))
    describe_present(tsg, tree, &present)
    unseat_tree(tsg, tree, &present, seatings, &rng, NULL, &log_probability)
    for entry in range(seatings.entries.size()):
        release_fragment(&tsg.fragments, seatings.entries[entry].dish)
    return 0


# ---- proposals ------------------------------------------------------------------------------------------------

# What follows runs on worker threads, which raise no Python exception; see `tsgkit._worker_pool`.

cdef void propose_item(void* context, int item, int thread) noexcept nogil:
    cdef ProposalBatch* work = <ProposalBatch*>context
    cdef index_t tree = work.trees[item]
    cdef Rng rng
    if work.rng is NULL:
        rng = tsg_rng(work.tsg, work.iteration, RNG_PROPOSE, tree)
        propose(work.tsg, tree, &work.inside_values[thread], &work.proposals[item], &rng)
    else:
        propose(work.tsg, tree, &work.inside_values[thread], &work.proposals[item], work.rng)


cdef void redraw_item(void* context, int item, int thread) noexcept nogil:
    """Draw a derivation of a tree from the frozen grammar."""
    cdef ProposalBatch* work = <ProposalBatch*>context
    cdef index_t tree = work.trees[item]
    cdef InsideValues* values = &work.inside_values[thread]
    cdef Rng rng = tsg_rng(work.tsg, work.iteration, RNG_PROPOSE, tree)
    inside(work.tsg, tree, values)
    draw_derivation(work.tsg, tree, values, &work.proposals[item].after, &rng)
    describe(work.tsg, tree, &work.proposals[item].after)


cdef void propose(
    const TsgState* tsg, index_t tree, InsideValues* values, Proposal* proposal, Rng* rng
) noexcept nogil:
    """Draw a derivation of a tree from the frozen grammar; log q of it and of the present one."""
    inside(tsg, tree, values)
    draw_derivation(tsg, tree, values, &proposal.after, rng)
    describe(tsg, tree, &proposal.after)
    describe_present(tsg, tree, &proposal.before)
    proposal.log_after = log_weight(tsg, tree, &proposal.after) - values.log_inside
    proposal.log_before = log_weight(tsg, tree, &proposal.before) - values.log_inside


cdef double log_weight(const TsgState* tsg, index_t tree, TreeDerivation* derivation) noexcept nogil:
    """log prod_e (w_e + b P0(e)) over the fragments of a derivation, and the log probability of its insertions."""
    cdef LogProduct product = log_product()
    cdef index_t node
    product.log += log_insertions(tsg, tree, derivation)
    for node in range(n_nodes_of(&tsg.trees, tree)):
        if derivation.state[node] != INTERNAL:
            multiply_predictive(&product, tsg, tsg.trees.tree_start[tree], node, derivation)
    return log_of(&product)
