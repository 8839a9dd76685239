"""A weighted grammar laid out for the loops of the chart: the same rules in four orders.

Between `tsgkit.grammar.WeightedGrammar`, a value that anybody can make and that is checked when it is made, and the
chart, which trusts this index and nothing else. Binary rules ``x -> y z`` are found by treebank rule, by left child and
by parent, unary rules and bridges from both ends. Pruned charts read them by treebank rule only: the other two orders
are made when they are first needed.
"""

import threading

import numpy as np

from libc.math cimport isfinite
from libcpp.vector cimport vector

from tsgkit._rule_arrays cimport sort_by
from tsgkit._types cimport index_t, position_t, symbol_t, weight_t


cdef class GrammarIndex:
    """The index of a grammar.

    Parameters
    ----------
    grammar : WeightedGrammar
    """

    def __init__(self, grammar):
        # It may have been changed since it was made.
        grammar.validate()
        self.arrays, self.lock = [], threading.Lock()
        self.n_symbols = self.table.n_symbols = grammar.n_symbols
        self.n_labels = self.table.n_treebank_labels = len(grammar.labels)
        single = np.concatenate([grammar.unary, grammar.bridge])
        symbol_of_rank = grammar.bottom_up_order()
        rank = np.empty_like(symbol_of_rank)
        rank[symbol_of_rank] = np.arange(len(rank), dtype=np.int32)
        self.symbol_of_rank, self.rank_of_symbol = symbol_of_rank, rank
        self.table.symbol_of = self.symbols(symbol_of_rank)
        self.table.root = rank[grammar.root]
        label = grammar.label[symbol_of_rank]
        unlabelled = np.flatnonzero(label < 0)
        label[unlabelled] = self.n_labels + np.arange(len(unlabelled))
        self.table.n_labels = self.n_labels + len(unlabelled)
        self.table.unlabelled = self.symbols(unlabelled)
        self.table.label = self.symbols(label)
        self.index_by_block(grammar)
        weights = np.concatenate([grammar.unary_weight, grammar.bridge_weight])
        is_bridge = np.repeat([0, 1], [len(grammar.unary), len(grammar.bridge)])
        self.index_unary(rank[single], weights, is_bridge)
        self.index_cycles(grammar.components, rank)

    cdef const index_t* indices(self, values) except NULL:
        cdef index_t[::1] view = self.kept(values, np.int64)
        return &view[0]

    cdef const symbol_t* symbols(self, values) except NULL:
        cdef symbol_t[::1] view = self.kept(values, np.int32)
        return &view[0]

    cdef const weight_t* weights(self, values) except NULL:
        cdef weight_t[::1] view = self.kept(values, np.float64)
        return &view[0]

    cdef object kept(self, values, dtype):
        """A copy that lives as long as the index; one entry longer, so that it has an address."""
        array = np.zeros(len(values) + 1, dtype=dtype)
        array[:len(values)] = values
        self.arrays.append(array)
        return array

    cdef int index_by_block(self, grammar) except -1:
        cdef const symbol_t[:, ::1] rules = grammar.binary
        cdef const weight_t[::1] weights = grammar.binary_weight
        cdef const symbol_t[::1] rank = self.rank_of_symbol
        cdef Columns columns
        cdef GrammarTable* table = &self.table
        cdef BlockLists* lists = &self.by_block
        with nogil:
            take_columns(&columns, rules, weights, rank)
            list_blocks(lists, table, &columns)
        table.group_start = self.indices(starts_of(lists.group_label, table.n_labels))
        table.group_left_label, table.group_block_start = lists.group_left_label.data(), lists.group_block_start.data()
        table.block_start = self.indices(starts_of(lists.block_label, table.n_labels))
        table.block_left_label, table.block_right_label = (
            lists.block_left_label.data(), lists.block_right_label.data())
        table.run_start, table.run_left = lists.run_start.data(), lists.run_left.data()
        table.run_pair_start = lists.run_pair_start.data()
        table.by_block.pairs, table.by_block.rules = lists.pairs.data(), lists.rules.data()
        return 0

    cdef int need_left(self) except -1:
        """Make the order by left child, unless it was made before."""
        cdef Columns columns
        with self.lock:
            if not self.has_left:
                with nogil:
                    columns_of_blocks(&columns, &self.by_block)
                    list_by_left(&self.by_left, &columns, self.n_symbols)
                self.table.left_pair_start = self.by_left.pair_start.data()
                self.table.by_left.pairs, self.table.by_left.rules = (
                    self.by_left.pairs.data(), self.by_left.rules.data())
                self.has_left = True
        return 0

    cdef int need_parent(self) except -1:
        """Make the order by parent, unless it was made before."""
        cdef Columns columns
        cdef ParentLists* lists = &self.by_parent
        with self.lock:
            if not self.has_parent:
                with nogil:
                    columns_of_blocks(&columns, &self.by_block)
                    list_by_parent(lists, &columns, self.n_symbols)
                self.table.parent_start, self.table.parent_weight = lists.start.data(), lists.weight.data()
                self.table.parent_left, self.table.parent_right = lists.left.data(), lists.right.data()
                self.has_parent = True
        return 0

    cdef int index_unary(self, rules, weights, is_bridge) except -1:
        table = &self.table
        parent, child = rules.T
        order = np.lexsort((is_bridge, parent, child))
        table.up.start = self.indices(starts_of(child[order], self.n_symbols))
        table.up.other = self.symbols(parent[order])
        table.up.weight = self.weights(weights[order])
        table.up.is_bridge = self.symbols(is_bridge[order])
        order = np.lexsort((is_bridge, child, parent))
        table.down.start = self.indices(starts_of(parent[order], self.n_symbols))
        table.down.other = self.symbols(child[order])
        table.down.weight = self.weights(weights[order])
        table.down.is_bridge = self.symbols(is_bridge[order])
        return 0

    cdef int index_cycles(self, components, rank) except -1:
        cycle_of = np.full(self.n_symbols, -1, dtype=np.int32)
        first, sizes, sums, best = [], [], [np.empty(0)], [np.empty(0)]
        for number, component in enumerate(components):
            ranks = rank[component.members]
            order = np.argsort(ranks)
            cycle_of[ranks] = number
            first.append(ranks.min())
            sizes.append(len(ranks))
            sums.append(component.sums[np.ix_(order, order)].ravel())
            best.append(component.best[np.ix_(order, order)].ravel())
        self.table.cycle_of = self.symbols(cycle_of)
        self.table.largest_cycle = max(sizes, default=0)
        self.table.cycle_first = self.symbols(first)
        self.table.cycle_size = self.symbols(sizes)
        self.table.cycle_matrix = self.indices(np.concatenate([[0], np.cumsum(np.square(sizes))]))
        self.table.cycle_sums = self.weights(np.concatenate(sums))
        self.table.cycle_best = self.weights(np.concatenate(best))
        return 0


