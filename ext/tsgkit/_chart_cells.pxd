# The chart of one sentence as plain arrays: what every kernel reads and writes, and where each value lies.
#
# Stage: inside of the chart parser. A *cell* is a span; its symbols have inside values and, later, outside values. The
# kernels that fill the cells are in `_inside.pyx` and `_outside.pyx`, `Chart` in `_chart.pyx` owns them.
#
# A symbol that begins anywhere at a start has a *slot* there, a vector of values over ends; likewise at an end, a
# vector over starts. Both hold the same inside values, so that left times right over all split points of a span is a
# product of two vectors that lie in memory as they are read. Under a mask, a vector is only as long as the positions
# from the first to the last that the mask allows. Most symbols of a large grammar have no slot at a position: flags,
# which are few enough for the processor's cache, tell so before anything else is read.
from libc.math cimport INFINITY
from libcpp.vector cimport vector

from tsgkit._constraints cimport CROSSING, FREE, ConstraintTable, span_at, state_after
from tsgkit._grammar_index cimport GrammarTable
from tsgkit._types cimport bits_t, index_t, position_t, symbol_t, weight_t
from tsgkit._work_limit cimport Limits

cdef extern from "vector_kernels.hpp" namespace "tsgkit" nogil:
    int lowest_bit(bits_t word) noexcept
    int highest_bit(bits_t word) noexcept


cdef struct Range:
    # Positions from the first to the last; none where the last is below the first.
    position_t first
    position_t last


cdef cppclass MaskTable:
    # What pruning has left for a finer grammar: for every cell, flags of labels and of symbols of the coarse one.
    index_t n_labels
    index_t n_label_words                # 64-bit words per cell
    index_t n_symbol_words
    vector[bits_t] label_bits
    vector[bits_t] symbol_bits
    vector[Range] ends                   # [start, label]: of the spans that the label is left over
    vector[Range] starts                 # [end, label]


cdef cppclass ProjectionTable:
    # How the symbols of a fine grammar map to those of a coarse one.
    bint by_symbol                       # whether symbols are pruned one by one, or only whole labels
    vector[symbol_t] coarse_label        # per fine label
    vector[index_t] expansion_start      # per coarse label, and one more
    vector[symbol_t] expansion           # the fine labels of a coarse one
    vector[symbol_t] coarse_symbol       # per fine symbol (rank): a coarse symbol (rank), or -1
    vector[symbol_t] block_symbol        # per block of rules: that of all its parents, or -1 if they differ


cdef struct LiveBlock:
    # A block of rules with a value in a cell, the label of its parents, the split points, and the pairs of children.
    symbol_t block
    symbol_t label
    position_t low
    position_t high
    index_t pair_begin
    index_t pair_end


cdef struct Children:
    # A pair of children and the split points at which both may have a value.
    index_t left                         # where the values of each lie, from the first split point on
    index_t right
    symbol_t pair
    position_t first
    position_t n_splits


cdef struct Slot:
    # The vector of values of a symbol at a position.
    index_t base                         # the value over position p at the other end is number base + p
    position_t low                       # the first and the last position that has a value
    position_t high


cdef struct Arrival:
    # A symbol that enters a state of a constrained span.
    symbol_t symbol
    symbol_t state
    weight_t value


cdef cppclass Side:
    # The values by start, each a vector over ends, or by end, each a vector over starts.
    vector[symbol_t] slot_of             # [position, symbol]: the slot, where there is one
    vector[bits_t] has_slot              # flags of the same; both are as long as any sentence has needed
    vector[index_t] used                 # where these flags are set, by slot
    vector[Slot] slots
    vector[weight_t] inside              # the vectors of all slots, one after the other
    vector[weight_t] outside             # by start: complete once the cell is done
    vector[bits_t] alive                 # [position, label] -> flags of the positions at the other end


