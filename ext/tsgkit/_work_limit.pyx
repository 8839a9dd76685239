"""How long a sentence may be worked at: a deadline and a flag that any thread can set.

Inside of all kernels of the parser. Work ends where ``now >= start + seconds``, where somebody cancelled it, or where
Ctrl-C was pressed.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY

from tsgkit.errors import CancelledError, OutOfTimeError

cdef double SECONDS_BETWEEN_SIGNAL_CHECKS = 0.1


@cython.final
cdef class WorkLimit:
    """When to stop working at a sentence.

    Parameters
    ----------
    seconds : float, optional
        From now on; unless given, as long as it takes.
    """

    def __cinit__(self):
        self.limits.flag.store(False)
        self.limits.is_cancelled = &self.limits.flag
        self.limits.deadline = INFINITY
        self.limits.next_signal_check = 0.0
        self.limits.n_checks = 0

    def __init__(self, seconds=None):
        if seconds is not None:
            if not seconds > 0:
                raise ValueError(f"{seconds} seconds: must be above 0")
            self.limits.deadline = monotonic_seconds() + seconds

    def part(self):
        """A limit for another thread that works at the same sentence: it ends when this one does."""
        cdef WorkLimit part = WorkLimit()
        part.whole, part.limits.deadline = self, self.limits.deadline
        part.limits.is_cancelled = self.limits.is_cancelled
        return part

    def cancel(self):
        """End the work soon, whatever thread does it: it raises CancelledError there."""
        self.limits.is_cancelled.store(True)

    @property
    def is_cancelled(self):
        """Whether `cancel` was called."""
        return self.limits.is_cancelled.load()

    def check(self):
        """Raise what compiled code raises where the work is to end; for loops in Python."""
        look(&self.limits)


cdef int look(Limits* limits) except -1 nogil:
    cdef double now = monotonic_seconds()
    if limits.is_cancelled.load():
        with gil:
            raise CancelledError("the work was cancelled")
    if now >= limits.deadline:
        with gil:
            raise OutOfTimeError("the sentence takes more time than it may")
    if now >= limits.next_signal_check:
        limits.next_signal_check = now + SECONDS_BETWEEN_SIGNAL_CHECKS
        with gil:
            PyErr_CheckSignals()
    return 0
