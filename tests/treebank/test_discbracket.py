"""discbracket: words in the order of their positions; what the writer writes is read as it was."""

import pytest
from hypothesis import given
from nltk.tree import Tree
from strategies import trees

from tsgkit.errors import TreebankError
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._discbracket import format_discbracket, read_discbracket, recognise
from tsgkit.treebank._trees import same_tree
from tsgkit.treebank.formats import ReadOptions

GAP = "(S (VP (PDS 0=das) (VVPP 3=gesagt)) (VAFIN 1=hat) (PPER 2=er))"


def read(*lines, **options):
    return list(read_discbracket(lines, "t", ReadOptions(**options)))


def test_gaps():
    with pytest.raises(TreebankError, match=r"^t:1:1: sentence number 1: discontinuous tree: phrase #2 \(VP\)"):
        read(GAP)
    (tree,) = read(GAP, reattached=[])
    assert tree.leaves() == ["das", "hat", "er", "gesagt"]


def test_order_and_escapes():
    (tree,) = read("(S (B 1=#LRB#x) (A 0=2=3))")
    assert format_tree(tree) == "(S (A 2=3) (B -LRB-x))"
    assert tree[1][0] == "(x"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("(S (A 0=a) (B b))", "word order: 'b' has no position"),
        ("(S (A 0=a) (B 0=b))", "word order: two words at position 0"),
        ("(S (A 0=a) (B 2=b))", "word order: no word at position 1"),
        ("(S (A 0=a) (B 1=b)", "unbalanced brackets"),
        ("(S (A 0=a) (B 99999999999=b))", "has no position"),
    ],
)
def test_damage(line, problem):
    with pytest.raises(TreebankError, match=problem) as caught:
        read(line)
    assert str(caught.value).startswith("t:1:")
    skipped = []
    assert len(read(line, "(S (A 0=a))", skipped=skipped)) == 1
    assert len(skipped) == 1


def test_comments_behind_trees():
    """disco-dop allows one after a tab; tabs may also indent a tree over several lines."""
    lines = ["(S (A 0=a) (B 1=b))\tfirst: (a b)", "(S\n", "\t(A 0=c)\n", "\t(B 1=d))\tsecond\n", "(S (A 0=e))"]
    assert [format_tree(tree) for tree in read(*lines)] == ["(S (A a) (B b))", "(S (A c) (B d))", "(S (A e))"]
    with pytest.raises(TreebankError, match=r"^t:1:21: stray token: 'first:' is outside of all brackets"):
        read("(S (A 0=a) (B 1=b)) first: (a b)")
    # A bracket that is missing does not make a comment part of the next tree.
    skipped = []
    (tree,) = read("(S (A 0=a) (B 1=b)\tfirst", "(S (A 0=c))\tsecond", skipped=skipped)
    assert (tree.leaves(), len(skipped)) == (["c"], 1)


@pytest.mark.parametrize(
    ("line", "is_discbracket"),
    [
        (GAP, True),
        ("(S (A 0=a) (B 1=10\xa0000))", True),
        ("(S (A 1=a) (B 0=b))\tcomment", True),
        ("(S (VP (V 1=ran))", True),  # goes on on the next line
        ("(S (CD 5=5) (CD 7=7))", False),
        ("(S (CD 0=0) (CD 0=0))", False),
        ("(S (A a) (B b))", False),
    ],
)
def test_words_with_positions_are_recognised(line, is_discbracket):
    assert recognise([line]) == is_discbracket


@given(trees)
def test_what_is_written_is_read(tree):
    line = format_discbracket(tree)
    assert same_tree(*read(line), tree)


def test_several_roots():
    tree = Tree("", [Tree("S", [Tree("A", ["a"])]), Tree(".", ["."])])
    assert format_discbracket(tree) == "(VROOT (S (A 0=a)) (. 1=.))"


def test_what_cannot_be_written():
    for tree in (Tree("S", [Tree("", ["a"])]), Tree("S", [Tree("A", ["a b"])]), Tree("S", [Tree("A", ["#LRB#"])])):
        with pytest.raises(TreebankError, match="cannot be written"):
            format_discbracket(tree)
