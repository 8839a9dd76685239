"""A budget of time: which schedule is chosen, given what sweeps cost."""

from itertools import pairwise

import pytest

from tsgkit.errors import UsageError
from tsgkit.inference import _budget
from tsgkit.inference._budget import Costs, measure, within
from tsgkit.inference._chains import Plan
from tsgkit.inference._srtsg_settings import LARGE, SCHEDULES, SMALL, SrSettings
from tsgkit.inference._tsg import TsgSettings
from tsgkit.treebank import Binarization, FlatCorpus, UnknownWords, load, prepare


@pytest.fixture(scope="module")
def corpus() -> FlatCorpus:
    return prepare(load("village", "dev"), binarization=Binarization("right", 0), unknown=UnknownWords("unicode", 0))


def test_default_schedule_depends_on_the_size():
    assert SrSettings().for_size(SMALL).schedule == SCHEDULES[0][1]
    assert SrSettings().for_size(SMALL + 1).schedule == SrSettings().for_size(LARGE).schedule == SCHEDULES[1][1]
    assert SrSettings().for_size(LARGE + 1).schedule == SCHEDULES[2][1]
    given = SrSettings(splits=2, split_iterations=7, joint_iterations=0).for_size(10**7)
    assert (given.splits, given.split_iterations, given.joint_iterations) == (2, 7, 0)


def test_settings_without_a_size_have_no_schedule():
    with pytest.raises(ValueError, match="for_size"):
        _ = SrSettings(splits=2).schedule


def test_schedules_become_shorter_down_to_one_split():
    schedules = list(SrSettings().for_size(1000).shorter())
    assert all(one.iterations >= other.iterations for one, other in pairwise(schedules))
    assert schedules[0].iterations > SCHEDULES[0][1].joint_iterations
    assert (schedules[-1].splits, schedules[-1].joint_iterations) == (1, 0)


def test_means_have_samples_of_the_last_half_only():
    for settings in (*SrSettings().for_size(1000).shorter(), *TsgSettings().shorter()):
        sweeps = getattr(settings, "joint_iterations", 0) or getattr(settings, "split_iterations", 0)
        last = sweeps or settings.iterations
        assert settings.average * settings.average_every <= max(last / 2, 1)


def test_costs_of_a_plan_are_summed_over_its_phases():
    plan = Plan(SrSettings(splits=2, split_iterations=10, joint_iterations=20, average=5))
    assert Costs(3.0, {"SplitPhase": 0.5, "JointPhase": 2.0}, 0.1).seconds(plan) == 3 + 20 * 0.5 + 20 * 2 + 5 * 0.1


def test_trial_measures_every_phase(corpus: FlatCorpus):
    plan = Plan(SrSettings(splits=2, site_iterations=5, joint_iterations=5, split_iterations=5, insertion_iterations=5))
    costs = measure(plan, corpus)
    assert set(costs.sweeps) == {"SplitPhase", "SitePhase", "JointPhase", "RefinedInsertionPhase"}
    assert all(seconds > 0 for seconds in costs.sweeps.values())


@pytest.mark.parametrize(("seconds", "expected"), [(10_000.0, 1600), (1000.0, 1155), (15.0, 20), (8.5, 10)])
def test_the_longest_schedule_that_fits_is_chosen(seconds, expected, corpus, monkeypatch):
    monkeypatch.setattr(_budget, "measure", lambda *_: Costs(1.0, {"SplitPhase": 0.5, "JointPhase": 1.0}, 0.0))
    plan = Plan(SrSettings(splits=2, split_iterations=300, joint_iterations=200))
    found, time_it_takes = within(plan, corpus, seconds)
    assert found.iterations == expected
    assert time_it_takes <= _budget.USABLE * seconds


def test_too_little_time_is_an_error_that_says_how_much_is_needed(corpus, monkeypatch):
    monkeypatch.setattr(_budget, "measure", lambda *_: Costs(60.0, {"SplitPhase": 6.0, "JointPhase": 1.0}, 0.0))
    with pytest.raises(UsageError, match=r"1 minutes are too few: the shortest training .* takes about 2\.4"):
        within(Plan(SrSettings().for_size(1000)), corpus, 60.0)


def test_the_same_settings_give_the_same_model_without_a_budget(corpus: FlatCorpus, tmp_path):
    plan, _ = within(Plan(TsgSettings(iterations=10)), corpus, 60.0)
    first = plan.run(corpus, 1, tmp_path / "first", quiet=True).run()
    again = Plan(TsgSettings(**vars(plan.settings))).run(corpus, 1, tmp_path / "again", quiet=True).run()
    assert (first.grammar.binary_weight == again.grammar.binary_weight).all()
