"""Treebank rules with posterior probabilities, and the trees that are best by them.

From posteriors ``q(A -> B C, i, k, j)`` of treebank rules, which come from a chart (``_posteriors.pyx``) or from
sampled derivations, to a tree. The objectives choose

    MER               argmax_t  sum_{r in t} q(r)
    max-rule-product  argmax_t  prod_{r in t} q(r)

by dynamic programming over the rules, cell by cell. A tree's unary chains repeat no label. Where longer chains gain,
with *MER* and with rules that are expected more than once, only the twelve most probable unary rules of a span are
looked at.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, log
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from tsgkit._codes cimport BINARY, LEXICAL, N_ROW_COLUMNS, UNARY
from tsgkit._types cimport index_t, position_t, symbol_t, weight_t

cdef index_t MAX_CHAIN_RULES = 12
cdef weight_t ROUNDING = 1e-9   # by how much a certain rule's posterior may exceed one


# ---- edges -----------------------------------------------------------------------------------------------

cdef bint comes_before(const Edge& one, const Edge& other) noexcept nogil:
    """The order of edges: shorter spans first, then from left to right, unary rules last in their cell."""
    if one.end - one.start != other.end - other.start:
        return one.end - one.start < other.end - other.start
    if one.start != other.start:
        return one.start < other.start
    if is_unary(one) != is_unary(other):
        return is_unary(other)
    if one.label != other.label:
        return one.label < other.label
    if one.left != other.left:
        return one.left < other.left
    if one.right != other.right:
        return one.right < other.right
    return one.split < other.split


cdef bint is_unary(const Edge& edge) noexcept nogil:
    return edge.right < 0 <= edge.left


cdef bint is_same_rule(const Edge& one, const Edge& other) noexcept nogil:
    return not comes_before(one, other) and not comes_before(other, one)


cdef bint is_likelier(const Edge& one, const Edge& other) noexcept nogil:
    return one.posterior > other.posterior


cdef int merge_edges(vector[Edge]* edges) except -1:
    """Put the edges in order and add up those of the same rule over the same span."""
    cdef index_t kept = 0, position
    sort(edges.begin(), edges.end(), &comes_before)
    for position in range(<index_t>edges.size()):
        if kept and is_same_rule(edges[0][kept - 1], edges[0][position]):
            edges[0][kept - 1].posterior += edges[0][position].posterior
        else:
            edges[0][kept] = edges[0][position]
            kept += 1
    edges.resize(kept)
    return 0


@cython.final
cdef class Forest:
    """Treebank rules with their posteriors.

    Parameters
    ----------
    n_words, n_labels : int
    rules : array of int32 with six columns
        ``(start, split, end, label, left label, right label)``; for a unary rule split and right label are
        -1, for a lexical one the left label is too. Rows that are equal are added up.
    posteriors : array of float
        Positive.
    """

    def __init__(self, position_t n_words, symbol_t n_labels, rules=None, posteriors=None):
        if n_words < 0 or n_labels < 0:
            raise ValueError(f"{n_words} words, {n_labels} labels: must not be negative")
        self.n_words, self.n_labels = n_words, n_labels
        if rules is None:
            return
        cdef const symbol_t[:, :] rows = np.asarray(rules, dtype=np.int32).reshape(-1, 6)
        cdef const weight_t[:] values = np.asarray(posteriors, dtype=np.float64)
        cdef index_t row
        if values.shape[0] != rows.shape[0]:
            raise ValueError("one posterior is needed for every rule")
        for row in range(rows.shape[0]):
            add_edge(
                &self.edges, rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3], rows[row, 4], rows[row, 5],
                values[row])
            check_edge(self, self.edges.back())
        merge_edges(&self.edges)

    @property
    def rules(self):
        """The rules as an array, one row each, as the constructor takes them."""
        rows = np.empty((self.edges.size(), 6), dtype=np.int32)
        cdef symbol_t[:, ::1] view = rows
        cdef index_t row
        cdef Edge edge
        for row in range(<index_t>self.edges.size()):
            edge = self.edges[row]
            view[row, 0], view[row, 1], view[row, 2] = edge.start, edge.split, edge.end
            view[row, 3], view[row, 4], view[row, 5] = edge.label, edge.left, edge.right
        return rows

    @property
    def posteriors(self):
        """The posteriors of `rules`."""
        values = np.empty(self.edges.size())
        cdef weight_t[::1] view = values
        cdef index_t row
        for row in range(<index_t>self.edges.size()):
            view[row] = self.edges[row].posterior
        return values

    def node_posteriors(self):
        """The probability of every labelled bracket, tags included, as ``{(label, start, end): posterior}``."""
        nodes = {}
        cdef Edge edge
        for edge in self.edges:
            key = (edge.label, edge.start, edge.end)
            nodes[key] = nodes.get(key, 0.0) + edge.posterior
        return nodes

    def best_tree(self, bint product, symbol_t root):
        """The best tree by the sum or by the product of its rules' posteriors.

        Parameters
        ----------
        product : bool
            Max-rule-product if true, else MER.
        root : int
            The label of the root.

        Returns
        -------
        rows : ndarray of int32, four columns, or None
            ``(label, start, end, kind)`` as in `tsgkit._derivations`, without bridges; None when the rules
            make no tree over the whole sentence.
        score : float
            The sum of posteriors, or of their logs.
        """
        if not 0 <= root < self.n_labels:
            raise ValueError(f"label {root} is out of range: there are {self.n_labels}")
        cdef Decoder decoder
        make_decoder(&decoder, self, product)
        with nogil:
            decode(&decoder)
        return tree_of(&decoder, root)


cdef int check_edge(Forest forest, Edge edge) except -1:
    """Everything that the decoder relies on."""
    fits = (
        0 <= edge.start < edge.end <= forest.n_words
        and 0 <= edge.label < forest.n_labels
        and (edge.start < edge.split < edge.end and edge.left >= 0 if edge.right >= 0 else edge.split == -1)
        and -1 <= edge.left < forest.n_labels
        and -1 <= edge.right < forest.n_labels
        and (edge.left >= 0 or edge.end == edge.start + 1)
        and 0 < edge.posterior < INFINITY)
    if not fits:
        rule = (edge.start, edge.split, edge.end, edge.label, edge.left, edge.right)
        raise ValueError(f"rule {rule} with posterior {edge.posterior} does not fit into the forest")
    return 0


# ---- the best tree ---------------------------------------------------------------------------------------

cdef cppclass Decoder:
    # Dynamic programming over the edges of a forest.
    const vector[Edge]* edges
    position_t n_words
    bint product
    vector[Item] items
    vector[symbol_t] item_label          # beside the items: looking for a label reads nothing else
    vector[index_t] item_of_label        # for the span at work, per label; of another span where it is smaller
    vector[index_t] cell_begin           # the items of each span
    vector[index_t] cell_end
    vector[index_t] path                 # of unary edges, from the top down, while chains are tried


cdef int make_decoder(Decoder* decoder, Forest forest, bint product) except -1:
    cdef index_t n_rows = forest.n_words + 1
    decoder.edges, decoder.n_words, decoder.product = &forest.edges, forest.n_words, product
    decoder.cell_begin.resize(n_rows * n_rows, 0)
    decoder.cell_end.resize(n_rows * n_rows, 0)
    decoder.item_of_label.resize(forest.n_labels, -1)
    return 0


cdef int decode(Decoder* decoder) except -1 nogil:
    """Find the best tree of every label over every span, shorter spans first."""
    cdef const vector[Edge]* edges = decoder.edges
    cdef index_t n_edges = edges.size(), position = 0, first_item, first_unary
    cdef Edge edge
    while position < n_edges:
        edge = edges[0][position]
        first_item = decoder.items.size()
        while position < n_edges and same_span(edges[0][position], edge) and not is_unary(edges[0][position]):
            try_base(decoder, position)
            position += 1
        first_unary = position
        while position < n_edges and same_span(edges[0][position], edge):
            find_or_make(decoder, edge.start, edge.end, edges[0][position].label)
            position += 1
        close_unaries(decoder, first_item, first_unary, position)
    return 0


cdef bint same_span(const Edge& one, const Edge& other) noexcept nogil:
    return one.start == other.start and one.end == other.end


cdef index_t find(const Decoder* decoder, position_t start, position_t end, symbol_t label) noexcept nogil:
    """The item of a label over a span, or -1. A span has few labels, so they are looked through."""
    cdef index_t cell = <index_t>start * (decoder.n_words + 1) + end, item
    for item in range(decoder.cell_begin[cell], decoder.cell_end[cell]):
        if decoder.item_label[item] == label:
            return item
    return -1


cdef index_t find_or_make(Decoder* decoder, position_t start, position_t end, symbol_t label) except -1 nogil:
    """The same, with a new item if need be; only for the span at work, whose items come last."""
    cdef index_t cell = <index_t>start * (decoder.n_words + 1) + end
    cdef Item fresh
    if decoder.cell_begin[cell] == decoder.cell_end[cell]:
        decoder.cell_begin[cell] = decoder.items.size()
    if decoder.item_of_label[label] < decoder.cell_begin[cell]:
        fresh.base, fresh.best, fresh.base_edge = -INFINITY, -INFINITY, -1
        decoder.item_of_label[label] = decoder.items.size()
        decoder.items.push_back(fresh)
        decoder.item_label.push_back(label)
        decoder.cell_end[cell] = decoder.items.size()
    return decoder.item_of_label[label]


cdef double score(const Decoder* decoder, const Edge& edge) noexcept nogil:
    return log(edge.posterior) if decoder.product else edge.posterior


cdef int try_base(Decoder* decoder, index_t position) except -1 nogil:
    """Try a binary or lexical edge, with the best trees of its children, for its label."""
    cdef Edge edge = decoder.edges[0][position]
    cdef double value = 0.0
    cdef index_t left, right, item
    if edge.left >= 0:
        left = find(decoder, edge.start, edge.split, edge.left)
        if left < 0:
            return 0
        right = find(decoder, edge.split, edge.end, edge.right)
        if right < 0:
            return 0
        value = decoder.items[left].best + decoder.items[right].best
    value += score(decoder, edge)
    item = find_or_make(decoder, edge.start, edge.end, edge.label)
    if value > decoder.items[item].base:
        decoder.items[item].base = decoder.items[item].best = value
        decoder.items[item].base_edge = position
    return 0


cdef int close_unaries(Decoder* decoder, index_t first_item, index_t first_edge, index_t last_edge) except -1 nogil:
    """Put the best chain of unary rules on top of every label of a cell."""
    cdef vector[index_t] edges
    cdef vector[Edge] by_posterior
    cdef index_t position, item
    cdef weight_t smallest = 0.0
    cdef bint gains = not decoder.product
    if first_edge == last_edge:
        return 0
    for position in range(first_edge, last_edge):
        by_posterior.push_back(decoder.edges[0][position])
        gains = gains or decoder.edges[0][position].posterior > 1.0 + ROUNDING
    if gains and <index_t>by_posterior.size() > MAX_CHAIN_RULES:
        sort(by_posterior.begin(), by_posterior.end(), &is_likelier)
        smallest = by_posterior[MAX_CHAIN_RULES - 1].posterior
    for position in range(first_edge, last_edge):
        if decoder.edges[0][position].posterior >= smallest and (
                <index_t>edges.size() < MAX_CHAIN_RULES or not gains):
            edges.push_back(position)
    if not gains:
        return relax(decoder, &edges)
    for item in range(first_item, <index_t>decoder.items.size()):
        decoder.path.clear()
        extend_chain(decoder, item, item, 0.0, &edges)
    return 0


cdef int relax(Decoder* decoder, const vector[index_t]* edges) except -1 nogil:
    """Best chains when every rule costs: repeat until nothing gains, at most once per rule."""
    cdef bint changed = True
    cdef index_t _sweep, position, number, top, below
    cdef vector[index_t]* chain
    cdef Edge edge
    cdef double value
    for _sweep in range(<index_t>edges.size()):
        if not changed:
            return 0
        changed = False
        for number in range(<index_t>edges.size()):
            position = edges[0][number]
            edge = decoder.edges[0][position]
            top = find(decoder, edge.start, edge.end, edge.label)
            below = find(decoder, edge.start, edge.end, edge.left)
            if below < 0 or repeats(decoder, below, edge.label):
                continue
            value = log(edge.posterior) + decoder.items[below].best
            if value > decoder.items[top].best:
                decoder.items[top].best = value
                chain = &decoder.items[top].chain
                chain.clear()
                chain.push_back(position)
                chain.insert(chain.end(), decoder.items[below].chain.begin(), decoder.items[below].chain.end())
                changed = True
    return 0


cdef bint repeats(const Decoder* decoder, index_t item, symbol_t label) noexcept nogil:
    """Whether the best tree of an item begins with a chain that contains a label."""
    return decoder.item_label[item] == label or is_below(decoder, &decoder.items[item].chain, label)


cdef bint is_below(const Decoder* decoder, const vector[index_t]* chain, symbol_t label) noexcept nogil:
    """Whether one of the edges of a chain has a label as its child."""
    cdef index_t number
    for number in range(<index_t>chain.size()):
        if decoder.edges[0][chain[0][number]].left == label:
            return True
    return False


cdef int extend_chain(
        Decoder* decoder, index_t top, index_t item, double gained, const vector[index_t]* edges) except -1 nogil:
    """Try all chains below `item` that repeat no label; `path` holds the rules above it, worth `gained`."""
    cdef index_t position, number, below
    cdef Edge edge
    if not decoder.path.empty() and gained + decoder.items[item].base > decoder.items[top].best:
        decoder.items[top].best = gained + decoder.items[item].base
        decoder.items[top].chain.assign(decoder.path.begin(), decoder.path.end())
    for number in range(<index_t>edges.size()):
        position = edges[0][number]
        edge = decoder.edges[0][position]
        if edge.label != decoder.item_label[item] or edge.left == decoder.item_label[top] or (
                is_below(decoder, &decoder.path, edge.left)):
            continue
        below = find(decoder, edge.start, edge.end, edge.left)
        if below >= 0:
            decoder.path.push_back(position)
            extend_chain(decoder, top, below, gained + score(decoder, edge), edges)
            decoder.path.pop_back()
    return 0


cdef tuple tree_of(Decoder* decoder, symbol_t root):
    """The rows of the best tree and its score."""
    cdef index_t item = find(decoder, 0, decoder.n_words, root), number
    if item < 0 or decoder.items[item].best == -INFINITY:
        return None, -INFINITY
    cdef double best = decoder.items[item].best
    cdef vector[index_t] waiting
    cdef Edge edge
    rows = []
    waiting.push_back(item)
    while not waiting.empty():
        item = waiting.back()
        waiting.pop_back()
        for number in range(<index_t>decoder.items[item].chain.size()):
            edge = decoder.edges[0][decoder.items[item].chain[number]]
            rows.append((edge.label, edge.start, edge.end, UNARY))
        if not decoder.items[item].chain.empty():
            edge = decoder.edges[0][decoder.items[item].chain.back()]
            item = find(decoder, edge.start, edge.end, edge.left)
        edge = decoder.edges[0][decoder.items[item].base_edge]
        rows.append((edge.label, edge.start, edge.end, LEXICAL if edge.left < 0 else BINARY))
        if edge.left >= 0:
            waiting.push_back(find(decoder, edge.split, edge.end, edge.right))
            waiting.push_back(find(decoder, edge.start, edge.split, edge.left))
    return np.array(rows, dtype=np.int32).reshape(-1, N_ROW_COLUMNS), best
