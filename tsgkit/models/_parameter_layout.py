"""Discounts and strengths of refined grammars, as samplers give and take them, divided into what they belong to."""

from dataclasses import dataclass

import numpy as np

# The levels of words with parameters for every label, after those of rules.
WORD_LEVELS = ("class", "word")


@dataclass(frozen=True)
class RefinedParameters:
    """Discounts (the first row of every array) and strengths (the second).

    Attributes
    ----------
    by_label : ndarray, 2 by levels by labels
        Of rules, classes and words.
    of_all : ndarray, 2 by levels
        Of the levels of the labels' classes: one pair for all labels.
    of_symbols : ndarray, 2 by symbols
        Of fragments; none in a sampler of splits.

    Examples
    --------
    >>> values = np.arange(14).reshape(2, 7)
    >>> parameters = RefinedParameters.of(values, n_labels=2, n_class_levels=1, n_symbols=2)
    >>> parameters.by_label[0].tolist(), parameters.of_all[0].tolist(), parameters.of_symbols[0].tolist()
    ([[0, 1], [2, 3]], [4], [5, 6])
    >>> (parameters.joined() == values).all()
    np.True_
    """

    by_label: np.ndarray
    of_all: np.ndarray
    of_symbols: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, *, n_labels: int, n_class_levels: int, n_symbols: int) -> "RefinedParameters":
        """Divide what `RefinedSampler.parameters` or `SplitSampler.parameters` gave; ValueError if it does not fit."""
        n_by_label = values.shape[-1] - n_class_levels - n_symbols
        if values.ndim != 2 or len(values) != 2 or n_by_label < n_labels or n_by_label % n_labels:
            raise ValueError("one discount and one strength are needed for every restaurant")
        by_label, of_all, of_symbols = np.split(values, [n_by_label, n_by_label + n_class_levels], axis=1)
        return cls(by_label.reshape(2, -1, n_labels), of_all, of_symbols)

    def joined(self) -> np.ndarray:
        """All values in the order of the samplers."""
        return np.concatenate([self.by_label.reshape(2, -1), self.of_all, self.of_symbols], axis=1)

    def first(self, n_labels: int, n_symbols: int) -> "RefinedParameters":
        """Those of the first labels and symbols."""
        return RefinedParameters(self.by_label[:, :, :n_labels], self.of_all, self.of_symbols[:, :n_symbols])
