"""``tsgkit eval`` as a user runs it: whole outputs, options and mistakes."""

import gzip
import json
import subprocess
import sys

import pytest

from tsgkit import __version__

GOLD = "(TOP (S (NP (DT the) (NN dog)) (VP (VBD ran) (ADVP (RB away)))))\n" * 3
TEST = (
    "(TOP (S (NP (DT the) (NN dog)) (VP (VBD ran) (NP (RB away)))))\n"
    "\n"
    "(TOP (S (NP (DT the) (NN dog)) (VP (VBD sat) (ADVP (RB away)))))\n"
)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "gold").write_text(GOLD)
    (tmp_path / "test").write_text(TEST)
    (tmp_path / "best").write_text(GOLD)
    return tmp_path


def test_whole_output(files, tsgkit):
    done = tsgkit("eval", "gold", "test")
    assert done.stdout == (
        "  Sent.                        Matched  Bracket   Cross        Correct Tag\n"
        " ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy\n"
        "============================================================================\n"
        "   1    4    0   75.00  75.00     3      4    4      0      4     4   100.00\n"
        "   2    4    2    0.00   0.00     0      0    0      0      0     0     0.00\n"
        "   3    4    1    0.00   0.00     0      0    0      0      0     0     0.00\n"
        "============================================================================\n"
        "                 75.00  75.00      3     4     4      0      4     4   100.00\n"
        "=== Summary ===\n"
        "\n"
        "-- All --\n" + BLOCK + "\n"
        "-- len<=40 --\n" + BLOCK + "\n"
        "=== Strict: failed and mismatched sentences count as wrong ===\n"
        "\n"
        "Number of sentence        =      3\n"
        "Bracketing Recall         =  25.00\n"
        "Bracketing Precision      =  37.50\n"
        "Bracketing FMeasure       =  30.00\n"
        "Complete match            =   0.00\n"
        "Tagging accuracy          =  33.33\n"
        "\n"
        "=== Aligned: the same, with punctuation by the gold tags ===\n"
        "\n"
        "Number of sentence        =      3\n"
        "Bracketing Recall         =  25.00\n"
        "Bracketing Precision      =  37.50\n"
        "Bracketing FMeasure       =  30.00\n"
        "Complete match            =   0.00\n"
        "Tagging accuracy          =  33.33\n"
    )
    assert done.stderr == "test:3: word 'sat' where the gold tree has 'ran'\n"


BLOCK = (
    "Number of sentence        =      3\n"
    "Number of Error sentence  =      1\n"
    "Number of Skip  sentence  =      1\n"
    "Number of Valid sentence  =      1\n"
    "Bracketing Recall         =  75.00\n"
    "Bracketing Precision      =  75.00\n"
    "Bracketing FMeasure       =  75.00\n"
    "Complete match            =   0.00\n"
    "Average crossing          =   0.00\n"
    "No crossing               = 100.00\n"
    "2 or less crossing        = 100.00\n"
    "Tagging accuracy          = 100.00\n"
)


def test_summary_and_quiet(files, tsgkit):
    whole = tsgkit("eval", "gold", "test").stdout
    done = tsgkit("eval", "--summary", "--quiet", "gold", "test")
    assert done.stdout == whole[whole.index("=== Summary") :]
    assert done.stderr == ""


def test_stdin_and_packed_files(files, tsgkit):
    (files / "gold.gz").write_bytes(gzip.compress(GOLD.encode()))
    assert tsgkit("eval", "gold.gz", "-", text=TEST).stdout == tsgkit("eval", "gold", "test").stdout


def test_by_label_and_length(files, tsgkit):
    done = tsgkit("eval", "--summary", "--by=label", "--by=length", "gold", "test")
    assert done.stdout.partition("=== By label")[2] == (
        " ===\n"
        "\n"
        "Label  Gold  matched  Test  matched  Recall   Prec.      F1\n"
        "NP        1        1     2        1  100.00   50.00   66.67\n"
        "S         1        1     1        1  100.00  100.00  100.00\n"
        "VP        1        1     1        1  100.00  100.00  100.00\n"
        "ADVP      1        0     0        0    0.00    0.00    0.00\n"
        "\n"
        "Same span, different label:\n"
        "\n"
        "Gold  Test  Count\n"
        "ADVP  NP        1\n"
        "\n"
        "=== By length ===\n"
        "\n"
        "Length  Sentences  Valid  Gold  Test  Matched  Recall  Prec.     F1  Complete\n"
        "0-10            3      1     4     4        3   75.00  75.00  75.00      0.00\n"
    )


