"""discbracket: words in the order of their positions; what the writer writes is read as it was."""

import pytest
from hypothesis import given
from nltk.tree import Tree
from strategies import trees

from tsgkit.errors import TreebankError
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._discbracket import format_discbracket, read_discbracket
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


@given(trees.filter(lambda tree: isinstance(tree[0], Tree)))
def test_what_is_written_is_read(tree):
    line = format_discbracket(tree)
    if "#LRB#" not in str(tree) and "#RRB#" not in str(tree):
        assert same_tree(*read(line), tree)


def test_what_cannot_be_written():
    for tree in (Tree("S", [Tree("", ["a"])]), Tree("S", [Tree("A", ["a b"])])):
        with pytest.raises(TreebankError, match="cannot be written"):
            format_discbracket(tree)
