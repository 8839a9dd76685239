"""``tsgkit train`` and ``tsgkit parse`` as a user runs them."""

import gzip
import math
import re
import subprocess
import sys

import pytest
from nltk.tree import Tree

from tsgkit._exit_codes import EXIT_USAGE
from tsgkit._tools import parse as parse_command
from tsgkit._tools import prepare as prepare_command
from tsgkit._tools import train as train_command
from tsgkit.evaluation import evaluate
from tsgkit.models._model import Model
from tsgkit.parsing import Parser
from tsgkit.treebank import Cleaning, load, read_trees
from tsgkit.treebank._trees import brackets_of

DEV = [Cleaning().apply(tree) for tree in load("village", "dev")]
SENTENCES = [tree.leaves() for tree in DEV]
TEXT = "".join(f"{' '.join(words)}\n" for words in SENTENCES)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "village.model"
    assert train_command.main(["--model=cfg", "--quiet", f"--output={path}", "village:train"]) == 0
    return path


@pytest.fixture
def run(tmp_path, capsys):
    """Run a command's ``main`` in this process; returns exit code, stdout, stderr."""

    def call(main, *arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def parse(run, model, tmp_path):
    """Parse text with the model of the bundled treebank; returns the lines of output."""

    def call(text, *options, path=model, code=0):
        (tmp_path / "input").write_bytes(text.encode() if isinstance(text, str) else text)
        arguments = [*options, "-i", tmp_path / "input", "-o", tmp_path / "output", path]
        found, out, error = run(parse_command.main, *arguments)
        assert found == code, error
        assert out == ""
        if code:
            return error
        output = (tmp_path / "output").read_bytes().decode()
        assert "\r" not in output
        return output.split("\n")[:-1]

    return call


def words_of(line):
    return [word for word in re.findall(r" ([^ ()]+)\)", line)]  # noqa: C416


# ---- train -----------------------------------------------------------------------------------------------


def test_defaults(run, tmp_path, model):
    code, out, error = run(train_command.main, "--model=cfg", "-o", tmp_path / "m", "village:train")
    assert (code, out) == (0, "")
    assert re.fullmatch(
        r".*m: 312 trees, 4295 tokens, \d+ labels, \d+ rules, [\d.]+ s\n", error.replace(str(tmp_path), "")
    )
    assert (tmp_path / "m").read_bytes() == model.read_bytes()
    made = Model.load(model)
    binarization, lexicon = made.preparation.binarization, made.preparation.lexicon
    assert (binarization.method, binarization.horizontal, binarization.vertical) == ("right", 1, 2)
    assert (lexicon.settings.model, lexicon.settings.threshold) == ("unicode", 1)
    assert (made.kind, made.info["trees"], len(made.stages)) == ("cfg", 312, 2)


def test_a_prepared_corpus(run, tmp_path, model):
    prepared = ["--binarize=right", "--horizontal=1", "--vertical=2", "--unknown=unicode", "--threshold=1"]
    corpus, bare, made = (tmp_path / name for name in ("corpus.npz", "bare.npz", "made"))
    assert run(prepare_command.main, "-q", *prepared, "-o", corpus, "village:train")[0] == 0
    assert run(train_command.main, "--model=cfg", "-q", "-o", made, corpus)[0] == 0
    assert made.read_bytes() == model.read_bytes()
    assert run(prepare_command.main, "-q", "-o", bare, "village:train")[0] == 0
    for wrong, message in (
        ([bare], "needs binarised trees"),
        ([corpus, "village:dev"], "cannot be combined with others"),
    ):
        code, _, error = run(train_command.main, "--model=cfg", "-q", "-o", tmp_path / "none", *wrong)
        assert code == 2
        assert message in error
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model=best", "village"], "--model=best: must be one of cfg"),
        (["--binarize=none", "village"], "a model needs binarised trees"),
        (["--unknown=none", "village"], "a model needs binarised trees"),
        (["--horizontal=-1", "village"], "--horizontal=-1"),
        (["--threshold=x", "village"], "not a whole number"),
        (["no-such-file"], "no-such-file"),
        (["--params=new", "village"], "--params goes with --dev=TREEBANK: alone it has no effect"),
        (["--raw-sentences=9", "village"], "--teachers and the options that begin with --raw- go with --raw=FILE"),
        (["--teachers=2", "village"], "go with --raw=FILE"),
    ],
)
def test_wrong_options_of_train(run, tmp_path, arguments, message):
    code, out, error = run(train_command.main, "-q", "-o", tmp_path / "m", *arguments)
    assert (code, out) == (2, "")
    assert message in error
    assert not list(tmp_path.iterdir())


