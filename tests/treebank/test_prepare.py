"""`tsgkit prepare` as a user runs it, and preprocessing of real treebanks and its inverse."""

import gzip
import itertools
import subprocess
import sys

import pytest
from nltk.tree import Tree

from tsgkit.treebank import Binarization, Cleaning, FlatCorpus, UnknownWords, load, prepare, read_trees
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._prepare import Preparation, preparation_of, split_trees, tree_height
from tsgkit.treebank._trees import same_tree, words

BINARIZATIONS = [
    Binarization(method, horizontal, vertical)
    for method, (horizontal, vertical) in itertools.product(
        ("right", "left", "centre-head"), ((None, 1), (0, 1), (1, 2), (2, 3))
    )
]


def there_and_back(trees):
    for tree in trees:
        clean = Cleaning().apply(tree)
        if clean is None:
            continue
        chained = Cleaning(unaries=True).apply(tree)
        for steps in BINARIZATIONS:
            assert same_tree(steps.undo(steps.apply(clean)), clean)
        preparation = Preparation(Cleaning(unaries=True), BINARIZATIONS[1])
        assert same_tree(preparation.decode(BINARIZATIONS[1].apply(chained)), clean)


def test_bundled_treebank_there_and_back():
    there_and_back(load("village"))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_penn_sample_there_and_back(penn_sample, part):
    there_and_back(penn_sample[part::4])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["craft/dev.mrg", "craft/train.mrg"])
def test_craft_there_and_back(treebanks, name):
    """Each tree with all binarisations or, in the large part, with one of each method."""
    for number, tree in enumerate(read_trees(treebanks / name)):
        for step in BINARIZATIONS if "dev" in name else BINARIZATIONS[number % 4 :: 4]:
            assert same_tree(step.undo(step.apply(tree)), tree)


def test_prepared_corpus_keeps_the_words(tmp_path):
    trees = load("village", "train")
    corpus = prepare(trees, binarization=Binarization("right", 1), unknown=UnknownWords("signature", 1))
    corpus.save(tmp_path / "c.npz")
    again = FlatCorpus.load(tmp_path / "c.npz")
    steps = preparation_of(again)
    assert steps.to_dict() == preparation_of(corpus).to_dict()
    cleaned = [Cleaning().apply(tree) for tree in trees]
    for clean, with_forms, with_classes in zip(cleaned, again.trees(), again.trees(original_words=False), strict=True):
        assert same_tree(steps.decode(with_forms), clean)
        assert steps.vocabulary_words(words(clean)) == words(with_classes)
        assert same_tree(steps.decode(with_classes, words(clean)), clean)
    assert len(again.words) < len(again.forms)


def test_split_is_a_partition():
    trees = [Tree("N", [str(number)]) for number in range(101)]
    for seed in (None, 3):
        parts = split_trees(trees, [70, 15, 15], seed)
        assert sorted(int(tree[0]) for part in parts for tree in part) == list(range(101))
        assert [len(part) for part in parts] == [71, 15, 15]
    assert [tree[0] for tree in split_trees(trees, [1, 1], 3)[0]] != [tree[0] for tree in trees[:50]]


TEXT = "( (S (NP-SBJ-1 (DT The) (JJ old) (NN cat)) (VP (VBD ran) (NP (-NONE- *-1))) (. .)) )\n"


