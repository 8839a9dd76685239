"""Negra export: both versions read, discontinuous trees named, trees survive the round trip."""

import pytest
from hypothesis import given
from nltk.tree import Tree
from strategies import trees

from tsgkit.errors import TreebankError
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._export import format_export, read_export, recognise
from tsgkit.treebank._trees import same_tree
from tsgkit.treebank.formats import ReadOptions

VERSION_3 = """#FORMAT 3
#BOT ORIGIN
0\tfoo
#EOT ORIGIN
%% a comment
#BOS 1 2 888 1 %% something
Mögen\tVMFIN\t3.Pl.*\tHD\t508
Puristen\tNN\t*\tNK\t505
ringen\tVVINF\t--\tHD\t506
.\t$.\t--\t--\t0
#505\tNP\t--\tSB\t508
#506\tVP\t--\tOC\t508
#508\tS\t--\t--\t0
#EOS 1
"""
DISCONTINUOUS = """#BOS 7
das\tPDS\t--\tOA\t500
hat\tVAFIN\t--\tHD\t501
er\tPPER\t--\tSB\t501
gesagt\tVVPP\t--\tHD\t500
#500\tVP\t--\tOC\t501
#501\tS\t--\t--\t0
#EOS 7
"""


def read(text, **options):
    return list(read_export(text.split("\n"), "t.export", ReadOptions(**options)))


def test_version_3():
    (tree,) = read(VERSION_3)
    assert format_tree(tree) == "(VROOT (S (VMFIN Mögen) (NP-SB (NN Puristen)) (VP-OC (VVINF ringen))) ($. .))"


def test_version_4_has_lemmas():
    rows = ["#FORMAT 4", "#BOS 1", "Katzen Katze NN Pl -- 500", "#500 -- NP -- -- 0", "#EOS 1"]
    (tree,) = read("\n".join(rows))
    assert format_tree(tree) == "(NP (NN Katzen))"


def test_without_a_header_the_first_row_shows_whether_there_are_lemmas():
    rows = ["#BOS 1 %% somebody", "well\t--\tInt\t--\t--\t500", "#500\t--\tIntP\t--\t--\t0", "#EOS 1"]
    assert [format_tree(tree) for tree in read("\n".join(rows))] == ["(IntP (Int well))"]
    # In version 3, a secondary edge is behind the parent.
    rows = ["#BOS 1", "well\tInt\t--\t--\t500\tSB\t500", "#500\tIntP\t--\t--\t0", "#EOS 1"]
    assert [format_tree(tree) for tree in read("\n".join(rows))] == ["(IntP (Int well))"]
    with pytest.raises(TreebankError, match=r"^t\.export:2:1: bad row: the parent must be a number, not 'x'"):
        read("#BOS 1\na N -- HD x y\n#EOS 1")


def test_edges_without_a_label():
    """Two dashes, or one as in TüBa-D/Z; a label that ends with dashes is written whole."""
    (tree,) = read("#BOS 1\nA NN nsf HD 500\n#500 NX -- - 501\n#501 SIMPX -- -- 0\n#EOS 1")
    assert format_tree(tree) == "(SIMPX (NX (NN A)))"
    for label in ("NX-", "NX--", "NX---", "NX-HD-"):
        tree = Tree("S", [Tree(label, [Tree("NN", ["a"])])])
        assert read(format_export(tree, 1)) == [tree]


def test_spaces_and_tabs_separate_columns():
    """But no other whitespace: words may contain no-break spaces."""
    (tree,) = read("#BOS 1\nRoss    Perot\tNE  NN\t\t--   0\n#EOS 1")
    assert tree.leaves() == ["Ross"]
    (tree,) = read("#BOS 1\n10\xa0000\t\tCARD\t--\t--\t0\n\u3000\tXY\t--\t--\t0\n#EOS 1")
    assert tree.leaves() == ["10\xa0000", "\u3000"]
    assert read(format_export(tree, 1)) == [tree]


def test_an_end_that_is_missing_costs_one_sentence():
    text = VERSION_3.replace("#EOS 1\n", "") + DISCONTINUOUS
    with pytest.raises(TreebankError, match=r"^t\.export:14:1: missing end: sentence 1 of line 6 has no #EOS"):
        read(text)
    skipped = []
    (tree,) = read(text, skipped=skipped, reattached=[])
    assert tree.leaves() == ["das", "hat", "er", "gesagt"]
    assert [error.reason for error in skipped] == ["missing end"]


def test_a_table_without_an_end_costs_no_sentence():
    text = VERSION_3.replace("#EOT ORIGIN\n", "")
    with pytest.raises(TreebankError, match=r"^t\.export:5:1: missing end: the table of line 2 has no #EOT"):
        read(text)
    skipped = []
    assert len(read(text, skipped=skipped)) == len(skipped) == 1
    with pytest.raises(TreebankError, match=r"^t\.export:3:1: missing end: the file ends inside the table of line 2"):
        read("#FORMAT 3\n#BOT ORIGIN\n0 foo")


