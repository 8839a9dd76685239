"""Labels of spans: which label the words around its ends give a span, learned from the training trees.

At the end of training, for the parser, which multiplies the posteriors of rules by the odds of their labels
(`tsgkit._span_labels`). A grammar knows a phrase by its label alone; this model sees the words at its ends and beside
it. It looks at the spans that cell closing leaves open (`tsgkit.models._closing`), and has the same classes of words.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from tsgkit._archive import require, take_array
from tsgkit._forest import Forest
from tsgkit._span_labels import LabelScorer, learn_label_weights
from tsgkit.models._closing import CellClosing, TrainingSpans, classes_of, random_orders
from tsgkit.treebank import FlatCorpus

# The most frequent labels have outputs of their own; all others share the last one.
MOST_OUTPUTS = 64
# Features are hashed into a table with about a row for every four tokens of the treebank: docs/results/size.rst.
TOKENS_PER_ROW = 4
FEWEST_ROWS, MOST_ROWS = 1 << 15, 1 << 18
# Spans without a node that are less probable than this are not learned from: they are not looked at either.
SMALLEST = 1e-2
NOT_LEARNED = -1


@dataclass(repr=False)
class SpanLabels:
    """A model of the labels of spans.

    Attributes
    ----------
    output_of_label : ndarray of int32
        For every label of the grammar its output in the model; 0 for labels of nodes without two children.
    weights : ndarray of float16
        By row and output.
    closing : CellClosing
        Which knows the classes of words.
    """

    output_of_label: np.ndarray
    weights: np.ndarray
    closing: CellClosing

    @cached_property
    def scorer(self) -> LabelScorer:
        return LabelScorer(self.closing.n_classes, self.weights.astype(np.float32))

    def log_odds(self, words: np.ndarray) -> np.ndarray:
        """The log odds of every output, by start, end and output, for words numbered as in the vocabulary."""
        return self.scorer.log_odds(words, self.classes(words))

    def weigh(self, forest: Forest, own_labels: np.ndarray | None = None, *, words: np.ndarray, power: float) -> None:
        """Multiply the posteriors of rules with two children by the odds of their labels, to a power.

        Parameters
        ----------
        forest : Forest
            Of these words.
        own_labels : ndarray of int32, optional
            For every label of the forest its number in the grammar, -1 if it has none; unless given, they are the same.
        words : ndarray of int32
            Their numbers in the vocabulary; -1 for unknown ones.
        power : float
        """
        outputs = self.output_of_label
        if own_labels is not None:
            outputs = np.where(own_labels < 0, 0, outputs.take(own_labels, mode="clip")).astype(np.int32)
        self.scorer.weigh(forest, words, self.classes(words), outputs, power)

    def classes(self, words: np.ndarray) -> np.ndarray:
        return classes_of(words, self.closing.word_class, self.closing.n_classes)

    def to_parts(self) -> dict[str, np.ndarray]:
        """The arrays of an archive."""
        return {"output_of_label": self.output_of_label, "weights": self.weights}

    @classmethod
    def from_parts(
        cls, arrays: dict[str, np.ndarray], n_labels: int, closing: CellClosing | None, path: str | os.PathLike[str]
    ) -> "SpanLabels":
        """The inverse of `to_parts` for a grammar with so many labels; everything is checked."""
        require(closing is not None, path, "labels of spans without classes of words")
        assert closing is not None
        output_of_label = take_array(arrays, "output_of_label", "int32", (n_labels,), path)
        weights = take_array(arrays, "weights", "float16", (None, None), path)
        n_rows, n_outputs = weights.shape
        has_rows = FEWEST_ROWS <= n_rows <= MOST_ROWS and n_rows.bit_count() == 1
        require(has_rows and 1 <= n_outputs <= MOST_OUTPUTS, path, "array weights has the wrong shape")
        in_range = bool(((output_of_label >= 0) & (output_of_label < n_outputs)).all())
        require(in_range, path, "an output of labels is out of range")
        require(bool(np.isfinite(weights).all()), path, "a weight of labels is not a number")
        return cls(output_of_label, weights, closing)


def learn_span_labels(
    corpus: FlatCorpus, vocabulary: Sequence[str], labels: Sequence[str], closing: CellClosing
) -> SpanLabels:
    """Learn from the trees of a corpus, for the words and labels of a grammar and a model of the same trees.

    Examples
    --------
    >>> from tsgkit.models._closing import learn_closing
    >>> from tsgkit.treebank import Binarization, UnknownWords, load, prepare
    >>> corpus = prepare(load("village", "train"), binarization=Binarization("right", 0), unknown=UnknownWords())
    >>> closing = learn_closing(corpus, corpus.words)
    >>> model = learn_span_labels(corpus, corpus.words, corpus.labels, closing)
    >>> words = np.array([corpus.words.index(word) for word in "the old man was here .".split()], dtype=np.int32)
    >>> noun_phrase = model.output_of_label[corpus.labels.index("NP")]
    >>> log_odds = model.log_odds(words)[0, 3]
    >>> bool(log_odds.argmax() == noun_phrase)
    True
    """
    spans = TrainingSpans.of(corpus, vocabulary)
    has_two = np.diff(corpus.child_start) == 2
    output_of_label = outputs_by_frequency(corpus, has_two, labels)
    number_of = {label: number for number, label in enumerate(labels)}
    own_label = np.array([number_of.get(label, -1) for label in corpus.labels])
    output_of_node = np.where(has_two, output_of_label[own_label[corpus.label]], 0)
    least = math.log(SMALLEST / (1 - SMALLEST))
    sentences = []
    for first_node, last_node in pairwise(corpus.tree_start.tolist()):
        first, last = spans.starts[first_node], spans.ends[first_node]
        words = spans.words[first:last]
        outputs = np.where(closing.log_odds(words) < least, NOT_LEARNED, 0).astype(np.int8)
        nodes = first_node + np.flatnonzero(has_two[first_node:last_node])
        outputs[spans.starts[nodes] - first, spans.ends[nodes] - first] = output_of_node[nodes]
        sentences.append((words, spans.classes[first:last], outputs))
    n_outputs = int(output_of_label.max(initial=0)) + 1
    n_rows = rows_for(len(spans.words))
    weights = learn_label_weights(spans.n_classes, n_outputs, n_rows, sentences, random_orders(len(sentences)))
    return SpanLabels(output_of_label, weights.astype(np.float16), closing)


def rows_for(n_tokens: int) -> int:
    """How many rows the table of hashed features has for a treebank of so many tokens.

    Examples
    --------
    >>> rows_for(50_000), rows_for(500_000)
    (32768, 131072)
    """
    return min(max(1 << (n_tokens // TOKENS_PER_ROW).bit_length(), FEWEST_ROWS), MOST_ROWS)


def outputs_by_frequency(corpus: FlatCorpus, has_two: np.ndarray, labels: Sequence[str]) -> np.ndarray:
    """For every label its output: 1 for the most frequent one of nodes with two children, and so on."""
    counts = np.bincount(corpus.label[has_two], minlength=len(corpus.labels))
    order = np.argsort(-counts, kind="stable")
    ranked = [corpus.labels[number] for number in order[: np.count_nonzero(counts)].tolist()]
    output_of = {label: min(number, MOST_OUTPUTS - 1) for number, label in enumerate(ranked, start=1)}
    return np.array([output_of.get(label, 0) for label in labels], dtype=np.int32)