cdef object starts_of(sorted_keys, n_keys):
    """Where each key's entries begin in a sorted array, and where the last one's end."""
    return np.searchsorted(sorted_keys, np.arange(n_keys + 1)).astype(np.int64)


# ---- binary rules in several orders ----------------------------------------------------------------------

cdef int take_columns(
        Columns* columns, const symbol_t[:, ::1] rules, const weight_t[::1] weights,
        const symbol_t[::1] rank) except -1 nogil:
    """The rules of a grammar, their symbols replaced by ranks."""
    cdef index_t n_rules = rules.shape[0], rule
    resize_columns(columns, n_rules)
    for rule in range(n_rules):
        columns.parent[rule], columns.left[rule] = rank[rules[rule, 0]], rank[rules[rule, 1]]
        columns.right[rule], columns.weight[rule] = rank[rules[rule, 2]], weights[rule]
    return 0


cdef int resize_columns(Columns* columns, index_t n_rules) except -1 nogil:
    columns.parent.resize(n_rules)
    columns.left.resize(n_rules)
    columns.right.resize(n_rules)
    columns.weight.resize(n_rules)
    return 0


cdef int columns_of_blocks(Columns* columns, const BlockLists* lists) except -1 nogil:
    """The rules in the order of treebank rules."""
    cdef index_t run, pair, rule
    resize_columns(columns, lists.rules.size())
    for run in range(<index_t>lists.run_left.size()):
        for pair in range(lists.run_pair_start[run], lists.run_pair_start[run + 1]):
            for rule in range(lists.pairs[pair].first_rule, lists.pairs[pair + 1].first_rule):
                columns.parent[rule], columns.weight[rule] = lists.rules[rule].parent, lists.rules[rule].weight
                columns.left[rule], columns.right[rule] = lists.run_left[run], lists.pairs[pair].right
    return 0


cdef int sort_rules(
        vector[symbol_t]* order, const vector[symbol_t]* first, const vector[symbol_t]* second,
        const vector[symbol_t]* third, symbol_t n_values) except -1 nogil:
    """Rules by their first key, then by the second and the third; by how they stand if there is no order yet."""
    cdef index_t n_rules = first.size(), rule
    if order.empty():
        order.resize(n_rules)
        for rule in range(n_rules):
            order[0][rule] = rule
    sort_by(order, third.data(), n_values)
    sort_by(order, second.data(), n_values)
    sort_by(order, first.data(), n_values)
    return 0


cdef int labels_of(
        vector[symbol_t]* labels, const GrammarTable* table, const vector[symbol_t]* symbols) except -1 nogil:
    cdef index_t rule
    labels.resize(symbols.size())
    for rule in range(<index_t>symbols.size()):
        labels[0][rule] = table.label[symbols[0][rule]]
    return 0


