"""Input streams: items of which one may fail in the middle, and the first lines of a file before it is read."""

import io
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, BinaryIO, TypeVar, cast

from tsgkit._files import lines_of

T = TypeVar("T")
BYTE_ORDER_MARK = "\ufeff"
# The format of a file is recognised by at most so many lines.
MOST_FIRST_LINES = 100


def until_failure(items: Iterable[T], failures: list[Exception]) -> Iterator[T]:
    """The items before the first one that fails; its exception is appended to `failures`."""
    try:
        yield from items
    except Exception as error:
        failures.append(error)


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of `size` items, the last one shorter; if an item fails, those before it still come.

    Examples
    --------
    >>> list(chunks("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    failures: list[Exception] = []
    left = until_failure(items, failures)
    while chunk := list(islice(left, size)):
        yield chunk
    if failures:
        raise failures[0]


class FirstLines:
    """The first lines of a file as text, to recognise its format; each is read from the file when it is asked for.

    Parameters
    ----------
    file : binary file
        At its beginning.
    encoding : str
        Of the file. Bytes that are not valid in it are replaced: they are reported when the file is read.

    Examples
    --------
    >>> first_lines = FirstLines(io.BytesIO(b"#FORMAT 3\\n#BOS 1\\n"), "utf-8")
    >>> next(iter(first_lines))
    '#FORMAT 3\\n'
    >>> list(first_lines.all_lines())
    [b'#FORMAT 3\\n', b'#BOS 1\\n']
    """

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self.file, self.encoding = file, encoding
        self.taken: list[bytes] = []
        # If one of the first lines cannot be read, those before it can: `check` raises the failure in its turn.
        self.failures: list[Exception] = []
        self.lines = until_failure(lines_of(file), self.failures)

    def __iter__(self) -> Iterator[str]:
        for number in range(MOST_FIRST_LINES):
            if number == len(self.taken):
                self.taken += islice(self.lines, 1)
            if number == len(self.taken):
                return
            yield self.decode(self.taken[number]).removeprefix("" if number else BYTE_ORDER_MARK)

    def decode(self, line: bytes) -> str:
        try:
            return line.decode(self.encoding, errors="replace")
        except (LookupError, UnicodeError):  # not an encoding of text; reported when the file is read
            return ""

    def all_lines(self) -> Iterator[bytes]:
        """The lines of the whole file."""
        yield from self.taken
        yield from self.lines
        self.check()

    def whole_file(self) -> BinaryIO:
        """The file from its beginning, also if it cannot be rewound."""
        return cast(BinaryIO, io.BufferedReader(RewoundFile(self)))

    def check(self) -> None:
        """Raise the failure that ended the lines, if there was one."""
        if self.failures:
            raise self.failures[0]


class RewoundFile(io.RawIOBase):
    """The bytes of a file from its beginning, after its first lines were read."""

    def __init__(self, first_lines: FirstLines) -> None:
        self.source, self.first = first_lines, b"".join(first_lines.taken)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self.first:
            self.source.check()
        data = self.first[: len(buffer)] or self.source.file.read1(len(buffer))  # type: ignore[attr-defined]
        self.first = self.first[len(data) :]
        buffer[: len(data)] = data
        return len(data)
