"""``tsgkit inspect`` as a user runs it."""

import json
import math
import re

import pytest
from nltk.tree import Tree

from tsgkit._tools import inspect as inspect_command
from tsgkit._tools import train as train_command
from tsgkit.inference.entry import fragments_of
from tsgkit.models._model import Model
from tsgkit.models._subcategories import SubcategoryTable
from tsgkit.parsing import Parser
from tsgkit.treebank import Cleaning, load
from tsgkit.treebank._fragments import canonical, format_fragment, n_rules, read_fragment
from tsgkit.treebank._prepare import with_words
from tsgkit.treebank._trees import preorder

TRAIN = load("village", "train")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("trained") / "m.npz"
    options = ["--model=tsg", "--iterations=20", "--average=3", "--average-every=3", "--quiet"]
    assert train_command.main([*options, f"--output={file}", "village:train"]) == 0
    return file


@pytest.fixture(scope="module")
def cfg_path(tmp_path_factory):
    file = tmp_path_factory.mktemp("trained") / "cfg.npz"
    assert train_command.main(["--quiet", "--model=cfg", f"--output={file}", "village:train"]) == 0
    return file


@pytest.fixture
def inspect(path, capsys):
    """Inspect the model in this process; returns stdout, or stderr if it fails."""

    def call(*options, model=path, code=0):
        found = inspect_command.main([*map(str, options), str(model)])
        captured = capsys.readouterr()
        assert found == code, captured.err
        if code:
            assert captured.out == ""
            assert "Traceback" not in captured.err
            return captured.err
        if "--quiet" in options:
            assert captured.err == ""
        return captured.out

    return call


def rows(text):
    """Count, tables, size and brackets of every line but the heading."""
    heading, *lines = text.splitlines()
    assert heading.split() == ["count", "tables", "size", "fragment"]
    found = [re.fullmatch(r" *(\d+) +(\d+) +(\d+)  (.+)", line).groups() for line in lines]
    return [(int(count), int(tables), int(size), brackets) for count, tables, size, brackets in found]


def test_brackets(inspect, path):
    table = fragments_of(Model.load(path))
    lines = rows(inspect("--top=all", "--quiet"))
    assert {brackets: count for count, _, _, brackets in lines} == table.count_of
    assert all(canonical(brackets) == brackets and n_rules(brackets) == size for *_, size, brackets in lines)
    counts = [count for count, *_ in lines]
    assert counts == sorted(counts, reverse=True)
    assert rows(inspect()) == lines[:20]
    assert rows(inspect("--top=3")) == lines[:3]


def test_selection(inspect):
    lines = rows(inspect("--root=VP", "--min-size=3", "--sort=size", "--top=all"))
    assert lines
    assert all(brackets.startswith("(VP ") and size >= 3 for *_, size, brackets in lines)
    assert [size for *_, size, _ in lines] == sorted((size for *_, size, _ in lines), reverse=True)
    lines = rows(inspect("--contains=the", "--min-count=2", "--sort=root", "--top=all"))
    assert len(lines) > 1
    assert all(" the)" in brackets and count >= 2 for count, *_, brackets in lines)
    roots = [brackets[1 : brackets.index(" ")] for *_, brackets in lines]
    assert roots == sorted(roots)


def test_json(inspect):
    values = json.loads(inspect("--format=json", "--top=5", "--examples"))
    lines = rows(inspect("--top=5"))
    assert [(v["count"], v["tables"], v["size"], v["fragment"]) for v in values] == lines
    for value in values:
        tree = read_fragment(value["fragment"])
        assert (value["root"], value["words"]) == (tree.label(), tree.leaves() if n_words(tree) else [])
        example = value["example"]
        assert 0 <= example["start"] < example["end"] <= len(example["words"])
        assert TRAIN[example["tree"]].leaves()[0] == example["words"][0]
    assert "example" not in json.loads(inspect("--format=json", "--top=1"))[0]
    assert json.loads(inspect("--format=json", "--contains=no-such-thing")) == []


def n_words(tree):
    return sum(not isinstance(child, Tree) for node in preorder(tree) for child in node)


def test_discodop(inspect):
    lines = inspect("--format=discodop", "--top=all").splitlines()
    pairs = [tuple(line.split("\t")) for line in lines]
    assert [(int(count), brackets) for brackets, count in pairs] == [
        (count, brackets) for count, *_, brackets in rows(inspect("--top=all"))
    ]


