# The nodes of a chart or of a forest, and the options of making each from others, for rankings of trees.
from libcpp.vector cimport vector

from tsgkit._chart cimport Chart
from tsgkit._chart_cells cimport Cells
from tsgkit._forest cimport Decoder, Forest
from tsgkit._types cimport index_t, position_t, symbol_t


cdef struct Option:
    # How to make a node from a word, from two nodes, or (on a path of unary rules) from one.
    double score
    index_t left          # -1: a word
    index_t right         # -1: none
    bint makes_node       # a bridge does not


cdef cppclass TreeSource:
    # A node is a number: of a chart, that of its cell and symbol; of a forest, that of an item of its decoder.
    const Cells* cells                    # NULL: a forest
    Decoder decoder
    vector[index_t] base_start            # of a forest: per item, its edges, unary ones apart
    vector[index_t] base_edge
    vector[index_t] unary_start
    vector[index_t] unary_edge


# Begin with a chart that has Viterbi values, or with a forest. Both return the root; -1: there is no tree.
cdef index_t open_chart(TreeSource* source, Chart chart) except -2
cdef index_t open_forest(TreeSource* source, Forest forest, bint product, symbol_t root) except -2
# The score of a node's best tree.
cdef double best_of(const TreeSource* source, index_t node) noexcept nogil
cdef bint has_unary(const TreeSource* source, index_t node) noexcept nogil
cdef symbol_t label_of(const TreeSource* source, index_t node) noexcept nogil
# Where a node over one word begins.
cdef position_t start_of(const TreeSource* source, index_t node) noexcept nogil
# All options of making a node without a unary rule or bridge.
cdef int list_base(const TreeSource* source, index_t node, vector[Option]* options) except -1 nogil
# All unary rules and bridges from a node to others over the same span.
cdef int list_unary(const TreeSource* source, index_t node, vector[Option]* options) except -1 nogil
