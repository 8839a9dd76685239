"""The example of a back-off with four levels: probabilities, the exact posterior, grammars, training and parsing."""

from math import exp

import numpy as np
import pytest
from extending.plugins import install_example, load_example
from reference.chart import lexical_entries
from reference.split_setting import (
    Setting,
    cell_names,
    check,
    largest_deviate,
    refined,
    rows_of,
    samples,
    seating_of,
    smallest_p_value,
    sum_of_refinements,
    sums_of,
    trees_only,
    with_types,
)

from tsgkit._grammar_index import GrammarIndex
from tsgkit._tree_score import TreeScorer
from tsgkit.errors import UsageError
from tsgkit.inference._srtsg import SrSettings
from tsgkit.inference._training import Training
from tsgkit.models._model import Model
from tsgkit.models._srtsg import split_levels
from tsgkit.models.back_off import BACK_OFFS, RefinedSymbols
from tsgkit.parsing import Parser
from tsgkit.treebank import Binarization, UnknownWords, load, prepare

PYP = (0.6, 0.3, 0.5, 0.8)
FOUR_LEVEL = load_example("back_off").FOUR_LEVEL


@pytest.fixture(autouse=True, scope="module")
def example():
    """The example, registered as a user would do it; other tests must not see it."""
    yield BACK_OFFS.register("four-level", FOUR_LEVEL)
    del BACK_OFFS._loaded["four-level"]


def test_probabilities_are_those_of_the_definition_and_sum_to_one():
    """With one group per label, all refinements of a rule are in its block."""
    for n_levels in (2, 3, 4):
        setting = Setting("branches", back_off=FOUR_LEVEL, levels=n_levels, discount=PYP)
        sampler = setting.sampler()
        for iteration in range(5):
            sampler.tree_sweep(iteration)
            sampler.type_sweep(iteration, 20)
            sampler.resample_parameters(iteration)
        reference, seating = check(setting, sampler)
        assert sampler.log_joint() == pytest.approx(reference.log_joint(seating), abs=1e-9)
        probabilities, sums = sampler.probabilities(), np.zeros(2 * len(setting.subcategories.group_label))
        for cell, (symbol, _, dish) in cell_names(sampler)["rule"].items():
            if all(setting.subcategories.exists[part] for part in (symbol, *dish[1:]) if part >= 0):
                assert probabilities[cell] == pytest.approx(reference.predictive(seating, symbol, *dish), rel=1e-12)
                sums[symbol] += probabilities[cell]
        assert sums[setting.subcategories.exists] == pytest.approx(1.0)


@pytest.mark.parametrize("move", [trees_only, with_types])
@pytest.mark.parametrize(
    ("bank", "options"),
    [
        pytest.param("chains", {"discount": PYP}, id="chains"),
        pytest.param("branches", {"discount": PYP, "classes": True}, id="branches-classes"),
        pytest.param("labels", {"discount": PYP, "n_groups": 2}, id="labels-groups"),
    ],
)
def test_sampled_subcategories_have_the_exact_posterior(bank, options, move):
    setting = Setting(bank, back_off=FOUR_LEVEL, **options)
    states = samples(setting, move)
    assert smallest_p_value(setting, states, setting.reference()) > 1e-4
    assert largest_deviate(setting, states) < 4.5


def test_the_posterior_of_three_levels_is_another():
    setting = Setting("branches", back_off=FOUR_LEVEL, discount=PYP)
    states = samples(setting, trees_only, n=8000)
    reference = setting.reference()
    assert smallest_p_value(setting, states, reference) > 1e-4
    three = setting.reference(levels=split_levels(FOUR_LEVEL.truncated(3), setting.subcategories))
    assert smallest_p_value(setting, states, three) < 1e-6


@pytest.mark.parametrize("n_levels", [2, 3, 4])
@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("bank", ["labels", "one tree"])
def test_grammars_give_trees_their_probabilities(bank, classes, n_levels):
    setting = Setting(bank, back_off=FOUR_LEVEL, levels=n_levels, discount=PYP, n_groups=2, classes=classes)
    sampler = setting.sampler()
    for iteration in range(5):
        sampler.tree_sweep(iteration)
    reference, seating = setting.reference(), seating_of(sampler)
    made = refined(setting, sampler)
    fine = made.grammar()
    index = GrammarIndex(fine)
    for tree in range(setting.trees.n_trees):
        rows, words = rows_of(setting, tree)
        found = TreeScorer(index).log_weight(rows, *lexical_entries(fine, index, words))
        assert exp(found) == pytest.approx(sum_of_refinements(setting, reference, seating, tree), rel=1e-9)
    if not classes:
        assert sums_of(fine) == pytest.approx(np.ones(fine.n_symbols))
        coarse, symbol_map = made.projected(fine, setting.subcategories.parent)
        assert (coarse.label[symbol_map] == fine.label).all()
    raw = made.raw_grammar(fine)
    pairs = {(int(fine.label[symbol]), word) for symbol, word in fine.lexical.tolist()}
    assert {tuple(row) for row in raw.lexical.tolist()} == pairs
    assert (raw.lexical_weight > 0).all()


def corpus_of():
    trees = load("village", "dev")[:40]
    return prepare(trees, binarization=Binarization("right", 0), unknown=UnknownWords("unicode", threshold=0))


@pytest.mark.parametrize(
    "phases",
    [
        pytest.param({"joint_iterations": 0}, id="splits"),
        pytest.param({"site_iterations": 2, "joint_iterations": 2}, id="sites"),
        pytest.param({"joint_iterations": 1, "insertion_iterations": 2}, id="insertions"),
    ],
)
def test_training_going_on_and_parsing(phases):
    corpus = corpus_of()
    options = {"splits": 2, "split_iterations": 5, "average": 2, "average_every": 1, **phases}
    training, other = (Training(corpus, SrSettings(back_off="four-level", **options), seed=1) for _ in range(2))
    training.start()
    for iteration in range(1, training.iterations + 1):
        if iteration == training.iterations:
            other.restore(training.state(), iteration - 1)
        record = training.iterate(iteration)
    assert other.iterate(training.iterations) == record
    model = training.model()
    assert model.info["settings"]["back_off"] == "four-level"
    assert "seating_coarse" in model.state
    assert len(model.state["seating_coarse"])
    sentence = load("village", "dev")[0].leaves()
    assert next(Parser(model).parse(sentence)).leaves() == sentence


def test_levels_in_use():
    symbols = RefinedSymbols(np.zeros(4, dtype=int), np.array([0, 0, 1, 1]))
    for levels, n_used in ((None, 3), (1, 0), (4, 3)):
        assert SrSettings(back_off="four-level", levels=levels).rule_back_off.over(symbols).n_used == n_used
    with pytest.raises(UsageError, match="levels 5: must be one of 1, 2, 3, 4"):
        SrSettings(back_off="four-level", levels=5)
    with pytest.raises(UsageError, match="must be one of unrefined, four-level"):
        SrSettings(back_off="five-level")


def test_an_installed_back_off_is_an_option_of_the_command(tsgkit, tmp_path, monkeypatch):
    install_example(tmp_path, monkeypatch, "back_off", "tsgkit.back_offs", "four-level=FOUR_LEVEL")
    phases = ["--splits=1", "--split-iterations=2", "--joint-iterations=0", "--average=1"]
    tsgkit("train", "-q", "village:dev", "--model=srtsg", "-o", "m.model", *phases, "--back-off=four-level")
    assert Model.load(tmp_path / "m.model").info["settings"]["back_off"] == "four-level"
