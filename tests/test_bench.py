"""The benchmarks run at a tiny scale and print what they should; their figures mean nothing at that scale."""

import importlib
import json
import re
import sys

import numpy as np
import pytest
from nltk.tree import Tree

from tsgkit.models._cfg import cfg_model
from tsgkit.models._subcategories import fragments_of_sites
from tsgkit.treebank import Binarization, FlatCorpus, UnknownWords, load, prepare, write_trees

TINY = ("--train=60", "--sentences=8", "--repeat=1")
JAVA = """#!/bin/sh
while [ $# -gt 1 ]; do
    case $1 in -inputFile) input=$2 ;; -outputFile) output=$2 ;; -kbest) end="\\n" ;; esac
    shift
done
awk -v end="$end" 'NR == 1 { print "(())" end; next }
     { printf "( (S"; for (i = 1; i <= NF; i++) printf " (%s %s)", $i ~ /^[.,]$/ ? $i : "NN", $i; print "))" end }
' "$input" >"$output"
"""


@pytest.fixture
def bench(monkeypatch, capsys):
    """Run a benchmark without treebanks and programs of others; returns its output."""
    for variable in ("TSGKIT_TREEBANKS", "BERKELEY_JAR", "BERKELEY_GRAMMAR"):
        monkeypatch.delenv(variable, raising=False)

    def run(name, *arguments, code=0):
        module = importlib.import_module(f"tools.bench.{name}")
        assert module.main(arguments) == code
        captured = capsys.readouterr()
        assert bool(captured.err) == bool(code), captured.err
        return captured.err if code else captured.out

    return run


def table(text, first_cell):
    """The cells of the table whose head begins with `first_cell`, by rows."""
    block = re.search(rf"^{first_cell}.*\n(?:.+\n)*", text, flags=re.MULTILINE)
    return [re.split(r" {2,}", line) for line in block[0].splitlines()]


def test_speed_of_readers(bench):
    """What is written without a writer of tsgkit is read as so many trees."""
    head, *rows = table(bench("read", "--trees=20", "--sizes=line", "--formats=line,alpino,genia,ftb,lemmas"), "format")
    assert head[-2:] == ["of processor", "MB"]
    sizes = [
        ("line", "5"),
        ("line", "10"),
        ("line", "20"),
        *((name, "20") for name in ("alpino", "genia", "ftb", "lemmas")),
    ]
    assert [tuple(row[:2]) for row in rows] == sizes
    assert len({row[2] for row in rows if row[1] == "20"}) == 1


def test_classes_of_unknown_words(bench):
    head, *rows = table(bench("classes"), "treebank")
    assert head[-2:] == ["tags predicted, %", "bits"]
    assert [row[1] for row in rows] == ["1"] * 4 + ["5"] * 4
    by_model = {row[3]: row for row in rows[:4]}
    assert by_model["one"][4] == "1"
    assert len({row[2] for row in by_model.values()}) == 1  # the same unknown words
    # Finer classes predict more tags, with fewer bits.
    assert float(by_model["unicode"][5]) > float(by_model["three"][5]) >= float(by_model["one"][5])
    assert float(by_model["unicode"][6]) < float(by_model["one"][6])
    assert "go together" in bench("classes", "--train=x", code=2)


@pytest.mark.slow
def test_parse_on_the_bundled_treebank(bench):
    text = bench("parse", *TINY, "--treebanks=village", "--errors=3", "--nltk=1", "--longest=20")
    assert text.startswith("=== village: trained on 60 trees, 8 sentences of ")
    head, *rows = table(text, "grammar and objective")
    assert head[2:] == ["sent/CPU s", "2 threads", "peak MB", "errors", "fallbacks", "F1"]
    assert [row[0] for row in rows] == ["h=0 v=1 mpd", "h=0 v=1 max-rule", "h=1 v=2 mpd", "h=1 v=2 max-rule"]
    assert [row[5][1:] for row in rows] == ["", "", "/3", "/3"]
    assert all(float(row[2]) > 0 for row in rows)
    by_length = table(text, "words +sentences")
    assert sum(int(row[1]) for row in by_length[1:]) == 8
    assert re.search(r"^\d+ times as fast; the best trees are equally probable in 1 of 1$", text, re.MULTILINE)
    growth = table(text, "words +h=0")
    assert [row[0] for row in growth[1:]] == ["10", "20", "exponent"]
    float(growth[-1][1])


