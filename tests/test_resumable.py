"""Output is resumed after its job was killed, at any byte."""

import gzip
import json
import lzma
import os

import pytest

from tsgkit._overwriting import files_of_a_job, note_input
from tsgkit._resumable import PartialOutput
from tsgkit.errors import JobError, OverwriteError, UsageError

LINES = [f"sentence {number}\n" for number in range(12)]
JOB = {"models": ["a"], "seed": 0}


def record_of(line, kbest=1):
    text = f"(TOP {line.strip()} é)\n"
    return text if kbest == 1 else text * kbest + "\n"


def run(path, *, resume=True, force=False, lines=LINES, stop_at=None, identity=JOB, kbest=1):
    """A job that writes a record for every line, and fails before line `stop_at`; returns the lines it worked on."""
    worked = []
    with PartialOutput(path, identity, resume=resume, force=force, blank_line_ends=kbest > 1) as output:
        if output.is_finished:
            return worked
        for line in output.skip(iter(lines)):
            if line == stop_at:
                raise RuntimeError("cut")
            worked.append(line)
            output.write(record_of(line, kbest), line)
    return worked


def whole(kbest=1):
    return "".join(record_of(line, kbest) for line in LINES).encode()


def cut(path, stop_at=LINES[7], **options):
    with pytest.raises(RuntimeError, match="cut"):
        run(path, stop_at=stop_at, **options)


def names(folder):
    return sorted(os.listdir(folder))


def test_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    cut(path)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["out", "out.partial", "out.partial.json"]
    assert run(path) == LINES[7:]
    assert path.read_bytes() == whole()
    assert names(tmp_path) == ["out"]


def test_unless_asked_nothing_is_done_again(tmp_path):
    cut(tmp_path / "out")
    with pytest.raises(OverwriteError, match="holds 7 lines of a job that was not finished"):
        run(tmp_path / "out", resume=False)
    assert run(tmp_path / "out", resume=False, force=True) == LINES
    assert (tmp_path / "out").read_bytes() == whole()


