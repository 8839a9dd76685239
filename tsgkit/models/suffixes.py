"""What the classes of words back off to under a tag: shorter suffixes, by a Dirichlet tree over the classes.

A class of `tsgkit.treebank.unknown` is reached from ``UNK`` in steps: script, case, then the letters of its suffix from
the last one on, and a step that ends there. Under tag x, the steps from each node of this tree have a distribution

    s_{x,n} ~ Dirichlet(a m_n),        B_x(c) = product over the steps to c,

m_n being the shares of the training words below every step, whatever their tags: a Pitman-Yor process without discount,
of finitely many dishes. J_x, the restaurant of a tag over classes, backs off to B_x, so that a class that a tag was not
seen with is as probable as the shorter suffix makes it.

B_x is resampled given the tables of J_x before every sweep, and so is the concentration a, from `CONCENTRATIONS`, all
of which are equally probable beforehand. With B_x drawn, all other draws are those of the sampler. In a grammar, B_x is
integrated out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import lgamma

import numpy as np

from tsgkit.treebank.unknown.model import ROOT_CLASS

CONCENTRATIONS = 2.0 ** np.arange(-2, 11)
# B_x of a class may be too small for a float; kernels take no zero.
SMALLEST_BASE = 1e-300


@dataclass(frozen=True)
class ClassTree:
    """The steps from ``UNK`` to every class.

    Attributes
    ----------
    path : ndarray of int
        Per class, the numbers of its steps; the last columns of shorter paths have the number of steps, which is none.
    node : ndarray of int, one per step
        The node that it starts from, in ascending order.
    share : ndarray of float, one per step
        Of the training words below the node, those below the step.
    """

    path: np.ndarray
    node: np.ndarray
    share: np.ndarray

    @classmethod
    def of(cls, classes: Sequence[str], coarser: Mapping[str, str], n_types: Sequence[int]) -> "ClassTree":
        """The tree of these classes.

        Parameters
        ----------
        classes : sequence of str
        coarser : mapping
            From each class and each that follows it to the next coarser one; ``UNK`` has none.
        n_types : sequence of int, one per class
            The number of its training words, at least 1.

        Examples
        --------
        >>> tree = ClassTree.of(["UNK", "UNK-a", "UNK-a-*s"], {"UNK-a-*s": "UNK-a", "UNK-a": "UNK"}, [1, 1, 2])
        >>> tree.node.tolist(), tree.share.tolist(), tree.path.tolist()
        ([0, 0, 1, 1, 2], [0.25, 0.75, 0.3333333333333333, 0.6666666666666666, 1.0], [[0, 5, 5], [1, 2, 5], [1, 3, 4]])
        """
        paths = []
        for name in classes:
            nodes = [name]
            while nodes[-1] != ROOT_CLASS:
                nodes.append(coarser[nodes[-1]])
            # A step that ends at a node leads from it to itself.
            paths.append([*pairwise(reversed(nodes)), (name, name)])
        weight: dict[tuple[str, str], int] = {}
        for steps, n in zip(paths, n_types, strict=True):
            for step in steps:
                weight[step] = weight.get(step, 0) + n
        numbers = {step: number for number, step in enumerate(sorted(weight))}
        nodes = sorted({start for start, _ in weight})
        node = np.searchsorted(nodes, [start for start, _ in numbers])
        amount = np.array([weight[step] for step in numbers], dtype=np.float64)
        path = np.full((len(classes), max(map(len, paths))), len(numbers))
        for row, steps in zip(path, paths, strict=True):
            row[: len(steps)] = [numbers[step] for step in steps]
        return cls(path, node, amount / np.bincount(node, weights=amount)[node])

    def step_counts(self, n_tables: np.ndarray) -> np.ndarray:
        """Labels by steps: how many tables are below each step.

        Parameters
        ----------
        n_tables : ndarray of int, labels by classes
        """
        counts = np.zeros((len(self.share) + 1, len(n_tables)))
        for column in self.path.T:
            np.add.at(counts, column, n_tables.T)
        return counts[:-1].T

    def of_nodes(self, values: np.ndarray) -> np.ndarray:
        """The sums over the steps of every node, for the last axis of an array."""
        return np.add.reduceat(values, np.flatnonzero(np.diff(self.node, prepend=-1)), axis=-1)

    def classes_of(self, steps: np.ndarray) -> np.ndarray:
        """Labels by classes: the products of the probabilities of their steps."""
        steps = np.concatenate([steps, np.ones((len(steps), 1))], axis=1)
        result = np.ones((len(steps), len(self.path)))
        for column in self.path.T:
            result *= steps[:, column]
        return result

    def posterior(self, counts: np.ndarray) -> np.ndarray:
        """The probability of each of `CONCENTRATIONS` given the steps of all tables, with B_x integrated out."""
        share, totals = np.broadcast_to(self.share, counts.shape), self.of_nodes(counts)
        logs = log_rising(share[counts > 0], counts[counts > 0]) - log_rising(np.ones_like(totals), totals)
        weights = np.exp(logs - logs.max())
        return weights / weights.sum()

    def draw(self, n_tables: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Labels by classes: B_x given the tables of J_x, after a draw of the concentration.

        Parameters
        ----------
        n_tables : ndarray of int, labels by classes
        random : numpy.random.Generator
        """
        counts = self.step_counts(n_tables)
        concentration = random.choice(CONCENTRATIONS, p=self.posterior(counts))
        amounts = random.standard_gamma(concentration * self.share + counts)
        steps = amounts / np.maximum(self.of_nodes(amounts), SMALLEST_BASE)[:, self.node]
        return np.clip(self.classes_of(steps), SMALLEST_BASE, 1.0)

    def mean(self, n_tables: np.ndarray) -> np.ndarray:
        """Labels by classes: the expectation of B_x given the tables of J_x, over all concentrations.

        Parameters
        ----------
        n_tables : ndarray of int, labels by classes
        """
        counts = self.step_counts(n_tables)
        totals = self.of_nodes(counts)[:, self.node]
        result = np.zeros(n_tables.shape)
        for value, probability in zip(CONCENTRATIONS, self.posterior(counts), strict=True):
            result += probability * self.classes_of((value * self.share + counts) / (value + totals))
        return result


def log_rising(share: np.ndarray, n_factors: np.ndarray) -> np.ndarray:
    """For each of `CONCENTRATIONS`, the log of the product of a (a + 1) ... with so many factors, over its shares a.

    Examples
    --------
    >>> np.exp(log_rising(np.array([1.0, 0.5]), np.array([3, 0]))[CONCENTRATIONS == 2]).round(9).tolist()
    [24.0]
    """
    pairs, n_times = np.unique(np.stack([share, n_factors]).reshape(2, -1), axis=1, return_counts=True)
    result = np.zeros(len(CONCENTRATIONS))
    for (value, n), times in zip(pairs.T.tolist(), n_times.tolist(), strict=True):
        result += times * np.array([lgamma(a * value + n) - lgamma(a * value) for a in CONCENTRATIONS.tolist()])
    return result
