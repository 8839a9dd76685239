"""``tsgkit train --raw``: options, messages, and kills during every step."""

import subprocess
import sys
import time

import pytest

from tsgkit._cli import parse_arguments
from tsgkit._tools import train as train_command
from tsgkit._tools.train import raw_text_settings
from tsgkit.models._model import Model
from tsgkit.raw_text import RawTextSettings, teaching_of
from tsgkit.treebank import load
from tsgkit.treebank._trees import words

OPTIONS = ["--model=srtsg", "--splits=1", "--split-iterations=6", "--joint-iterations=2", "--average=2"]
OPTIONS += ["--average-every=1", "--checkpoint-every=1", "--raw=text", "--teachers=2", "--raw-sentences=40"]


@pytest.fixture
def text(tmp_path):
    sentences = [" ".join(words(tree)) for tree in load("village", "train")]
    (tmp_path / "text").write_text("\n".join(["", *sentences]) + "\n")
    return tmp_path / "text"


def test_defaults_in_the_usage_text_are_those_of_the_settings():
    assert raw_text_settings(parse_arguments(train_command.__doc__, ["-o", "m", "trees"])) == RawTextSettings()


def test_messages_and_record(tsgkit, text, tmp_path):
    done = tsgkit("train", *OPTIONS, "--dev=village:test", "village:dev", "-o", "m")
    assert "tsgkit: raw text: 41 lines, 1 empty, 0 too long; 40 sentences, of which" in done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("village:test: teachers aligned F1 ")
    assert "(mean of 2), their product" in lines[0]
    assert lines[1].startswith("village:test: aligned F1 ")
    record = teaching_of(Model.load(tmp_path / "m").corpus)
    assert record["sources"] == ["text"]
    assert record["gold_trees"] == len(load("village", "dev"))


def test_models_without_samples_have_no_teachers(tsgkit, text):
    done = tsgkit("train", "--model=cfg", "--raw=text", "village:dev", "-o", "m", code=2)
    assert "--raw: a cfg is counted, not sampled: all teachers would be equal" in done.stderr


def test_teachers_that_were_trained_before(tsgkit, text, tmp_path):
    tsgkit("train", "-q", *OPTIONS, "village:dev", "-o", "m")
    teachers = [f"--taught-by=m.teachers.chain0{number}" for number in (1, 2)]
    tsgkit("train", "-q", *OPTIONS, *teachers, "village:dev", "-o", "again")
    assert not list(tmp_path.glob("again.teachers*"))
    assert (tmp_path / "again.raw.mrg").read_bytes() == (tmp_path / "m.raw.mrg").read_bytes()
    done = tsgkit("train", *teachers, "village:dev", "-o", "other", code=2)
    assert "--taught-by goes with --raw=FILE" in done.stderr


@pytest.mark.slow
def test_killed_in_every_step_and_resumed(text, tmp_path):
    """Kill -9 as soon as a file of each step is there, resume, and compare with a job that was left alone."""
    command = [sys.executable, "-m", "tsgkit", "train", "-q", *OPTIONS, "village:dev", "--resume", "-o"]
    subprocess.run([*command, "whole"], cwd=tmp_path, check=True)
    names = ["m.teachers.checkpoint.chain01", "m.teachers.chain01", "m.raw.mrg.partial", "m.raw.json", "m.checkpoint"]
    for name in names:
        process = subprocess.Popen([*command, "m"], cwd=tmp_path)
        while not (tmp_path / name).exists() and process.poll() is None:
            time.sleep(0.002)
        process.kill()
        assert process.wait() != 0, f"the job ended before {name} was seen"
    subprocess.run([*command, "m"], cwd=tmp_path, check=True)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
