"""Processes that end with the process that started them, however that ends."""

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from multiprocessing.connection import wait

SECONDS_BETWEEN_LOOKS = 0.1
PR_SET_PDEATHSIG = 1  # of Linux's prctl


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
