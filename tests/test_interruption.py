"""Ctrl-C: the first asks, the second ends; afterwards everything is as before."""

import contextlib
import signal
import threading

import pytest

from tsgkit.interruption import interruptible


@pytest.fixture(autouse=True)
def default_handler():
    """Jobs in the background of a shell ignore Ctrl-C, and so would these tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_first_asks_and_the_second_ends():
    asked = []
    with interruptible(lambda: asked.append(True)):
        signal.raise_signal(signal.SIGINT)
        assert asked == [True]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert asked == [True]


def test_the_handler_is_restored():
    with contextlib.suppress(RuntimeError), interruptible(lambda: None):
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        raise RuntimeError
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_leave_the_handler_alone():
    seen = []

    def work():
        with interruptible(lambda: None):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
