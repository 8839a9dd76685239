"""What the classes of words back off to under a tag: a Pitman-Yor hierarchy over shorter and shorter suffixes.

A class of `tsgkit.treebank.unknown` is reached from ``UNK`` in steps: script, case, then the letters of its suffix from
the last one on. At each level of the hierarchy, classes are cut off after so many steps. Under tag x,

    J_x(c) ~ PYP(d_1, theta_1, m(c | c') J'_x(c')),    J'_x(c') ~ PYP(d_2, theta_2, m(c' | c'') J''_x(c'')),    ...

c' being what the next level leaves of c, and m(c | c') the share of c in the training words below c', whatever their
tags. So a class that a tag was not seen with is as probable as the shorter suffix makes it. The restaurants of a level
are those of all tags, with one discount and one strength for all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tsgkit.treebank.unknown._model import ROOT_CLASS

# As many as compiled samplers take; steps beyond them, next to ``UNK``, have no level.
MOST_LEVELS = 16


@dataclass(frozen=True)
class ClassLevels:
    """The levels of the classes of a tag, from the classes themselves to the coarsest ones.

    Attributes
    ----------
    dish : ndarray of int, levels by classes
        What each level leaves of every class, counted from 0 on at each level; the classes themselves at the first.
    share : ndarray of float, levels by classes
        Of the training words of what the next level leaves of a class, the share of what this level leaves of it; at
        the last level of all training words.
    """

    dish: np.ndarray
    share: np.ndarray

    @classmethod
    def of(cls, classes: Sequence[str], coarser: Mapping[str, str], n_types: Sequence[int]) -> "ClassLevels":
        """The levels of these classes.

        Parameters
        ----------
        classes : sequence of str
        coarser : mapping
            From each class and each that follows it to the next coarser one; ``UNK`` has none.
        n_types : sequence of int, one per class
            The number of its training words, at least 1.

        Examples
        --------
        >>> levels = ClassLevels.of(["UNK", "UNK-a", "UNK-a-*s"], {"UNK-a-*s": "UNK-a", "UNK-a": "UNK"}, [1, 1, 2])
        >>> levels.dish.tolist()
        [[0, 1, 2], [0, 1, 1]]
        >>> levels.share.round(2).tolist()
        [[1.0, 0.33, 0.67], [0.25, 0.75, 0.75]]
        """
        paths = []
        for name in classes:
            path = [name]
            while path[0] != ROOT_CLASS:
                path.insert(0, coarser[path[0]])
            paths.append(path)
        longest = max(map(len, paths), default=1)
        dishes = [np.arange(len(classes))]
        for length in range(longest - 1, 1, -1):
            names = [path[:length][-1] for path in paths]
            numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
            if len(numbers) < dishes[-1].max() + 1 and len(dishes) < MOST_LEVELS:
                dishes.append(np.array([numbers[name] for name in names]))
        sizes = [np.bincount(dish, weights=n_types)[dish] for dish in dishes]
        sizes.append(np.full(len(classes), float(sum(n_types))))
        return cls(np.stack(dishes), np.stack([here / below for here, below in pairwise(sizes)]))

    @classmethod
    def uniform(cls, n_classes: int) -> "ClassLevels":
        """One level, whose classes are equally probable."""
        return cls(np.arange(n_classes)[None], np.full((1, n_classes), 1.0 / max(1, n_classes)))

    @property
    def kinds(self) -> list[str]:
        """The names of these levels in a sampler."""
        return ["label_class", *(f"label_class_{number}" for number in range(2, len(self.dish) + 1))]

    def probabilities(self, cached: Sequence[np.ndarray], bridges: Sequence[np.ndarray]) -> np.ndarray:
        """Labels by classes: the probability of every class under every label.

        Parameters
        ----------
        cached : sequence of ndarray, one per level
            Labels by dishes: the weights of the tables of each dish.
        bridges : sequence of ndarray, one per level
            Of every label, the weight of backing off.
        """
        value = np.ones((len(bridges[0]), self.dish.shape[1]))
        for dish, share, weights, bridge in reversed(list(zip(self.dish, self.share, cached, bridges, strict=True))):
            value = weights[:, dish] + bridge[:, None] * share * value
        return value
