# Arrays of numpy copied to vectors of C++; the numbers in them are the caller's to check. And copies of vectors by
# functions that report a failed allocation: Cython takes `assign(n, value)` and the assignment of vectors for ones that
# cannot fail, and where memory runs out the process would end.
from libc.stdint cimport uint8_t
from libcpp.vector cimport vector

from tsgkit._types cimport index_t, symbol_t

cdef extern from *:
    """
    template <class Vector, class Value>
    inline void tsgkit_fill(Vector& values, size_t size, const Value& value) { values.assign(size, value); }
    template <class Vector>
    inline void tsgkit_copy(const Vector& values, Vector& target) { target = values; }
    """
    # A vector of so many equal values.
    void fill "tsgkit_fill"[Vector, Value](Vector& values, size_t size, const Value& value) except + nogil
    void copy_vector "tsgkit_copy"[Vector](const Vector& values, Vector& target) except + nogil


ctypedef fused array_item_t:
    uint8_t
    symbol_t
    index_t
    double


cdef inline int copy_view(const array_item_t[::1] view, vector[array_item_t]& target) except -1:
    cdef index_t position
    target.resize(view.shape[0])
    for position in range(view.shape[0]):
        target[position] = view[position]
    return 0


cdef inline int copy_flags(values, vector[uint8_t]& target) except -1:
    import numpy as np
    return copy_view[uint8_t](np.ascontiguousarray(values, dtype=np.uint8), target)


cdef inline int copy_symbols(values, vector[symbol_t]& target) except -1:
    import numpy as np
    return copy_view[symbol_t](np.ascontiguousarray(values, dtype=np.int32), target)


cdef inline int copy_indices(values, vector[index_t]& target) except -1:
    import numpy as np
    return copy_view[index_t](np.ascontiguousarray(values, dtype=np.int64), target)


cdef inline int copy_numbers(values, vector[double]& target) except -1:
    import numpy as np
    return copy_view[double](np.ascontiguousarray(values, dtype=np.float64), target)
