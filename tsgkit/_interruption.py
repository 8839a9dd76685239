"""Ctrl-C in two steps: the first asks a job to stop at the next safe point, the second stops it at once.

Python handles signals in the main thread, between two of its instructions: compiled code that runs there for minutes
delays them for minutes. `Background` runs such code in another thread, so that the main thread can react within a
fraction of a second, and give up waiting.
"""

import atexit
import contextlib
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from tsgkit._exit_codes import EXIT_INTERRUPTED

T = TypeVar("T")
SECONDS_BETWEEN_LOOKS = 0.05
# How long a call may go on after it was asked to stop, before it is given up.
PATIENCE = 0.3


@contextmanager
def interruptible(stop: Callable[[], None]) -> Iterator[None]:
    """Let the first Ctrl-C in this block call `stop`, and the second one raise `KeyboardInterrupt`."""
    asked = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        stop()

    try:
        before = signal.signal(signal.SIGINT, interrupt)
    except ValueError:  # not in the main thread, which alone handles signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Abandoned(Exception):
    """A call was given up because its job should stop; it still runs in its thread."""


class Call:
    """A call in another thread."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.value: Any = None
        self.error: BaseException | None = None
        self.is_done = threading.Event()

    def run(self) -> None:
        try:
            self.value = self.function()
        except BaseException as error:  # raised again where it is waited for
            self.error = error
        self.is_done.set()


class Background:
    """A thread that runs calls one after the other, while the thread that made them waits.

    Examples
    --------
    >>> with Background() as background:
    ...     background.run(lambda: 6 * 7)
    42
    """

    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self.thread: threading.Thread | None = None

    def run(self, function: Callable[[], T], stopped: Callable[[], bool] = lambda: False) -> T:
        """Call a function and wait for it.

        Raises
        ------
        Abandoned
            If it has not ended `PATIENCE` seconds after `stopped` returned true.
        """
        if self.thread is None:
            self.thread = threading.Thread(target=self.work, daemon=True)
            self.thread.start()
        call = Call(function)
        self.calls.put(call)
        deadline = None
        try:
            while not call.is_done.wait(SECONDS_BETWEEN_LOOKS):
                if deadline is None and stopped():
                    deadline = time.monotonic() + PATIENCE
                if deadline is not None and time.monotonic() >= deadline:
                    raise Abandoned
        finally:
            if not call.is_done.is_set():
                ABANDONED.append(call)
        if call.error is not None:
            raise call.error
        return call.value

    def work(self) -> None:
        while (call := self.calls.get()) is not None:
            call.run()

    def __enter__(self) -> "Background":
        return self

    def __exit__(self, *error: object) -> None:
        self.calls.put(None)


# Calls that were given up while they ran.
ABANDONED: list[Call] = []


def has_abandoned() -> bool:
    """Whether a call that was given up is still running."""
    return any(not call.is_done.is_set() for call in ABANDONED)


@atexit.register
def end_at_once() -> None:
    """End the process without waiting for compiled code that still runs, and without freeing what it uses."""
    if has_abandoned():
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(EXIT_INTERRUPTED)
