"""Opening files: compression found by content, output that appears whole or not at all.

A reader may name a file or ``-`` for stdin. A writer gets a new file beside the final one, which
takes its place only when everything was written, so that a failed job leaves what was there before.
"""

import contextlib
import glob
import gzip
import io
import lzma
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, TextIO, cast

GZIP_MAGIC = b"\x1f\x8b"
XZ_MAGIC = b"\xfd7zXZ\x00"
PACKED_ENDINGS = (".gz", ".xz")
# What reading raises when a gzip or xz file is damaged or cut short.
DAMAGED_ARCHIVE = (gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)
# A few packed bytes can stand for more than any memory holds: no line and no file that is read at once is longer.
LONGEST_LINE = 1 << 26
LARGEST_TEXT = 1 << 31
# Between the name of a file that is being written and its ending; as many as `tempfile` draws.
PART_LETTERS = 8


@contextlib.contextmanager
def open_binary(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file, or stdin for ``-``, for reading bytes; gzip and xz are unpacked whatever the name."""
    with contextlib.ExitStack() as stack:
        raw = sys.stdin.buffer if str(path) == "-" else stack.enter_context(open(path, "rb"))
        magic = raw.peek(len(XZ_MAGIC))  # type: ignore[union-attr]
        if magic.startswith(GZIP_MAGIC):
            yield cast(BinaryIO, stack.enter_context(gzip.open(raw)))
        elif magic.startswith(XZ_MAGIC):
            yield cast(BinaryIO, stack.enter_context(lzma.open(raw)))
        else:
            yield cast(BinaryIO, raw)


class TooLongError(Exception):
    """What was read is longer than any honest input."""


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, each with its end."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise TooLongError(f"the line is longer than {LONGEST_LINE >> 20} MB")
        yield line


def whole_text(file: BinaryIO, largest: int = LARGEST_TEXT) -> bytes:
    """All bytes of a file, if they are at most `largest`."""
    parts, length = [], 0
    while part := file.read(1 << 20):  # all at once, the memory for the largest would be taken first
        parts.append(part)
        length += len(part)
        if length > largest:
            raise TooLongError(f"the file holds more than {largest >> 20} MB")
    return b"".join(parts)


@contextlib.contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file that takes the place of `path` when the block ends without an error.

    The bytes are on the disk before the new file gets its name, so that after a crash there is either
    the old file or the whole new one.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(21, "is a folder; name a file", str(target))
    if target.exists() and not target.is_file():  # a pipe or a device is written straight
        with open(target, "wb") as device:
            yield device
        return
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~current_umask())
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    sync_folder(target.parent)


def remove_parts(path: str | os.PathLike[str]) -> None:
    """Remove what writers of `path` left who were killed; for those who know that nobody is writing it."""
    target = Path(path)
    with contextlib.suppress(OSError):  # somebody else's, or already gone
        for part in target.parent.glob(f".{glob.escape(target.name)}.{'?' * PART_LETTERS}.part"):
            part.unlink()


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut, where the system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def open_output(path: str | os.PathLike[str] = "-") -> Iterator[TextIO]:
    """Open a text file for writing, all or nothing; ``-`` is stdout, names in .gz and .xz are packed.

    What goes to stdout is held back (in memory, then on disk) until the block ends without an error.
    """
    if str(path) == "-":
        with tempfile.SpooledTemporaryFile(max_size=1 << 20, mode="w+", encoding="utf-8", newline="\n") as spool:
            yield cast(TextIO, spool)
            spool.seek(0)
            sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
            shutil.copyfileobj(spool, sys.stdout)
        return
    with new_file(path) as file, contextlib.ExitStack() as stack:
        packed: IO[bytes] = file
        if str(path).endswith(".gz"):
            # No name and no time inside: the same trees give the same bytes.
            zipped = stack.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
            packed = cast(IO[bytes], zipped)
        elif str(path).endswith(".xz"):
            packed = stack.enter_context(lzma.open(file, "wb"))
        writer = io.TextIOWrapper(packed, encoding="utf-8", newline="\n")
        yield writer
        writer.flush()
        writer.detach()