def test_words_that_would_not_be_read_as_words():
    for word in ("#512", "#EOS", "#EOSX", "#BOS", "%%", "%%x"):
        with pytest.raises(TreebankError, match=r"cannot be written in export format.*; --write=tigerxml can"):
            format_export(Tree("S", [Tree("A", ["a"]), Tree("B", [word])]), 1)
    tree = Tree("S", [Tree("A", ["#499"]), Tree("B", ["#x"]), Tree("C", ["5%%"]), Tree("%%", ["3"]), Tree("D", ["#"])])
    assert read(format_export(tree, 1)) == [tree]
    # Read, such a row is not taken for a comment.
    with pytest.raises(
        TreebankError, match=r"^t\.export:3:1: bad row: is '%%' a word\? What begins with %% is a comment"
    ):
        read("#BOS 1\na\tA\t--\t--\t0\n%%\tB\t--\t--\t0\n#EOS 1")
    assert len(read("#BOS 1\na\tA\t--\t--\t0\n%% a comment\n%%\n#EOS 1")) == 1


def test_comments_and_empty_lines_may_come_first():
    assert recognise(["\n", "%% a comment\n", "%%\n", "#FORMAT 3\n"])
    assert recognise(["%% a comment\n"])
    assert not recognise(["%% a comment\n", "( (S (A b)))\n"])


def test_comments_behind_columns():
    """As in TüBa-D/Z, with coreference; a lemma may look like one."""
    rows = ["#FORMAT 4", "#BOS 1 2 3 4", "x\t%%\tXY\t--\t--\t0", "sie\tsie\tPPER\t--\tHD\t500 %% R=anaphoric.9:500"]
    (tree,) = read("\n".join([*rows, "#500\t--\tNX\t--\tON\t0\t%% R=coreferential.8:501", "#EOS 1"]))
    assert format_tree(tree) == "(VROOT (XY x) (NX-ON (PPER sie)))"


def test_discontinuous_trees_are_named():
    with pytest.raises(TreebankError, match=r"t.export:1:1: sentence 7: discontinuous tree: phrase #500 \(VP-OC\)"):
        read(DISCONTINUOUS)
    skipped = []
    assert len(read(DISCONTINUOUS + VERSION_3.split("\n", 4)[4], skipped=skipped)) == 1
    assert len(skipped) == 1
    skipped = []
    bad_row = "#BOS 8\nx\na\tN\t--\t--\t0\nb\tN\t--\t--\t0\n#EOS 8\n"
    assert len(read(bad_row + VERSION_3.split("\n", 4)[4], skipped=skipped)) == 1
    assert [error.line for error in skipped] == [2]


def test_a_number_that_is_too_long_is_a_word():
    word = f"#{'9' * 5000}"
    (tree,) = read(f"#BOS 1\n{word}\tN\t--\t--\t0\n#EOS 1")
    assert format_tree(tree) == f"(VROOT (N {word}))"


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (["a\tN\t--\t--\t0"], "is outside of #BOS"),
        (["#BOS 1", "a\tN\t--"], "at least 5 columns"),
        (["#BOS 1", "a\tN\t--\t--\tx"], "must be a number"),
        (["#BOS 1", "a\tN\t--\t--\t" + "9" * 5000], "must be a number"),
        (["#BOS 1", "a\tN\t--\t--\t500", "#EOS 1"], "has a parent that does not exist: 500"),
        (
            ["#BOS 1", "a\tN\t--\t--\t500", "#500\tX\t--\t--\t501", "#501\tX\t--\t--\t500", "#EOS 1"],
            "its own ancestor",
        ),
        (["#BOS 1", "a\tN\t--\t--\t0", "#500\tX\t--\t--\t0", "#EOS 1"], "empty node: phrase #500"),
        (["#BOS 1", "#EOS 1"], "it has no words"),
        (["#BOS 1", "a\tN\t--\t--\t0", "#EOS 2"], "does not end sentence 1"),
        (["#BOS 1", "a\tN\t--\t--\t0"], "#EOS is missing"),
        (["#FORMAT 5"], "unknown version: '#FORMAT 5'; only 3 and 4"),
        (["#BOS"], "must be followed by the number of the sentence"),
        (["#BOS 1", "#500\tX\t--\t--\t0", "#500\tX\t--\t--\t0"], "occurs twice"),
        (["#BOS 1", "#500\tX\t--\t--\t0", "a\tN\t--\t--\t0"], "after the phrases"),
    ],
)
def test_mistakes(rows, problem):
    with pytest.raises(TreebankError, match=r"t\.export:\d+:1: ") as caught:
        read("\n".join(rows))
    assert problem in str(caught.value)


def plain(tree):
    """No symbol that the format itself uses."""
    text = format_tree(tree)
    return not any(bad in text for bad in ("#", "%", "VROOT", "--"))


@given(trees.filter(plain))
def test_round_trip(tree):
    rows = format_export(tree, 12)
    (again,) = read(rows)
    assert same_tree(again[0] if again.label() == "VROOT" else again, tree)


def test_penn_sample_round_trip(penn_sample):
    sample = penn_sample[:400]
    text = "\n".join(format_export(tree, number) for number, tree in enumerate(sample))
    assert all(same_tree(one, other) for one, other in zip(sample, read(text), strict=True))
