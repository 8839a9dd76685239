"""What the world does to a job: full disks, folders that cannot be written, other jobs, Ctrl-C, clocks that jump.

Whatever happens, what was there before is there after, nothing is half written, and the message is one line.
"""

import ast
import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tsgkit as package
from tsgkit._archive import read_archive
from tsgkit._locks import sole_writer
from tsgkit.errors import JobError
from tsgkit.models._model import Model

pytestmark = pytest.mark.slow

TRAIN = ("train", "--model=tsg", "--iterations=100000", "--checkpoint-every=1", "--quiet", "village:dev")
# Commands that write files, and the file.
WRITERS = {
    "prepare": (("prepare", "village:dev", "-o", "out"), "out"),
    "arrays": (("prepare", "village:dev", "-o", "out.npz"), "out.npz"),
    "train": (("train", "--model=cfg", "--force", "village:dev", "-o", "out"), "out"),
    "sampled": (("train", "--model=tsg", "--force", "--iterations=2", "village:dev", "-o", "out"), "out"),
    "parse": (("parse", "given.model", "-i", "given.txt", "-o", "out"), "out"),
}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A folder with a model and sentences."""
    folder = tmp_path_factory.mktemp("given")
    command = [sys.executable, "-m", "tsgkit", "train", "--quiet", "--model=cfg", "village:dev", "-o", "given.model"]
    subprocess.run(command, cwd=folder, check=True)
    (folder / "given.txt").write_text("the old man smiled .\n" * 40)
    return folder


def start(folder, *arguments, most_bytes=None):
    """A command in a process of its own; with `most_bytes`, what writes more gets an error as from a full disk."""

    def prepare_child():
        # Jobs in the background of a shell ignore Ctrl-C, and so would what they start.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if most_bytes is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    return subprocess.Popen(
        [sys.executable, "-m", "tsgkit", *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=prepare_child,  # noqa: PLW1509 - no threads here
    )


def wait_for_checkpoint(process, path):
    """Until a run has written another one."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    while not path.exists() or path.stat().st_mtime_ns == before:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def interrupted(process):
    """What a process says when it is told to stop."""
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Traceback" not in talk
    assert "interrupted after" in talk
    return talk


