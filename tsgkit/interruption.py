"""Ctrl-C in two steps: the first asks a job to stop at the next safe point, the second stops it at once."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


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
