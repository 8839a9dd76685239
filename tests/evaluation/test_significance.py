"""`tsgkit.evaluation._significance` and the compiled `_bootstrap`: the paired bootstrap."""

import numpy as np
import pytest

from tsgkit.errors import TreebankError
from tsgkit.evaluation import compare, evaluate
from tsgkit.evaluation._significance import f_measures, paired_bootstrap, resample_differences


def random_counts(seed: int, n_sentences: int, recall: float) -> np.ndarray:
    generator = np.random.default_rng(seed)
    gold = np.random.default_rng(0).integers(1, 30, n_sentences)
    test = gold + generator.integers(0, 3, n_sentences)
    return np.stack([generator.binomial(gold, recall), gold, test], axis=1)


def test_same_distribution_as_numpy():
    """Means and standard deviations of the resampled differences agree with a plain implementation."""
    first, second = random_counts(1, 80, 0.8), random_counts(2, 80, 0.75)
    differences = np.zeros(20_000)
    resample_differences(np.random.PCG64(3), first, second, differences)
    draws = np.random.default_rng(4).multinomial(80, np.full(80, 1 / 80), size=20_000)
    plain = f_measures(draws @ first) - f_measures(draws @ second)
    error_of_mean = plain.std() / np.sqrt(len(plain))
    assert abs(differences.mean() - plain.mean()) < 5 * error_of_mean
    assert differences.std() == pytest.approx(plain.std(), rel=0.03)
    assert np.quantile(differences, 0.9) == pytest.approx(np.quantile(plain, 0.9), abs=0.15)


def test_every_sentence_is_drawn_equally_often():
    """With one bracket in one sentence only, F is 100 whenever that sentence was drawn."""
    n_sentences = 5
    for sentence in range(n_sentences):
        first = np.zeros((n_sentences, 3), dtype=np.int64)
        first[sentence] = 1
        differences = np.zeros(20_000)
        resample_differences(np.random.PCG64(1), first, np.zeros_like(first), differences)
        expected = 1 - (1 - 1 / n_sentences) ** n_sentences
        assert np.mean(differences == 100) == pytest.approx(expected, abs=0.02)


def test_under_the_null_p_values_are_uniform():
    p_values = [
        paired_bootstrap(random_counts(2 * s, 60, 0.8), random_counts(2 * s + 1, 60, 0.8), 400).p_value
        for s in range(1, 200)
    ]
    for level in (0.1, 0.25, 0.5, 0.75):
        deviation = np.sqrt(level * (1 - level) / len(p_values))
        assert np.mean(np.array(p_values) < level) == pytest.approx(level, abs=3 * deviation)


def test_a_clear_difference_is_significant():
    test = paired_bootstrap(random_counts(1, 300, 0.9), random_counts(2, 300, 0.8), 999)
    assert test.p_value == 1 / 1000
    assert 0 < test.low < test.difference < test.high


def test_no_difference():
    counts = random_counts(1, 50, 0.8)
    test = paired_bootstrap(counts, counts, 100)
    assert (test.difference, test.low, test.high, test.p_value) == (0, 0, 0, 1)


def test_seed_decides():
    pair = random_counts(1, 50, 0.8), random_counts(2, 50, 0.8)
    assert paired_bootstrap(*pair, 300, seed=5) == paired_bootstrap(*pair, 300, seed=5)
    assert paired_bootstrap(*pair, 300, seed=5) != paired_bootstrap(*pair, 300, seed=6)


def test_no_sentences():
    assert paired_bootstrap(np.zeros((0, 3)), np.zeros((0, 3)), 10).p_value == 1


@pytest.mark.parametrize(("first", "second"), [((3, 3), (2, 3)), ((3, 2), (3, 2)), ((0, 3), (0, 3))])
def test_wrong_shapes(first, second):
    counts = [np.zeros(shape, np.int64) for shape in (first, second)]
    with pytest.raises(ValueError, match="sentences"):
        resample_differences(np.random.PCG64(1), *counts, np.zeros(1))


def test_comparison_of_files_of_different_length():
    tree = "(S (X a))"
    with pytest.raises(TreebankError, match="the same sentences, but test has 2 of them and test 1"):
        compare(evaluate([tree] * 2, [tree] * 2), evaluate([tree] * 2, [tree]))


def test_strict_and_evalb_can_disagree():
    """A system that fails on the hard sentence wins by EVALB and loses by the strict score."""
    gold = ["(S (NP (X a)) (VP (Y b)))", "(S (X a) (Y b))"] * 10
    flat = ["(S (X a) (Y b))"] * 20
    failing = ["", "(S (X a) (Y b))"] * 10
    comparison = compare(evaluate(gold, failing), evaluate(gold, flat), 200)
    assert comparison.evalb.difference > 0 > comparison.strict.difference
