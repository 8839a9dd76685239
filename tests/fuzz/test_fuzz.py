"""Readers take damaged input of any kind: a fixed number of inputs here, more by ``make fuzz``."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.run import read_one, run_target, stop
from fuzz.targets import TARGET_NAMES, target_of, weight_of
from processes import memory_limit

from tsgkit.treebank.formats import READERS

CASES = Path(__file__).parent / "cases"
N_INPUTS = 40_000


def require_packages(name):
    if name == "web request":
        pytest.importorskip("flask", reason="flask is not installed")


def test_every_reader_is_a_target():
    """But for that of CoNLL-U, which takes no input at all: it says that there are no phrases."""
    assert set(READERS.built_in) - set(TARGET_NAMES) == {"conllu"}


@pytest.mark.parametrize("name", TARGET_NAMES)
def test_valid_inputs_are_taken(name, tmp_path):
    """Otherwise nothing would be learned from damaging them."""
    require_packages(name)
    target = target_of(name, tmp_path)
    for seed in target.seeds:
        target.read(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGET_NAMES)
def test_damaged_inputs(name, tmp_path):
    require_packages(name)
    n_inputs = N_INPUTS * weight_of(name) // sum(map(weight_of, TARGET_NAMES))
    count, problem = run_target(name, n_inputs, 600.0, 0, tmp_path / "faults")
    assert not problem, problem
    assert count == n_inputs


@pytest.mark.parametrize("path", sorted(CASES.glob("*/*")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found_before(path, tmp_path):
    target = target_of(path.parent.name.replace("-", " "), tmp_path)
    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        assert read_one(target, path.read_bytes(), tmp_path) == ""
    finally:
        signal.signal(signal.SIGVTALRM, before)


def test_memory_is_limited():
    """The harness itself: a child that takes too much does not come to its end."""
    code = "import time; taken = b'x' * (900 << 20); time.sleep(10); print('came to its end')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, **memory_limit(600 << 20)
    )
    assert done.returncode != 0
    assert "came to its end" not in done.stdout


def test_faults_are_noticed(tmp_path):
    """The harness itself: an error of another kind, a hang, files left behind."""

    def reader(read):
        return type("Broken", (), {"read": staticmethod(read)})

    def fails(data, folder):
        raise KeyError("x")

    def leaves(data, folder):
        (folder / ".x.part").write_bytes(b"")

    def hangs(data, folder):
        while True:
            pass

    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        assert "KeyError" in read_one(reader(fails), b"", tmp_path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fuzz.run.SECONDS_PER_INPUT", 0.05)
            assert "no end" in read_one(reader(hangs), b"", tmp_path)
        assert "left behind" in read_one(reader(leaves), b"", tmp_path)
    finally:
        signal.signal(signal.SIGVTALRM, before)
