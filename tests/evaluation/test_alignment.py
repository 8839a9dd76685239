"""The aligned score: punctuation by the gold tags, every sentence counted."""

import pytest

from tsgkit.evaluation import evaluate
from tsgkit.evaluation._evalb import parameter_warnings
from tsgkit.evaluation._parameters import Parameters

GOLD = "(TOP (SBARQ (WHNP (WP What)) (SQ (VBZ is) (NP (DT a) (NN tsg))) (. ?)))"
# The parser takes the mark for a noun, which EVALB does not delete.
RETAGGED = "(TOP (SBARQ (WHNP (WP What)) (SQ (VBZ is) (NP (DT a) (NN tsg))) (NN ?)))"
WRONG = "(TOP (SBARQ (WHNP (WP What)) (SQ (VBZ is) (NP (DT a) (NN tsg)) (NN ?))))"


def test_a_parse_with_another_tag_of_punctuation_is_scored():
    evaluation = evaluate([GOLD, GOLD], [RETAGGED, GOLD])
    assert (evaluation.all.errors, evaluation.f1) == (1, 100)
    assert evaluation.strict.f1 == 50
    assert evaluation.aligned.f1 == 100
    assert (evaluation.aligned.sentences, evaluation.aligned.complete) == (2, 2)
    assert (evaluation.aligned.words, evaluation.aligned.tags) == (8, 8)


def test_where_the_mark_is_attached_does_not_count():
    assert evaluate([GOLD], [WRONG]).aligned.f1 == 100


def test_the_gold_tags_decide_in_both_directions():
    gold = "(S (NP (NN What)) (VP (VB is)) (NN ?))"
    test = "(S (NP (NN What)) (VP (VB is) (. ?)))"
    evaluation = evaluate([gold], [test])
    # The mark is a word for both: the VP is one word too long.
    assert (evaluation.aligned.words, evaluation.aligned.tags) == (3, 2)
    assert (evaluation.aligned.gold, evaluation.aligned.test, evaluation.aligned.matched) == (3, 3, 2)


def test_traces_of_the_gold_tree_have_no_partner():
    gold = "(S (NP (-NONE- *)) (VP (TO to) (VP (VB go))))"
    assert evaluate([gold], ["(S (VP (TO to) (VP (VB go))))"]).aligned.f1 == 100


@pytest.mark.parametrize("test", ["", "(S (NN x))", "(S (NP (NN What)"])
def test_sentences_that_cannot_be_aligned_count_as_wrong(test):
    evaluation = evaluate([GOLD], [test])
    assert (evaluation.aligned.gold, evaluation.aligned.matched, evaluation.aligned.words) == (4, 0, 4)
    assert evaluation.aligned.test == evaluation.strict.test


def test_lines_without_a_partner_count():
    assert evaluate([GOLD, GOLD], [GOLD]).aligned.gold == 8
    assert evaluate([GOLD], [GOLD, GOLD]).aligned.test == 8


def test_one_line_with_all_scores():
    evaluation = evaluate([GOLD, GOLD], [RETAGGED, GOLD])
    headline = "aligned F1 100.00, EVALB 100.00 (1 sentence left out), strict 50.00"
    assert evaluation.headline() == headline
    assert repr(evaluation) == f"<Evaluation of 2 sentences: {headline}>"
    table = evaluation._repr_html_()
    assert table.count("<tr>") == 4
    assert "<td>Aligned</td><td>100.00</td>" in table


def test_parameters_that_do_not_fit_the_treebank():
    without = [GOLD.replace("(. ?)", "(PUNCT ?)")] * 20
    (warning,) = parameter_warnings(evaluate(without, without))
    assert warning.startswith("no word of gold has a tag that the parameters delete (TOP -NONE- ,")
    assert not list(parameter_warnings(evaluate([GOLD] * 20, [GOLD] * 20)))
    assert not list(parameter_warnings(evaluate(without[:3], without[:3])))
    unused = evaluate(without, without).unused_labels
    assert unused[:6] == ("-NONE-", ",", ":", "``", "''", ".")
    assert unused[6:] == ("ADVP", "PRT")  # which count as equal
    mine = Parameters(delete_labels=("PUNCT", "KOMMA"))
    assert list(parameter_warnings(evaluate(without, without, mine))) == [
        "the parameters name KOMMA, which occurs neither in the gold trees nor in the parses"
    ]
    mine = Parameters(delete_labels=("PUNCT",), eq_labels=(("NP", "NOMP"), ("SQ", "SATZ")))
    assert list(parameter_warnings(evaluate(without, without, mine))) == [
        "the parameters name NOMP SATZ, which occur neither in the gold trees nor in the parses"
    ]
