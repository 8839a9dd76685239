"""Lexical entries: which symbols of a grammar can make each word of a sentence, and with what weight.

The last place where words are strings. Words that the grammar has never seen and tags that the caller
supplies are dealt with here, so that the chart always has something to start from.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tsgkit._cell_closing import OpenCells
from tsgkit._grammar_index import GrammarIndex
from tsgkit.grammar import WeightedGrammar
from tsgkit.grammar.weighted import GrammarError
from tsgkit.treebank.binarize import undo_label

# How much less a tag other than the given one counts when tags are soft.
SOFT_FACTOR = 0.01
# A word with nothing known about it, or with a tag it never had, weighs this much less than a known one.
UNSEEN_FACTOR = 1e-6

Entries = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass
class SentenceEntries:
    """The lexical entries of a sentence: ``entries[number]`` are those of a grammar of a cascade.

    Attributes
    ----------
    by_grammar : list of Entries
    open_cells : OpenCells, optional
        The spans that the coarsest grammar looks at; all unless given.
    """

    by_grammar: list[Entries]
    open_cells: OpenCells | None = None

    def __getitem__(self, number: int) -> Entries:
        return self.by_grammar[number]


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

    def entries(self, words: Sequence[str], tags: Sequence[str | None] | None = None, mode: str = "none") -> Entries:
        """The entries of a sentence as `Chart.fill` takes them.

        Parameters
        ----------
        words : sequence of str
            As the grammar knows them: rare words replaced by their classes.
        tags : sequence of str or None, optional
            A tag for every word, ``None`` where there is none.
        mode : {"none", "hard", "soft"}
            Whether tags are ignored, the only ones allowed, or preferred.
        """
        found = [self.by_word.get(word, self.unseen) for word in words]
        if tags is not None and mode != "none":
            found = [
                entry if tag is None else self.with_tag(entry, tag, mode)
                for entry, tag in zip(found, tags, strict=True)
            ]
        starts = np.zeros(len(found) + 1, dtype=np.int64)
        np.cumsum([len(ranks) for ranks, _ in found], out=starts[1:])
        return (
            starts,
            np.concatenate([ranks for ranks, _ in found]),
            np.concatenate([weights for _, weights in found]),
        )

    def with_tag(self, entry: tuple[np.ndarray, np.ndarray], tag: str, mode: str) -> tuple[np.ndarray, np.ndarray]:
        """An entry that keeps to a tag, or prefers it; a tag that the grammar does not have is ignored."""
        ranks, weights = entry
        fits = np.array([self.tag_names[number] == tag for number in self.tag_of_rank[ranks]])
        if not fits.any():
            unseen_ranks, unseen_weights = self.unseen
            allowed = np.array([self.tag_names[number] == tag for number in self.tag_of_rank[unseen_ranks]])
            if not allowed.any():
                return entry
            added = unseen_ranks[allowed], unseen_weights[allowed]
            if mode == "hard":
                return added
            return np.concatenate([ranks, added[0]]), np.concatenate([weights * SOFT_FACTOR, added[1]])
        if mode == "hard":
            return ranks[fits], weights[fits]
        return ranks, np.where(fits, weights, weights * SOFT_FACTOR)


def unseen_entry(ranks: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a word is that nothing is known about: any tag, the likelier the more different words it has."""
    tags, n_words = np.unique(ranks, return_counts=True)
    shares = n_words / max(n_words.sum(), 1)
    return tags.astype(np.int32), shares * UNSEEN_FACTOR * float(weights.max(initial=1.0))
