"""``tsgkit train --partial`` and ``--induce``: sentences whose trees are not known, from files to parses."""

import re

import pytest
from nltk.tree import Tree

from tsgkit._exit_codes import EXIT_USAGE
from tsgkit._tools import parse as parse_command
from tsgkit._tools import train as train_command
from tsgkit.models._model import Model
from tsgkit.treebank import load
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._trees import brackets_of

SHORT = ("--model=tsg", "--iterations=4", "--average=1", "--type-moves=0", "--seed=2", "--checkpoint-every=2")


@pytest.fixture
def run(capsys):
    def call(main, *arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def files(tmp_path):
    """A small treebank, and sentences with a bracket around every noun phrase or none."""
    trees = load("village", "train")
    (tmp_path / "known.mrg").write_text("".join(f"{format_tree(tree)}\n" for tree in trees[:60]), encoding="utf-8")
    partial = "(NP the old man) smiled .\n\nhe saw the dog .\n(FOO the old) man smiled .\n(VP (MD will) smile) .\n"
    (tmp_path / "partial.txt").write_text(partial, encoding="utf-8")
    return tmp_path


def test_partial_trees_are_learned_from(run, files):
    command = (*SHORT, f"--partial={files / 'partial.txt'}", "-o", files / "m.model", files / "known.mrg")
    code, _, error = run(train_command.main, *command)
    assert code == 0, error
    assert re.search(r"1 sentences without trees are left out, the first is number 3", error)
    assert "63 trees" in error
    model = Model.load(files / "m.model")
    assert model.info["open_trees"] == 3
    trees = [model.preparation.decode(tree) for tree in model.corpus.trees()][60:]
    assert next(" ".join(tree.leaves()) for tree in trees) == "the old man smiled ."
    assert ("NP", 0, 3) in brackets_of(trees[0])
    assert {("VP", 0, 2), ("MD", 0, 1)} <= set(brackets_of(trees[2]))
    content = (files / "m.model").read_bytes()
    code, _, _ = run(train_command.main, *command[:-3], "--threads=2", "-o", files / "n.model", files / "known.mrg")
    assert code == 0
    assert (files / "n.model").read_bytes() == content


def test_labels_are_induced_from_tags(run, files):
    (files / "tags").write_text("DT NN VBD\nDT JJ NN VBD RB\n( DT NN ) VBD\n" * 5, encoding="utf-8")
    code, _, error = run(train_command.main, *SHORT, "--induce=2", "-o", files / "i.model", files / "tags")
    assert code == 0, error
    assert "no trees" not in error  # none were asked for
    (files / "input").write_text("DT NN VBD RB\n", encoding="utf-8")
    code, _, error = run(parse_command.main, "-i", files / "input", "-o", files / "output", files / "i.model")
    assert code == 0, error
    tree = Tree.fromstring((files / "output").read_text())
    assert tree.leaves() == ["DT", "NN", "VBD", "RB"]
    assert tree.label() == "TOP"
    assert {node.label() for node in tree.subtrees()} <= {"TOP", "X1", "X2", "DT", "NN", "VBD", "RB"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--model=srtsg", "--partial=partial.txt"), "--partial: a srtsg needs a tree for every sentence"),
        (("--model=tsg", "--partial=partial.txt", "--induce=2"), "do not go together"),
        (("--model=tsg", "--partial=partial.txt", "--time=1"), "--partial and --time do not go together"),
        (("--model=tsg", "--partial=partial.txt", "--raw=partial.txt"), "--partial and --raw do not go together"),
        (("--model=tsg", "--induce=0"), "--induce"),
    ],
)
def test_what_does_not_go_together_is_refused(run, files, monkeypatch, options, problem):
    monkeypatch.chdir(files)
    code, _, error = run(train_command.main, *options, "-o", "x.model", "known.mrg")
    assert code == EXIT_USAGE
    assert problem in error
    assert not (files / "x.model").exists()


def test_bad_brackets_name_file_line_and_column(run, files):
    (files / "bad.txt").write_text("the man .\nthe (NP old man .\n", encoding="utf-8")
    command = (*SHORT, f"--partial={files / 'bad.txt'}", "-o", files / "m.model", files / "known.mrg")
    code, _, error = run(train_command.main, *command)
    assert code == EXIT_USAGE
    assert "bad.txt:2:5: a bracket is not closed" in error