def test_development_trees_are_read_as_the_others_and_before_training(run, tmp_path):
    export = "#BOS 1\ndä\tD\t--\t--\t500\nhat\tV\t--\t--\t0\nes\tV\t--\t--\t500\n#500\tP\t--\t--\t0\n#EOS 1\n"
    (tmp_path / "bank").write_text(export, encoding="latin-1")
    options = ("-q", "-o", tmp_path / "m", f"--dev={tmp_path / 'bank'}", tmp_path / "bank")
    code, out, error = run(train_command.main, "--model=cfg", "--encoding=latin-1", "--continuous", *options)
    assert (code, error) == (0, "tsgkit: made 2 trees continuous\n")
    assert "F1" in out
    (tmp_path / "m").unlink()
    (tmp_path / "none").write_text("")
    for dev, problem in (("none", "it contains no trees"), ("missing", "missing")):
        options = ("--model=tsg", "-q", "-o", tmp_path / "m", f"--dev={tmp_path / dev}", "village:dev")
        code, out, error = run(train_command.main, *options)
        assert (code, out) == (2, "")
        assert problem in error
        assert not (tmp_path / "m").exists()


def test_bad_trees(run, tmp_path):
    (tmp_path / "bank").write_text("(S (A a) (B b))\n(S (A a)\n(S (A a) (B c))\n")
    code, _, error = run(train_command.main, "--model=cfg", "-o", tmp_path / "m", tmp_path / "bank")
    assert code == 2
    assert "bank:3:1: unbalanced" in error or "bank:2:1: unbalanced" in error
    code, _, error = run(train_command.main, "--model=cfg", "--skip-bad", "-o", tmp_path / "m", tmp_path / "bank")
    assert code == 2
    assert "too many bad trees: 1 of 3 (33.3%): unbalanced brackets 1; --max-bad=0.05 allows fewer" in error
    assert not (tmp_path / "m").exists()
    code, _, error = run(
        train_command.main, "--model=cfg", "--skip-bad", "--max-bad=34%", "-o", tmp_path / "m", tmp_path / "bank"
    )
    assert code == 0
    assert "2 trees" in error
    (tmp_path / "bank").write_text("(S (A a) (B b))\n(T (A a))\n")
    code, _, error = run(train_command.main, "--model=cfg", "--root=none", "-o", tmp_path / "m2", tmp_path / "bank")
    assert code == 2
    assert "different root labels (S, T)" in error
    (tmp_path / "bank").write_text("")
    code, _, error = run(train_command.main, "--model=cfg", "-o", tmp_path / "m2", tmp_path / "bank")
    assert code == 2
    assert "no trees" in error