def test_defaults_clean(tsgkit):
    assert (
        tsgkit("prepare", "-", text=TEXT).stdout == "(TOP (S (NP (DT The) (JJ old) (NN cat)) (VP (VBD ran)) (. .)))\n"
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--keep-functions"], "(TOP (S (NP-SBJ-1 (DT The) (JJ old) (NN cat)) (VP (VBD ran)) (. .)))"),
        (
            ["--keep-empty", "--root=none"],
            "( (S (NP (DT The) (JJ old) (NN cat)) (VP (VBD ran) (NP (-NONE- *-1))) (. .)))",
        ),
        (["--empty-tags=-NONE-,."], "(TOP (S (NP (DT The) (JJ old) (NN cat)) (VP (VBD ran))))"),
        (
            ["--binarize=right", "--horizontal=0"],
            "(TOP (S (NP (DT The) (@NP (JJ old) (NN cat))) (@S (VP (VBD ran)) (. .))))",
        ),
        (
            ["--unknown=one", "--threshold=1"],
            "(TOP (S (NP (DT UNK) (JJ UNK) (NN UNK)) (VP (VBD UNK)) (. UNK)))",
        ),
        (["--root=ROOT"], "(ROOT (S (NP (DT The) (JJ old) (NN cat)) (VP (VBD ran)) (. .)))"),
    ],
)
def test_options(tsgkit, options, expected):
    assert tsgkit("prepare", *options, "-", text=TEXT).stdout == expected + "\n"


def test_debinarize(tsgkit):
    options = ["--binarize=centre-head", "--horizontal=1", "--vertical=2"]
    made = tsgkit("prepare", *options, "-", text=TEXT).stdout
    assert "@" in made
    undone = tsgkit("prepare", *options, "--debinarize", "-", text=made).stdout
    assert undone == tsgkit("prepare", "-", text=TEXT).stdout


def test_pretty_export_and_compressed_output_read_back(tsgkit, tmp_path):
    clean = tsgkit("prepare", "village:dev").stdout
    for write, name in (
        ("pretty", "a.mrg"),
        ("export", "a.export"),
        ("line", "a.mrg.gz"),
        ("line", "a.mrg.xz"),
    ):
        tsgkit("prepare", "village:dev", f"--write={write}", "-o", name)
        assert tsgkit("prepare", name).stdout == clean
    (tmp_path / "folder" / "deeper").mkdir(parents=True)
    (tmp_path / "folder" / "b.mrg").write_bytes(gzip.compress(TEXT.encode()))
    (tmp_path / "folder" / "deeper" / "a.mrg").write_text(TEXT)
    assert (
        tsgkit("prepare", "folder").stdout
        == tsgkit("prepare", "folder/**/*.mrg").stdout
        == tsgkit("prepare", "-", text=TEXT).stdout * 2
    )


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (["-"], TEXT + "(S (NP x)\n", "-:2:1: unbalanced brackets"),
        (["nothing.mrg"], "", "nothing.mrg: there is no such file"),
        (["nltk:nonsense"], "", "nltk:nonsense: NLTK has no corpus"),
        (["nltk:words"], "", "nltk:words:"),
        (["village:nonsense"], "", "the parts are train, dev, test"),
        (["--binarize=up", "-"], "", "--binarize=up: must be one of none, right, left, centre-head"),
        (["--split=1", "-"], TEXT, "--split=1: must be two or three shares"),
        (["--split=1,1", "-"], TEXT, "name them with --output"),
        (["--encoding=klingon", "-"], TEXT, "encoding 'klingon'"),
        (["-o", "no/such/folder/x", "-"], TEXT, "No such file or directory"),
        (["--debinarize", "-"], TEXT, "--debinarize needs --binarize"),
        (["--debinarize", "--binarize=left", "-o", "x.npz", "-"], TEXT, "--debinarize writes trees"),
        (["--shuffle=1", "-"], TEXT, "--shuffle needs --split"),
        (["--statistics", "--split=1,1", "-"], TEXT, "--statistics cannot be combined with --split"),
        (["--binarize=centre-head", "--heads=nowhere.txt", "-"], TEXT, "nowhere.txt"),
    ],
)
def test_mistakes(tsgkit, arguments, text, message):
    result = tsgkit("prepare", *arguments, text=text, code=2)
    assert result.stdout == ""
    assert message in result.stderr


def test_bad_bytes_have_their_place(tsgkit, tmp_path):
    result = tsgkit("prepare", "-", text=TEXT.encode() + "(N Gr\u00fcn\xff)".encode("latin-1"), code=2)
    assert "-:2:6: not valid utf-8: byte 0xfc" in result.stderr
    assert (
        tsgkit("prepare", "--encoding=latin-1", "-", text="(N Gr\u00fcn)".encode("latin-1")).stdout
        == "(TOP (N Grün))\n"
    )
    (tmp_path / "cut.gz").write_bytes(gzip.compress(TEXT.encode() * 100)[:60])
    assert "damaged or cut short" in tsgkit("prepare", "cut.gz", code=2).stderr


