"""The experiments run at the smallest scale, keep what is done, and write their pages."""

import importlib
import json
import re

import pytest
from nltk.tree import Tree

from tsgkit.treebank import load, write_trees

NAMES = ("cohn2010", "shindo2011", "shindo2012", "headline")
JAVA = """#!/bin/sh
# Stands for java: "trains" empty grammars, and "parses" by repeating a tree.
while [ $# -gt 0 ]; do
  case $1 in -out) out=$2;; -inputFile) input=$2;; -outputFile) output=$2;; esac
  shift
done
if [ -n "$out" ]; then for n in 1 2 3 4; do : >"${out}_${n}_smoothing.gr"; done; exit; fi
sed 's/.*/(())/' "$input" >"$output"
"""


@pytest.fixture
def experiment(capsys, tmp_path):
    """Run an experiment on the bundled treebank, in a folder of its own; returns its output."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")

    def run(name, *arguments, code=0):
        module = importlib.import_module(f"tools.experiments.{name}")
        if not any(argument.startswith("--scale") for argument in arguments):
            arguments = ("--scale=smoke", *arguments)
        assert module.main(("--quiet", f"--folder={tmp_path}", *arguments)) == code
        captured = capsys.readouterr()
        assert bool(captured.err) == bool(code), captured.err
        return captured.err if code else captured.out

    return run


def table(text, first_cell):
    """The cells of the table whose head begins with `first_cell`, by rows."""
    block = re.search(rf"^   {first_cell}.*\n(?:   .+\n)*", text, flags=re.MULTILINE)
    return [re.split(r" {2,}", line.strip()) for line in block[0].splitlines()]


@pytest.mark.slow
def test_cohn2010(experiment, tmp_path):
    text = experiment("cohn2010", "--treebank=village")
    page = (tmp_path / "cohn2010.rst").read_text(encoding="utf-8")
    assert page.splitlines()[:3] == text.splitlines()[:3]
    record = json.loads((tmp_path / "cohn2010.json").read_text(encoding="utf-8"))
    assert re.findall(r"^.. recorded-table:: cohn2010 (.*)$", page, flags=re.MULTILINE) == list(record["tables"])
    assert record["runs"]["blocked-minimal-dp-1"]["job"]["settings"]["recipe"] == "cohn2010"
    assert [tuple(row) for row in record["tables"]["f1"]["rows"]] == [
        tuple(row) for row in table(text, "sampler +init")[1:]
    ]
    assert (tmp_path / "cohn2010-log-joint.svg").read_text(encoding="utf-8").startswith("<?xml")
    rows = table(text, "sampler +init +process +objective")[1:]
    assert len(rows) == 10
    assert rows[0][:4] == ["blocked", "minimal", "dp", "mer"]
    assert rows[0][-2:] == ["77.98", "78.40"]
    assert all(0 < float(cell) <= 100 for row in rows for cell in row[4:10])
    kept = json.loads((tmp_path / "local-maximal-dp-1.json").read_text(encoding="utf-8"))
    assert len(kept["history"]["log_joint"]) == 5
    # What is done is not done again: it would give other times.
    assert experiment("cohn2010", "--treebank=village") == text
    kept["job"]["seed"] = 5
    (tmp_path / "local-maximal-dp-1.json").write_text(json.dumps(kept), encoding="utf-8")
    assert "a run with other settings" in experiment("cohn2010", "--treebank=village", code=2)


@pytest.mark.slow
def test_shindo2011(experiment):
    text = experiment("shindo2011", "--treebank=village")
    rows = table(text, "grammar +mer F1")[1:]
    names = [
        "CFG",
        "TSG",
        "TSG + insertion",
        "TSG + stacked insertions",
        "TSG + insertion, type moves, mean of samples",
    ]
    assert [row[0] for row in rows] == names
    assert int(rows[1][8]) == 0 < int(rows[2][8])
    assert all("*" in row[0] for row in table(text, "auxiliary tree")[1:])


@pytest.mark.slow
def test_shindo2012(experiment, tmp_path):
    text = experiment("shindo2012", "--treebank=village", "--jobs=2", f"--page={tmp_path}/pages")
    assert (tmp_path / "pages" / "shindo2012-sizes.svg").exists()
    assert [row[0] for row in table(text, "grammar +runs")[1:4]] == ["CFG", "TSG", "SR-TSG, three levels"]
    assert [row[:2] for row in table(text, "models +product of")[1:]] == [["2", "trees"], ["2", "rules"]]
    names = [row[0] for row in table(text, "grammar +runs")[1:]]
    assert names[-3:] == ["recipe: P_sr-tsg, P_sr-cfg, P_ru-cfg", "recipe: P_sr-tsg, P_sr-cfg", "recipe: P_sr-tsg"]
    sizes = table(text, "size +TSG")[1:]
    types, uses = (sum(int(row[column]) for row in sizes) for column in (3, 4))
    assert 0 < types < uses
    assert "no setting luck" in experiment("shindo2012", "--treebank=village", "--only=luck", code=2)


@pytest.mark.slow
def test_headline(experiment, tmp_path, monkeypatch):
    headline = importlib.import_module("tools.experiments.headline")
    monkeypatch.setattr(headline, "SIZES", (20, 5000))
    monkeypatch.delenv("BERKELEY_JAR", raising=False)
    text = experiment("headline", "--treebank=village", "--seeds=2")
    rows = table(text, "grammar +runs")[1:]
    names = ["PCFG", "TSG", "SR-TSG", "product of 2 SR-TSGs"]
    assert [row[0] for row in rows] == names
    assert [row[1] for row in rows] == ["1", "2", "2", "1"]
    sizes = table(text, "grammar +20 trees")
    assert sizes[0][1:] == ["20 trees", "60 trees"]
    assert [row[0] for row in sizes[1:]] == names
    assert [row[2] for row in sizes[1:]] == [row[2] for row in rows]
    record = json.loads((tmp_path / "headline.json").read_text(encoding="utf-8"))
    assert record["runs"]["tsg-20-1"]["job"]["n_trees"] == 20
    assert (tmp_path / "headline-sizes.svg").read_text(encoding="utf-8").startswith("<?xml")
    # Fewer runs on samples of the trees, of which there is no product then.
    fewer = table(experiment("headline", "--treebank=village", "--seeds=2", "--size-seeds=1"), "grammar +20 trees")
    one = record["runs"]["tsg-20-1"]["test max-rule"]["f1"]
    assert [row[1] for row in fewer[2:]] == [f"{one:.2f}", fewer[3][1], "-"]
    assert [row[2] for row in fewer] == [row[2] for row in sizes]
    assert "SIZE_SEEDS=1" in json.loads((tmp_path / "headline.json").read_text(encoding="utf-8"))["command"]
    # The Berkeley parser comes after what is done.
    (tmp_path / "java").write_text(JAVA)
    (tmp_path / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("BERKELEY_JAR", str(tmp_path / "none.jar"))
    assert "no such file" in experiment("headline", "--treebank=village", "--seeds=2", code=2)
    (tmp_path / "none.jar").write_text("")
    again = table(experiment("headline", "--treebank=village", "--seeds=2"), "grammar +runs")[1:]
    assert again[:-1] == rows
    assert again[-1][:3] == ["Berkeley parser 1.7", "2", "0.00"]


@pytest.mark.parametrize("name", NAMES)
def test_refused(experiment, tmp_path, name):
    assert "--scale=huge: must be one of smoke, small, full" in experiment(name, "--scale=huge", code=2)
    assert "no such folder" in experiment(name, f"--treebank={tmp_path}/none", code=2)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "neither train.mrg" in experiment(name, f"--treebank={empty}", code=2)


def test_parts_of_treebanks(tmp_path):
    treebanks = importlib.import_module("tools.experiments.treebanks")
    penn = tmp_path / "wsj"
    for section in range(25):
        folder = penn / f"{section:02}"
        folder.mkdir(parents=True)
        tree = Tree.fromstring(f"( (S (NP-SBJ (NN w{section})) (VP (VB go))))")
        write_trees([tree] * (section + 1), folder / f"wsj_{section:02}00.mrg", "pretty")
    small, full = (treebanks.find_treebank(str(penn), scale) for scale in ("small", "full"))
    assert [len(small.part(part)) for part in treebanks.PARTS] == [3, 23, 24]
    assert len(full.train) == sum(range(3, 23))
    assert str(small.dev[0]) == "(TOP (S (NP (NN w22)) (VP (VB go))))"
    for number, part in enumerate(treebanks.PARTS, start=1):
        write_trees(small.train[:1] * number, tmp_path / f"{part}.mrg")
    own = treebanks.find_treebank(str(tmp_path), "small")
    assert [len(own.part(part)) for part in treebanks.PARTS] == [1, 2, 3]


@pytest.mark.slow
def test_the_sample_of_nltk(treebanks, penn_sample):
    module = importlib.import_module("tools.experiments.treebanks")
    found = module.find_treebank("nltk", "small")
    assert sum(len(found.part(part)) for part in module.PARTS) == len(penn_sample)
    for part in module.PARTS:
        text = (treebanks / "wsj-sample" / f"{part}.mrg").read_text(encoding="utf-8")
        assert [tree.leaves() for tree in found.part(part)] == [
            Tree.fromstring(line).leaves() for line in text.splitlines()
        ]


def test_students_of_raw_text(tmp_path):
    """Stages are made once, in whatever order they are asked for, and a student has all the trees."""
    lessons = importlib.import_module("tools.experiments.lessons")
    (tmp_path / "trees" / "craft").mkdir(parents=True)
    write_trees(load("village", "train")[:70], tmp_path / "trees" / "craft" / "train.mrg")
    write_trees(load("village", "dev")[:10], tmp_path / "trees" / "craft" / "dev.mrg")
    school = lessons.School(tmp_path / "stages", tmp_path / "trees", tmp_path / "brown")
    school.folder.mkdir()
    lesson = lessons.Lesson(gold=40, raw=20, schedule="2+0", student_schedule="2+0", teachers=2, copies=2)
    figures = school.lesson(lesson)
    assert 80 < figures["trees"] <= 100
    assert figures["new_words"] > 0
    made = sorted(path.name for path in school.folder.iterdir())
    assert school.lesson(lesson) == figures
    assert sorted(path.name for path in school.folder.iterdir()) == made
    # Half of the sentences, those that the teachers are surest of.
    chosen = lessons.replace(lesson, select="confident")
    assert len(school.chosen(chosen)) == (len(school.chosen(lesson)) + 1) // 2
    sure = [confidence for line, confidence in school.parses(lesson) if line in school.chosen(chosen)]
    assert min(sure) >= sorted(confidence for line, confidence in school.parses(lesson) if line)[-len(sure)]