@pytest.mark.slow
def test_parse_on_a_generated_treebank(bench, monkeypatch):
    module = importlib.import_module("tools.bench.parse")
    monkeypatch.setattr(module, "SETTINGS", module.SETTINGS[-1:])
    text = bench("parse", *TINY, "--treebanks=generated", "--errors=0", "--nltk=0", "--longest=0")
    assert text.startswith("=== generated: trained on 60 trees, 8 sentences of ")
    assert "NLTK" not in text
    assert "growth" not in text


@pytest.mark.slow
def test_models_beside_other_parsers(bench, monkeypatch, tmp_path):
    for name, content in (("java", JAVA), ("parser.jar", ""), ("grammar", "")):
        (tmp_path / name).write_text(content)
    (tmp_path / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("BERKELEY_JAR", str(tmp_path / "parser.jar"))
    assert "BERKELEY_GRAMMAR=: no such file" in bench("models", "any.model", code=2)
    monkeypatch.setenv("BERKELEY_GRAMMAR", str(tmp_path / "grammar"))
    assert "--trees=FILE is needed" in bench("models", "any.model", code=2)
    gold = load("village", "dev")[:8]
    write_trees(gold, tmp_path / "dev.mrg")
    corpus = prepare(load("village", "train"), binarization=Binarization("right", 1, 2), unknown=UnknownWords())
    cfg_model(corpus).save(tmp_path / "own.model")
    other = f"{tmp_path}/java -inputFile {{input}} -outputFile {{output}} end"
    text = bench(
        "models", f"--trees={tmp_path}/dev.mrg", f"--others={other}", "--repeat=1", "--unpruned=4", "--longest=20",
        "--kbest=1,5", *[str(tmp_path / "own.model")] * 2,
    )  # fmt: skip
    commands, lists = re.split(r"^=== oracle.*$", text, flags=re.MULTILINE)
    head, *rows = table(commands, "parser")
    assert head == ["parser", "CPU s", "start", "ms/sentence", "sent/CPU s", "rate", "F1", "peak MB"]
    assert [row[0] for row in rows] == ["own.model", "product of 2", "Berkeley", f"{tmp_path}/java"]
    assert rows[0][6] == rows[1][6] > rows[2][6] == rows[3][6]
    assert rows[2][5] == "x 1.00"
    head, *rows = table(lists, "parser")
    assert head == ["parser", "k=1", "k=5", "trees", "CPU s"]
    assert float(rows[0][1]) < float(rows[0][2]) <= 100
    assert 1 < float(rows[0][3]) <= 5
    assert "=== pruning, 4 sentences ===" in text
    assert table(text, "words")[-1][0] == "exponent"


def test_parse_knows_its_treebanks(bench):
    assert "there are village, generated" in bench("parse", "--treebanks=wsj-sample", code=2)


@pytest.mark.slow
def test_markovisation(bench):
    text = bench("markovisation", "--sentences=5", "--slices=objectives")
    assert text.startswith("trained on 312 trees (village), 5 sentences parsed\n")
    head, *rows = table(text, "binarised")
    assert head[6:] == ["F1", "strict F1", "tags", "rules", "sent/CPU s", "fallbacks"]
    assert [row[5] for row in rows] == ["mpd", "mpp", "mer", "max-rule"]
    assert all(row[:5] == ["right", "1", "2", "unicode", "1"] for row in rows)


def test_markovisation_needs_both_treebanks(bench):
    assert "--train and --dev go together" in bench("markovisation", "--dev=village:dev", code=2)
    assert "--slices=all: must be among" in bench("markovisation", "--slices=all", code=2)


def test_acceptance(bench, tmp_path):
    village = tmp_path / "village" / "train.mrg"
    village.parent.mkdir()
    write_trees(load("village", "dev")[:20], village)
    text = bench(
        "acceptance", f"--train={village}", f"--larger={village}", "--iterations=2", f"--record={tmp_path}/r.json"
    )
    rows = table(text, "setting")[1:]
    assert [rows[0][0], rows[-1][0]] == ["Dirichlet process", "village, 20 trees"]
    record = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert record["tables"]["acceptance"]["rows"] == rows
    assert record["runs"]["Dirichlet process"]["trees"] == 20
    assert "--train=TREEBANK is needed" in bench("acceptance", code=2)


def test_what_could_be_inserted():
    """Of three fragments, two differ in an adverb beside an internal node; one has it at its root."""
    module = importlib.import_module("tools.bench.insertion_bound")
    corpus = FlatCorpus.from_trees(
        Tree.fromstring(text)
        for text in ("(S (X (R r) (X (A a))) (B b))", "(S (X (A a)) (B b))", "(S (X (R r) (X (Y y))) (B b))")
    )
    table = fragments_of_sites(corpus, (corpus.label == corpus.label[0]).astype(np.uint8))
    assert module.bound(table, 1) == {"types": 3, "changed": 2, "left": 2, "auxiliary": 1}
    root = fragments_of_sites(corpus, np.isin(corpus.label, corpus.label[[0, 1]]).astype(np.uint8))
    assert module.bound(root, 1)["changed"] == 0


def test_insertion_bound(bench, tmp_path):
    write_trees(load("village", "dev")[:20], tmp_path / "train.mrg")
    text = bench("insertion_bound", f"--train={tmp_path}/train.mrg", "--iterations=2", "--name=village")
    rows = table(text, "treebank")[1:]
    assert [row[:3] for row in rows[:2]] == [["village", "right", "all"], ["village", "right", "count >= 2"]]
    text = bench("insertion_bound", f"--train={tmp_path}/train.mrg", "--iterations=3", "--auxiliary")
    assert all(int(row[2]) >= int(row[1]) > 0 for row in table(text, "beside the foot")[1:])


def test_warm_start(bench, tmp_path):
    sizes = ("--small=20", "--large=40", "--dev=3", "--scale=3")
    text = bench("warm_start", *sizes, f"--record={tmp_path}/r.json")
    rows = table(text, "model")[1:]
    assert [row[:3] for row in rows[:3]] == [["tsg", "20", "-"], ["tsg", "40", "-"], ["tsg", "40", "small"]]
    assert [row[3] for row in rows[3:]] == ["12", "12", "3"]
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["tables"]["start"]["rows"] == rows


@pytest.mark.slow
def test_tree_level(bench, tmp_path):
    options = ("--scale=smoke", "--treebank=village", f"--folder={tmp_path}", "--quiet", f"--record={tmp_path}/r.json")
    assert len(table(bench("tree_level", *options), "tree-level moves")) == 4
    rows = table(bench("tree_level", *options, "--longer"), "tree-level moves")[1:]
    assert [row[0] for row in rows] == ["none", "20, exact", "20, map", "none"]
    assert [row[1] for row in rows[:3]] == ["4", "4", "4"]
    assert float(rows[0][6]) == 0 < float(rows[2][6])
    assert int(rows[3][1]) >= 4
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["tables"]["tree-level"]["rows"] == rows


@pytest.mark.slow
def test_refined_insertion(bench, tmp_path):
    options = ("--scale=smoke", "--treebank=village", f"--folder={tmp_path}", "--quiet", f"--record={tmp_path}/r.json")
    text = bench("refined_insertion", *options)
    rows = table(text, "grammar +seed")[1:]
    assert [row[0] for row in rows] == [
        *("without insertion", "with insertion"),
        *("without insertion, mean", "with insertion, mean"),
    ]
    assert rows[0][6] == "0" < rows[1][6]
    found = table(text, "tree +side")[1:]
    assert all("*" in row[0] for row in found)
    record = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["tables"]
    assert [record["refined"]["rows"], record["refined-auxiliary"]["rows"]] == [rows, found]
    assert sum(int(row[1]) for row in record["refined-beside"]["rows"]) <= int(rows[1][6])


@pytest.mark.slow
def test_train(bench):
    text = bench(
        "train", "--sizes=20,40", "--sweeps=1", "--warm-up=1", "--recovery=60", "--iterations=3", "--type-moves=5", "-q"
    )
    head, *rows = text.splitlines()[1:4]
    assert head.split()[:2] == ["sentences", "nodes"]
    assert [row.split()[0] for row in rows] == ["20", "40"]
    titles = re.findall(r"^recovery of known (.*) after", text, flags=re.MULTILINE)
    assert titles == ["fragments", "initial trees, with insertion,", "auxiliary trees, with insertion,"]
    blocks = re.split(r"^(?:recovery|exact match|up to nodes) ?.*\n", text, flags=re.MULTILINE)[1:]
    for block in filter(None, blocks):
        counts = [
            [int(number) for number in re.findall(r"(?<= )\d+(?= )", f"{line} ")] for line in block.splitlines()[1:]
        ]
        assert [sum(column) for column in zip(*counts[:-1], strict=True)] == counts[-1]
        n_known, n_recalled, n_found, n_right = counts[-1]
        assert n_recalled == n_right <= min(n_known, n_found)


@pytest.mark.slow
def test_treebank_with_many_tags(bench, tmp_path):
    path, output = tmp_path / "few.mrg", tmp_path / "many.mrg"
    path.write_text("(S (N dogs) (V bark) (N cats) (V run))\n" * 3 + "(S (N dog) (V barks))\n(S (N mice) (V run))\n")
    # The most frequent ones: N~g and V~s would be the sixth and seventh.
    assert bench("many_tags", "--tags=5", "--tokens=13", str(path), str(output)) == "4 trees, 14 tokens, 5 tags\n"
    lines = output.read_text().splitlines()
    assert lines == ["(S (N~s dogs) (V~k bark) (N~s cats) (V~n run))"] * 3 + ["(S (N dog) (V barks))"]
    assert "cannot be split into 9" in bench("many_tags", "--tags=9", str(path), str(output), code=2)


def test_sweeps(bench):
    text = bench("sweeps", "--sizes=12", "--sweeps=2", "--splits=1", "-q")
    head, *rows = [re.split(r" {2,}", line.strip()) for line in text.splitlines()]
    assert head[:3] == ["sentences", "sweep", "threads"]
    assert [row[1:3] for row in rows] == [[kind, n] for kind in ("split 1", "sites", "joint") for n in ("1", "2")]
    # Threads change no sample, so none of the acceptance rates.
    assert all(one[6] == two[6] for one, two in zip(rows[::2], rows[1::2], strict=True))
    assert "--threads=0: must be positive numbers" in bench("sweeps", "--threads=0", "-q", code=2)


@pytest.mark.slow
def test_sweeps_against_another_environment(bench, tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    options = ("--sizes=8", "--sweeps=1", "--splits=1", "--rounds=1", "-q")
    head, row = [
        re.split(r" {2,}", line.strip()) for line in bench("sweeps", f"--against={python}", *options).splitlines()
    ]
    assert head[0] == "sentences"
    assert float(row[3]) > 0
    python.write_text("#!/bin/sh\necho no such option >&2; exit 2\n")
    assert "no such option" in bench("sweeps", f"--against={python}", *options, code=2)


def test_fragments_that_differ_in_nodes_with_one_expansion_are_the_same():
    module = importlib.import_module("tools.bench.train")
    trees = ["(TOP (S (X a) (E (. .))))", "(TOP (S (X b) (E (. .))))"]
    corpus = FlatCorpus.from_trees(map(Tree.fromstring, trees))
    only = module.only_expansions(corpus)
    assert module.expanded("(S (X ) (E ))", only) == "(S (X ) (E (. .)))"
    assert module.expanded("(TOP (S ))", only) == "(TOP (S (X ) (E (. .))))"
    assert module.expanded("(S (X a) (E (. )))", only) == "(S (X a) (E (. .)))"


@pytest.mark.slow
def test_scaling_measures_fits_and_predicts(bench, tmp_path):
    points = tmp_path / "points.tsv"
    options = (f"--points={points}", "--quiet", "--machines=2", "--cores=2")
    text = bench("scaling", *options, "--measure", "--sizes=20,40,60", "--sweeps=1", "--parse=2")
    assert [row[1] for row in table(text, "sentences")[1:]] == ["20", "40", "60"]
    assert [row[0] for row in table(text, "quantity")[1:]] == [
        "tsg sweep",
        "split sweep",
        "joint sweep",
        "sentence",
        "MB",
    ]
    assert "16 of these, Penn, sections 2-21" in text
    # Only what two cores can do: a chain with one thread or two, and sixteen chains one by one or two at a time.
    assert [row[-4:-2] for row in table(text, " *trees")[1:]] == [["1", "1"], ["1", "2"], ["16", "1"]] * 2
    assert bench("scaling", *options) == text
    points.write_text(points.read_text().replace("joint sweep\t60", "joint sweep\t-60"))
    assert "points.tsv:14: not a measured point" in bench("scaling", *options, code=2)


def test_chains_and_threads_share_the_cores():
    scaling = importlib.import_module("tools.bench.scaling")
    laws = {name: scaling.Law(1e-6, 1.0) for name in ("split sweep", "joint sweep", "MB")}
    rows = {row[:3]: float(row[3]) for row in scaling.training_rows(laws, 25.0, cores=16)}
    one = rows["40,000", "1", "1"]
    assert one == pytest.approx(700 / 3600, abs=0.005)  # five splits of 100 sweeps and 200 joint ones, a second each
    assert one / 2 < rows["40,000", "1", "2"] < one / 1.5
    assert rows["40,000", "16", "1"] == one
    assert rows["40,000", "16", "4"] == pytest.approx(4 * rows["40,000", "1", "4"], abs=0.02)


def test_a_law_finds_its_own_parameters_and_a_cluster_loses_only_time():
    scaling = importlib.import_module("tools.bench.scaling")
    points = [scaling.Point("tsg sweep", size, size, 3e-6 * size**1.25) for size in (10, 200, 3000)]
    law = scaling.Law.fit(points)
    assert law.factor == pytest.approx(3e-6)
    assert law.exponent == pytest.approx(1.25)
    line = scaling.Law.fit([scaling.Point("MB", size, size, 80 + 0.01 * size) for size in (10, 200, 3000)])
    assert line.at(1000) == pytest.approx(90)
    steady = scaling.Cluster(machines=2, cores=5, chunk=10, losses=0.0, seed=1)
    hours, lost = steady.hours(1000, mean=3.6, spread=0.0)
    assert (hours, lost) == (pytest.approx(0.1), 0)
    shaky, lost = scaling.Cluster(machines=2, cores=5, chunk=10, losses=1.0, seed=1).hours(100_000, 3.6, 1.0)
    assert lost > 0
    assert 10 < shaky < 11


@pytest.mark.slow
def test_stream_is_complete(bench, monkeypatch, tmp_path):
    # So few sentences are parsed while Python is still taking its memory.
    monkeypatch.setattr(importlib.import_module("tools.bench.stream"), "GROWTH", 10.0)
    text = bench("stream", "--sentences=4000", "--train=100", "--rows=3", f"--folder={tmp_path}", "-q")
    head, *rows = table(text, " *run")
    assert head == ["run", "sentences", "seconds", "MB"]
    assert rows
    assert all(float(row[-1]) > 10 for row in rows)
    assert re.search(r"^4000 sentences \([\d.]+ MB\) to trees", text, re.MULTILINE)
    assert text.endswith("every sentence has its tree\n")
    assert len((tmp_path / "trees").read_text().splitlines()) == 4000


def test_stream_sees_what_is_wrong(tmp_path):
    stream = importlib.import_module("tools.bench.stream")
    text, trees = tmp_path / "text", tmp_path / "trees"
    text.write_text("a b\nc\n")
    for lines, wrong in (
        ("(S (A a) (B b))\n(S (C c))\n", 0),
        ("(S (A a) (B b))\n(S (C d))\n", 2),
        ("(S (A a) (B b))\n", 2),
        ("(S (A a) (B b))\n(S (C c))\n(S (C c))\n", 3),
    ):
        trees.write_text(lines)
        assert stream.first_difference(text, trees) == wrong
    seen = stream.Watched(100, trees, [(1, done, 1.0, 1000 + done) for done in range(0, 101, 10)])
    assert seen.growth() == 1100 / 1050
    assert seen.table(2).split() == ["run", "sentences", "seconds", "MB", "1", "50", "1", "1.0", "1", "100", "1", "1.1"]


@pytest.mark.slow
@pytest.mark.parametrize("job", ["parse", "tsg", "local", "insertion", "srtsg", "sites"])
def test_soak(job, capfd):
    """A short one: the curve is there, and samplers can be emptied and go on."""
    main = importlib.import_module("tools.bench.soak").main
    assert main(["--parses=60", "--iterations=40", "--tolerance=100", "--treebank=village:dev", job]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == f"{job}:"
    assert len(lines) == 22
    assert re.fullmatch(rf"{job}: grows by [+-]\d+\.\d\d MB over its second half", lines[-1])


def test_growth_of_memory_is_noticed():
    growth = importlib.import_module("tools.bench.soak").growth
    assert growth([10.0, 12.0, 11.0, 12.0]) == 0.0
    assert growth([10.0, 11.0, 12.0, 13.0]) == 2.0


@pytest.mark.slow
def test_load(bench):
    pytest.importorskip("flask", reason="flask is not installed")
    pytest.importorskip("waitress", reason="waitress is not installed")
    text = bench("load", "--seconds=0.3", "--queue=2", "--askers=12", "--slow-bodies=30", "--partial=40")
    head, *rows = text.splitlines()
    assert head.split()[-3:] == ["answered", "busy", "failed"]
    counts = [[int(number) for number in row.split()[-3:]] for row in rows[:8]]
    # All are answered up to two workers and two that wait; of many more some are refused.
    assert all(answered and not failed for answered, _, failed in counts)
    assert [busy > 0 for _, busy, _ in counts] == [False, False, False, True, False, False, False, False]
    assert rows[8].startswith("bodies of 2000000 bytes: ")
