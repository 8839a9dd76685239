"""``tsgkit train --model=insertion`` and what is done with the model, as a user does it."""

import json
import re

import pytest

from tsgkit._tools import inspect as inspect_command
from tsgkit._tools import parse as parse_command
from tsgkit._tools import train as train_command
from tsgkit.inference._training import Training
from tsgkit.inference.entry import fragments_of
from tsgkit.models._model import Model
from tsgkit.parsing.objectives import OBJECTIVES
from tsgkit.treebank import Binarization
from tsgkit.treebank._fragments import canonical, read_fragment
from tsgkit.treebank.synthetic import assemble, generate

OPTIONS = ["--model=insertion", "--threshold=0", "--type-moves=200", "--seed=3", "--average-every=2", "--quiet"]


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    file = tmp_path_factory.mktemp("generated") / "trees.mrg"
    file.write_text("".join(f"{tree.pformat(margin=10**9)}\n" for tree in generate(300, seed=2)), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def path(treebank):
    file = treebank.with_name("m.npz")
    options = ["--iterations=40", "--average=3"]
    assert train_command.main([*OPTIONS, *options, f"--output={file}", str(treebank)]) == 0
    return file


@pytest.fixture
def run(capsys):
    def call(command, *options, code=0):
        assert command.main(list(map(str, options))) == code
        return capsys.readouterr()

    return call


def test_defaults_are_those_of_the_paper(path):
    model = Model.load(path)
    assert model.kind == "insertion"
    assert (model.preparation.binarization.method, model.preparation.binarization.horizontal) == ("centre-head", 0)
    assert model.preparation.lexicon.settings.model == "three"


def test_auxiliary_trees_are_listed(run, path):
    found = run(inspect_command, path, "--kind=auxiliary", "--examples", "--top=all")
    heading, *lines = found.out.splitlines()
    assert heading.split() == ["count", "tables", "size", "side", "fragment"]
    assert re.search(r"(\d+) of \1 fragments \(0 initial, \1 auxiliary\)", found.err)
    for line, example in zip(lines[::2], lines[1::2], strict=True):
        *_, side, brackets = re.fullmatch(r" *(\d+) +(\d+) +(\d+) +(\w+)  (.+)", line).groups()
        root = brackets[1 : brackets.index(" ")]
        assert re.search(rf" {re.escape(root)}\*\)$" if side == "left" else rf"^\(\S+ {re.escape(root)}\* ", brackets)
        assert re.fullmatch(r" +\S.*|.*\[.*\].*", example)
    values = json.loads(run(inspect_command, path, "--format=json", "--top=all").out)
    table = fragments_of(Model.load(path))
    assert {value["fragment"]: value["count"] for value in values} == table.count_of
    auxiliary = [value for value in values if "side" in value]
    assert len(auxiliary) == len(lines) // 2 == int(table.is_auxiliary[table.counts > 0].sum()) > 0
    assert all(canonical(value["fragment"]) == value["fragment"] for value in auxiliary)
    initial = json.loads(run(inspect_command, path, "--format=json", "--top=all", "--kind=initial").out)
    assert len(initial) + len(auxiliary) == len(values)
    lexicalised = json.loads(run(inspect_command, path, "--format=json", "--top=all", "--lexicalised").out)
    assert lexicalised == [value for value in values if value["words"]]
    assert "initial," in run(inspect_command, path, "--sizes").err


def test_derivations_show_what_was_inserted_where(run, path, treebank):
    trees = list(generate(60, seed=2))
    first = treebank.with_name("first.mrg")
    first.write_text("".join(treebank.read_text(encoding="utf-8").splitlines(keepends=True)[:60]), encoding="utf-8")
    values = json.loads(run(inspect_command, path, f"--derivation={first}", "--format=json").out)
    n_inserted = 0
    for tree, value in zip(trees, values, strict=True):
        steps = [step["marked"] for step in value["steps"]]
        binarized = Binarization("centre-head", 0).apply(tree)
        assert assemble(steps) == binarized.pformat(margin=10**9)
        n_inserted += sum(step["auxiliary"] for step in value["steps"])
        assert sum(step.count("+ ") for step in steps) == sum(step["auxiliary"] for step in value["steps"])
    assert n_inserted > 3
    text = run(inspect_command, path, f"--derivation={first}").out
    assert len(re.findall(r"^ +\d+ +\(.*\S\*[ )]", text, flags=re.MULTILINE)) == n_inserted


def test_all_objectives_parse(run, path, tmp_path):
    sentences = [" ".join(tree.leaves()) for tree in generate(5, seed=9)]
    source = tmp_path / "sentences.txt"
    source.write_text("\n".join(sentences) + "\n", encoding="utf-8")
    for objective in OBJECTIVES.names:
        out = tmp_path / f"{objective}.mrg"
        options = [f"--objective={objective}", f"--input={source}", f"--output={out}", "--samples=50", "--quiet"]
        run(parse_command, *options, path)
        trees = [read_fragment(line) for line in out.read_text(encoding="utf-8").splitlines()]
        assert [" ".join(tree.leaves()) for tree in trees] == sentences


def test_going_on_from_a_checkpoint(run, treebank, tmp_path):
    whole, parts = tmp_path / "whole.npz", tmp_path / "parts.npz"
    options = [*OPTIONS, "--iterations=12", "--average=4", "--checkpoint-every=5", "--stacked"]
    run(train_command, *options, f"--output={whole}", treebank)

    class Stop(Exception):
        pass

    def stop(self, iteration, original=Training.iterate):
        if iteration == 8:
            raise Stop
        return original(self, iteration)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Training, "iterate", stop)
        with pytest.raises(Stop):
            run(train_command, *options, f"--output={parts}", treebank)
    run(train_command, *options, "--resume", f"--output={parts}", treebank)
    assert whole.read_bytes() == parts.read_bytes()


def test_probability_0_is_the_plain_grammar(run, treebank, tmp_path):
    models = []
    for options in (
        ["--model=insertion", "--insertion-prob=0"],
        ["--model=tsg", "--binarize=centre-head", "--unknown=three"],
    ):
        file = tmp_path / f"{len(models)}.npz"
        run(train_command, *OPTIONS[1:], *options, "--iterations=5", "--average=1", f"--output={file}", treebank)
        models.append(Model.load(file))
    one, other = (model.grammar for model in models)
    for name in (
        "label",
        "binary",
        "binary_weight",
        "unary",
        "unary_weight",
        "bridge",
        "bridge_weight",
        "lexical_weight",
    ):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model=tsg", "--stacked"], "--stacked: the model tsg has no such setting"),
        (["--model=insertion", "--insertion-prob=1"], "--insertion-probability=1.0: must be at least 0 and below 1"),
        (["--model=insertion", "--insertion-cutoff=nan"], "--insertion-cutoff=nan: must be a number"),
    ],
)
def test_options_that_do_not_fit(run, treebank, tmp_path, options, message):
    assert re.search(message, run(train_command, *options, f"--output={tmp_path / 'm'}", treebank, code=2).err)
