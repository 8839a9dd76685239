"""Base distributions P0 over rules, against fractions by hand; what is refused."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from nltk.tree import Tree

from tsgkit.errors import UsageError
from tsgkit.inference._tsg import TsgSettings, base_of
from tsgkit.models._base_distributions import base_weights, shares, with_base
from tsgkit.models._cfg import cfg_model
from tsgkit.models._srtsg import Subcategories, raw_probabilities
from tsgkit.models.base_distributions import BASE_DISTRIBUTIONS
from tsgkit.models.rules import number_rules
from tsgkit.treebank import Binarization, FlatCorpus, UnknownWords, load, prepare

TREES = ["(S (A a) (S (A b)))", "(S (A a) (A b))", "(S (A a))"]


@pytest.fixture
def trees():
    return number_rules(FlatCorpus.from_trees([Tree.fromstring(tree) for tree in TREES]))


def by_rule(trees, values):
    """Values of the rules of S by their numbers of children and counts, and of A by counts."""
    n_children = (trees.rule_left_label >= 0).astype(int) + (trees.rule_right_label >= 0)
    keys = zip(n_children.tolist(), trees.rule_count.tolist(), strict=True)
    return sorted((key, Fraction(value).limit_denominator(1000)) for key, value in zip(keys, values, strict=True))


def test_frequency_and_uniform_by_hand(trees):
    found = by_rule(trees, with_base(trees, "frequency").rule_probability)
    expected = [((0, 2), Fraction(2, 5)), ((0, 3), Fraction(3, 5)), ((1, 2), Fraction(1, 2))]
    assert found == [*expected, ((2, 1), Fraction(1, 4)), ((2, 1), Fraction(1, 4))]
    found = by_rule(trees, with_base(trees, "uniform").rule_probability)
    expected = [((0, 2), Fraction(1, 2)), ((0, 3), Fraction(1, 2)), ((1, 2), Fraction(1, 3))]
    assert found == [*expected, ((2, 1), Fraction(1, 3)), ((2, 1), Fraction(1, 3))]


def test_frequency_changes_no_bit():
    """It is the default: models that were trained before are the same."""
    corpus = prepare(load("village", "train"), binarization=Binarization("right", 0), unknown=UnknownWords())
    plain = number_rules(corpus)
    chosen = with_base(plain, "frequency")
    assert np.array_equal(plain.rule_probability, chosen.rule_probability)
    assert np.array_equal(plain.foot_probability(), chosen.foot_probability())


def test_the_top_of_auxiliary_trees_follows_the_base(trees):
    frequency, uniform = (with_base(trees, name).foot_probability() for name in ("frequency", "uniform"))
    # One rule has a child with the label of its parent, S -> A S, with one position for the foot.
    assert sorted(frequency.tolist()) == sorted(uniform.tolist()) == [0, 0, 0, 0, 1]
    two = replace(trees, rule_left_label=np.where(trees.rule_right_label >= 0, trees.rule_label, trees.rule_left_label))
    feet = with_base(two, "frequency").foot_probability()
    assert feet[two.rule_right_label >= 0] == pytest.approx([1 / 3, 1 / 3])


def test_refinements_share_what_uniform_gives(trees):
    """With two subcategories per label: S -> A A and S -> A S have four versions each, S -> A has two."""
    subcategories = Subcategories.whole(trees.n_labels).split(root=-1)
    raw = raw_probabilities(trees, "uniform", subcategories, with_classes=False)
    assert sorted(raw[trees.rule_left_label >= 0]) == pytest.approx([0.2, 0.4, 0.4])
    without_words = raw_probabilities(trees, "uniform", subcategories, with_classes=True)
    assert (without_words[trees.rule_word >= 0] == 0).all()
    assert shares(np.zeros(trees.n_rules), trees).tolist() == [0] * trees.n_rules


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        (lambda trees, n: n[:-1], "one weight, a float64, for every rule"),
        (lambda trees, n: trees.rule_count, "one weight, a float64, for every rule"),
        (lambda trees, n: n - 1.0, "not a positive number"),
        (lambda trees, n: n / 0.0, "not a positive number"),
        (lambda trees, n: n * np.nan, "not a positive number"),
    ],
)
def test_weights_that_are_none_are_refused(trees, monkeypatch, weights, problem):
    monkeypatch.setitem(BASE_DISTRIBUTIONS._loaded, "broken", weights)
    with np.errstate(divide="ignore"), pytest.raises(UsageError, match=problem):
        base_weights("broken", trees, np.ones(trees.n_rules))


def test_names_that_are_not_installed():
    with pytest.raises(UsageError, match="base 'flat': must be one of frequency, uniform"):
        TsgSettings(base="flat")
    corpus = FlatCorpus.from_trees([Tree.fromstring(tree) for tree in TREES])
    model = cfg_model(corpus)
    assert base_of(model) == "frequency"
    for settings in ({"base": "flat"}, {"base": 7}, {"base": None}):
        model.info = {"settings": settings}
        with pytest.raises(UsageError, match="which is not installed"):
            base_of(model)
