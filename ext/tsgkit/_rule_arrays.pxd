# Rules as rows of an array, in the orders in which others need them.
from libcpp.vector cimport vector

from tsgkit._types cimport index_t, symbol_t


cdef int sort_by(vector[symbol_t]* order, const symbol_t* key, symbol_t n_values) except -1 nogil
