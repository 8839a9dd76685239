"""`tsgkit.evaluation._report`: tables and plain values. `test_command` has whole outputs, `test_quirks` EVALB's."""

import json

from tsgkit.evaluation import compare, evaluate
from tsgkit.evaluation._report import columns, comparison, label_table, length_table, score_dict, table_foot

GOLD = ["( (S (NP (DT the) (NN dog)) (VP (VBD ran))))", "(S (X a))"]
TEST = ["( (S (NP (DT the)) (VP (NN dog) (VBD ran))))", ""]


def test_columns_are_as_wide_as_needed():
    assert columns(("a", "bb", "c"), [("long", "1", "22"), ("", "333", "")], n_left=1) == (
        "a      bb   c\nlong    1  22\n      333\n"
    )
    assert columns(("a", "bb"), [("x", "y")], n_left=2) == "a  bb\nx  y\n"


def test_the_empty_label_is_visible():
    table = label_table(evaluate(GOLD, TEST).by_label(), [])
    assert [line.split() for line in table.splitlines()[2:]] == [
        ["Label", "Gold", "matched", "Test", "matched", "Recall", "Prec.", "F1"],
        ["(none)", "1", "1", "1", "1", "100.00", "100.00", "100.00"],
        ["NP", "1", "0", "1", "0", "0.00", "0.00", "0.00"],
        ["S", "1", "1", "1", "1", "100.00", "100.00", "100.00"],
        ["VP", "1", "0", "1", "0", "0.00", "0.00", "0.00"],
    ]


def test_only_the_most_frequent_confusions():
    labels = [f"L{number:02}" for number in range(12)]
    evaluation = evaluate([f"({label} (X a))" for label in labels], ["(Q (X a))"] * 12)
    table = label_table(evaluation.by_label(), evaluation.confusions())
    pairs = table.partition("Same span, different label:\n\n")[2].splitlines()
    assert pairs == ["Gold  Test  Count", *(f"{label}   Q         1" for label in labels[:10])]


def test_length_table():
    rows = length_table(evaluate(GOLD, TEST).by_length()).splitlines()[2:]
    assert rows[1].split() == ["0-10", "2", "1", "4", "4", "2", "50.00", "50.00", "50.00", "0.00"]


def test_foot_of_the_table_leaves_out_brackets_if_one_side_has_none():
    score = evaluate(["(X a)"], ["(S (X a))"]).all
    assert (score.gold, score.test) == (0, 1)
    assert table_foot(score) == "=" * 76 + "\n      1     1   100.00\n"


def test_rates_without_a_denominator_are_null():
    score = score_dict(evaluate(["(X a)"], ["(S (X a))"]).all)
    assert (score["recall"], score["precision"], score["f1"], score["complete_match"]) == (None, 0, 0, 0)
    score = score_dict(evaluate([], []).all)
    names = ("recall", "precision", "f1", "complete_match", "tagging_accuracy", "average_crossing")
    assert {name: score[name] for name in names} == dict.fromkeys(names)


def test_a_dict_survives_json():
    evaluation = evaluate(GOLD, TEST)
    result = evaluation.to_dict()
    assert json.loads(json.dumps(result))["sentences"] == result["sentences"]
    assert [(row["id"], row["status"], row["matched"], row["all_gold"]) for row in result["sentences"]] == [
        (1, 0, 2, 4),
        (2, 2, 0, 1),
    ]
    assert "sentences" not in evaluation.to_dict(sentences=False)


def test_comparison_shows_counts_and_differences():
    text = comparison(compare(evaluate(GOLD, GOLD), evaluate(GOLD, TEST), 100))
    lines = [line.split() for line in text.splitlines()]
    assert ["F1", "100.00", "50.00", "+50.00"] in lines
    assert ["Skips", "0", "1", "-1"] in lines
    assert ["F1", "100.00", "44.44", "+55.56"] in lines
