"""Pruning from coarse to fine: which labels and symbols of a grammar have too small a share of a sentence.

Between two charts of a coarse-to-fine cascade. The share of a symbol ``x`` over a span is its posterior probability, or
its max-marginal where the chart has Viterbi values,

    share(x, i, j) = I(x, i, j) O(x, i, j) / I(root, 0, n)

and that of a label is the sum, or the largest, over its symbols. A mask holds what has at least the threshold.
"""

import numpy as np

cimport cython
from libcpp.vector cimport vector

from tsgkit._chart_cells cimport Cells, MaskTable, Range, cell_of, has_label, inside_of, outside_of
from tsgkit._constraints cimport row_of, span_at
from tsgkit._grammar_index cimport GrammarIndex, GrammarTable, Pair
from tsgkit._semiring cimport MaxProduct, SumProduct, max_semiring, plus, semiring_t, sum_semiring
from tsgkit._types cimport bits_t, index_t, position_t, symbol_t, weight_t
from tsgkit._vectors cimport copy_indices, copy_symbols


@cython.final
cdef class Mask:
    """Which labels and symbols of a grammar may stand where, as a chart of that grammar left it."""

    def labels_at(self, position_t start, position_t end):
        """The labels that may stand over a span."""
        if not 0 <= start < end <= self.n_words:
            raise IndexError(f"span {start}..{end} is out of range: there are {self.n_words} words")
        cdef index_t cell = <index_t>start * self.n_rows + end
        return [label for label in range(64 * self.table.n_label_words) if has_label(&self.table, cell, label)]

    def count(self):
        """How many pairs of a span and a label are left."""
        cdef index_t number = 0
        cdef bits_t word
        for word in self.table.label_bits:
            while word:
                word &= word - 1
                number += 1
        return number


@cython.final
cdef class Projection:
    """How a fine grammar maps to a coarse one.

    Parameters
    ----------
    fine, coarse : GrammarIndex
    label_map : array of int
        For every label of the fine grammar, that of the coarse one.
    symbol_map : array of int, optional
        For every symbol of the fine grammar, one of the coarse grammar that prunes it, or -1 where only the
        label does. Unless given, labels alone are pruned.
    """

    def __init__(self, GrammarIndex fine not None, GrammarIndex coarse not None, label_map, symbol_map=None):
        label_map = np.asarray(label_map, dtype=np.int32)
        if label_map.shape != (fine.n_labels,) or (label_map < 0).any() or (label_map >= coarse.n_labels).any():
            raise ValueError("the label map does not fit the two grammars")
        self.fine, self.coarse = fine, coarse
        copy_symbols(label_map, self.table.coarse_label)
        order = np.argsort(label_map, kind="stable")
        copy_symbols(order, self.table.expansion)
        copy_indices(
            np.searchsorted(label_map[order], np.arange(coarse.n_labels + 1)), self.table.expansion_start)
        self.table.by_symbol = symbol_map is not None
        coarse_symbol = np.full(fine.n_symbols, -1, dtype=np.int32)
        if symbol_map is not None:
            symbol_map = np.asarray(symbol_map, dtype=np.int32)
            if symbol_map.shape != (fine.n_symbols,) or (symbol_map < -1).any() or (
                    symbol_map >= coarse.n_symbols).any():
                raise ValueError("the symbol map does not fit the two grammars")
            mapped = np.where(symbol_map >= 0, coarse.rank_of_symbol[symbol_map], -1)
            coarse_symbol[fine.rank_of_symbol] = mapped
        copy_symbols(coarse_symbol, self.table.coarse_symbol)
        find_block_symbols(self)

    @property
    def by_symbol(self):
        """Whether symbols are pruned one by one, or only whole labels."""
        return self.table.by_symbol


cdef int find_block_symbols(Projection projection) except -1:
    """For every block of rules, the coarse symbol of all its parents: where that is pruned, so is the block."""
    cdef const GrammarTable* grammar = &projection.fine.table
    cdef const vector[symbol_t]* coarse_symbol = &projection.table.coarse_symbol
    cdef index_t n_blocks = grammar.block_start[grammar.n_labels], block
    projection.table.block_symbol.resize(n_blocks, -1)
    for block in range(n_blocks):
        projection.table.block_symbol[block] = shared_symbol(grammar, coarse_symbol, block)
    return 0


