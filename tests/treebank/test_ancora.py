"""AnCora XML: words in attributes, functions, empty nodes, damage; the preset's labels and heads."""

import io

import pytest

from tsgkit.errors import TreebankError
from tsgkit.treebank import read_trees
from tsgkit.treebank._ancora import read_ancora
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._dependencies import dependencies_of
from tsgkit.treebank._heads import HeadRules
from tsgkit.treebank._presets import load_preset
from tsgkit.treebank.formats import ReadOptions

SENTENCE = """<sentence title="no">
<sn elliptic="yes" entityref="ne" func="suj"/>
<grup.verb><v lem="regar" mood="indicative" num="s" pos="vmis3s0" postype="main" wd="Regó"/></grup.verb>
<sn arg="arg1" func="cd" tem="pat"><spec gen="f" num="p"><d lem="el" pos="da0fp0" wd="las"/></spec>
<grup.nom gen="f" num="p"><n lem="rosa" pos="ncfp000" postype="common" wd="rosas"/>
<S clausetype="relative"><relatiu func="suj"><p lem="que" pos="pr0cn000" wd="que"/></relatiu>
<grup.verb><v lem="quedar" pos="vmip3p0" wd="quedan"/></grup.verb></S></grup.nom></sn>
<sadv func="cc"><grup.adv><r lem="a_veces" pos="rg" wd="a veces"/></grup.adv></sadv>
<f lem="." pos="fp" punct="period" wd="."/>
</sentence>
"""


def file(*sentences):
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<article lng="es">\n{"".join(sentences)}</article>\n'


def read(*sentences, **options):
    return list(read_ancora(io.BytesIO(file(*sentences).encode()), "t.xml", ReadOptions(**options)))


def test_a_sentence():
    (tree,) = read(SENTENCE)
    assert format_tree(tree) == (
        "(sentence (sn-suj (-NONE- *0*)) (grup.verb (vmis3s0 Regó)) (sn-cd (spec (da0fp0 las))"
        " (grup.nom (ncfp000 rosas) (S (relatiu-suj (pr0cn000 que)) (grup.verb (vmip3p0 quedan)))))"
        " (sadv-cc (grup.adv (rg a_veces))) (fp .))"
    )


def test_words_without_a_tag_have_the_name_of_their_element():
    assert format_tree(read('<sentence><sn><w wd="42"/></sn></sentence>')[0]) == "(sentence (sn (w 42)))"


def test_the_preset(tmp_path):
    (tmp_path / "1_20000000.tbf.xml").write_text(file(SENTENCE), "utf-8")
    preset = load_preset("ancora")
    (tree,) = (preset.cleaning.apply(tree) for tree in read_trees(tmp_path, treebank="ancora"))
    assert format_tree(tree) == (
        "(TOP (S (grup.verb (vmi Regó)) (sn (spec (da las)) (grup.nom (nc rosas) (S (relatiu (pr que))"
        " (grup.verb (vmi quedan))))) (sadv (grup.adv (rg a_veces))) (fp .)))"
    )
    words = dependencies_of(tree, HeadRules.parse(preset.head_rules))
    heads = [(each.word, words[each.head - 1].word if each.head else "") for each in words]
    assert heads[:3] == [("Regó", ""), ("las", "rosas"), ("rosas", "Regó")]
    assert heads[3:] == [("que", "quedan"), ("quedan", "rosas"), ("a_veces", "Regó"), (".", "Regó")]
    assert "fp" in preset.punctuation
    # Recognised without a preset, too.
    assert [tree.label() for tree in read_trees(tmp_path / "1_20000000.tbf.xml")] == ["sentence"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('wd="que"', 'wd=""', "missing word: 'wd' of <p> is empty"),
        ('<p lem="que" pos="pr0cn000" wd="que"/>', "que", "stray text: 'que' is in no element for words"),
        ('wd="que"/>', 'wd="que"><sn/></p>', "stray element: <sn> inside the word 'que'"),
        ('pos="rg"', 'pos="r g"', "pos with whitespace or empty: 'r g'"),
    ],
)
def test_damage(old, new, problem):
    assert old in SENTENCE
    with pytest.raises(TreebankError, match=r"t\.xml:\d+:\d+: ") as caught:
        read(SENTENCE.replace(old, new))
    assert problem in str(caught.value)
    skipped = []
    assert len(read(SENTENCE, SENTENCE.replace(old, new), SENTENCE, skipped=skipped)) == 2
    assert len(skipped) == 1
