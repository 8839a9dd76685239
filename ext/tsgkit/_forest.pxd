# Treebank rules of a sentence with their posterior probabilities.
from libcpp.vector cimport vector

from tsgkit._types cimport index_t, position_t, symbol_t, weight_t


cdef struct Edge:
    # A treebank rule over a span. Unary: `right` is -1; lexical: `left` too.
    position_t start
    position_t end
    position_t split
    symbol_t label
    symbol_t left
    symbol_t right
    weight_t posterior


cdef struct Item:
    # A label over a span. `base` is the best tree without a unary rule on top, `best` with any.
    double base
    double best
    index_t base_edge
    vector[index_t] chain                # the unary edges at the top of the best tree, from the top down


cdef class Forest:
    cdef readonly position_t n_words
    cdef readonly symbol_t n_labels
    cdef readonly bint is_over_budget    # there were too many rules: all were left out
    cdef vector[Edge] edges              # by length, start, and inside a cell unary rules last


cdef int merge_edges(vector[Edge]* edges) except -1


cdef inline int add_edge(
        vector[Edge]* edges, position_t start, position_t split, position_t end, symbol_t label, symbol_t left,
        symbol_t right, weight_t posterior) except -1 nogil:
    cdef Edge edge
    edge.start, edge.split, edge.end = start, split, end
    edge.label, edge.left, edge.right = label, left, right
    edge.posterior = posterior
    edges.push_back(edge)
    return 0
