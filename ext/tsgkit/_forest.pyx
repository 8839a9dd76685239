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
from libc.math cimport INFINITY, exp, log
from libcpp.algorithm cimport pop_heap, push_heap, sort
from libcpp.vector cimport vector

from tsgkit._codes cimport BINARY, LEXICAL, N_ROW_COLUMNS, UNARY
from tsgkit._types cimport index_t, position_t, symbol_t, weight_t
from tsgkit._work_limit cimport Limits, WorkLimit, check_limit

DEFAULT_MAX_BYTES = 1 << 30
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
    n_states : int
        How many states labels have: ``state * n_labels + label`` stands for a label in a state. With constraints on a
        sentence, a label in a state that is not 0 is a node over a span whose brackets are not all below it.
    """

    def __init__(self, position_t n_words, symbol_t n_labels, rules=None, posteriors=None, symbol_t n_states=1):
        if n_words < 0 or n_labels < 0 or n_states < 1:
            raise ValueError(f"{n_words} words, {n_labels} labels, {n_states} states: too few")
        self.n_words, self.n_labels, self.n_states = n_words, n_labels, n_states
        self.limit, self.max_bytes = WorkLimit(), DEFAULT_MAX_BYTES
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
            key = (edge.label % self.n_labels, edge.start, edge.end)
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
        return tree_of(&decoder, root)


def product_of(symbol_t n_labels, votes, weight_t smallest):
    """The rules of several forests of a sentence, each with the geometric mean of its posteriors.

    Parameters
    ----------
    n_labels : int
        Of the result.
    votes : sequence of (Forest, array of int32)
        With a number in the result for every label of the forest; at least one.
    smallest : float
        What a rule counts with in a forest that does not have it, or in which its posterior is smaller.
    """
    cdef Forest forest = Forest(votes[0][0].n_words, n_labels, n_states=votes[0][0].n_states), own
    cdef const symbol_t[::1] label_map
    cdef double log_smallest = log(smallest)
    cdef index_t edge, n_votes = len(votes)
    for own, label_map in votes:
        if own.n_words != forest.n_words or own.n_states != forest.n_states or label_map.shape[0] != own.n_labels:
            raise ValueError("the forests are not of one sentence, or a label has no number")
        forest.max_bytes = own.max_bytes
        add_vote(&forest.edges, &own.edges, label_map, n_labels, log_smallest)
    merge_edges(&forest.edges)
    for edge in range(<index_t>forest.edges.size()):
        # Rounding may leave a posterior a little above one.
        forest.edges[edge].posterior = exp(min(log_smallest + forest.edges[edge].posterior / n_votes, 0.0))
        check_edge(forest, forest.edges[edge])
    return forest


cdef int add_vote(
        vector[Edge]* edges, const vector[Edge]* own, const symbol_t[::1] label_map, symbol_t n_labels,
        double log_smallest) except -1:
    """Add rules with what their posteriors are above the smallest one, as logarithms: a rule not there adds nothing."""
    cdef index_t number
    cdef Edge edge
    for number in range(<index_t>own.size()):
        edge = own[0][number]
        edge.label = mapped(edge.label, label_map, n_labels)
        edge.left = mapped(edge.left, label_map, n_labels)
        edge.right = mapped(edge.right, label_map, n_labels)
        edge.posterior = max(log(edge.posterior) - log_smallest, 0.0)
        edges.push_back(edge)
    return 0


cdef inline symbol_t mapped(symbol_t label, const symbol_t[::1] label_map, symbol_t n_labels) noexcept:
    """Another number for a label, of which there are so many; its state stays."""
    if label < 0:
        return -1
    return label // <symbol_t>label_map.shape[0] * n_labels + label_map[label % <symbol_t>label_map.shape[0]]


cdef int check_edge(Forest forest, Edge edge) except -1:
    """Everything that the decoder relies on."""
    cdef index_t n_codes = <index_t>forest.n_labels * forest.n_states
    fits = (
        0 <= edge.start < edge.end <= forest.n_words
        and 0 <= edge.label < n_codes
        and (edge.start < edge.split < edge.end and edge.left >= 0 if edge.right >= 0 else edge.split == -1)
        and -1 <= edge.left < n_codes
        and -1 <= edge.right < n_codes
        and (edge.left >= 0 or edge.end == edge.start + 1)
        and 0 < edge.posterior < INFINITY)
    if not fits:
        rule = (edge.start, edge.split, edge.end, edge.label, edge.left, edge.right)
        raise ValueError(f"rule {rule} with posterior {edge.posterior} does not fit into the forest")
    return 0


# ---- the best tree ---------------------------------------------------------------------------------------

cdef int make_decoder(Decoder* decoder, Forest forest, bint product) except -1:
    """The best tree of every label over every span, by the sum or the product of posteriors."""
    cdef index_t n_rows = forest.n_words + 1
    decoder.edges, decoder.n_words, decoder.product = &forest.edges, forest.n_words, product
    decoder.cell_begin.resize(n_rows * n_rows, 0)
    decoder.cell_end.resize(n_rows * n_rows, 0)
    decoder.n_labels = forest.n_labels
    decoder.item_of_label.resize(<index_t>forest.n_labels * forest.n_states, -1)
    decoder.may_chain.resize(forest.edges.size(), 0)
    with nogil:
        decode(decoder, &forest.limit.limits)
    return 0


cdef int decode(Decoder* decoder, Limits* limits) except -1 nogil:
    """Go through all spans, shorter ones first."""
    cdef const vector[Edge]* edges = decoder.edges
    cdef index_t n_edges = edges.size(), position = 0, first_item, first_unary
    cdef Edge edge
    while position < n_edges:
        check_limit(limits)
        edge = edges[0][position]
        first_item = decoder.items.size()
        while position < n_edges and same_span(edges[0][position], edge) and not is_unary(edges[0][position]):
            try_base(decoder, position)
            position += 1
        first_unary = position
        while position < n_edges and same_span(edges[0][position], edge):
            find_or_make(decoder, edge.start, edge.end, edges[0][position].label)
            position += 1
        close_unaries(decoder, first_item, first_unary, position, limits)
        sort_items(decoder, first_item)
    return 0


cdef bint same_span(const Edge& one, const Edge& other) noexcept nogil:
    return one.start == other.start and one.end == other.end


cdef bint has_smaller_label(const Item& one, const Item& other) noexcept nogil:
    return one.label < other.label


cdef int sort_items(Decoder* decoder, index_t first_item) except -1 nogil:
    """Put the items of the span at work in the order of their labels."""
    cdef index_t item
    sort(decoder.items.begin() + first_item, decoder.items.end(), &has_smaller_label)
    for item in range(first_item, <index_t>decoder.items.size()):
        decoder.item_label[item] = decoder.items[item].label
    return 0


cdef index_t find(const Decoder* decoder, position_t start, position_t end, symbol_t label) noexcept nogil:
    """The item of a label over a span that is done, or -1."""
    cdef index_t cell = <index_t>start * (decoder.n_words + 1) + end
    cdef index_t low = decoder.cell_begin[cell], high = decoder.cell_end[cell], middle
    while high - low > 8:
        middle = (low + high) // 2
        if decoder.item_label[middle] <= label:
            low = middle
        else:
            high = middle
    while low < high:
        if decoder.item_label[low] == label:
            return low
        low += 1
    return -1


cdef index_t find_or_make(Decoder* decoder, position_t start, position_t end, symbol_t label) except -1 nogil:
    """The item of a label over the span at work, whose items come last; a new one if need be."""
    cdef index_t cell = <index_t>start * (decoder.n_words + 1) + end
    cdef Item fresh
    if decoder.cell_begin[cell] == decoder.cell_end[cell]:
        decoder.cell_begin[cell] = decoder.items.size()
    if decoder.item_of_label[label] < decoder.cell_begin[cell]:
        fresh.label, fresh.base, fresh.best = label, -INFINITY, -INFINITY
        fresh.base_edge = fresh.top_edge = -1
        fresh.chain_begin = fresh.chain_size = 0
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


# ---- unary rules -----------------------------------------------------------------------------------------

cdef int close_unaries(
        Decoder* decoder, index_t first_item, index_t first_edge, index_t last_edge, Limits* limits) except -1 nogil:
    """Put the best chain of unary rules on top of every label of a cell."""
    cdef index_t position, below, item
    cdef Edge edge
    cdef weight_t smallest = 0.0
    cdef bint gains = not decoder.product
    if first_edge == last_edge:
        return 0
    for position in range(first_edge, last_edge):
        gains = gains or decoder.edges[0][position].posterior > 1.0 + ROUNDING
    if gains:
        smallest = smallest_of_chains(decoder, first_edge, last_edge)
    decoder.unary_edges.clear()
    decoder.unary_top.clear()
    decoder.unary_below.clear()
    for position in range(first_edge, last_edge):
        edge = decoder.edges[0][position]
        below = decoder.item_of_label[edge.left]
        if edge.posterior < smallest or below < first_item or (
                gains and <index_t>decoder.unary_edges.size() == MAX_CHAIN_RULES):
            continue
        decoder.may_chain[position] = True
        decoder.unary_edges.push_back(position)
        decoder.unary_top.push_back(decoder.item_of_label[edge.label])
        decoder.unary_below.push_back(below)
    if not gains:
        return find_cheapest(decoder, first_item, limits)
    for item in range(first_item, <index_t>decoder.items.size()):
        check_limit(limits)
        try_chains(decoder, item)
    return 0


cdef weight_t smallest_of_chains(const Decoder* decoder, index_t first_edge, index_t last_edge) except -1 nogil:
    """The posterior of the least probable of the rules that chains may have."""
    cdef vector[Edge] by_posterior
    if last_edge - first_edge <= MAX_CHAIN_RULES:
        return 0.0
    by_posterior.insert(by_posterior.end(), decoder.edges.begin() + first_edge, decoder.edges.begin() + last_edge)
    sort(by_posterior.begin(), by_posterior.end(), &is_likelier)
    return by_posterior[MAX_CHAIN_RULES - 1].posterior


cdef bint is_less(const Waiting& one, const Waiting& other) noexcept nogil:
    return one.item > other.item if one.value == other.value else one.value < other.value


cdef int find_cheapest(Decoder* decoder, index_t first_item, Limits* limits) except -1 nogil:
    """Best chains where every rule costs: items in the order of their values, as Dijkstra does."""
    cdef index_t n_items = <index_t>decoder.items.size() - first_item, n_edges = decoder.unary_edges.size()
    cdef index_t number, item, place, first_place
    cdef Waiting waiting
    cdef double value
    group_edges(decoder, first_item, n_items, n_edges)
    decoder.heap.clear()
    for item in range(first_item, first_item + n_items):
        if decoder.items[item].best > -INFINITY:
            push_waiting(decoder, item)
    while not decoder.heap.empty():
        pop_heap(decoder.heap.begin(), decoder.heap.end(), &is_less)
        waiting = decoder.heap.back()
        decoder.heap.pop_back()
        item = waiting.item
        # A value that was improved since waits in vain; one that is settled is not improved by rounding.
        if waiting.value != decoder.items[item].best or decoder.edge_start[item - first_item] < 0:
            continue
        check_limit(limits)
        first_place = decoder.edge_start[item - first_item]
        # Settled: marked by the complement, which still tells where the group before it ends.
        decoder.edge_start[item - first_item] = ~first_place
        for place in range(first_place, end_of_group(decoder, item - first_item)):
            number = decoder.edge_number[place]
            value = log(decoder.edges[0][decoder.unary_edges[number]].posterior) + waiting.value
            if value > decoder.items[decoder.unary_top[number]].best and (
                    decoder.edge_start[decoder.unary_top[number] - first_item] >= 0):
                decoder.items[decoder.unary_top[number]].best = value
                decoder.items[decoder.unary_top[number]].top_edge = decoder.unary_edges[number]
                push_waiting(decoder, decoder.unary_top[number])
    return 0


cdef int push_waiting(Decoder* decoder, index_t item) except -1 nogil:
    cdef Waiting waiting
    waiting.value, waiting.item = decoder.items[item].best, item
    decoder.heap.push_back(waiting)
    push_heap(decoder.heap.begin(), decoder.heap.end(), &is_less)
    return 0


cdef int group_edges(Decoder* decoder, index_t first_item, index_t n_items, index_t n_edges) except -1 nogil:
    """The unary rules of the span at work by child, in the order of the edges."""
    cdef index_t number, place
    decoder.edge_start.clear()
    decoder.edge_start.resize(n_items + 1, 0)
    decoder.edge_number.resize(n_edges)
    for number in range(n_edges):
        decoder.edge_start[decoder.unary_below[number] - first_item + 1] += 1
    for place in range(n_items):
        decoder.edge_start[place + 1] += decoder.edge_start[place]
    for number in range(n_edges - 1, -1, -1):
        # From the last one on, each group is filled from its end.
        place = decoder.unary_below[number] - first_item + 1
        decoder.edge_start[place] -= 1
        decoder.edge_number[decoder.edge_start[place]] = number
    # Now the start of each group is at the place after it.
    for place in range(n_items):
        decoder.edge_start[place] = decoder.edge_start[place + 1]
    decoder.edge_start[n_items] = n_edges
    return 0


cdef index_t end_of_group(const Decoder* decoder, index_t place) noexcept nogil:
    cdef index_t start = decoder.edge_start[place + 1]
    return start if start >= 0 else ~start


cdef int try_chains(Decoder* decoder, index_t top) except -1 nogil:
    """All chains below an item that repeat no label, where longer ones gain; they have few different rules.

    `path` holds the numbers of the rules from the top down, the last of which is to be tried next.
    """
    cdef vector[index_t]* path = &decoder.path
    cdef index_t n_rules = decoder.unary_edges.size(), item, number
    cdef double value
    decoder.best_path.clear()
    path.clear()
    path.push_back(-1)
    while not path.empty():
        number = path.back() + 1
        path[0][path.size() - 1] = number
        if number == n_rules:
            path.pop_back()
            continue
        item = top if path.size() == 1 else decoder.unary_below[path[0][path.size() - 2]]
        if decoder.unary_top[number] != item or is_on_path(decoder, top, decoder.unary_below[number]):
            continue
        value = value_of_path(decoder)
        if value > decoder.items[top].best:
            decoder.items[top].best = value
            decoder.best_path.assign(path.begin(), path.end())
        path.push_back(-1)
    decoder.items[top].chain_begin = decoder.chain_edges.size()
    decoder.items[top].chain_size = decoder.best_path.size()
    for number in range(<index_t>decoder.best_path.size()):
        decoder.chain_edges.push_back(decoder.unary_edges[decoder.best_path[number]])
    return 0


cdef bint is_on_path(const Decoder* decoder, index_t top, index_t item) noexcept nogil:
    """Whether an item is above the rule that is tried."""
    cdef index_t place
    for place in range(<index_t>decoder.path.size() - 1):
        if decoder.unary_below[decoder.path[place]] == item:
            return True
    return item == top


cdef double value_of_path(const Decoder* decoder) noexcept nogil:
    """The value of the rules on the path with the best tree below that has no unary rule on top."""
    cdef double value = 0.0
    cdef index_t place
    for place in range(<index_t>decoder.path.size()):
        value += score(decoder, decoder.edges[0][decoder.unary_edges[decoder.path[place]]])
    return value + decoder.items[decoder.unary_below[decoder.path.back()]].base


# ---- its rows --------------------------------------------------------------------------------------------

cdef tuple tree_of(Decoder* decoder, symbol_t root):
    """The rows of the best tree and its score."""
    cdef index_t item = find(decoder, 0, decoder.n_words, root), number, top
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
        top = item
        for number in range(decoder.items[top].chain_size):
            edge = decoder.edges[0][decoder.chain_edges[decoder.items[top].chain_begin + number]]
            rows.append((edge.label % decoder.n_labels, edge.start, edge.end, UNARY))
            item = find(decoder, edge.start, edge.end, edge.left)
        while decoder.items[item].top_edge >= 0:
            edge = decoder.edges[0][decoder.items[item].top_edge]
            rows.append((edge.label % decoder.n_labels, edge.start, edge.end, UNARY))
            item = find(decoder, edge.start, edge.end, edge.left)
        edge = decoder.edges[0][decoder.items[item].base_edge]
        rows.append((edge.label % decoder.n_labels, edge.start, edge.end, LEXICAL if edge.left < 0 else BINARY))
        if edge.left >= 0:
            waiting.push_back(find(decoder, edge.split, edge.end, edge.right))
            waiting.push_back(find(decoder, edge.start, edge.split, edge.left))
    return np.array(rows, dtype=np.int32).reshape(-1, N_ROW_COLUMNS), best
