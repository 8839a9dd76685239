"""Presets: those of the package are whole and say where they come from; a user's file has the same form."""

from dataclasses import replace

import pytest
from nltk.tree import Tree

from tsgkit.errors import TreebankError, UsageError
from tsgkit.evaluation._parameters import parameters_named
from tsgkit.treebank import Binarization, Cleaning, read_trees, write_trees
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._presets import load_preset, parse_preset, preset_names
from tsgkit.treebank._relabel import Relabelling

MINE = """
title = "My treebank"
sources = ["me"]

[read]
format = "brackets"
encoding = "iso-8859-1"
files = ["*.tb"]

[read.options]
lemma = "column"

[clean]
functions = false
root = "ROOT"
labels = '''
tag N* -> N
'''

[heads]
rules = "NP right N"

[evaluate]
punctuation = ["F"]
equal_labels = [["A", "B"]]
"""


@pytest.mark.parametrize("name", preset_names())
def test_every_preset(name):
    preset = load_preset(name)
    assert preset.title
    assert preset.sources
    assert preset.punctuation
    parameters = parameters_named(preset.parameters)
    assert set(preset.punctuation) - {"?"} <= {*parameters.delete_labels, ",", ":", ".", "``", "''"}
    rules = Binarization("centre-head", heads=preset.heads, rules=preset.rules).head_rules
    some = preset.punctuation[0]
    assert rules.head("XYZ", [some, "NP", some]) == 1
    Relabelling.parse(preset.cleaning.relabelling)


def test_the_names():
    wanted = {
        "penn",
        "negra",
        "tiger",
        "ftb",
        "cess",
        "alpino",
        "icepahc",
        "greynir",
        "genia",
        "ancora",
        "ctb",
        "sinica",
        "floresta",
        "historical",
        "starlang",
    }
    assert wanted <= set(preset_names())


def test_a_file_of_the_user(tmp_path):
    (tmp_path / "mine.toml").write_text(MINE)
    preset = load_preset(tmp_path / "mine.toml")
    assert preset.name == preset.heads == "mine"
    assert preset.cleaning == Cleaning(functions=False, root="ROOT", relabelling="tag N* -> N\n")
    assert preset.rules == "%punctuation F\nNP right N"
    assert parameters_named(preset.parameters).eq_labels == (("A", "B"),)
    folder = tmp_path / "trees"
    folder.mkdir()
    (folder / "a.tb").write_bytes("(S (N Käse Käse))\n".encode("iso-8859-1"))
    (folder / "README").write_text("no tree")
    trees = read_trees(folder, treebank=str(tmp_path / "mine.toml"))
    assert [format_tree(tree) for tree in trees] == ["(S (N Käse))"]
    # What is given besides wins.
    (folder / "a.tb").write_text("(S (N Käse))\n", encoding="utf-8")
    (tree,) = read_trees(folder, treebank=preset, encoding="utf-8", format="brackets:lemma=none")
    assert tree.leaves() == ["Käse"]
    (folder / "a.tb").unlink()
    with pytest.raises(TreebankError, match=r"the folder has no files like \*\.tb"):
        list(read_trees(folder, treebank=preset))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('title = "My', 'titel = "My', "no key 'titel' at the top; there are title, sources"),
        ("[clean]\n", "[clean]\nfunction = 1\n", "no key 'function' in [clean]"),
        ('format = "brackets"', 'format = "bracket"', "read: reader 'bracket': must be one of brackets, export"),
        ('lemma = "column"', 'lemmas = "column"', "read: format 'brackets': no option 'lemmas'"),
        ('lemma = "column"', "lemma = 3", "read.options must be a table of strings"),
        ('format = "brackets"', 'format = "auto"', "options need a format"),
        ("functions = false", "functions = 3", "clean: "),
        ("tag N* -> N", "tag N*", "clean: relabelling"),
        ('"NP right N"', '"NP up N"', "after 'NP' comes one of"),
        ("[heads]", '[heads]\ntable = "penn"', "heads: either table or rules"),
        ('rules = "NP right N"', 'table = "dutch"', "heads.table='dutch': must be one of penn"),
        ('["F"]', '"F"', "evaluate.punctuation must be a list of strings"),
        ('[["A", "B"]]', '[["A"]]', "evaluate.equal_labels must be a list of pairs"),
        ('encoding = "iso-8859-1"', "encoding = 8859", "read.encoding must be a string"),
        ('encoding = "iso-8859-1"', "continuous = 1", "read.continuous must be true or false"),
        ("[read]", "[read", "not TOML"),
        ("[evaluate]", "[[evaluate]]", "[evaluate] must be a table"),
    ],
)
def test_damage(old, new, problem):
    assert old in MINE
    with pytest.raises(TreebankError) as caught:
        parse_preset(MINE.replace(old, new, 1), "mine", "mine.toml")
    assert problem in str(caught.value)
    assert str(caught.value).startswith("mine.toml")