cdef cppclass Cells:
    const GrammarTable* grammar
    const MaskTable* mask                # NULL: everything may stand everywhere
    const ProjectionTable* projection    # from this grammar to that of the mask
    const weight_t* cell_weights         # by which the binary rules of each cell are multiplied; NULL: 1
    const ConstraintTable* constraints   # spans that must have given nodes; NULL: none
    Limits* limits                       # when to stop
    position_t n_words
    position_t n_rows                    # positions of the sentence, then the ends of pending cells
    weight_t total                       # the root's value, scaled; 0: no derivation
    weight_t largest                     # of all inside values
    weight_t smallest                    # the same, of those above 0
    weight_t smallest_share              # what has less than this share of the total has no outside value
    index_t max_bytes
    bint is_over_budget                  # memory ran over the bound: the chart is not complete

    vector[index_t] lexical_start        # per word, and one more: its lexical entries
    vector[symbol_t] lexical_symbol
    vector[weight_t] lexical_weight      # scaled

    index_t symbol_stride                # number of symbols, rounded up to whole words of flags
    index_t n_position_words             # 64-bit words for flags of positions
    Side left                            # by start
    Side right                           # by end
    vector[vector[symbol_t]] row_symbols   # per start: the symbols that begin there, in the order of their slots
    vector[symbol_t] cell_symbols        # symbols of each cell, by rank
    vector[index_t] cell_begin
    vector[index_t] cell_end
    vector[LiveBlock] live_blocks        # of each cell, with a mask: what the passes after the first go through
    vector[Children] live_pairs          # of each of these blocks, those that make a value
    vector[index_t] live_begin
    vector[index_t] live_end

    # Scratch of the cell at work; all zero between cells, `span_at_work` FREE.
    vector[weight_t] sums                # per symbol
    vector[bits_t] touched               # flags of symbols with a sum
    vector[bits_t] touched_words         # flags of the words of these flags that are not zero, and perhaps of others
    vector[weight_t] cell_inside         # per symbol, during the outside pass
    vector[weight_t] cycle_before        # per member of a cycle
    vector[weight_t] cycle_after
    vector[symbol_t] cycle_members       # those that may stand in the cell at work
    vector[symbol_t] cycle_place         # per member of a cycle: its number among them; -1 between cells
    vector[weight_t] cycle_matrix        # their one-step weights, row after row
    symbol_t span_at_work                # the constrained span whose cell is at work, or FREE
    symbol_t state_at_work
    vector[Arrival] arrivals             # what enters the states of this span
    vector[index_t] label_stamp          # per label: the last cell that allows it
    index_t last_stamp
    vector[symbol_t] cell_labels         # the labels that were stamped last: the first `n_cell_labels` of these
    index_t n_cell_labels


# ---- reading ---------------------------------------------------------------------------------------------

cdef inline index_t cell_of(const Cells* cells, position_t start, position_t end) noexcept nogil:
    return <index_t>start * cells.n_rows + end


cdef inline const Slot* find_slot(
        const Cells* cells, const Side* side, position_t position, symbol_t symbol) noexcept nogil:
    """The slot of a symbol at a position, or NULL."""
    cdef index_t where = position * cells.symbol_stride + symbol
    if (side.has_slot[where >> 6] >> (where & 63)) & 1:
        return &side.slots[side.slot_of[where]]
    return NULL


cdef inline weight_t inside_of(const Cells* cells, position_t start, position_t end, symbol_t symbol) noexcept nogil:
    cdef const Slot* slot = find_slot(cells, &cells.left, start, symbol)
    return cells.left.inside[slot.base + end] if slot != NULL and slot.low <= end <= slot.high else 0.0


cdef inline weight_t outside_of(const Cells* cells, position_t start, position_t end, symbol_t symbol) noexcept nogil:
    cdef const Slot* slot = find_slot(cells, &cells.left, start, symbol)
    return cells.left.outside[slot.base + end] if slot != NULL and slot.low <= end <= slot.high else 0.0


cdef inline weight_t lexical_of(const Cells* cells, position_t start, symbol_t symbol) noexcept nogil:
    cdef index_t entry
    cdef weight_t value = 0.0
    for entry in range(cells.lexical_start[start], cells.lexical_start[start + 1]):
        if cells.lexical_symbol[entry] == symbol:
            value += cells.lexical_weight[entry]
    return value


