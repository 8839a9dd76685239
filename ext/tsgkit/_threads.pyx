"""Threads of Python that run compiled code.

Before the first sentence of a thread. C++ keeps what it needs to throw an exception for every thread, and asks for it
when the first one is thrown; where there is no memory for that, the process ends. Asked for in time, there is.
"""

cdef extern from *:
    """
    #include <cstdlib>
    #include <new>
    // Much more than an exception and the storage of a thread take; too large for any cache of free memory.
    static const size_t TSGKIT_RESERVE = size_t(1) << 20;
    static inline void tsgkit_prepare_thread() {
        // The flag is storage of the thread as well, so that it is looked at only when there is memory.
        static thread_local bool is_prepared = false;
        void* reserve = std::malloc(TSGKIT_RESERVE);
        if (!reserve) throw std::bad_alloc();
        *static_cast<volatile char*>(reserve) = 0;
        std::free(reserve);
        if (is_prepared) return;
        try { throw std::bad_alloc(); } catch (const std::bad_alloc&) {}
        is_prepared = true;
    }
    """
    void throw_once "tsgkit_prepare_thread"() except +


def prepare_thread():
    """Make sure that compiled code can report a failed allocation in this thread; raises MemoryError if not."""
    throw_once()
