"""The CFG rules of a corpus and how often each occurs: what every model starts from."""

from dataclasses import dataclass, replace

import numpy as np

from tsgkit._trees import validate_trees
from tsgkit.errors import TreebankError
from tsgkit.models._distinct import distinct_rows
from tsgkit.treebank import FlatCorpus
from tsgkit.treebank._binarize import undo_label
from tsgkit.treebank._prepare import preparation_of


@dataclass(frozen=True)
class RuleCounts:
    """The rules of a binarised corpus, each once, with their counts.

    Attributes
    ----------
    binary, unary, lexical : ndarray of int32 with 3, 2 and 2 columns
        ``(label, left label, right label)``, ``(label, child label)``, ``(label, word)``.
    binary_count, unary_count, lexical_count : ndarray of int64
    root : int
        The label of all roots.
    n_labels : int
    """

    binary: np.ndarray
    binary_count: np.ndarray
    unary: np.ndarray
    unary_count: np.ndarray
    lexical: np.ndarray
    lexical_count: np.ndarray
    root: int
    n_labels: int

    def totals(self) -> np.ndarray:
        """How often each label is rewritten."""
        totals = np.zeros(self.n_labels)
        for rules, counts in (
            (self.binary, self.binary_count),
            (self.unary, self.unary_count),
            (self.lexical, self.lexical_count),
        ):
            np.add.at(totals, rules[:, 0], counts)
        return totals


def count_rules(corpus: FlatCorpus) -> RuleCounts:
    """Count the rules of a corpus whose nodes have at most two children."""
    n_children = np.diff(corpus.child_start)
    if (n_children > 2).any():
        raise TreebankError("the corpus is not binarised: a node has more than two children")
    roots = np.unique(corpus.label[corpus.tree_start[:-1]])
    if len(roots) != 1:
        names = ", ".join(corpus.labels[root] for root in roots[:5])
        raise TreebankError(f"trees have different root labels ({names}); let cleaning add one root")
    if preparation_of(corpus).binarization is not None:
        is_intermediate = np.array([undo_label(label) is None for label in corpus.labels])
        if is_intermediate[corpus.label[corpus.form >= 0]].any() or is_intermediate[roots[0]]:
            raise TreebankError("an intermediate symbol is the root or a tag: no binarisation puts it there")
    two, one, none = (np.flatnonzero(n_children == number) for number in (2, 1, 0))
    first = corpus.child_start
    binary = [
        corpus.label[two],
        corpus.label[corpus.child[first[two]]],
        corpus.label[corpus.child[first[two] + 1]],
    ]
    unary = [corpus.label[one], corpus.label[corpus.child[first[one]]]]
    lexical = [corpus.label[none], corpus.word[none]]
    return RuleCounts(
        *unique_rows(binary), *unique_rows(unary), *unique_rows(lexical), int(roots[0]), len(corpus.labels)
    )


def unique_rows(columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    first, _, counts = distinct_rows(columns)
    return np.stack(columns, axis=1)[first].astype(np.int32), counts


@dataclass(frozen=True)
class TreeArrays:
    """Binarised trees with their rules numbered: what samplers move on.

    Attributes
    ----------
    label, rule, left, right, parent : ndarray of int32, one per node
        Parents come before their children; -1 where there is no child or parent.
    tree_start : ndarray of int64, one per tree and one more
    rule_label, rule_left_label, rule_right_label, rule_word : ndarray of int32, one per rule
        -1 for what a rule does not have.
    rule_count : ndarray of int64
    rule_weight : ndarray of float
        What the base distribution P0 weighs a rule by; its count, unless another one was chosen.
    rule_probability : ndarray of float
        The probability under P0, given the label; the relative frequency, unless another one was chosen.
    n_labels : int
    """

    label: np.ndarray
    rule: np.ndarray
    left: np.ndarray
    right: np.ndarray
    parent: np.ndarray
    tree_start: np.ndarray
    rule_label: np.ndarray
    rule_left_label: np.ndarray
    rule_right_label: np.ndarray
    rule_word: np.ndarray
    rule_count: np.ndarray
    rule_weight: np.ndarray
    rule_probability: np.ndarray
    n_labels: int

    @property
    def n_rules(self) -> int:
        return len(self.rule_label)

    @property
    def n_trees(self) -> int:
        return len(self.tree_start) - 1

    def with_nodes(
        self,
        *,
        label: np.ndarray,
        rule: np.ndarray,
        left: np.ndarray,
        right: np.ndarray,
        parent: np.ndarray,
        tree_start: np.ndarray,
    ) -> "TreeArrays":
        """Other trees over the same rules, whose arrays are shared."""
        return replace(self, label=label, rule=rule, left=left, right=right, parent=parent, tree_start=tree_start)

    def foot_probability(self) -> np.ndarray:
        """For every rule, its base probability at the top of an auxiliary tree, a given child being the foot.

        The weight of the rule over the sum of the weights of all pairs of a rule with the same label and a child that
        has that label, too; 0 for rules without such a child.
        """
        n_feet = np.zeros(self.n_rules, dtype=np.int64)
        for child in (self.rule_left_label, self.rule_right_label):
            n_feet += child == self.rule_label
        totals = np.bincount(self.rule_label, weights=n_feet * self.rule_weight, minlength=self.n_labels)
        return np.where(n_feet > 0, self.rule_weight / np.where(totals > 0, totals, 1.0)[self.rule_label], 0.0)

    def validate(self) -> None:
        """Raise a ValueError that says why compiled code must not see these arrays, if it must not."""
        validate_trees(self)


def number_rules(corpus: FlatCorpus) -> TreeArrays:
    """The trees of a binarised corpus as samplers take them.

    Parameters
    ----------
    corpus : FlatCorpus
        Binarised.
    """
    count_rules(corpus)  # for its checks
    n_children = np.diff(corpus.child_start)
    first = corpus.child_start[:-1]
    left = np.full(corpus.n_nodes, -1, dtype=np.int32)
    right = left.copy()
    left[n_children > 0] = corpus.child[first[n_children > 0]]
    right[n_children > 1] = corpus.child[first[n_children > 1] + 1]
    parent = np.full(corpus.n_nodes, -1, dtype=np.int32)
    parent[corpus.child] = np.repeat(np.arange(corpus.n_nodes), n_children)
    child_labels = [np.where(child >= 0, corpus.label[child], -1) for child in (left, right)]
    columns = np.stack([corpus.label, *child_labels, corpus.word], axis=1)
    first_of, rule, counts = distinct_rows(columns.T)
    rules = columns[first_of]
    totals = np.bincount(rules[:, 0], weights=counts)
    return TreeArrays(
        label=corpus.label,
        rule=rule.astype(np.int32),
        left=left,
        right=right,
        parent=parent,
        tree_start=corpus.tree_start.astype(np.int64),
        rule_label=rules[:, 0].astype(np.int32),
        rule_left_label=rules[:, 1].astype(np.int32),
        rule_right_label=rules[:, 2].astype(np.int32),
        rule_word=rules[:, 3].astype(np.int32),
        rule_count=counts,
        rule_weight=counts.astype(np.float64),
        rule_probability=counts / totals[rules[:, 0]],
        n_labels=len(corpus.labels),
    )
