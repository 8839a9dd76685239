"""Brackets that trees must have, as the chart takes them: an automaton for the labels of a grammar.

Between partial trees (`tsgkit.treebank._partial`) and the chart, for parsing and for sampling trees that are not known.
The automaton of a span reads the nodes over it from the bottom up; see ``_constraints.pxd``.
"""

from collections.abc import Collection, Sequence

import numpy as np

from tsgkit._constraints import Constraints
from tsgkit._grammar_index import GrammarIndex
from tsgkit.treebank._binarize import undo_label
from tsgkit.treebank._clean import chain_parts
from tsgkit.treebank._partial import GivenBracket, Span, by_span


class LabelAutomata:
    """What the labels of a grammar do to the brackets that a span must have.

    Parameters
    ----------
    index : GrammarIndex
    labels : sequence of str
        Of the grammar, binarised.
    joins_chains : bool
        Whether a label may stand for a chain of unary nodes, see `tsgkit.treebank._clean.collapse_unaries`.
    """

    def __init__(self, index: GrammarIndex, labels: Sequence[str], joins_chains: bool) -> None:
        self.index = index
        # The nodes that a label makes in a tree as annotated, from the bottom up.
        self.nodes: list[tuple[str, ...]] = []
        for label in labels:
            plain = undo_label(label)
            if plain is None:
                self.nodes.append(())
            else:
                self.nodes.append(tuple(reversed(chain_parts(plain))) if joins_chains else (plain,))
        self.known: dict[tuple[str | None, ...], np.ndarray] = {}

    def automaton(self, wanted: tuple[str | None, ...]) -> np.ndarray:
        """By state (how many of the wanted labels were found) and label: the state above a node with this label."""
        if wanted not in self.known:
            table = np.empty((len(wanted) + 1, len(self.nodes)), dtype=np.int32)
            for state in range(len(wanted) + 1):
                for label, nodes in enumerate(self.nodes):
                    table[state, label] = after_nodes(state, nodes, wanted)
            self.known[wanted] = table
        return self.known[wanted]

    def constraints(
        self, brackets: Sequence[GivenBracket], n_words: int, relaxed: Collection[Span] = ()
    ) -> Constraints:
        """The brackets of a sentence as the chart takes them; of relaxed spans only that nothing crosses them."""
        spans = {span: () if span in relaxed else wanted for span, wanted in by_span(brackets).items()}
        return Constraints(self.index, n_words, list(spans), [self.automaton(wanted) for wanted in spans.values()])


def after_nodes(state: int, nodes: Sequence[str], wanted: Sequence[str | None]) -> int:
    """How many wanted labels were found after these nodes, from the bottom up.

    Examples
    --------
    >>> after_nodes(0, ("VP", "S"), ("VP", None, "S"))
    2
    """
    for node in nodes:
        if state < len(wanted) and wanted[state] in (None, node):
            state += 1
    return state
