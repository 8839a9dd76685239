"""The Sinica treebank: roles, punctuation, damage."""

import pytest
from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._sinica import read_sinica
from tsgkit.treebank.formats import ReadOptions

LINE = (
    "#3:1.[17] S(agent:NP(property:N‧的(head:Nhaa:我|Head:DE:的)|Head:Nab:狗)|time:Dd:常|Head:VA4:跑)"
    "#。(PERIODCATEGORY)"
)
TREE = "(S (NP-agent (N‧的-property (Nhaa 我) (DE 的)) (Nab 狗)) (Dd 常) (VA4 跑) (PERIODCATEGORY 。))"


def read(*lines, **options):
    return list(read_sinica(lines, "t.txt", ReadOptions(**options)))


def test_a_line():
    assert [format_tree(tree) for tree in read(LINE, "", f"{LINE}\r\n")] == [TREE, TREE]


def test_variants_of_numbers_and_punctuation():
    for new in ("#3:1..[17] ", "#3:.[17] ", "#3:1.2.[17] "):
        assert format_tree(*read(LINE.replace("#3:1.[17] ", new))) == TREE
    assert format_tree(*read(LINE.replace("#。", "# \u3000。"))) == TREE
    (tree,) = read(LINE.partition("#。")[0] + "#")
    assert tree == Tree.fromstring(TREE)[:-1] or len(tree) == 3


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("#3:1.[17] ", "", "1:1: stray token: a line begins with #"),
        ("#。(PERIODCATEGORY)", "", "stray token: a tree ends with #"),
        ("跑)", "跑", "unbalanced brackets: the tree is not closed"),
        ("跑)", "跑))", "unbalanced brackets: ')' is outside of all brackets"),
        ("agent:NP(", "agent:NP((", "missing label"),
        ("|time:", "||time:", "empty node: there is nothing before '|'"),
        ("time:Dd:常", "Dd常", "missing word: 'Dd常' is not role:tag:word"),
        ("time:Dd:常", "time:Dd:", "empty or whitespace: 'time:Dd:'"),
        ("狗)|", "狗)", "stray token: 'time:Dd:常'"),
        ("S(agent", "Head:X:x|S(agent", "unbalanced brackets: '|' is outside of all brackets"),
    ],
)
def test_damage(old, new, problem):
    damaged = LINE.replace(old, new, 1)
    assert damaged != LINE
    with pytest.raises(TreebankError) as caught:
        read(damaged)
    assert str(caught.value).startswith("t.txt:1:")
    assert problem in str(caught.value)
    skipped = []
    assert len(read(damaged, LINE, skipped=skipped)) == 1
    assert len(skipped) == 1
