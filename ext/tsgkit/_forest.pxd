# Posterior probabilities of treebank rules over a sentence, and trees chosen by them.
from libcpp.vector cimport vector

from tsgkit._types cimport index_t, position_t, symbol_t, weight_t


cdef struct Edge:
    # A treebank rule at its place. Unary: `right` is -1; lexical: `left` too.
    position_t start
    position_t end
    position_t split
    symbol_t label
    symbol_t left
    symbol_t right
    weight_t posterior


cdef class Forest:
    cdef readonly position_t n_words
    cdef readonly symbol_t n_labels
    cdef readonly bint is_over_budget    # there were too many rules: all were left out
    cdef vector[Edge] edges              # by length, start, and inside a cell unary rules last

    cdef void add(self, position_t start, position_t split, position_t end, symbol_t label, symbol_t left,
                  symbol_t right, weight_t posterior) noexcept nogil
