"""Breakdowns of a score: by bracket label, by sentence length, and label confusions.

Last stage of the flow: trees again -> a score. Rates are those of `tsgkit.evaluation._scores`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tsgkit.evaluation._scores import BracketCounts, percent

LENGTH_STEP = 10


@dataclass(frozen=True)
class LabelScore:
    """The brackets of one label in the valid sentences.

    Parameters
    ----------
    label : str
        Without function tags: what stands before the first ``-`` or ``=``.
    gold, test : int
        Brackets of this label in the gold and in the test trees.
    matched_gold, matched_test : int
        How many of each are matched. They differ where EQ_LABEL declares two labels equal: a gold ADVP matched by
        a test PRT counts for ADVP among the gold brackets and for PRT among the test brackets.
    """

    label: str
    gold: int
    test: int
    matched_gold: int
    matched_test: int

    @property
    def recall(self) -> float:
        """Percentage of this label's gold brackets that are matched."""
        return percent(self.matched_gold, self.gold)

    @property
    def precision(self) -> float:
        """Percentage of this label's test brackets that are matched."""
        return percent(self.matched_test, self.test)

    @property
    def f1(self) -> float:
        """Harmonic mean of recall and precision; 0 if both are."""
        recall, precision = self.recall, self.precision
        return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


@dataclass(frozen=True)
class LengthScore(BracketCounts):
    """The sentences with gold lengths from `shortest` to `longest`, inclusive.

    Parameters
    ----------
    shortest, longest : int
    sentences, valid, complete : int
        Sentences of these lengths; valid ones; those with a complete match.
    """

    shortest: int
    longest: int
    sentences: int
    valid: int
    complete: int


@dataclass(frozen=True)
class Confusion:
    """How often a gold bracket met an unmatched test bracket with the same span and another label.

    Parameters
    ----------
    gold, test : str
        The labels.
    count : int
    """

    gold: str
    test: str
    count: int


def scores_by_label(counts: Mapping[str, tuple[int, int, int, int]]) -> list[LabelScore]:
    """Scores of all labels, sorted by number of gold brackets, largest first."""
    scores = [LabelScore(label, *numbers) for label, numbers in counts.items()]
    return sorted(scores, key=lambda score: (-score.gold, -score.test, score.label))


def most_confused(counts: Mapping[tuple[str, str], int]) -> list[Confusion]:
    """Confusions, the most frequent first."""
    confusions = [Confusion(gold, test, count) for (gold, test), count in counts.items()]
    return sorted(confusions, key=lambda confusion: (-confusion.count, confusion.gold, confusion.test))


def scores_by_length(rows: Iterable[tuple[int, ...]], step: int = LENGTH_STEP) -> list[LengthScore]:
    """Sentences of length 0 to `step`, `step` + 1 to 2 `step`, and so on; empty ranges are left out.

    Parameters
    ----------
    rows : iterable of tuples
        Length, status, matched, gold and test brackets of each sentence; further columns are ignored.
    step : int
        Number of lengths in one range.
    """
    sums: dict[int, list[int]] = {}
    for length, status, matched, gold, test, *_ in rows:
        total = sums.setdefault(max(length - 1, 0) // step, [0] * 6)
        total[0] += 1
        if status == 0:
            complete = int(matched == gold == test)
            for index, number in enumerate((1, complete, gold, test, matched), start=1):
                total[index] += number
    return [
        LengthScore(
            shortest=group * step + 1 if group else 0,
            longest=(group + 1) * step,
            sentences=sentences,
            valid=valid,
            complete=complete,
            gold=gold,
            test=test,
            matched=matched,
        )
        for group, (sentences, valid, complete, gold, test, matched) in sorted(sums.items())
    ]
