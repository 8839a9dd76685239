"""Closing cells: which spans of a sentence no node of a tree will cover, learned from the training trees.

At the end of training, for the parser, which does not look at these spans at all. A linear model of the words and their
classes around both ends of a span (`tsgkit._cell_closing`) gives the log odds that some node of a binarised tree covers
it; the class of a word is its most frequent tag.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from tsgkit._archive import require, take_array
from tsgkit._cell_closing import (
    BOUNDARY_SIZE,
    EXTRA_CLASSES,
    LENGTH_SIZE,
    PAIR_KINDS,
    CellScorer,
    OpenCells,
    learn_weights,
)
from tsgkit.treebank import FlatCorpus
from tsgkit.treebank._prepare import preparation_of, token_nodes

N_EPOCHS = 3
# Open cells are not equal: the coarsest grammar's rules are multiplied by the odds of the span to this power. With it,
# pruning keeps fewer wrong spans and loses fewer right ones.
POWER = 0.3
UNKNOWN = -1


@dataclass(repr=False)
class CellClosing:
    """A model of which spans have a node.

    Attributes
    ----------
    word_class : ndarray of int32
        For every word of the vocabulary its class; the largest one is that of words without a tag.
    n_classes : int
        Of them, without that one.
    boundary, pairs, lengths : ndarray of float32
        The weights.
    """

    word_class: np.ndarray
    n_classes: int
    boundary: np.ndarray
    pairs: np.ndarray
    lengths: np.ndarray

    @cached_property
    def scorer(self) -> CellScorer:
        return CellScorer(self.n_classes, self.boundary, self.pairs, self.lengths)

    def log_odds(self, words: np.ndarray) -> np.ndarray:
        """The log odds that a node covers each span of a sentence, by start and end."""
        return self.scorer.log_odds(words, classes_of(words, self.word_class, self.n_classes))

    def open_cells(self, words: np.ndarray, smallest: float, power: float = POWER) -> OpenCells:
        """The spans of a sentence that have at least this probability, and those of one word or of all words.

        Parameters
        ----------
        words : ndarray of int32
            Their numbers in the vocabulary; -1 for unknown ones.
        smallest : float
            Above 0 and below 1.
        power : float
            The odds of a span to this power are its weight.
        """
        classes = classes_of(words, self.word_class, self.n_classes)
        return self.scorer.open_cells(words, classes, math.log(smallest / (1 - smallest)), power)

    def to_parts(self) -> dict[str, np.ndarray]:
        """The arrays of an archive."""
        return {name: getattr(self, name) for name in ("word_class", "boundary", "pairs", "lengths")}

    @classmethod
    def from_parts(cls, arrays: dict[str, np.ndarray], n_words: int, path: str | os.PathLike[str]) -> "CellClosing":
        """The inverse of `to_parts` for a vocabulary of this size; everything is checked."""
        word_class = take_array(arrays, "word_class", "int32", (n_words,), path)
        pairs = take_array(arrays, "pairs", "float32", (None,), path)
        n_all = math.isqrt(len(pairs) // PAIR_KINDS)
        n_classes = n_all - EXTRA_CLASSES
        require(PAIR_KINDS * n_all**2 == len(pairs) and n_classes >= 0, path, "array pairs has the wrong shape")
        in_range = bool(((word_class >= 0) & (word_class <= n_classes)).all())
        require(in_range, path, "a class of words is out of range")
        boundary = take_array(arrays, "boundary", "float32", (BOUNDARY_SIZE,), path)
        lengths = take_array(arrays, "lengths", "float32", (LENGTH_SIZE,), path)
        is_finite = all(bool(np.isfinite(weights).all()) for weights in (boundary, pairs, lengths))
        require(is_finite, path, "a weight of cells is not a number")
        return cls(word_class, n_classes, boundary, pairs, lengths)


@dataclass(repr=False)
class TrainingSpans:
    """The sentences of a corpus as models of spans see them.

    A training word that occurs once is taken for a new word, so that the classes of new words are learned, too.

    Attributes
    ----------
    words, classes : ndarray of int32
        Of all tokens, one sentence after the other.
    word_class : ndarray of int32
        For every word of the vocabulary its class, as in `CellClosing`.
    n_classes : int
    starts, ends : ndarray
        Where the words of every node begin and end, counted through all sentences.
    """

    words: np.ndarray
    classes: np.ndarray
    word_class: np.ndarray
    n_classes: int
    starts: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, corpus: FlatCorpus, vocabulary: Sequence[str]) -> "TrainingSpans":
        """Those of a corpus, for the words of a grammar."""
        nodes, is_first = token_nodes(corpus)
        number_of = {word: number for number, word in enumerate(vocabulary)}
        known = np.array([number_of.get(word, UNKNOWN) for word in corpus.words], dtype=np.int32)[corpus.word[nodes]]
        single = is_single(corpus, nodes)
        taken = known.copy()
        taken[single] = as_new_words(corpus, nodes[single], is_first[single], number_of)
        tags, tag_of_token = np.unique(corpus.label[nodes], return_inverse=True)
        word_class = most_frequent(
            np.concatenate([known, taken]), np.concatenate([tag_of_token, tag_of_token]), len(vocabulary), len(tags)
        )
        return cls(taken, classes_of(taken, word_class, len(tags)), word_class, len(tags), *node_spans(corpus))


def learn_closing(corpus: FlatCorpus, vocabulary: Sequence[str]) -> CellClosing:
    """Learn from the trees of a corpus, for the words of a grammar.

    Examples
    --------
    >>> from tsgkit.treebank import Binarization, UnknownWords, load, prepare
    >>> corpus = prepare(load("village", "train"), binarization=Binarization("right", 0), unknown=UnknownWords())
    >>> closing = learn_closing(corpus, corpus.words)
    >>> words = np.array([corpus.words.index(word) for word in "the old man was here .".split()], dtype=np.int32)
    >>> log_odds = closing.log_odds(words)
    >>> bool(log_odds[0, 3] > 0 > log_odds[2, 4])
    True
    """
    spans = TrainingSpans.of(corpus, vocabulary)
    sentences = []
    for first_node, last_node in pairwise(corpus.tree_start.tolist()):
        first, last = spans.starts[first_node], spans.ends[first_node]
        is_node = np.zeros((last - first + 1, last - first + 1), dtype=np.uint8)
        is_node[spans.starts[first_node:last_node] - first, spans.ends[first_node:last_node] - first] = 1
        sentences.append((spans.words[first:last], spans.classes[first:last], is_node))
    weights = learn_weights(spans.n_classes, sentences, N_EPOCHS, random_orders(len(sentences)))
    return CellClosing(spans.word_class, spans.n_classes, *weights)


def random_orders(n_sentences: int) -> list[list[int]]:
    """The order of sentences in every epoch."""
    random = np.random.Generator(np.random.PCG64(0))
    return [random.permutation(n_sentences).tolist() for _ in range(N_EPOCHS)]


def is_single(corpus: FlatCorpus, nodes: np.ndarray) -> np.ndarray:
    """Which tokens have a form that occurs once."""
    forms = corpus.form[nodes]
    return np.bincount(forms)[forms] == 1


def as_new_words(corpus: FlatCorpus, nodes: np.ndarray, is_first: np.ndarray, number_of: dict[str, int]) -> np.ndarray:
    """The number in the vocabulary that every token would have if its word were new."""
    lexicon = preparation_of(corpus).lexicon
    if lexicon is None:
        return np.full(len(nodes), UNKNOWN, dtype=np.int32)
    tokens = zip(corpus.form[nodes].tolist(), is_first.tolist(), strict=True)
    symbols = (lexicon.classify(corpus.forms[form], 0 if first else 1) for form, first in tokens)
    numbers = [number_of.get(symbol, UNKNOWN) for symbol in symbols]
    return np.array(numbers, dtype=np.int32)


def most_frequent(words: np.ndarray, tags: np.ndarray, n_words: int, n_tags: int) -> np.ndarray:
    """The most frequent tag of every word, the first one among equals; the number of tags for words without any."""
    is_known = words != UNKNOWN
    pairs, counts = np.unique(words[is_known] * np.int64(n_tags) + tags[is_known], return_counts=True)
    # Of all entries of a word the last one stays.
    order = np.lexsort((-pairs, counts))
    result = np.full(n_words, n_tags, dtype=np.int32)
    result[pairs[order] // n_tags] = pairs[order] % n_tags
    return result


def classes_of(words: np.ndarray, word_class: np.ndarray, unknown_class: int) -> np.ndarray:
    """The classes of words, of which unknown ones are -1."""
    return np.where(words == UNKNOWN, unknown_class, word_class[words]).astype(np.int32)


def node_spans(corpus: FlatCorpus) -> tuple[np.ndarray, np.ndarray]:
    """Where the words of each node begin and end, counted through all trees; nodes are in preorder."""
    is_leaf = corpus.word >= 0
    end = np.cumsum(is_leaf)
    start: np.ndarray = end - is_leaf
    # The last child of a node ends where the node does, and comes after it.
    inner = np.flatnonzero(~is_leaf)
    last_child = corpus.child[corpus.child_start[inner + 1] - 1]
    ends: list[int] = end.tolist()
    for node, child in zip(inner[::-1].tolist(), last_child[::-1].tolist(), strict=True):
        ends[node] = ends[child]
    return start, np.array(ends)
