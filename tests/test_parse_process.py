"""``tsgkit parse`` as a process: pipes, interruptions, kills."""

import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest
from processes import hear_interrupts

from tsgkit._tools import train as train_command
from tsgkit.treebank import Cleaning, load

TEXT = "".join(f"{' '.join(Cleaning().apply(tree).leaves())}\n" for tree in load("village", "dev"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "village.model"
    assert train_command.main(["--model=cfg", "--quiet", f"--output={path}", "village:train"]) == 0
    return path


@pytest.fixture
def process(model):
    """A parser that waits for sentences."""
    started = subprocess.Popen(
        [sys.executable, "-m", "tsgkit", "parse", "--quiet", model],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - no threads here
    )
    yield started
    started.kill()
    started.communicate()


def test_trees_come_while_sentences_go_in(process):
    for words in (b"the dog barked .", b"the old man smiled ."):
        process.stdin.write(words + b"\n")
        process.stdin.flush()
        assert process.stdout.readline().startswith(b"(TOP (S ")
    out, error = process.communicate()
    assert (process.returncode, out, error) == (0, b"", b"")


def test_interrupted(process):
    process.stdin.write(b"the dog barked .\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith(b"(TOP (S ")
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=600)
    assert process.returncode == 130
    assert error == b"tsgkit: interrupted\n"


@pytest.mark.parametrize("threads", [1, 2])
def test_interrupted_at_work(model, tmp_path, threads):
    """The file of --output does not appear, whatever the number of threads."""
    (tmp_path / "input").write_text(TEXT * 200)
    started = subprocess.Popen(
        [
            sys.executable, "-m", "tsgkit", "parse", "-q", model,
            "-i", "input", "-o", "output", f"--threads={threads}",
        ],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - no threads here
    )  # fmt: skip
    deadline = time.monotonic() + 600
    while not written(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    started.send_signal(signal.SIGINT)
    _, error = started.communicate(timeout=600)
    assert (started.returncode, error) == (130, b"tsgkit: interrupted\n")
    assert sorted(os.listdir(tmp_path)) == ["input", "output.partial", "output.partial.json"]


def written(folder):
    """How many bytes a job at work has written."""
    partial = folder / "output.partial"
    return partial.stat().st_size if partial.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [["--threads=2"], ["--kbest=3", "--scores", "--objective=mpp-sampled", "--samples=9"]]
)
def test_killed_and_resumed(model, tmp_path, tsgkit, options):
    """Kill -9 at random moments, resume, and compare with a job that was left alone."""
    text = TEXT * 24
    (tmp_path / "input").write_text(text)
    arguments = ["-i", tmp_path / "input", *options, model]
    tsgkit("parse", "-q", "-o", tmp_path / "whole", *arguments)
    moments = random.Random(3)
    n_kills = 0
    while n_kills < 4:
        before = written(tmp_path)
        process = subprocess.Popen(
            [sys.executable, "-m", "tsgkit", "parse", "-q", "--resume", "-o", tmp_path / "output", *arguments]
        )
        while written(tmp_path) <= before and process.poll() is None:  # until it has begun to write
            time.sleep(0.005)
        time.sleep(moments.uniform(0, 0.4))
        process.kill()
        if process.wait() == 0:  # it had come to its end
            break
        n_kills += 1
    assert n_kills
    error = tsgkit("parse", "--resume", "-o", tmp_path / "output", *arguments).stderr
    assert (tmp_path / "output").read_bytes() == (tmp_path / "whole").read_bytes()
    if n_kills == 4:
        n_parsed, n_before = map(int, re.search(r"(\d+) sentences in.*\ntsgkit: (\d+) were done", error).groups())
        assert n_parsed + n_before == text.count("\n")
        assert n_before > 0


def test_broken_pipe(model, tmp_path):
    (tmp_path / "input").write_text(TEXT * 20)
    command = f"{sys.executable} -m tsgkit parse -q {model} -i input | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""