cdef int list_blocks(BlockLists* lists, const GrammarTable* table, const Columns* columns) except -1 nogil:
    """Groups, blocks, runs and pairs of rules, each a range of the next."""
    cdef vector[symbol_t] order, parent_label, left_label, right_label
    cdef index_t n_rules = columns.parent.size(), place
    cdef symbol_t rule, before = 0
    cdef bint is_new
    labels_of(&parent_label, table, &columns.parent)
    labels_of(&left_label, table, &columns.left)
    labels_of(&right_label, table, &columns.right)
    sort_rules(&order, &columns.left, &columns.right, &columns.parent, table.n_symbols)
    sort_rules(&order, &parent_label, &left_label, &right_label, table.n_labels)
    lists.rules.resize(n_rules)
    for place in range(n_rules):
        rule = order[place]
        lists.rules[place].weight, lists.rules[place].parent = columns.weight[rule], columns.parent[rule]
        is_new = place == 0 or parent_label[rule] != parent_label[before] or left_label[rule] != left_label[before]
        if is_new:
            lists.group_label.push_back(parent_label[rule])
            lists.group_left_label.push_back(left_label[rule])
            lists.group_block_start.push_back(lists.block_label.size())
        is_new = is_new or right_label[rule] != right_label[before]
        if is_new:
            lists.block_label.push_back(parent_label[rule])
            lists.block_left_label.push_back(left_label[rule])
            lists.block_right_label.push_back(right_label[rule])
            lists.run_start.push_back(lists.run_left.size())
        is_new = is_new or columns.left[rule] != columns.left[before]
        if is_new:
            lists.run_left.push_back(columns.left[rule])
            lists.run_pair_start.push_back(lists.pairs.size())
        if is_new or columns.right[rule] != columns.right[before]:
            push_pair(&lists.pairs, columns.right[rule], place)
        before = rule
    lists.group_block_start.push_back(lists.block_label.size())
    lists.run_start.push_back(lists.run_left.size())
    lists.run_pair_start.push_back(lists.pairs.size())
    push_pair(&lists.pairs, 0, n_rules)
    return 0


cdef int push_pair(vector[Pair]* pairs, symbol_t right, index_t first_rule) except -1 nogil:
    cdef Pair pair
    pair.right, pair.first_rule = right, first_rule
    pairs.push_back(pair)
    return 0


cdef int list_by_left(LeftLists* lists, const Columns* columns, symbol_t n_symbols) except -1 nogil:
    cdef vector[symbol_t] order
    cdef index_t n_rules = columns.parent.size(), place
    cdef symbol_t rule, before = 0
    lists.pair_start.clear()
    lists.pairs.clear()
    sort_rules(&order, &columns.left, &columns.right, &columns.parent, n_symbols)
    lists.rules.resize(n_rules)
    for place in range(n_rules):
        rule = order[place]
        lists.rules[place].weight, lists.rules[place].parent = columns.weight[rule], columns.parent[rule]
        while <symbol_t>lists.pair_start.size() <= columns.left[rule]:
            lists.pair_start.push_back(lists.pairs.size())
        if place == 0 or columns.left[rule] != columns.left[before] or columns.right[rule] != columns.right[before]:
            push_pair(&lists.pairs, columns.right[rule], place)
        before = rule
    while <symbol_t>lists.pair_start.size() <= n_symbols:
        lists.pair_start.push_back(lists.pairs.size())
    push_pair(&lists.pairs, 0, n_rules)
    return 0


cdef int list_by_parent(ParentLists* lists, const Columns* columns, symbol_t n_symbols) except -1 nogil:
    cdef vector[symbol_t] order
    cdef index_t n_rules = columns.parent.size(), place
    cdef symbol_t rule
    lists.start.clear()
    sort_rules(&order, &columns.parent, &columns.left, &columns.right, n_symbols)
    lists.left.resize(n_rules)
    lists.right.resize(n_rules)
    lists.weight.resize(n_rules)
    for place in range(n_rules):
        rule = order[place]
        lists.left[place], lists.right[place] = columns.left[rule], columns.right[rule]
        lists.weight[place] = columns.weight[rule]
        while <symbol_t>lists.start.size() <= columns.parent[rule]:
            lists.start.push_back(place)
    while <symbol_t>lists.start.size() <= n_symbols:
        lists.start.push_back(n_rules)
    return 0


cdef int check_lexical(GrammarIndex grammar, const index_t[::1] start, const symbol_t[::1] symbol,
                       const weight_t[::1] weight) except -1:
    """Check the lexical entries of a sentence: of every word, the symbols (ranks) that make it, and weights."""
    cdef index_t n_entries = symbol.shape[0], entry
    cdef position_t position
    if start.shape[0] < 2:
        raise ValueError("a sentence has at least one word")
    if start[0] != 0 or start[start.shape[0] - 1] != n_entries or weight.shape[0] != n_entries:
        raise ValueError("the lexical entries do not fit together")
    for position in range(start.shape[0] - 1):
        if start[position] > start[position + 1]:
            raise ValueError("the lexical entries are not in order")
    for entry in range(n_entries):
        if not 0 <= symbol[entry] < grammar.n_symbols:
            raise ValueError(f"symbol {symbol[entry]} is out of range: the grammar has {grammar.n_symbols}")
        if not (weight[entry] > 0.0 and isfinite(weight[entry])):
            raise ValueError(f"weight {weight[entry]} is not a positive number")
    return 0
