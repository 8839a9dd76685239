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
from typing import IO, Any, BinaryIO, TextIO, cast

from tsgkit._locks import hold, is_same, require_free
from tsgkit._overwriting import allow_replacing, note_input, note_output
from tsgkit.errors import TreebankError, UsageError

GZIP_MAGIC = b"\x1f\x8b"
XZ_MAGIC = b"\xfd7zXZ\x00"
ZIP_MAGIC = b"PK\x03\x04"
ZIP_REMEDY = (
    "unpack it and name the folder or its files; a model or corpus of tsgkit is one, too (`tsgkit info` says so), and"
    " has no trees to read"
)
COMPRESSED_ENDINGS = (".gz", ".xz")
# What reading raises when a gzip or xz file is damaged or cut short.
DAMAGED_ARCHIVE = (gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)
# A few compressed bytes may expand to more than the memory: no line, and no file that is read at once, may be longer.
LONGEST_LINE = 1 << 26
LARGEST_TEXT = 1 << 31
LARGEST_TABLE = 1 << 24
# Treebanks and text are compressed to a fifth or a twentieth. What expands to more than this ratio is hostile, or very
# repetitive; files that expand to little are read in any case.
LARGEST_EXPANSION = 250
FREE_EXPANSION = 1 << 24
EXPANSION_VARIABLE = "TSGKIT_MAX_EXPANSION"
# The random part of the name of a temporary file, as `tempfile` makes it.
PART_LETTERS = 8


@contextlib.contextmanager
def open_binary(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file, or stdin for ``-``, for reading bytes; gzip and xz are decompressed, whatever the name is."""
    with contextlib.ExitStack() as stack:
        raw = standard_input() if str(path) == "-" else stack.enter_context(open(path, "rb"))
        note_input(path if str(path) != "-" else descriptor_of(raw), name="the standard input" if path == "-" else "")
        magic = raw.peek(len(XZ_MAGIC))  # type: ignore[attr-defined]
        if not magic.startswith((GZIP_MAGIC, XZ_MAGIC)):
            yield raw
            return
        counted = CountedReads(raw)
        packed = cast(BinaryIO, io.BufferedReader(counted))
        unpack = gzip.open if magic.startswith(GZIP_MAGIC) else lzma.open
        unpacked = cast(BinaryIO, stack.enter_context(unpack(packed)))
        yield cast(BinaryIO, io.BufferedReader(BoundedExpansion(unpacked, counted)))


def require_text(start: bytes, path: str) -> None:
    """Refuse a file that begins as models and corpora do, before it is taken for text of a strange encoding."""
    if start.startswith(ZIP_MAGIC):
        raise TreebankError(f"a zip archive: {ZIP_REMEDY}", path)


def standard_input() -> BinaryIO:
    return cast(BinaryIO, sys.stdin.buffer)


def descriptor_of(file: BinaryIO) -> int:
    """The descriptor of a file, or -1 if it has none."""
    try:
        return file.fileno()
    except (OSError, ValueError):
        return -1


class CountedReads(io.RawIOBase):
    """The bytes of a file, which are counted as they are read."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.n_bytes = file, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.file.read1(len(buffer))  # type: ignore[attr-defined]
        buffer[: len(data)] = data
        self.n_bytes += len(data)
        return len(data)


class BoundedExpansion(CountedReads):
    """Decompressed bytes; a `TooLongError` as soon as they are far more than any text would be compressed from."""

    def __init__(self, file: BinaryIO, packed: CountedReads) -> None:
        super().__init__(file)
        self.packed, self.largest_ratio = packed, largest_expansion()

    def readinto(self, buffer: Any) -> int:
        n_read = super().readinto(buffer)
        if self.n_bytes > max(FREE_EXPANSION, self.largest_ratio * self.packed.n_bytes):
            raise TooLongError(
                f"{self.packed.n_bytes} compressed bytes expand to more than {self.n_bytes >> 20} MB, over"
                f" {self.largest_ratio:g} times as much; if you trust the file, set {EXPANSION_VARIABLE} to a larger"
                " ratio, or decompress it first"
            )
        return n_read


def largest_expansion() -> float:
    """How many times its size a compressed file may expand to: the default, or that of the environment variable."""
    text = os.environ.get(EXPANSION_VARIABLE, "")
    try:
        ratio = float(text or LARGEST_EXPANSION)
    except ValueError:
        ratio = 0.0
    if not ratio >= 1:
        raise UsageError(f"{EXPANSION_VARIABLE}={text}: must be a number of at least 1")
    return ratio


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


def read_table(path: str | os.PathLike[str], what: str, largest: int = LARGEST_TABLE) -> str:
    """The text of a small file that a user has written, such as head rules; `what` names such files in messages.

    Raises
    ------
    TreebankError
        If it is too long, is not UTF-8, or is compressed and damaged.
    """
    try:
        with open_binary(path) as file:
            content = whole_text(file, largest)
    except TooLongError as error:
        raise TreebankError(f"{error}", str(path)) from None
    except DAMAGED_ARCHIVE as error:
        raise TreebankError(f"the compressed file is damaged: {error}", str(path)) from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TreebankError(f"not UTF-8; {what} are read as UTF-8 only", str(path), line) from None


@contextlib.contextmanager
def new_file(path: str | os.PathLike[str], *, is_archive: bool = False) -> Iterator[BinaryIO]:
    """Write a temporary file that replaces `path` when the block ends without an error.

    The bytes are on the disk before the file is renamed, so that after a crash there is either the old file or the
    whole new one. A symbolic link stays, and the file that it names is replaced. An input of the same command is not
    replaced, nor a model by something that is no archive.
    """
    target = Path(os.path.realpath(path))
    note_output(target, is_archive=is_archive)
    require_free(target)
    if target.is_dir():
        raise IsADirectoryError(21, "is a folder; name a file", str(target))
    if target.exists() and not target.is_file():  # a pipe or a device is written directly
        with open(target, "wb") as device:
            yield device
        return
    remove_parts(target)
    handle, name = new_part(target)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~current_umask())
        os.replace(name, target)
        allow_replacing(target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    sync_folder(target.parent)


def new_part(target: Path) -> tuple[int, str]:
    """A temporary file for `target`, locked by this process; returns its descriptor and its name."""
    while True:
        try:
            handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        except OSError as error:  # names the temporary file, which the user does not know
            raise type(error)(error.errno, error.strerror, str(target)) from None
        if hold(handle) and is_same(handle, Path(name)):
            return handle, name
        os.close(handle)  # another process has taken it for a stale one, between these two steps


def remove_parts(path: str | os.PathLike[str]) -> None:
    """Remove the temporary files that killed writers of `path` have left; those of other writers are locked."""
    target = Path(path)
    with contextlib.suppress(OSError):  # of another user, or removed already
        for part in target.parent.glob(f".{glob.escape(target.name)}.{'?' * PART_LETTERS}.part"):
            with open(part, "rb") as file:
                if hold(file.fileno()):
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
            if isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(encoding="utf-8")
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