cdef symbol_t shared_symbol(
        const GrammarTable* grammar, const vector[symbol_t]* coarse_symbol, index_t block) noexcept nogil:
    """The coarse symbol of the parents of all rules of a block; -1 if there is none, or not one for all."""
    cdef const Pair* pairs = grammar.by_block.pairs
    cdef index_t first = pairs[grammar.run_pair_start[grammar.run_start[block]]].first_rule
    cdef index_t last = pairs[grammar.run_pair_start[grammar.run_start[block + 1]]].first_rule, rule
    cdef symbol_t symbol = coarse_symbol[0][grammar.by_block.rules[first].parent]
    for rule in range(first + 1, last):
        if coarse_symbol[0][grammar.by_block.rules[rule].parent] != symbol:
            return -1
    return symbol


cdef Mask mask_of(GrammarIndex grammar, const Cells* cells, bint viterbi, double threshold, bint symbols):
    """What survives pruning in a chart with outside values: labels, and symbols if these are wanted."""
    cdef Mask mask = Mask()
    cdef SumProduct sums = sum_semiring(cells.grammar)
    cdef MaxProduct best = max_semiring(cells.grammar)
    cdef Range nowhere
    nowhere.first, nowhere.last = cells.n_rows - 1, -1
    mask.grammar, mask.n_words, mask.n_rows = grammar, cells.n_words, cells.n_rows
    mask.table.n_labels = grammar.n_labels
    mask.table.n_label_words = (grammar.n_labels + 63) // 64
    mask.table.n_symbol_words = (grammar.n_symbols + 63) // 64 if symbols else 0
    with nogil:
        mask.table.label_bits.resize(cells.cell_begin.size() * mask.table.n_label_words, 0)
        mask.table.symbol_bits.resize(cells.cell_begin.size() * mask.table.n_symbol_words, 0)
        mask.table.ends.resize(mask.n_rows * mask.table.n_labels, nowhere)
        mask.table.starts.resize(mask.n_rows * mask.table.n_labels, nowhere)
        if viterbi:
            fill_mask(cells, &best, threshold, &mask.table)
        else:
            fill_mask(cells, &sums, threshold, &mask.table)
    return mask


cdef int fill_mask(const Cells* cells, semiring_t* semiring, double threshold, MaskTable* mask) except -1 nogil:
    cdef vector[weight_t] shares   # per label; zero between cells
    cdef position_t start, end
    cdef symbol_t span, state
    shares.resize(cells.grammar.n_labels, 0.0)
    for start in range(cells.n_words):
        for end in range(start + 1, cells.n_words + 1):
            mask_cell(cells, semiring, threshold, start, end, &shares, mask)
            span = span_at(cells.constraints, start, end)
            if span >= 0:
                for state in range(cells.constraints.spans[span].n_pending):
                    mask_cell(
                        cells, semiring, threshold, start, row_of(cells.constraints, span, state), &shares, mask)
    return 0


cdef void mask_cell(
        const Cells* cells, semiring_t* semiring, double threshold, position_t start, position_t end,
        vector[weight_t]* shares, MaskTable* mask) noexcept nogil:
    cdef const GrammarTable* grammar = cells.grammar
    cdef index_t cell = cell_of(cells, start, end), position
    cdef symbol_t symbol, label
    cdef weight_t share
    for position in range(cells.cell_begin[cell], cells.cell_end[cell]):
        symbol = cells.cell_symbols[position]
        share = inside_of(cells, start, end, symbol) * outside_of(cells, start, end, symbol) / cells.total
        label = grammar.label[symbol]
        shares[0][label] = plus(semiring, shares[0][label], share)
        if share >= threshold and mask.n_symbol_words:
            mask.symbol_bits[cell * mask.n_symbol_words + (symbol >> 6)] |= <bits_t>1 << (symbol & 63)
    for position in range(cells.cell_begin[cell], cells.cell_end[cell]):
        label = grammar.label[cells.cell_symbols[position]]
        if shares[0][label] >= threshold and label < grammar.n_treebank_labels:
            allow_label(mask, cell, start, end, label)
        shares[0][label] = 0.0


cdef void allow_label(
        MaskTable* mask, index_t cell, position_t start, position_t end, symbol_t label) noexcept nogil:
    mask.label_bits[cell * mask.n_label_words + (label >> 6)] |= <bits_t>1 << (label & 63)
    widen(&mask.ends[start * mask.n_labels + label], end)
    widen(&mask.starts[end * mask.n_labels + label], start)


cdef void widen(Range* positions, position_t position) noexcept nogil:
    positions.first, positions.last = min(positions.first, position), max(positions.last, position)
