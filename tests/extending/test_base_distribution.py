"""The example of a base distribution: probabilities, the exact posterior, and training with it."""

import importlib.util
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from nltk.tree import Tree
from reference import pyp
from reference.tsg import Reference

from tsgkit._tsg_sampler import TsgSampler
from tsgkit.inference._insertion import InsertionSettings
from tsgkit.inference._srtsg import SrSettings
from tsgkit.inference._training import Training
from tsgkit.inference._tsg import TsgSettings
from tsgkit.inference.entry import entry_of
from tsgkit.models._base_distributions import with_base
from tsgkit.models._srtsg import Subcategories, raw_probabilities, refinements
from tsgkit.models.base_distributions import BASE_DISTRIBUTIONS
from tsgkit.models.rules import number_rules
from tsgkit.treebank import Binarization, FlatCorpus, UnknownWords, load, prepare

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "extending" / "base_distribution.py"
SMALL = ["(S (A a) (S (A b)))", "(S (A a) (A b))", "(S (A a))"]
# Equal trees: how many tables serve their fragments depends on the base distribution.
EQUAL = ["(S (A a) (A a))", "(S (A a) (A a))", "(S (A b))"]


@pytest.fixture(autouse=True, scope="module")
def example():
    """The example, registered as a user would do it; other tests must not see it."""
    specification = importlib.util.spec_from_file_location("base_distribution", EXAMPLE)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    BASE_DISTRIBUTIONS.register("short", module.short)
    yield module
    del BASE_DISTRIBUTIONS._loaded["short"]


def numbered(trees=SMALL):
    return number_rules(FlatCorpus.from_trees([Tree.fromstring(tree) for tree in trees]))


def test_probabilities_by_hand():
    trees = with_base(numbered(), "short")
    columns = zip(trees.rule_label, trees.rule_left_label, trees.rule_right_label, trees.rule_probability, strict=True)
    found = {(label, left, right): probability for label, left, right, probability in columns if left >= 0}
    # S -> A S and S -> A A once each, S -> A twice: weights 1/4, 1/4 and 1.
    assert sorted(found.values()) == pytest.approx([1 / 6, 1 / 6, 2 / 3])
    assert np.bincount(trees.rule_label, weights=trees.rule_probability) == pytest.approx(np.ones(trees.n_labels))


def test_refined_rules_sum_to_one():
    trees = numbered()
    subcategories = Subcategories.whole(trees.n_labels).split(root=-1)
    raw = raw_probabilities(trees, "short", subcategories, with_classes=False)
    assert np.bincount(trees.rule_label, weights=raw) == pytest.approx(np.ones(trees.n_labels))
    assert raw == pytest.approx(with_base(trees, "short").rule_probability)
    assert set(refinements(trees, subcategories).tolist()) == {1.0, 2.0, 4.0}


@pytest.mark.parametrize("sweep", ["local_sweep", "blocked_sweep"])
def test_sampled_derivations_have_the_exact_posterior(sweep):
    trees = with_base(numbered(EQUAL), "short")
    parameters = [[0.4] * trees.n_labels, [0.7] * trees.n_labels, [0.5] * trees.n_labels]
    sampler = TsgSampler(trees, seed=3)
    sampler.set_parameters(*parameters)
    sampler.start(np.ones(len(trees.label)))
    seen = Counter()
    for iteration in range(60_000):
        getattr(sampler, sweep)(iteration)
        if iteration % 4 == 0:
            seen[tuple(sampler.sites().tolist())] += 1
    assert pyp.chi_square(seen, Reference(trees, *parameters).marginal()) > 1e-3
    by_frequency = Reference(numbered(EQUAL), *parameters).marginal()
    assert pyp.chi_square(seen, by_frequency) < 1e-6


@pytest.mark.parametrize(
    ("make", "others"),
    [
        (TsgSettings, {"iterations": 4}),
        (InsertionSettings, {"iterations": 4}),
        (SrSettings, {"splits": 1, "split_iterations": 3, "joint_iterations": 2}),
    ],
    ids=["tsg", "insertion", "srtsg"],
)
def test_models_are_trained_with_it(make, others):
    corpus = prepare(load("village", "dev"), binarization=Binarization("centre-head", 0), unknown=UnknownWords())
    first = {}
    for base in ("short", "frequency"):
        training = Training(corpus, make(base=base, average=1, **others), seed=1)
        training.start()
        log_joints = [training.iterate(iteration)["log_joint"] for iteration in range(1, training.iterations + 1)]
        first[base] = log_joints[0]
        model = training.model()
        assert model.info["settings"]["base"] == base
        assert model.grammar.report().is_proper
    assert first["short"] != first["frequency"]


def test_corrections_use_it():
    corpus = prepare(load("village", "dev"), binarization=Binarization("right", 0), unknown=UnknownWords())
    training = Training(corpus, TsgSettings(iterations=2, average=1, base="short"), seed=1)
    training.start()
    training.iterate(1)
    model = training.model()
    expected = np.log(with_base(number_rules(corpus), "short").rule_probability)
    assert entry_of(model).correction(model).log_rule == pytest.approx(expected.tolist())
