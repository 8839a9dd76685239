"""One writer at a time: locks on files, which the system releases if their process dies."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from tsgkit.errors import JobError

try:
    import fcntl
except ImportError:  # a system without file locks, where users must see to it that two jobs have different outputs
    fcntl = None  # type: ignore[assignment]

SECONDS_BETWEEN_TRIES = 0.05
# The locks that this process holds.
held: set[Path] = set()


@contextlib.contextmanager
def sole_writer(*paths: str | os.PathLike[str], patience: float = 0.0) -> Iterator[None]:
    """Hold the locks of some files in this block.

    Parameters
    ----------
    *paths : path
    patience : float
        How many seconds to wait for a process that holds one of them, because it is known to be ending.

    Raises
    ------
    JobError
        If another process holds one of them; the message has its process id.
    """
    with contextlib.ExitStack() as stack:
        for path in paths:
            stack.enter_context(locked(Path(os.path.realpath(path)), patience))
        yield


@contextlib.contextmanager
def locked(target: Path, patience: float) -> Iterator[None]:
    """Hold the lock of one file."""
    if target.exists() and not target.is_file():
        yield
        return
    name = lock_name(target)
    handle = lock(name, target, time.monotonic() + patience)
    held.add(name)
    try:
        yield
    finally:
        held.discard(name)
        # Removed before it is released, so that no other process can have acquired it.
        with contextlib.suppress(OSError):
            os.unlink(name)
        os.close(handle)


def lock_name(target: Path) -> Path:
    return target.with_name(f".{target.name}.lock")


def lock(name: Path, target: Path, deadline: float) -> int:
    """An open file that holds the lock; closing it releases the lock."""
    while True:
        try:
            handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(target)) from None
        try:
            if hold(handle):
                if is_same(handle, name):
                    # Only for the message: if the disk is full, writing the output will fail.
                    with contextlib.suppress(OSError):
                        os.ftruncate(handle, 0)
                        os.pwrite(handle, str(os.getpid()).encode("ascii"), 0)
                    return handle
            elif time.monotonic() >= deadline:
                raise taken(target, handle)
            else:
                time.sleep(SECONDS_BETWEEN_TRIES)
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def taken(target: Path, handle: int) -> JobError:
    try:
        owner = os.read(handle, 20).decode("ascii", errors="replace") or "unknown"
    except OSError:
        owner = "unknown"
    return JobError(f"{target}: another process ({owner}) is writing it; wait until it ends, or name another --output")


def require_free(target: Path) -> None:
    """Raise a `JobError` if another process holds the lock of a file."""
    name = lock_name(target)
    if name in held:
        return
    try:
        handle = os.open(name, os.O_RDONLY)
    except OSError:  # nobody has locked it
        return
    try:
        if not hold(handle):
            raise taken(target, handle)
    finally:
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
