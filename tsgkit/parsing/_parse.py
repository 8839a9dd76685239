"""The analysis of a sentence: what every parser returns, whatever it is made of.

Last stage of parsing. What a tree rests on is never hidden: whether the grammar made it or a fallback did, and with
what probability, log P(tree, words) and log P(words).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nltk.tree import Tree

from tsgkit._messages import counted
from tsgkit.treebank._partial import GivenBracket
from tsgkit.treebank._trees import Bracket, brackets_of

FALLBACKS = ("empty", "coarse", "glued", "brackets", "flat", "timeout")
SMALLEST_ALTERNATIVE = 0.01


@dataclass(repr=False)
class Parse:
    """The analysis of a sentence.

    Attributes
    ----------
    words : list of str
        The sentence, as given.
    trees : list of nltk.Tree
        Best first; at least one, over exactly these words.
    scores : list of float
        By the objective, one per tree.
    logs : list of float, or callable that returns it
        What `log_probabilities` are, or how to find them.
    total : float, or callable that returns it
        What `log_total` is, or how to find it.
    shares : list of (float or None)
        What part of the objective each tree has, of all trees: the order of the trees is that of their shares. None
        where a tree has no share of the sums of the objective, ``[]`` unless asked for with `confidence`.
    fallback : str
        ``''`` when the grammar made the tree; otherwise what it is instead: ``empty`` (no words),
        ``coarse`` (the best tree of the coarsest grammar, where the finest has none or needs too much
        memory), ``glued`` (parts under a root, where no grammar spans the words), ``brackets`` (the same, where the
        grammar has no tree with the given brackets, which were added: see `unmet`), ``flat`` (tags only: too long, or
        too much memory even for the coarsest grammar), ``timeout`` (tags only: it took too much time). All of them
        have the given brackets.
    confidence : dict
        The posterior probability of every bracket of the trees, by ``(label, start, end)``; empty unless
        asked for, and for a fallback.
    alternatives : dict
        The same of all brackets that have at least one percent, in the trees or not.
    unmet : tuple of (label or None, start, end)
        The given brackets over spans for which the grammar has none, of a fallback of the kind ``brackets``.
    """

    words: list[str]
    trees: list[Tree]
    scores: list[float]
    logs: list[float] | Callable[[], list[float]] = field(repr=False, compare=False)
    total: float | Callable[[], float] = field(repr=False, compare=False)
    fallback: str = ""
    shares: list[float | None] = field(default_factory=list)
    confidence: dict[Bracket, float] = field(default_factory=dict)
    alternatives: dict[Bracket, float] = field(default_factory=dict)
    unmet: tuple[GivenBracket, ...] = ()

    def take_posteriors(self, posteriors: dict[Bracket, float]) -> None:
        """Keep what is of interest of the posteriors of all brackets in the chart, if there are any."""
        if not posteriors:
            return
        brackets = (bracket for tree in self.trees for bracket in brackets_of(tree))
        self.confidence = {bracket: min(1.0, posteriors.get(bracket, 0.0)) for bracket in brackets}
        self.alternatives = {
            bracket: min(1.0, posterior)
            for bracket, posterior in posteriors.items()
            if posterior >= SMALLEST_ALTERNATIVE
        }

    @property
    def tree(self) -> Tree:
        """The best tree."""
        return self.trees[0]

    @property
    def log_probabilities(self) -> list[float]:
        """Of each tree with its words under the grammar, -inf for a fallback; found when first asked for."""
        if callable(self.logs):
            self.logs = self.logs()
        return self.logs

    @property
    def probabilities(self) -> list[float | None]:
        """Of each tree given the words, under the grammar; None for a fallback."""
        if self.fallback:
            return [None] * len(self.trees)
        return [math.exp(min(log - self.log_total, 0.0)) for log in self.log_probabilities]

    @property
    def log_total(self) -> float:
        """The log probability of the words: summed over all trees that were looked at; found when first asked for."""
        if callable(self.total):
            self.total = self.total()
        return self.total

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "logs": self.log_probabilities, "total": self.log_total}

    def __repr__(self) -> str:
        kind = f", fallback {self.fallback!r}" if self.fallback else ""
        return f"<Parse of {counted(len(self.words), 'word')}, {counted(len(self.trees), 'tree')}{kind}>"

    def _repr_svg_(self) -> str:
        """The best tree as a picture, for notebooks; with the confidence of its phrases if there is one."""
        from tsgkit.drawing._trees import Drawing, confidences  # noqa: PLC0415 - most parses are not looked at

        return Drawing.of_tree(self.tree, values=confidences(self.tree, self.confidence)).svg()


def fallback(words: list[str], tree: Tree, kind: str, unmet: Sequence[GivenBracket] = ()) -> Parse:
    """A parse that the grammar did not make."""
    return Parse(words, [tree], [-math.inf], [-math.inf], -math.inf, kind, unmet=tuple(unmet))
