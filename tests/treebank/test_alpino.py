"""Alpino XML: the order of the words is that of their positions; gaps, secondary edges, damage."""

import io

import pytest

from tsgkit.errors import TreebankError, UsageError
from tsgkit.treebank._alpino import read_alpino
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank.formats import ReadOptions

# What the girl wants to see she does not say; the comma is first in the file, and third in the sentence.
SENTENCE = """<alpino_ds version="1.3" id="7">
  <node begin="0" cat="top" end="6" id="0" rel="top">
    <node begin="2" end="3" id="1" pos="punct" rel="--" root="," word=","/>
    <node begin="0" cat="smain" end="6" id="2" rel="--">
      <node begin="3" end="4" id="3" index="1" pos="pron" rel="su" root="zij" word="zij"/>
      <node begin="4" end="5" id="4" pos="verb" rel="hd" root="zeg" word="zegt"/>
      <node begin="0" cat="inf" end="6" id="5" rel="vc">
        <node begin="3" end="4" id="6" index="1" rel="su"/>
        <node begin="0" cat="np" end="2" id="7" rel="obj1">
          <node begin="0" end="1" id="8" pos="det" rel="det" root="het" word="Het"/>
          <node begin="1" end="2" id="9" pos="noun" rel="hd" root="boek" word="boek"/>
        </node>
        <node begin="5" end="6" id="10" pos="verb" rel="hd" postag="WW(inf)" root="lees" word="lezen"/>
        <node begin="3" cat="np" end="4" id="11" rel="mod"><node begin="3" end="4" id="12" index="1" rel="hd"/></node>
      </node>
    </node>
  </node>
  <sentence>Het boek , zij zegt lezen</sentence>
  <comments><comment>a comment</comment></comments>
</alpino_ds>
"""
CONTINUOUS = "(top (smain (np-obj1 (det Het) (noun boek)) (punct ,) (pron zij) (verb zegt) (inf-vc (verb lezen))))"


def read(*sentences, **options):
    text = f"<alpino>{''.join(sentences)}</alpino>"
    return list(read_alpino(io.BytesIO(text.encode()), "t.xml", ReadOptions(**options)))


def test_order_by_position():
    with pytest.raises(TreebankError, match=r"^t\.xml:1:1: sentence 7: discontinuous tree: phrase #3 \(inf-vc\)"):
        read(SENTENCE)
    (tree,) = read(SENTENCE, reattached=[])
    assert format_tree(tree) == CONTINUOUS
    assert tree.leaves() == ["Het", "boek", ",", "zij", "zegt", "lezen"]


def test_secondary_edges_as_traces():
    (tree,) = read(SENTENCE, reattached=[], named={"secondary": "trace", "tag": "pos"})
    assert "(inf-vc (pron-su (-NONE- *1*)) (np-mod (pron-hd (-NONE- *1*))) (verb lezen))" in format_tree(tree)
    with pytest.raises(UsageError, match="secondary=all: must be one of drop, trace"):
        read(SENTENCE, named={"secondary": "all"})


def test_another_tag():
    with pytest.raises(TreebankError, match="missing attribute: <node> has no 'postag'"):
        read(SENTENCE, reattached=[], named={"tag": "postag"})


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            'begin="1" end="2" id="9"',
            'begin="0" end="1" id="9"',
            "1:1: sentence 7: word order: two words at position 0",
        ),
        ('begin="5" end="6" id="10"', 'begin="6" end="7" id="10"', "word order: no word at position 5"),
        ('begin="4" end="5"', 'begin="4" end="6"', "6:7: word order: 'zegt' goes from 4 to 6"),
        ('begin="4" end="5"', 'begin="x" end="6"', "6:7: word order: begin='x' is no position"),
        ("zij zegt lezen", "zegt zij lezen", "word order: word 4 is 'zij' by its position, 'zegt' in <sentence>"),
        ("zij zegt lezen<", "zij zegt lezen .<", "word order: 6 words, but <sentence> has 7"),
        (' word="zegt"', "", "no tree: a <node> has neither 'cat' nor 'word' nor 'index'"),
        ('word="zegt"/>', 'word="zegt"><node begin="4" end="5"/></node>', "no tree: a word has a <node> inside"),
        ('word="zegt"', 'word="zegt ja"', "word with whitespace or empty"),
        ('<node begin="3" end="4" id="12" index="1" rel="hd"/>', "", "empty node: 'np-mod' has no words"),
    ],
)
def test_damage(old, new, problem):
    damaged = SENTENCE.replace(old, new, 1)
    assert damaged != SENTENCE
    with pytest.raises(TreebankError) as caught:
        read(damaged, reattached=[])
    assert problem in str(caught.value)
    skipped = []
    assert len(read(damaged, SENTENCE, reattached=[], skipped=skipped)) == 1
    assert len(skipped) == 1
