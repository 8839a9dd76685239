"""Treebanks unlike the bundled one, made from it by rule: training, parsing and scoring with few sweeps work on all.

No F1 of these is a result; it shows that labels come back as they were, and that words of any script are parsed.
"""

import hashlib
from functools import reduce

import pytest
from nltk.tree import Tree

import tsgkit
from tsgkit.treebank import Cleaning, load

SHORT = {"splits": 2, "split_iterations": 8, "joint_iterations": 8, "average": 2, "seed": 1}
ODD_LABELS = {
    "NP": "NP|x",
    "VP": "@VP",
    "S": "S^S",
    "PP": "PP@1",
    "SBAR": "SBAR|<a>",
    "ADJP": "A+B",
    "ADVP": "<x:y>",
    "DT": "D^T",
    "NN": "N@N",
    "JJ": "J|J",
    "VBD": "V\\D",
    "IN": "I+N",
}
TAGS_AS_PHRASES = {"NN": "NP", "VBD": "VP", "IN": "PP", "DT": "NP", "RB": "ADVP", "JJ": "ADJP"}


def mapped(tree, label=lambda label: label, word=lambda word: word):
    """A copy with other labels and words."""
    children = [word(child) if isinstance(child, str) else mapped(child, label, word) for child in tree]
    return Tree(label(tree.label()), children)


def flat(tree):
    return Tree("S", [Tree(tag, [word]) for word, tag in tree.pos()])


def right_branching(tree):
    """One phrase for every word, as deep as the sentence is long."""
    *first, last = [Tree(tag, [word]) for word, tag in tree.pos()]
    return reduce(lambda below, tag: Tree("X", [tag, below]), reversed(first), Tree("X", [last]))


def ideograph(word):
    return chr(0x4E00 + int(hashlib.md5(word.lower().encode()).hexdigest(), 16) % 3000)


def consonants(word):
    return "".join(chr(0x627 + ord(letter) * 7 % 28) if letter.isalpha() else letter for letter in word)


def under_root(number, tree):
    root = ("TOP", "ROOT", "S1", "VROOT", "")[number % 5]
    return Tree(root, [tree])


BANKS = {
    "upper case": lambda tree: mapped(tree, word=str.upper),
    "ideographs": lambda tree: mapped(tree, word=ideograph),
    "a script without case": lambda tree: mapped(tree, word=consonants),
    "long words": lambda tree: mapped(tree, word=lambda word: word * 200),
    "emoji": lambda tree: mapped(tree, word=lambda word: f"\u200d{word}\U0001f44d\U0001f3fd"),
    "seven words": lambda tree: mapped(tree, word=lambda word: f"W{len(word) % 7}"),
    "odd labels": lambda tree: mapped(tree, label=lambda label: ODD_LABELS.get(label, label)),
    "tags as phrases": lambda tree: mapped(tree, label=lambda label: TAGS_AS_PHRASES.get(label, label)),
    "flat": flat,
    "right-branching": right_branching,
}


@pytest.fixture(scope="module")
def trees():
    clean = [Cleaning().apply(tree)[0] for split in ("train", "dev") for tree in load("village", split)]
    return clean[:90], clean[-20:]


@pytest.mark.parametrize("name", BANKS)
def test_labels_and_words_of_any_kind(trees, name):
    train, dev = ([BANKS[name](tree) for tree in part] for part in trees)
    model = tsgkit.train(train, **SHORT)
    parses = tsgkit.parse([tree.leaves() for tree in dev], model)
    known = {node.label() for tree in train for node in tree.subtrees()} | {"TOP"}
    for tree, parse in zip(dev, parses, strict=True):
        assert parse.tree.leaves() == tree.leaves()
        assert {node.label() for node in parse.tree.subtrees()} <= known
    # At least as good as relative frequencies, up to what so few sweeps and sentences decide by chance.
    gold = [Tree("TOP", [tree]) for tree in dev]
    f1 = tsgkit.evaluate(gold, parses).aligned.f1
    assert f1 > tsgkit.train(train, model="cfg").score(dev) - 5


def test_roots_of_any_name_are_one(trees):
    train, dev = trees
    plain = tsgkit.train(train, model="cfg")
    named = tsgkit.train([under_root(number, tree) for number, tree in enumerate(train)], model="cfg")
    assert named.model.grammar.n_rules == plain.model.grammar.n_rules
    assert named.predict([dev[0].leaves()]) == plain.predict([dev[0].leaves()])


@pytest.mark.parametrize("n_trees", [1, 3])
def test_hardly_any_trees(trees, n_trees):
    train, dev = trees
    model = tsgkit.train(train[:n_trees], **SHORT)
    for tree, parse in zip(dev, tsgkit.parse([tree.leaves() for tree in dev], model), strict=True):
        assert parse.tree.leaves() == tree.leaves()
    assert model.score(train[:n_trees]) == 100


def test_single_words_and_copies(trees):
    train, _ = trees
    words = [Tree("S", [Tree(tag, [word])]) for tree in train[:20] for word, tag in tree.pos()]
    (tree,) = tsgkit.train(words, **SHORT).predict([["door"]])
    assert str(tree).startswith("(TOP (S (")
    assert tsgkit.train(train[:1] * 100, **SHORT).score(train[:1]) == 100