# The scores below are those of the deterministic PCFG; any change of a rule, a weight or the preparation changes them.
@pytest.mark.parametrize(
    ("options", "f1"),
    [
        (["--horizontal=0", "--vertical=1"], 75.92),
        (["--collapse-unaries"], 81.62),
        (["--binarize=centre-head", "--horizontal=2"], 84.46),
        (["--root=ROOT", "--binarize=left"], 85.33),
        (["--threshold=0", "--unknown=signature"], 86.19),
        (["--horizontal=all", "--vertical=3", "--unknown=one", "--threshold=5"], 76.95),
        (["--keep-functions", "--keep-repeats"], 81.62),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_of_train(run, tmp_path, parse, options, f1):
    assert run(train_command.main, "--model=cfg", "-q", *options, "-o", tmp_path / "m", "village:train")[0] == 0
    lines = parse(TEXT, path=tmp_path / "m")
    trees = list(read_trees(str(tmp_path / "output")))
    assert len(trees) == len(lines) == len(SENTENCES)
    root = "ROOT" if "--root=ROOT" in options else "TOP"
    assert {tree.label() for tree in trees} == {root}
    assert [tree.leaves() for tree in trees] == SENTENCES
    assert not any(mark in line for line in lines for mark in "@^+|")
    clean = [Cleaning().apply(tree) for tree in trees]
    assert round(evaluate(DEV, clean).f1, 2) == f1


# ---- parse -----------------------------------------------------------------------------------------------


def test_one_tree_a_line_in_order(parse, tmp_path):
    lines = parse(TEXT)
    trees = [Tree.fromstring(line) for line in lines]
    assert [tree.leaves() for tree in trees] == SENTENCES
    assert all(tree.label() == "TOP" for tree in trees)
    assert round(evaluate(DEV, trees).f1, 2) == 84.27


def test_output_does_not_depend_on_threads_or_the_way_out(tsgkit, model, parse, tmp_path):
    text = "".join(TEXT.splitlines(keepends=True)[:25])
    for options in (["--confidence", "--kbest=3"], ["--objective=max-rule-sampled", "--samples=30"]):
        lines = parse(text, "--scores", *options)
        assert parse(text, "--scores", *options, "--threads=2") == lines
        assert parse(text, "--scores", *options, "--threads=7") == lines
    assert tsgkit("parse", model, "--scores", *options, text=text).stdout.split("\n") == [*lines, ""]
    assert parse(text, "--scores", *options, "--seed=1") != lines


@pytest.mark.parametrize(
    ("objective", "f1"),
    [
        ("mpd", 84.51),
        ("mpp", 84.51),
        ("mpp-sampled", 84.67),
        ("mer", 83.93),
        ("mer-sampled", 84.34),
        ("max-rule-sampled", 84.33),
    ],
)
def test_objectives(parse, objective, f1):
    lines = parse(TEXT, f"--objective={objective}", "--samples=100")
    trees = [Tree.fromstring(line) for line in lines]
    assert [tree.leaves() for tree in trees] == SENTENCES
    assert round(evaluate(DEV, trees).f1, 2) == f1


def test_scores_and_fallbacks(parse, run, tmp_path, model):
    lines = parse("the dog barked .\n\n7 ( .\n" + "the " * 30 + "\n", "--scores", "--max-length=20")
    columns = [line.split("\t") for line in lines]
    assert [(number, rank) for number, rank, *_ in columns] == [(str(n), "1") for n in range(1, 5)]
    assert [kind for *_, kind, _ in columns] == ["ok", "empty", "glued", "flat"]
    assert float(columns[0][2]) <= 0
    assert 0 < float(columns[0][4]) <= 1
    assert columns[1][2:] == ["-inf", "-inf", "-", "empty", "(TOP)"]
    code, _, error = run(
        parse_command.main, "-i", tmp_path / "input", "-o", tmp_path / "output", "--max-length=20", model
    )
    assert code == 0
    assert "4 sentences" in error
    assert "3 with a fallback tree (1 empty, 1 flat, 1 glued)" in error
    code, _, error = run(parse_command.main, "-q", "-i", tmp_path / "input", "-o", tmp_path / "output", model)
    assert (code, error) == (0, "")


def test_kbest(parse):
    lines = parse("the old man smiled .\n\nhe saw the dog with the man\n", "--kbest=4", "--scores")
    blocks = "\n".join(lines).split("\n\n")
    assert [len(block.strip().splitlines()) for block in blocks] == [4, 1, 4]
    for block in (blocks[0], blocks[2]):
        rows = [line.split("\t") for line in block.strip().splitlines()]
        assert [row[1] for row in rows] == ["1", "2", "3", "4"]
        assert len({row[-1] for row in rows}) == 4
        scores = [float(row[3]) for row in rows]
        assert scores == sorted(scores, reverse=True)
        shares = [float(row[4]) for row in rows]
        assert shares == sorted(shares, reverse=True)
        assert 0 < sum(shares) <= 1 + 1e-5
        assert sum(2.718281828 ** float(row[2]) for row in rows) <= 1 + 1e-5


def test_confidence(parse):
    plain = [Tree.fromstring(line) for line in parse(TEXT)]
    lines = parse(TEXT, "--confidence", "--kbest=2")
    for block in "\n".join(lines).split("\n\n"):
        for line in block.split("\n"):
            phrases = re.findall(r"\(([^ ()]+) \(", line)
            assert all(re.fullmatch(r".+=[01]\.\d{3}", label) for label in phrases)
    marked = [Tree.fromstring(line) for line in parse(TEXT, "--confidence")]
    assert [Cleaning(repeats=False).apply(tree) for tree in marked] == plain
    assert evaluate(DEV, marked).f1 == evaluate(DEV, plain).f1


def test_tags(parse):
    gold = "".join(" ".join(f"{word}/{tag}" for word, tag in tree.pos()) + "\n" for tree in DEV)
    trees = [Tree.fromstring(line) for line in parse(gold, "--tags=hard")]
    assert [tree.pos() for tree in trees] == [tree.pos() for tree in DEV]
    soft = [Tree.fromstring(line) for line in parse(gold, "--tags=soft")]
    assert [tree.leaves() for tree in soft] == SENTENCES

    def n_wrong(trees):
        return sum(
            one != other for a, b in zip(trees, DEV, strict=True) for one, other in zip(a.pos(), b.pos(), strict=True)
        )

    plain = [Tree.fromstring(line) for line in parse(TEXT)]
    assert n_wrong(soft) < n_wrong(plain) / 2


def test_constraints(parse, run, model, tmp_path):
    text = "(NP the old man) smiled .\nhe ( saw the dog ) (PP with the man)\n(FOO the old) man smiled/VBD .\n\n"
    lines = parse(text, "--constraints", "--scores")
    trees = [Tree.fromstring(line.split("\t")[-1]) for line in lines]
    kinds = [line.split("\t")[5] for line in lines]
    assert kinds == ["ok", "coarse", "brackets", "empty"]
    assert [" ".join(tree.leaves()) for tree in trees][1] == "he saw the dog with the man"
    spans = [[(label, start, end) for label, start, end in brackets_of(tree)] for tree in trees]
    assert ("NP", 0, 3) in spans[0]
    assert ("PP", 4, 7) in spans[1]
    assert ("FOO", 0, 2) in spans[2]
    assert any(span[1:] == (1, 4) for span in spans[1])
    (tagged,) = parse("(NP the/DT old/NN)\n", "--constraints", "--tags=hard")
    assert "(NN old)" in tagged
    (tmp_path / "input").write_text(text, encoding="utf-8")
    command = ("-i", tmp_path / "input", "-o", tmp_path / "output", "--constraints", model)
    _, _, error = run(parse_command.main, *command)
    assert "sentence 3: the grammar has no tree with (FOO the old)" in error
    assert "3 with a fallback tree (1 brackets, 1 coarse, 1 empty)" in error


def test_bad_constraints_name_line_and_column(run, model, tmp_path):
    (tmp_path / "input").write_text("the man\nthe (NP old man\n", encoding="utf-8")
    code, _, error = run(parse_command.main, "--constraints", "-i", tmp_path / "input", model)
    assert code == EXIT_USAGE
    assert "the input:2:5: a bracket is not closed" in error
    code, _, error = run(parse_command.main, "--constraints", "--tokenize", "-i", tmp_path / "input", model)
    assert code == EXIT_USAGE
    assert "--constraints" in error


def test_slashes_and_tags(parse):
    (line,) = parse(r"a/DT 1/2/CD / // /NN x/ either\/or -LRB-/-LRB- dog/NO-SUCH-TAG" + "\n", "--tags=hard")
    words = ["a", "1/2", "/", "//", "/NN", "x/", r"either\/or", "-LRB-", "dog"]
    assert words_of(line) == words
    assert "(DT a)" in line
    assert "(CD 1/2)" in line
    (line,) = parse("1/2/CD and/or\n")
    assert words_of(line) == ["1/2/CD", "and/or"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\n", [[]]),
        ("dogs bark", [["dogs", "bark"]]),
        ("dogs bark\r\n\r\nhe ran\r\n", [["dogs", "bark"], [], ["he", "ran"]]),
        (" \t dogs\t\tbark \f\v\n", [["dogs", "bark"]]),
        ("\ufeffdogs bark\n", [["dogs", "bark"]]),
        (
            "New\u00a0York\u2028is \x85 \x1c\x1d big\u3000one\n",
            [["New\u00a0York\u2028is", "\x85", "\x1c\x1d", "big\u3000one"]],
        ),
        ("a\x02b \x01\n", [["a\x02b", "\x01"]]),
        ("( [ ) (x)\n", [["-LRB-", "[", "-RRB-", "-LRB-x-RRB-"]]),
        ("UNK UNK-LC \\UNK\n", [["UNK", "UNK-LC", "\\UNK"]]),
        ("x" * 200_000 + " ran\n", [["x" * 200_000, "ran"]]),
    ],
    ids=repr,
)
def test_lines_of_input(parse, tmp_path, text, expected):
    lines = parse(text)
    assert [words_of(line) for line in lines] == expected
    assert [line == "(TOP)" for line in lines] == [not words for words in expected]
    if all(expected):  # the bracket reader sees the same words
        assert [tree.leaves() for tree in read_trees(str(tmp_path / "output"))] == expected


def test_packed_input_and_output(run, model, tmp_path, parse):
    (tmp_path / "in.gz").write_bytes(gzip.compress(b"the dog barked .\n"))
    code, *_ = run(parse_command.main, "-q", "-i", tmp_path / "in.gz", "-o", tmp_path / "out.gz", model)
    assert code == 0
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()).decode().splitlines() == parse("the dog barked .")


