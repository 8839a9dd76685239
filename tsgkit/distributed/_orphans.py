"""Processes that end with the process that started them, however that ends, and leave Ctrl-C to it."""

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import wait

SECONDS_BETWEEN_LOOKS = 0.1
PR_SET_PDEATHSIG = 1  # of Linux's prctl


@contextlib.contextmanager
def leaving_interrupts_to_parent() -> Iterator[None]:
    """Keep Ctrl-C from the processes that are started in this block, from their first instruction on.

    A terminal sends it to them, too, and an interpreter that has not come far would print a traceback. For this process
    it is only put off. Where a system cannot do this, nothing is changed.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # later, its start would let signals in again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """Kill this process when the one that started it through `multiprocessing` has ended.

    Whatever it writes is whole or not there, so that it can be killed at any moment. On Linux the kernel kills it; in
    addition, and elsewhere, a thread waits for the end of a pipe that the parent holds open.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        end()

    threading.Thread(target=watch, daemon=True).start()


def watch_parent() -> None:
    """Kill this process when its parent has ended; a thread looks after it. Only the first call has an effect.

    For processes that were started by others, from a thread that may end earlier than the process.
    """
    if any(thread.name == watch_parent.__qualname__ for thread in threading.enumerate()):
        return
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        end()

    threading.Thread(target=watch, daemon=True, name=watch_parent.__qualname__).start()


def end() -> None:
    """End this process as if it had been killed."""
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
