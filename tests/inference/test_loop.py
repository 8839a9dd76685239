"""Long runs survive anything: kills, interruptions, full disks; and end as if nothing had happened."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from processes import hear_interrupts, wait_until

from tsgkit.errors import ArchiveError, UsageError
from tsgkit.inference._checkpoint import Checkpoint, checkpoint_path, corpus_digest
from tsgkit.inference._loop import Run
from tsgkit.inference._training import Training
from tsgkit.inference._tsg import TsgSettings
from tsgkit.models._model import Model
from tsgkit.treebank import Binarization, UnknownWords, load, prepare

COMMAND = [
    "train",
    "--model=tsg",
    "--iterations=300",
    "--checkpoint-every=3",
    "--average=3",
    "--seed=5",
    "--quiet",
]


def small_corpus():
    return prepare(load("village", "dev"), binarization=Binarization("right", 0), unknown=UnknownWords())


def training(corpus=None, *, iterations=12, seed=1, threads=1, **settings):
    chosen = TsgSettings(iterations=iterations, **{"average": 1, **settings})
    return Training(corpus or small_corpus(), chosen, seed=seed, threads=threads)


def trained(tmp_path, name, **options):
    run_options = {key: options.pop(key) for key in ("checkpoint_every", "resume") if key in options}
    Run(training(**options), tmp_path / name, quiet=True, **run_options).run()
    return (tmp_path / name).read_bytes()


@pytest.mark.parametrize("settings", [{}, {"sampler": "local"}, {"process": "dp"}, {"init": "random", "batch": 1}])
def test_same_seed_same_model(tmp_path, settings):
    one = trained(tmp_path, "a", **settings)
    assert trained(tmp_path, "b", **settings) == one
    assert trained(tmp_path, "c", threads=2, **settings) == one
    assert trained(tmp_path, "d", seed=2, **settings) != one


@pytest.mark.parametrize("settings", [{}, {"sampler": "local", "average": 2, "average_every": 3}])
def test_a_resumed_run_ends_the_same(tmp_path, settings, monkeypatch):
    whole = trained(tmp_path, "whole", **settings)
    step = Run.step

    def cut_at(fatal):
        def failing_step(self, iteration):
            if iteration == fatal:
                raise RuntimeError("cut")
            return step(self, iteration)

        return failing_step

    for fatal in (4, 5, 9):
        monkeypatch.setattr(Run, "step", cut_at(fatal))
        with pytest.raises(RuntimeError, match="cut"):
            trained(tmp_path, "cut", checkpoint_every=2, resume=True, **settings)
    monkeypatch.setattr(Run, "step", step)
    assert trained(tmp_path, "cut", checkpoint_every=2, resume=True, **settings) == whole


@pytest.mark.slow
def test_killed_twenty_times(tmp_path):
    """Kill -9 at random moments, resume, and compare with a run that was left alone."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}

    def start(name):
        arguments = [
            sys.executable,
            "-m",
            "tsgkit",
            *COMMAND,
            "--resume",
            f"--output={name}",
            "village:train",
        ]
        return subprocess.Popen(arguments, cwd=tmp_path, env=environment)

    whole = start("whole.npz")
    assert whole.wait() == 0
    moments = random.Random(7)
    n_kills = 0
    while n_kills < 20:
        process = start("killed.npz")
        time.sleep(moments.uniform(0.2, 1.2))  # while it starts, samples, or writes
        process.send_signal(signal.SIGKILL)
        if process.wait() == -signal.SIGKILL:
            n_kills += 1
        else:  # it had come to its end already: begin again
            for path in tmp_path.glob("killed.npz*"):
                path.unlink()
    last = start("killed.npz")
    assert last.wait() == 0
    assert (tmp_path / "killed.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]  # what was half written is gone


def test_ctrl_c_leaves_a_usable_model(tmp_path, tsgkit):
    arguments = [
        sys.executable,
        "-m",
        "tsgkit",
        "train",
        "--model=tsg",
        "--iterations=100000",
        "--output=m.npz",
        "village:dev",
    ]
    process = subprocess.Popen(
        arguments,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - no threads
    )
    wait_until(lambda: checkpoint_path(tmp_path / "m.npz").exists(), process)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "interrupted after" in talk
    assert "Traceback" not in talk
    if "The model takes longer to compute" not in talk:  # on a busy machine
        assert Model.load(tmp_path / "m.npz").info["iterations"] > 0
        assert tsgkit("parse", "m.npz", text="We saw it .\n").stdout.startswith("(TOP ")


def test_a_folder_that_cannot_be_written_is_found_at_once(tsgkit):
    result = tsgkit("train", "--model=tsg", "--iterations=1000000", "-o", "no/such/m.npz", "village:dev", code=2)
    assert "No such file or directory" in result.stderr


def test_a_full_disk_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    run = Run(training(iterations=10), tmp_path / "m", checkpoint_every=2, quiet=True)
    saves = []
    save = Checkpoint.save

    def fails_later(self, path):
        saves.append(self.iteration)
        if len(saves) > 3:
            raise OSError(28, "No space left on device", str(path))
        save(self, path)

    monkeypatch.setattr(Checkpoint, "save", fails_later)
    with pytest.raises(OSError, match="No space left"):
        run.run()
    assert Checkpoint.load(checkpoint_path(tmp_path / "m"), run.training.identity()).iteration == 4
    monkeypatch.setattr(Checkpoint, "save", save)
    again = Run(training(iterations=10), tmp_path / "m", resume=True, quiet=True)
    again.run()
    assert (tmp_path / "m").read_bytes() == trained(tmp_path, "whole", iterations=10)


def test_too_little_room_is_said_before_the_first_iteration(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr("tsgkit.inference._checkpoint.shutil.disk_usage", lambda path: usage)
    with pytest.raises(OSError, match="not enough space for checkpoints"):
        Run(training(), tmp_path / "m", quiet=True).run()


@pytest.mark.parametrize("change", [{"seed": 2}, {"iterations": 20}, {"process": "dp"}, {"corpus": "other"}])
def test_a_checkpoint_of_another_run_is_refused(tmp_path, change):
    trained(tmp_path, "m")
    if change == {"corpus": "other"}:
        change = {"corpus": prepare(load("village", "test"), binarization=Binarization(), unknown=UnknownWords())}
    with pytest.raises(UsageError, match="another run"):
        trained(tmp_path, "m", resume=True, **change)


def test_damaged_state_is_refused(tmp_path):
    trained(tmp_path, "m")
    path = checkpoint_path(tmp_path / "m")
    identity = training().identity()
    for name, value in (("dishes", -1), ("fragments", 10**6), ("sizes", 0), ("states", 0)):
        saved = Checkpoint.load(path, identity)
        saved.state[name][...] = value
        with pytest.raises(UsageError, match="does not fit"):
            training().restore(saved.state, saved.iteration)


AVERAGE = {"average": 2, "average_every": 2}


@pytest.fixture(scope="module")
def averaged():
    """A training that is done."""
    own = training(**AVERAGE)
    own.start()
    for iteration in range(1, 13):
        own.iterate(iteration)
    return own


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("sizes", lambda values: np.full((4, 3), 2**31 - 1, dtype=np.int32)),
        ("sizes", lambda values: np.array([[0, 2**31 - 1, 2**31 - 1]] * 4, dtype=np.int32)),
        ("sizes", lambda values: values.astype(np.float64)),
        ("sizes", lambda values: values[:, :2]),
        ("fragments", lambda values: values.astype(np.float64)),
        ("fragments", lambda values: values[:-1]),
        ("parameters", lambda values: np.full_like(values, np.nan)),
        ("parameters", lambda values: values[:, :-1]),
        ("states", lambda values: values[:-1]),
        ("average_weights", lambda values: values * np.nan),
        ("average_weights", lambda values: -values),
        ("average_counts", lambda values: values[:-1]),
        ("average_counts", lambda values: values.astype(np.float32)),
        ("average_fragments", lambda values: values + 10**6),
        ("average_fragments", lambda values: np.concatenate([values, values[:1]])),
        ("average_base", lambda values: values[..., 0]),
        ("average_bridge", lambda values: values + np.inf),
        ("average_samples", lambda values: -values - 1),
        ("average_samples", lambda values: values[:0]),
    ],
)
def test_malicious_states_are_refused(averaged, name, change):
    """At once: none of them may loop or take memory by the numbers it claims."""
    with pytest.raises(UsageError, match="does not fit"):
        training(averaged.corpus, **AVERAGE).restore(averaged.state() | {name: change(averaged.state()[name])}, 12)


