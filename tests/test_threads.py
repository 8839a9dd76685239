"""Pools of threads that run already, and what becomes of them where memory is lacking."""

import subprocess
import sys
import threading

import pytest
from processes import needs_proc

from tsgkit._threads import prepare_thread, thread_pool


def test_a_thread_is_prepared_for_exceptions_once():
    """Twice as good as once; where memory ends, `tests/oom` tells."""
    with thread_pool(3) as pool:
        assert [call.result() for call in [pool.submit(lambda: (prepare_thread(), prepare_thread())) for _ in range(9)]]


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_all_threads_run_before_there_is_work(n_threads):
    with thread_pool(n_threads, "early") as pool:
        early = [thread for thread in threading.enumerate() if thread.name.startswith("early")]
        assert len(early) == n_threads
        assert sorted(pool.map(abs, range(-20, 0))) == list(range(1, 21))
        assert [thread for thread in threading.enumerate() if thread.name.startswith("early")] == early
    assert not any(thread.is_alive() for thread in early)


# Megabytes of addresses above what is taken already: the pool has so many threads, or there is no memory for one.
UNDER_A_LIMIT = """
import resource, sys, threading
from tsgkit._threads import thread_pool
addresses = int(open("/proc/self/status").read().split("VmSize:")[1].split()[0]) << 10
resource.setrlimit(resource.RLIMIT_AS, 2 * (addresses + (int(sys.argv[1]) << 20),))
try:
    with thread_pool(4, "limited") as pool:
        print(sum(thread.name.startswith("limited") for thread in threading.enumerate()), sum(pool.map(abs, range(10))))
except MemoryError as error:
    print(error)
"""


@needs_proc
def test_as_many_threads_as_there_is_memory_for():
    answers = []
    for more in (1, 8, 40, 70, 90, 120, 160, 200, 240, 320, 1000):
        done = subprocess.run(
            [sys.executable, "-c", UNDER_A_LIMIT, str(more)], capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), more
        answers.append(done.stdout.strip())
    assert answers[:4] == ["no memory for a thread"] * 4
    counts = [int(answer.split()[0]) for answer in answers[4:]]
    assert all(answer.split()[1] == "45" for answer in answers[4:])
    assert (counts == sorted(counts), counts[0], counts[-1]) == (True, 1, 4)


@needs_proc
def test_no_threads_where_the_system_gives_none(monkeypatch):
    def start(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(MemoryError, match="can't start new thread"):
        thread_pool(2)
