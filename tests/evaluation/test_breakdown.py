"""`tsgkit.evaluation._breakdown`: scores by label and by length, and label confusions."""

from tsgkit.evaluation import Confusion, LabelScore, LengthScore, evaluate
from tsgkit.evaluation._breakdown import scores_by_length

GOLD = "(TOP (S (NP (DT the) (NN dog)) (VP (VBD ran) (ADVP (RB away)))))"
TEST = "(TOP (S (NP (DT the) (NN dog)) (VP (VBD ran) (NP (RB away)))))"


def test_labels_and_confusions():
    evaluation = evaluate([GOLD, GOLD], [TEST, GOLD.replace("ADVP", "PRT")])
    # PRT is declared equal to ADVP: a matched gold ADVP, and a matched test PRT.
    assert evaluation.by_label() == [
        LabelScore("NP", gold=2, test=3, matched_gold=2, matched_test=2),
        LabelScore("S", gold=2, test=2, matched_gold=2, matched_test=2),
        LabelScore("VP", gold=2, test=2, matched_gold=2, matched_test=2),
        LabelScore("ADVP", gold=2, test=0, matched_gold=1, matched_test=0),
        LabelScore("PRT", gold=0, test=1, matched_gold=0, matched_test=1),
    ]
    assert evaluation.confusions() == [Confusion("ADVP", "NP", 1)]


def test_rates_of_a_label():
    score = LabelScore("NP", gold=4, test=5, matched_gold=2, matched_test=2)
    assert (score.recall, score.precision, score.f1) == (50, 40, 400 / 9)
    none = LabelScore("NP", gold=0, test=0, matched_gold=0, matched_test=0)
    assert (none.recall, none.precision, none.f1) == (0, 0, 0)


def test_unmatched_brackets_of_one_span_are_paired_from_the_outermost_in():
    """The gold brackets A B C meet the test brackets D B E F; B matches, and F has no partner."""
    evaluation = evaluate(["(A (B (C (X a))))"] * 2, ["(D (B (E (F (X a)))))"] * 2)
    assert evaluation.confusions() == [Confusion("A", "D", 2), Confusion("C", "E", 2)]


def test_errors_do_not_count():
    """A malformed tree has a row with counts, but it is not valid."""
    evaluation = evaluate([GOLD], [TEST + ")"])
    assert next(evaluation.iterate_rows())[1:5] == (1, 3, 4, 4)
    assert (evaluation.by_label(), evaluation.confusions()) == ([], [])


def test_lengths():
    long = "(S " + "(X a) " * 25 + ")"
    assert evaluate([GOLD, long, ""], [TEST, long, "(X a)"]).by_length() == [
        LengthScore(shortest=0, longest=10, sentences=2, valid=1, complete=0, gold=4, test=4, matched=3),
        LengthScore(shortest=21, longest=30, sentences=1, valid=1, complete=1, gold=1, test=1, matched=1),
    ]


def test_borders_of_the_ranges():
    rows = [(length, 0, 1, 1, 1) for length in (0, 1, 10, 11, 20, 21)]
    ranges = [(group.shortest, group.longest, group.sentences) for group in scores_by_length(rows)]
    assert ranges == [(0, 10, 3), (11, 20, 2), (21, 30, 1)]
    ranges = [(group.shortest, group.longest, group.sentences) for group in scores_by_length(rows, step=20)]
    assert ranges == [(0, 20, 5), (21, 40, 1)]
