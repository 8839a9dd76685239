# A pool of worker threads that are not Python's: `run` calls a function for every item, on any of the threads. What it
# calls runs without the GIL and raises no Python exception. It may let a C++ exception pass, a failed allocation above
# all: the pool hands it to the thread that waits for the loop, where it becomes a Python exception.

ctypedef void (*work_t)(void* context, int item, int thread) noexcept nogil

cdef extern from "parallel.hpp" namespace "tsgkit" nogil:
    cdef cppclass WorkerPool:
        WorkerPool()
        void run(int n_threads, int n_items, work_t call, void* context) except +


# A vector that workers may grow: unlike those of libcpp it lets std::bad_alloc pass, for `run` to hand over. Cython's
# usual way, an exception of Python, needs a thread that Python knows.
cdef extern from "<vector>" namespace "std" nogil:
    cdef cppclass worker_vector "std::vector" [T]:
        T& operator[](size_t)
        size_t size()
        void clear()
        void push_back(const T&)
        void pop_back()
        void resize(size_t)
        T* data()
