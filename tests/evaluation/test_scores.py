"""`tsgkit.evaluation._scores`: rates computed from totals."""

import pytest

from tsgkit.evaluation import Score, StrictScore
from tsgkit.evaluation._scores import BracketCounts, percent

SCORE = Score(
    gold=8,
    test=5,
    matched=4,
    sentences=10,
    errors=3,
    skips=2,
    complete=1,
    crossing=4,
    no_crossing=2,
    two_or_less_crossing=5,
    words=40,
    tags=30,
)


def test_percent_multiplies_first():
    """As EVALB does: the other order would differ in the last bit."""
    assert percent(1, 3) == 100.0 * 1 / 3
    assert percent(1, 3) != 100.0 * (1 / 3)
    assert percent(0, 0) == 0


def test_recall_precision_and_f1():
    assert (SCORE.recall, SCORE.precision) == (50, 80)
    assert SCORE.f1 == pytest.approx(2 * 50 * 80 / 130)
    # 2PR / (P + R) = 2 matched / (gold + test)
    assert SCORE.f1 == pytest.approx(100 * 2 * 4 / 13)


def test_rates_over_the_valid_sentences():
    assert SCORE.valid == 5
    assert (SCORE.complete_match, SCORE.average_crossing, SCORE.tagging_accuracy) == (20, 0.8, 75)


def test_strict_rates_are_over_all_sentences():
    score = StrictScore(gold=8, test=5, matched=4, sentences=10, complete=1, words=40, tags=30)
    assert (score.complete_match, score.tagging_accuracy, score.f1) == (10, 75, SCORE.f1)


@pytest.mark.parametrize(("gold", "test"), [(0, 0), (3, 0), (0, 3), (3, 3)])
def test_rates_without_a_match_are_0(gold, test):
    counts = BracketCounts(gold=gold, test=test, matched=0)
    assert (counts.recall, counts.precision, counts.f1) == (0, 0, 0)


def test_rates_without_sentences_are_0():
    score = Score(**dict.fromkeys(Score.__dataclass_fields__, 0))
    assert (score.valid, score.complete_match, score.average_crossing, score.tagging_accuracy) == (0, 0, 0, 0)
