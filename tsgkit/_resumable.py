"""Resumable output: what a long job wrote is kept if the job is killed.

While the job runs, ``FILE.partial`` has the records that are done, and the journal ``FILE.partial.json`` identifies the
job and counts the records that are on the disk; at the end the whole file replaces ``FILE``.
"""

import contextlib
import errno
import hashlib
import io
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from tsgkit._files import COMPRESSED_ENDINGS, new_file, open_output, sync_folder
from tsgkit._locks import hold, require_free
from tsgkit._overwriting import forget_output, note_output
from tsgkit.errors import JobError, OverwriteError, UsageError

SECONDS_BETWEEN_COMMITS = 1.0
BLOCK = 1 << 20


class PartialOutput:
    """A file of records, one for every line of input, which is written record by record and survives a killed job.

    Parameters
    ----------
    path : path
        The file that is written at the end; with a name in .gz or .xz it is compressed.
    identity : dict
        What the records depend on, besides the input, as JSON values: a job is resumed only with the same identity.
    resume : bool
        Whether to continue from the records of a killed job of the same identity.
    force : bool
        Whether to discard the records of a killed job; otherwise they are not replaced.
    blank_line_ends : bool
        Whether a record ends with a blank line; otherwise every line is a record.

    Attributes
    ----------
    n_done : int
        Records in the file.
    is_finished : bool
        Whether all records of the job to be resumed are in `path` already.

    Raises
    ------
    OverwriteError
        If a killed job has left records, and neither `resume` nor `force` is given; or if `path` is an input.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        identity: dict[str, Any],
        *,
        resume: bool,
        force: bool = False,
        blank_line_ends: bool = False,
    ) -> None:
        self.path, self.force = Path(os.path.realpath(path)), force
        self.partial, self.journal = Path(f"{self.path}.partial"), Path(f"{self.path}.partial.json")
        self.identity = json.loads(json.dumps(identity))
        self.blank_line_ends = blank_line_ends
        self.n_done = self.n_resumed = 0
        # Of the lines whose records are in the file, after `skip` has read those of the killed job.
        self.digest = hashlib.sha256()
        self.has_skipped = False
        self.committed: dict[str, Any] = {}
        self.next_commit = 0.0
        if self.path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a folder; name a file", str(self.path))
        require_free(self.path)
        self.is_finished = resume and self.was_finished()
        if not self.is_finished:
            for output in (self.path, self.partial, self.journal):
                note_output(output)
            self.file = self.open(resume)

    # ---- start ---------------------------------------------------------------------------------------

    def was_finished(self) -> bool:
        """Whether a job was killed after its file was renamed, before its journal was removed."""
        if self.partial.exists() or not self.path.exists() or not self.journal.exists():
            return False
        self.read_journal()
        if self.committed.get("finished"):
            self.journal.unlink()
        return bool(self.committed.get("finished"))

    def open(self, resume: bool) -> BinaryIO:
        # Opened without truncating it: another job may be writing it.
        descriptor = os.open(self.partial, os.O_RDWR | os.O_CREAT, 0o666)
        file = os.fdopen(descriptor, "r+b", buffering=BLOCK)
        try:
            if not hold(descriptor):
                raise JobError(f"{self.partial}: another job is writing it; name another --output")
            if resume and self.journal.exists():
                self.read_journal()
                self.find_end(file)
            else:
                if not self.force:
                    self.require_nothing_left()
                file.truncate(0)
                self.committed = {"n_done": 0, "n_bytes": 0, "digest": self.digest.hexdigest()}
                self.write_journal()
        except BaseException:
            file.close()
            raise
        return file

    def require_nothing_left(self) -> None:
        """Refuse to discard the records of a killed job, or a file that only has the name of one."""
        if not self.partial.stat().st_size:
            return
        if not self.journal.exists():
            raise OverwriteError(f"{self.partial}: exists, but is not of an unfinished job; --force replaces it")
        n_lines = sum(1 for _ in open_lines(self.partial))
        raise OverwriteError(
            f"{self.partial}: holds {n_lines} lines of a job that was not finished; --resume continues it,"
            " --force discards it, another --output keeps it"
        )

    def read_journal(self) -> None:
        try:
            saved = json.loads(self.journal.read_text(encoding="utf-8"))
            self.committed = {name: saved[name] for name in ("n_done", "n_bytes", "digest")}
            self.committed["finished"] = saved.get("finished", False)
            identity = dict(saved["identity"])
            if any(type(self.committed[name]) is not int or self.committed[name] < 0 for name in ("n_done", "n_bytes")):
                raise ValueError("not a number of records or bytes")
        except (ValueError, KeyError, TypeError):
            raise self.not_resumable(f"{self.journal} is damaged") from None
        if identity != self.identity:
            names = [name for name in self.identity if identity.get(name) != self.identity[name]]
            raise self.not_resumable(f"it is of another job ({', '.join(names) or 'its kind'} differ)")

    def not_resumable(self, problem: str) -> UsageError:
        return UsageError(
            f"{self.partial}: {problem}; name another --output, or give --force instead of --resume to discard it"
        )

    def find_end(self, file: BinaryIO) -> None:
        """Truncate the file after its last whole record, which may come after the last committed one."""
        n_bytes, n_committed = self.committed["n_bytes"], self.committed["n_done"]
        if file.seek(0, io.SEEK_END) < n_bytes:
            raise self.not_resumable("it is shorter than it was")
        # All of it is read: with a journal that counts other records, some would be lost or written twice.
        position = end = file.seek(0)
        n_found_of_committed = 0 if n_bytes == 0 else None
        for line in file:
            position += len(line)
            if line.endswith(b"\n") and (not self.blank_line_ends or line == b"\n"):
                end = position
                self.n_done += 1
                if end == n_bytes:
                    n_found_of_committed = self.n_done
        if n_found_of_committed != n_committed:
            raise self.not_resumable(f"{self.journal} does not fit it")
        file.seek(end)
        file.truncate()
        self.n_resumed = self.n_done

    # ---- records -------------------------------------------------------------------------------------

    def skip(self, lines: Iterator[str]) -> Iterator[str]:
        """The lines of input without records; those with records must be the lines of the killed job."""
        for number in range(self.n_done):
            if number == self.committed["n_done"]:
                self.check_digest()
            line = next(lines, None)
            if line is None:
                raise self.not_resumable(f"it has {self.n_done} records, but the input only {number} lines")
            self.digest.update(line.encode())
        if self.n_done == self.committed["n_done"]:
            self.check_digest()
        self.has_skipped = True
        return lines

    def check_digest(self) -> None:
        if self.digest.hexdigest() != self.committed["digest"]:
            n_lines = self.committed["n_done"]
            raise self.not_resumable(f"the first {n_lines} lines of the input are not those it was made of")

    def write(self, record: str, line: str) -> None:
        """Append the record of a line of input."""
        self.file.write(record.encode())
        self.digest.update(line.encode())
        self.n_done += 1
        if time.monotonic() >= self.next_commit:
            self.commit()

    def commit(self, *, finished: bool = False) -> None:
        """Flush all records to the disk, then count them in the journal."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.committed = {"n_done": self.n_done, "n_bytes": self.file.tell(), "digest": self.digest.hexdigest()}
        self.committed["finished"] = finished
        self.write_journal()
        self.next_commit = time.monotonic() + SECONDS_BETWEEN_COMMITS

    def write_journal(self) -> None:
        with new_file(self.journal) as file:
            file.write(json.dumps({**self.committed, "identity": self.identity}).encode())

    # ---- end -----------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Replace `path` by the whole file."""
        self.commit(finished=True)
        if self.path.name.endswith(COMPRESSED_ENDINGS):
            self.file.seek(0)
            with open_output(self.path) as compressed:
                text = io.TextIOWrapper(self.file, encoding="utf-8", newline="")
                shutil.copyfileobj(text, compressed, BLOCK)
                text.detach()
            self.partial.unlink()
        else:
            os.replace(self.partial, self.path)
        sync_folder(self.path.parent)
        forget_output(self.path)  # the file is that of the partial results, which was an output
        self.journal.unlink()

    def __enter__(self) -> "PartialOutput":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_finished:
            return
        try:
            if kind is None:
                self.finish()
            elif self.n_done:
                if self.has_skipped:
                    with contextlib.suppress(OSError):  # the disk is full: what was committed before is kept
                        self.commit()
            else:
                self.partial.unlink(missing_ok=True)
                self.journal.unlink(missing_ok=True)
        finally:
            self.file.close()


def open_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file."""
    with open(path, "rb") as file:
        yield from file
