"""Metropolis-Hastings over whole trees with their derivations, where trees are not known.

For a sentence whose tree is unknown, or known in part, a tree and its derivation are drawn together from the chart of
the frozen grammar (`tsgkit.inference._open_trees`), under the brackets that are known. With z the present tree and
derivation and z' the new ones, the proposal is accepted with probability

    min(1, [ P(z') / q(z') ] [ q(z) / P(z) ])        q(z) = prod_e (w_e + b P0(e)) / I(words, brackets)

where both paths to a fragment are summed in q, and I, the inside value of the sentence, is the same for both and
cancels. As for known trees, q depends on the customers outside of the batch alone.
"""

from libc.math cimport exp
from libc.stdint cimport uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._codes cimport INTERNAL
from tsgkit._fragments cimport release_fragment
from tsgkit._random cimport RNG_FREEZE_OPEN, RNG_OPEN_TREE, Rng
from tsgkit._restaurant cimport SeatingLog
from tsgkit._trees cimport BinaryTrees, n_nodes_of
from tsgkit._tsg_blocked cimport log_weight
from tsgkit._tsg_state cimport (
    SweepCounts, TreeDerivation, TsgState, describe, describe_present, forget_tracked, freeze_tree, resize_derivation,
    rollback_seatings, seat_tree, tsg_rng, unseat_tree,
)
from tsgkit._types cimport index_t, symbol_t


cdef cppclass TreeProposal:
    TreeDerivation before
    TreeDerivation after
    double log_before      # log q of both, but for the inside value
    double log_after


cdef int freeze_batch(TsgState* tsg, uint64_t iteration, FrozenBatch* batch) except -1 nogil:
    cdef size_t item
    cdef Rng rng
    batch.tables.clear()
    batch.seatings.entries.clear()
    for item in range(batch.trees.size()):
        rng = tsg_rng(tsg, iteration, RNG_FREEZE_OPEN, batch.trees[item])
        freeze_tree(tsg, batch.trees[item], &batch.seatings, &batch.tables, &rng)
    return 0


cdef int unfreeze_batch(TsgState* tsg, FrozenBatch* batch) except -1 nogil:
    rollback_seatings(tsg, &batch.seatings)
    forget_tracked(tsg)
    batch.trees.clear()
    return 0


cdef int replace_batch(
    TsgState* tsg, uint64_t iteration, FrozenBatch* batch, index_t first_new, double temperature, SweepCounts* counts
) except -1 nogil:
    cdef vector[TreeProposal] proposals
    cdef vector[index_t] kept
    cdef SeatingLog seatings
    cdef index_t tree
    cdef size_t item, n_unseated = 0
    cdef double log_old
    cdef Rng rng
    proposals.resize(batch.trees.size())
    for item in range(batch.trees.size()):
        weigh(tsg, batch.trees[item], first_new + <index_t>item, &proposals[item])
    rollback_seatings(tsg, &batch.seatings)
    kept.resize(first_new)
    for tree in range(first_new):
        kept[tree] = tree
    counts.n_proposed = counts.n_accepted = counts.n_changed = 0
    for item in range(batch.trees.size()):
        tree = batch.trees[item]
        rng = tsg_rng(tsg, iteration, RNG_OPEN_TREE, tree)
        seatings.entries.clear()
        unseat_tree(
            tsg, tree, &proposals[item].before, &seatings, &rng, batch.tables.data() + n_unseated, &log_old)
        n_unseated += seatings.entries.size()
        if accept_tree(
                tsg, tree, first_new + <index_t>item, &proposals[item], log_old, temperature, &seatings, &rng, counts):
            kept[tree] = first_new + item
    forget_tracked(tsg)
    batch.trees.clear()
    return keep_trees(tsg, &kept)


