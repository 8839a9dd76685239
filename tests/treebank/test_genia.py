"""GENIA XML: roles, null elements, damage."""

import io

import pytest

from tsgkit.errors import TreebankError
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._genia import read_genia
from tsgkit.treebank.formats import ReadOptions

SENTENCE = """<sentence id="S1"><cons cat="S">
<cons cat="NP" id="i1" role="SBJ"><tok cat="NNS">Cells</tok></cons> <cons cat="VP"><tok cat="VBP">seem</tok>
<cons cat="S"><cons cat="NP" ref="i1" role="SBJ" null="NONE"></cons><cons cat="VP" func="TMP"><tok cat="TO">to</tok>
<tok cat="VB">grow</tok> <cons cat="WHNP" null="T"/><cons cat="X" null="GAP"/></cons></cons></cons>
<tok cat="PERIOD">.</tok></cons></sentence>
"""


def read(*sentences, **options):
    text = f"<Annotation>{''.join(sentences)}</Annotation>"
    return list(read_genia(io.BytesIO(text.encode()), "t.xml", ReadOptions(**options)))


def test_a_sentence():
    (tree,) = read(SENTENCE)
    assert format_tree(tree) == (
        "(S (NP-SBJ (NNS Cells)) (VP (VBP seem) (S (NP-SBJ (-NONE- *)) (VP-TMP (TO to) (VB grow) (WHNP (-NONE- *T*))"
        " (X (-NONE- *GAP*))))) (PERIOD .))"
    )


def test_several_roots():
    (tree,) = read('<sentence><tok cat="NN">a</tok><cons cat="NP"><tok cat="NN">b</tok></cons></sentence>')
    assert format_tree(tree) == "(VROOT (NN a) (NP (NN b)))"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (' cat="NNS"', "", "2:35: missing attribute: <tok> has no 'cat'"),
        (">Cells<", "><", "word with whitespace or empty: ''"),
        (">Cells<", ">T cells<", "word with whitespace or empty: 'T cells'"),
        ("seem</tok>", "seem</tok> still", "stray text: 'still'"),
        (' null="NONE"', "", "empty node: 'NP-SBJ' has neither words nor children"),
        (">Cells<", "><cons cat='X'/><", "stray element: <cons> inside <tok>"),
    ],
)
def test_damage(old, new, problem):
    damaged = SENTENCE.replace(old, new, 1)
    assert damaged != SENTENCE
    with pytest.raises(TreebankError) as caught:
        read(damaged)
    assert problem in str(caught.value)
    assert str(caught.value).startswith("t.xml:")
    skipped = []
    assert len(read(damaged, SENTENCE, skipped=skipped)) == 1
    assert len(skipped) == 1


def test_an_empty_sentence():
    with pytest.raises(TreebankError, match="sentence S1: empty sentence"):
        read('<sentence id="S1"> </sentence>')
