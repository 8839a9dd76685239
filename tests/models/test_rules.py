"""The rules of a corpus against counting by hand."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.models._rules import count_rules
from tsgkit.models.rules import number_rules
from tsgkit.treebank import Binarization, FlatCorpus, UnknownWords, load, prepare
from tsgkit.treebank._trees import is_preterminal, preorder


def by_hand(trees):
    counts = Counter()
    for tree in trees:
        for node in preorder(tree):
            children = (node[0],) if is_preterminal(node) else tuple(child.label() for child in node)
            counts[node.label(), is_preterminal(node), children] += 1
    return counts


def test_counts_are_those_of_the_trees():
    corpus = prepare(
        load("village", "dev"), binarization=Binarization("right", 1, 2), unknown=UnknownWords("signature")
    )
    rules = count_rules(corpus)
    found = {}
    for kind in ("binary", "unary", "lexical"):
        for row, count in zip(getattr(rules, kind), getattr(rules, f"{kind}_count"), strict=True):
            parent, *children = row.tolist()
            table = corpus.words if kind == "lexical" else corpus.labels
            names = tuple(table[child] for child in children)
            found[corpus.labels[parent], kind == "lexical", names] = count
    assert found == by_hand(corpus.trees(original_words=False))
    label_counts = np.bincount(corpus.label, minlength=len(corpus.labels))
    assert rules.totals().tolist() == label_counts.tolist()
    assert corpus.labels[rules.root] == "TOP"


def test_corpora_without_a_grammar():
    wide = FlatCorpus.from_trees([Tree.fromstring("(S (A a) (A a) (A a))")])
    with pytest.raises(TreebankError, match="not binarised"):
        count_rules(wide)
    roots = FlatCorpus.from_trees([Tree.fromstring("(S (A a))"), Tree.fromstring("(T (A a))")])
    with pytest.raises(TreebankError, match=r"different root labels \(S, T\)"):
        count_rules(roots)


@pytest.mark.parametrize(
    ("name", "index", "value", "message"),
    [
        ("label", 0, 1, "label is not that of its rule"),
        ("rule", 0, 10**6, "a node.s rule is out of range"),
        ("rule", 0, -1, "a node.s rule is out of range"),
        ("left", 0, 0, "not in its tree below its parent"),
        ("left", 0, 10**6, "not in its tree below its parent"),
        ("right", 1, 2, "children are not those of its rule"),
        ("parent", 2, 5, "parent is another node"),
        ("parent", 0, 1, "does not have exactly one root"),
        ("tree_start", 1, 0, "not one after the other"),
        ("tree_start", -1, 3, "not one after the other"),
        ("rule_label", 0, -1, "a rule.s label is out of range"),
        ("rule_left_label", 0, 10**6, "a rule.s label is out of range"),
        ("rule_probability", 0, 0.0, "probability is not positive"),
        ("rule_probability", 0, np.nan, "probability is not positive"),
    ],
)
def test_arrays_that_are_no_trees_are_noticed(name, index, value, message):
    trees = [Tree.fromstring("(S (A (B b) (C c)) (A (B b) (C d)))"), Tree.fromstring("(S (A (B b) (C c)))")]
    arrays = number_rules(FlatCorpus.from_trees(trees))
    arrays.validate()
    changed = getattr(arrays, name).copy()
    changed[index] = value
    with pytest.raises(ValueError, match=message):
        replace(arrays, **{name: changed}).validate()
