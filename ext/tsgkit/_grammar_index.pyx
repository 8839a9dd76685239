"""A weighted grammar laid out for the loops of the chart: the same rules in four orders.

Between `tsgkit.grammar.WeightedGrammar`, a value that anybody can make and that is checked when it is made, and the
chart, which trusts this index and nothing else. Binary rules ``x -> y z`` are found by left child, by treebank rule and
by parent, unary rules and bridges from both ends.
"""

import numpy as np

from libc.math cimport isfinite

from tsgkit._types cimport index_t, position_t, symbol_t, weight_t


# The layout of `Rule`.
RULE = np.dtype([("weight", np.float64), ("parent", np.int32)], align=True)


cdef class GrammarIndex:
    """The index of a grammar.

    Parameters
    ----------
    grammar : WeightedGrammar
    """

    def __init__(self, grammar):
        # It may have been changed since it was made.
        grammar.validate()
        self.arrays = []
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
        binary = rank[grammar.binary]
        self.index_by_left(binary, grammar.binary_weight)
        self.index_by_parent(binary, grammar.binary_weight)
        self.index_by_block(binary, grammar.binary_weight, label)
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

    cdef int keep_pairs(self, PairTable* table, right, first_rule, parent, weight) except -1:
        """Pairs of children with their right child and the first of their rules, and these rules."""
        pairs = np.zeros((len(right) + 1, 2), dtype=np.int32)
        pairs[:len(right), 0], pairs[:len(right), 1] = right, first_rule
        pairs[len(right), 1] = len(parent)
        rules = np.zeros(len(parent) + 1, dtype=RULE)
        rules["weight"][:len(parent)], rules["parent"][:len(parent)] = weight, parent
        self.arrays += [pairs, rules]
        cdef symbol_t[:, ::1] pair_view = pairs
        cdef unsigned char[::1] rule_view = rules.view(np.uint8)
        table.pairs, table.rules = <const Pair*>&pair_view[0, 0], <const Rule*>&rule_view[0]
        return 0

    cdef int index_by_left(self, rules, weights) except -1:
        table = &self.table
        parent, left, right = rules.T
        order = np.lexsort((parent, right, left))
        pairs = first_of_each([left[order], right[order]])
        table.left_pair_start = self.indices(starts_of(left[order][pairs], self.n_symbols))
        self.keep_pairs(&table.by_left, right[order][pairs], pairs, parent[order], weights[order])
        return 0

    cdef int index_by_parent(self, rules, weights) except -1:
        table = &self.table
        parent, left, right = rules.T
        order = np.lexsort((right, left, parent))
        table.parent_start = self.indices(starts_of(parent[order], self.n_symbols))
        table.parent_left = self.symbols(left[order])
        table.parent_right = self.symbols(right[order])
        table.parent_weight = self.weights(weights[order])
        return 0

    cdef int index_by_block(self, rules, weights, label) except -1:
        table = &self.table
        parent, left, right = rules.T
        keys = [label[parent], label[left], label[right], left, right]
        order = np.lexsort((parent, *reversed(keys)))
        keys = [key[order] for key in keys]
        blocks, runs, pairs = [first_of_each(keys[:depth]) for depth in (3, 4, 5)]
        table.block_start = self.indices(starts_of(keys[0][blocks], table.n_labels))
        table.block_left_label = self.symbols(keys[1][blocks])
        table.block_right_label = self.symbols(keys[2][blocks])
        groups = first_of_each(keys[:2])
        table.group_start = self.indices(starts_of(keys[0][groups], table.n_labels))
        table.group_left_label = self.symbols(keys[1][groups])
        table.group_block_start = self.indices(np.append(np.searchsorted(blocks, groups), len(blocks)))
        block_of_rule = np.searchsorted(blocks, np.arange(len(order)), side="right") - 1
        parents = np.unique(np.stack([block_of_rule, parent[order]], axis=1), axis=0)
        table.block_parent_start = self.indices(starts_of(parents[:, 0], len(blocks)))
        table.block_parent = self.symbols(parents[:, 1])
        table.run_start = self.indices(np.append(np.searchsorted(runs, blocks), len(runs)))
        table.run_left = self.symbols(keys[3][runs])
        table.run_pair_start = self.indices(np.append(np.searchsorted(pairs, runs), len(pairs)))
        self.keep_pairs(&table.by_block, keys[4][pairs], pairs, parent[order], weights[order])
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


cdef object first_of_each(keys):
    """The positions at which any of the sorted columns changes."""
    if not len(keys[0]):
        return np.empty(0, dtype=np.int64)
    changes = np.zeros(len(keys[0]), dtype=bool)
    changes[0] = True
    for key in keys:
        changes[1:] |= key[1:] != key[:len(key) - 1]
    return np.flatnonzero(changes)


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
