# Which cells of a chart are worth filling, as a linear model of the words around their ends sees it.
from libcpp.vector cimport vector

from tsgkit._types cimport index_t, position_t, symbol_t


cdef class OpenCells:
    cdef readonly position_t n_words
    cdef vector[double] weights          # per cell of a chart, [start, end]: 0 if it is closed
    cdef readonly bint has_weights       # whether any of them is neither 0 nor 1


cdef class CellScorer:
    cdef readonly symbol_t n_classes     # of words, without the three that stand for unknown words and for no word
    cdef vector[float] boundary          # hashed: features of one end of a span
    cdef vector[float] pairs             # [kind of pair, class, class]
    cdef vector[float] lengths           # per bucket of lengths
