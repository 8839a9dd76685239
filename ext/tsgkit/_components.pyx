"""Which symbols reach each other by unary rules and bridges, and in which order they can be worked at.

Between a weighted grammar and its index. Tarjan's strongly connected components of the graph ``parent -> child``, with
a stack of its own in the place of recursion, so that a deep grammar is no problem; the cost is linear. The *level* of a
component is the length of the longest path down from it,

    level(C) = max over edges from C to another component D of  level(D) + 1,        0 if there is none
"""

import numpy as np

from libcpp.vector cimport vector

from tsgkit._types cimport index_t, symbol_t


cdef cppclass Search:
    vector[index_t] child_start          # per symbol, and one more
    vector[symbol_t] child
    vector[index_t] position             # per symbol: the next of its children to look at
    vector[symbol_t] number              # per symbol: when it was seen, or -1
    vector[symbol_t] lowest              # per symbol: the lowest number that it is known to reach
    vector[symbol_t] component           # per symbol: -1 while it waits
    vector[symbol_t] level               # per component
    vector[symbol_t] path                # symbols that are being looked at
    vector[symbol_t] waiting             # symbols without a component, in the order in which they were seen
    symbol_t n_seen


def components_of(symbol_t n_symbols, edges):
    """The strongly connected components of a graph, children before parents.

    Parameters
    ----------
    n_symbols : int
    edges : array of int, two columns
        From parent to child.

    Returns
    -------
    component : ndarray of int32, one per symbol
        The number of its component. If a component reaches another, it has the larger number.
    level : ndarray of int32, one per component
        The length of the longest path from the component to others.
    """
    cdef const symbol_t[:, ::1] rows = np.ascontiguousarray(edges, dtype=np.int32).reshape(-1, 2)
    cdef Search search
    cdef index_t row
    for row in range(rows.shape[0]):
        if not (0 <= rows[row, 0] < n_symbols and 0 <= rows[row, 1] < n_symbols):
            raise ValueError(f"edge {rows[row, 0]} -> {rows[row, 1]} is out of range: there are {n_symbols} symbols")
    with nogil:
        list_children(&search, rows, n_symbols)
        for row in range(n_symbols):
            if search.number[row] < 0:
                look_from(&search, row)
    component = np.empty(n_symbols, dtype=np.int32)
    level = np.empty(search.level.size(), dtype=np.int32)
    cdef symbol_t[::1] component_view = component, level_view = level
    for row in range(n_symbols):
        component_view[row] = search.component[row]
    for row in range(<index_t>search.level.size()):
        level_view[row] = search.level[row]
    return component, level


cdef int list_children(Search* search, const symbol_t[:, ::1] rows, index_t n_symbols) except -1 nogil:
    """Group the edges by parent, in their order."""
    cdef index_t row, symbol
    search.child_start.resize(n_symbols + 1, 0)
    search.child.resize(rows.shape[0])
    search.number.resize(n_symbols, -1)
    search.lowest.resize(n_symbols, 0)
    search.component.resize(n_symbols, -1)
    search.n_seen = 0
    for row in range(rows.shape[0]):
        search.child_start[rows[row, 0] + 1] += 1
    for symbol in range(n_symbols):
        search.child_start[symbol + 1] += search.child_start[symbol]
    search.position.insert(search.position.end(), search.child_start.begin(), search.child_start.end())
    for row in range(rows.shape[0]):
        search.child[search.position[rows[row, 0]]] = rows[row, 1]
        search.position[rows[row, 0]] += 1
    for symbol in range(n_symbols):
        search.position[symbol] = search.child_start[symbol]
    return 0


cdef int look_from(Search* search, symbol_t source) except -1 nogil:
    """Find the components of all that a symbol reaches and that have none yet."""
    cdef symbol_t symbol, child
    see(search, source)
    while not search.path.empty():
        symbol = search.path.back()
        if search.position[symbol] < search.child_start[symbol + 1]:
            child = search.child[search.position[symbol]]
            search.position[symbol] += 1
            if search.number[child] < 0:
                see(search, child)
            elif search.component[child] < 0:
                search.lowest[symbol] = min(search.lowest[symbol], search.number[child])
            continue
        search.path.pop_back()
        if not search.path.empty():
            search.lowest[search.path.back()] = min(search.lowest[search.path.back()], search.lowest[symbol])
        if search.lowest[symbol] == search.number[symbol]:
            finish(search, symbol)
    return 0


cdef int see(Search* search, symbol_t symbol) except -1 nogil:
    search.number[symbol] = search.lowest[symbol] = search.n_seen
    search.n_seen += 1
    search.path.push_back(symbol)
    search.waiting.push_back(symbol)
    return 0


cdef int finish(Search* search, symbol_t root) except -1 nogil:
    """All that waits from a symbol on is a component, and whatever it reaches beside itself has one."""
    cdef index_t first = search.waiting.size(), place, edge
    cdef symbol_t component = search.level.size(), symbol, child, level = 0
    while True:
        first -= 1
        search.component[search.waiting[first]] = component
        if search.waiting[first] == root:
            break
    for place in range(first, <index_t>search.waiting.size()):
        symbol = search.waiting[place]
        for edge in range(search.child_start[symbol], search.child_start[symbol + 1]):
            child = search.child[edge]
            if search.component[child] != component:
                level = max(level, search.level[search.component[child]] + 1)
    search.level.push_back(level)
    search.waiting.resize(first)
    return 0