def test_a_state_that_fits_is_taken(averaged):
    again = training(averaged.corpus, **AVERAGE)
    again.restore(averaged.state(), 12)
    assert all(np.array_equal(again.state()[name], values) for name, values in averaged.state().items())


@pytest.mark.parametrize("values", [np.zeros(3), np.zeros((12, 1)), np.zeros(12, dtype=np.int64)])
def test_records_of_another_length_are_refused(tmp_path, values):
    trained(tmp_path, "m")
    path = checkpoint_path(tmp_path / "m")
    saved = Checkpoint.load(path, training().identity())
    saved.history["log_joint"] = values
    saved.save(path)
    with pytest.raises(ArchiveError, match="the record of log_joint"):
        trained(tmp_path, "m", resume=True)


def test_records(tmp_path):
    trained(tmp_path, "m")
    lines = (tmp_path / "m.tsv").read_text().splitlines()
    assert len(lines) == 13
    assert lines[0].split("\t")[:3] == ["iteration", "log_joint", "acceptance"]
    model = Model.load(tmp_path / "m")
    joint = [float(line.split("\t")[1]) for line in lines[1:]]
    assert np.allclose(model.state["history_log_joint"], joint, rtol=1e-8)
    assert json.dumps(model.info["settings"])


def test_annealing_falls_to_one():
    settings = TsgSettings(anneal_from=3.0, anneal_iterations=4)
    assert [settings.temperature(iteration) for iteration in (1, 2, 3, 4, 5, 9)] == [
        3.0,
        2.5,
        2.0,
        1.5,
        1.0,
        1.0,
    ]


def test_digest_sees_every_part_of_a_corpus():
    corpus = small_corpus()
    digest = corpus_digest(corpus)
    corpus.word[np.flatnonzero(corpus.word >= 0)[0]] += 1
    assert corpus_digest(corpus) != digest
