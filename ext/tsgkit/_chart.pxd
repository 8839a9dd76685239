# The chart of one sentence, and what connects the charts of a chain of grammars.
from libcpp.vector cimport vector

from tsgkit._grammar_index cimport GrammarIndex, GrammarTable
from tsgkit._types cimport bits_t, index_t, position_t, symbol_t, weight_t

cdef extern from "vector_kernels.hpp" namespace "tsgkit" nogil:
    weight_t dot_product(const weight_t* left, const weight_t* right, index_t n) noexcept
    weight_t max_product(const weight_t* left, const weight_t* right, index_t n) noexcept
    void add_scaled(weight_t* target, const weight_t* source, weight_t factor, index_t n) noexcept
    void max_scaled(weight_t* target, const weight_t* source, weight_t factor, index_t n) noexcept
    void add_products(
        weight_t* target, const weight_t* left, const weight_t* right, weight_t factor, index_t n) noexcept
    int lowest_bit(bits_t word) noexcept
    int highest_bit(bits_t word) noexcept


cdef class Mask:
    # What a coarse chart leaves for the next one: for every cell, flags of labels and of symbols.
    cdef readonly GrammarIndex grammar   # of the coarse chart
    cdef readonly position_t n_words
    cdef index_t n_label_words           # 64-bit words per cell
    cdef index_t n_symbol_words
    cdef vector[bits_t] label_bits
    cdef vector[bits_t] symbol_bits

    cdef bint has_label(self, index_t cell, symbol_t label) noexcept nogil
    cdef bint has_symbol(self, index_t cell, symbol_t symbol) noexcept nogil


cdef class Projection:
    # How the symbols of a fine grammar map to those of a coarse one.
    cdef readonly GrammarIndex fine
    cdef readonly GrammarIndex coarse
    cdef readonly bint by_symbol         # whether symbols are pruned one by one, or only whole labels
    cdef index_t[::1] expansion_start    # per coarse label, and one more
    cdef symbol_t[::1] expansion         # the fine labels of a coarse one
    cdef symbol_t[::1] coarse_symbol     # per fine symbol (rank): a coarse symbol (rank), or -1
    cdef symbol_t[::1] block_symbol      # per block of rules: that of all its parents, or -1 if they differ


cdef struct LiveBlock:
    # A block of rules with both child labels alive in a cell, the label of its parents, and the split points.
    symbol_t block
    symbol_t label
    position_t low
    position_t high