cdef inline index_t bytes_of_slots(const Cells* cells, index_t n_rows) noexcept nogil:
    """What the tables take that lead from positions and symbols to slots: 32 bits and a flag each, on both sides."""
    return 2 * n_rows * (4 * cells.symbol_stride + cells.symbol_stride // 8)


cdef inline index_t bytes_in_use(const Cells* cells) noexcept nogil:
    cdef index_t n_slots = cells.left.slots.size() + cells.right.slots.size()
    # Outside values, if they are wanted later, take as much again as inside values.
    cdef index_t n_values = 2 * <index_t>(cells.left.inside.size() + cells.right.inside.size())
    # What a longer sentence before this one has left is not counted: it was within the bound.
    return 8 * n_values + (8 + sizeof(Slot)) * n_slots + bytes_of_slots(cells, cells.n_rows) + 8 * <index_t>(
        cells.left.alive.size() + cells.right.alive.size() + 2 * cells.cell_begin.size() + 2 * cells.cell_end.size()
    ) + sizeof(LiveBlock) * <index_t>cells.live_blocks.size() + sizeof(Children) * <index_t>cells.live_pairs.size()


cdef inline weight_t cell_weight(const Cells* cells, position_t start, position_t end) noexcept nogil:
    """By which the binary rules of a cell are multiplied; 0 if the cell is closed."""
    cdef symbol_t span = span_at(cells.constraints, start, end)
    if span != FREE:
        # A constrained span is part of every derivation, so that a weight would change nothing.
        return 0.0 if span == CROSSING else 1.0
    return cells.cell_weights[<index_t>start * (cells.n_words + 1) + end] if cells.cell_weights != NULL else 1.0


cdef inline bint keeps_state(const Cells* cells, symbol_t parent, bint is_bridge) noexcept nogil:
    """Whether a unary rule or bridge of the cell at work has its child in the same state of a constraint."""
    return is_bridge or cells.span_at_work < 0 or (
        state_after(cells.constraints, cells.span_at_work, cells.state_at_work, cells.grammar.label[parent])
        == cells.state_at_work)


# ---- what the mask allows --------------------------------------------------------------------------------

cdef inline bint has_label(const MaskTable* mask, index_t cell, symbol_t label) noexcept nogil:
    return (mask.label_bits[cell * mask.n_label_words + (label >> 6)] >> (label & 63)) & 1


cdef inline bint has_symbol(const MaskTable* mask, index_t cell, symbol_t symbol) noexcept nogil:
    return (mask.symbol_bits[cell * mask.n_symbol_words + (symbol >> 6)] >> (symbol & 63)) & 1


cdef inline void stamp_label(Cells* cells, symbol_t label, index_t stamp) noexcept nogil:
    cells.label_stamp[label] = stamp
    cells.cell_labels[cells.n_cell_labels] = label
    cells.n_cell_labels += 1


cdef inline void stamp_allowed_labels(Cells* cells, index_t cell) noexcept nogil:
    """Stamp the labels that the mask allows in a cell with the number of the cell."""
    cdef const ProjectionTable* projection = cells.projection
    cdef index_t word, position
    cdef bits_t flags
    cdef symbol_t coarse
    cells.n_cell_labels = 0
    for word in range(cells.mask.n_label_words):
        flags = cells.mask.label_bits[cell * cells.mask.n_label_words + word]
        while flags:
            coarse = 64 * word + lowest_bit(flags)
            flags &= flags - 1
            for position in range(projection.expansion_start[coarse], projection.expansion_start[coarse + 1]):
                stamp_label(cells, projection.expansion[position], cell)


cdef inline void stamp_labels_with_value(Cells* cells, index_t cell, const weight_t* values) noexcept nogil:
    """Stamp the labels of the symbols in a cell that have a value."""
    cdef index_t position
    cdef symbol_t symbol, label
    # New with every call, and below -1: no label that it marks looks allowed by the mask.
    cells.last_stamp -= 1
    cells.n_cell_labels = 0
    for position in range(cells.cell_begin[cell], cells.cell_end[cell]):
        symbol = cells.cell_symbols[position]
        label = cells.grammar.label[symbol]
        if values[symbol] > 0.0 and cells.label_stamp[label] != cells.last_stamp:
            stamp_label(cells, label, cells.last_stamp)


cdef inline bint is_allowed(const Cells* cells, index_t cell, symbol_t symbol) noexcept nogil:
    """Whether a symbol may stand in the cell whose allowed labels were stamped last."""
    cdef symbol_t coarse, label = cells.grammar.label[symbol]
    if cells.mask == NULL:
        return True
    # A symbol without a label stands where those do that it has bridges to.
    if label < cells.grammar.n_treebank_labels and cells.label_stamp[label] != cell:
        return False
    if not cells.projection.by_symbol:
        return True
    coarse = cells.projection.coarse_symbol[symbol]
    return coarse < 0 or has_symbol(cells.mask, cell, coarse)


# ---- split points ----------------------------------------------------------------------------------------

cdef inline bits_t inner_positions(position_t start, position_t end, index_t word) noexcept nogil:
    """The split points of a span, which are strictly inside it, as flags in one of the words of positions."""
    cdef bits_t flags = ~<bits_t>0
    if word == start >> 6:
        flags &= flags << (start & 63) << 1
    if word == end >> 6:
        flags &= (<bits_t>1 << (end & 63)) - 1
    return flags


cdef inline const bits_t* alive_at(
        const Cells* cells, const Side* side, position_t position, symbol_t label) noexcept nogil:
    """The flags of the positions at the other end over which a label stands."""
    return &side.alive[(position * <index_t>cells.grammar.n_labels + label) * cells.n_position_words]


cdef inline bint split_range(
        const Cells* cells, index_t block, position_t start, position_t end,
        position_t* low, position_t* high) noexcept nogil:
    """The first and the last split point at which both child labels of a treebank rule are alive; whether any is."""
    cdef const bits_t* left = alive_at(cells, &cells.left, start, cells.grammar.block_left_label[block])
    cdef const bits_t* right = alive_at(cells, &cells.right, end, cells.grammar.block_right_label[block])
    cdef index_t word
    cdef bits_t both
    low[0] = -1
    for word in range(start >> 6, (end >> 6) + 1):
        both = left[word] & right[word] & inner_positions(start, end, word)
        if both:
            if low[0] < 0:
                low[0] = 64 * word + lowest_bit(both)
            high[0] = 64 * word + highest_bit(both)
    return low[0] >= 0


# ---- writing ---------------------------------------------------------------------------------------------

cdef inline void touch(Cells* cells, symbol_t symbol) noexcept nogil:
    cells.touched[symbol >> 6] |= <bits_t>1 << (symbol & 63)
    cells.touched_words[symbol >> 12] |= <bits_t>1 << ((symbol >> 6) & 63)


cdef inline Range ends_of(const Cells* cells, position_t start, symbol_t label) noexcept nogil:
    """Where spans can end that begin at a position and have this label."""
    cdef Range ends
    if cells.mask != NULL and label < cells.grammar.n_treebank_labels:
        return cells.mask.ends[start * cells.mask.n_labels + cells.projection.coarse_label[label]]
    ends.first, ends.last = start + 1, cells.n_rows - 1
    return ends


cdef inline Range starts_of(const Cells* cells, position_t end, symbol_t label) noexcept nogil:
    """Where spans can begin that end at a position and have this label."""
    cdef Range starts
    if cells.mask != NULL and label < cells.grammar.n_treebank_labels:
        return cells.mask.starts[end * cells.mask.n_labels + cells.projection.coarse_label[label]]
    starts.first, starts.last = 0, min(end, cells.n_words) - 1
    return starts


cdef inline Slot* make_slot(Side* side, index_t where, position_t position, Range positions) except NULL nogil:
    """A slot with values over a range of positions, the first of them to come over `position`."""
    cdef Slot slot
    cdef index_t n_values = side.inside.size()
    slot.base, slot.low, slot.high = n_values - positions.first, position, position
    # First of all, so that whoever clears the flags finds this one even if memory ends below.
    side.used.push_back(where)
    side.inside.resize(n_values + positions.last - positions.first + 1, 0.0)
    side.slot_of[where] = side.slots.size()
    side.slots.push_back(slot)
    side.has_slot[where >> 6] |= <bits_t>1 << (where & 63)
    return &side.slots.back()


cdef inline int store(
        Cells* cells, position_t start, position_t end, symbol_t symbol, weight_t value) except -1 nogil:
    """Store an inside value; cells come by length, and symbols by rank."""
    cdef symbol_t label = cells.grammar.label[symbol]
    cdef Slot* slot = <Slot*>find_slot(cells, &cells.left, start, symbol)
    cells.largest, cells.smallest = max(cells.largest, value), min(cells.smallest, value)
    if slot == NULL:
        cells.row_symbols[start].push_back(symbol)
        slot = make_slot(&cells.left, start * cells.symbol_stride + symbol, end, ends_of(cells, start, label))
    # Spans come by length: the starts of a column only shrink. The ends of a row only grow, but for pending cells.
    slot.low, slot.high = min(slot.low, end), max(slot.high, end)
    cells.left.inside[slot.base + end] = value
    slot = <Slot*>find_slot(cells, &cells.right, end, symbol)
    if slot == NULL:
        slot = make_slot(&cells.right, end * cells.symbol_stride + symbol, start, starts_of(cells, end, label))
    slot.low = start
    cells.right.inside[slot.base + start] = value
    (<bits_t*>alive_at(cells, &cells.left, start, label))[end >> 6] |= <bits_t>1 << (end & 63)
    (<bits_t*>alive_at(cells, &cells.right, end, label))[start >> 6] |= <bits_t>1 << (start & 63)
    cells.cell_symbols.push_back(symbol)
    return 0


# ---- memory ----------------------------------------------------------------------------------------------
# In Cython's declarations, a failed allocation in `vector.assign(n, value)` ends the program; after `clear`, `resize`
# does the same and raises MemoryError.

cdef inline int make_cells(Cells* cells, const GrammarTable* grammar, index_t max_bytes) except -1 nogil:
    """Everything that depends on the grammar alone."""
    cells.grammar, cells.max_bytes = grammar, max_bytes
    cells.symbol_stride = (grammar.n_symbols + 63) // 64 * 64
    cells.sums.resize(grammar.n_symbols, 0.0)
    cells.cell_inside.resize(grammar.n_symbols, 0.0)
    cells.touched.resize((grammar.n_symbols + 63) // 64, 0)
    cells.touched_words.resize((grammar.n_symbols + 4095) // 4096, 0)
    cells.cycle_before.resize(grammar.largest_cycle, 0.0)
    cells.cycle_after.resize(grammar.largest_cycle, 0.0)
    cells.cycle_place.resize(grammar.largest_cycle, -1)
    cells.label_stamp.resize(grammar.n_labels, -1)
    cells.cell_labels.resize(grammar.n_labels, 0)
    return 0


cdef inline int clear_side(Side* side, index_t n_places, index_t n_alive_words) except -1 nogil:
    """Forget the values of the last sentence. Used slots are far fewer than pairs of a position and a symbol."""
    cdef index_t slot
    for slot in range(<index_t>side.used.size()):
        side.has_slot[side.used[slot] >> 6] = 0
    side.used.clear()
    side.slots.clear()
    side.inside.clear()
    side.alive.clear()
    if <index_t>side.slot_of.size() < n_places:
        side.has_slot.resize(n_places >> 6, 0)
        side.slot_of.resize(n_places, 0)
    side.alive.resize(n_alive_words, 0)
    return 0


cdef inline int clear_bounds(vector[index_t]* bounds, index_t n_cells) except -1 nogil:
    bounds.clear()
    bounds.resize(n_cells, 0)
    return 0


cdef inline int clear_cells(Cells* cells, position_t n_words) except -1 nogil:
    """Make room for a sentence, unless what every sentence of its length needs is over the bound already."""
    cdef index_t n_rows = n_words + 1, n_flags, row, label
    if cells.constraints != NULL:
        n_rows = cells.constraints.n_rows
    n_flags = n_rows * cells.grammar.n_labels
    cells.n_words, cells.n_rows, cells.total = n_words, n_rows, 0.0
    cells.span_at_work = FREE
    cells.arrivals.clear()
    cells.largest, cells.smallest = 0.0, INFINITY
    cells.n_position_words = (n_rows + 63) // 64
    cells.is_over_budget = (
        bytes_of_slots(cells, n_rows) + 16 * n_flags * cells.n_position_words + 32 * n_rows * n_rows
        > cells.max_bytes)
    cells.last_stamp = -1
    for label in range(cells.grammar.n_labels):
        cells.label_stamp[label] = -1
    for row in range(<index_t>cells.row_symbols.size()):
        cells.row_symbols[row].clear()
    cells.cell_symbols.clear()
    cells.live_blocks.clear()
    cells.live_pairs.clear()
    if cells.is_over_budget:
        n_rows = n_flags = 0
    clear_side(&cells.left, n_rows * cells.symbol_stride, n_flags * cells.n_position_words)
    clear_side(&cells.right, n_rows * cells.symbol_stride, n_flags * cells.n_position_words)
    if <index_t>cells.row_symbols.size() < n_rows:
        cells.row_symbols.resize(n_rows)
    clear_bounds(&cells.cell_begin, n_rows * n_rows)
    clear_bounds(&cells.cell_end, n_rows * n_rows)
    clear_bounds(&cells.live_begin, n_rows * n_rows)
    clear_bounds(&cells.live_end, n_rows * n_rows)
    return 0


cdef inline void abandon_cells(Cells* cells) noexcept nogil:
    """After a failed allocation, or out of time: a chart without a sentence."""
    cells.n_words, cells.n_rows, cells.total = 0, 1, 0.0
    clear_scratch(cells)


cdef inline void clear_scratch(Cells* cells) noexcept nogil:
    """After a pass that was not finished: scratch as it is between cells."""
    cdef index_t position
    cells.span_at_work = FREE
    cells.arrivals.clear()
    for position in range(<index_t>cells.cycle_place.size()):
        cells.cycle_place[position] = -1
    for position in range(<index_t>cells.sums.size()):
        cells.sums[position] = cells.cell_inside[position] = 0.0
    for position in range(<index_t>cells.touched.size()):
        cells.touched[position] = 0
    for position in range(<index_t>cells.touched_words.size()):
        cells.touched_words[position] = 0
