# Arrays of numpy copied to vectors of C++; the numbers in them are the caller's to check.
from libc.stdint cimport uint8_t
from libcpp.vector cimport vector

from tsgkit._types cimport index_t, symbol_t

cdef extern from *:
    """
    template <class Vector, class Value>
    inline void tsgkit_fill(Vector& values, size_t size, const Value& value) { values.assign(size, value); }
    """
    # A vector of so many equal values. Use this for `assign` of libcpp, which Cython takes for a function that cannot
    # fail: where memory runs out, it ends the process.
    void fill "tsgkit_fill"[Vector, Value](Vector& values, size_t size, const Value& value) except + nogil


cdef inline int copy_flags(values, vector[uint8_t]& target) except -1:
    import numpy as np
    cdef const uint8_t[::1] view = np.ascontiguousarray(values, dtype=np.uint8)
    target.resize(view.shape[0])
    cdef index_t place
    for place in range(view.shape[0]):
        target[place] = view[place]
    return 0


cdef inline int copy_symbols(values, vector[symbol_t]& target) except -1:
    import numpy as np
    cdef const symbol_t[::1] view = np.ascontiguousarray(values, dtype=np.int32)
    target.resize(view.shape[0])
    cdef index_t place
    for place in range(view.shape[0]):
        target[place] = view[place]
    return 0


cdef inline int copy_indices(values, vector[index_t]& target) except -1:
    import numpy as np
    cdef const index_t[::1] view = np.ascontiguousarray(values, dtype=np.int64)
    target.resize(view.shape[0])
    cdef index_t place
    for place in range(view.shape[0]):
        target[place] = view[place]
    return 0


cdef inline int copy_numbers(values, vector[double]& target) except -1:
    import numpy as np
    cdef const double[::1] view = np.ascontiguousarray(values, dtype=np.float64)
    target.resize(view.shape[0])
    cdef index_t place
    for place in range(view.shape[0]):
        target[place] = view[place]
    return 0
