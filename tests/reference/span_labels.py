"""The model of the labels of spans as its definition reads: rows of features in a list, AdaGrad over a dense table."""

import numpy as np
from reference.closing import FIRST_SQUARE, STEP, Sentence, code_of, length_bucket

PAIR_KIND, LENGTH_KIND = 16, 17


def rows_of(sentence, start, end, n_rows):
    """The rows of all features of a span; one may be there twice."""
    codes = [
        *sentence.end_features(start, False),
        *sentence.end_features(end, True),
        *(code_of(PAIR_KIND, pair, 0, 0) for pair in sentence.pairs(start, end)),
        code_of(LENGTH_KIND, length_bucket(end - start), 0, 0),
    ]
    return [code % n_rows for code in codes]


def log_odds(weights, rows):
    """The log odds of every output against output 0."""
    scores = sum(weights[row].astype(float) for row in rows)
    return scores - scores[0]


def learned(n_classes, n_outputs, n_rows, sentences, order):
    """The weights after all epochs."""
    weights, squares = np.zeros((n_rows, n_outputs)), np.full((n_rows, n_outputs), FIRST_SQUARE)
    for epoch in order:
        for number in epoch:
            words, classes, outputs = sentences[number]
            sentence = Sentence(words.tolist(), classes.tolist(), n_classes)
            gradient = np.zeros((n_rows, n_outputs))
            for start in range(len(words)):
                for end in range(start + 2, len(words) + 1):
                    if outputs[start, end] < 0:
                        continue
                    rows = rows_of(sentence, start, end, n_rows)
                    errors = np.exp(log_odds(weights, rows))
                    errors /= errors.sum()
                    errors[outputs[start, end]] -= 1
                    for row in rows:
                        gradient[row] += errors
            squares += gradient**2
            weights -= STEP * gradient / np.sqrt(squares)
    return weights
