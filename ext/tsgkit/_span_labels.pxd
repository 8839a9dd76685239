# Which label a span has, as a log-linear model of the words around its ends sees it.
from libcpp.vector cimport vector

from tsgkit._types cimport index_t, symbol_t


cdef class LabelScorer:
    cdef readonly symbol_t n_classes     # of words, without the three that stand for unknown words and for no word
    cdef readonly index_t n_outputs      # labels, and 0 for no node
    cdef readonly index_t n_rows         # of hashed features, a power of two
    cdef vector[float] weights           # hashed: [feature, output]
