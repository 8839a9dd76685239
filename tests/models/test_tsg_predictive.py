"""The true probability of derivations over the frozen one, against the predictive formula by hand."""

import itertools
import math

import numpy as np
import pytest
from nltk.tree import Tree

from tsgkit.errors import UsageError
from tsgkit.inference._training import Training
from tsgkit.inference._tsg import TsgSettings
from tsgkit.inference.entry import entry_of
from tsgkit.models._cfg import cfg_model
from tsgkit.models._tsg_predictive import DerivationCorrection
from tsgkit.parsing import Parser
from tsgkit.treebank import Binarization, UnknownWords, load, prepare

LEXICAL, BINARY, BRIDGE = 0, 2, 3


def trained(average=1, iterations=5):
    trees = [Tree.fromstring("(TOP (S (X a) (X b)))")] * 3 + [Tree.fromstring("(TOP (S (X b) (X b)))")]
    corpus = prepare(trees, binarization=Binarization("right", 0), unknown=UnknownWords("one", 0))
    settings = TsgSettings(iterations=iterations, average=average, average_every=1, init="minimal")
    training = Training(corpus, settings, seed=3)
    training.start()  # every node a site: fragments are rules, their counts those of the trees
    return training.model()


def minimal_derivation(model, words):
    """``(TOP (S (X w) (X w)))``, every node a substitution site and every fragment a cached one."""
    top, s, x = (model.grammar.labels.index(name) for name in ("TOP", "S", "X"))
    rows = [(top, 0, 2, 1), (s, 0, 2, BINARY), (x, 0, 1, LEXICAL), (x, 1, 2, LEXICAL)]
    return np.array(rows, dtype=np.int32), [model.grammar.words.index(word) for word in words]


def possible_ratios(correction, model, words):
    """The second X sees the first one's customer, and its table if that was new."""
    x = model.grammar.labels.index("X")
    discount, strength, _ = (values[x] for values in model.state["parameters"])
    counts = {"a": 3.0, "b": 5.0}
    number = {
        word: correction.number_of[correction.rule_of[x, -1, -1, model.grammar.words.index(word)], -1, -1]
        for word in counts
    }
    assert [correction.customers[number[word]] for word in counts] == list(counts.values())
    first, second = words
    base = counts[second] / sum(counts.values())
    n_dish, t_dish = counts[second], correction.tables[number[second]]
    n_all, t_all = 8.0, correction.restaurant_tables[x]

    def predictive(n, t, n_in_all, t_in_all):
        return (n - discount * t + (strength + discount * t_in_all) * base) / (strength + n_in_all)

    same = first == second
    return [
        math.log(predictive(n_dish + same, t_dish + same * opens, n_all + 1, t_all + opens))
        - math.log(predictive(n_dish, t_dish, n_all, t_all))
        for opens in (0, 1)
    ]


@pytest.mark.parametrize("words", ["aa", "ab", "ba", "bb"])
def test_ratio_is_the_formulas(words):
    model = trained()
    correction = DerivationCorrection(model)
    expected = possible_ratios(correction, model, words)
    rows, numbers = minimal_derivation(model, words)
    found = {round(correction(rows, numbers, np.random.default_rng(seed)), 10) for seed in range(60)}
    assert found == {round(value, 10) for value in expected}


def test_bridges_do_not_change_what_a_derivation_is():
    model = trained()
    correction = DerivationCorrection(model)
    rows, numbers = minimal_derivation(model, "ab")
    n_labels = len(model.grammar.labels)
    by_base = []
    for symbol, start, end, kind in rows.tolist():
        by_base += [(symbol, start, end, BRIDGE), (symbol + n_labels, start, end, kind)]
    assert correction.fragments_of(np.array(by_base), numbers) == correction.fragments_of(rows, numbers)


def test_words_outside_the_vocabulary_are_left_alone():
    model = trained()
    rows, _ = minimal_derivation(model, "ab")
    assert DerivationCorrection(model)(rows, [-1, -1], np.random.default_rng(0)) == 0.0


def test_only_single_samples_of_a_tsg_can_be_corrected():
    corpus = prepare(load(split="dev"), binarization=Binarization("right", 0), unknown=UnknownWords())
    plain = cfg_model(corpus)
    with pytest.raises(UsageError, match="a cfg model cannot correct its samples"):
        entry_of(plain).correction(plain)
    training = Training(corpus, TsgSettings(iterations=2, average=2, average_every=1))
    training.start()
    training.iterate(1)
    training.iterate(2)
    model = training.model()
    with pytest.raises(UsageError, match="only a model of one sample"):
        entry_of(model).correction(model)


def test_corrected_samples_parse(tsgkit):
    tsgkit("train", "--model=tsg", "--iterations=20", "--average=1", "--type-moves=200", "-o", "m", "village:train")
    sentence = "The old mill stood by the river .\n"
    plain = ["parse", "m", "--objective=mer-sampled", "--samples=200", "--scores"]
    corrected = tsgkit(*plain, "--correct", text=sentence).stdout
    assert corrected.split("\t")[5] == "ok"
    assert corrected == tsgkit(*plain, "--correct", "--threads=2", text=sentence).stdout
    refused = tsgkit("parse", "m", "--correct", text=sentence, code=2).stderr
    assert "--correct: goes with an objective over samples" in refused


def test_a_chain_of_corrected_samples_accepts_most(tmp_path):
    corpus = prepare(load(split="train"), binarization=Binarization("right", 0), unknown=UnknownWords())
    training = Training(corpus, TsgSettings(iterations=20, average=1), seed=1)
    training.start()
    for iteration in range(1, 21):
        training.iterate(iteration)
    model = training.model()
    ratios = []
    correction = DerivationCorrection(model)

    def watched(rows, words, random):
        ratios.append(correction(rows, words, random))
        return ratios[-1]

    parser = Parser(model, objective="max-rule-sampled", n_samples=300, correction=watched)
    assert parser.parse_one(["The", "old", "mill", "stood", "by", "the", "river", "."]).label() == "TOP"
    accepted = [min(1.0, math.exp(new - old)) for old, new in itertools.pairwise(ratios)]
    assert np.mean(accepted) == pytest.approx(0.998926, abs=1e-6)