cdef class Chart:
    cdef readonly GrammarIndex grammar
    cdef readonly position_t n_words
    cdef readonly bint is_viterbi        # best derivation instead of sum over derivations
    cdef readonly bint has_outside
    cdef readonly weight_t smallest_share   # what has less than this share of the total has no outside value
    cdef readonly bint is_over_budget    # memory ran over the bound: the chart is not complete
    cdef readonly index_t max_bytes
    cdef readonly index_t n_fills        # how many sentences were here; tells that a chart has changed
    cdef readonly double log_total       # log of the root's value, scaling removed; -inf: no derivation
    cdef weight_t total                  # the same, scaled
    cdef vector[double] scale_prefix     # log of the scale factors of the words before a position

    # Lexical entries of each position.
    cdef vector[index_t] lexical_start
    cdef vector[symbol_t] lexical_symbol
    cdef vector[weight_t] lexical_weight

    # Values. A symbol that occurs anywhere in a row (a start) has a slot there: a vector over ends; likewise
    # in a column (an end): a vector over starts. Both hold the same inside values.
    cdef index_t stride                  # length of the vectors
    cdef index_t n_left_slots
    cdef index_t n_right_slots
    cdef vector[symbol_t] left_slot      # [start, symbol] -> slot or -1; as long as any sentence has needed
    cdef vector[symbol_t] right_slot     # [end, symbol] -> slot or -1
    cdef vector[index_t] left_places     # where the above is not -1, by slot
    cdef vector[index_t] right_places
    cdef vector[position_t] left_low     # per slot: first and last end that has a value
    cdef vector[position_t] left_high
    cdef vector[position_t] right_low    # per slot: first and last start that has a value
    cdef vector[position_t] right_high
    cdef vector[weight_t] left_inside
    cdef vector[weight_t] right_inside
    cdef vector[weight_t] left_outside   # at [slot, end]: complete once the cell is done
    cdef vector[weight_t] right_outside
    cdef vector[vector[symbol_t]] row_symbols
    cdef index_t n_position_words        # 64-bit words for flags of positions
    cdef vector[bits_t] left_alive       # [start, label] -> flags of ends
    cdef vector[bits_t] right_alive      # [end, label] -> flags of starts
    cdef vector[symbol_t] cell_symbols   # symbols of each cell, by rank
    cdef vector[index_t] cell_begin
    cdef vector[index_t] cell_end
    cdef vector[LiveBlock] live_blocks   # of each cell, with a mask: what the passes after the first go through
    cdef vector[index_t] live_begin
    cdef vector[index_t] live_end

    # Scratch of the cell at work; all zero between cells.
    cdef vector[weight_t] sums           # per symbol
    cdef vector[bits_t] touched          # flags of symbols with a sum
    cdef vector[weight_t] cell_inside    # per symbol, during the outside pass
    cdef vector[weight_t] cycle_before
    cdef vector[weight_t] cycle_after
    cdef vector[index_t] label_stamp     # per label: the last cell that allows it
    cdef index_t last_stamp
    cdef vector[symbol_t] cell_labels

    # Pruning.
    cdef Mask mask
    cdef Projection projection
    cdef bint is_masked

    cdef index_t cell_of(self, position_t start, position_t end) noexcept nogil
    cdef weight_t inside_of(self, position_t start, position_t end, symbol_t symbol) noexcept nogil
    cdef weight_t outside_of(self, position_t start, position_t end, symbol_t symbol) noexcept nogil
    cdef weight_t lexical_of(self, position_t start, symbol_t symbol) noexcept nogil
    cdef index_t bytes_in_use(self) noexcept nogil
    cdef int clear(self, position_t n_words) except -1 nogil
    cdef int clear_slots(self, index_t n_places) except -1 nogil
    cdef void scale_words(self, const weight_t* weight, double growth) noexcept nogil
    cdef void inside_pass(self) noexcept nogil
    cdef void fill_cell(self, position_t start, position_t end) noexcept nogil
    cdef void add(self, symbol_t symbol, weight_t value) noexcept nogil
    cdef void touch(self, symbol_t symbol) noexcept nogil
    cdef void combine_all(self, position_t start, position_t end) noexcept nogil
    cdef void combine_allowed(self, position_t start, position_t end) noexcept nogil
    cdef void combine_block(
        self, index_t block, position_t start, position_t end, position_t low, position_t high) noexcept nogil
    cdef bint split_range(
        self, index_t block, position_t start, position_t end, position_t* low, position_t* high) noexcept nogil
    cdef void collect_allowed_labels(self, index_t cell) noexcept nogil
    cdef bint is_allowed(self, index_t cell, symbol_t symbol) noexcept nogil
    cdef void close_cell(self, position_t start, position_t end) noexcept nogil
    cdef void close_cycle(self, symbol_t cycle, position_t start, position_t end) noexcept nogil
    cdef void iterate_cycle(self, symbol_t cycle, index_t cell, bint downward) noexcept nogil
    cdef void emit(self, position_t start, position_t end, symbol_t symbol, weight_t value) noexcept nogil
    cdef void outside_pass(self) noexcept nogil
    cdef void outside_cell(self, position_t start, position_t end) noexcept nogil
    cdef void outside_cycle(self, symbol_t cycle, index_t cell) noexcept nogil
    cdef bint drop_if_small(self, symbol_t symbol) noexcept nogil
    cdef void hand_down(self, symbol_t symbol) noexcept nogil
    cdef void distribute_all(self, position_t start, position_t end) noexcept nogil
    cdef void distribute_block(
        self, index_t block, position_t start, position_t end, position_t low, position_t high) noexcept nogil
    cdef void spread(
        self, index_t left_slot, index_t right_slot, weight_t value, position_t low, position_t high) noexcept nogil
    cdef void collect_cell_labels(self, index_t cell) noexcept nogil
