"""Dependencies as arcs."""

from xml.etree import ElementTree

import pytest

import tsgkit
from tsgkit.drawing.arcs import ArcDrawing
from tsgkit.errors import UsageError
from tsgkit.treebank.dependencies import Dependency

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
    # An arrow for every word: its line and its tip.
    assert sum(element.tag.endswith("path") for element in root.iter()) == 8
    assert ElementTree.fromstring(ArcDrawing([]).svg()) is not None


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


def test_arcs_are_not_derivations():
    with pytest.raises(UsageError, match="not both"):
        tsgkit.draw(TREE, model="m", heads="penn")
