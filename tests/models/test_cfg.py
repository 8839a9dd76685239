"""The PCFG: relative frequencies, and the coarse grammar that prunes it."""

import math
from itertools import pairwise

import numpy as np
import pytest
from nltk.tree import Tree

from tsgkit.models._cfg import cfg_model, coarse_labels, train_cfg
from tsgkit.parsing import Parser
from tsgkit.treebank import Binarization, Cleaning, UnknownWords, load, prepare
from tsgkit.treebank.unknown._model import UNKNOWN_WORDS

TREES = [
    Tree.fromstring("(S (NP (DT the) (NN dog)) (VP (VBD ran)))"),
    Tree.fromstring("(S (NP (DT the) (NN cat)) (VP (VBD saw) (NP (DT the) (NN dog))))"),
    Tree.fromstring("(S (NP (NN dog)) (VP (VBD ran)))"),
]


def sampler(binarization, unknown=None, cleaning=None):
    return prepare(load("village", "train"), cleaning, binarization, unknown or UnknownWords())


def test_relative_frequencies():
    corpus = prepare(TREES, binarization=Binarization(), unknown=UnknownWords("one", threshold=1))
    grammar = train_cfg(corpus)
    weights = {}
    for kind in ("binary", "unary", "lexical"):
        for rule, weight in zip(getattr(grammar, kind), getattr(grammar, f"{kind}_weight"), strict=True):
            parent, *children = rule.tolist()
            table = grammar.words if kind == "lexical" else grammar.labels
            weights[grammar.labels[parent], *(table[child] for child in children)] = weight
    assert weights == pytest.approx(
        {
            ("TOP", "S"): 1,
            ("S", "NP", "VP"): 1,
            ("NP", "DT", "NN"): 3 / 4,
            ("NP", "NN"): 1 / 4,
            ("VP", "VBD"): 2 / 3,
            ("VP", "VBD", "NP"): 1 / 3,
            ("DT", "the"): 1,
            ("NN", "dog"): 3 / 4,
            ("NN", "UNK"): 1 / 4,  # cat, seen once
            ("VBD", "ran"): 2 / 3,
            ("VBD", "UNK"): 1 / 3,
        }
    )


def test_probability_of_a_tree_is_the_product_of_its_rules():
    parser = Parser(cfg_model(prepare(TREES, binarization=Binarization(), unknown=UnknownWords("one", threshold=1))))
    tree = Tree.fromstring("(S (NP (DT the) (NN bird)) (VP (VBD ran)))")
    assert parser.tree_log_probability(tree) == pytest.approx(math.log(3 / 4 * 1 / 4 * 2 / 3 * 2 / 3))
    for impossible in ("(S (VP (VBD ran)))", "(S (ADJP (JJ old)))", "(S (NP (-NONE- *)))"):
        assert parser.tree_log_probability(Tree.fromstring(impossible)) == -math.inf


@pytest.mark.parametrize(
    ("binarization", "unknown"),
    [
        (Binarization("right", 0), "three"),
        (Binarization("right", 1, 2), "unicode"),
        (Binarization("left", 2, 3, annotate_tags=True), "signature"),
        (Binarization("centre-head", 1, 2), "one"),
        (Binarization("right"), "unicode"),
    ],
    ids=str,
)
def test_every_level_is_a_proper_grammar(binarization, unknown):
    model = cfg_model(sampler(binarization, UnknownWords(unknown)))
    for stage in model.stages:
        report = stage.grammar.report()
        assert report.is_proper
        assert not report.unreachable
        assert not report.unproductive


def test_the_coarse_grammar_is_that_of_the_plain_labels():
    """Erasing the annotations of the markovised corpus gives the grammar of the corpus without them."""
    model = cfg_model(sampler(Binarization("right", 1, 2)))
    plain = cfg_model(sampler(Binarization("right", 0, 1)))
    coarse, expected = model.stages[0].grammar, plain.grammar
    assert len(plain.stages) == 1
    order = [coarse.labels.index(label) for label in expected.labels]
    assert [coarse.words.index(word) for word in expected.words] == list(range(len(coarse.words)))
    for kind, n_labels in (("binary", 3), ("unary", 2), ("lexical", 1)):
        rules = getattr(expected, kind).copy()
        rules[:, :n_labels] = np.array(order)[rules[:, :n_labels]]
        theirs = dict(zip(map(tuple, rules.tolist()), getattr(expected, f"{kind}_weight"), strict=True))
        ours = dict(zip(map(tuple, getattr(coarse, kind).tolist()), getattr(coarse, f"{kind}_weight"), strict=True))
        assert ours == pytest.approx(theirs)


def test_maps_join_each_level_to_the_next():
    model = cfg_model(sampler(Binarization("right", 1, 2)))
    for coarse, fine in pairwise(model.stages):
        names = [coarse.grammar.labels[number] for number in fine.label_map]
        assert coarse_labels(fine.grammar.labels)[0] == coarse.grammar.labels
        assert names[fine.grammar.label[fine.grammar.root]] == "TOP"


@pytest.mark.parametrize("unknown", UNKNOWN_WORDS.names)
def test_new_words_where_nothing_was_rare(unknown):
    """Threshold 0 leaves no class at the leaves: classes then stand for the words that have them."""
    corpus = sampler(Binarization("right", 0), UnknownWords(unknown, threshold=0))
    model = cfg_model(corpus)
    lexicon = model.preparation.lexicon
    assert not lexicon.replaces
    assert set(lexicon.classes) & set(model.grammar.words)
    parse = Parser(model).analyse(["the", "zorgle", "walked", "."])
    assert not parse.fallback
    assert dict(parse.tree.pos())["zorgle"].startswith("NN")


def test_collapsed_unaries_come_back():
    cleaning = Cleaning(unaries=True)
    model = cfg_model(sampler(Binarization("right", 1, 2), cleaning=cleaning))
    assert any("+" in label for label in model.grammar.labels)
    for tree in load("village", "dev")[:20]:
        words = Cleaning().apply(tree).leaves()
        parse = Parser(model).analyse(words, confidence=True)
        assert parse.tree.leaves() == words
        assert not any("+" in label for label, _, _ in parse.confidence)
