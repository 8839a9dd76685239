"""TIGER-XML: trees, gaps, wrong graphs, and what the writer writes is read as it was."""

import io

import pytest
from hypothesis import given
from nltk.tree import Tree
from strategies import trees

from tsgkit.errors import TreebankError
from tsgkit.treebank import load
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._formats import recognised
from tsgkit.treebank._tigerxml import format_tigerxml, read_tigerxml, write_tigerxml
from tsgkit.treebank._trees import preorder, same_tree
from tsgkit.treebank._xml import NOT_IN_XML
from tsgkit.treebank.formats import ReadOptions

FILE = """<?xml version="1.0" encoding="UTF-8"?>
<corpus id="garden" version="1">
<head><meta><name>Garden</name></meta>
<annotation><feature name="word" domain="T"/><edgelabel><value name="SB">subject</value></edgelabel></annotation></head>
<body>
{}</body>
</corpus>
"""
SENTENCE = """<s id="s1">
<graph root="s1_VROOT" discontinuous="true">
<terminals>
  <t id="s1_1" word="Das" lemma="der" pos="PDS" morph="Acc.Sg.Neut"/>
  <t id="s1_2" word="hat" lemma="haben" pos="VAFIN" morph="3.Sg"><secedge label="HD" idref="s1_500"/></t>
  <t id="s1_3" word="sie" pos="PPER"/>
  <t id="s1_4" word="gesehen" pos="VVPP"/>
  <t id="s1_5" word="." pos="$."/>
</terminals>
<nonterminals>
  <nt id="s1_501" cat="S">
    <edge label="OC" idref="s1_500"/><edge label="HD" idref="s1_2"/><edge label="SB" idref="s1_3"/>
    <secedge label="CJ" idref="s1_500"/>
  </nt>
  <nt id="s1_500" cat="VP"><edge label="OA" idref="s1_1"/><edge label="HD" idref="s1_4"/></nt>
  <nt id="s1_VROOT" cat="VROOT"><edge label="--" idref="s1_501"/><edge label="--" idref="s1_5"/></nt>
</nonterminals>
</graph>
</s>
"""


def read(*sentences, **options):
    data = FILE.format("".join(sentences)).encode()
    return list(read_tigerxml(io.BytesIO(data), "t.xml", ReadOptions(**options)))


def test_other_xml_with_sentences():
    """PML has the same root and the same element for sentences."""
    with pytest.raises(TreebankError, match=r"sentence s7: no tree: it has no <graph>; is this TIGER-XML\?"):
        read('<s id="s7"><root><nonterminal id="s7_502"><cat>NP</cat></nonterminal></root></s>')


def test_a_discontinuous_sentence():
    with pytest.raises(TreebankError, match=r"^t\.xml:6:1: sentence s1: discontinuous tree: phrase s1_500 \(VP-OC\)"):
        read(SENTENCE)
    reattached = []
    (tree,) = read(SENTENCE, reattached=reattached)
    expected = "(VROOT (S (PDS Das) (VAFIN hat) (PPER sie) (VP-OC (VVPP gesehen))) ($. .))"
    assert format_tree(tree) == expected
    assert reattached == ["t.xml:6: sentence s1"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('idref="s1_3"', 'idref="s1_9"', "6:1: sentence s1: no tree: an edge leads to 's1_9'"),
        ('id="s1_3"', 'id="s1_4"', "6:1: sentence s1: no tree: the identifier of a node occurs twice"),
        ('<edge label="SB" idref="s1_3"/>', "", "6:1: sentence s1: no tree: no edge leads to 's1_3', but"),
        ('idref="s1_3"', 'idref="s1_2"', "no tree: 's1_2' has two parents"),
        (' pos="PPER"', "", "11:3: missing attribute: <t> has no 'pos'"),
        (' word="sie"', ' word=""', "empty or whitespace: '' can be no word"),
        (' word="sie"', ' word="sie da"', "empty or whitespace: 'sie da'"),
        (' idref="s1_3"', "", "missing attribute: <edge> has no 'idref'"),
        ('root="s1_VROOT"', 'root="s1_501"', "no tree: the root 's1_501' has a parent"),
        ('root="s1_VROOT"', 'root="s2_VR"', "no tree: the root 's2_VR' does not exist"),
        ("<nonterminals>", '<nonterminals><edge label="X" idref="s1_3"/>', "or from outside of <nt>"),
        ("</s>", "", "not well-formed XML: mismatched tag"),
        ("</graph>", "</graf>", "23:3: not well-formed XML: mismatched tag"),
    ],
)
def test_damage(old, new, problem):
    damaged = SENTENCE.replace(old, new, 1)
    assert damaged != SENTENCE
    with pytest.raises(TreebankError) as caught:
        read(damaged, reattached=[])
    assert problem in str(caught.value)
    if "not well-formed" not in problem:
        skipped = []
        assert len(read(damaged, SENTENCE.replace("s1", "s2"), reattached=[], skipped=skipped)) == 1
        assert len(skipped) == 1