cdef int weigh(TsgState* tsg, index_t old, index_t new, TreeProposal* proposal) except -1 nogil:
    """log q of the present and of the new tree and derivation, by the frozen counts."""
    cdef index_t node
    resize_derivation(&proposal.before, n_nodes_of(&tsg.trees, old))
    resize_derivation(&proposal.after, n_nodes_of(&tsg.trees, new))
    for node in range(n_nodes_of(&tsg.trees, new)):
        proposal.after.state[node] = tsg.state[tsg.trees.tree_start[new] + node]
    describe(tsg, new, &proposal.after)
    describe_present(tsg, old, &proposal.before)
    proposal.log_after = log_weight(tsg, new, &proposal.after)
    proposal.log_before = log_weight(tsg, old, &proposal.before)
    return 0


cdef bint accept_tree(
    TsgState* tsg, index_t old, index_t new, TreeProposal* proposal, double log_old, double temperature,
    SeatingLog* seatings, Rng* rng, SweepCounts* counts,
) except -1 nogil:
    """Seat a new tree, and keep it or roll back; the log says how the old one was unseated."""
    cdef size_t n_unseated = seatings.entries.size(), entry
    cdef index_t node
    cdef double log_new, log_ratio
    seat_tree(tsg, new, &proposal.after, seatings, rng, &log_new)
    log_ratio = (log_new - log_old) / temperature + proposal.log_before - proposal.log_after
    counts.n_proposed += 1
    if log_ratio >= 0.0 or rng.uniform() < exp(log_ratio):
        counts.n_accepted += 1
        counts.n_changed += differ(tsg, old, new)
        for entry in range(n_unseated):
            release_fragment(&tsg.fragments, seatings.entries[entry].dish)
        return True
    rollback_seatings(tsg, seatings)
    for node in range(n_nodes_of(&tsg.trees, new)):
        if proposal.after.state[node] != INTERNAL:
            release_fragment(&tsg.fragments, proposal.after.number[node])
    return False


cdef bint differ(const TsgState* tsg, index_t old, index_t new) noexcept nogil:
    """Whether two trees of the same words differ."""
    cdef index_t first = tsg.trees.tree_start[old], second = tsg.trees.tree_start[new], node
    if n_nodes_of(&tsg.trees, old) != n_nodes_of(&tsg.trees, new):
        return True
    for node in range(n_nodes_of(&tsg.trees, old)):
        if tsg.trees.rule[first + node] != tsg.trees.rule[second + node] or (
                tsg.trees.left[first + node] - first != tsg.trees.left[second + node] - second
                and tsg.trees.left[first + node] >= 0) or (
                tsg.trees.right[first + node] - first != tsg.trees.right[second + node] - second
                and tsg.trees.right[first + node] >= 0):
            return True
    return False


cdef int keep_trees(TsgState* tsg, const vector[index_t]* kept) except -1 nogil:
    """Keep these trees, in this order, and forget all others."""
    cdef BinaryTrees* trees = &tsg.trees
    cdef vector[symbol_t] label, rule, left, right, parent, dish
    cdef vector[index_t] tree_start
    cdef vector[uint8_t] state
    cdef size_t place
    cdef index_t node
    cdef symbol_t shift
    tree_start.push_back(0)
    for place in range(kept.size()):
        shift = <symbol_t>(tree_start.back() - trees.tree_start[kept[0][place]])
        for node in range(trees.tree_start[kept[0][place]], trees.tree_start[kept[0][place] + 1]):
            label.push_back(trees.label[node])
            rule.push_back(trees.rule[node])
            left.push_back(trees.left[node] + shift if trees.left[node] >= 0 else -1)
            right.push_back(trees.right[node] + shift if trees.right[node] >= 0 else -1)
            parent.push_back(trees.parent[node] + shift if trees.parent[node] >= 0 else -1)
            state.push_back(tsg.state[node])
            dish.push_back(tsg.dish[node])
        tree_start.push_back(label.size())
    trees.label.swap(label)
    trees.rule.swap(rule)
    trees.left.swap(left)
    trees.right.swap(right)
    trees.parent.swap(parent)
    trees.tree_start.swap(tree_start)
    tsg.state.swap(state)
    tsg.dish.swap(dish)
    return 0
