"""Pictures: nothing overlaps, nothing is lost, nothing in the data is taken for markup."""

import io
import itertools
import re
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tree import Tree

from tsgkit.drawing import Drawing
from tsgkit.drawing._colours import HUES, assign_colours
from tsgkit.drawing._svg import node_width
from tsgkit.drawing._terminal import columns, outline, wants_colour
from tsgkit.drawing._trees import confidences, lay_out
from tsgkit.treebank._fragments import read_fragment

SVG = "{http://www.w3.org/2000/svg}"
NASTY = "<script>alert(1)</script>&\"'"
TREE = Tree.fromstring("(S (NP (DT the) (JJ old) (NN man)) (VP (VBD saw) (NP (PRP me))) (. .))")
TEXTS = st.text(min_size=1, max_size=12)


def texts_of(svg):
    """The text of every node of a picture."""
    root = ElementTree.fromstring(svg)
    groups = [group for group in root.iter(f"{SVG}g") if "data-node" in group.attrib]
    return ["".join(group.findall(f"{SVG}text")[-1].itertext()) for group in groups]


def test_svg_has_every_node():
    drawing = Drawing.of_tree(TREE)
    assert texts_of(drawing.svg()) == [node.text for node in drawing.nodes]
    root = ElementTree.fromstring(drawing.svg())
    assert len(root.findall(f"{SVG}line")) == len(drawing.nodes) - 1
    assert root.get("aria-label") == "tree of: the old man saw me ."


@settings(max_examples=60, deadline=None)
@given(label=TEXTS, word=TEXTS)
def test_any_text_gives_xml_and_no_markup(label, word):
    drawing = Drawing.of_tree(Tree(label, [Tree(label, [word])]))
    drawing.nodes[0].note = drawing.nodes[0].value = word
    svg = drawing.svg()
    ElementTree.fromstring(svg)
    assert set(re.findall(r"<(\w+)", svg)) <= {"svg", "style", "rect", "g", "title", "text", "tspan", "line"}
    groups = re.sub(r"\\[{}]", "", drawing.latex())
    assert groups.count("{") == groups.count("}")
    assert len(drawing.text().splitlines()) == 4


def test_markup_in_the_data_is_text():
    drawing = Drawing.of_tree(Tree(NASTY, [Tree(NASTY, [NASTY])]))
    svg = drawing.svg()
    assert "<script" not in svg
    assert texts_of(svg) == [NASTY] * 3
    assert ElementTree.fromstring(svg).get("aria-label") == f"tree of: {NASTY}"


@given(
    st.recursive(TEXTS, lambda below: st.builds(Tree, TEXTS, st.lists(below, min_size=1, max_size=4)), max_leaves=20)
)
@settings(max_examples=60, deadline=None)
def test_nothing_overlaps(tree):
    drawing = Drawing.of_tree(tree if isinstance(tree, Tree) else Tree("X", [tree]))
    layout = lay_out(drawing, node_width, 5.0)
    depth = []
    rows = {}
    for number, node in enumerate(drawing.nodes):
        depth.append(0 if node.parent < 0 else depth[node.parent] + 1)
        half = node_width(node) / 2
        rows.setdefault(depth[number], []).append((layout.x[number] - half, layout.x[number] + half))
    for row in rows.values():
        assert row[0][0] > -1e-6
        assert row[-1][1] < layout.width + 1e-6
        assert all(left[1] <= right[0] + 1e-6 for left, right in itertools.pairwise(row))


def test_deep_trees_are_drawn():
    deep = Tree("N", ["x"])
    for _ in range(3000):
        deep = Tree("X", [deep])
    drawing = Drawing.of_tree(deep)
    assert len(drawing.nodes) == 3002
    assert drawing.svg().count("<g ") == 3002
    assert drawing.latex().count("[{") == 3002
    assert len(drawing.text().splitlines()) == 2 * 3000 + 2


def test_terminal():
    text = Drawing.of_tree(TREE).text()
    assert text.splitlines() == [
        "                S",
        "      ┌─────────┴──┬─────┐",
        "     NP           VP     .",
        " ┌────┼────┐    ┌──┴─┐   .",
        "DT   JJ   NN   VBD  NP",
        "the  old  man  saw   │",
        "                    PRP",
        "                    me",
    ]
    narrow = Drawing.of_tree(TREE).text(width=20)
    assert narrow == outline(Drawing.of_tree(TREE))
    assert "│  ├─ DT the\n" in narrow


def test_terminal_with_wide_and_dangerous_characters():
    drawing = Drawing.of_tree(Tree("S", [Tree("名詞", ["日本"]), Tree("X", ["a\x1b[2Jb"])]))
    text = drawing.text()
    assert "\x1b" not in text
    assert "日本" in text
    assert columns("日本") == 4
    lines = text.splitlines()
    assert columns(lines[-1]) == columns("日本") + 2 + columns("a\ufffd[2Jb")


def test_colour_in_terminals(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_colour(Terminal())
    assert not wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())


def test_fragments_next_to_each_other_differ_in_colour():
    parents = [-1, *range(40), *([3] * 40)]
    colours = assign_colours(parents)
    assert all(parent < 0 or colours[parent] != own for parent, own in zip(parents, colours, strict=True))
    assert set(colours) == set(range(len(HUES)))


def test_fragments_are_drawn_with_open_nodes_and_foot():
    drawing = Drawing.of_fragment(read_fragment("(NP-01 (JJ pretty) (NP* ))"), refined={"NP-01": ("NP", "01")})
    assert [(node.text, node.role, node.is_dashed) for node in drawing.nodes] == [
        ("NP", "", False),
        ("JJ", "", False),
        ("pretty", "", False),
        ("NP", "foot", True),
    ]
    assert (drawing.nodes[0].small, drawing.nodes[0].is_subcategory) == ("01", True)
    assert texts_of(drawing.svg()) == ["NP01", "JJ", "pretty", "NP*"]
    opened = Drawing.of_fragment(read_fragment("(S (NP ) (VP ))"))
    assert [node.role for node in opened.nodes] == ["", "open", "open"]
    assert "NP↓" in opened.text()
    assert "$\\downarrow$" in opened.latex()


def test_latex_is_balanced_and_escaped():
    latex = Drawing.of_tree(Tree("A_1", [Tree("B|^", ["50%{}[]"])])).latex()
    assert r"[{A\_1}" in latex
    assert r"{50\%\{\}[]}" in latex
    body = latex[latex.index("\\begin{forest}") :]
    assert body.rstrip().endswith("\\end{forest}")


def test_confidences():
    tree = Tree.fromstring("(S (NP (PRP I)) (VP (VBD ran)))")
    values = {("S", 0, 2): 1.0, ("NP", 0, 1): 0.934, ("PRP", 0, 1): 1.0, ("VP", 1, 2): 0.5}
    assert confidences(tree, values) == ["1", ".93", "", ".50", ""]
    assert confidences(tree, {}) == [""] * 5
