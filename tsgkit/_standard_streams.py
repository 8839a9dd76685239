"""Standard streams that can be used even if the shell has closed them (``tsgkit COMMAND <&- >&-``).

Python sets a closed stream to None, and the next file that is opened takes its descriptor, so that output to stdout
could end in a file of the user. Here the descriptors are occupied, and using a closed stream raises an `OSError`.
"""

import contextlib
import errno
import io
import os
import sys
from typing import Any


class ClosedStream(io.RawIOBase):
    """A stream that reports that it is closed when it is used."""

    def __init__(self, name: str) -> None:
        self.name = name

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        raise OSError(errno.EBADF, "is closed", self.name)

    def write(self, data: Any) -> int:
        raise OSError(errno.EBADF, "is closed", self.name)


def replace_closed_streams() -> None:
    """Replace standard streams that are closed: messages are discarded, everything else raises an error when used."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if None not in streams:
        return
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            occupy(descriptor)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(ClosedStream("the standard input")), encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(ClosedStream("the standard output")), encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - to the end of the process


def occupy(descriptor: int) -> None:
    """Open the null device with this descriptor."""
    null = os.open(os.devnull, os.O_RDWR)
    if null != descriptor:
        os.dup2(null, descriptor)
        os.close(null)


def discard_stdout() -> None:
    """Discard what could not be written to stdout: Python would try again at exit, and print a traceback."""
    null = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - to the end of the process
    with contextlib.suppress(OSError, ValueError):
        os.dup2(null.fileno(), sys.stdout.fileno())
        sys.stdout.flush()
        null.close()
        return
    # Not a stream with a descriptor; detached, so that it is not flushed when it is deleted.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.detach()  # type: ignore[union-attr]
    sys.stdout = null
