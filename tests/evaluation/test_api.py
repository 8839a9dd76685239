"""What a program calls."""

import doctest
import gzip
import lzma
import pickle
import struct

import pytest
from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.evaluation import (
    Confusion,
    breakdown,
    evalb,
    evaluate,
    load_parameters,
    parameters,
    scores,
    significance,
)
from tsgkit.evaluation.evalb import Scorer, format_table

GOLD = "(TOP (S (NP (DT the) (NN dog)) (VP (VBD ran) (ADVP (RB away)))))"
TEST = "(TOP (S (NP (DT the) (NN dog)) (VP (VBD ran) (NP (RB away)))))"


@pytest.mark.parametrize("module", [breakdown, evalb, parameters, scores, significance])
def test_examples_in_the_documentation(module):
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def test_trees_strings_and_files_agree(tmp_path):
    (tmp_path / "gold").write_text(f"{GOLD}\n\n")
    (tmp_path / "test.gz").write_bytes(gzip.compress(f"{TEST}\n\n".encode()))
    (tmp_path / "test.xz").write_bytes(lzma.compress(f"{TEST}\n\n".encode()))
    expected = evaluate([GOLD, ""], [TEST, ""]).all
    assert expected.f1 == 75
    for test in (
        [Tree.fromstring(TEST), None],
        [TEST, None],
        iter([TEST, Tree("TOP", [])]),
        tmp_path / "test.gz",
    ):
        assert evaluate([Tree.fromstring(GOLD), ""], test).all == expected
    assert evaluate(tmp_path / "gold", str(tmp_path / "test.xz")).all == expected


def test_a_tree_on_several_lines():
    assert evaluate([GOLD], [Tree.fromstring(GOLD).pformat(margin=20)]).f1 == 100


def test_brackets_in_words_of_trees():
    tree = Tree("TOP", [Tree("NP", [Tree("-LRB-", ["("]), Tree("NN", ["dog"])])])
    assert evaluate([tree], ["(TOP (NP (-LRB- -LRB-) (NN dog)))"]).f1 == 100


def test_labels_and_confusions():
    evaluation = evaluate([GOLD, GOLD], [TEST, GOLD.replace("ADVP", "PRT")])
    by_label = {score.label: score for score in evaluation.by_label()}
    assert list(by_label) == ["NP", "S", "VP", "ADVP", "PRT"]
    assert (by_label["NP"].gold, by_label["NP"].test, by_label["NP"].matched_test) == (2, 3, 2)
    # PRT is held equal to ADVP: a gold ADVP found, and a test PRT that is right.
    assert (by_label["ADVP"].matched_gold, by_label["PRT"].matched_test) == (1, 1)
    assert by_label["ADVP"].recall == 50
    assert by_label["PRT"].precision == 100
    assert evaluation.confusions() == [Confusion("ADVP", "NP", 1)]


def test_lengths():
    long = "(S " + "(X a) " * 25 + ")"
    groups = evaluate([GOLD, long, ""], [TEST, long, "(X a)"]).by_length()
    assert [(group.shortest, group.longest, group.sentences, group.valid) for group in groups] == [
        (0, 10, 2, 1),
        (21, 30, 1, 1),
    ]
    assert (groups[0].f1, groups[1].f1) == (75, 100)


def test_an_evaluation_can_be_pickled():
    evaluation = evaluate([GOLD], [TEST])
    assert pickle.loads(pickle.dumps(evaluation)) == evaluation


def test_percentages_are_rounded_as_by_printf():
    """The decimal value of a double is printed: 1 of 32 (3.125) goes down, 3 of 32 (9.375) goes up."""
    pairs = [(part, whole) for whole in (*range(1, 200), 800, 1000, 1600, 2000) for part in range(whole + 1)]
    rows = b"".join(struct.pack("=11i", 1, 0, part, whole, whole, 0, 0, 0, 0, 0, 0) for part, whole in pairs)
    for (part, whole), line in zip(pairs, format_table(rows).splitlines(), strict=True):
        assert line.split()[3] == f"{100.0 * part / whole:.2f}"


def test_damaged_archive(tmp_path):
    path = tmp_path / "test.gz"
    path.write_bytes(gzip.compress(GOLD.encode() * 100)[:40])
    with pytest.raises(TreebankError, match=r"test\.gz: the compressed file is damaged"):
        evaluate([GOLD], path)


def test_problems_say_where(tmp_path):
    path = tmp_path / "parsed"
    path.write_text("(S (é ü)) ö\n(S (X a)\n(S (X b)))\n(S (X a))\n", encoding="utf-8")
    evaluation = evaluate(["(S (é ü))", "(S (X a))", "(S (X a))", "(S (X a) (X b))", "(S (X a))"], path)
    assert [str(problem).removeprefix(str(path)) for problem in evaluation.problems] == [
        ":1:11: 'ö' is not inside a (TAG word) bracket",
        ":2:9: the tree is not closed; every tree must stand on one line",
        ":3:10: a closing bracket too many",
        ":3: word 'b' where the gold tree has 'a'",
        ":4: 1 words where the gold tree has 2",
        ":5: no tree for this line of the gold file and those after it",
    ]


def test_kernel_refuses_misuse():
    collins = load_parameters("collins")
    with pytest.raises(TypeError):
        Scorer("text", b"", collins)
    with pytest.raises(RuntimeError, match="not initialised"):
        Scorer.__new__(Scorer).advance(1)
    scorer = Scorer(b"", b"", collins)
    with pytest.raises(RuntimeError, match="one pair"):
        scorer.__init__(b"x", b"y", collins)
    with pytest.raises(ValueError, match="whole number of rows"):
        format_table(b"123")