@pytest.mark.parametrize("kbest", [1, 3])
def test_killed_at_any_byte(tmp_path, monkeypatch, kbest):
    """Whole records after the last commit are kept, and no record is lost or written twice."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)  # the disk would be the slowest part
    path = tmp_path / "out"
    partial, journal = tmp_path / "out.partial", tmp_path / "out.partial.json"
    cut(path, stop_at=LINES[2], kbest=kbest)
    committed = partial.stat().st_size
    journaled = journal.read_bytes()
    text = whole(kbest)
    ends = [len("".join(record_of(line, kbest) for line in LINES[:n]).encode()) for n in range(len(LINES) + 1)]
    for size in range(committed, len(text) + 1):
        partial.write_bytes(text[:size])
        journal.write_bytes(journaled)
        n_whole = max(n for n, end in enumerate(ends) if end <= size)
        assert run(path, kbest=kbest) == LINES[n_whole:], size
        assert path.read_bytes() == text


def test_killed_at_the_end(tmp_path):
    """The last steps are: write to the journal that all is done, rename, remove the journal."""
    path = tmp_path / "out"
    journal = tmp_path / "out.partial.json"
    journaled = []

    class Killed(PartialOutput):
        def finish(self):
            self.commit(finished=True)
            journaled.append(journal.read_bytes())
            raise SystemExit

    with pytest.raises(SystemExit), Killed(path, JOB, resume=False) as output:  # noqa: PT012 - it fails at the end
        for line in output.skip(iter(LINES)):
            output.write(record_of(line), line)
    assert run(path) == []  # before the renaming
    assert path.read_bytes() == whole()
    journal.write_bytes(journaled[0])
    assert run(path) == []  # after it
    assert path.read_bytes() == whole()
    assert names(tmp_path) == ["out"]


def test_killed_at_the_beginning(tmp_path):
    """An empty partial file without a journal is ignored; one with content is not ours."""
    (tmp_path / "out.partial").write_bytes(b"")
    assert run(tmp_path / "out") == LINES
    assert (tmp_path / "out").read_bytes() == whole()
    (tmp_path / "out.partial").write_bytes(b"(TOP something\n")
    with pytest.raises(OverwriteError, match="is not of an unfinished job"):
        run(tmp_path / "out")
    assert (tmp_path / "out.partial").read_bytes() == b"(TOP something\n"
    assert run(tmp_path / "out", force=True) == LINES


@pytest.mark.parametrize(("ending", "decompress"), [("gz", gzip.decompress), ("xz", lzma.decompress)])
def test_compressed_output_is_resumed(tmp_path, ending, decompress):
    straight, resumed = tmp_path / f"straight.{ending}", tmp_path / f"resumed.{ending}"
    run(straight)
    cut(resumed)
    assert run(resumed) == LINES[7:]
    assert resumed.read_bytes() == straight.read_bytes()
    assert decompress(resumed.read_bytes()) == whole()
    assert names(tmp_path) == [resumed.name, straight.name]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"identity": {**JOB, "seed": 1}}, r"of another job \(seed differ\)"),
        ({"identity": {**JOB, "models": ["a", "b"]}}, r"of another job \(models differ\)"),
        ({"lines": ["other\n", *LINES[1:]]}, "the first 7 lines of the input are not those"),
        ({"lines": [*LINES[:6], "other\n", *LINES[7:]]}, "the first 7 lines of the input are not those"),
        ({"lines": LINES[:5]}, "it has 7 records, but the input only 5 lines"),
    ],
)
def test_another_job_is_refused_and_loses_nothing(tmp_path, change, message):
    cut(tmp_path / "out")
    with pytest.raises(UsageError, match=message):
        run(tmp_path / "out", **change)
    assert run(tmp_path / "out") == LINES[7:]
    assert (tmp_path / "out").read_bytes() == whole()


def test_input_that_changes_later_is_the_new_input(tmp_path):
    cut(tmp_path / "out")
    assert run(tmp_path / "out", lines=[*LINES[:7], "other\n"]) == ["other\n"]


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"n_done": 1', "\xff"])
def test_a_damaged_journal(tmp_path, text):
    cut(tmp_path / "out")
    (tmp_path / "out.partial.json").write_text(text, encoding="latin-1")
    with pytest.raises(UsageError, match="damaged"):
        run(tmp_path / "out")


def test_a_shortened_file(tmp_path):
    cut(tmp_path / "out")
    os.truncate(tmp_path / "out.partial", 10)
    with pytest.raises(UsageError, match="shorter than it was"):
        run(tmp_path / "out")


def test_a_job_that_fails_at_once_leaves_nothing(tmp_path):
    cut(tmp_path / "out", stop_at=LINES[0])
    assert names(tmp_path) == []


def test_two_jobs_do_not_write_one_file(tmp_path):
    with PartialOutput(tmp_path / "out", JOB, resume=False) as output:
        output.skip(iter(["a\n"]))
        output.write("(TOP a)\n", "a\n")
        with pytest.raises(JobError, match="another job is writing it"):
            PartialOutput(tmp_path / "out", JOB, resume=False)
    assert (tmp_path / "out").read_text() == "(TOP a)\n"


def test_a_full_disk_keeps_what_was_committed(tmp_path, monkeypatch):
    cut(tmp_path / "out")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tsgkit._resumable.os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            run(tmp_path / "out")
    assert json.loads((tmp_path / "out.partial.json").read_text())["n_done"] == 7
    run(tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == whole()


def test_folders_and_missing_folders(tmp_path):
    with pytest.raises(IsADirectoryError):
        PartialOutput(tmp_path, JOB, resume=False)
    with pytest.raises(FileNotFoundError):
        PartialOutput(tmp_path / "no" / "out", JOB, resume=False)


def test_a_resumed_file_can_be_read_by_its_job(tmp_path):
    cut(tmp_path / "out")
    with files_of_a_job():
        run(tmp_path / "out")
        note_input(tmp_path / "out")
