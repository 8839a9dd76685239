"""What a user may give to commands: many labels, deep trees, models that do not go together, little memory."""

import subprocess
import sys
import time
from math import log

import pytest
from commands import run_forked, run_here
from processes import memory_limit, needs_proc

from tsgkit._exit_codes import EXIT_MEMORY

GREEK = """
(S (NP (AT ο) (NO σκύλος)) (VP (VB τρέχει)) (PT .))
(S (NP (AT η) (NO γάτα)) (VP (VB κοιμάται)) (PT .))
(S (NP (AT ο) (AJ μικρός) (NO σκύλος)) (VP (VB βλέπει) (NP (AT τη) (NO γάτα))) (PT ;))
"""
LOG_OF_GOING_ON, LOG_OF_ENDING = log(2000 / 2002), log(2 / 2002)
# By how much a process that forks commands may take more than one that only loads their modules.
LEEWAY = {"parse": 0, "train": 4 << 20}
TEXT = "the old man smiled .\nI will meet you at the station with the dog .\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("limits")


@pytest.fixture(scope="module")
def english(folder):
    assert (
        run_here(["train", "-q", "--model=tsg", "--iterations=2", "village:train", "-o", "en"], folder).returncode == 0
    )
    return folder / "en"


def test_insertion_with_many_labels(tsgkit, tmp_path):
    """The time of building the grammar grew with the square of their number: 90 seconds here."""
    (tmp_path / "bank").write_text("".join(f"(S (A{label} (B b) (C c)) (D d))\n" for label in range(10_000)))
    before = time.process_time()
    tsgkit("train", "-q", "--model=insertion", "--iterations=1", "--average=1", "bank", "-o", "m")
    assert time.process_time() - before < 45
    assert tsgkit("parse", "-q", "m", text="b c d\n").stdout.startswith("(TOP (S (A")


def test_deep_trees_are_scored_and_parsed(tsgkit, tmp_path):
    depth = 2000
    deep = "(TOP " + "(A (B b) " * depth + "(A b)" + ")" * depth + ")"
    (tmp_path / "bank").write_text(f"{deep}\n(TOP (A b))\n")
    tsgkit("train", "-q", "--model=cfg", "--vertical=1", "--threshold=0", "bank", "-o", "m")
    # Each tree by hand: 2,000 of 2,002 nodes A are internal.
    goes_on, _ = map(float, tsgkit("parse", "--score=bank", "m").stdout.split())
    assert goes_on == pytest.approx(depth * LOG_OF_GOING_ON + LOG_OF_ENDING, abs=1e-6)
    (line,) = tsgkit("parse", "-q", "--confidence", "m", text="b " * 300).stdout.splitlines()
    assert line.count("(A=1.000 ") == 299  # and a tag


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (["greek"], "do not go together: models 1 and 2 share"),
        (["village:train", "--binarize=left"], "do not go together: their trees were cleaned or binarised"),
    ],
    ids=["language", "binarisation"],
)
def test_models_that_do_not_go_together(tsgkit, tmp_path, english, source, message):
    (tmp_path / "greek").write_text(GREEK, "utf-8")
    tsgkit("train", "-q", "--model=tsg", "--iterations=1", *source, "-o", "other")
    for pair in ((english, "other"), ("other", english)):
        done = tsgkit("parse", "-q", *pair, text=TEXT, code=2)
        assert (done.stdout, message in done.stderr) == ("", True), done.stderr


def addresses_of_loaded_modules(name):
    """How many bytes of addresses a process takes before it runs a command."""
    code = f"import tsgkit._tools.{name}; print(open('/proc/self/status').read().split('VmPeak:')[1].split()[0])"
    peak = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) << 10
    return peak + LEEWAY[name]


# Megabytes of addresses above those of the loaded modules.
SOME_LIMITS = (1, 4, 12, 24, 64, 1024)
ALL_LIMITS = (*range(1, 40, 3), *range(40, 120, 10), *range(120, 361, 80), 2048)


def outcomes_under_limits(folder, command, limits, output=None):
    """The exit codes of a command under each limit: success, or lack of memory.

    Its results are the same as without a limit; where memory is lacking, stdout has those of the first sentences, line
    by line, and a file nothing.
    """

    def results(**limit):
        (done,) = run_forked([command], folder, TEXT, **limit)
        made = folder / output if output else None
        content = made.read_bytes() if made and made.exists() else b""
        for left in folder.glob(f"{output}*") if output else ():
            left.unlink()
        return done, content

    (whole, expected), codes = results(), []
    loaded = addresses_of_loaded_modules(command[0])
    for more in limits:
        done, found = results(**memory_limit(loaded + (more << 20)))
        # The C library ends a process that has no memory for what a module keeps for every thread.
        has_ended = done.returncode == 127 and "memory for thread-local data" in done.stderr
        assert done.returncode in (0, EXIT_MEMORY) or has_ended, (more, done)
        assert "Traceback" not in done.stderr
        if done.returncode == 0:
            assert (done.stdout, found) == (whole.stdout, expected), more
        else:
            assert whole.stdout.startswith(done.stdout), more
            assert done.stdout[-1:] in ("", "\n"), more
            assert not found, more
        codes.append(done.returncode)
    return codes


@needs_proc
def test_little_memory_gives_the_same_trees_or_none(folder, english):
    assert set(outcomes_under_limits(folder, ["parse", "-q", english.name], SOME_LIMITS)) == {0, EXIT_MEMORY}


@pytest.fixture(scope="module")
def refined(folder):
    options = ["-q", "--splits=2", "--split-iterations=4", "--joint-iterations=2", "village:train", "-o", "refined"]
    assert run_here(["train", *options], folder).returncode == 0
    return folder / "refined"


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize(
    "options",
    [
        ["refined"],
        ["refined", "--threads=2"],
        ["refined", "--kbest=20", "--confidence", "--scores"],
        ["refined", "--objective=mpp", "--threshold=0"],
        ["refined", "en", "--product=trees"],
        ["en", "--objective=mer-sampled"],
    ],
    ids=" ".join,
)
def test_no_limit_of_memory_gives_other_trees(folder, english, refined, options):
    codes = outcomes_under_limits(folder, ["parse", "-q", *options], ALL_LIMITS)
    assert (codes[0], codes[-1]) == (EXIT_MEMORY, 0)


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("kind", ["cfg", "tsg", "insertion", "srtsg"])
def test_no_limit_of_memory_gives_another_model(folder, kind):
    sweeps = {"cfg": [], "srtsg": ["--splits=1", "--split-iterations=2", "--joint-iterations=2"]}
    options = sweeps.get(kind, ["--iterations=2"])
    command = ["train", "-q", "--force", f"--model={kind}", *options, "village:dev", "-o", "model"]
    codes = outcomes_under_limits(folder, command, ALL_LIMITS[::3], "model")
    assert codes[0] != 0 == codes[-1]
