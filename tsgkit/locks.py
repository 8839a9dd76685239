"""One writer at a time: the right to write a file and what lies beside it; the system takes it back from the dead."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tsgkit.errors import JobError

try:
    import fcntl
except ImportError:  # there is nothing like it on this system: two jobs with one output are the user's affair
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def sole_writer(path: str | os.PathLike[str]) -> Iterator[None]:
    """In this block no other process is in such a block for the same file.

    Raises
    ------
    JobError
        At once if another process is; the message names it.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        yield
        return
    name = target.with_name(f".{target.name}.lock")
    handle = lock(name, target)
    try:
        yield
    finally:
        # Removed before it is let go, so that nobody can have taken it over.
        with contextlib.suppress(OSError):
            os.unlink(name)
        os.close(handle)


def lock(name: Path, target: Path) -> int:
    """An open file that holds the lock; it is let go when closed."""
    while True:
        try:
            handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(target)) from None
        if not hold(handle):
            owner = os.read(handle, 20).decode("ascii", errors="replace") or "unknown"
            os.close(handle)
            raise JobError(
                f"{target}: another process ({owner}) is writing it; wait until it ends, or name another --output"
            )
        if is_same(handle, name):
            # Only for the message above: a full disk is found later, by those who write more.
            with contextlib.suppress(OSError):
                os.ftruncate(handle, 0)
                os.pwrite(handle, str(os.getpid()).encode("ascii"), 0)
            return handle
        os.close(handle)


def hold(handle: int) -> bool:
    """Take the lock of an open file, unless another process has it. Where there are no locks, nobody has any."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems have no locks
        pass
    return True


def is_same(handle: int, name: Path) -> bool:
    """Whether an open file still has its name: its owner may have removed it before we held the lock."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(name))
    except FileNotFoundError:
        return False
