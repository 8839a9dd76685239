"""What tests of the parser share: models of the village treebank, and a grammar small enough to enumerate."""

import pytest
from reference.chart import Reference

from tsgkit.grammar import WeightedGrammar
from tsgkit.models._cfg import cfg_model
from tsgkit.models._model import Model, Stage
from tsgkit.parsing import Parser
from tsgkit.treebank import Binarization, Cleaning, Preparation, UnknownWords, load, prepare

SENTENCE = ["the", "old", "man", "smiled", "."]


def village_model(binarization, split="train"):
    return cfg_model(prepare(load("village", split), binarization=binarization, unknown=UnknownWords()))


@pytest.fixture(scope="module")
def model():
    """The village treebank's PCFG with the default options of `tsgkit train`: two stages."""
    return village_model(Binarization("right", 1, 2))


@pytest.fixture(scope="module")
def parser(model):
    return Parser(model)


@pytest.fixture(scope="module")
def dev():
    return [Cleaning().apply(tree).leaves() for tree in load("village", "dev")]


def model_of(*grammars, maps=()):
    """A model of plain grammars, without classes for words."""
    stages = [Stage(grammar, label_map) for grammar, label_map in zip(grammars, (None, *maps), strict=True)]
    return Model("cfg", Preparation(Cleaning()), stages)


# PP attachment: S -> NP VP, where the VP or the object takes the PP. Two symbols of NP, one bridge.
LABELS = ["TOP", "S", "NP", "VP", "PP", "V", "P"]
TOP, S, NP, VP, PP, V, P, NP2 = range(8)
ATTACHMENT = WeightedGrammar(
    labels=LABELS,
    words=["I", "saw", "her", "with", "it"],
    label=[0, 1, 2, 3, 4, 5, 6, 2],
    root=TOP,
    unary=[(TOP, S)],
    unary_weight=[1.0],
    binary=[(S, NP, VP), (VP, V, NP), (VP, VP, PP), (NP, NP, PP), (NP2, NP2, PP), (PP, P, NP)],
    binary_weight=[1.0, 0.6, 0.4, 0.2, 0.1, 1.0],
    bridge=[(NP, NP2)],
    bridge_weight=[0.3],
    lexical=[(NP, 0), (NP, 2), (NP, 4), (NP2, 2), (NP2, 4), (V, 1), (P, 3)],
    lexical_weight=[0.2, 0.2, 0.1, 0.5, 0.4, 1.0, 1.0],
)
ATTACHED = "I saw her with it with her".split()  # noqa: SIM905
NUMBERS = [ATTACHMENT.words.index(word) for word in ATTACHED]


def trees_by_enumeration(grammar, sentence):
    """``{tree as a tuple of rows: weight}``."""
    reference, weights = Reference(grammar, sentence), {}
    for weight, rows in reference.all_derivations()[reference.root, 0, len(sentence)]:
        tree = tuple((reference.label[x], start, end, kind) for x, start, end, kind in rows if kind <= 2)
        weights[tree] = weights.get(tree, 0.0) + weight
    return weights
