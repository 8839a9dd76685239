"""Lexical entries: which symbols of a grammar can make each word of a sentence, and with what weight.

The last place where words are strings. Words that the grammar has never seen and tags that the caller
supplies are dealt with here, so that the chart always has something to start from.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from tsgkit._cell_closing import OpenCells
from tsgkit._constraints import Constraints
from tsgkit._grammar_index import GrammarIndex
from tsgkit._rule_arrays import order_by_last, rules_of
from tsgkit.grammar import WeightedGrammar
from tsgkit.grammar._weighted import GrammarError
from tsgkit.models._closing import UNKNOWN
from tsgkit.treebank._binarize import undo_label
from tsgkit.treebank._partial import GivenBracket

# How much less a tag other than the given one counts when tags are soft.
SOFT_FACTOR = 0.01
# A word with nothing known about it, or with a tag it never had, weighs this much less than a known one.
UNSEEN_FACTOR = 1e-6

Entries = tuple[np.ndarray, np.ndarray, np.ndarray]
WordEntry = tuple[np.ndarray, np.ndarray]


class SentenceWords(tuple[str, ...]):
    """The words of a sentence as grammars know them; of all grammars with the same vocabulary, they are looked up once.

    Examples
    --------
    >>> words = SentenceWords(["the", "dog"])
    >>> words.numbers({"dog": 0, "the": 1})
    array([1, 0], dtype=int32)
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.by_vocabulary: dict[int, np.ndarray] = {}

    def numbers(self, number_of_word: Mapping[str, int]) -> np.ndarray:
        """The numbers of the words in a vocabulary that does not change between calls; `UNKNOWN` where it has none."""
        known = self.by_vocabulary.get(id(number_of_word))
        if known is None:
            known = np.array([number_of_word.get(word, UNKNOWN) for word in self], dtype=np.int32)
            self.by_vocabulary[id(number_of_word)] = known
        return known


