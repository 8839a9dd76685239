"""Ctrl-C: the first asks, the second ends; afterwards everything is as before."""

import contextlib
import signal
import subprocess
import sys
import threading

import pytest
from processes import hear_interrupts, wait_until

from tsgkit import _interruption
from tsgkit._interruption import Abandoned, Background, has_abandoned, interruptible


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


# ---- calls in another thread -------------------------------------------------------------------------------------


def test_calls_return_and_raise():
    with Background() as background:
        assert background.run(lambda: threading.current_thread() is not threading.main_thread())
        with pytest.raises(ZeroDivisionError):
            background.run(lambda: 1 / 0)
        assert background.run(lambda: 3, stopped=lambda: True) == 3


def test_a_call_that_does_not_end_is_given_up(monkeypatch):
    monkeypatch.setattr(_interruption, "PATIENCE", 0.01)
    monkeypatch.setattr(_interruption, "ABANDONED", [])
    release = threading.Event()
    with Background() as background:
        with pytest.raises(Abandoned):
            background.run(release.wait, stopped=lambda: True)
        assert has_abandoned()
        release.set()
    wait_until(lambda: not has_abandoned())


# The iteration never ends, as if compiled code were at work; it begins with the second.
ENDLESS = """
import sys, threading
from tsgkit.inference._training import Training
from tsgkit._tools import train
iterate = Training.iterate

def endless(self, iteration):
    if iteration == 3:
        print("now", flush=True)
        threading.Event().wait()
    return iterate(self, iteration)

if __name__ != "__mp_main__" or "--chains=2" in sys.argv:
    Training.iterate = endless
if __name__ == "__main__":
    sys.exit(train.main(["--model=tsg", "--iterations=9", "--average=1", "village:dev", "-o", "m", *sys.argv[1:]]))
"""


@pytest.mark.parametrize("options", [[], ["--chains=2", "--jobs=2"]], ids=["one", "chains"])
def test_ctrl_c_in_an_iteration_that_does_not_end(tmp_path, tsgkit, options):
    (tmp_path / "endless.py").write_text(ENDLESS)
    process = subprocess.Popen(
        [sys.executable, "endless.py", *options],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - no threads
    )
    for _ in range(2 if options else 1):
        assert process.stdout.readline() == "now\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert "interrupted" in said
    common = ("train", "-q", "--model=tsg", "--iterations=9", "--average=1", "village:dev", *options)
    tsgkit(*common, "-o", "m", "--resume")
    tsgkit(*common, "-o", "whole")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
