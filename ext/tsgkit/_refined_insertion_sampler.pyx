"""The sampler of sites, subcategories and insertions of refined trees, as Python sees it.

What comes in is checked here; the kernels are in ``_refined_insertion``. Same seed, same result.
"""

import numpy as np

from libc.stdint cimport uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._refined_insertion cimport (
    InsertionCounts,
    Insertions,
    count_insertions,
    describe_insertions,
    insertion_sweep,
    link_insertions,
    log_insertions,
    open_insertions,
    resample_insertions,
)
from tsgkit._refined_sampler cimport RefinedSampler, require_positive
from tsgkit._refined_state cimport SweepCounts
from tsgkit._refined_type_moves cimport InsertionsAround, type_sweep
from tsgkit._trees cimport n_trees
from tsgkit._types cimport index_t
from tsgkit._vectors cimport copy_flags, copy_numbers, copy_symbols


cdef class RefinedInsertionSampler(RefinedSampler):
    """Substitution sites, symbols and insertions of the nodes of known trees.

    Parameters
    ----------
    trees, symbol_label, levels, rule_base, rule_class, lexical_share, class_word_base, class_levels, seed
        As for `RefinedSampler`; with the labels and rules of the roots of auxiliary trees, which no node of the trees
        has.
    auxiliary_label : array of int, one per label
        That of the roots of its auxiliary trees, which has a single symbol; -1 for none.
    top_rule : array of int, one row per rule
        The rules of roots of auxiliary trees whose foot is the left and the right child of such a rule, or -1. Their
        only child is the other one.
    stacked : bool
        Whether a foot may be the host of a further insertion.
    """

    cdef Insertions insertions

    def __init__(
        self, trees, symbol_label, levels, rule_base, rule_class, lexical_share, class_word_base, auxiliary_label,
        top_rule, bint stacked=False, class_levels=None, uint64_t seed=0,
    ):
        super().__init__(
            trees, symbol_label, levels, rule_base, rule_class, lexical_share, class_word_base, class_levels, seed=seed
        )
        auxiliary_label, top_rule = np.asarray(auxiliary_label), np.asarray(top_rule)
        validate_auxiliary(trees, np.bincount(symbol_label, minlength=trees.n_labels), auxiliary_label, top_rule)
        copy_symbols(auxiliary_label, self.insertions.auxiliary_label)
        copy_symbols(top_rule.ravel(), self.insertions.top_rule)
        self.insertions.stacked = stacked
        open_insertions(&self.state, &self.insertions)
        self.set_insertion_probabilities(0.5)

    # ---- insertions --------------------------------------------------------------------------------------

    def insertions_of_nodes(self):
        """For every node 0, 1 if something is inserted whose foot is the left child, 2 if it is the right one."""
        return np.array([value for value in self.insertions.foot], dtype=np.uint8)

    def set_insertions(self, feet):
        """Set what `insertions_of_nodes` gave; nobody is seated."""
        self.require_seated(False)
        feet, trees = np.asarray(feet), self.trees
        if feet.dtype != np.uint8 or feet.shape != (len(trees.label),) or (feet > 2).any():
            raise ValueError("insertions do not fit the trees: one number below 3 is needed for every node")
        nodes = np.flatnonzero(feet)
        sides = feet[nodes] - 1
        top_rule = np.array([value for value in self.insertions.top_rule]).reshape(-1, 2)
        if (trees.parent[nodes] < 0).any() or (top_rule[trees.rule[nodes], sides] < 0).any():
            raise ValueError("nothing can be inserted at a node")
        if not self.insertions.stacked and feet[np.where(sides == 0, trees.left[nodes], trees.right[nodes])].any():
            raise ValueError("insertions are stacked")
        copy_flags(feet, self.insertions.foot)
        link_insertions(&self.state, &self.insertions)

    def insertion_probabilities(self):
        """The probability of an insertion at an internal node of every label."""
        return np.array([value for value in self.insertions.probability])

    def set_insertion_probabilities(self, values):
        """Set them, one for all labels that can have insertions or one per label; those of others are 0."""
        values = np.broadcast_to(np.asarray(values, dtype=np.float64), (self.n_labels,))
        if not ((values >= 0) & (values < 1)).all():
            raise ValueError("a probability of insertions is at least 0 and below 1")
        is_host = np.array([label >= 0 for label in self.insertions.auxiliary_label])
        copy_numbers(np.where(is_host, values, 0.0), self.insertions.probability)

    def insertion_sweep(self, uint64_t iteration, *, int batch=1, int threads=1, double temperature=1.0):
        """One Metropolis-Hastings step for every tree: proposals, acceptances and changes.

        The proposals of a batch of trees are made together, given the counts without them.
        """
        self.require_seated(True)
        require_positive(batch, threads, temperature)
        batch = min(batch, n_trees(&self.state.trees))
        cdef SweepCounts counts = SweepCounts(0, 0, 0)
        self.is_changing = True
        with nogil:
            insertion_sweep(
                &self.state, &self.insertions, iteration, batch, min(threads, batch), temperature, &self.pool, &counts
            )
        self.is_changing = False
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    def resample_insertions(self, uint64_t iteration):
        """Resample the probabilities of insertions."""
        cdef vector[InsertionCounts] counts
        self.require_usable()
        count_insertions(&self.state, &self.insertions, &counts)
        resample_insertions(&self.state, &self.insertions, iteration, &counts)

    def log_insertions(self):
        """The log probability of the insertions: what `log_joint` does not contain."""
        cdef vector[InsertionCounts] counts
        self.require_usable()
        count_insertions(&self.state, &self.insertions, &counts)
        return log_insertions(&self.insertions, &counts)

    # ---- what differs from the sampler of sites ------------------------------------------------------------

    cdef int move_types(
        self, uint64_t iteration, index_t n_moves, bint joint, double temperature, SweepCounts* counts
    ) except -1:
        cdef vector[double] log_none
        cdef vector[uint8_t] is_foot
        cdef InsertionsAround around
        if not joint:
            raise ValueError("with insertions, symbols are sampled together with sites")
        describe_insertions(&self.state, &self.insertions, &log_none, &is_foot)
        around.log_none, around.is_foot = log_none.data(), is_foot.data()
        with nogil:
            return type_sweep(&self.state, iteration, n_moves, joint, temperature, &around, counts)

    cdef object node_labels(self):
        return np.array([value for value in self.state.trees.label], dtype=np.int32)

    cdef int put_state(self, symbols, sites) except -1:
        RefinedSampler.put_state(self, symbols, sites)
        feet, flags, trees = self.insertions_of_nodes(), np.asarray(sites), self.trees
        nodes = np.flatnonzero(feet)
        below = np.where(feet[nodes] == 1, trees.left[nodes], trees.right[nodes])
        if not flags[nodes].all() or flags[below[feet[below] == 0]].any():
            raise ValueError("sites do not fit the insertions")
        return 0

    cdef int require_plain(self) except -1:
        raise ValueError("with insertions, trees are resampled by insertion_sweep")