def test_examples(inspect):
    plain, lines = inspect("--top=10").splitlines(), inspect("--top=10", "--examples").splitlines()
    assert lines[:1] + lines[1::2] == plain
    sentences = {" ".join(Cleaning().apply(tree).leaves()) for tree in TRAIN}
    for line in lines[2::2]:
        assert re.fullmatch(r" {26}(?! ).*\[\S.*\].*", line)
        assert re.sub(r"[\[\]]", "", line).strip() in sentences


def test_sizes(inspect):
    every = rows(inspect("--top=all"))
    heading, *lines, last = inspect("--sizes").splitlines()
    assert heading.split() == ["size", "types", "tokens"]
    assert last.split() == ["all", str(len(every)), str(sum(count for count, *_ in every))]
    for line in lines:
        size, types, tokens, bar = line.split()
        of_size = [count for count, _, own, _ in every if own == int(size)]
        assert (len(of_size), sum(of_size)) == (int(types), int(tokens))
        assert set(bar) == {"#"}
    assert max(len(line.split()[-1]) for line in lines) == 40
    values = json.loads(inspect("--sizes", "--format=json"))
    assert [list(map(str, each.values())) for each in values] == [line.split()[:3] for line in lines]
    nothing = inspect("--sizes", "--contains=no-such-thing")
    assert nothing.split() == ["size", "types", "tokens", "all", "0", "0"]
    assert " 1 " not in inspect("--sizes", "--min-size=2").splitlines()[1][:7]


# ---- derivations -----------------------------------------------------------------------------------------


def assembled(steps):
    """The tree of fragments, each of which fills the first open node."""
    remaining = map(read_fragment, steps)
    top = next(remaining)
    for fragment in remaining:
        frontier = next(node for node in preorder(top) if not len(node))
        assert frontier.label() == fragment.label()
        frontier.extend(fragment)
    assert all(len(node) for node in preorder(top))
    return top


def test_derivations_make_their_trees(inspect, path, tmp_path):
    trees = TRAIN[::10]
    bank = tmp_path / "trees.mrg"
    bank.write_text("".join(f"{tree.pformat(margin=10**6)}\n" for tree in trees))
    model = Model.load(path)
    parser, counts = Parser(model), fragments_of(model).count_of
    values = json.loads(inspect(f"--derivation={bank}", "--format=json"))
    assert len(values) == len(trees)
    for tree, value in zip(trees, values, strict=True):
        fragments = [step["fragment"] for step in value["steps"]]
        encoded = model.preparation.encode(tree)
        symbols = model.preparation.vocabulary_words(encoded.leaves())
        assert value["words"] == encoded.leaves()
        assert assembled(fragments) == with_words(encoded, symbols)
        assert [step["count"] for step in value["steps"]] == [counts.get(each, 0) for each in fragments]
        # One derivation weighs at most as much as all of them together, and a sum of few not much less.
        total = parser.tree_log_probability(tree)
        assert total - 20 < value["log_probability"] < total + 1e-9
        assert (value["steps"][0]["depth"], value["steps"][0]["end"]) == (0, len(value["words"]))
    blocks = inspect(f"--derivation={bank}").rstrip("\n").split("\n\n")
    for value, block in zip(values, blocks, strict=True):
        expected = [f"{s['count']:>10}  {'  ' * s['depth']}{s['fragment']}" for s in value["steps"]]
        assert block.splitlines() == expected
    lines = inspect(f"--derivation={bank}", "--format=discodop").splitlines()
    steps = [step for value in values for step in value["steps"]]
    assert lines == [f"{step['fragment']}\t{step['count']}" for step in steps]


def test_depth_of_substitution(inspect, tmp_path):
    bank = tmp_path / "trees.mrg"
    bank.write_text(f"{TRAIN[2].pformat(margin=10**6)}\n")
    (value,) = json.loads(inspect(f"--derivation={bank}", "--format=json"))
    open_depths = []
    for step in value["steps"]:
        assert step["depth"] == (open_depths.pop() if open_depths else 0)
        frontiers = [node for node in preorder(read_fragment(step["fragment"])) if not len(node)]
        open_depths.extend([step["depth"] + 1] * len(frontiers))
    assert not open_depths
    assert len({step["depth"] for step in value["steps"]}) > 2


def test_most_derivations_are_those_of_the_sampler(inspect, path):
    """Fragments in use are the likelier ones, so few steps are outside of the sample."""
    values = json.loads(inspect("--derivation=village:train", "--format=json"))
    counts = [step["count"] for value in values for step in value["steps"]]
    assert (sum(count > 0 for count in counts), len(counts)) == (5147, 5615)
    assert all(math.isfinite(value["log_probability"]) for value in values)


