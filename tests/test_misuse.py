"""Command lines that do not fit the usage."""

import pytest

from tsgkit._guesses import did_you_mean
from tsgkit._misuse import misuse
from tsgkit._usage import usage_text

USAGE = """Do something.

Usage:
  tsgkit thing [options] [--by=WHAT]... --into=FILE A [B]
  tsgkit thing [options] --list
  tsgkit thing -h | --help | --version

Options:
  -i FILE, --into=FILE  where
  --by=WHAT  how
  --list     list
  --limit=N  how many
  -q, --quiet  no messages
  -v, --verbose  more messages
"""


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["--into=f", "a"], ""),
        (["-qvif", "a", "b"], ""),
        (["--in", "f", "--by=x", "--by=y", "--", "-a"], ""),
        (["--list"], ""),
        (["--lim", "3", "--list"], ""),
        (["--li", "3"], "--li can be --list or --limit"),
        (["--lits"], "no option --lits; did you mean --list?"),
        (["--zzz"], "no option --zzz"),
        (["-qx"], "no option -x"),
        (["-limit", "3"], "no option -limit; did you mean --limit?"),
        (["-limit=3"], "no option -limit; did you mean --limit?"),
        (["a", "-i"], "--into needs a value: --into=FILE"),
        (["--list=3"], "--list takes no value"),
        (["--into=f", "--into=g", "a"], "--into is given twice"),
        (["--into=f"], "A is missing"),
        (["a"], "--into=FILE is missing"),
        (["--into=f", "a", "b", "c"], "'c' is one argument too many"),
    ],
)
def test_problems(given, problem):
    assert misuse(USAGE, given) == problem


def test_options_of_other_parsers_are_known():
    usage = usage_text("parse")
    assert misuse(usage, ["m", "--goldpos"]) == "no option --goldpos; did you mean --tags?"
    assert misuse(usage, ["m", "-useGoldPOS"]) == "no option -useGoldPOS; did you mean --tags?"
    assert misuse(usage, ["m", "-k", "5"]) == "no option -k; did you mean --kbest?"
    assert misuse(usage, ["m", "-kbest", "5"]) == "no option -kbest; did you mean --kbest?"
    assert misuse(usage_text("eval"), ["-p", "new.prm", "a", "b"]) == "no option -p; did you mean --params?"


def test_a_guess_is_made_only_if_something_is_similar():
    assert did_you_mean("prase", ["train", "parse"]) == "; did you mean parse?"
    assert did_you_mean("xyz", ["train", "parse"]) == ""
    assert did_you_mean("CFG", ["cfg", "tsg"]) == "; did you mean cfg?"
