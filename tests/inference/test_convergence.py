"""R-hat and effective sample sizes: known cases, ArviZ's own figures, and ArviZ itself where it is installed."""

import math

import numpy as np
import pytest

from tsgkit.inference import _convergence
from tsgkit.inference._chains import Plan
from tsgkit.inference._convergence import (
    diagnose,
    effective_sample_size,
    kept_draws,
    normal_scores,
    plain_effective_sample_size,
    plain_r_hat,
    r_hat,
)
from tsgkit.inference._srtsg import SrSettings
from tsgkit.inference._tsg import TsgSettings


def autoregressive(seed, shape, weight, *, shift=0.0, rounded=False):
    """Chains in which a draw is `weight` times the last one plus noise; the first chain is shifted."""
    random = np.random.default_rng(seed)
    draws = random.normal(size=shape)
    for step in range(1, shape[1]):
        draws[:, step] += weight * draws[:, step - 1]
    draws[0] += shift
    return np.round(draws) if rounded else draws


CASES = {
    "independent": ((0, (4, 100), 0.0), {}),
    "slow": ((1, (4, 101), 0.9), {}),
    "antithetic": ((2, (3, 60), -0.8), {}),
    "apart": ((3, (4, 50), 0.5), {"shift": 3.0}),
    "ties": ((4, (2, 40), 0.3), {"rounded": True}),
    "few": ((5, (2, 5), 0.0), {}),
    "four": ((6, (3, 4), 0.0), {}),
}
# As ArviZ 0.23.4 computes them: rhat(method="rank"), ess(method="bulk").
BY_ARVIZ = {
    "independent": (1.0016925691266099, 419.15009946376364),
    "slow": (1.218971064807721, 14.510599274053938),
    "antithetic": (0.9974712004981722, 405.9490509185951),
    "apart": (1.4431783667676548, 9.09514838238192),
    "ties": (0.9978211117026262, 74.78979166134201),
    "few": (2.046751525329616, 7.224719895935548),
    "four": (1.7992969487753625, 12.9501749525715),
}


@pytest.mark.parametrize("name", CASES)
def test_the_formulas_give_arviz_figures(name):
    positional, keywords = CASES[name]
    draws = autoregressive(*positional, **keywords)
    expected = BY_ARVIZ[name]
    assert (plain_r_hat(draws), plain_effective_sample_size(draws)) == pytest.approx(expected, rel=1e-9)


def test_the_formulas_are_those_of_the_installed_arviz():
    module = _convergence.arviz()
    if module is None:
        pytest.skip("ArviZ is not installed")
    random = np.random.default_rng(11)
    for seed in range(60):
        shape = (int(random.integers(2, 6)), int(random.integers(4, 150)))
        draws = autoregressive(seed, shape, random.choice([-0.9, 0, 0.5, 0.99]), rounded=seed % 3 == 0)
        assert plain_r_hat(draws) == pytest.approx(float(module.rhat(draws, method="rank")), rel=1e-9)
        assert plain_effective_sample_size(draws) == pytest.approx(float(module.ess(draws, method="bulk")), rel=1e-9)
        assert r_hat(draws) == pytest.approx(plain_r_hat(draws), rel=1e-9)


def test_known_cases():
    many = autoregressive(0, (4, 5000), 0.0)
    assert plain_r_hat(many) == pytest.approx(1, abs=2e-3)
    assert plain_effective_sample_size(many) == pytest.approx(20000, rel=0.1)
    # The autocorrelations of an AR(1) process are the powers of its weight: ESS = n (1 - w) / (1 + w).
    slow = autoregressive(1, (4, 20000), 0.9)
    assert plain_effective_sample_size(slow) == pytest.approx(80000 * 0.1 / 1.9, rel=0.1)
    apart = many + np.arange(4)[:, None] * 100
    assert plain_r_hat(apart) > 2
    assert plain_effective_sample_size(apart) < 20
    # The same mean, but other spreads: only the distances from the median tell.
    wide = many * np.array([1, 1, 1, 10])[:, None]
    assert plain_r_hat(wide) > 1.1
    # A drift within chains: their halves differ.
    assert plain_r_hat(many + np.linspace(0, 5, 5000)) > 1.2


def test_without_arviz_the_formulas_are_used(monkeypatch):
    monkeypatch.setattr(_convergence, "arviz", lambda: None)
    draws = autoregressive(3, (3, 30), 0.5)
    assert r_hat(draws) == plain_r_hat(draws)
    assert effective_sample_size(draws) == plain_effective_sample_size(draws)


def test_one_chain_is_compared_with_itself():
    random = np.random.default_rng(3)
    steady, rising = random.normal(size=(1, 200)), random.normal(size=(1, 200)) + np.linspace(0, 5, 200)
    assert 0.98 < r_hat(steady) < 1.05
    assert r_hat(rising) > 1.5


def test_scores_of_equal_draws_are_equal():
    scores = normal_scores(np.array([[1.0, 2.0, 2.0], [0.0, 2.0, 5.0]]))
    assert scores[0, 1] == scores[0, 2] == scores[1, 1]
    assert np.argsort(scores.ravel())[[0, 1, -1]].tolist() == [3, 0, 5]
    assert normal_scores(np.arange(5.0)[None])[0].sum() == pytest.approx(0)


@pytest.mark.parametrize(
    ("draws", "has_size"),
    [
        (np.zeros((3, 20)), True),
        (np.ones((1, 20)), True),
        (np.zeros((3, 3)), False),
        (np.full((2, 8), np.nan), False),
        (np.full((2, 8), -np.inf), False),
    ],
)
def test_nothing_to_diagnose(draws, has_size):
    assert math.isnan(r_hat(draws))
    assert math.isnan(effective_sample_size(draws)) != has_size


def test_what_is_kept():
    assert kept_draws(range(10), 0).tolist() == [5, 6, 7, 8, 9]
    assert kept_draws(range(10), 4).tolist() == [7, 8, 9]
    assert kept_draws(range(10), 10).tolist() == [9]
    histories = [{"log_joint": list(range(20)), "fragments": [3.0] * 20, "other": [0.0] * 20}] * 2
    found = diagnose(histories, 4)
    assert [(one.quantity, one.n_chains, one.n_draws) for one in found] == [("log_joint", 2, 8), ("fragments", 2, 8)]
    assert (found[0].mean, found[1].deviation) == (15.5, 0)
    assert diagnose([], 0) == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (TsgSettings(iterations=100), 0),
        (TsgSettings(iterations=100, anneal_from=2, anneal_iterations=30), 30),
        (TsgSettings(iterations=20, anneal_from=2, anneal_iterations=30), 20),
        (SrSettings(splits=2, split_iterations=10, joint_iterations=50), 20),
        (SrSettings(splits=2, split_iterations=10, site_iterations=5, joint_iterations=50), 25),
        (SrSettings(splits=2, split_iterations=10, site_iterations=5, joint_iterations=0), 20),
        (SrSettings(splits=2, split_iterations=10, joint_iterations=50, insertion_iterations=7), 70),
        (SrSettings(splits=2, split_iterations=10, joint_iterations=0), 16),
        (SrSettings(splits=2, split_iterations=10, joint_iterations=0, merge=0.0), 10),
        (SrSettings(splits=1, split_iterations=10, joint_iterations=0, anneal_from=2, anneal_iterations=8), 8),
    ],
)
def test_burn_in(settings, expected):
    assert Plan(settings).burn_in == expected
