"""Parts of the labels of a treebank, and the nodes of every tree by part."""

from libc.stdint cimport int32_t
from libcpp.vector cimport vector

from tsgkit._trees cimport n_nodes, n_trees
from tsgkit._types cimport index_t, symbol_t
from tsgkit._vectors cimport fill


cdef int divide_labels(const BinaryTrees* trees, symbol_t n_labels, LabelParts* parts) except -1 nogil:
    cdef vector[index_t] n_nodes_of_label
    cdef index_t node
    fill(n_nodes_of_label, n_labels, <index_t>0)
    for node in range(n_nodes(trees)):
        n_nodes_of_label[trees.label[node]] += 1
    assign_parts(&n_nodes_of_label, &parts.of_label)
    return sort_nodes(trees, parts)


cdef int assign_parts(vector[index_t]* n_nodes_of_label, vector[int32_t]* of_label) except -1 nogil:
    """The label with the most nodes goes to the part that has the fewest so far, and so on."""
    cdef index_t load[N_PARTS]
    cdef size_t label, largest, _label
    cdef int part, smallest
    for part in range(N_PARTS):
        load[part] = 0
    fill(of_label[0], n_nodes_of_label.size(), <int32_t>-1)
    for _label in range(n_nodes_of_label.size()):
        largest = n_nodes_of_label.size()
        for label in range(n_nodes_of_label.size()):
            if of_label[0][label] < 0 and (
                    largest == n_nodes_of_label.size() or n_nodes_of_label[0][label] > n_nodes_of_label[0][largest]):
                largest = label
        smallest = 0
        for part in range(1, N_PARTS):
            if load[part] < load[smallest]:
                smallest = part
        of_label[0][largest] = smallest
        load[smallest] += n_nodes_of_label[0][largest]
    return 0


cdef int sort_nodes(const BinaryTrees* trees, LabelParts* parts) except -1 nogil:
    cdef index_t tree, node
    cdef int part
    parts.nodes.clear()
    parts.start.clear()
    for tree in range(n_trees(trees)):
        for part in range(N_PARTS):
            parts.start.push_back(<int32_t>parts.nodes.size())
            for node in range(trees.tree_start[tree], trees.tree_start[tree + 1]):
                if parts.of_label[trees.label[node]] == part:
                    parts.nodes.push_back(<int32_t>node)
        parts.start.push_back(<int32_t>parts.nodes.size())
    return 0