def test_json(files, tsgkit):
    result = json.loads(tsgkit("eval", "--json", "--by=label", "--by=length", "gold", "test").stdout)
    assert result["parameters"]["delete_labels"][0] == "TOP"
    assert result["all"]["f1"] == 75
    assert result["all"]["valid"] == 1
    assert result["cutoff"] == result["all"]
    assert result["strict"]["f1"] == pytest.approx(30)
    assert [row["status"] for row in result["sentences"]] == [0, 2, 1]
    assert result["sentences"][0]["id"] == 1
    assert result["errors"] == [
        {
            "kind": "word differs",
            "location": "test:3",
            "line": 3,
            "message": "word 'sat' where the gold tree has 'ran'",
        }
    ]
    assert result["by_label"][0]["label"] == "NP"
    assert result["confusions"] == [{"gold": "ADVP", "test": "NP", "count": 1}]
    assert result["by_length"][0]["longest"] == 10
    assert "sentences" not in json.loads(tsgkit("eval", "--json", "--summary", "gold", "test").stdout)


def test_json_without_brackets_has_nulls(files, tsgkit):
    (files / "empty").write_text("")
    result = json.loads(tsgkit("eval", "--json", "empty", "empty").stdout)
    assert result["all"]["f1"] is None
    assert result["strict"]["complete_match"] is None


def test_two_systems(files, tsgkit):
    done = tsgkit("eval", "--resamples=200", "--by=label", "gold", "best", "test")
    assert done.stdout.startswith("A = best\nB = test\n\n=== EVALB ===\n")
    assert ["F1", "100.00", "75.00", "+25.00"] in [line.split() for line in done.stdout.splitlines()]
    assert "(paired bootstrap over 3 sentences, two-sided, 200 resamples, seed 1)" in done.stdout
    assert "\n##### test\n\n=== By label" in done.stdout
    assert done.stdout == tsgkit("eval", "--resamples=200", "--by=label", "gold", "best", "test").stdout
    result = json.loads(tsgkit("eval", "--resamples=200", "--seed=7", "--json", "gold", "best", "test").stdout)
    assert [system["test"] for system in result["systems"]] == ["best", "test"]
    assert result["comparison"]["strict"]["difference"] == pytest.approx(70)
    assert result["comparison"]["evalb"]["seed"] == 7


def test_many_errors_only_warn(files, tsgkit):
    (files / "wrong").write_text("(S (X a) (. .))\n" * 20)
    (files / "right").write_text("(S (X b) (. .))\n" * 20)
    done = tsgkit("eval", "right", "wrong")
    assert "Number of Error sentence  =     20\n" in done.stdout
    assert len(done.stderr.splitlines()) == 11
    assert done.stderr.endswith(
        "tsgkit: wrong: 20 errors, more than MAX_ERROR 10; "
        "EVALB's score leaves these sentences out, the strict and the aligned score do not\n"
    )


def test_stop_on_errors(files, tsgkit):
    (files / "wrong").write_text("(S (X a))\n" * 20)
    (files / "right").write_text("(S (X b))\n" * 20)
    done = tsgkit("eval", "--stop-on-errors", "right", "wrong", code=1)
    assert len(done.stdout.splitlines()) == 3 + 11
    assert "Summary" not in done.stdout
    assert done.stderr.endswith("tsgkit: stopped at line 12: too many errors\n")
    assert tsgkit("eval", "--stop-on-errors", "right", "right").stdout == tsgkit("eval", "right", "right").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gold", "nowhere"], "tsgkit: nowhere: No such file or directory\n"),
        (["village:dev", "gold"], "tsgkit: village:dev: what is scored are files with one tree per line; `tsgkit prep"),
        (["--params=nowhere", "gold", "test"], "tsgkit: nowhere: no such parameter file; "),
        (["--params=wrong.prm", "gold", "test"], "tsgkit: wrong.prm:1:1: unknown key 'WRONG'; "),
        (["--by=size", "gold", "test"], "tsgkit: --by=size: must be one of label, length\n"),
        (["--resamples=0", "gold", "test"], "tsgkit: --resamples=0: must be at least 1\n"),
        (["--seed=x", "gold", "test"], "tsgkit: --seed=x: not a whole number\n"),
        (["-", "-"], "tsgkit: only one of the files can be -, the standard input\n"),
        (["gold", "test", "short"], "tsgkit: a paired test needs the same sentences, "),
        (["gold"], "Usage:"),
        (["gold", "."], "tsgkit: .: Is a directory\n"),
    ],
)
def test_mistakes(files, tsgkit, arguments, message):
    (files / "wrong.prm").write_text("WRONG 1\n")
    (files / "short").write_text("(S (X a))\n")
    done = tsgkit("eval", *arguments, code=2)
    assert message in done.stderr
    assert done.stdout == ""


def test_help_and_version(tsgkit):
    assert "--stop-on-errors" in tsgkit("eval", "--help").stdout
    assert tsgkit("eval", "--version").stdout == f"tsgkit {__version__}\n"


def test_other_scripts_whatever_the_locale(files, tsgkit, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    (files / "日本").write_text("(名 (X a))\n", encoding="utf-8")
    assert "名" in tsgkit("eval", "--by=label", "日本", "日本").stdout


def test_imports_stay_light(files):
    """The command must not spend its time on imports: no numpy, no nltk."""
    code = (
        "import sys; from tsgkit._cli import main; main(['eval', 'gold', 'test']); "
        "sys.exit(bool({'numpy', 'nltk', 'tqdm', 'json'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=files, capture_output=True, check=True)
