"""One writer at a time: a lock on a file and the files beside it, which the system releases if its process dies."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tsgkit.errors import JobError

try:
    import fcntl
except ImportError:  # a system without file locks, where users must see to it that two jobs have different outputs
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def sole_writer(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of a file in this block.

    Raises
    ------
    JobError
        At once if another process holds it; the message has its process id.
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
        # Removed before it is released, so that no other process can have acquired it.
        with contextlib.suppress(OSError):
            os.unlink(name)
        os.close(handle)


def lock(name: Path, target: Path) -> int:
    """An open file that holds the lock; closing it releases the lock."""
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
            # Only for the message above: if the disk is full, writing the output will fail.
            with contextlib.suppress(OSError):
                os.ftruncate(handle, 0)
                os.pwrite(handle, str(os.getpid()).encode("ascii"), 0)
            return handle
        os.close(handle)


def hold(handle: int) -> bool:
    """Acquire the lock of an open file, unless another process holds it. Without file locks, it is always free."""
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
    """Whether an open file still has its name: another process may have removed it before this one held the lock."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(name))
    except FileNotFoundError:
        return False