def test_raw_text(parse):
    (line, empty) = parse('"It\'s (really) cold," she said.\n\n', "--tokenize")
    assert words_of(line) == [
        "``",
        "It",
        "'s",
        "-LRB-",
        "really",
        "-RRB-",
        "cold",
        ",",
        "''",
        "she",
        "said",
        ".",
    ]
    assert empty == "(TOP)"


def test_memory_bound(parse):
    lines = parse("the dog barked .\n" + "the dog " * 100 + "\n", "--max-memory=1", "--scores")
    assert [line.split("\t")[5] for line in lines] == ["ok", "flat"]


@pytest.mark.parametrize("threads", [1, 2])
def test_invalid_bytes(tsgkit, model, threads):
    done = tsgkit("parse", model, f"--threads={threads}", text=b"the dog barked .\nca\xff\nthe cat\n", code=2)
    assert "-:2:3: not valid utf-8: byte 0xff" in done.stderr
    assert len(done.stdout.splitlines()) == 1  # what came before is there


def test_a_failed_job_leaves_the_old_output(parse, tmp_path):
    parse("the dog barked .\n")
    before = (tmp_path / "output").read_bytes()
    assert "not valid utf-8" in parse(b"\xff\nthe cat\n", code=2)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["input", "output"]
    error = parse(b"the cat\n\xff\n", code=2)
    assert "not valid utf-8" in error
    assert "1 sentences are in" in error
    assert "output.partial; --resume continues from there" in error
    assert (tmp_path / "output").read_bytes() == before
    lines = parse("the cat\nthe dog barked .\n", "--resume", "--quiet")
    assert lines == parse("the cat\nthe dog barked .\n")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["input", "output"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--objective=best"], "--objective=best: must be one of mpd"),
        (["--kbest=0"], "--kbest=0: must be at least 1"),
        (["--threads=0"], "--threads=0: must be at least 1"),
        (["--tags=firm"], "--tags=firm: must be one of"),
        (["--tags=hard", "--tokenize"], "do not go together"),
        (["--threshold=1"], "--threshold=1: must be at least 0 and below 1"),
        (["--threshold=nan"], "--threshold=nan"),
        (["--pruning=all"], "--pruning=all: must be one of posterior, max-marginal"),
        (["--samples=0"], "--samples=0"),
        (["--seed=-1"], "--seed=-1"),
        (["--max-memory=0"], "--max-memory=0"),
        (["--max-length=x"], "--max-length=x: not a whole number"),
        (["--input=no-such-file"], "no-such-file: No such file"),
        (["--jobs=2"], "--jobs and --scheduler go with --backend"),
        (["--backend=dask"], "--backend=dask and --scheduler=ADDRESS go together"),
        (["--backend=joblib", "--scheduler=x"], "--backend=dask and --scheduler=ADDRESS go together"),
        (["--backend=cluster"], "--backend=cluster: must be one of local, joblib, dask"),
        (["--backend=joblib", "--chunk=0"], "--chunk=0: must be at least 1"),
        (["--score=village:dev", "--resume"], "--score parses nothing"),
        (["second.model"], "second.model"),
        (["--params=new"], "--params goes with --from-trees: alone it has no effect"),
        (["--heads=penn"], "--heads goes with --format=conllu"),
        (["--treebank=penn"], "--treebank goes with --from-trees, --score or --format=conllu"),
    ],
)
def test_wrong_options_of_parse(run, model, options, message):
    code, out, error = run(parse_command.main, *options, model)
    assert (code, out) == (2, "")
    assert message in error


