"""Training of symbol-refined grammars: same seed, same model, whatever happens in between."""

import numpy as np
import pytest

from tsgkit.errors import UsageError
from tsgkit.evaluation import evaluate
from tsgkit.inference._checkpoint import checkpoint_path
from tsgkit.inference._loop import Run
from tsgkit.inference._srtsg import SrSettings
from tsgkit.inference._training import Training
from tsgkit.models._model import Model
from tsgkit.parsing import Parser
from tsgkit.treebank import Binarization, UnknownWords, load, prepare

SETTINGS = {"splits": 2, "split_iterations": 5, "joint_iterations": 0, "average": 2, "average_every": 1}


@pytest.fixture(scope="module")
def corpus():
    return prepare(load("village", "dev"), binarization=Binarization("right", 0), unknown=UnknownWords(threshold=0))


def train(corpus, path, *, seed=1, resume=False, **settings):
    training = Training(corpus, SrSettings(**{**SETTINGS, **settings}), seed=seed)
    Run(training, path, checkpoint_every=3, resume=resume, quiet=True).run()
    return path.read_bytes()


@pytest.mark.parametrize("settings", [{}, {"merge": 0, "levels": 2}, {"merge_loss": "joint", "type_moves": 50}])
def test_same_seed_same_model(corpus, tmp_path, settings):
    one = train(corpus, tmp_path / "a", **settings)
    assert train(corpus, tmp_path / "b", **settings) == one
    assert train(corpus, tmp_path / "c", seed=2, **settings) != one


RUNS = [*((stop, {}) for stop in (1, 4, 5, 8, 9)), *((stop, {"lexicon": "suffixes"}) for stop in (4, 8))]
RUNS += [(stop, {"lexicon": "suffixes", "splits": 1, "joint_iterations": 5}) for stop in (5, 8)]


@pytest.mark.parametrize(("stop", "settings"), RUNS)
def test_a_resumed_run_ends_the_same(corpus, tmp_path, monkeypatch, stop, settings):
    whole = train(corpus, tmp_path / "whole", **settings)
    iterate = Training.iterate

    def dies(self, iteration):
        if iteration == stop:
            raise RuntimeError("killed")
        return iterate(self, iteration)

    monkeypatch.setattr(Training, "iterate", dies)
    with pytest.raises(RuntimeError):
        train(corpus, tmp_path / "cut", **settings)
    monkeypatch.undo()
    assert train(corpus, tmp_path / "cut", resume=True, **settings) == whole


def test_checkpoints_of_other_splits_are_refused(corpus, tmp_path):
    train(corpus, tmp_path / "model")
    with pytest.raises(UsageError, match="another run"):
        train(corpus, tmp_path / "model", splits=3, resume=True)
    assert checkpoint_path(tmp_path / "model").exists()


@pytest.mark.parametrize("damage", ["options_0", "groups", "bits", "seats", "seating_rule", "parameters"])
def test_damaged_states_are_refused(corpus, damage):
    training = Training(corpus, SrSettings(**SETTINGS))
    training.start()
    training.iterate(1)
    state = training.state()
    state[damage] = np.full_like(state[damage], 7)
    with pytest.raises(UsageError, match="does not fit"):
        Training(corpus, SrSettings(**SETTINGS)).restore(state, 1)


@pytest.fixture(scope="module")
def finished(corpus):
    """A training that is done."""
    training = Training(corpus, SrSettings(**{**SETTINGS, "splits": 1}))
    training.start()
    for iteration in range(1, training.iterations + 1):
        training.iterate(iteration)
    return training


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("options_0", lambda values: values.astype(np.float64)),
        ("groups", lambda values: values.astype(np.int64)),
        ("groups", lambda values: values[:-1]),
        ("seats", lambda values: values[:-1]),
        ("seats", lambda values: values + 2**30),
        ("seating_rule", lambda values: np.full_like(values, 2**31 - 1)),
        ("seating_word", lambda values: values.astype(np.float32)),
        ("seating_base", lambda values: values.reshape(-1)),
        ("mean_rule", lambda values: values * np.nan),
        ("mean_rule", lambda values: values[:-1]),
        ("mean_samples", lambda values: -values),
        ("mean_samples", lambda values: values * 0),
        ("mean_base_bridge", None),
        ("mean_unknown", lambda values: np.zeros(3)),
    ],
)
def test_malicious_states_are_refused(finished, name, change):
    state = finished.state()
    assert state["mean_samples"][0] > 0
    if change is None:
        del state[name]
    else:
        state[name] = change(state.get(name))
    with pytest.raises(UsageError, match="does not fit"):
        Training(finished.corpus, finished.settings).restore(state, finished.iterations)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"splits": 0}, "splits 0: must be at least 1"),
        ({"splits": 11}, "splits 11: more would make"),
        ({"levels": 4}, "levels 4: must be one of 1, 2, 3"),
        ({"base": "flat"}, "base 'flat': must be one of frequency, uniform"),
        ({"merge": 1.0}, "merge 1.0: must be at least 0 and below 1"),
        ({"merge_loss": "none"}, "merge_loss 'none': must be one of marginal, joint"),
        ({"type_mode": "none"}, "type_mode 'none': must be one of exact, map"),
        ({"type_moves": -1}, "type_moves -1: must be at least 0"),
        ({"anneal_from": 0.5}, "anneal_from 0.5: must be at least 1"),
        (
            {"split_iterations": 200, "anneal_iterations": 201},
            "anneal_iterations 201: annealing must end within a split",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(UsageError, match=message):
        SrSettings(**settings)


@pytest.mark.parametrize(("threshold", "f1"), [(0, 92.49), (1, 90.02)])
def test_subcategories_parse_better_than_labels(tmp_path, threshold, f1):
    """Far from the best grammar, but far above the plain one (75.92 on this treebank)."""
    unknown = UnknownWords(threshold=threshold)
    corpus = prepare(load("village", "train"), binarization=Binarization("right", 0), unknown=unknown)
    train(corpus, tmp_path / "model", splits=3, split_iterations=30, average=5)
    parser = Parser(Model.load(tmp_path / "model"))
    gold = [parser.model.preparation.cleaning.apply(tree) for tree in load("village", "dev")]
    parses = [parser.parse_one(tree.leaves()) for tree in gold]
    assert round(evaluate(gold, parses).f1, 2) == f1
