"""The model that closes cells as its definition reads: features of every span in a list, AdaGrad over dictionaries.

Weights are rounded to single precision, as those of the model are.
"""

from collections import defaultdict
from math import exp, sqrt

import numpy as np

N_BUCKETS, N_LENGTHS = 1 << 18, 16
STEP, FIRST_SQUARE = 0.3, 0.1


def code_of(*numbers):
    """The code of a feature, in 64 bits."""
    kind, *others = numbers
    value = kind * 0x9E3779B97F4A7C15 % 2**64
    for other in others:
        value = (value ^ (other + 0x7F4A7C15)) * 0xFF51AFD7ED558CCD % 2**64
        value ^= value >> 32
    return value


def length_bucket(length):
    """1, 2, .. 8, 9-16, 17-32, 33-64, ..."""
    if length <= 8:
        return length - 1
    bucket, largest = 8, 16
    while length > largest and bucket < N_LENGTHS - 1:
        bucket, largest = bucket + 1, 2 * largest
    return bucket


class Sentence:
    """Words and classes, of which two are added at both ends."""

    def __init__(self, words, classes, n_classes):
        before, after = n_classes + 1, n_classes + 2
        self.n_words, self.n_all = len(words), n_classes + 3
        self.classes = [before, before, *classes, after, after]
        self.words = [0, *(word + 2 for word in words), 0]

    def end_features(self, position, is_end):
        """The features of an end of a span, the words and classes on both sides of it."""
        far_left, left, right, far_right = self.classes[position : position + 4]
        left_word, right_word = self.words[position : position + 2]
        lists = [
            (left, right, 0),
            (left_word, 0, 0),
            (right_word, 0, 0),
            (right, far_right, 0),
            (far_left, left, 0),
            (left, right, far_right),
            (far_left, left, right),
            (left, right_word, 0) if is_end else (left_word, right, 0),
        ]
        return [code_of(kind + 8 * is_end, *numbers) for kind, numbers in enumerate(lists)]

    def pairs(self, start, end):
        """The numbers of the pairs of classes of a span."""
        before, first = self.classes[start + 1 : start + 3]
        last, after = self.classes[end + 1 : end + 3]
        pairs = [(first, last), (before, after), (first, after), (before, last)]
        return [(kind * self.n_all + one) * self.n_all + other for kind, (one, other) in enumerate(pairs)]

    def features(self, start, end):
        """All features of a span, as names of a table and places in it; one may be there twice."""
        codes = self.end_features(start, False) + self.end_features(end, True)
        return [
            *(("boundary", code % N_BUCKETS) for code in codes),
            *(("pairs", place) for place in self.pairs(start, end)),
            ("lengths", length_bucket(end - start)),
        ]


def log_odds(weights, features):
    return float(sum(weights[name][place] for name, place in features))


def learned(n_classes, sentences, order):
    """The weights after all epochs: ``{table: {place: weight}}``."""
    weights = {name: defaultdict(float) for name in ("boundary", "pairs", "lengths")}
    squares = {name: defaultdict(lambda: FIRST_SQUARE) for name in weights}
    for epoch in order:
        for number in epoch:
            words, classes, is_node = sentences[number]
            sentence = Sentence(words.tolist(), classes.tolist(), n_classes)
            gradient = defaultdict(float)
            for start in range(len(words)):
                for end in range(start + 2, len(words) + 1):
                    features = sentence.features(start, end)
                    error = 1 / (1 + exp(-log_odds(weights, features))) - is_node[start, end]
                    for feature in features:
                        gradient[feature] += error
            for (name, place), derivative in gradient.items():
                squares[name][place] += derivative**2
                step = STEP * derivative / sqrt(squares[name][place])
                weights[name][place] = float(np.float32(weights[name][place] - step))
    return weights