class SentenceEntries:
    """The lexical entries of a sentence: ``entries[number]`` are those of a grammar of a cascade.

    What is a callable is found when it is first asked for: of most models of a product, the coarsest grammar is not.

    Parameters
    ----------
    by_grammar : sequence of Entries, or of callables that return them
    open_cells : OpenCells, or callable that returns them, optional
        The spans that the coarsest grammar looks at; all unless given.
    constraints : list of Constraints
        The brackets that trees must have, for every grammar; empty if there are none.
    brackets : list of GivenBracket
        The same, as given.
    weigh : callable, optional
        ``weigh(forest, own_labels=None)`` multiplies posteriors by the odds of labels, as
        `tsgkit.models._span_labels.SpanLabels.weigh` does.
    """

    def __init__(
        self,
        by_grammar: Sequence[Entries | Callable[[], Entries]],
        open_cells: OpenCells | Callable[[], OpenCells | None] | None = None,
        constraints: Sequence[Constraints] = (),
        brackets: Sequence[GivenBracket] = (),
        weigh: Callable[..., None] | None = None,
    ) -> None:
        self.by_grammar, self.cells = list(by_grammar), open_cells
        self.constraints, self.brackets, self.weigh = list(constraints), list(brackets), weigh

    def __getitem__(self, number: int) -> Entries:
        found = self.by_grammar[number]
        if callable(found):
            self.by_grammar[number] = found = found()
        return found

    @property
    def open_cells(self) -> OpenCells | None:
        """The spans that the coarsest grammar looks at; all if there are none."""
        if callable(self.cells):
            self.cells = self.cells()
        return self.cells

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
    number_of_word : dict, optional
        A number for every word, from 0 on in their order, so that several grammars look words up once; it is given the
        words of the grammar that it does not have yet. Unless given, one of the grammar's own.
    """

    def __init__(
        self, grammar: WeightedGrammar, index: GrammarIndex, number_of_word: dict[str, int] | None = None
    ) -> None:
        if not len(grammar.lexical):
            raise GrammarError("the grammar has no words: nothing can be parsed with it")
        self.grammar, self.index = grammar, index
        self.tag_of_rank = grammar.label[index.symbol_of_rank]
        self.tag_names = [undo_label(label) for label in grammar.labels]
        self.number_by({} if number_of_word is None else number_of_word)

    def number_by(self, number_of_word: dict[str, int]) -> None:
        """Look words up in a dictionary, which is given those that it does not have yet."""
        for word in self.grammar.words:
            number_of_word.setdefault(word, len(number_of_word))
        self.number_of_word = number_of_word

    @cached_property
    def by_word(self) -> Entries:
        """All rules by word, and those of a word that nothing is known about, whose number is the last."""
        order, starts = order_by_last(self.grammar.lexical, len(self.grammar.words))
        # Where memory is lacking, `take` raises MemoryError; numpy's indexing by 32-bit numbers crashes.
        ranks = self.index.rank_of_symbol.take(self.grammar.lexical[:, 0].take(order))
        weights = self.grammar.lexical_weight.take(order)
        unseen = unseen_entry(ranks, weights)
        return np.append(starts, starts[-1] + len(unseen[0])), *joined((ranks, weights), unseen)

    @property
    def unseen(self) -> WordEntry:
        """The entry of a word that nothing is known about."""
        starts, ranks, weights = self.by_word
        return ranks[starts[-2] :], weights[starts[-2] :]

    @cached_property
    def number_in_grammar(self) -> np.ndarray:
        """For every number of a word that of the grammar, `UNKNOWN` at the end; made when all words have numbers."""
        if self.grammar.words == list(self.number_of_word):
            return np.append(np.arange(len(self.number_of_word), dtype=np.int32), np.int32(UNKNOWN))
        own = {word: number for number, word in enumerate(self.grammar.words)}
        return np.array([*(own.get(word, UNKNOWN) for word in self.number_of_word), UNKNOWN], dtype=np.int32)

    @cached_property
    def entry_of_number(self) -> np.ndarray:
        """For every number of a word that in `by_word`: that of unseen words where the grammar has no rule for it."""
        n_words = len(self.grammar.words)
        entries = np.where(np.diff(self.by_word[0]) > 0, np.arange(n_words + 1, dtype=np.int32), np.int32(n_words))
        return entries[self.number_in_grammar]

    def grammar_numbers(self, words: "SentenceWords") -> np.ndarray:
        """The numbers of words in the grammar; `UNKNOWN` where it has none."""
        return self.number_in_grammar[words.numbers(self.number_of_word)]

    def numbers(self, words: Sequence[str]) -> np.ndarray:
        """The numbers of words in `by_word`; the last one for words without rules."""
        if not isinstance(words, SentenceWords):
            words = SentenceWords(words)
        return self.entry_of_number[words.numbers(self.number_of_word)]

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
            As the grammar knows them: rare words replaced by their classes. `SentenceWords` are looked up once for all
            grammars with the same vocabulary.
        tags : sequence of str or None, optional
            A tag for every word, ``None`` where there is none.
        mode : {"none", "hard", "soft"}
            Whether tags are ignored, the only ones allowed, or preferred.
        possible : sequence of (int, str)
            Numbers of words, each with a tag that the word may have even if it was never seen with it.
        """
        starts, ranks, weights = rules_of(self.numbers(words), *self.by_word)
        if (tags is None or mode == "none") and not possible:
            return starts, ranks, weights
        found = list(zip(np.split(ranks, starts[1:-1]), np.split(weights, starts[1:-1]), strict=True))
        if tags is not None and mode != "none":
            found = [
                entry if tag is None else self.with_tag(entry, tag, mode)
                for entry, tag in zip(found, tags, strict=True)
            ]
        for place, tag in possible:
            if not self.fits(found[place][0], tag).any():
                found[place] = joined(found[place], self.unseen_with(tag))
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
            return added if mode == "hard" else joined((ranks, softened(weights)), added)
        if mode == "hard":
            return ranks[fits], weights[fits]
        return ranks, np.where(fits, weights, softened(weights))

    def fits(self, ranks: np.ndarray, tag: str) -> np.ndarray:
        """Which of these symbols have a tag."""
        return np.array([self.tag_names[number] == tag for number in self.tag_of_rank[ranks]], dtype=bool)

    def unseen_with(self, tag: str) -> WordEntry:
        """The entry of a word that was never seen with a tag; empty if the grammar does not have the tag."""
        ranks, weights = self.unseen
        allowed = self.fits(ranks, tag)
        return ranks[allowed], weights[allowed]


def softened(weights: np.ndarray) -> np.ndarray:
    """The weights of tags that are not the given one: less, but above 0 as all weights are."""
    return np.maximum(weights * SOFT_FACTOR, np.nextafter(0.0, 1.0))


def joined(one: WordEntry, other: WordEntry) -> WordEntry:
    return np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])


def unseen_entry(ranks: np.ndarray, weights: np.ndarray) -> WordEntry:
    """What a word is that nothing is known about: any tag, the likelier the more different words it has."""
    counts = np.bincount(ranks)
    tags = np.flatnonzero(counts)
    shares = counts[tags] / max(len(ranks), 1)
    return tags.astype(np.int32), shares * UNSEEN_FACTOR * float(weights.max(initial=1.0))
