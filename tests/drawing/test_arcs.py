"""Dependencies as arcs."""

import itertools
import re
from xml.etree import ElementTree

import pytest

import tsgkit
from tsgkit.drawing._arcs import ArcDrawing
from tsgkit.errors import UsageError
from tsgkit.treebank._dependencies import Dependency

TREE = "(S (NP (DT the) (JJ old) (NN <man>)) (VP (VBD smiled)))"


def test_arcs_lie_above_those_that_they_contain():
    drawing = tsgkit.draw(TREE, heads="penn")
    assert [each.head for each in drawing.dependencies] == [3, 3, 4, 0]
    assert drawing.heights() == [2, 1, 1, 0]


def test_svg_is_well_formed_and_escaped():
    svg = tsgkit.draw(TREE, heads="penn").svg()
    root = ElementTree.fromstring(svg)
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert texts.count("<man>") == 1
    # An arrow for every word.
    assert sum(element.tag.endswith("path") for element in root.iter()) == 4
    assert ElementTree.fromstring(ArcDrawing([]).svg()) is not None


def lines_of(path):
    """The straight lines of a path, without its corners: ``(x1, y1, x2, y2)``, the smaller ones first."""
    points = []
    for command, numbers in re.findall(r"([MLC])([^MLC]*)", path):
        values = list(map(float, numbers.split()))
        points.append((command, *values[-2:]))
    for (_, x1, y1), (command, x2, y2) in itertools.pairwise(points):
        if command == "L" and (x1 == x2 or y1 == y2):
            yield min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)


def test_arcs_of_trees_do_not_touch():
    """Dependencies of a tree do not cross, and their arcs have no point in common."""
    for tree in tsgkit.read_trees("village:dev")[:20]:
        svg = tsgkit.draw(tsgkit.Cleaning().apply(tree), heads="penn").svg()
        paths = [e.attrib["d"] for e in ElementTree.fromstring(svg).iter() if e.tag.endswith("path")]
        arcs = [list(lines_of(path)) for path in paths]
        assert all(arcs)
        for one, other in itertools.combinations(arcs, 2):
            for (a, b, c, d), (e, f, g, h) in itertools.product(one, other):
                assert c < e or g < a or d < f or h < b


def test_text_and_latex():
    drawing = ArcDrawing([Dependency("I", "PRP", 2, "NP"), Dependency("50%", "NN", 0, "root")])
    assert str(drawing).splitlines() == ["1  I    PRP  2  NP", "2  50%  NN   0  root"]
    assert "\\depedge{2}{1}{NP}" in drawing.latex()
    assert "50\\%" in drawing.latex()
    assert repr(drawing) == "<ArcDrawing of 2 words>"
    assert drawing._repr_svg_().startswith("<svg")


@pytest.mark.parametrize(
    ("suffix", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("tex", b"\\begin"), ("txt", b"1")]
)
def test_command(tsgkit, tmp_path, suffix, start):
    tsgkit("draw", "--dependencies", "--number=2", "village:dev", "-o", f"arcs.{suffix}")
    assert (tmp_path / f"arcs.{suffix}").read_bytes().startswith(start)


def test_traces_are_no_words():
    tree = "(S (NP-SBJ (-NONE- *)) (VP (VB go) (ADVP-DIR (RB home))))"
    assert str(tsgkit.draw(tree, heads="penn")).splitlines() == ["1  go    VB  0  root", "2  home  RB  1  DIR"]
    assert not tsgkit.draw("(S (-NONE- *))", heads="penn").dependencies


def test_labels_are_cleaned_as_the_preset_says(tsgkit, tmp_path):
    tree = "(S (sn-SUJ (espec.ms (da0ms0 el el)) (grup.nom.ms (ncms000 grupo grupo))) (grup.verb (vmis3s0 dijo decir)))"
    (tmp_path / "one.tbf").write_text(tree)
    text = tsgkit("draw", "--dependencies", "--treebank=cess", "one.tbf").stdout
    assert text == "1  el     da   2  espec\n2  grupo  nc   3  SUJ\n3  dijo   vmi  0  root\n"


def test_arcs_are_not_derivations():
    with pytest.raises(UsageError, match="not both"):
        tsgkit.draw(TREE, model="m", heads="penn")