def test_scores_of_trees_are_those_of_the_parser(run, model):
    code, out, _ = run(parse_command.main, "--score=village:dev", model)
    parser = Parser(model)
    expected = [parser.tree_log_probability(tree) for tree in load("village", "dev")]
    assert (code, [float(line) for line in out.splitlines()]) == (0, pytest.approx(expected, abs=1e-8))
    assert any(value > -math.inf for value in expected)


def test_a_model_beside_itself_parses_as_alone(run, model, tmp_path):
    (tmp_path / "input").write_text("the old dog barked .\n", encoding="utf-8")
    source = f"--input={tmp_path / 'input'}"
    alone, together = (run(parse_command.main, "--quiet", source, *models) for models in ([model], [model, model]))
    assert alone == together
    code, _, error = run(parse_command.main, "--objective=mpd", source, model, model)
    assert (code, "several models have an objective of their own" in error) == (2, True)


def test_models_that_are_none(run, tmp_path, model):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "cut").write_bytes(model.read_bytes()[:5000])
    for name in ("empty", "cut", "missing", "."):
        code, out, error = run(parse_command.main, tmp_path / name)
        assert (code, out) == (2, "")
        assert error.startswith(f"tsgkit: {tmp_path / name}")


# ---- resuming -----------------------------------------------------------------------------------------------


