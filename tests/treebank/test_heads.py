"""Head rules: the Penn table on known phrases, the generic tables, and the file format."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsgkit.errors import TreebankError
from tsgkit.treebank._heads import BUILT_IN, HeadRules


@pytest.mark.parametrize(
    ("label", "children", "head"),
    [
        ("S", "NP VP .", 1),
        ("S", "NP , NP VP .", 3),
        ("S", "S , CC S .", 0),  # the first of coordinated clauses
        ("S", "`` S '' NP VP .", 4),  # VP has priority over S, wherever it is
        ("SBAR", "IN S", 0),
        ("SBAR", "WHNP S", 0),
        ("SINV", "ADVP VBZ NP", 1),
        ("VP", "MD VP", 0),
        ("VP", "TO VP", 0),
        ("VP", "ADVP VBD NP PP", 1),
        ("VP", "VBN VBD", 1),  # VBD has priority over VBN
        ("VP", "VP , VP CC VP", 0),
        ("VP", "VB CC VB NP", 0),
        ("NP", "DT JJ NN", 2),
        ("NP", "DT NN POS", 2),  # a final POS is the head
        ("NP", "NP PP", 0),
        ("NP", "NP , SBAR ,", 0),
        ("NP", "NN CC NN", 0),
        ("NP", "NN NN , CC NN", 1),
        ("NP", "DT NN JJR", 2),  # one search from the right for all of these labels
        ("NP", "NP POS X", 1),
        ("NP", "$ CD", 0),
        ("NP", "DT CD", 1),
        ("NP", "DT JJ", 1),
        ("NP", "PRP", 0),
        ("NP", "DT X ,", 1),
        ("NP-SBJ-1", "DT NN=2 PP-LOC", 1),
        ("NML", "NN HYPH NN", 2),
        ("PP", "IN NP", 0),
        ("PP", "ADVP IN NP", 1),
        ("PP", "IN IN NP", 1),
        ("ADJP", "RB JJ PP", 1),
        ("ADJP", "NP JJ", 1),
        ("QP", "IN CD", 0),
        ("WHPP", "IN WHNP", 0),
        ("PRN", "-LRB- NP -RRB-", 1),
        ("PRN", ", S ,", 1),
        ("FRAG", "NP PP .", 1),
        ("LST", "-LRB- LS -RRB-", 1),
        ("X", ": .", 0),  # nothing but punctuation
        ("LST", ". :", 1),
        ("NEW", "A B C", 0),
    ],
)
def test_penn(label, children, head):
    assert HeadRules.load("penn").head(label, children.split()) == head


@given(st.sampled_from([*BUILT_IN]), st.sampled_from(["NP", "VP", "X", ""]), st.lists(st.text(), min_size=1))
def test_there_is_always_a_head(name, label, children):
    assert 0 <= HeadRules.load(name).head(label, children) < len(children)


def test_generic():
    assert HeadRules.load("leftmost").head("NP", ["DT", ",", "NN"]) == 0
    assert HeadRules.load("rightmost").head("NP", ["DT", "NN", ","]) == 2


def test_no_children_no_head():
    with pytest.raises(ValueError, match="no head: 'NP'"):
        HeadRules.load("penn").head("NP", [])


def test_format(tmp_path):
    path = tmp_path / "rules.txt"
    text = """\ufeff# comments and empty lines

        A  right      X  #  Y
        B  left-any   X Y
        B  rightmost  Z
        B  right      W
        *  left       H
        *  rightmost
        %conjunctions und
        %punctuation  , ;
        """
    path.write_text(text, encoding="utf-8")
    rules = HeadRules.load(path)
    assert rules.head("A", ["Y", "#", "#", "Z"]) == 2  # '#' opens a comment only at the start of a line
    assert rules.head("A", ["#", "X", "Y", "X", "Z"]) == 3
    assert rules.head("A", ["O", "P"]) == 1  # nothing found: the side of the last search
    assert rules.head("B", ["O", "Y", "X"]) == 1
    assert rules.head("B", ["W", "Z", "O"]) == 0
    assert rules.head("B", ["W", "Z"]) == 1
    assert rules.head("C", ["O", "H", "O"]) == 1
    assert rules.head("C", ["O", "O"]) == 1
    assert rules.head("C", ["O", ";", "und", ",", "H", ","]) == 0


def test_without_a_star_line_the_leftmost_child_is_the_head():
    assert HeadRules.parse("NP right NN").head("VP", ["A", "B"]) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NP left NN\nVP middle VB", "rules:2: after 'VP' comes one of left, .*, not 'middle'"),
        ("NP", "rules:1: after 'NP' comes one of .*, but the line ends"),
        ("NP right", "rules:1: 'right' needs labels to look for; for any child write 'rightmost'"),
        ("NP left-any", "for any child write 'leftmost'"),
        ("NP leftmost\nNP left NN", "rules:2: never tried"),
        ("%default left", "rules:1: %default is not one of %punctuation, %conjunctions"),
    ],
)
def test_mistakes_are_named(text, message):
    with pytest.raises(TreebankError, match=message):
        HeadRules.parse(text, "rules")


def test_other_encodings_are_refused(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_bytes(b"* leftmost\nNP left \xe4\n")
    with pytest.raises(TreebankError, match=r"rules\.txt:2: not UTF-8"):
        HeadRules.load(path)