def test_one_word():
    word = '<terminals><t id="s9_1" word="Ja" pos="ITJ"/></terminals>'
    one = f'<s id="s9"><graph root="s9_1">{word}<nonterminals/></graph></s>'
    assert [format_tree(tree) for tree in read(one)] == ["(VROOT (ITJ Ja))"]


def test_nodes_that_no_edge_leads_to():
    """As in export files they are children of the sentence; the root is the phrase that is meant as such."""
    words = [("Wer", "PWS"), ("ruft", "VVFIN"), ("?", "$."), ("Sie", "PPER")]
    terminals = "".join(f'<t id="s9_{n}" word="{word}" pos="{tag}"/>' for n, (word, tag) in enumerate(words, 1))
    phrase = '<nt id="s9_500" cat="S"><edge label="SB" idref="s9_1"/><edge label="HD" idref="s9_2"/></nt>'
    for root in ("s9_500", "s9_VROOT"):
        graph = f'<graph root="{root}"><terminals>{terminals}</terminals><nonterminals>{phrase}</nonterminals></graph>'
        (tree,) = read(f'<s id="s9">{graph}</s>')
        assert format_tree(tree) == "(VROOT (S (PWS Wer) (VVFIN ruft)) ($. ?) (PPER Sie))"
    with pytest.raises(TreebankError, match=r"sentence s9: empty node: phrase s9_501 \(X\) has no words"):
        read('<s id="s9">' + graph.replace("<nonterminals>", '<nonterminals><nt id="s9_501" cat="X"/>') + "</s>")


def test_one_sentence_can_be_a_file():
    assert recognised([SENTENCE]) == recognised(['<?xml version="1.0"?>\n', *SENTENCE.splitlines()]) == "tigerxml"


def again(*some):
    return list(read_tigerxml(io.BytesIO("".join(write_tigerxml(some)).encode())))


def has_phrase(tree):
    return isinstance(tree[0], Tree)


@given(trees.filter(has_phrase))
def test_what_is_written_is_read(tree):
    symbols = [symbol for node in preorder(tree) for symbol in (node.label(), node[0]) if isinstance(symbol, str)]
    if any(map(NOT_IN_XML.search, symbols)):
        with pytest.raises(TreebankError, match="cannot be written"):
            again(tree)
    else:
        assert same_tree(*again(tree), tree)


def test_the_bundled_treebank():
    some = load(split="dev")
    inner = [tree[0] for tree in some]
    assert all(map(same_tree, again(*some), inner))
    assert format_tigerxml(some[0], "s1") == format_tigerxml(inner[0], "s1")


def test_what_cannot_be_written():
    for tree in (Tree("S", [Tree("", ["a"])]), Tree("S", [Tree("A", ["a b"])]), Tree("S", [Tree("A", ["\x00"])])):
        with pytest.raises(TreebankError, match="cannot be written"):
            again(tree)