def test_another_job_is_not_resumed(parse, tmp_path):
    assert "not valid utf-8" in parse(b"the cat\n\xff\n", code=2)
    text = "the cat\nthe dog barked .\n"
    assert "(kbest differ)" in parse(text, "--resume", "--kbest=2", code=2)
    assert "(seed differ)" in parse(text, "--resume", "--seed=2", code=2)
    assert "first 1 lines of the input" in parse(text.upper(), "--resume", code=2)
    other = tmp_path / "other"
    assert train_command.main(["--model=cfg", "-q", "--horizontal=0", f"--output={other}", "village:train"]) == 0
    assert "(models differ)" in parse(text, "--resume", path=other, code=2)
    assert len(parse(text, "--resume")) == 2


def test_resume_needs_a_file(run, model):
    for options in (["--resume"], ["--resume", "--output=/dev/null"]):
        code, _, error = run(parse_command.main, *options, model)
        assert code == 2
        assert "--resume goes with --output=FILE" in error


def test_output_to_a_device(run, model, tmp_path):
    (tmp_path / "input").write_text("the dog barked .\n")
    assert run(parse_command.main, "-q", "-i", tmp_path / "input", "-o", "/dev/null", model)[0] == 0


def test_eval_and_the_package_load_neither_numpy_nor_nltk(tmp_path):
    (tmp_path / "gold").write_text("(TOP (S (NN dogs) (VB bark)))\n")
    code = (
        "import sys, tsgkit, tsgkit._cli\n"
        "assert tsgkit._cli.main(['eval', 'gold', 'gold', '--summary']) == 0\n"
        "print(sorted({'numpy', 'nltk'} & set(sys.modules)))\n"
        "assert tsgkit.Parser.__name__ == 'Parser'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# ---- a real treebank -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_penn_sample(treebanks, run, tmp_path, parse):
    """The figure is that of a PCFG; what counts is that nothing fails on real sentences."""
    train = treebanks / "wsj-sample" / "train.mrg"
    assert run(train_command.main, "--model=cfg", "-q", "-o", tmp_path / "m", train)[0] == 0
    gold = [tree for tree in read_trees(str(treebanks / "wsj-sample" / "dev.mrg")) if len(tree.leaves()) <= 25]
    gold = gold[:80]
    lines = parse("".join(f"{' '.join(tree.leaves())}\n" for tree in gold), path=tmp_path / "m")
    trees = [Tree.fromstring(line) for line in lines]
    assert [tree.leaves() for tree in trees] == [tree.leaves() for tree in gold]
    assert round(evaluate(gold, trees).f1, 2) == 75.6


# ---- trees as input ----------------------------------------------------------------------------------------


def test_a_file_of_trees_is_recognised(tsgkit, model, tmp_path):
    path = tmp_path / "dev.mrg"
    tsgkit("prepare", "-q", "village:dev", "-o", path)
    refused = tsgkit("parse", model, "-i", path, code=2)
    assert f"{path} has trees, not sentences; --from-trees parses their words" in refused.stderr
    refused = tsgkit("parse", model, "--input=village:dev", code=2)
    assert "village:dev is a treebank; --from-trees parses its words" in refused.stderr
    assert "the input has trees" in tsgkit("parse", model, text=path.read_text(), code=2).stderr
    # Brackets that are words are words.
    assert tsgkit("parse", "-q", model, text="( a remark )\n").stdout.count("(") > 3


def test_trees_are_parsed_and_scored_at_once(tsgkit, model, tmp_path):
    tsgkit("prepare", "-q", "village:dev", "-o", "dev.mrg")
    tsgkit("prepare", "-q", "--write=words", "village:dev", "-o", "dev.txt")
    tsgkit("parse", "-q", model, "-i", "dev.txt", "-o", "parsed.mrg")
    wanted = tsgkit("compare", "dev.mrg", "parsed.mrg", "parsed.mrg").stdout.split(": ")[1].splitlines()[0]
    done = tsgkit("parse", "-q", "--from-trees", model, "-i", "village:dev", "-o", "again.mrg")
    assert done.stdout == f"village:dev: {wanted}\n"
    assert (tmp_path / "again.mrg").read_bytes() == (tmp_path / "parsed.mrg").read_bytes()
    streamed = tsgkit("parse", "-q", "--from-trees", model, "-i", "village:dev")
    assert streamed.stdout == (tmp_path / "parsed.mrg").read_text()
    assert streamed.stderr == f"village:dev: {wanted}\n"
    tagged = tsgkit("parse", "-q", "--from-trees", "--tags=hard", model, "-i", "village:dev", "-o", "tagged.mrg")
    assert float(re.search(r"EVALB ([\d.]+)", tagged.stdout)[1]) > float(re.search(r"EVALB ([\d.]+)", wanted)[1])
    assert "--kbest" in tsgkit("parse", "--from-trees", "--kbest=2", model, "-i", "village:dev", code=2).stderr


def test_chains_that_repeat_a_label_are_noticed(tsgkit, tmp_path):
    """The objectives choose no such chain; as one phrase they find it."""
    chain = "(TOP (S (NP (X (NP (DT the) (NN dog)))) (VP (VBD ran)) (. .)))\n"
    (tmp_path / "chains.mrg").write_text(chain * 5)
    message = tsgkit("train", "--model=cfg", "--vertical=1", "-o", "a.model", "chains.mrg").stderr
    assert "17% of the phrases repeat a label of their unary chain" in message
    words = "the dog ran .\n"
    assert tsgkit("parse", "-q", "a.model", text=words).stdout == chain.replace(
        "(X (NP (DT the) (NN dog)))", "(DT the) (NN dog)"
    )
    options = ("--model=cfg", "--vertical=1", "--collapse-unaries")
    message = tsgkit("train", *options, "-o", "b.model", "chains.mrg").stderr
    assert "unary chain" not in message
    assert tsgkit("parse", "-q", "b.model", text=words).stdout == chain
    assert "unary chain" not in tsgkit("train", "--model=cfg", "-o", "c.model", "village:dev").stderr


def test_a_file_of_sentences_is_no_model(tsgkit, tmp_path):
    """As a user of other parsers would give it."""
    tsgkit("train", "-q", "--model=cfg", "-o", "m.model", "village:dev")
    (tmp_path / "words.txt").write_text("The old man smiled .\n")
    error = tsgkit("parse", "m.model", "words.txt", code=2).stderr
    assert error == "tsgkit: words.txt: not a model; sentences are read from --input=words.txt, or from stdin\n"
    error = tsgkit("parse", "words.txt", code=2).stderr
    assert error == "tsgkit: words.txt: not a tsgkit file; `tsgkit info` says what it is\n"


def test_the_default_model_is_srtsg(tsgkit):
    options = ["--splits=1", "--split-iterations=2", "--joint-iterations=1", "--average=1", "--log=train.log"]
    done = tsgkit("train", *options, "village:dev", "-o", "m")
    assert "m: 65 trees" in done.stderr
    assert '"model": "srtsg"' in tsgkit("info", "--json", "m").stdout
