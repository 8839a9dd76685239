"""Processes that end with their parents, and tasks that kill their own process and no other."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import descendants, hear_interrupts, needs_proc, wait_until

from tsgkit._exit_codes import EXIT_INTERRUPTED
from tsgkit.distributed._base import Outcome
from tsgkit.distributed._isolation import how_it_ended, rescued, run_isolated
from tsgkit.errors import UsageError

SPAWNED = """
import multiprocessing, sys, time
from tsgkit.distributed._orphans import end_with_parent

def work():
    end_with_parent()
    print(multiprocessing.current_process().pid, flush=True)
    while True:  # holds the interpreter, so that only the kernel can end it at once
        pass

if __name__ == "__main__":
    multiprocessing.get_context("spawn").Process(target=work).start()
    time.sleep(600)
"""
WATCHING = """
import os, subprocess, sys, time
from tsgkit.distributed._orphans import watch_parent
if "child" not in sys.argv:
    subprocess.Popen([sys.executable, __file__, "child"])
else:
    for _ in range(2):
        watch_parent()
    print(os.getpid(), flush=True)
time.sleep(600)
"""


def is_alive(pid):
    """Whether a process runs: one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@needs_proc
def test_an_early_interrupt_is_for_the_parent_alone(tmp_path):
    """A terminal sends Ctrl-C to all processes of a command, also to those that still load their modules."""
    options = ["-q", "--model=tsg", "--iterations=100000", "--chains=2", "--jobs=2", "village:dev", "-o", "m"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tsgkit", "train", *options],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - no threads
    )  # fmt: skip

    def is_loading():
        maps = [Path(f"/proc/{pid}/maps") for pid in descendants(process.pid, "spawn_main")]
        with contextlib.suppress(OSError):
            return any("/tsgkit/" in path.read_text() for path in maps)

    wait_until(is_loading, process)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=600)
    assert process.returncode == EXIT_INTERRUPTED
    assert said.splitlines() == ["tsgkit: interrupted; --resume continues from there (chain 1: 0%, 2: 0%)"]


@needs_proc
@pytest.mark.parametrize("script", [SPAWNED, WATCHING], ids=["end_with_parent", "watch_parent"])
def test_children_end_with_their_parent(tmp_path, script):
    (tmp_path / "script.py").write_text(script)
    with subprocess.Popen([sys.executable, tmp_path / "script.py"], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        assert is_alive(child)
        parent.kill()
    wait_until(lambda: not is_alive(child), seconds=60)


# ---- isolation -------------------------------------------------------------------------------------------------


def deadly(shared, item):
    """A task that dies of some items."""
    if item == "segmentation fault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if item == "exit":
        os._exit(3)
    if item == "wrong":
        raise UsageError("wrong")
    return f"{shared['mark']}{item}"


class Letters:
    """Items are lists of words."""

    def pieces(self, item):
        return list(item)

    def give_up(self, shared, piece, problem):
        return f"{piece}: {problem}"

    def join(self, results):
        return results


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Children import this module."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


def test_a_task_kills_its_own_process_only():
    items = ["a", "segmentation fault", "b", "exit", "c"]
    found = list(run_isolated(deadly, {"mark": "="}, items))
    assert found == [
        Outcome(0, "=a"),
        Outcome(1, error="was killed by signal 11 (Segmentation fault)"),
        Outcome(2, "=b"),
        Outcome(3, error="ended with exit code 3"),
        Outcome(4, "=c"),
    ]
    assert rescued(deadly, {"mark": ""}, ["a", "exit"], Letters()) == ["a", "exit: ended with exit code 3"]


def test_what_a_task_raises_is_raised():
    with pytest.raises(UsageError, match="wrong"):
        rescued(deadly, {"mark": ""}, ["a", "wrong"], Letters())


def test_the_end_of_a_process_in_words():
    assert how_it_ended(-9) == "was killed by signal 9 (Killed)"
    assert how_it_ended(0) == "ended with exit code 0"
