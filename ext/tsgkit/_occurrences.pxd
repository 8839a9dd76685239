# Where fragments occur: sorted lists of nodes, for moves that change all occurrences of a fragment at once.
from libcpp.algorithm cimport merge, set_difference, sort
from libcpp.vector cimport vector

from tsgkit._types cimport symbol_t

ctypedef vector[symbol_t] node_list


cdef inline int change_occurrences(const node_list* nodes, node_list* values, bint is_added) except -1 nogil:
    """Add nodes to a list or take them out; it stays sorted, so that it does not depend on the history."""
    cdef node_list changed, result
    cdef node_list.iterator end
    changed.assign(nodes.begin(), nodes.end())
    sort(changed.begin(), changed.end())
    result.resize(values.size() + changed.size())
    if is_added:
        end = merge(values.begin(), values.end(), changed.begin(), changed.end(), result.begin())
    else:
        end = set_difference(values.begin(), values.end(), changed.begin(), changed.end(), result.begin())
    result.resize(end - result.begin())
    values.swap(result)
    return 0
