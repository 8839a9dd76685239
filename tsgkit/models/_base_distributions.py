"""Base distributions P0 over the rules of the treebank, by name: what restaurants back off to in the end.

Used when a training is set up. A base distribution is a function that weighs every rule; the probability of a rule is
its share among the rules of its label, so that they sum to one:

    P0(r) = w(r) / sum over r' with the label of r of w(r')
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tsgkit import _plugins
from tsgkit._registry import Registry
from tsgkit.errors import UsageError
from tsgkit.models._rules import TreeArrays

# The trees with their rules, and of every rule how many refined versions it has (1 where labels are not refined).
BaseDistribution = Callable[[TreeArrays, np.ndarray], np.ndarray]


def frequency(trees: TreeArrays, n_refinements: np.ndarray) -> np.ndarray:
    """Weights that make probabilities the relative frequencies of the treebank.

    Parameters
    ----------
    trees : TreeArrays
    n_refinements : ndarray of int, one per rule
        How many refined versions it has.
    """
    return trees.rule_count.astype(np.float64)


def uniform(trees: TreeArrays, n_refinements: np.ndarray) -> np.ndarray:
    """Weights that make every refined version of every rule of a label as likely as any other.

    Parameters
    ----------
    trees : TreeArrays
    n_refinements : ndarray of int, one per rule
        How many refined versions it has.
    """
    return n_refinements.astype(np.float64)


BASE_DISTRIBUTIONS: Registry[BaseDistribution] = _plugins.BASE_DISTRIBUTIONS


def base_weights(name: str, trees: TreeArrays, n_refinements: np.ndarray) -> np.ndarray:
    """The weights that a base distribution gives to the rules, checked.

    Raises
    ------
    UsageError
        If there is no base distribution of this name, or if it gives anything but one positive number for every rule.

    Examples
    --------
    >>> from nltk.tree import Tree
    >>> from tsgkit.models.rules import number_rules
    >>> from tsgkit.treebank import FlatCorpus
    >>> trees = number_rules(FlatCorpus.from_trees([Tree.fromstring("(S (A a) (A b))"), Tree.fromstring("(S (A a))")]))
    >>> base_weights("frequency", trees, np.ones(trees.n_rules)).tolist()
    [1.0, 1.0, 2.0, 1.0]
    """
    weights = np.asarray(BASE_DISTRIBUTIONS.require(name)(trees, n_refinements))
    if weights.dtype != np.float64 or weights.shape != (trees.n_rules,):
        raise UsageError(f"the base distribution {name!r} does not give one weight, a float64, for every rule")
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise UsageError(f"the base distribution {name!r} gives a rule a weight that is not a positive number")
    return weights


def shares(weights: np.ndarray, trees: TreeArrays) -> np.ndarray:
    """The share of every rule's weight among the rules of its label; 0 where all of them are 0."""
    totals = np.bincount(trees.rule_label, weights=weights, minlength=trees.n_labels)
    return weights / np.maximum(totals, 1e-300)[trees.rule_label]


def with_base(trees: TreeArrays, name: str) -> TreeArrays:
    """The trees of a corpus with the probabilities of a base distribution for their rules.

    Examples
    --------
    >>> from nltk.tree import Tree
    >>> from tsgkit.models.rules import number_rules
    >>> from tsgkit.treebank import FlatCorpus
    >>> trees = number_rules(FlatCorpus.from_trees([Tree.fromstring("(S (A a) (S (A a) (A b)))")]))
    >>> with_base(trees, "uniform").rule_probability.tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    weights = base_weights(name, trees, np.ones(trees.n_rules))
    return replace(trees, rule_weight=weights, rule_probability=shares(weights, trees))
