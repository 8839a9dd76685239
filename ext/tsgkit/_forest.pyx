"""Posterior probabilities of treebank rules, and the trees that are best by them.

``q(A -> B C, i, k, j)`` is the probability that the treebank rule stands there: the sum over all its
refinements, from inside and outside values or from sampled derivations. The objectives choose

    MER               argmax_t  sum_{r in t} q(r)
    max-rule-product  argmax_t  prod_{r in t} q(r)

A tree's unary chains repeat no label. Where longer chains gain, with *MER* and with rules that are expected
more than once, only the twelve most probable unary rules of a span are looked at.
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, log
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from tsgkit._chart cimport Chart, LiveBlock, add_products
from tsgkit._grammar_index cimport GrammarTable
from tsgkit._types cimport index_t, position_t, symbol_t, weight_t

cdef index_t MAX_CHAIN_RULES = 12
cdef weight_t ROUNDING = 1e-9   # by how much a certain rule's posterior may exceed one

cdef enum Kind:
    LEXICAL = 0
    UNARY = 1
    BINARY = 2


cdef struct Item:
    # A label over a span. `base` is the best tree without a unary rule on top, `best` with any.
    double base
    double best
    index_t base_edge
    vector[index_t] chain                # the unary edges at the top of the best tree, from the top down


# An edge makes at most one item with its label, and vectors can be twice as long as what they hold.
cdef index_t BYTES_PER_EDGE = 2 * (sizeof(Edge) + sizeof(Item) + sizeof(symbol_t))


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


cdef bint same_place(const Edge& one, const Edge& other) noexcept nogil:
    return not comes_before(one, other) and not comes_before(other, one)


cdef bint is_likelier(const Edge& one, const Edge& other) noexcept nogil:
    return one.posterior > other.posterior


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
        self.n_words, self.n_labels = n_words, n_labels
        if rules is None:
            return
        cdef const symbol_t[:, :] rows = np.asarray(rules, dtype=np.int32).reshape(-1, 6)
        cdef const weight_t[:] values = np.asarray(posteriors, dtype=np.float64)
        cdef index_t row
        if values.shape[0] != rows.shape[0]:
            raise ValueError("one posterior is needed for every rule")
        for row in range(rows.shape[0]):
            self.check_row(*[rows[row, column] for column in range(6)], values[row])
            self.add(rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3], rows[row, 4], rows[row, 5], values[row])
        self.merge()

    def check_row(self, start, split, end, label, left, right, posterior):
        is_binary = right >= 0
        fits = (
            0 <= start < end <= self.n_words
            and 0 <= label < self.n_labels
            and (start < split < end and left >= 0 if is_binary else split == -1)
            and -1 <= left < self.n_labels
            and -1 <= right < self.n_labels
            and (left >= 0 or end == start + 1)
            and 0 < posterior < float("inf"))
        if not fits:
            raise ValueError(f"no rule {(start, split, end, label, left, right)} with posterior {posterior}")

    cdef void add(self, position_t start, position_t split, position_t end, symbol_t label, symbol_t left,
                  symbol_t right, weight_t posterior) noexcept nogil:
        cdef Edge edge
        edge.start, edge.split, edge.end = start, split, end
        edge.label, edge.left, edge.right = label, left, right
        edge.posterior = posterior
        self.edges.push_back(edge)

    def merge(self):
        """Put the edges in order and add up those of the same rule at the same place."""
        cdef index_t kept = 0, position
        sort(self.edges.begin(), self.edges.end(), &comes_before)
        for position in range(<index_t>self.edges.size()):
            if kept and same_place(self.edges[kept - 1], self.edges[position]):
                self.edges[kept - 1].posterior += self.edges[position].posterior
            else:
                self.edges[kept] = self.edges[position]
                kept += 1
        self.edges.resize(kept)

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
            raise ValueError(f"there is no label {root}")
        cdef Decoder decoder = Decoder(self, product)
        with nogil:
            decoder.run()
        return decoder.tree(root)


def forest_of(Chart chart, weight_t smallest=1e-12):
    """The treebank rules of a chart with inside and outside values.

    Parameters
    ----------
    chart : Chart
    smallest : float
        Rules with less posterior probability are left out.

    Returns
    -------
    Forest
        Without any rule, and with `is_over_budget` set, where the rules and the tables to choose a tree by would
        take more memory than the chart left of its bound.
    """
    if not chart.has_outside or chart.is_viterbi:
        raise ValueError("posteriors need inside and outside values")
    cdef Forest forest = Forest(chart.n_words, chart.grammar.n_labels)
    cdef Collector collector = Collector(chart, forest, smallest)
    with nogil:
        collector.run()
    if chart.grammar.table.n_labels > chart.grammar.n_labels:
        # Rules with the same labels came from different children: labelled ones, and some that are not.
        forest.merge()
    return forest


@cython.final
cdef class Collector:
    """Sums over the refinements of every treebank rule."""

    cdef Chart chart
    cdef Forest forest
    cdef weight_t smallest
    cdef vector[weight_t] outside        # per symbol: outside value over the total, in the cell at work
    cdef vector[weight_t] at_split       # per split point
    cdef vector[weight_t] of_label       # per label; zero between rules

    def __init__(self, Chart chart, Forest forest, weight_t smallest):
        self.chart, self.forest, self.smallest = chart, forest, smallest
        self.outside.assign(chart.grammar.n_symbols, 0.0)
        self.at_split.assign(chart.n_words + 1, 0.0)
        self.of_label.assign(chart.grammar.n_labels, 0.0)

    cdef void run(self) noexcept nogil:
        cdef position_t length, start
        cdef index_t most = (self.chart.max_bytes - self.chart.bytes_in_use()) // BYTES_PER_EDGE
        for length in range(1, self.chart.n_words + 1):
            for start in range(self.chart.n_words - length + 1):
                self.collect_cell(start, start + length)
                if <index_t>self.forest.edges.size() > most:
                    self.forest.is_over_budget = True
                    self.forest.edges = vector[Edge]()
                    return

    cdef void collect_cell(self, position_t start, position_t end) noexcept nogil:
        cdef const GrammarTable* grammar = &self.chart.grammar.table
        cdef index_t cell = self.chart.cell_of(start, end), position, entry, edge, block, first_edge
        cdef symbol_t symbol, child, label
        cdef position_t low, high
        cdef weight_t posterior, largest = 0.0
        cdef const LiveBlock* live
        for position in range(self.chart.cell_begin[cell], self.chart.cell_end[cell]):
            symbol = self.chart.cell_symbols[position]
            self.outside[symbol] = self.chart.outside_of(start, end, symbol) / self.chart.total
            if self.outside[symbol] > 0.0:
                largest = max(largest, self.outside[symbol] * self.chart.inside_of(start, end, symbol))
                self.chart.sums[symbol] = self.outside[symbol]
        if largest >= self.smallest:
            first_edge = self.forest.edges.size()
            if end == start + 1:
                for entry in range(self.chart.lexical_start[start], self.chart.lexical_start[end]):
                    symbol = self.chart.lexical_symbol[entry]
                    posterior = self.chart.lexical_weight[entry] * self.outside[symbol]
                    self.add_up(first_edge, start, end, grammar.label[symbol], -1, posterior)
            elif self.chart.is_masked:
                self.chart.collect_cell_labels(cell)
                for position in range(self.chart.live_begin[cell], self.chart.live_end[cell]):
                    live = &self.chart.live_blocks[position]
                    if self.chart.label_stamp[live.label] == self.chart.last_stamp:
                        self.collect_block(live.label, live.block, start, end, live.low, live.high)
            else:
                self.chart.collect_cell_labels(cell)
                for position in range(<index_t>self.chart.cell_labels.size()):
                    label = self.chart.cell_labels[position]
                    for block in range(grammar.block_start[label], grammar.block_start[label + 1]):
                        if self.chart.split_range(block, start, end, &low, &high):
                            self.collect_block(label, block, start, end, low, high)
            first_edge = self.forest.edges.size()
            for position in range(self.chart.cell_begin[cell], self.chart.cell_end[cell]):
                symbol = self.chart.cell_symbols[position]
                if self.outside[symbol] == 0.0:
                    continue
                for edge in range(grammar.down_start[symbol], grammar.down_start[symbol + 1]):
                    if not grammar.down_is_bridge[edge]:
                        child = grammar.down_child[edge]
                        posterior = grammar.down_weight[edge] * self.outside[symbol] * (
                            self.chart.inside_of(start, end, child))
                        self.add_up(first_edge, start, end, grammar.label[symbol], grammar.label[child], posterior)
        for position in range(self.chart.cell_begin[cell], self.chart.cell_end[cell]):
            self.outside[self.chart.cell_symbols[position]] = 0.0
            self.chart.sums[self.chart.cell_symbols[position]] = 0.0

    cdef void add_up(self, index_t first_edge, position_t start, position_t end, symbol_t label, symbol_t left,
                     weight_t posterior) noexcept nogil:
        """Add to a unary or lexical rule of the cell at work, whose edges begin at `first_edge`."""
        cdef index_t position
        cdef Edge* edge
        if posterior < self.smallest:
            return
        for position in range(first_edge, <index_t>self.forest.edges.size()):
            edge = &self.forest.edges[position]
            if edge.label == label and edge.left == left:
                edge.posterior += posterior
                return
        self.forest.add(start, -1, end, label, left, -1, posterior)

    cdef void collect_block(self, symbol_t label, index_t block, position_t start, position_t end,
                            position_t low, position_t high) noexcept nogil:
        cdef const GrammarTable* grammar = &self.chart.grammar.table
        cdef const symbol_t* left_slots = &self.chart.left_slot[<index_t>start * grammar.n_symbols]
        cdef const symbol_t* right_slots = &self.chart.right_slot[<index_t>end * grammar.n_symbols]
        cdef const weight_t* outside = self.outside.data()
        cdef index_t stride = self.chart.stride, run, pair, rule, left_slot, right_slot
        cdef position_t split, left_low, left_high, first, last
        cdef symbol_t left, right
        cdef weight_t value
        for run in range(grammar.run_start[block], grammar.run_start[block + 1]):
            left_slot = left_slots[grammar.run_left[run]]
            if left_slot < 0:
                continue
            left_low = max(low, self.chart.left_low[left_slot])
            left_high = min(high, self.chart.left_high[left_slot])
            if left_low > left_high or (
                    left_low == left_high and self.chart.left_inside[left_slot * stride + left_low] == 0.0):
                continue
            for pair in range(grammar.run_pair_start[run], grammar.run_pair_start[run + 1]):
                right_slot = right_slots[grammar.block_pair_right[pair]]
                if right_slot < 0:
                    continue
                first = max(left_low, self.chart.right_low[right_slot])
                last = min(left_high, self.chart.right_high[right_slot])
                if first > last:
                    continue
                value = 0.0
                for rule in range(grammar.block_rule_start[pair], grammar.block_rule_start[pair + 1]):
                    value += grammar.block_rule_weight[rule] * outside[grammar.block_rule_parent[rule]]
                if value > 0.0:
                    add_products(
                        &self.at_split[first], &self.chart.left_inside[left_slot * stride + first],
                        &self.chart.right_inside[right_slot * stride + first], value, last - first + 1)
        for split in range(low, high + 1):
            if self.at_split[split] >= self.smallest:
                left, right = grammar.block_left_label[block], grammar.block_right_label[block]
                if left >= grammar.n_treebank_labels:
                    self.share_out(left, start, split)
                    for left in range(grammar.n_treebank_labels):
                        self.take_share(start, split, end, label, left, right, left)
                elif right >= grammar.n_treebank_labels:
                    self.share_out(right, split, end)
                    for right in range(grammar.n_treebank_labels):
                        self.take_share(start, split, end, label, left, right, right)
                else:
                    self.forest.add(start, split, end, label, left, right, self.at_split[split])
            self.at_split[split] = 0.0

    cdef void share_out(self, symbol_t label, position_t start, position_t end) noexcept nogil:
        """For a symbol without a label, which has bridges only: the share of every label in its inside value."""
        cdef const GrammarTable* grammar = &self.chart.grammar.table
        cdef symbol_t symbol = grammar.unlabelled[label - grammar.n_treebank_labels], child
        cdef weight_t total = self.chart.inside_of(start, end, symbol)
        cdef index_t edge
        for edge in range(grammar.down_start[symbol], grammar.down_start[symbol + 1]):
            child = grammar.down_child[edge]
            self.of_label[grammar.label[child]] += (
                grammar.down_weight[edge] * self.chart.inside_of(start, end, child) / total)

    cdef void take_share(self, position_t start, position_t split, position_t end, symbol_t label, symbol_t left,
                         symbol_t right, symbol_t own) noexcept nogil:
        """Add a rule with the share that a label has in its posterior."""
        cdef weight_t posterior = self.at_split[split] * self.of_label[own]
        if posterior >= self.smallest:
            self.forest.add(start, split, end, label, left, right, posterior)
        self.of_label[own] = 0.0


@cython.final
cdef class Decoder:
    """Dynamic programming over the edges of a forest, cell by cell."""

    cdef Forest forest
    cdef bint product
    cdef vector[Item] items
    cdef vector[symbol_t] item_label     # beside the items: looking for a label reads nothing else
    cdef vector[index_t] item_of_label   # for the span at work, per label; of another span where it is smaller
    cdef vector[index_t] cell_begin      # the items of each span
    cdef vector[index_t] cell_end
    cdef vector[index_t] path

    def __init__(self, Forest forest, bint product):
        self.forest, self.product = forest, product
        self.cell_begin.assign((forest.n_words + 1) * (forest.n_words + 1), 0)
        self.cell_end.assign((forest.n_words + 1) * (forest.n_words + 1), 0)
        self.item_of_label.assign(forest.n_labels, -1)

    cdef index_t find(self, position_t start, position_t end, symbol_t label) noexcept nogil:
        """The item of a label over a span, or -1. A span has few labels, so they are looked through."""
        cdef index_t cell = <index_t>start * (self.forest.n_words + 1) + end, item
        for item in range(self.cell_begin[cell], self.cell_end[cell]):
            if self.item_label[item] == label:
                return item
        return -1

    cdef index_t find_or_make(self, position_t start, position_t end, symbol_t label) noexcept nogil:
        """The same, with a new item if need be; only for the span at work, whose items come last."""
        cdef index_t cell = <index_t>start * (self.forest.n_words + 1) + end
        cdef Item fresh
        if self.cell_begin[cell] == self.cell_end[cell]:
            self.cell_begin[cell] = self.items.size()
        if self.item_of_label[label] < self.cell_begin[cell]:
            fresh.base, fresh.best, fresh.base_edge = -INFINITY, -INFINITY, -1
            self.item_of_label[label] = self.items.size()
            self.items.push_back(fresh)
            self.item_label.push_back(label)
            self.cell_end[cell] = self.items.size()
        return self.item_of_label[label]

    cdef double score(self, const Edge& edge) noexcept nogil:
        return log(edge.posterior) if self.product else edge.posterior

    cdef void run(self) noexcept nogil:
        cdef index_t n_edges = self.forest.edges.size(), position = 0, first_item, first_unary
        cdef Edge edge
        while position < n_edges:
            edge = self.forest.edges[position]
            first_item = self.items.size()
            while position < n_edges and self.same_cell(position, edge) and not is_unary(self.forest.edges[position]):
                self.try_base(position)
                position += 1
            first_unary = position
            while position < n_edges and self.same_cell(position, edge):
                self.find_or_make(edge.start, edge.end, self.forest.edges[position].label)
                position += 1
            self.close_unaries(first_item, first_unary, position)

    cdef bint same_cell(self, index_t position, Edge edge) noexcept nogil:
        return (self.forest.edges[position].start == edge.start and self.forest.edges[position].end == edge.end)

    cdef void try_base(self, index_t position) noexcept nogil:
        cdef Edge edge = self.forest.edges[position]
        cdef double value = 0.0
        cdef index_t left, right, item
        if edge.left >= 0:
            left = self.find(edge.start, edge.split, edge.left)
            if left < 0:
                return
            right = self.find(edge.split, edge.end, edge.right)
            if right < 0:
                return
            value = self.items[left].best + self.items[right].best
        value += self.score(edge)
        item = self.find_or_make(edge.start, edge.end, edge.label)
        if value > self.items[item].base:
            self.items[item].base = self.items[item].best = value
            self.items[item].base_edge = position

    cdef void close_unaries(self, index_t first_item, index_t first_edge, index_t last_edge) noexcept nogil:
        """Put the best chain of unary rules on top of every label of a cell."""
        cdef vector[index_t] edges
        cdef vector[Edge] by_posterior
        cdef index_t position, item
        cdef weight_t smallest = 0.0
        cdef bint gains = not self.product
        if first_edge == last_edge:
            return
        for position in range(first_edge, last_edge):
            by_posterior.push_back(self.forest.edges[position])
            gains = gains or self.forest.edges[position].posterior > 1.0 + ROUNDING
        if gains and <index_t>by_posterior.size() > MAX_CHAIN_RULES:
            sort(by_posterior.begin(), by_posterior.end(), &is_likelier)
            smallest = by_posterior[MAX_CHAIN_RULES - 1].posterior
        for position in range(first_edge, last_edge):
            if self.forest.edges[position].posterior >= smallest and (
                    <index_t>edges.size() < MAX_CHAIN_RULES or not gains):
                edges.push_back(position)
        if not gains:
            self.relax(edges)
            return
        for item in range(first_item, <index_t>self.items.size()):
            self.path.clear()
            self.extend_chain(item, item, 0.0, edges)

    cdef void relax(self, vector[index_t]& edges) noexcept nogil:
        """Best chains when every rule costs: repeat until nothing gains, at most once per rule."""
        cdef bint changed = True
        cdef index_t _sweep, position, number, top, below
        cdef Edge edge
        cdef double value
        for _sweep in range(<index_t>edges.size()):
            if not changed:
                return
            changed = False
            for number in range(<index_t>edges.size()):
                position = edges[number]
                edge = self.forest.edges[position]
                top, below = self.find(edge.start, edge.end, edge.label), self.find(edge.start, edge.end, edge.left)
                if below < 0 or self.repeats(below, edge.label):
                    continue
                value = log(edge.posterior) + self.items[below].best
                if value > self.items[top].best:
                    self.items[top].best = value
                    self.items[top].chain.assign(1, position)
                    self.items[top].chain.insert(
                        self.items[top].chain.end(), self.items[below].chain.begin(), self.items[below].chain.end())
                    changed = True

    cdef bint repeats(self, index_t item, symbol_t label) noexcept nogil:
        """Whether the best tree of an item begins with a chain that contains a label."""
        cdef index_t number
        if self.item_label[item] == label:
            return True
        for number in range(<index_t>self.items[item].chain.size()):
            if self.forest.edges[self.items[item].chain[number]].left == label:
                return True
        return False

    cdef void extend_chain(self, index_t top, index_t item, double gained, vector[index_t]& edges) noexcept nogil:
        """Try all chains below `item` that repeat no label; `path` holds the rules above it, worth `gained`."""
        cdef index_t position, number, below
        cdef Edge edge
        if not self.path.empty() and gained + self.items[item].base > self.items[top].best:
            self.items[top].best = gained + self.items[item].base
            self.items[top].chain = self.path
        for number in range(<index_t>edges.size()):
            position = edges[number]
            edge = self.forest.edges[position]
            if edge.label != self.item_label[item] or self.is_on_path(top, edge.left):
                continue
            below = self.find(edge.start, edge.end, edge.left)
            if below >= 0:
                self.path.push_back(position)
                self.extend_chain(top, below, gained + self.score(edge), edges)
                self.path.pop_back()

    cdef bint is_on_path(self, index_t top, symbol_t label) noexcept nogil:
        cdef index_t number
        if self.item_label[top] == label:
            return True
        for number in range(<index_t>self.path.size()):
            if self.forest.edges[self.path[number]].left == label:
                return True
        return False

    def tree(self, symbol_t root):
        """The rows of the best tree and its score."""
        cdef index_t item = self.find(0, self.forest.n_words, root), number
        if item < 0 or self.items[item].best == -INFINITY:
            return None, -INFINITY
        cdef double best = self.items[item].best
        cdef vector[index_t] waiting
        cdef Edge edge
        rows = []
        waiting.push_back(item)
        while not waiting.empty():
            item = waiting.back()
            waiting.pop_back()
            for number in range(<index_t>self.items[item].chain.size()):
                edge = self.forest.edges[self.items[item].chain[number]]
                rows.append((edge.label, edge.start, edge.end, UNARY))
            if not self.items[item].chain.empty():
                edge = self.forest.edges[self.items[item].chain.back()]
                item = self.find(edge.start, edge.end, edge.left)
            edge = self.forest.edges[self.items[item].base_edge]
            rows.append((edge.label, edge.start, edge.end, LEXICAL if edge.left < 0 else BINARY))
            if edge.left >= 0:
                waiting.push_back(self.find(edge.split, edge.end, edge.right))
                waiting.push_back(self.find(edge.start, edge.split, edge.left))
        return np.array(rows, dtype=np.int32).reshape(-1, 4), best
