"""Binary trees as arrays, checked before compiled code sees them."""

import numpy as np

from libcpp.vector cimport vector

from tsgkit._types cimport index_t
from tsgkit._vectors cimport copy_indices, copy_symbols


def validate_trees(trees):
    """Refuse arrays of trees that compiled code must not see.

    Parameters
    ----------
    trees : TreeArrays

    Raises
    ------
    ValueError
        Says which array is wrong, and how.
    """
    n_nodes, n_rules = len(trees.label), len(trees.rule_label)
    for name in ("rule", "left", "right", "parent"):
        require(len(getattr(trees, name)) == n_nodes, f"{name} does not have one entry per node")
    for name in ("rule_left_label", "rule_right_label", "rule_word", "rule_probability"):
        require(len(getattr(trees, name)) == n_rules, f"{name} does not have one entry per rule")
    starts = trees.tree_start
    require(
        n_nodes > 0 and starts[0] == 0 and starts[len(starts) - 1] == n_nodes and (np.diff(starts) > 0).all(),
        "the trees are not one after the other",
    )
    require(((trees.rule >= 0) & (trees.rule < n_rules)).all(), "a node's rule is out of range")
    for name, lowest in (("rule_label", 0), ("rule_left_label", -1), ("rule_right_label", -1)):
        labels = getattr(trees, name)
        require(((labels >= lowest) & (labels < trees.n_labels)).all(), "a rule's label is out of range")
    validate_children(trees)
    require((trees.label == trees.rule_label[trees.rule]).all(), "a node's label is not that of its rule")
    roots = trees.parent[starts[:len(starts) - 1]]
    require((trees.parent < 0).sum() == len(roots) and (roots < 0).all(), "a tree does not have exactly one root")
    probability = trees.rule_probability
    require((np.isfinite(probability) & (probability > 0)).all(), "a rule's probability is not positive")


def validate_children(trees):
    """Refuse children that are not below their parents, each below one."""
    n_nodes, starts = len(trees.label), trees.tree_start
    nodes = np.arange(n_nodes)
    ends = np.repeat(starts[1:], np.diff(starts))
    for child, wanted in ((trees.left, trees.rule_left_label), (trees.right, trees.rule_right_label)):
        has = child >= 0
        below = child[has]
        require(((below > nodes[has]) & (below < ends[has])).all(), "a child is not in its tree below its parent")
        require(
            (has == (wanted[trees.rule] >= 0)).all() and (trees.label[below] == wanted[trees.rule[has]]).all(),
            "a node's children are not those of its rule",
        )
        require((trees.parent[below] == nodes[has]).all(), "a child's parent is another node")
    children = np.concatenate([trees.left[trees.left >= 0], trees.right[trees.right >= 0]])
    times_child = np.bincount(children, minlength=n_nodes)
    times_child[starts[:len(starts) - 1]] += 1
    require((times_child == 1).all(), "a node is below two parents or none")


def require(holds, message):
    if not holds:
        raise ValueError(message)


cdef int copy_tree_numbers(object numbers, index_t n_trees, vector[index_t]& result) except -1:
    numbers = np.asarray(numbers, dtype=np.int64)
    if numbers.ndim != 1 or (numbers < 0).any() or (numbers >= n_trees).any() or len(np.unique(numbers)) < len(numbers):
        raise ValueError("the numbers of trees are out of range, or one stands twice")
    return copy_indices(numbers, result)


cdef int copy_trees(object arrays, BinaryTrees* trees) except -1:
    validate_trees(arrays)
    copy_symbols(arrays.label, trees.label)
    copy_symbols(arrays.rule, trees.rule)
    copy_symbols(arrays.left, trees.left)
    copy_symbols(arrays.right, trees.right)
    copy_symbols(arrays.parent, trees.parent)
    copy_indices(arrays.tree_start, trees.tree_start)
    copy_symbols(arrays.rule_label, trees.rule_label)
    copy_symbols(arrays.rule_left_label, trees.rule_left_label)
    copy_symbols(arrays.rule_right_label, trees.rule_right_label)
    return 0