def test_stdin_in_a_process(tsgkit, path):
    text = TRAIN[0].pformat(margin=10**6)
    done = tsgkit("inspect", "--derivation=-", path, text=f"( (S (-NONE- *)))\n{text}\n")
    assert re.match(r" +\d+  \(TOP \(", done.stdout)
    assert done.stderr == "tsgkit: -: left out 1 tree without words\n"


def test_no_trees(inspect, tmp_path):
    (tmp_path / "empty").write_text("")
    assert inspect(f"--derivation={tmp_path / 'empty'}") == ""
    assert json.loads(inspect(f"--derivation={tmp_path / 'empty'}", "--format=json")) == []


def test_trees_that_the_model_cannot_make(inspect, tmp_path):
    bank = tmp_path / "trees.mrg"
    good = TRAIN[0].pformat(margin=10**6)
    for bad, problem in (
        ("(S (NP (DT the)) (CC and))", "the grammar has no rule S -> NP CC"),
        ("(S (NOPE the))", "the grammar has no label NOPE"),
        ("(S (VP (VBD the)))", "the grammar has no rule VBD -> the"),
    ):
        bank.write_text(f"{good}\n{bad}\n")
        error = inspect(f"--derivation={bank}", code=2)
        assert f"{bank}: the model cannot make tree 2: {problem}" in error
    bank.write_text("(S (NP\n")
    assert f"{bank}:1:1: unbalanced" in inspect(f"--derivation={bank}", code=2)
    assert "no-such-file" in inspect("--derivation=no-such-file", code=2)


# ---- CFG models, remarks, mistakes -----------------------------------------------------------------------


def test_truncated_grammars(inspect, tmp_path):
    options = ["--model=tsg", "--iterations=3", "--average=1", "--truncated", "--quiet"]
    path = tmp_path / "truncated.npz"
    assert train_command.main([*options, f"--output={path}", "village:dev"]) == 0
    values = json.loads(inspect("--derivation=village:dev", "--format=json", model=path))
    model = Model.load(path)
    for tree, value in zip(load("village", "dev"), values, strict=True):
        encoded = model.preparation.encode(tree)
        symbols = model.preparation.vocabulary_words(encoded.leaves())
        assert assembled([step["fragment"] for step in value["steps"]]) == with_words(encoded, symbols)


def test_cfg(inspect, cfg_path, tmp_path):
    heading, *lines = inspect("--root=PP", "--min-count=0.1", "--top=all", model=cfg_path).splitlines()
    assert heading.split() == ["weight", "size", "fragment"]
    assert lines
    for line in lines:
        weight, size, *_ = line.split()
        assert float(weight) >= 0.1
        assert (size, line.split("  ")[-1][:4]) == ("1", "(PP^")
    value = json.loads(inspect("--format=json", "--top=1", model=cfg_path))[0]
    assert sorted(value) == ["fragment", "root", "size", "weight", "words"]
    assert inspect("--sizes", model=cfg_path).splitlines()[1].split()[0] == "1"
    bank = tmp_path / "trees.mrg"
    bank.write_text(f"{TRAIN[0].pformat(margin=10**6)}\n")
    (value,) = json.loads(inspect(f"--derivation={bank}", "--format=json", model=cfg_path))
    assert all(n_rules(step["fragment"]) == 1 for step in value["steps"])
    product = sum(math.log(step["weight"]) for step in value["steps"])
    assert math.isclose(value["log_probability"], product)
    assert "does not keep its training trees" in inspect("--examples", model=cfg_path, code=2)


