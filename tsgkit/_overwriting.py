"""Which files a job reads and writes: no file is both, and no writer replaces a trained model by something else.

Every reader calls `note_input` and every writer `note_output`, both in `tsgkit._files` and `tsgkit._archive`, so that a
command is protected without doing anything. Files are compared by device and inode: the spelling of a path, symbolic
links and hard links make no difference. Outside of a command nothing is recorded, and nothing refused.
"""

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from typing import NamedTuple

from tsgkit.errors import OverwriteError

# The last bytes of every archive are its checksum, which begins like this.
SEAL_NAME = b"sha256:"
SEAL_LENGTH = len(SEAL_NAME) + 64
Identity = tuple[int, int]
Path = str | os.PathLike[str]


class JobFile(NamedTuple):
    """A file as the job named it: its path or descriptor, and how messages show it."""

    file: Path | int
    shown: str

    def has(self, identity: Identity) -> bool:
        """Whether it is still the file of this identity: the system uses the inodes of removed files again."""
        return identity_of(self.file) == identity


class JobFiles:
    """The files of a job: inputs and outputs by their identities."""

    def __init__(self) -> None:
        self.inputs: dict[Identity, JobFile] = {}
        self.outputs: dict[Identity, JobFile] = {}
        # Files that the job may replace whatever they hold: the user has asked to, or the job itself has written them.
        self.replaceable: set[str] = set()


current: JobFiles | None = None


@contextlib.contextmanager
def files_of_a_job() -> Iterator[None]:
    """Record the files that are read and written in this block; a block within another one belongs to it."""
    global current  # noqa: PLW0603 - a process runs one command at a time
    if current is not None:
        yield
        return
    current = JobFiles()
    with contextlib.suppress(OSError, ValueError, AttributeError):  # no stdout, or one that is not a file
        if (identity := identity_of(sys.stdout.fileno())) is not None:
            current.outputs[identity] = JobFile(sys.stdout.fileno(), "the standard output")
    try:
        yield
    finally:
        current = None


def identity_of(file: Path | int) -> Identity | None:
    """Device and inode of a regular file, or None if it is something else or does not exist."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def note_input(file: Path | int, name: str = "") -> None:
    """Record that the job reads a file, given by its path or its descriptor.

    Raises
    ------
    OverwriteError
        If the job writes this file.
    """
    if current is None or (identity := identity_of(file)) is None:
        return
    shown = name or (f"descriptor {file}" if isinstance(file, int) else os.fspath(file))
    output = current.outputs.get(identity)
    if output is not None and output.has(identity):
        raise collision(output.shown, shown)
    current.inputs[identity] = JobFile(file, shown)


def note_output(path: Path, *, is_archive: bool = False) -> None:
    """Record that the job will replace a file.

    Raises
    ------
    OverwriteError
        If the job has read this file; or if it holds a model or another archive, and the new file `is_archive` not.
    """
    if current is None or (identity := identity_of(path)) is None:
        return
    require_no_input(path)
    if not is_archive and os.path.realpath(path) not in current.replaceable and is_sealed(path):
        raise OverwriteError(
            f"{os.fspath(path)}: holds a model or another archive of tsgkit, which this output would replace;"
            " name another file, or remove this one first"
        )
    current.outputs[identity] = JobFile(path, os.fspath(path))


def require_no_input(path: Path) -> None:
    """Refuse, before a long job, to write onto a file later that the job has read."""
    if current is None or (identity := identity_of(path)) is None:
        return
    source = current.inputs.get(identity)
    if source is not None and source.has(identity):
        raise collision(os.fspath(path), source.shown)


def allow_replacing(path: Path) -> None:
    """Let this job replace a file whatever it holds, unless it is an input: the user has asked for it, or it is new."""
    if current is not None:
        current.replaceable.add(os.path.realpath(path))


def forget_output(path: Path) -> None:
    """Let this job read a file that it has written itself."""
    if current is not None and (identity := identity_of(path)) is not None:
        current.outputs.pop(identity, None)


def may_replace_anything(path: Path) -> bool:
    """Whether there is no job to protect the file from, or the user has asked to replace it."""
    return current is None or os.path.realpath(path) in current.replaceable


def is_sealed(path: Path) -> bool:
    """Whether a file ends as archives do."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - SEAL_LENGTH))
            return file.read(len(SEAL_NAME)) == SEAL_NAME
    except FileNotFoundError:
        return False


def collision(output: str, source: str) -> OverwriteError:
    same = "" if output == source else f", which is the same file as the input {source}"
    return OverwriteError(f"{output}{same}: is an input of this command, and would be overwritten; name another output")