@pytest.mark.parametrize("name", ["negra", "tiger"])
def test_punctuation_in_files_of_brackets(tsgkit, tmp_path, name):
    """The tag $( is $-LRB- in a file of brackets; there, too, it is no word for scores, and no head."""
    preset = load_preset(name)
    assert {"$(", "$-LRB-"} <= set(preset.punctuation)
    assert {"$(", "$-LRB-"} <= set(parameters_named(preset.parameters).delete_labels)
    tree = Tree("TOP", [Tree("S", [Tree("NE", ["a"]), Tree("VVFIN", ["b"])]), Tree("$(", ["("])])
    write_trees([tree], tmp_path / "t")
    done = tsgkit("eval", f"--treebank={name}", "t", "t")
    assert done.stdout.splitlines()[3].split()[:2] == ["1", "2"]


def test_no_such_preset(tmp_path):
    with pytest.raises(UsageError, match="treebank 'klingon': neither a file nor one of alpino, ancora, cess"):
        load_preset("klingon")
    (tmp_path / "a.toml").write_bytes(b"\xff")
    with pytest.raises(TreebankError, match="not UTF-8"):
        load_preset(tmp_path / "a.toml")


LABELS = {
    "cess": [
        ("tag", "vmis3s0 da0ms0 Fpa np0000l Z Zp -NONE-", "vmi da Fpa np Z Zp -NONE-"),
        ("phrase", "grup.nom.ms s.a.fs.x grup.nom.mp.1n sn.x.j sadv.j.1c-CC", "grup.nom s.a grup.nom sn sadv"),
        ("phrase", "S* S*.j S.F.C*-CD.Q S*.co S.F.C*.co-CD S.F.AComp*.j.1c", "S S S.F.C S.co S.F.C.co S.F.AComp"),
        (
            "phrase",
            "grup.a.ms.co s.a.mp.co-ATR S.co.j sn.co.1n-SUJ.p S.NF.P.j.co",
            "grup.a.co s.a.co S.co sn.co S.NF.P.co",
        ),
        (
            "phrase",
            "sn-CPRED.SUJ S.NF.C-.NFn grup.verb morf.pron conj.subord-ET",
            "sn S.NF.C grup.verb morf.pron conj.subord",
        ),
    ],
    "sinica": [
        ("tag", "Nab VH11 P21 DM PERIODCATEGORY -NONE-", "Na VH P DM PERIODCATEGORY -NONE-"),
        (
            "phrase",
            "Nab-goal VH11 NP-agent VP‧的-property 得‧VP Caa ADV NP[+theme] N",
            "Na VH NP VP‧的 得‧VP Ca ADV NP[+theme] N",
        ),
    ],
    "icepahc": [("tag", "CONJ-1 N-D VBDI OTHER+WPRO-2 -NONE-", "CONJ N-D VBDI OTHER+WPRO -NONE-")],
    "ctb": [("tag", "NR-PN NN-SHORT -NONE- VV", "NR NN -NONE- VV"), ("phrase", "NP-PN-SBJ WHNP-1", "NP WHNP")],
    "floresta": [("phrase", "STA+fcl SUBJ+np", "fcl np"), ("tag", "H+n P<+prop {", "n prop -LRB-")],
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_of_a_preset(name):
    """What they become, and that cleaning a clean tree changes nothing."""
    cleaning = load_preset(name).cleaning
    for kind, old, new in LABELS[name]:
        found = []
        for label in old.split():
            wrapped = Tree(label, ["w"]) if kind == "tag" else Tree(label, [Tree("A", ["w"])])
            clean = replace(cleaning, empty_tags=(), root="").apply(Tree("X", [wrapped, Tree("A", ["w"])]))
            assert replace(cleaning, empty_tags=(), root="").apply(clean) == clean
            found.append(clean[0].label())
        assert found == new.split()
