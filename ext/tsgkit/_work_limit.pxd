# How long a sentence may be worked at: a deadline, a flag that any thread can set, and Ctrl-C.
#
# Kernels call `check_limit` once per cell, node or sample, which costs some nanoseconds. Where it raises, whatever was
# being filled is not complete, and its owner makes it empty.
from libcpp.atomic cimport atomic

cdef extern from *:
    """
    #include <chrono>
    static inline double tsgkit_seconds() {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }
    """
    double monotonic_seconds "tsgkit_seconds"() noexcept nogil

cdef enum:
    CHECKS_PER_LOOK = 4                  # the clock is read at every fourth check


cdef cppclass Limits:
    atomic[bint] flag
    atomic[bint]* is_cancelled           # this flag, or that of the limit that this one is a part of
    double deadline                      # on the monotonic clock; infinite: none
    double next_signal_check             # Python is asked for Ctrl-C ten times per second
    int n_checks


cdef class WorkLimit:
    cdef Limits limits
    cdef WorkLimit whole                 # of which this is a part, if it is one


cdef int look(Limits* limits) except -1 nogil


cdef inline int check_limit(Limits* limits) except -1 nogil:
    """Raise OutOfTimeError, CancelledError or KeyboardInterrupt where the work is to end."""
    limits.n_checks += 1
    if limits.n_checks % CHECKS_PER_LOOK == 0 or limits.is_cancelled.load():
        return look(limits)
    return 0