def test_missing_corpus_gives_the_download_hint(tsgkit_process, monkeypatch):
    monkeypatch.setenv("NLTK_DATA", "nowhere")
    assert "nltk.download('sinica_treebank')" in tsgkit_process("prepare", "nltk:sinica_treebank", code=2).stderr


def test_skip_bad_lists_what_it_skips(tsgkit):
    result = tsgkit("prepare", "--skip-bad", "--max-bad=0.4", "-", text=TEXT + "(S (NP x)\n" + TEXT)
    assert len(result.stdout.splitlines()) == 2
    assert "skipped: -:2:1: unbalanced brackets" in result.stderr
    assert "tsgkit: skipped 1 of 3 (33.3%): unbalanced brackets 1" in result.stderr


def test_too_many_bad_trees(tsgkit, tmp_path):
    bad = "(S (NP x)\n"
    for text, limit in ((TEXT + bad, "0.4"), (TEXT * 30 + bad * 2, "5%"), (bad, "1")):
        result = tsgkit("prepare", "--skip-bad", f"--max-bad={limit}", "-", "-o", "out.mrg", text=text, code=2)
        assert "tsgkit: too many bad trees: " in result.stderr
        assert not (tmp_path / "out.mrg").exists()
    result = tsgkit("prepare", "--skip-bad", "--max-bad=all", "-", code=2)
    assert "--max-bad=all: must be a share from 0 to 1" in result.stderr


def test_the_list_of_bad_trees_is_cut_or_goes_to_a_file(tsgkit, tmp_path):
    bad = "(S (A b) c)\n"
    options = ("prepare", "--skip-bad", "--max-bad=90%", "-", "-o", "out.mrg")
    result = tsgkit(*options, text=bad * 25 + "(S (A b)\n" + "(S (A b))\n" * 25)
    lines = result.stderr.splitlines()
    assert sum(line.startswith("skipped: -:") for line in lines) == 21
    assert "skipped: 5 more of the kind 'stray token'; --list-bad=FILE lists all" in lines
    assert lines[-1] == "tsgkit: skipped 26 of 51 (51.0%): stray token 25, unbalanced brackets 1"
    result = tsgkit(*options, "--list-bad=bad.txt", text=bad * 25 + "(S (A b))\n" * 25)
    assert result.stderr.splitlines() == ["tsgkit: skipped 25 of 50 (50.0%): stray token 25"]
    assert len((tmp_path / "bad.txt").read_text().splitlines()) == 25
    # The list is there even if too many are bad.
    tsgkit("prepare", "--skip-bad", "-", "-o", "no.mrg", "--list-bad=more.txt", text=bad * 30, code=2)
    assert len((tmp_path / "more.txt").read_text().splitlines()) == 30
    assert "give both" in tsgkit("prepare", "-", "--list-bad=x", code=2, text=bad).stderr


def test_presets(tsgkit, tmp_path):
    listed = tsgkit("prepare", "--list-presets").stdout
    assert "cess: CESS-ESP" in listed
    assert "    - Marcus, Santorini and Marcinkiewicz (1993)" in listed
    text = "( (S (sn-SUJ (da0ms0 El el) (ncms000 gato gato)) (vmip3s0 corre correr) (Fp . .)))"
    result = tsgkit("prepare", "--treebank=cess", "-", text=text)
    assert result.stdout == "(TOP (S (sn (da El) (nc gato)) (vmi corre) (Fp .)))\n"
    # Options that are given win, and rules for labels come before those of the preset.
    (tmp_path / "my.labels").write_text("tag v* -> V\n")
    more = ("--keep-functions", "--root=none", "--labels=my.labels")
    result = tsgkit("prepare", "--treebank=cess", *more, "-", text=text)
    assert result.stdout == "( (S (sn-SUJ (da El) (nc gato)) (V corre) (Fp .)))\n"
    centre = ("--binarize=centre-head", "--horizontal=0")
    heads = tsgkit(
        "prepare",
        "--treebank=cess",
        *centre,
        "-",
        text=text.replace("(vmi", "(grup.verb (vmi").replace("correr)", "correr))"),
    )
    assert heads.stdout == "(TOP (S (sn (da El) (nc gato)) (@S (grup.verb (vmi corre)) (Fp .))))\n"
    assert "neither a file nor one of" in tsgkit("prepare", "--treebank=klingon", "-", code=2).stderr


