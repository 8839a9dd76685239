# Binary trees as arrays, as all samplers walk over them; checked once, when they are copied here.
from tsgkit._types cimport index_t, symbol_t

from libcpp.vector cimport vector


cdef cppclass BinaryTrees:
    # Per node: its label, rule, children and parent (-1: none). Parents come before their children.
    vector[symbol_t] label
    vector[symbol_t] rule
    vector[symbol_t] left
    vector[symbol_t] right
    vector[symbol_t] parent
    # Per tree and one more: its first node.
    vector[index_t] tree_start
    # Per rule: its label and its children's (-1: none).
    vector[symbol_t] rule_label
    vector[symbol_t] rule_left_label
    vector[symbol_t] rule_right_label


# Copy what a `tsgkit.models.rules.TreeArrays` holds; raises ValueError unless it is valid.
cdef int copy_trees(object arrays, BinaryTrees* trees) except -1

# Copy numbers of trees, each at most once; raises ValueError unless they are in range.
cdef int copy_tree_numbers(object numbers, index_t n_trees, vector[index_t]& result) except -1


cdef inline index_t n_trees(const BinaryTrees* trees) noexcept nogil:
    return <index_t>trees.tree_start.size() - 1


cdef inline index_t n_nodes(const BinaryTrees* trees) noexcept nogil:
    return <index_t>trees.label.size()


cdef inline index_t n_nodes_of(const BinaryTrees* trees, index_t tree) noexcept nogil:
    return trees.tree_start[tree + 1] - trees.tree_start[tree]


cdef inline symbol_t child(const BinaryTrees* trees, index_t node, int side) noexcept nogil:
    """The left (or only) child, side 0, or the right one, side 1."""
    return trees.right[node] if side else trees.left[node]


cdef inline symbol_t child_label(const BinaryTrees* trees, symbol_t rule, int side) noexcept nogil:
    """The label of a rule's left (or only) child, side 0, or of its right one, side 1; -1 if it has none."""
    return trees.rule_right_label[rule] if side else trees.rule_left_label[rule]
