"""The exact probability of a given tree: the sum over all derivations of it, in time linear in its size.

With ``T(x, v)`` the weight of all ways to make the tree below node ``v`` from symbol ``x``,

    T(x, v) = sum_{x -> y z} w T(y, left child) T(z, right child)  +  sum_{x => y} w T(y, v)

where only rules whose labels are those of the tree count, and bridges ``x => y`` stay at the node.
"""

from libc.math cimport INFINITY, log
from libcpp.vector cimport vector

from tsgkit._grammar_index cimport GrammarIndex, GrammarTable
from tsgkit._types cimport index_t, position_t, symbol_t, weight_t

cdef enum Kind:
    LEXICAL = 0
    UNARY = 1
    BINARY = 2

cdef weight_t NEGLIGIBLE = 1e-18   # of a node's value: where the sum over cycles of bridges ends


cdef struct Entry:
    symbol_t symbol
    weight_t value


cdef class TreeScorer:
    """Scores trees under one grammar; for one thread at a time.

    Parameters
    ----------
    grammar : GrammarIndex
    """

    cdef readonly GrammarIndex grammar
    cdef vector[vector[Entry]] values    # per node of the tree
    cdef vector[weight_t] dense          # per symbol; zero between nodes
    cdef vector[weight_t] other          # likewise

    def __init__(self, GrammarIndex grammar):
        self.grammar = grammar
        self.dense.assign(grammar.n_symbols, 0.0)
        self.other.assign(grammar.n_symbols, 0.0)

    def log_weight(self, const symbol_t[:, ::1] rows, const index_t[::1] lexical_start,
                   const symbol_t[::1] lexical_symbol, const weight_t[::1] lexical_weight):
        """The log of the total weight of a tree, -inf where the grammar does not make it.

        Parameters
        ----------
        rows : array of int32, four columns
            ``(label, start, end, kind)``, parents before children, left to right.
        lexical_start, lexical_symbol, lexical_weight : arrays
            As for `Chart.fill`.
        """
        cdef index_t n_nodes = rows.shape[0], node, child
        cdef vector[index_t] waiting
        cdef double log_scale = 0.0
        self.check(rows, lexical_start, lexical_symbol, lexical_weight)
        self.values.resize(n_nodes)
        with nogil:
            for node in range(n_nodes - 1, -1, -1):
                self.values[node].clear()
                if rows[node, 3] == LEXICAL:
                    self.start_word(
                        node, rows[node, 0], rows[node, 1], lexical_start, lexical_symbol, lexical_weight)
                elif rows[node, 3] == UNARY:
                    child = waiting.back()
                    waiting.pop_back()
                    self.apply_unary(node, rows[node, 0], child)
                else:
                    child = waiting.back()
                    waiting.pop_back()
                    self.apply_binary(node, rows[node, 0], child, waiting.back())
                    waiting.pop_back()
                log_scale += self.close_bridges(node)
                waiting.push_back(node)
        cdef Entry entry
        for entry in self.values[0]:
            if entry.symbol == self.grammar.table.root and entry.value > 0.0:
                return log(entry.value) + log_scale
        return -INFINITY

    def check(self, const symbol_t[:, ::1] rows, const index_t[::1] lexical_start,
              const symbol_t[::1] symbols, const weight_t[::1] weights):
        cdef index_t node, n_waiting = 0, n_words = lexical_start.shape[0] - 1, entry
        if rows.shape[0] == 0 or rows.shape[1] != 4:
            raise ValueError("a tree has at least one node")
        for node in range(rows.shape[0] - 1, -1, -1):
            if not (0 <= rows[node, 0] < self.grammar.n_labels and 0 <= rows[node, 1] < n_words
                    and LEXICAL <= rows[node, 3] <= BINARY and n_waiting >= rows[node, 3]):
                raise ValueError(f"row {node} is not a node of a tree over {n_words} words")
            n_waiting += 1 - rows[node, 3]
        if n_waiting != 1:
            raise ValueError("the rows are not one tree")
        if lexical_start[0] != 0 or not lexical_start[n_words] == symbols.shape[0] == weights.shape[0]:
            raise ValueError("the lexical entries do not fit together")
        for entry in range(n_words):
            if lexical_start[entry] > lexical_start[entry + 1]:
                raise ValueError("the lexical entries are not in order")
        for entry in range(symbols.shape[0]):
            if not 0 <= symbols[entry] < self.grammar.n_symbols:
                raise ValueError(f"there is no symbol {symbols[entry]}")

    cdef void put(self, index_t node, symbol_t symbol, weight_t value) noexcept nogil:
        """Add to a node's value of a symbol; `dense` tells which symbols it has already."""
        cdef Entry entry
        if value <= 0.0:
            return
        if self.dense[symbol] == 0.0:
            entry.symbol, entry.value = symbol, 0.0
            self.values[node].push_back(entry)
        self.dense[symbol] += value

    cdef void start_word(self, index_t node, symbol_t label, position_t position, const index_t[::1] start,
                         const symbol_t[::1] symbols, const weight_t[::1] weights) noexcept nogil:
        cdef index_t entry
        for entry in range(start[position], start[position + 1]):
            if self.grammar.table.label[symbols[entry]] == label:
                self.put(node, symbols[entry], weights[entry])

    cdef void apply_unary(self, index_t node, symbol_t label, index_t child) noexcept nogil:
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef index_t edge, position
        cdef Entry entry
        for position in range(<index_t>self.values[child].size()):
            entry = self.values[child][position]
            for edge in range(grammar.up_start[entry.symbol], grammar.up_start[entry.symbol + 1]):
                if not grammar.up_is_bridge[edge] and grammar.label[grammar.up_parent[edge]] == label:
                    self.put(node, grammar.up_parent[edge], grammar.up_weight[edge] * entry.value)

    cdef void apply_binary(self, index_t node, symbol_t label, index_t left, index_t right) noexcept nogil:
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef index_t pair, rule, position
        cdef Entry entry
        cdef weight_t value
        for position in range(<index_t>self.values[right].size()):
            self.other[self.values[right][position].symbol] = self.values[right][position].value
        for position in range(<index_t>self.values[left].size()):
            entry = self.values[left][position]
            for pair in range(grammar.pair_start[entry.symbol], grammar.pair_start[entry.symbol + 1]):
                value = entry.value * self.other[grammar.pair_right[pair]]
                if value > 0.0:
                    for rule in range(grammar.pair_rule_start[pair], grammar.pair_rule_start[pair + 1]):
                        if grammar.label[grammar.rule_parent[rule]] == label:
                            self.put(node, grammar.rule_parent[rule], grammar.rule_weight[rule] * value)
        for position in range(<index_t>self.values[right].size()):
            self.other[self.values[right][position].symbol] = 0.0

    cdef double close_bridges(self, index_t node) noexcept nogil:
        """Follow bridges to the end, then scale the node's values; returns the log of the factor."""
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef vector[Entry] moving
        cdef vector[symbol_t] arrived
        cdef Entry entry
        cdef index_t position, edge
        cdef symbol_t parent
        cdef weight_t largest = 0.0
        for position in range(<index_t>self.values[node].size()):
            entry.symbol = self.values[node][position].symbol
            entry.value = self.dense[entry.symbol]
            moving.push_back(entry)
        while not moving.empty():
            # One step of all at a time; what meets at a symbol goes on as one.
            arrived.clear()
            for position in range(<index_t>moving.size()):
                entry = moving[position]
                for edge in range(grammar.up_start[entry.symbol], grammar.up_start[entry.symbol + 1]):
                    if grammar.up_is_bridge[edge]:
                        parent = grammar.up_parent[edge]
                        if self.other[parent] == 0.0:
                            arrived.push_back(parent)
                        self.other[parent] += grammar.up_weight[edge] * entry.value
            moving.clear()
            for position in range(<index_t>arrived.size()):
                entry.symbol, entry.value = arrived[position], self.other[arrived[position]]
                self.other[entry.symbol] = 0.0
                if entry.value > NEGLIGIBLE * self.dense[entry.symbol]:
                    self.put(node, entry.symbol, entry.value)
                    moving.push_back(entry)
        for position in range(<index_t>self.values[node].size()):
            largest = max(largest, self.dense[self.values[node][position].symbol])
        for position in range(<index_t>self.values[node].size()):
            self.values[node][position].value = self.dense[self.values[node][position].symbol] / largest
            self.dense[self.values[node][position].symbol] = 0.0
        return log(largest) if largest > 0.0 else 0.0