def test_remarks(path, capsys):
    assert inspect_command.main(["--top=2", str(path)]) == 0
    assert re.search(r"m.npz: 2 of \d+ fragments\n", capsys.readouterr().err)
    assert inspect_command.main(["--contains=xylophone", str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.out.split() == ["count", "tables", "size", "fragment"]
    assert re.search(r"as a word, xylophone is rare or new, and the model knows it as UNK", captured.err)
    assert inspect_command.main(["--min-count=1e9", str(path)]) == 0
    assert "no fragment fits\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sort=best"], "--sort=best: must be one of count, size, root"),
        (["--format=xml"], "--format=xml: must be one of brackets, json, discodop"),
        (["--top=0"], "--top=0: must be at least 1"),
        (["--top=many"], "--top=many: not a whole number"),
        (["--min-count=x"], "--min-count=x: not a number"),
        (["--min-size=0"], "--min-size=0: must be at least 1"),
        (["--sizes", "--derivation=-"], "--sizes and --derivation do not go together"),
        (["--root=NP", "--derivation=-"], "--root and --derivation do not go together"),
        (["--examples", "--derivation=-"], "--examples and --derivation do not go together"),
        (["--sizes", "--examples"], "--sizes and --examples do not go together"),
        (["--sizes", "--format=discodop"], "--sizes: disco-dop's format"),
        (["--examples", "--format=discodop"], "--examples: disco-dop's format"),
        (["--no-such-option"], "Usage:"),
    ],
)
def test_wrong_options(inspect, options, message):
    assert message in inspect(*options, code=2)


def test_files_that_are_no_models(inspect, tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    assert "not a whole tsgkit file" in inspect(model=tmp_path / "empty", code=2)
    assert "No such file" in inspect(model=tmp_path / "none", code=2)


def test_fragments_can_be_read_again(inspect):
    for line in inspect("--format=discodop", "--sort=size").splitlines():
        brackets = line.split("\t")[0]
        assert format_fragment(read_fragment(brackets)) == brackets


# ---- subcategories ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def refined_path(tmp_path_factory):
    file = tmp_path_factory.mktemp("trained") / "refined.model"
    options = ["--model=srtsg", "--splits=2", "--split-iterations=5", "--joint-iterations=3", "--average=1", "--quiet"]
    assert train_command.main([*options, f"--output={file}", "village:dev"]) == 0
    return file


def test_subcategories_of_a_label(inspect, refined_path):
    listed = json.loads(inspect("--subcategories=all", "--format=json", "--top=all", model=refined_path))
    n_of = {value["label"]: value["subcategories"] for value in listed}
    found = json.loads(inspect("--subcategories=NP", "--format=json", "--top=2", model=refined_path))
    assert len(found) == n_of["NP"] > 1
    assert sum(value["count"] for value in found) == next(value["count"] for value in listed if value["label"] == "NP")
    assert all(value["name"].startswith("NP-") and len(value["rules"]) <= 2 for value in found)
    text = inspect("--subcategories=NP", model=refined_path)
    assert [line.split()[0] for line in text.splitlines() if not line.startswith(" ")] == [
        value["name"] for value in found
    ]
    hierarchy = inspect("--hierarchy=NP", model=refined_path).splitlines()
    assert hierarchy[0].split()[1] == "NP"
    assert len(hierarchy) > len(found)


def test_fragments_of_a_refined_model(inspect, refined_path):
    found = json.loads(inspect("--format=json", "--top=all", "--quiet", model=refined_path))
    sites = Model.load(refined_path).state["sites"]
    assert sum(value["count"] for value in found) == sites.sum() < len(sites)
    assert any(re.search(r"\(NP-\d+ ", value["fragment"]) for value in found)


def test_derivations_with_subcategories(inspect, refined_path):
    """What is cut and joined again is the tree, with the symbols of the sample where fragments begin."""
    values = json.loads(inspect("--derivation=village:dev", "--format=json", model=refined_path))
    model = Model.load(refined_path)
    names = set(SubcategoryTable.of_model(model).names)
    counts = fragments_of(model).count_of
    for tree, value in zip(load("village", "dev"), values, strict=True):
        fragments = [step["fragment"] for step in value["steps"]]
        whole = assembled(fragments)
        assert {read_fragment(fragment).label() for fragment in fragments} <= names
        for node in preorder(whole):
            node.set_label(re.sub(r"(?<=.)-[01]+$", "", node.label()))
        encoded = model.preparation.encode(tree)
        assert whole == with_words(encoded, model.preparation.vocabulary_words(encoded.leaves()))
        assert [step["count"] for step in value["steps"]] == [counts.get(each, 0) for each in fragments]
    all_counts = [step["count"] for value in values for step in value["steps"]]
    assert (sum(count > 0 for count in all_counts), len(all_counts)) == (1415, 1433)


def test_subcategories_that_are_not_there(inspect, refined_path):
    assert "a tsg model has no subcategories" in inspect("--subcategories=NP", code=2)
    assert "no such label" in inspect("--subcategories=XYZ", model=refined_path, code=2)
    assert "disco-dop" in inspect("--hierarchy=NP", "--format=discodop", model=refined_path, code=2)
