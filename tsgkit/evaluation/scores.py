"""Sums of bracket counts, and the rates that follow from them.

recall R = matched / gold,   precision P = matched / test,   F1 = 2PR / (P + R),   all in percent.
"""

from dataclasses import dataclass


def percent(part: int, whole: int) -> float:
    """100 part / whole, and 0 of nothing; the order of operations is EVALB's, so the last bit is too."""
    return 100.0 * part / whole if whole else 0.0


@dataclass(frozen=True)
class BracketCounts:
    """Brackets of some sentences.

    Parameters
    ----------
    gold, test : int
        Brackets in the gold and in the test trees.
    matched : int
        Those in both.

    Examples
    --------
    >>> BracketCounts(gold=4, test=5, matched=3).f1
    66.66666666666667
    """

    gold: int
    test: int
    matched: int

    @property
    def recall(self) -> float:
        """Percentage of the gold brackets found."""
        return percent(self.matched, self.gold)

    @property
    def precision(self) -> float:
        """Percentage of the test brackets that are right."""
        return percent(self.matched, self.test)

    @property
    def f1(self) -> float:
        """Harmonic mean of recall and precision; 0 if both are."""
        recall, precision = self.recall, self.precision
        return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


@dataclass(frozen=True)
class Score(BracketCounts):
    """EVALB's sums, over the sentences whose words agree.

    Parameters
    ----------
    sentences : int
        All pairs of trees, scored or not.
    errors, skips : int
        Those left out because the words differ or a tree is broken, and because the test tree has no words.
    complete : int
        Sentences with every gold bracket and no other.
    crossing : int
        Test brackets that cross a gold bracket.
    no_crossing, two_or_less_crossing : int
        Sentences with so many of them.
    words, tags : int
        Gold words that are not deleted, and how many have the right tag.
    """

    sentences: int
    errors: int
    skips: int
    complete: int
    crossing: int
    no_crossing: int
    two_or_less_crossing: int
    words: int
    tags: int

    @property
    def valid(self) -> int:
        """Sentences that were scored."""
        return self.sentences - self.errors - self.skips

    @property
    def complete_match(self) -> float:
        """Percentage of the valid sentences that are complete."""
        return percent(self.complete, self.valid)

    @property
    def average_crossing(self) -> float:
        """Crossing brackets in a valid sentence."""
        return self.crossing / self.valid if self.valid else 0.0

    @property
    def tagging_accuracy(self) -> float:
        """Percentage of the words with the right tag."""
        return percent(self.tags, self.words)


@dataclass(frozen=True)
class StrictScore(BracketCounts):
    """The sums over everything the two files hold: what cannot be scored counts as wrong.

    Recall is over all gold brackets of the gold file, precision over all test brackets of the test file;
    sentences that EVALB skips or finds in error, and lines without partner, have no match.

    Parameters
    ----------
    sentences : int
        Gold trees with at least one word that is not deleted.
    complete : int
        Those whose brackets are all right, with no other.
    words, tags : int
        All gold words that are not deleted, and how many have the right tag.
    """

    sentences: int
    complete: int
    words: int
    tags: int

    @property
    def complete_match(self) -> float:
        """Percentage of the sentences that are complete."""
        return percent(self.complete, self.sentences)

    @property
    def tagging_accuracy(self) -> float:
        """Percentage of the words with the right tag."""
        return percent(self.tags, self.words)
