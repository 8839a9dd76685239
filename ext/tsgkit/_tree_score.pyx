"""The exact probability of a given tree: the sum over all derivations of it, in time linear in its size.

From the rows of a tree and the lexical entries of its words to a log weight. With ``T(x, v)`` the weight of all
derivations of the tree below node ``v`` from symbol ``x``,

    T(x, v) = sum_{x -> y z} w T(y, left child) T(z, right child)  +  sum_{x => y} w T(y, v)

where only rules whose labels are those of the tree count, and bridges ``x => y`` stay at the node.
"""

from libc.math cimport INFINITY, log
from libcpp.algorithm cimport pop_heap, push_heap
from libcpp.vector cimport vector

from tsgkit._codes cimport BINARY, LEXICAL, N_ROW_COLUMNS, ROW_KIND, ROW_LABEL, ROW_START, UNARY
from tsgkit._grammar_index cimport GrammarIndex, GrammarTable, PairTable, check_lexical
from tsgkit._types cimport index_t, position_t, symbol_t, weight_t
from tsgkit._unary_cycles cimport eliminate
from tsgkit._work_limit cimport WorkLimit, check_limit

cdef struct Entry:
    symbol_t symbol
    weight_t value


cdef bint is_greater(const symbol_t& one, const symbol_t& other) noexcept nogil:
    return one > other


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
    cdef vector[index_t] waiting         # the nodes whose parents are still to come
    cdef vector[symbol_t] waiting_symbols   # those of the node at work whose bridges are still to follow; a heap
    cdef vector[symbol_t] members        # of a cycle of bridges
    cdef vector[symbol_t] place          # per symbol: its number among them, or -1
    cdef vector[weight_t] matrix         # their one-step weights
    cdef vector[weight_t] closed         # their values
    cdef WorkLimit work_limit

    def __init__(self, GrammarIndex grammar not None):
        self.grammar = grammar
        self.dense.resize(grammar.n_symbols, 0.0)
        self.other.resize(grammar.n_symbols, 0.0)
        self.place.resize(grammar.n_symbols, -1)
        self.work_limit = WorkLimit()

    @property
    def limit(self):
        """When to stop working at a tree."""
        return self.work_limit

    @limit.setter
    def limit(self, WorkLimit limit not None):
        self.work_limit = limit

    def log_weight(self, const symbol_t[:, ::1] rows, const index_t[::1] lexical_start,
                   const symbol_t[::1] lexical_symbol, const weight_t[::1] lexical_weight):
        """The log of the total weight of a tree, -inf where the grammar does not make it or floats cannot hold it.

        Parameters
        ----------
        rows : array of int32, four columns
            ``(label, start, end, kind)``, parents before children, left to right.
        lexical_start, lexical_symbol, lexical_weight : arrays
            As for `Chart.fill`.
        """
        cdef index_t n_nodes = rows.shape[0], node
        cdef double log_scale = 0.0
        check_lexical(self.grammar, lexical_start, lexical_symbol, lexical_weight)
        check_rows(self.grammar, rows, lexical_start.shape[0] - 1)
        self.grammar.need_left()
        try:
            self.values.resize(n_nodes)
            with nogil:
                for node in range(n_nodes - 1, -1, -1):
                    self.make_node(node, rows, lexical_start, lexical_symbol, lexical_weight)
                    self.close_bridges(node, &log_scale)
        except BaseException:
            self.forget()
            raise
        self.waiting.clear()
        cdef Entry entry
        for entry in self.values[0]:
            if entry.symbol == self.grammar.table.root and entry.value > 0.0 and log_scale < INFINITY:
                return log(entry.value) + log_scale
        return -INFINITY

    cdef int make_node(self, index_t node, const symbol_t[:, ::1] rows, const index_t[::1] lexical_start,
                       const symbol_t[::1] lexical_symbol, const weight_t[::1] lexical_weight) except -1 nogil:
        """The values of a node from those of its children, which wait on the stack, without bridges."""
        cdef index_t child
        self.values[node].clear()
        if rows[node, ROW_KIND] == LEXICAL:
            self.start_word(
                node, rows[node, ROW_LABEL], rows[node, ROW_START], lexical_start, lexical_symbol, lexical_weight)
        else:
            child = self.waiting.back()
            self.waiting.pop_back()
            if rows[node, ROW_KIND] == UNARY:
                self.apply_unary(node, rows[node, ROW_LABEL], child)
            else:
                self.apply_binary(node, rows[node, ROW_LABEL], child, self.waiting.back())
                self.waiting.pop_back()
        self.waiting.push_back(node)
        return 0

    cdef void forget(self) noexcept:
        """After a failed allocation, or out of time: as before the first tree."""
        cdef index_t symbol
        self.waiting.clear()
        self.members.clear()
        for symbol in range(<index_t>self.dense.size()):
            self.dense[symbol] = self.other[symbol] = 0.0
            self.place[symbol] = -1

    cdef int put(self, index_t node, symbol_t symbol, weight_t value) except -1 nogil:
        """Add to a node's value of a symbol; `dense` tells which symbols it has already."""
        cdef Entry entry
        if value <= 0.0:
            return 0
        if self.dense[symbol] == 0.0:
            entry.symbol, entry.value = symbol, 0.0
            self.values[node].push_back(entry)
        self.dense[symbol] += value
        return 0

    cdef int start_word(self, index_t node, symbol_t label, position_t position, const index_t[::1] start,
                        const symbol_t[::1] symbols, const weight_t[::1] weights) except -1 nogil:
        cdef index_t entry
        for entry in range(start[position], start[position + 1]):
            if self.grammar.table.label[symbols[entry]] == label:
                self.put(node, symbols[entry], weights[entry])
        return 0

    cdef int apply_unary(self, index_t node, symbol_t label, index_t child) except -1 nogil:
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef index_t edge, position
        cdef Entry entry
        for position in range(<index_t>self.values[child].size()):
            entry = self.values[child][position]
            for edge in range(grammar.up.start[entry.symbol], grammar.up.start[entry.symbol + 1]):
                if not grammar.up.is_bridge[edge] and grammar.label[grammar.up.other[edge]] == label:
                    self.put(node, grammar.up.other[edge], grammar.up.weight[edge] * entry.value)
        return 0

    cdef int apply_binary(self, index_t node, symbol_t label, index_t left, index_t right) except -1 nogil:
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef const PairTable* pairs = &grammar.by_left
        cdef index_t pair, rule, position
        cdef Entry entry
        cdef weight_t value
        for position in range(<index_t>self.values[right].size()):
            self.other[self.values[right][position].symbol] = self.values[right][position].value
        for position in range(<index_t>self.values[left].size()):
            entry = self.values[left][position]
            for pair in range(grammar.left_pair_start[entry.symbol], grammar.left_pair_start[entry.symbol + 1]):
                value = entry.value * self.other[pairs.pairs[pair].right]
                if value > 0.0:
                    for rule in range(pairs.pairs[pair].first_rule, pairs.pairs[pair + 1].first_rule):
                        if grammar.label[pairs.rules[rule].parent] == label:
                            self.put(node, pairs.rules[rule].parent, pairs.rules[rule].weight * value)
        for position in range(<index_t>self.values[right].size()):
            self.other[self.values[right][position].symbol] = 0.0
        return 0

    # ---- bridges -------------------------------------------------------------------------------------

    cdef int close_bridges(self, index_t node, double* log_scale) except -1 nogil:
        """Follow bridges to the end, then scale the node's values; the log of the factor goes to `log_scale`.

        Bridges lead to higher ranks, except inside of cycles: whatever comes to the lowest rank has come.
        """
        cdef index_t position
        cdef symbol_t symbol
        self.waiting_symbols.clear()
        for position in range(<index_t>self.values[node].size()):
            self.push_symbol(self.values[node][position].symbol)
        while not self.waiting_symbols.empty():
            check_limit(&self.work_limit.limits)
            symbol = self.pop_symbol()
            if self.grammar.table.cycle_of[symbol] >= 0:
                self.close_cycle(node, symbol)
            else:
                self.follow_bridges(node, symbol)
        self.scale(node, log_scale)
        return 0

    cdef int push_symbol(self, symbol_t symbol) except -1 nogil:
        self.waiting_symbols.push_back(symbol)
        push_heap(self.waiting_symbols.begin(), self.waiting_symbols.end(), &is_greater)
        return 0

    cdef symbol_t pop_symbol(self) noexcept nogil:
        cdef symbol_t symbol
        pop_heap(self.waiting_symbols.begin(), self.waiting_symbols.end(), &is_greater)
        symbol = self.waiting_symbols.back()
        self.waiting_symbols.pop_back()
        return symbol

    cdef int follow_bridges(self, index_t node, symbol_t symbol) except -1 nogil:
        """Give a symbol's value to those that have a bridge to it, but not to others of its cycle."""
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef symbol_t cycle = grammar.cycle_of[symbol], parent
        cdef index_t edge
        cdef bint is_new
        for edge in range(grammar.up.start[symbol], grammar.up.start[symbol + 1]):
            parent = grammar.up.other[edge]
            if grammar.up.is_bridge[edge] and (cycle < 0 or grammar.cycle_of[parent] != cycle):
                is_new = self.dense[parent] == 0.0
                self.put(node, parent, grammar.up.weight[edge] * self.dense[symbol])
                if is_new and self.dense[parent] > 0.0:
                    self.push_symbol(parent)
        return 0

    cdef int close_cycle(self, index_t node, symbol_t symbol) except -1 nogil:
        """Close the bridges between the members of a cycle that have a value, or get one."""
        cdef const GrammarTable* grammar = &self.grammar.table
        cdef symbol_t cycle = grammar.cycle_of[symbol], first = grammar.cycle_first[cycle], parent
        cdef symbol_t end = first + grammar.cycle_size[cycle]
        cdef index_t position = 0, edge, n
        self.start_member(symbol)
        while not self.waiting_symbols.empty() and self.waiting_symbols.front() < end:
            self.start_member(self.pop_symbol())
        while position < <index_t>self.members.size():
            symbol = self.members[position]
            for edge in range(grammar.up.start[symbol], grammar.up.start[symbol + 1]):
                parent = grammar.up.other[edge]
                if grammar.up.is_bridge[edge] and first <= parent < end:
                    self.start_member(parent)
            position += 1
        n = self.members.size()
        self.matrix.clear()
        self.matrix.resize(n * n, 0.0)
        self.closed.resize(n)
        for position in range(n):
            symbol = self.members[position]
            self.closed[position] = self.dense[symbol]
            for edge in range(grammar.up.start[symbol], grammar.up.start[symbol + 1]):
                parent = grammar.up.other[edge]
                if grammar.up.is_bridge[edge] and first <= parent < end:
                    self.matrix[self.place[parent] * n + position] += grammar.up.weight[edge]
        eliminate(self.matrix.data(), self.closed.data(), n, &self.work_limit.limits)
        for position in range(n):
            symbol = self.members[position]
            self.place[symbol] = -1
            self.put(node, symbol, self.closed[position] - self.dense[symbol])
        for position in range(n):
            self.follow_bridges(node, self.members[position])
        self.members.clear()
        return 0

    cdef int start_member(self, symbol_t symbol) except -1 nogil:
        if self.place[symbol] < 0:
            self.place[symbol] = self.members.size()
            self.members.push_back(symbol)
        return 0

    cdef void scale(self, index_t node, double* log_scale) noexcept nogil:
        """Divide the values of a node by the largest of them."""
        cdef index_t position
        cdef weight_t largest = 0.0
        for position in range(<index_t>self.values[node].size()):
            largest = max(largest, self.dense[self.values[node][position].symbol])
        for position in range(<index_t>self.values[node].size()):
            self.values[node][position].value = self.dense[self.values[node][position].symbol] / largest
            self.dense[self.values[node][position].symbol] = 0.0
        if largest > 0.0:
            log_scale[0] += log(largest)


cdef int check_rows(GrammarIndex grammar, const symbol_t[:, ::1] rows, index_t n_words) except -1:
    """Everything that the kernels rely on."""
    cdef index_t node, n_waiting = 0
    if rows.shape[0] == 0 or rows.shape[1] != N_ROW_COLUMNS:
        raise ValueError("a tree has at least one node")
    for node in range(rows.shape[0] - 1, -1, -1):
        if not (0 <= rows[node, ROW_LABEL] < grammar.n_labels and 0 <= rows[node, ROW_START] < n_words
                and LEXICAL <= rows[node, ROW_KIND] <= BINARY and n_waiting >= rows[node, ROW_KIND]):
            raise ValueError(f"row {node} is not a node of a tree over {n_words} words")
        n_waiting += 1 - rows[node, ROW_KIND]
    if n_waiting != 1:
        raise ValueError("the rows are not one tree")
    return 0
