"""Parses that have given brackets: labels with the states of constraints, and fallback trees.

With ``B`` the brackets of a sentence (`tsgkit.treebank._partial`), everything that a parser computes is conditional on
them: P(t | words, B) is P(t) over the sum of all trees that have the brackets.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from nltk.tree import Tree

from tsgkit.models._constraints import LabelAutomata, after_nodes
from tsgkit.treebank._partial import GivenBracket, Span, by_span

# The label of a bracket without a label in a fallback tree, where no grammar names a better one.
UNNAMED = "X"


@dataclass(frozen=True)
class StateCodes:
    """Labels of treebank rules with the states of constraints, as a forest of constrained trees has them.

    Attributes
    ----------
    automata : LabelAutomata
    brackets : list of GivenBracket
    """

    automata: LabelAutomata
    brackets: list[GivenBracket]

    @property
    def n_states(self) -> int:
        return 1 + max(map(len, by_span(self.brackets).values()), default=0)

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """The rows of a tree that has the brackets, with labels by state."""
        spans, n_labels = by_span(self.brackets), len(self.automata.nodes)
        coded = rows.copy()
        states: dict[Span, int] = {}
        for number in reversed(range(len(rows))):
            label, start, end, _ = rows[number].tolist()
            wanted = spans.get((start, end))
            if wanted is None:
                continue
            state = after_nodes(states.get((start, end), 0), self.automata.nodes[label], wanted)
            states[start, end] = state
            if state < len(wanted):
                coded[number, 0] += (state + 1) * n_labels
        return coded


# ---- fallback trees ------------------------------------------------------------------------------------------


def with_brackets(parts: Sequence[tuple[Span, Sequence[Tree]]], brackets: Sequence[GivenBracket], root: str) -> Tree:
    """The parts of a sentence, from left to right, under a root and inside of brackets.

    Parameters
    ----------
    parts : sequence of (span, trees)
        No span crosses a bracket or has one strictly inside.
    brackets : sequence of GivenBracket
        Outer ones first.
    root : str
        A bracket with this label over all words is the root itself.

    Examples
    --------
    >>> words = [((place, place + 1), [Tree("N", [word])]) for place, word in enumerate("abc")]
    >>> print(with_brackets(words, [("NP", 0, 2), (None, 1, 2)], "TOP"))
    (TOP (NP (N a) (X (N b))) (N c))
    """
    n_words = parts[-1][0][1]
    waiting = [bracket for bracket in brackets if bracket != (root, 0, n_words)][::-1]
    open_nodes = [(n_words, Tree(root, []))]
    for (start, end), trees in parts:
        while waiting and waiting[-1][1] == start and waiting[-1][2] >= end:
            label, _, bracket_end = waiting.pop()
            node = Tree(label or UNNAMED, [])
            open_nodes[-1][1].append(node)
            open_nodes.append((bracket_end, node))
        open_nodes[-1][1].extend(trees)
        while len(open_nodes) > 1 and open_nodes[-1][0] == end:
            open_nodes.pop()
    return open_nodes[0][1]
