"""Lexical entries: which symbols of a grammar can make each word of a sentence, and with what weight.

The last place where words are strings. Words that the grammar has never seen and tags that the caller
supplies are dealt with here, so that the chart always has something to start from.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tsgkit._cell_closing import OpenCells
from tsgkit._constraints import Constraints
from tsgkit._grammar_index import GrammarIndex
from tsgkit.grammar import WeightedGrammar
from tsgkit.grammar.weighted import GrammarError
from tsgkit.parsing.constraints import GivenBracket
from tsgkit.treebank.binarize import undo_label

# How much less a tag other than the given one counts when tags are soft.
SOFT_FACTOR = 0.01
# A word with nothing known about it, or with a tag it never had, weighs this much less than a known one.
UNSEEN_FACTOR = 1e-6

Entries = tuple[np.ndarray, np.ndarray, np.ndarray]
WordEntry = tuple[np.ndarray, np.ndarray]


@dataclass
class SentenceEntries:
    """The lexical entries of a sentence: ``entries[number]`` are those of a grammar of a cascade.

    Attributes
    ----------
    by_grammar : list of Entries
    open_cells : OpenCells, optional
        The spans that the coarsest grammar looks at; all unless given.
    constraints : list of Constraints
        The brackets that trees must have, for every grammar; empty if there are none.
    brackets : list of GivenBracket
        The same, as given.
    """

    by_grammar: list[Entries]
    open_cells: OpenCells | None = None
    constraints: list[Constraints] = field(default_factory=list)
    brackets: list[GivenBracket] = field(default_factory=list)

    def __getitem__(self, number: int) -> Entries:
        return self.by_grammar[number]

    def constraints_of(self, number: int) -> Constraints | None:
        """The brackets for a grammar of the cascade, if there are any."""
        return self.constraints[number] if self.constraints else None


class LexicalTable:
    """The lexical rules of a grammar by word.

    Parameters
    ----------
    grammar : WeightedGrammar
    index : GrammarIndex
        Of the same grammar: entries carry its ranks.
    """

    def __init__(self, grammar: WeightedGrammar, index: GrammarIndex) -> None:
        if not len(grammar.lexical):
            raise GrammarError("the grammar has no words: nothing can be parsed with it")
        order = np.argsort(grammar.lexical[:, 1], kind="stable")
        ranks = index.rank_of_symbol[grammar.lexical[order, 0]].astype(np.int32)
        weights = grammar.lexical_weight[order]
        starts = np.searchsorted(grammar.lexical[order, 1], np.arange(len(grammar.words) + 1))
        self.by_word = {
            word: (ranks[starts[number] : starts[number + 1]], weights[starts[number] : starts[number + 1]])
            for number, word in enumerate(grammar.words)
            if starts[number] < starts[number + 1]
        }
        self.unseen = unseen_entry(ranks, weights)
        self.tag_of_rank = grammar.label[index.symbol_of_rank]
        self.tag_names = [undo_label(label) for label in grammar.labels]

    def entries(
        self,
        words: Sequence[str],
        tags: Sequence[str | None] | None = None,
        mode: str = "none",
        possible: Sequence[tuple[int, str]] = (),
    ) -> Entries:
        """The entries of a sentence as `Chart.fill` takes them.

        Parameters
        ----------
        words : sequence of str
            As the grammar knows them: rare words replaced by their classes.
        tags : sequence of str or None, optional
            A tag for every word, ``None`` where there is none.
        mode : {"none", "hard", "soft"}
            Whether tags are ignored, the only ones allowed, or preferred.
        possible : sequence of (int, str)
            Numbers of words, each with a tag that the word may have even if it was never seen with it.
        """
        found = [self.by_word.get(word, self.unseen) for word in words]
        if tags is not None and mode != "none":
            found = [
                entry if tag is None else self.with_tag(entry, tag, mode)
                for entry, tag in zip(found, tags, strict=True)
            ]
        for place, tag in possible:
            if not self.fits(found[place][0], tag).any():
                found[place] = joined(found[place], self.unseen_with(tag))
        starts = np.zeros(len(found) + 1, dtype=np.int64)
        np.cumsum([len(ranks) for ranks, _ in found], out=starts[1:])
        return (
            starts,
            np.concatenate([ranks for ranks, _ in found]),
            np.concatenate([weights for _, weights in found]),
        )

    def with_tag(self, entry: WordEntry, tag: str, mode: str) -> WordEntry:
        """An entry that keeps to a tag, or prefers it; a tag that the grammar does not have is ignored."""
        ranks, weights = entry
        fits = self.fits(ranks, tag)
        if not fits.any():
            added = self.unseen_with(tag)
            if not len(added[0]):
                return entry
            return added if mode == "hard" else joined((ranks, weights * SOFT_FACTOR), added)
        if mode == "hard":
            return ranks[fits], weights[fits]
        return ranks, np.where(fits, weights, weights * SOFT_FACTOR)

    def fits(self, ranks: np.ndarray, tag: str) -> np.ndarray:
        """Which of these symbols have a tag."""
        return np.array([self.tag_names[number] == tag for number in self.tag_of_rank[ranks]], dtype=bool)

    def unseen_with(self, tag: str) -> WordEntry:
        """The entry of a word that was never seen with a tag; empty if the grammar does not have the tag."""
        ranks, weights = self.unseen
        allowed = self.fits(ranks, tag)
        return ranks[allowed], weights[allowed]


def joined(one: WordEntry, other: WordEntry) -> WordEntry:
    return np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])


def unseen_entry(ranks: np.ndarray, weights: np.ndarray) -> WordEntry:
    """What a word is that nothing is known about: any tag, the likelier the more different words it has."""
    tags, n_words = np.unique(ranks, return_counts=True)
    shares = n_words / max(n_words.sum(), 1)
    return tags.astype(np.int32), shares * UNSEEN_FACTOR * float(weights.max(initial=1.0))
