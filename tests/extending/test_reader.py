"""A reader of another package: one file, used by all commands."""

import doctest

import pytest
from extending.plugins import install_example, load_example

from tsgkit.errors import TreebankError, UsageError
from tsgkit.treebank import Cleaning, load
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._trees import is_preterminal, preorder, words
from tsgkit.treebank.formats import ReadOptions

example = load_example("reader")


def rows(tree):
    """A tree as column brackets, the slow and obvious way."""
    text = format_tree(tree)
    found = []
    for word, tag in ((node[0], node.label()) for node in preorder(tree) if is_preterminal(node)):
        before, _, text = text.partition(f"({tag} {word})")
        if found:
            found[-1][2] += before.strip().partition("(")[0].replace(" ", "")
        begins = before[before.index("(") :].replace(" ", "") if "(" in before else ""
        found.append([word, tag, f"{begins}*"])
    found[-1][2] += text.strip()
    return found


def file_of(trees):
    sentences = ("".join("  ".join(row) + "\n" for row in rows(tree)) + "\n" for tree in trees)
    return "#begin document\n\n" + "".join(sentences) + "#end document\n"


def read(lines, **options):
    return list(example.read_columns(lines, "t.conll", ReadOptions(named={**example.READER.named_options}, **options)))


def test_examples_in_docstrings():
    assert doctest.testmod(example).attempted == 4
    assert doctest.testmod(example).failed == 0


def test_trees_come_back():
    trees = [Cleaning().apply(tree) for tree in load("village", "dev")]
    assert [format_tree(tree) for tree in read(file_of(trees).splitlines())] == [format_tree(tree) for tree in trees]


@pytest.mark.parametrize(
    ("lines", "line", "problem"),
    [
        (["a N (S*)", "", "b N"], 3, "the line has 2 columns, column 3 is needed"),
        (["a N (S*", "b N x)"], 2, r"'x\)' does not continue the tree"),
        (["a N *"], 1, r"'\*' does not continue the tree"),
        (["a N (S*)", "b N *"], 2, r"'\*' does not continue the tree"),
        (["a N (S*)", "b N (S*)"], 2, r"'\(S\*\)' does not continue the tree"),
        (["# x", "a N (S*))"], 2, "closes more nodes than are open"),
        (["", "a N (S(NP*", "b N *)"], 2, "the tree lacks 1 closing brackets"),
    ],
)
def test_errors_have_their_place_and_can_be_skipped(lines, line, problem):
    with pytest.raises(TreebankError, match=rf"t\.conll:{line}: .*{problem}"):
        read(lines)
    skipped = []
    trees = read([*lines, "", "c N (X*)"], skipped=skipped)
    assert format_tree(trees[-1]) == "(X (N c))"
    assert [error.line for error in skipped] == [line]


def test_columns_are_numbers():
    with pytest.raises(UsageError, match="a column is not a number"):
        list(example.read_columns([], "t", ReadOptions(named={"word": "x", "tag": "2", "brackets": "3"})))


def test_all_commands_read_the_format(tsgkit, tsgkit_process, tmp_path, monkeypatch):
    install_example(tmp_path, monkeypatch, "reader", "tsgkit.readers", "columns=READER")
    trees = [Cleaning().apply(tree) for tree in load("village", "train")]
    (tmp_path / "train.conll").write_text(file_of(trees), encoding="utf-8")
    expected = "".join(f"{format_tree(tree)}\n" for tree in trees)
    usage = " ".join(tsgkit_process("prepare", "--help").stdout.split())
    assert "or columns [default: auto]" in usage
    assert tsgkit("prepare", "--format=columns", "train.conll").stdout == expected
    assert tsgkit("prepare", "train.conll").stdout == expected  # recognised
    assert tsgkit("prepare", "-", text=file_of(trees)).stdout == expected
    swapped = "".join(f"{tag} {word} {brackets}\n" for word, tag, brackets in rows(trees[0]))
    done = tsgkit("prepare", "--format=columns:word=2,tag=1", "-", text=swapped)
    assert done.stdout == f"{format_tree(trees[0])}\n"
    stderr = tsgkit("prepare", "--format=columns:lemma=4", "-", code=2).stderr
    assert "no option 'lemma'; it has word, tag, brackets" in stderr
    tsgkit("train", "--quiet", "--model=cfg", "train.conll", "-o", "conll.model")
    tsgkit("train", "--quiet", "--model=cfg", "village:train", "-o", "brackets.model")
    sentence = " ".join(words(trees[3]))
    parses = [tsgkit("parse", "--quiet", f"{name}.model", text=sentence).stdout for name in ("conll", "brackets")]
    assert parses[0] == parses[1] != ""
