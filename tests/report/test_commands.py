"""``tsgkit draw`` and ``tsgkit compare`` as users run them, and pictures in notebooks."""

import re
from xml.etree import ElementTree

import pytest
from nltk.tree import Tree
from report.conftest import KINDS

from tsgkit._tools import compare as compare_command
from tsgkit._tools import draw as draw_command
from tsgkit.parsing import Parser
from tsgkit.treebank import Cleaning, load
from tsgkit.treebank._brackets import format_tree

pytestmark = pytest.mark.xdist_group("pictures")

NASTY = "<script>alert(1)</script>"
DEV = [Cleaning().apply(tree) for tree in load("village", "dev")]


@pytest.fixture
def run(capsys):
    """Run a command in this process; returns stdout, or stderr if it fails."""

    def call(command, *arguments, code=0):
        assert command.main([*map(str, arguments)]) == code
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return captured.err if code else captured.out

    return call


@pytest.fixture
def bank(tmp_path):
    def write(trees, name="trees.mrg"):
        path = tmp_path / name
        path.write_text("".join(f"{format_tree(tree) if tree else ''}\n" for tree in trees), encoding="utf-8")
        return path

    return write


# ---- draw ------------------------------------------------------------------------------------------------


def test_draw_text(run, bank):
    path = bank(DEV[:3])
    blocks = run(draw_command, path).split("\n\n")
    assert len(blocks) == 3
    for tree, block in zip(DEV, blocks, strict=False):
        for word in tree.leaves():
            assert word in block
        assert block.split()[0] == "TOP"
    assert "\x1b" not in "".join(blocks)
    assert run(draw_command, "--number=2", path) == blocks[1] + "\n"
    assert run(draw_command, "--first=1", path) == blocks[0] + "\n"
    assert "├─" in run(draw_command, "--first=1", "--width=10", path)


def test_draw_reads_standard_input(tsgkit):
    done = tsgkit("draw", text="( (S (NP (PRP I)) (VP (VBD ran))) )\n")
    assert done.stdout.splitlines()[0].strip() == "S"


@pytest.mark.parametrize("kind", KINDS)
def test_draw_derivations(run, paths, kind):
    plain = run(draw_command, f"--model={paths[kind]}", "--first=3", "village:train")
    assert "•" in plain
    assert "\x1b" not in plain
    colourful = run(draw_command, f"--model={paths[kind]}", "--first=3", "--colour=always", "village:train")
    assert re.sub(r"\x1b\[\d+m", "", colourful) == plain
    assert len(set(re.findall(r"\x1b\[(\d+)m", colourful))) > 4
    assert (run(draw_command, "village:train", "--colour=always", "--first=3").count("\x1b")) == 0


def test_draw_formats(run, paths, bank, tmp_path):
    model = f"--model={paths['tsg']}"
    svg = run(draw_command, model, "--format=svg", "--number=3", "village:train")
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    output = tmp_path / "page.html"
    assert run(draw_command, "--format=html", "-o", output, bank([Tree("S", [Tree(NASTY, [NASTY])]), DEV[0]])) == ""
    page = output.read_text("utf-8")
    assert page.count("<svg") == 2
    assert "<script" not in page
    assert "Content-Security-Policy" in page
    starts = {"svg": b"<svg", "html": b"<!doctype", "tex": b"%", "txt": b" ", "png": b"\x89PNG", "pdf": b"%PDF"}
    for suffix, start in starts.items():
        path = tmp_path / f"tree.{suffix}"
        assert run(draw_command, model, "--number=1", "-o", str(path), "village:train") == ""
        assert path.read_bytes().startswith(start)
    latex = run(draw_command, model, "--format=latex", "--first=2", "village:train")
    assert latex.count("\\begin{forest}") == 2


def test_draw_mistakes(run, paths, bank):
    path = bank(DEV[:2])
    assert "--number" in run(draw_command, "--format=svg", path, code=2)
    assert "out of range, there are fewer trees" in run(draw_command, "--number=3", path, code=2)
    assert "do not go together" in run(draw_command, "--number=1", "--first=1", path, code=2)
    assert "--format=png: name a file" in run(draw_command, "--format=png", "--number=1", path, code=2)
    assert "--format=gif" in run(draw_command, "--format=gif", path, code=2)
    bad = bank([DEV[0], Tree("TOP", [Tree("NOPE", ["x"])])], "bad.mrg")
    message = run(draw_command, f"--model={paths['tsg']}", bad, code=2)
    assert "tree " in message
    assert "no-such.mrg" in run(draw_command, "no-such.mrg", code=2)
    assert "--heads goes with --dependencies" in run(draw_command, "--heads=penn", path, code=2)
    assert "--width goes with --format=text" in run(draw_command, "--width=30", "-o", "t.html", path, code=2)


# ---- compare ---------------------------------------------------------------------------------------------


def flat(tree):
    return Tree("TOP", [Tree(tree[0].label(), [Tree(tag, [word]) for word, tag in tree.pos()])])


def test_compare(run, bank):
    gold = bank(DEV[:5], "gold")
    first = bank([flat(tree) if number == 3 else tree for number, tree in enumerate(DEV[:5])], "a")
    second = bank([None if number == 1 else tree for number, tree in enumerate(DEV[:5])], "b")
    text = run(compare_command, gold, first, second)
    assert text.splitlines()[0].startswith(f"A = {first}: aligned F1 ")
    assert "5 sentences: A better on 1, B on 1, the same brackets on 3" in text
    assert re.findall(r"^(\d+): A", text, re.MULTILINE) == ["2", "4"]
    assert "(no tree over these words)" in text
    assert "only B found" in text
    only = run(compare_command, "--better=B", "--no-trees", "--top=1", gold, first, second)
    assert re.findall(r"^(\d+): A", only, re.MULTILINE) == ["4"]
    assert "└─" not in only
    same = run(compare_command, gold, gold, gold)
    assert "the same brackets on 5" in same


def test_compare_as_a_page(run, bank, tmp_path):
    tree = Tree("TOP", [Tree("S", [Tree("NP", [Tree("NN", [NASTY])]), Tree("VP", [Tree("VB", ["ran"])])])])
    wrong = Tree("TOP", [Tree("S", [Tree("XP", [Tree("NN", [NASTY])]), Tree("VP", [Tree("VB", ["ran"])])])])
    gold, first, second = bank([tree], "gold"), bank([tree], "a"), bank([wrong], "b")
    output = tmp_path / "compare.html"
    assert run(compare_command, f"--html={output}", gold, first, second) == ""
    page = output.read_text("utf-8")
    assert "<script" not in page
    assert page.count("<svg") == 3
    assert "Only A found</span>: NP &lt;script&gt;" in page
    assert "XP<tspan" in page


def test_compare_mistakes(run, bank):
    gold, short = bank(DEV[:2], "gold"), bank(DEV[:1], "short")
    assert "1 trees, but 2 in" in run(compare_command, gold, short, gold, code=2)
    assert "only one of the files" in run(compare_command, gold, "-", "-", code=2)
    assert "--top=0" in run(compare_command, "--top=0", gold, gold, gold, code=2)


# ---- notebooks -------------------------------------------------------------------------------------------


def test_parses_are_pictures_in_notebooks(models):
    parse = Parser(models["tsg"]).analyse(["The", "old", "man", "smiled", "."], confidence=True)
    svg = parse._repr_svg_()
    ElementTree.fromstring(svg)
    assert "smiled" in svg
    assert svg.count('class="small"') > 2
    empty = Parser(models["tsg"]).analyse([])
    ElementTree.fromstring(empty._repr_svg_())
