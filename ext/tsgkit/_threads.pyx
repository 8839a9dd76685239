"""Threads of Python that run compiled code.

Python starts the threads of a pool one after the other, when there is work for them, and waits until a new thread has
said that it runs. One that finds no memory ends before that, and Python waits without end. C++ keeps what it needs to
throw an exception for every thread, and asks for it when the first one is thrown; where there is no memory for that,
the process ends. So all threads start before there is work, while nothing else takes memory, after a look at how many
there is memory for.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

from libcpp cimport bool as bool_t

cdef extern from "parallel.hpp" namespace "tsgkit" nogil:
    bool_t prepare_throwing()
    int count_rooms(int n_rooms, size_t n_bytes)

# What a thread takes before it does anything: a stack, unless it has another size, and the addresses that the C library
# sets aside for what the thread allocates.
cdef size_t STACK = 8 << 20
cdef size_t ALLOCATED = 68 << 20


def prepare_thread():
    """Make sure that compiled code can report a failed allocation in this thread; raises MemoryError if not."""
    if not prepare_throwing():
        raise MemoryError("no memory for a thread")


def thread_pool(int n_threads, str name=""):
    """A pool of threads that have been prepared: so many, or fewer if there is memory for fewer, but at least one.

    Parameters
    ----------
    n_threads : int
    name : str
        What the names of its threads begin with.

    Returns
    -------
    concurrent.futures.ThreadPoolExecutor

    Raises
    ------
    MemoryError
        If there is no memory for a thread.
    """
    cdef int n_started = count_rooms(n_threads, max(STACK, <size_t>threading.stack_size()) + ALLOCATED)
    if n_started == 0:
        raise MemoryError("no memory for a thread")
    pool = ThreadPoolExecutor(n_started, thread_name_prefix=name)
    # No thread is idle before all have come, and so the pool starts another one for every call.
    everyone = threading.Barrier(n_started)

    def prepare():
        try:
            prepare_thread()
        except BaseException:
            everyone.abort()
            raise
        everyone.wait()

    try:
        for ready in [pool.submit(prepare) for _ in range(n_started)]:
            ready.result()
    except BaseException as error:
        everyone.abort()
        pool.shutdown(cancel_futures=True)
        if isinstance(error, RuntimeError):  # the system gives no more threads
            raise MemoryError(str(error)) from error
        raise
    return pool