@pytest.mark.parametrize(("word", "other"), [("(", "-LRB-"), ("-LRB-", "("), ("{", "-LCB-"), ("1/2", r"1\/2")])
def test_brackets_are_known_by_both_spellings(word, other):
    """Treebanks in XML have brackets, and files of brackets that are prepared from them names of brackets."""
    corpus = prepare([Tree("S", [Tree("P", [word]), Tree("N", ["a"])])], unknown=UnknownWords("one", 0))
    preparation = preparation_of(corpus)
    assert preparation.vocabulary_words([word, "a"]) == preparation.vocabulary_words([other, "a"]) == [word, "a"]


def test_labels_are_restored(tsgkit, tmp_path):
    (tmp_path / "my.labels").write_text("tag PUNCT -> .\ntag N* -> N\n")
    (tmp_path / "bank").write_text(
        "(S (NP (N1 dog)) (VP (V ran)) (PUNCT .))\n(S (NP (N2 cat)) (VP (V ran)) (PUNCT .))\n"
    )
    tsgkit("train", "-q", "--model=cfg", "--labels=my.labels", "bank", "-o", "m")
    parsed = tsgkit("parse", "-q", "m", text="dog ran .\n").stdout
    assert parsed == "(TOP (S (NP (N dog)) (VP (V ran)) (. .)))\n"
    restored = tsgkit("prepare", "--restore-labels=m", "-", text=parsed).stdout
    assert restored == "(TOP (S (NP (N dog)) (VP (V ran)) (PUNCT .)))\n"
    tsgkit("train", "-q", "--model=cfg", "bank", "-o", "plain")
    assert "this model has no labels to restore" in tsgkit("prepare", "--restore-labels=plain", "-", code=2).stderr


def test_evaluation_by_preset(tsgkit, tmp_path):
    (tmp_path / "gold").write_text("(TOP (S (NP (N a)) (VP (V b)) (PONCT .)))\n")
    (tmp_path / "test").write_text("(TOP (S (NP (N a)) (VP (V b) (PONCT .))))\n")
    for more, expected in (((), "66.67"), (("--treebank=ftb",), "100.00")):
        lines = tsgkit("eval", *more, "gold", "test").stdout.splitlines()
        assert next(line for line in lines if "FMeasure" in line).split()[-1] == expected


def test_discontinuous_trees(tsgkit):
    rows = ["das PDS -- OA 500", "hat VAFIN -- HD 501", "gesagt VVPP -- HD 500", "#500 VP -- OC 501", "#501 S -- -- 0"]
    text = "\n".join(["#BOS 1", *rows, "#EOS 1"])
    result = tsgkit("prepare", "--format=export", "-", text=text, code=2)
    assert "discontinuous tree" in result.stderr
    assert "--continuous makes it one" in result.stderr
    result = tsgkit("prepare", "--format=export", "--continuous", "-", text=text)
    assert result.stdout == "(TOP (S (PDS das) (VAFIN hat) (VP (VVPP gesagt))))\n"
    assert "made 1 tree continuous" in result.stderr


def test_features_of_labels(tsgkit):
    text = "(S (NP:pl (N:pl:nom cats)) (V sleep) (: :))\n"
    result = tsgkit("prepare", "--cut-labels=:", "-", text=text)
    assert result.stdout == "(TOP (S (NP (N cats)) (V sleep) (: :)))\n"


