"""Totals of bracket counts, and the rates computed from them.

Last stage of the flow: trees again -> a score.

recall R = matched / gold,   precision P = matched / test,   F1 = 2PR / (P + R),   all in percent.
"""

from dataclasses import dataclass


def percent(part: int, whole: int) -> float:
    """100 part / whole, or 0 if `whole` is 0; in EVALB's order of operations, so that the last bit is the same."""
    return 100.0 * part / whole if whole else 0.0


@dataclass(frozen=True)
class BracketCounts:
    """Bracket counts of one or more sentences.

    Parameters
    ----------
    gold, test : int
        Brackets in the gold and in the test trees.
    matched : int
        Gold brackets that match a test bracket.

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
        """Percentage of the gold brackets that are matched."""
        return percent(self.matched, self.gold)

    @property
    def precision(self) -> float:
        """Percentage of the test brackets that are matched."""
        return percent(self.matched, self.test)

    @property
    def f1(self) -> float:
        """Harmonic mean of recall and precision; 0 if both are."""
        recall, precision = self.recall, self.precision
        return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


@dataclass(frozen=True)
class Score(BracketCounts):
    """EVALB's totals, over the sentences whose words agree.

    Parameters
    ----------
    sentences : int
        Pairs of trees, valid or not.
    errors, skips : int
        Sentences left out: the words differ or a tree is malformed; the test tree has no words.
    complete : int
        Sentences with a complete match: all gold and all test brackets are matched.
    crossing : int
        Test brackets that cross a gold bracket.
    no_crossing, two_or_less_crossing : int
        Sentences with that many crossing brackets.
    words, tags : int
        Gold words that are not deleted, and how many of them have the right tag.
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
        """Sentences that count: neither errors nor skipped."""
        return self.sentences - self.errors - self.skips

    @property
    def complete_match(self) -> float:
        """Percentage of the valid sentences with a complete match."""
        return percent(self.complete, self.valid)

    @property
    def average_crossing(self) -> float:
        """Crossing brackets per valid sentence."""
        return self.crossing / self.valid if self.valid else 0.0

    @property
    def tagging_accuracy(self) -> float:
        """Percentage of the words with the right tag."""
        return percent(self.tags, self.words)


@dataclass(frozen=True)
class StrictScore(BracketCounts):
    """Totals over all of both files: what cannot be scored counts as wrong.

    Recall is over all gold brackets of the gold file, precision over all test brackets of the test file;
    skipped sentences, errors and unpaired lines have no matched brackets.

    Parameters
    ----------
    sentences : int
        Gold trees with at least one word that is not deleted.
    complete : int
        Those with a complete match.
    words, tags : int
        All gold words that are not deleted, and how many of them have the right tag.
    """

    sentences: int
    complete: int
    words: int
    tags: int

    @property
    def complete_match(self) -> float:
        """Percentage of the sentences with a complete match."""
        return percent(self.complete, self.sentences)

    @property
    def tagging_accuracy(self) -> float:
        """Percentage of the words with the right tag."""
        return percent(self.tags, self.words)


@dataclass(frozen=True)
class AlignedScore(StrictScore):
    """Totals over all of both files, with words deleted by the gold tags in both trees.

    EVALB deletes punctuation by the tags of each tree. If a parser tags one mark otherwise, the two trees have other
    words, EVALB leaves the sentence out, and the strict score counts all of it as wrong. Here a word is deleted in both
    trees if its gold tag says so, and the sentence is scored like all others.
    """
