"""Opening files: compression is recognised by content, and output is written whole or not at all.

A reader may name a file or ``-`` for stdin. A writer gets a temporary file in the same folder, which replaces the
target only when everything is written, so that a failed job leaves the old file.
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
COMPRESSED_ENDINGS = (".gz", ".xz")
# What reading raises when a gzip or xz file is damaged or cut short.
DAMAGED_ARCHIVE = (gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)
# A few compressed bytes may expand to more than the memory: no line, and no file that is read at once, may be longer.
LONGEST_LINE = 1 << 26
LARGEST_TEXT = 1 << 31
# The random part of the name of a temporary file, as `tempfile` makes it.
PART_LETTERS = 8


@contextlib.contextmanager
def open_binary(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file, or stdin for ``-``, for reading bytes; gzip and xz are decompressed, whatever the name is."""
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
    """The input is longer than any that is allowed."""


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, each with its line end."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise TooLongError(f"the line is longer than {LONGEST_LINE >> 20} MB")
        yield line


def whole_text(file: BinaryIO, largest: int = LARGEST_TEXT) -> bytes:
    """All bytes of a file, at most `largest`."""
    parts, length = [], 0
    while part := file.read(1 << 20):  # one read would allocate the memory for the largest file first
        parts.append(part)
        length += len(part)
        if length > largest:
            raise TooLongError(f"the file holds more than {largest >> 20} MB")
    return b"".join(parts)


@contextlib.contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a temporary file that replaces `path` when the block ends without an error.

    The bytes are on the disk before the file is renamed, so that after a crash there is either the old file or the
    whole new one.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(21, "is a folder; name a file", str(target))
    if target.exists() and not target.is_file():  # a pipe or a device is written directly
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
    """Remove the stale temporary files of killed writers of `path`; no other process may be writing it."""
    target = Path(path)
    with contextlib.suppress(OSError):  # of another user, or removed already
        for part in target.parent.glob(f".{glob.escape(target.name)}.{'?' * PART_LETTERS}.part"):
            part.unlink()


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power failure, if the system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def open_output(path: str | os.PathLike[str] = "-") -> Iterator[TextIO]:
    """Open a text file for writing, whole or not at all; ``-`` is stdout, names in .gz and .xz are compressed.

    What goes to stdout is buffered (in memory, then on disk) until the block ends without an error.
    """
    if str(path) == "-":
        with tempfile.SpooledTemporaryFile(max_size=1 << 20, mode="w+", encoding="utf-8", newline="\n") as spool:
            yield cast(TextIO, spool)
            spool.seek(0)
            sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
            shutil.copyfileobj(spool, sys.stdout)
        return
    with new_file(path) as file, contextlib.ExitStack() as stack:
        compressed: IO[bytes] = file
        if str(path).endswith(".gz"):
            # Without name and time, the same trees give the same bytes.
            zipped = stack.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))
            compressed = cast(IO[bytes], zipped)
        elif str(path).endswith(".xz"):
            compressed = stack.enter_context(lzma.open(file, "wb"))
        writer = io.TextIOWrapper(compressed, encoding="utf-8", newline="\n")
        yield writer
        writer.flush()
        writer.detach()
