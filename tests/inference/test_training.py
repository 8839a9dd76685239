"""A training is a sequence of phases: which they are, how one follows another, and which states belong to which."""

import gc
import weakref

import numpy as np
import pytest

from tsgkit.errors import UsageError
from tsgkit.inference._cfg import CfgSettings
from tsgkit.inference._phases import Averaging, burn_in
from tsgkit.inference._srtsg import SrSettings
from tsgkit.inference._srtsg_insertion import RefinedInsertionPhase, RefinedInsertionSampling
from tsgkit.inference._srtsg_phases import (
    JointPhase,
    SitePhase,
    SiteSampling,
    SplitPhase,
    SplitSampling,
)
from tsgkit.inference._training import Training
from tsgkit.inference._tsg import TsgPhase, TsgSettings
from tsgkit.inference.entry import MODELS
from tsgkit.treebank import Binarization, UnknownWords, load, prepare

ALL = {"splits": 2, "split_iterations": 3, "site_iterations": 2, "joint_iterations": 2, "insertion_iterations": 2}


@pytest.fixture(scope="module")
def corpus():
    trees = load("village", "dev")[:12]
    return prepare(trees, binarization=Binarization("right", 0), unknown=UnknownWords(threshold=0))


def phases_of(settings):
    return MODELS[settings.kind].phases(settings)


def started(corpus, settings, iterations):
    training = Training(corpus, settings, seed=2)
    training.start()
    for iteration in range(1, iterations + 1):
        training.iterate(iteration)
    return training


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (CfgSettings(), [("CountPhase", 0)]),
        (TsgSettings(iterations=7), [("TsgPhase", 7)]),
        (MODELS["insertion"].settings(iterations=7), [("InsertionPhase", 7)]),
        (SrSettings(splits=1, split_iterations=3, joint_iterations=0), [("SplitPhase", 3)]),
        (
            SrSettings(**ALL),
            [
                ("SplitPhase", 3),
                ("SplitPhase", 3),
                ("SitePhase", 2),
                ("JointPhase", 2),
                ("RefinedInsertionPhase", 2),
            ],
        ),
        (
            SrSettings(splits=1, split_iterations=3, joint_iterations=0, insertion_iterations=4),
            [("SplitPhase", 3), ("RefinedInsertionPhase", 4)],
        ),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_phases(settings, expected):
    phases = phases_of(settings)
    assert [(type(phase).__name__, phase.iterations) for phase in phases] == expected
    assert sum(phase.iterations for phase in phases) == getattr(settings, "iterations", 0)
    assert burn_in(phases) == sum(phase.iterations for phase in phases[:-1]) + phases[-1].burn_in


def test_phases_count_on_and_only_the_last_is_averaged():
    phases = phases_of(SrSettings(**ALL, average=5, average_every=1))
    assert [phase.n_before for phase in phases] == [0, 3, 6, 8, 10]
    assert [phase.averaging.samples for phase in phases] == [0, 0, 0, 0, 5]
    assert [phase.number for phase in phases[:2]] == [1, 2]
    assert isinstance(phases[-1], RefinedInsertionPhase)


@pytest.mark.parametrize(
    ("samples", "every", "iterations"), [(1, 1, 5), (3, 2, 20), (30, 4, 10), (0, 4, 10), (4, 3, 12)]
)
def test_averaging(samples, every, iterations):
    """The last iteration and every so many before it, up to the number of samples or the beginning."""
    expected = list(range(iterations, 0, -every))[:samples]
    averaging = Averaging(samples, every, iterations)
    assert [step for step in range(iterations, 0, -1) if averaging.takes(step)] == expected


def test_iterations_belong_to_phases(corpus):
    training = Training(corpus, SrSettings(**ALL))
    found = [training.phase_of(iteration) for iteration in range(13)]
    assert found[:8] == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 1)]
    assert found[8:] == [(2, 2), (3, 1), (3, 2), (4, 1), (4, 2)]
    assert training.iterations == 12


def test_a_phase_begins_in_its_first_iteration(corpus):
    training = started(corpus, SrSettings(**ALL), 0)
    kinds = []
    for iteration in range(1, 13):
        training.iterate(iteration)
        kinds.append(type(training.active))
    assert kinds == [SplitSampling] * 6 + [SiteSampling] * 4 + [RefinedInsertionSampling] * 2
    assert len(training.active.splits) == 2