@contextlib.contextmanager
def mounted(folder, options):
    """A file system of its own on `folder`."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"a file system can only be mounted by root: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


# ---- full disks and folders that cannot be written -------------------------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
def test_no_room_for_the_output(given, tmp_path, name):
    arguments, output = WRITERS[name]
    for path in given.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / output).write_text("old")
    before = set(os.listdir(tmp_path))
    process = start(tmp_path, *arguments, most_bytes=1000)
    _, talk = process.communicate()
    assert process.returncode == 1
    assert "File too large" in talk
    assert "Traceback" not in talk
    assert (tmp_path / output).read_text() == "old"
    # What was parsed before the disk was full is kept, to go on with.
    kept = {f"{output}.partial", f"{output}.partial.json"} if name == "parse" else set()
    assert before <= set(os.listdir(tmp_path)) <= before | kept


def test_a_full_disk(given, tmp_path):
    """A real one: the run stops at a checkpoint, the last one that had room stays, and goes on elsewhere."""
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk, "size=400k"):
        process = start(tmp_path, *TRAIN, "-o", disk / "m")
        wait_for_checkpoint(process, disk / "m.checkpoint")
        with contextlib.suppress(OSError), open(disk / "filler", "wb") as filler:
            while True:
                filler.write(bytes(1000))
                filler.flush()
        _, talk = process.communicate(timeout=300)
        assert process.returncode == 1
        assert "No space left on device" in talk or "not enough space" in talk
        assert "Traceback" not in talk
        names = [path.name for path in disk.iterdir()]
        assert sorted(names) == ["filler", "m.checkpoint"]
        (tmp_path / "m.checkpoint").write_bytes((disk / "m.checkpoint").read_bytes())
    process = start(tmp_path, *TRAIN, "--resume", "-o", "m")
    wait_for_checkpoint(process, tmp_path / "m.checkpoint")
    interrupted(process)
    assert read_archive(tmp_path / "m.checkpoint", "checkpoint", 1)[0]["iteration"] > 0


def test_a_folder_that_cannot_be_written(given, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk, "ro"):
        for arguments, _ in WRITERS.values():
            done = start(given, *arguments[:-1], disk / "out")
            _, talk = done.communicate()
            assert done.returncode == 1
            assert "Read-only file system" in talk
            assert str(disk / "out") in talk or "disk" in talk
            assert "Traceback" not in talk


# ---- two at a time ---------------------------------------------------------------------------------------------


def test_two_processes_do_not_train_one_model(tmp_path):
    first = start(tmp_path, *TRAIN, "-o", "m")
    try:
        wait_for_checkpoint(first, tmp_path / "m.checkpoint")
        second = start(tmp_path, *TRAIN, "--resume", "-o", "m")
        _, talk = second.communicate()
        assert second.returncode == 1
        assert f"m: another process ({first.pid}) is writing it; wait until it ends, or name another" in talk
        assert first.poll() is None
    finally:
        first.kill()
        first.communicate()
    third = start(tmp_path, *TRAIN, "--resume", "-o", "m")  # the dead hold nothing
    wait_for_checkpoint(third, tmp_path / "m.checkpoint")
    interrupted(third)
    # On a busy machine, the model takes too long to compute.
    assert sorted(os.listdir(tmp_path)) in (["m", "m.checkpoint", "m.tsv"], ["m.checkpoint"])


def test_the_lock_of_a_file(tmp_path):
    with sole_writer(tmp_path / "m"):
        with pytest.raises(JobError, match=rf"another process \({os.getpid()}\)"), sole_writer(tmp_path / "m"):
            pass
        with sole_writer(tmp_path / "other"):
            pass
        assert os.listdir(tmp_path) == [".m.lock"]
    assert os.listdir(tmp_path) == []
    with sole_writer(tmp_path / "m"):
        pass
    with pytest.raises(FileNotFoundError) as raised, sole_writer(tmp_path / "no" / "m"):
        pass
    assert raised.value.filename == str(tmp_path / "no" / "m")


# ---- Ctrl-C ----------------------------------------------------------------------------------------------------


def is_at_work(process):
    """Whether a command has come so far that numpy is loaded, which only commands do; Linux can tell."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return "_multiarray_umath" in Path(f"/proc/{process.pid}/maps").read_text()
    return False


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells how far a process is")
@pytest.mark.parametrize("name", [*WRITERS, "inspect", "srtsg"])
def test_ctrl_c(given, tmp_path, name):
    others = {
        "inspect": (("inspect", "given.model", "--top=all"), None),
        "srtsg": (("train", "--model=srtsg", "--force", "village:dev", "-o", "out"), "out"),
    }
    arguments, output = {**WRITERS, **others}[name]
    for path in given.iterdir():
        (tmp_path / path.name).symlink_to(path)
    if output:
        (tmp_path / output).write_text("old")
    process = start(tmp_path, *arguments)
    while not is_at_work(process) and process.poll() is None:
        time.sleep(0.002)
    time.sleep(random.Random(name).uniform(0.0, 0.3))
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=300)
    assert "Traceback" not in talk
    assert process.returncode in (0, 130)
    if process.returncode:
        assert "interrupted" in talk
    left = {path.name for path in tmp_path.iterdir()} - {path.name for path in given.iterdir()}
    assert not any(each.endswith((".part", ".lock")) for each in left)
    if output and (tmp_path / output).read_bytes() != b"old" and name in ("sampled", "srtsg", "train"):
        Model.load(tmp_path / output)


# ---- clocks ----------------------------------------------------------------------------------------------------


def test_nothing_depends_on_the_time_of_day():
    """Clocks are set back, and forward; what is measured or waited for goes by clocks that are not."""
    folders = [Path(package.__file__).parent, Path(package.__file__).parents[1] / "tools"]
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                name = f"{node.value.id}.{node.attr}"
                assert name not in ("time.time", "time.time_ns", "datetime.now", "datetime.today", "date.today"), path
