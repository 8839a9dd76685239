"""Where a score comes from: by label of the bracket, by length of the sentence; which labels are confused."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tsgkit.evaluation.scores import BracketCounts, percent

LENGTH_STEP = 10


@dataclass(frozen=True)
class LabelScore:
    """The brackets of one label in the valid sentences.

    Parameters
    ----------
    label : str
        Without what follows the first ``-`` or ``=``.
    gold, test : int
        Brackets of this label in the gold and in the test trees.
    matched_gold, matched_test : int
        How many of each have a partner. They differ where two labels are held equal: a gold ADVP matched by
        a test PRT counts for ADVP among the gold brackets and for PRT among the test brackets.
    """

    label: str
    gold: int
    test: int
    matched_gold: int
    matched_test: int

    @property
    def recall(self) -> float:
        """Percentage of this label's gold brackets found."""
        return percent(self.matched_gold, self.gold)

    @property
    def precision(self) -> float:
        """Percentage of this label's test brackets that are right."""
        return percent(self.matched_test, self.test)

    @property
    def f1(self) -> float:
        """Harmonic mean of recall and precision; 0 if both are."""
        recall, precision = self.recall, self.precision
        return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


@dataclass(frozen=True)
class LengthScore(BracketCounts):
    """The sentences whose gold length lies between `shortest` and `longest`, both included.

    Parameters
    ----------
    sentences, valid, complete : int
        Sentences of these lengths; those that were scored; those without a mistake.
    """

    shortest: int
    longest: int
    sentences: int
    valid: int
    complete: int


@dataclass(frozen=True)
class Confusion:
    """How often a bracket labelled `gold` stood in the test tree, over the same words, as `test`."""

    gold: str
    test: str
    count: int


def scores_by_label(counts: Mapping[str, tuple[int, int, int, int]]) -> list[LabelScore]:
    """The most frequent gold label first."""
    scores = [LabelScore(label, *numbers) for label, numbers in counts.items()]
    return sorted(scores, key=lambda score: (-score.gold, -score.test, score.label))


def most_confused(counts: Mapping[tuple[str, str], int]) -> list[Confusion]:
    """The most frequent confusion first."""
    confusions = [Confusion(gold, test, count) for (gold, test), count in counts.items()]
    return sorted(confusions, key=lambda confusion: (-confusion.count, confusion.gold, confusion.test))


def scores_by_length(rows: Iterable[tuple[int, ...]], step: int = LENGTH_STEP) -> list[LengthScore]:
    """Sentences of length 0 to `step`, `step` + 1 to 2 `step`, and so on; empty ranges are left out.

    Parameters
    ----------
    rows : iterable of tuples
        Length, status, matched, gold and test brackets of each sentence, and whatever else.
    step : int
        How many lengths fall in one range.
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
