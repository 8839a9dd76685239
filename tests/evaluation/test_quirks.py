"""Quirks of EVALB, one case each, with the row that it prints; then those of whole files."""

from dataclasses import replace

import pytest

from tsgkit.evaluation import Parameters, evaluate, load_parameters

COLLINS = load_parameters("collins")
NEW = load_parameters("new")
UNLABELLED = replace(COLLINS, labeled=False)
ONE_WAY = Parameters(eq_labels=(("A", "B"), ("B", "C")))
DELETES_BY_EQUALITY = Parameters(delete_labels=("TOP",), eq_labels=(("ROOT", "TOP"),))
SAME_WORDS = replace(COLLINS, eq_words=(("colour", "color"),))

A_B = "(S (X a) (Y b))"

# name: (settings, gold, test, (length, status, matched, gold, test, crossing, words, tags))
CASES = {
    "punctuation counts for the length only": (
        COLLINS,
        "(TOP (S (NN a) (, ,) (NN b) (. .)))",
        "(TOP (S (NN a) (NN b)))",
        (4, 0, 1, 1, 1, 0, 2, 2),
    ),
    "empty elements do not count for the length": (
        COLLINS,
        "(TOP (S (NP (-NONE- *)) (NN a)))",
        "(TOP (S (NN a)))",
        (1, 0, 1, 1, 1, 0, 1, 1),
    ),
    "a bracket without words after deletion is deleted": (
        COLLINS,
        "(TOP (S (NP (, ,)) (NN a)))",
        "(TOP (S (NN a)))",
        (2, 0, 1, 1, 1, 0, 1, 1),
    ),
    "labels are cut at the first - or =": (
        COLLINS,
        "(S-TPC=1 (NP=2-SBJ (X a)))",
        "(S (NP (X a)))",
        (1, 0, 2, 2, 2, 0, 1, 1),
    ),
    "labels are not cut at |": (COLLINS, "(A|B (X a))", "(A (X a))", (1, 0, 0, 1, 1, 0, 1, 1)),
    "tags are never cut": (COLLINS, "(S (X-1 a))", "(S (X a))", (1, 0, 1, 1, 1, 0, 1, 0)),
    "a tag is deleted only if it is the whole label": (
        COLLINS,
        "(S (.-1 a))",
        "(S (. a))",
        (1, 2, 0, 0, 0, 0, 0, 0),
    ),
    "a cut label can be a deleted one": (COLLINS, "(TOP-1 (X a))", "(S (X a))", (1, 0, 0, 0, 1, 0, 1, 1)),
    "a bracket -NONE- has the empty label and stays": (
        COLLINS,
        "(-NONE- (X a))",
        "( (X a))",
        (1, 0, 1, 1, 1, 0, 1, 1),
    ),
    "an outer bracket without a label is a free match": (
        COLLINS,
        "( (S (X a)))",
        "( (NP (X a)))",
        (1, 0, 1, 2, 2, 0, 1, 1),
    ),
    "ROOT is not deleted": (COLLINS, "(ROOT (S (X a)))", "(ROOT (NP (X a)))", (1, 0, 1, 2, 2, 0, 1, 1)),
    "S1 is deleted by new only": (NEW, "(S1 (S (X a)))", "(S1 (NP (X a)))", (1, 0, 0, 1, 1, 0, 1, 1)),
    "S1 stays with collins": (COLLINS, "(S1 (S (X a)))", "(S1 (NP (X a)))", (1, 0, 1, 2, 2, 0, 1, 1)),
    "matching is one to one": (COLLINS, "(NP (NP (X a)))", "(NP (NP (NP (X a))))", (1, 0, 2, 2, 3, 0, 1, 1)),
    "equal labels match in both directions": (
        COLLINS,
        "(S (ADVP (X a)) (PRT (X b)))",
        "(S (PRT-1 (X a)) (ADVP (X b)))",
        (2, 0, 3, 3, 3, 0, 2, 2),
    ),
    "equal labels hold for tags": (COLLINS, "(S (ADVP a))", "(S (PRT a))", (1, 0, 1, 1, 1, 0, 1, 1)),
    "equality of labels is not transitive": (
        ONE_WAY,
        "(S (A (X a)))",
        "(S (C (X a)))",
        (1, 0, 1, 2, 2, 0, 1, 1),
    ),
    "the first equal test bracket is taken, not the best": (
        ONE_WAY,
        "(B (A (X a)))",
        "(A (C (X a)))",
        (1, 0, 1, 2, 2, 0, 1, 1),
    ),
    "a label equal to a deleted one is deleted": (
        DELETES_BY_EQUALITY,
        "(ROOT (S (X a)))",
        "(S (X a))",
        (1, 0, 1, 1, 1, 0, 1, 1),
    ),
    "but a tag equal to a deleted one is not": (
        DELETES_BY_EQUALITY,
        "(S (ROOT a))",
        "(S (ROOT a))",
        (1, 0, 1, 1, 1, 0, 1, 1),
    ),
    "without labels spans decide": (
        UNLABELLED,
        "(S (NP (X a)) (X b))",
        "(NP (VP (X a)) (X b))",
        (2, 0, 2, 2, 2, 0, 2, 2),
    ),
    "without labels deletion stays": (
        UNLABELLED,
        "(TOP (S (X a)))",
        "(S (VP (X a)))",
        (1, 0, 1, 1, 2, 0, 1, 1),
    ),
    "crossing counts test brackets, each once": (
        COLLINS,
        "(S (A (B (X a) (X b)) (X c)) (X d))",
        "(S (X a) (C (D (X b) (X c)) (X d)))",
        (4, 0, 1, 3, 3, 2, 4, 4),
    ),
    "equal words": (SAME_WORDS, "(S (X colour))", "(S (X color))", (1, 0, 1, 1, 1, 0, 1, 1)),
    "other words are an error": (COLLINS, "(S (X a))", "(S (X b))", (1, 1, 0, 0, 0, 0, 0, 0)),
    "fewer words are an error": (COLLINS, A_B, "(S (X a))", (2, 1, 0, 0, 0, 0, 0, 0)),
    "an empty test line is skipped": (COLLINS, A_B, "", (2, 2, 0, 0, 0, 0, 0, 0)),
    "a lone root is skipped": (COLLINS, A_B, "(TOP)", (2, 2, 0, 0, 0, 0, 0, 0)),
    "empty brackets are skipped": (COLLINS, A_B, "(())", (2, 2, 0, 0, 0, 0, 0, 0)),
    "punctuation alone is skipped": (COLLINS, "(S (. .))", "(S (. .))", (1, 2, 0, 0, 0, 0, 0, 0)),
    "an empty gold line is an error": (COLLINS, "", "(S (X a))", (0, 1, 0, 0, 0, 0, 0, 0)),
    "skipping goes before a bracket error": (COLLINS, A_B, "(TOP (S", (2, 2, 0, 0, 0, 0, 0, 0)),
    "a space before the closing bracket makes an empty word": (
        COLLINS,
        "(S (X ) (Y b))",
        "(S (X ) (Y b))",
        (2, 0, 1, 1, 1, 0, 2, 2),
    ),
    "without the space it is an empty bracket": (
        COLLINS,
        "(S (X) (Y b))",
        "(S (Y b))",
        (1, 0, 1, 1, 1, 0, 1, 1),
    ),
    "an empty tag over an empty word": (COLLINS, "(S ( ) (Y b))", "(S ( ) (Y b))", (2, 0, 1, 1, 1, 0, 2, 2)),
    "several trees on a line are one": (
        COLLINS,
        "(S (X a)) (S (X b))",
        "(S (X a)) (S (X b))",
        (2, 0, 2, 2, 2, 0, 2, 2),
    ),
    "words need no brackets around them": (COLLINS, "(X a) (X b)", "(X a)(X b)", (2, 0, 0, 0, 0, 0, 2, 2)),
    "carriage return, tab and form feed are white space": (
        COLLINS,
        "(S\t(X\f a)\v(Y b))\r",
        A_B,
        (2, 0, 1, 1, 1, 0, 2, 2),
    ),
    "an unclosed bracket is an error, and the row is filled": (
        COLLINS,
        A_B,
        "(S (NP (X a) (Y b))",
        (2, 1, 0, 1, 2, 0, 2, 2),
    ),
    "unclosed brackets match each other": (
        COLLINS,
        "(S (X a) (Y b)",
        "(S (X a) (Y b)",
        (2, 1, 1, 1, 1, 0, 2, 2),
    ),
    "an extra closing bracket is an error": (COLLINS, A_B, A_B + ")", (2, 1, 1, 1, 1, 0, 2, 2)),
    "quotes are repaired when one tree deletes them": (
        NEW,
        "(S (`` ') (NP (X a)) (POS '))",
        "(S (POS ') (NP (X a)) (POS '))",
        (3, 0, 2, 2, 2, 0, 3, 2),
    ),
    "the repair moves the brackets around and after": (
        NEW,
        "(S (NP (X a) (POS ')) (VP (X b)))",
        "(S (NP (X a) ('' ')) (VP (X b)))",
        (3, 0, 3, 3, 3, 0, 3, 2),
    ),
    "collins does not repair quotes": (
        COLLINS,
        "(S (X a) (POS '))",
        "(S (X a) ('' '))",
        (2, 1, 0, 0, 0, 0, 0, 0),
    ),
    "only ' \" and / are repaired": (NEW, "(S (X a) (NN ''))", "(S (X a) ('' ''))", (2, 1, 0, 0, 0, 0, 0, 0)),
    "no repair when the lengths agree": (
        NEW,
        "(S ('' ') (X a) (NN '))",
        "(S (NN ') (X a) ('' '))",
        (3, 1, 0, 0, 0, 0, 0, 0),
    ),
    "a NUL byte ends a line, a label and a word": (
        COLLINS,
        "(S\0Q (X a\0b)) \0 (rest",
        "(S (X a))",
        (1, 0, 1, 1, 1, 0, 1, 1),
    ),
    "words of other scripts": (COLLINS, "(S (名詞 日本語))", "(S (名詞 日本語))", (1, 0, 1, 1, 1, 0, 1, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_row(name):
    parameters, gold, test, row = CASES[name]
    evaluation = evaluate([gold], [test], parameters)
    assert next(evaluation.iterate_rows())[:8] == row


def test_text_outside_a_bracket_is_an_error_of_its_sentence():
    """EVALB never gets past such text; here the rest of the line is read."""
    evaluation = evaluate([A_B, A_B], ["(S (X a) oops (Y b))", A_B])
    assert [row[:8] for row in evaluation.iterate_rows()] == [
        (2, 1, 1, 1, 1, 0, 2, 2),
        (2, 0, 1, 1, 1, 0, 2, 2),
    ]
    assert [str(problem) for problem in evaluation.problems] == ["test:1:10: 'oops' is not inside a (TAG word) bracket"]


def test_two_words_under_a_tag_are_an_error():
    evaluation = evaluate([A_B], ["(S (X a b) (Y b))"])
    assert evaluation.all.errors == 1
    assert evaluation.problems[0].kind == "stray text"


def test_a_line_that_ends_after_a_label_is_unclosed():
    """EVALB goes on reading what the buffer holds of the line before."""
    evaluation = evaluate(["(S (X a) (Y b) (Z c))", A_B], ["(S (X a) (Y b) (Z c))", "(S (X a) (Y"])
    assert [row[1] for row in evaluation.iterate_rows()] == [0, 1]


def test_a_byte_order_mark_is_no_text(tmp_path):
    path = tmp_path / "gold"
    path.write_text(A_B + "\n", encoding="utf-8-sig")
    assert evaluate(path, [A_B]).f1 == 100


@pytest.mark.parametrize(("n_gold", "n_test"), [(3, 2), (2, 3), (5, 2), (2, 5)])
def test_files_of_different_length(n_gold, n_test):
    """The table ends with the shorter file and the next line is an error; strict counts all lines."""
    evaluation = evaluate([A_B] * n_gold, [A_B] * n_test)
    assert evaluation.all.sentences == 2
    assert evaluation.all.errors == 0
    assert evaluation.n_errors == 1
    assert evaluation.f1 == 100
    assert (evaluation.strict.gold, evaluation.strict.test, evaluation.strict.matched) == (n_gold, n_test, 2)


def test_no_brackets_at_all():
    evaluation = evaluate([], [])
    assert evaluation.f1 == evaluation.strict.f1 == 0
    assert "Bracketing FMeasure       =   -nan\n" in evaluation.summary()
    assert evaluation.table().endswith("=\n      0     0     0.00\n")


def test_strict_charges_failed_and_mismatched_sentences():
    gold = ["(S (NP (X a)) (Y b))"] * 3
    test = ["(S (NP (X a)) (Y b))", "", "(S (NP (X a)) (VP (Y c)))"]
    strict = evaluate(gold, test).strict
    assert (strict.sentences, strict.complete) == (3, 1)
    assert (strict.gold, strict.test, strict.matched) == (6, 5, 2)
    assert (strict.words, strict.tags) == (6, 2)


def test_the_cutoff_looks_at_the_length_with_punctuation():
    parameters = replace(COLLINS, cutoff_len=2)
    evaluation = evaluate([A_B, "(S (X a) (Y b) (. .))"], [A_B, A_B], parameters)
    assert (evaluation.all.valid, evaluation.cutoff.valid) == (2, 1)


def test_stopping_comes_at_the_error_after_the_next():
    """MAX_ERROR 1 lets two errors pass; the sentence with the third has no row."""
    parameters = replace(COLLINS, max_error=1)
    evaluation = evaluate([A_B] * 5, ["(S (X c))"] * 5, parameters, stop_on_errors=True)
    assert evaluation.stopped
    assert evaluation.n_errors == 3
    assert len(list(evaluation.iterate_rows())) == 2
    assert evaluate([A_B] * 2, ["(S (X c))"] * 2, parameters, stop_on_errors=True).stopped is False


def test_stopping_at_text_outside_a_bracket_is_immediate():
    assert evaluate([A_B] * 2, ["oops", A_B], stop_on_errors=True).stopped
