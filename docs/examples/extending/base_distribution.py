"""A base distribution that prefers short rules: every child of a rule halves the weight of its count.

Fragments that the base distribution generates then have fewer nodes. In a package of your own, name `short` as an entry
point of the group ``tsgkit.base_distributions``; users then train with ``tsgkit train --model=tsg --base=short``.
"""

import numpy as np

from tsgkit.models.rules import TreeArrays

PENALTY = 0.5


def short(trees: TreeArrays, n_refinements: np.ndarray) -> np.ndarray:
    """A weight for every rule; tsgkit normalises them over the rules of each label.

    Parameters
    ----------
    trees : TreeArrays
        The training trees with their rules: labels of parent and children, words and counts.
    n_refinements : ndarray, one per rule
        The number of its refined versions, which share the probability of the rule; not used here.
    """
    n_children = (trees.rule_left_label >= 0).astype(int) + (trees.rule_right_label >= 0)
    return trees.rule_count * PENALTY**n_children