def test_phases_cannot_be_skipped(corpus):
    training = started(corpus, SrSettings(**ALL), 1)
    for iteration in (5, 7, 12):
        with pytest.raises(ValueError, match=f"iteration {iteration} does not follow"):
            training.iterate(iteration)
    started(corpus, SrSettings(**ALL), 4)


def test_samplers_of_phases_that_are_done_are_let_go(corpus):
    training = started(corpus, SrSettings(**ALL), 3)
    first = weakref.ref(training.active)
    training.iterate(4)
    gc.collect()
    assert first() is None


@pytest.mark.parametrize("iteration", range(13))
def test_the_state_of_every_phase_is_restored(corpus, iteration):
    settings = SrSettings(**ALL, average=2, average_every=1)
    training = started(corpus, settings, iteration)
    state = training.state()
    other = Training(corpus, settings, seed=2)
    other.restore(state, iteration)
    again = other.state()
    assert list(again) == list(state)
    assert all(np.array_equal(values, again[name]) for name, values in state.items())
    if iteration < training.iterations:
        assert training.iterate(iteration + 1) == other.iterate(iteration + 1)


@pytest.mark.parametrize(("taken", "claimed"), [(3, 4), (6, 3), (6, 7), (8, 6), (9, 11), (11, 9), (12, 8)])
def test_the_state_of_another_phase_is_refused(corpus, taken, claimed):
    settings = SrSettings(**ALL)
    state = started(corpus, settings, taken).state()
    with pytest.raises(UsageError, match=f"does not fit the treebank or iteration {claimed}"):
        Training(corpus, settings, seed=2).restore(state, claimed)


def test_arrays_that_do_not_belong_to_a_state_are_refused(corpus):
    training = started(corpus, TsgSettings(iterations=3), 1)
    with pytest.raises(UsageError, match="stray is missing or unknown"):
        training.restore({**training.state(), "stray": np.zeros(1)}, 1)


def test_phases_of_sites_differ_in_their_sweeps():
    """The joint phase samples subcategories, the other one leaves them alone."""
    calls = []

    class Sampler:
        def blocked_sweep(self, iteration, joint, **options):
            calls.append(("blocked", iteration, joint, *options.values()))

        def local_sweep(self, iteration, temperature):
            calls.append(("local", iteration, temperature))

    for sites in ("blocked", "local"):
        settings = SrSettings(sites=sites, batch=7, anneal_from=3.0, anneal_iterations=4)
        for phase in (SitePhase, JointPhase):
            phase(settings, 5, 0, Averaging(1, 1, 5)).sweep(Sampler(), 3, threads=2)
    joint = ("blocked", 3, True, 7, 2, 2.0)
    assert calls == [("blocked", 3, False, 7, 2, 2.0), joint, ("local", 3, 2.0), joint]


def test_the_identity_says_everything_that_training_depends_on(corpus):
    settings = TsgSettings(iterations=5)
    identity = Training(corpus, settings, seed=3, threads=2).identity()
    assert identity["settings"]["iterations"] == 5
    assert (identity["model"], identity["seed"]) == ("tsg", 3)
    assert Training(corpus, settings, seed=3).identity() == identity
    assert Training(corpus, settings, seed=4).identity() != identity
    other = Training(corpus, MODELS["insertion"].settings(iterations=5), seed=3).identity()
    assert other["model"] == "insertion"


def test_a_split_begins_with_the_symbols_of_the_one_before(corpus):
    training = started(corpus, SrSettings(**ALL, merge=0.0), 3)
    symbols, parameters = training.active.symbols(), training.active.sampler.parameters()
    split = SplitPhase(training.settings, 3, 3, Averaging(0, 1, 3)).begin(training.active)
    assert np.array_equal(split.groups, symbols)
    assert np.array_equal(split.sampler.parameters(), parameters)
    assert len(split.splits) == 2
    assert split.subcategories.exists.sum() == 2 * len(training.active.subcategories.label) - 1


def test_phases_are_plans():
    assert phases_of(TsgSettings(iterations=3)) == [TsgPhase(TsgSettings(iterations=3))]
