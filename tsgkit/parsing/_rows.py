"""Trees as rows ``(label, start, end, kind)``, the form in which compiled code gives and takes them.

Rows stand in the order of a walk from the root down, left to right. The kind is the number of children;
0 is a tag over its word.
"""

from collections.abc import Sequence

import numpy as np
from nltk.tree import Tree

from tsgkit._codes import BRIDGE, LEXICAL, ROW_KIND, ROW_LABEL
from tsgkit.treebank._trees import is_preterminal


def project(rows: np.ndarray, label: np.ndarray) -> np.ndarray:
    """The treebank tree of a derivation: bridges make no node, symbols become their labels."""
    kept = rows[rows[:, ROW_KIND] != BRIDGE]
    kept[:, ROW_LABEL] = label[kept[:, ROW_LABEL]]
    return kept


def tree_of_rows(rows: np.ndarray, labels: Sequence[str], words: Sequence[str]) -> Tree:
    """The `nltk.Tree` of rows over the words of a sentence."""
    waiting: list[Tree] = []
    for label, start, _, n_children in reversed(rows.tolist()):
        if n_children == 0:
            waiting.append(Tree(labels[label], [words[start]]))
        else:
            children = waiting[: -n_children - 1 : -1]
            del waiting[-n_children:]
            waiting.append(Tree(labels[label], children))
    return waiting[0]


def rows_of_tree(tree: Tree, number_of_label: dict[str, int]) -> np.ndarray | None:
    """The rows of a binarised tree; ``None`` when it has a label or a shape that no grammar here makes."""
    rows: list[tuple[int, int, int, int]] = []
    position = 0
    # A node waits with its row until its last word is known.
    stack: list[tuple[Tree, int]] = [(tree, -1)]
    while stack:
        node, row = stack.pop()
        if row >= 0:
            label, start, _, kind = rows[row]
            rows[row] = (label, start, position, kind)
            continue
        label = number_of_label.get(node.label(), -1)
        if label < 0 or len(node) > 2:
            return None
        if is_preterminal(node):
            rows.append((label, position, position + 1, LEXICAL))
            position += 1
        else:
            stack.append((node, len(rows)))
            rows.append((label, position, -1, len(node)))
            stack.extend((child, -1) for child in reversed(node))
    return np.array(rows, dtype=np.int32)


def rules_of_rows(rows: np.ndarray) -> np.ndarray:
    """The treebank rules of a tree at their places, as `Forest` takes them."""
    rules = []
    waiting: list[tuple[int, int]] = []  # label and start of subtrees that wait for their parent
    for label, start, end, n_children in reversed(rows.tolist()):
        left = waiting.pop() if n_children else (-1, -1)
        right = waiting.pop() if n_children == 2 else (-1, -1)
        rules.append((start, right[1], end, label, left[0], right[0]))
        waiting.append((label, start))
    return np.array(rules[::-1], dtype=np.int32)
