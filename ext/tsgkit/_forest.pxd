# Treebank rules of a sentence with their posterior probabilities.
from libc.stdint cimport uint8_t
from libcpp.vector cimport vector

from tsgkit._types cimport index_t, position_t, symbol_t, weight_t
from tsgkit._work_limit cimport WorkLimit


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
    symbol_t label
    double base
    double best
    index_t base_edge                    # -1: there is no such tree
    index_t top_edge                     # the unary rule at the top of the best tree, which goes on with the best tree
    #                                      of its child; -1: none
    index_t chain_begin                  # where longer chains gain: all unary rules at the top, from the top down
    index_t chain_size


cdef struct Waiting:
    # An item with a value that may be its best one.
    double value
    index_t item


cdef cppclass Decoder:
    # Dynamic programming over the edges of a forest.
    const vector[Edge]* edges
    position_t n_words
    symbol_t n_labels
    bint product
    vector[Item] items                   # of every span those with labels, in their order
    vector[symbol_t] item_label          # beside the items: looking for a label reads nothing else
    vector[index_t] cell_begin           # the items of each span
    vector[index_t] cell_end
    vector[index_t] chain_edges
    vector[uint8_t] may_chain            # per edge: whether it is a unary rule that chains may have
    # Scratch of the span at work.
    vector[index_t] item_of_label        # per label; of another span where it is smaller
    vector[index_t] unary_edges          # those that chains may have
    vector[index_t] unary_top            # of each its item and that of its child
    vector[index_t] unary_below
    vector[index_t] edge_start           # per item: where its edges begin, by child
    vector[index_t] edge_number
    vector[index_t] path
    vector[index_t] best_path
    vector[Waiting] heap


cdef class Forest:
    cdef readonly position_t n_words
    cdef readonly symbol_t n_labels      # of the treebank
    cdef readonly symbol_t n_states      # of labels: number state * n_labels + label, see `_constraints.pxd`
    cdef readonly bint is_over_budget    # there were too many rules: all were left out
    cdef public WorkLimit limit          # when to stop working at it
    cdef public index_t max_bytes        # the most memory for what is looked for in it
    cdef vector[Edge] edges              # by length, start, and inside a cell unary rules last


cdef int merge_edges(vector[Edge]* edges) except -1
cdef int make_decoder(Decoder* decoder, Forest forest, bint product) except -1
cdef bint is_unary(const Edge& edge) noexcept nogil
cdef index_t find(const Decoder* decoder, position_t start, position_t end, symbol_t label) noexcept nogil


cdef inline int add_edge(
        vector[Edge]* edges, position_t start, position_t split, position_t end, symbol_t label, symbol_t left,
        symbol_t right, weight_t posterior) except -1 nogil:
    cdef Edge edge
    edge.start, edge.split, edge.end = start, split, end
    edge.label, edge.left, edge.right = label, left, right
    edge.posterior = posterior
    edges.push_back(edge)
    return 0
