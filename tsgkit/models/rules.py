"""The CFG rules of a corpus and how often each occurs: what every model starts from."""

from dataclasses import dataclass

import numpy as np

from tsgkit.errors import TreebankError
from tsgkit.treebank import FlatCorpus


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
    rows, counts = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
    return rows.astype(np.int32), counts
