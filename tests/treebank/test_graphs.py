"""Graphs become trees: in the order of the words, or with the reason why not."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._continuous import word_node
from tsgkit.treebank._graphs import SyntaxGraph, split_function, tree_of, with_function
from tsgkit.treebank._trees import preorder, same_tree
from tsgkit.treebank.formats import ReadOptions


def graph(words, labels, parents, **more):
    return SyntaxGraph("7", 3, [(word, word.upper()) for word in words.split()], labels, parents, **more)


def built(one, **options):
    return format_tree(tree_of(one, "t", ReadOptions(**options)))


@pytest.mark.parametrize(
    ("labels", "parents", "problem"),
    [
        ({1: "S"}, {-1: 1, -2: 1}, "no tree: word 1 .a. or a phrase above it has no parent"),
        ({1: "S"}, {-1: 1, -2: 9, 1: 0}, "a parent that does not exist: 9"),
        ({1: "S", 2: "X", 3: "Y"}, {-1: 1, -2: 2, 2: 3, 3: 2, 1: 0}, "no tree: phrase #2 is its own ancestor"),
        ({1: "S", 2: "X"}, {-1: 1, -2: 1, 1: 0, 2: 1}, "empty node: phrase #2 .X. has no words"),
        ({1: "S"}, {-1: 1, 1: 0}, "word 2 .b. or a phrase above it has no parent"),
    ],
)
def test_what_is_no_tree(labels, parents, problem):
    with pytest.raises(TreebankError, match=f"^t:3:1: sentence 7: .*{problem}") as caught:
        built(graph("a b", labels, parents))
    assert caught.value.reason in ("no tree", "empty node")


def test_no_words():
    with pytest.raises(TreebankError, match="empty sentence"):
        built(graph("", {}, {}))


def test_gaps():
    crossing = {-1: 2, -2: 1, -3: 2, 1: 0, 2: 1}
    with pytest.raises(TreebankError, match=r"discontinuous tree: phrase #2 .X. covers word 3 .c. but not") as caught:
        built(graph("a b c", {1: "S", 2: "X"}, crossing))
    assert caught.value.reason == "discontinuous tree"
    assert built(graph("a b c", {1: "S", 2: "X"}, crossing, heads={-3}), reattached=[]) == "(S (A a) (B b) (X (C c)))"


def test_punctuation_below_a_root_that_is_the_sentence():
    """As in Alpino: below `top`, a comma inside a clause goes into the clause; below S, a verb stays."""
    parents = {-1: 2, -2: 1, -3: 2, 1: 0, 2: 1}
    assert built(graph("a , c", {1: "top", 2: "X"}, parents), reattached=[]) == "(top (X (A a) (, ,) (C c)))"


def test_function_tags():
    for label in ("NP-SBJ-1", "NP", "-LRB-", "NP--", "NP---", "A-B"):
        assert with_function(*split_function(label)) == label


@given(st.integers(0, 10**9))
def test_any_tree_comes_back(seed):
    """Words and phrases of a random tree, in a random order of rows."""
    draw = random.Random(seed)
    tree = random_tree(draw, draw.randint(2, 12))
    numbers, parents, labels, words = {id(tree): 1}, {1: 0}, {1: tree.label()}, []
    for node in preorder(tree):
        for child in node:
            if isinstance(child[0], str):
                continue
            numbers[id(child)] = len(numbers) + 1
            labels[numbers[id(child)]] = child.label()
            parents[numbers[id(child)]] = numbers[id(node)]
    for node in preorder(tree):
        if isinstance(node[0], str):
            words.append((node[0], node.label()))
    position = {id(node): index for index, node in enumerate(n for n in preorder(tree) if isinstance(n[0], str))}
    for node in preorder(tree):
        for child in node:
            if not isinstance(child, str) and isinstance(child[0], str):
                parents[word_node(position[id(child)])] = numbers[id(node)]
    rows = list(parents.items())
    draw.shuffle(rows)
    again = tree_of(SyntaxGraph("1", 1, words, labels, dict(rows)), "t", ReadOptions())
    assert same_tree(again, tree)


def random_tree(draw, n_words):
    nodes = [Tree(f"T{number}", [f"w{number}"]) for number in range(n_words)]
    while len(nodes) > 1 or isinstance(nodes[0][0], str):
        start = draw.randrange(len(nodes))
        end = min(len(nodes), start + draw.randint(1, 3))
        nodes[start:end] = [Tree(draw.choice("ABC"), nodes[start:end])]
    return nodes[0]
