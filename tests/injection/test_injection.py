"""Faults in file calls and kills at file calls: some of those that ``make io-faults`` and ``make kills`` try."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from injection.control import ERRORS, FAIL, KILL, run_under_control
from injection.run import faults_of, kills_of
from injection.scenarios import SCENARIOS

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not (shutil.which("gcc") or shutil.which("cc")),
    reason="needs a C compiler and a system with LD_PRELOAD",
)


def run(tmp_path, *arguments):
    """The last line of the table, by column."""
    code = "import sys; from pathlib import Path; from injection.control import run_under_control as run;"
    code += "sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), *arguments],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    columns = lines[0].split()
    (total,) = [line.split() for line in lines if re.match(r" *all ", line)]
    return dict(zip(columns[1:], map(int, total[1:]), strict=True))


@pytest.mark.parametrize("name", ["prepare", "cfg", "tsg", "parse"])
def test_file_calls_fail(tmp_path, name):
    found = run(tmp_path, "faults", "--one", "--every=7", name)
    assert found["runs"] == found["hit"] > 1
    assert found["lost"] == 0


@pytest.mark.parametrize("name", ["cfg-force", "tsg", "parse"])
def test_killed_at_file_calls(tmp_path, name):
    found = run(tmp_path, "kills", "--one", "--once", "--every=5", name)
    assert found["runs"] == found["killed"] > 1
    assert found["lost"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["insertion", "srtsg"])
def test_models_killed_at_file_calls(tmp_path, name):
    found = run(tmp_path, "kills", "--one", "--once", "--every=25", name)
    assert found["runs"] == found["killed"] > 1
    assert found["lost"] == 0


@pytest.mark.slow
def test_chains_killed_at_file_calls(tmp_path):
    found = run(tmp_path, "kills", "--one", "--once", "--every=40", "chains")
    assert found["runs"] > 1
    assert found["lost"] == 0


def test_every_call_has_its_turn():
    kinds = "orxcwsxn"
    faults = list(faults_of(kinds, 1, one=True))
    assert [fault.at for fault in faults] == list(range(1, 9))
    assert {fault.error for fault in faults_of("w", 1, one=False) if fault.action == FAIL} == set(ERRORS["w"])
    kills = list(kills_of(kinds, 1, one=True, is_parallel=False))
    assert [(fault.at, fault.action) for fault in kills] == [(4, KILL), (5, KILL), (8, KILL)]


def test_every_command_that_writes_a_file_is_tried():
    assert {scenario.words.split()[0] for scenario in SCENARIOS.values()} >= {
        *("prepare", "train", "parse", "report", "draw", "compare", "generate")
    }
    assert callable(run_under_control)