def test_split_and_statistics(tsgkit, tmp_path):
    tsgkit("prepare", "village", "--split=80,10,10", "--shuffle=1", "-o", "s.mrg.gz", "--quiet")
    names = [f"s.{part}.mrg.gz" for part in ("train", "dev", "test")]
    lines = [tsgkit("prepare", name).stdout.splitlines() for name in names]
    assert sorted(itertools.chain(*lines)) == sorted(tsgkit("prepare", "village").stdout.splitlines())
    table = tsgkit("prepare", "village:dev", "--statistics").stdout
    assert table.splitlines()[0].split() == ["trees", str(len(load("village", "dev")))]


def test_parts_of_a_split_share_the_vocabulary_of_the_first(tsgkit, tmp_path):
    tsgkit("prepare", "village", "--split=1,1", "--unknown=one", "--binarize=right", "-o", "s.npz")
    train, test = (FlatCorpus.load(tmp_path / f"s.{part}.npz") for part in ("train", "test"))
    assert preparation_of(test).lexicon == preparation_of(train).lexicon
    tsgkit("prepare", "village", "--split=1,1", "--unknown=one", "--binarize=right", "-o", "s.mrg")
    written = [words(tree) for tree in read_trees(tmp_path / "s.test.mrg")]
    assert written == [words(tree) for tree in test.trees(original_words=False)]


def test_flat_corpus_from_the_command_line(tsgkit, tmp_path):
    tsgkit("prepare", "village:dev", "--binarize=right", "--unknown=unicode", "-o", "c.npz")
    corpus = FlatCorpus.load(tmp_path / "c.npz")
    decoded = [format_tree(preparation_of(corpus).decode(tree)) for tree in corpus.trees()]
    assert decoded == tsgkit("prepare", "village:dev").stdout.splitlines()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    script = (
        "import resource, sys; from tsgkit._cli import main;"
        "main(['prepare', '-o', 'out.mrg', 'in.mrg']);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peaks = []
    for repeats in (5_000, 40_000):
        (tmp_path / "in.mrg").write_text(TEXT * repeats)
        done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout))
    assert peaks[1] < peaks[0] + 8000  # kilobytes; the trees themselves would be a hundred thousand


@pytest.mark.slow
def test_a_very_deep_tree_from_the_command_line(tsgkit, tmp_path):
    depth = 100_000
    (tmp_path / "deep.mrg").write_text(
        "".join(f"(A{level % 2} (B b) (C c) " for level in range(depth)) + "(D d)" + ")" * depth
    )
    tsgkit("prepare", "deep.mrg", "--binarize=right", "--horizontal=1", "-o", "bin.mrg")
    tsgkit("prepare", "bin.mrg", "--binarize=right", "--horizontal=1", "--debinarize", "-o", "back.mrg")
    expected = "(TOP " + (tmp_path / "deep.mrg").read_text() + ")\n"
    assert (tmp_path / "back.mrg").read_text() == expected
    assert tree_height(next(iter(read_trees(tmp_path / "deep.mrg")))) == depth + 1


def test_words_short_trees_and_samples(tsgkit):
    words = tsgkit("prepare", "-q", "--write=words", "village:dev").stdout.splitlines()
    assert words[0] == "Good evening , Jack ."
    short = tsgkit("prepare", "-q", "--write=words", "--max-length=5", "village:dev").stdout.splitlines()
    assert short == [line for line in words if len(line.split()) <= 5]
    sample = tsgkit("prepare", "-q", "--write=words", "--sample=7", "village:dev").stdout.splitlines()
    assert len(sample) == 7
    places = [words.index(line) for line in sample]
    assert places == sorted(places)
    other = tsgkit("prepare", "-q", "--write=words", "--sample=7", "--shuffle=3", "village:dev").stdout.splitlines()
    assert other != sample
    assert len(tsgkit("prepare", "-q", "--sample=999", "village:dev").stdout.splitlines()) == len(words)
    assert "--shuffle needs" in tsgkit("prepare", "--shuffle=1", "village:dev", code=2).stderr
