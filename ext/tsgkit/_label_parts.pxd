# Labels divided into parts with about as many nodes each: labels share no restaurant, so that threads can seat the
# customers of different parts at a time.
from libc.stdint cimport int32_t
from libcpp.vector cimport vector

from tsgkit._trees cimport BinaryTrees
from tsgkit._types cimport symbol_t

cdef enum:
    N_PARTS = 8       # as many threads can seat customers at a time; results depend on it


cdef cppclass LabelParts:
    vector[int32_t] of_label
    # The nodes of every tree by part, and of every tree where those of each part begin, `N_PARTS + 1` numbers each.
    vector[int32_t] nodes
    vector[int32_t] start


cdef int divide_labels(const BinaryTrees* trees, symbol_t n_labels, LabelParts* parts) except -1 nogil
