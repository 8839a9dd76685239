"""Rows and trees are two forms of the same thing."""

import numpy as np
from hypothesis import given
from nltk.tree import Tree
from strategies import trees

from tsgkit._codes import BRIDGE
from tsgkit.parsing._rows import project, rows_of_tree, tree_of_rows
from tsgkit.treebank import Binarization
from tsgkit.treebank._trees import brackets_of, preorder


def number_of_labels(tree):
    return {label: number for number, label in enumerate(sorted({node.label() for node in preorder(tree)}))}


@given(trees)
def test_there_and_back(tree):
    binary = Binarization().apply(tree)
    numbers = number_of_labels(binary)
    rows = rows_of_tree(binary, numbers)
    assert rows.dtype == np.int32
    assert tree_of_rows(rows, list(numbers), binary.leaves()) == binary


@given(trees)
def test_rows_are_the_brackets(tree):
    binary = Binarization().apply(tree)
    numbers = number_of_labels(binary)
    labels = list(numbers)
    rows = rows_of_tree(binary, numbers).tolist()
    assert brackets_of(binary) == [(labels[label], start, end) for label, start, end, _ in rows]
    assert [kind for *_, kind in rows] == [0 if isinstance(node[0], str) else len(node) for node in preorder(binary)]


def test_what_has_no_rows():
    wide = Tree.fromstring("(S (A a) (A a) (A a))")
    assert rows_of_tree(wide, {"S": 0, "A": 1}) is None
    assert rows_of_tree(Tree.fromstring("(S (B b))"), {"S": 0, "A": 1}) is None


def test_deep_trees():
    tree = Tree("A", ["a"])
    for _ in range(5000):
        tree = Tree("S", [tree])
    rows = rows_of_tree(tree, {"S": 0, "A": 1})
    assert len(rows) == 5001
    back, depth = tree_of_rows(rows, ["S", "A"], ["a"]), 0
    while isinstance(back[0], Tree):
        back, depth = back[0], depth + 1
    assert depth == 5000


def test_bridges_make_no_node():
    rows = np.array([(0, 0, 1, BRIDGE), (2, 0, 1, 1), (1, 0, 1, BRIDGE), (3, 0, 1, 0)], dtype=np.int32)
    before = rows.copy()
    assert project(rows, np.array([0, 1, 0, 1])).tolist() == [[0, 0, 1, 1], [1, 0, 1, 0]]
    assert (rows == before).all()