def validate_auxiliary(trees, n_symbols, auxiliary_label, top_rule):
    """Refuse labels and rules that roots of auxiliary trees cannot have."""
    if auxiliary_label.shape != (trees.n_labels,) or top_rule.shape != (trees.n_rules, 2):
        raise ValueError("a label of auxiliary trees is needed for every label, and two rules for every rule")
    used = auxiliary_label[auxiliary_label != -1]
    if (auxiliary_label < -1).any() or (auxiliary_label >= trees.n_labels).any() or len(np.unique(used)) < len(used):
        raise ValueError("a label of auxiliary trees is out of range, or two labels share one")
    if (n_symbols[used] != 1).any() or np.isin(used, trees.label).any():
        raise ValueError("a label of auxiliary trees has subcategories, or nodes of the treebank have it")
    if (top_rule < -1).any() or (top_rule >= trees.n_rules).any():
        raise ValueError("a rule of auxiliary trees is out of range")
    children = (trees.rule_left_label, trees.rule_right_label)
    for side in range(2):
        rules = np.flatnonzero(top_rule[:, side] >= 0)
        top = top_rule[rules, side]
        is_fit = (
            (children[side][rules] == trees.rule_label[rules])
            & (children[1 - side][rules] == children[0][top])
            & (children[0][top] >= 0)
            & (children[1][top] == -1)
            & (auxiliary_label[trees.rule_label[rules]] == trees.rule_label[top])
        )
        if not is_fit.all():
            raise ValueError("a rule of auxiliary trees does not fit that of the treebank")
