"""Outside values of all cells of a chart that has inside values, longer spans first.

With ``O(x, i, j)`` the outside value of symbol ``x`` over the words ``i .. j`` and 1 for the root over all words, every
cell hands its values down to the children of its rules,

    O(y, i, k) += w O(x, i, j) I(z, k, j)        O(z, k, j) += w O(x, i, j) I(y, i, k)        for x -> y z
    O(y, i, j) += w O(x, i, j)                                                                for x -> y

with cycles of unary rules and bridges closed as in the inside pass. After Viterbi values *max* takes the place of
*sum*, and inside times outside is the best derivation through a symbol. In a constrained cell the states of the
automaton come one after the other, the last one first.
"""

from tsgkit._binary_rules cimport OutsideStep, visit_all, visit_block, visit_live
from tsgkit._chart_cells cimport (
    Cells,
    LiveBlock,
    Slot,
    cell_of,
    cell_weight,
    find_slot,
    keeps_state,
    outside_of,
    stamp_allowed_labels,
    stamp_label,
    split_range,
    stamp_labels_with_value,
)
from tsgkit._constraints cimport FREE, row_of, span_at, state_after
from tsgkit._grammar_index cimport GrammarTable
from tsgkit._semiring cimport MaxProduct, SumProduct, max_semiring, plus, semiring_t, sum_semiring
from tsgkit._types cimport index_t, position_t, symbol_t, weight_t
from tsgkit._unary_cycles cimport apply_closure, close_allowed
from tsgkit._work_limit cimport check_limit

# Where a cell has more symbols than this for every label that hands something down, its rules are visited by label.
cdef index_t FEW_LABELS = 4


cdef int fill_outside(Cells* cells, bint viterbi) except -1 nogil:
    """Fill the outside values of cells whose inside values are complete."""
    cdef SumProduct sums = sum_semiring(cells.grammar)
    cdef MaxProduct best = max_semiring(cells.grammar)
    cells.left.outside.clear()
    cells.left.outside.resize(cells.left.inside.size(), 0.0)
    cells.right.outside.clear()
    cells.right.outside.resize(cells.right.inside.size(), 0.0)
    return outside_pass(cells, &best) if viterbi else outside_pass(cells, &sums)


cdef int outside_pass(Cells* cells, semiring_t* semiring) except -1 nogil:
    cdef position_t length, start
    for length in range(cells.n_words, 0, -1):
        for start in range(cells.n_words - length + 1):
            check_limit(cells.limits)
            outside_cell(cells, semiring, start, start + length)
    return 0


cdef int outside_cell(Cells* cells, semiring_t* semiring, position_t start, position_t end) except -1 nogil:
    cdef symbol_t span = span_at(cells.constraints, start, end)
    if span >= 0:
        return outside_constrained(cells, semiring, span, start, end)
    if gather(cells, semiring, start, end) > 0.0:
        hand_down_cell(cells, semiring, cell_of(cells, start, end))
        if end - start > 1:
            distribute_cell(cells, semiring, start, end)
    keep(cells, start, end)
    return 0


cdef weight_t gather(Cells* cells, semiring_t* semiring, position_t start, position_t end) noexcept nogil:
    """Collect what longer spans have handed to the symbols of a cell; returns the largest value."""
    cdef index_t cell = cell_of(cells, start, end), position, left, right
    cdef symbol_t symbol
    cdef weight_t value, largest = 0.0
    for position in range(cells.cell_begin[cell], cells.cell_end[cell]):
        symbol = cells.cell_symbols[position]
        left = find_slot(cells, &cells.left, start, symbol).base + end
        right = find_slot(cells, &cells.right, end, symbol).base + start
        value = plus(semiring, cells.left.outside[left], cells.right.outside[right])
        if symbol == cells.grammar.root and start == 0 and end == cells.n_words:
            value = plus(semiring, 1.0, value)
        cells.sums[symbol], cells.cell_inside[symbol] = value, cells.left.inside[left]
        largest = max(largest, value)
    return largest


cdef void keep(Cells* cells, position_t start, position_t end) noexcept nogil:
    """Store the outside values of a cell, and leave the scratch as it was."""
    cdef index_t cell = cell_of(cells, start, end), position
    cdef symbol_t symbol
    for position in range(cells.cell_begin[cell], cells.cell_end[cell]):
        symbol = cells.cell_symbols[position]
        cells.left.outside[find_slot(cells, &cells.left, start, symbol).base + end] = cells.sums[symbol]
        cells.sums[symbol] = cells.cell_inside[symbol] = 0.0


# ---- constrained cells -----------------------------------------------------------------------------------

cdef int outside_constrained(
        Cells* cells, semiring_t* semiring, symbol_t span, position_t start, position_t end) except -1 nogil:
    """The outside values of every state, and what all of them hand down to shorter spans."""
    cdef symbol_t state
    cdef position_t row
    cells.span_at_work = span
    for state in range(cells.constraints.spans[span].n_pending, -1, -1):
        row = row_of(cells.constraints, span, state)
        cells.state_at_work = state
        if gather(cells, semiring, start, row) > 0.0:
            hand_down_cell(cells, semiring, cell_of(cells, start, row))
            hand_to_earlier_states(cells, semiring, span, start, row)
        keep(cells, start, row)
    cells.span_at_work = FREE
    if end - start > 1:
        distribute_constrained(cells, semiring, span, start, end)
    return 0


cdef void hand_to_earlier_states(
        Cells* cells, semiring_t* semiring, symbol_t span, position_t start, position_t row) noexcept nogil:
    """Give the values of a state to the children of the unary rules by which it was entered."""
    cdef const GrammarTable* grammar = cells.grammar
    cdef index_t cell = cell_of(cells, start, row), position, edge, where
    cdef symbol_t symbol, state
    cdef const Slot* slot
    cdef position_t before
    for position in range(cells.cell_begin[cell], cells.cell_end[cell]):
        symbol = cells.cell_symbols[position]
        if cells.sums[symbol] == 0.0:
            continue
        for state in range(cells.state_at_work):
            if state_after(cells.constraints, span, state, grammar.label[symbol]) != cells.state_at_work:
                continue
            before = row_of(cells.constraints, span, state)
            for edge in range(grammar.down.start[symbol], grammar.down.start[symbol + 1]):
                slot = find_slot(cells, &cells.left, start, grammar.down.other[edge])
                if slot != NULL and slot.low <= before <= slot.high and not grammar.down.is_bridge[edge]:
                    where = slot.base + before
                    cells.left.outside[where] = plus(
                        semiring, cells.left.outside[where], grammar.down.weight[edge] * cells.sums[symbol])


cdef int distribute_constrained(
        Cells* cells, semiring_t* semiring, symbol_t span, position_t start, position_t end) except -1 nogil:
    """As `distribute_cell`, with the outside values of symbols in the states that their binary rules enter."""
    cdef index_t cell, position
    cdef symbol_t state, symbol, n_states = cells.constraints.spans[span].n_pending + 1
    cdef weight_t largest = 0.0
    cells.last_stamp -= 1
    cells.n_cell_labels = 0
    for state in range(n_states):
        cell = cell_of(cells, start, row_of(cells.constraints, span, state))
        for position in range(cells.cell_begin[cell], cells.cell_end[cell]):
            symbol = cells.cell_symbols[position]
            if state_after(cells.constraints, span, 0, cells.grammar.label[symbol]) == state:
                cells.sums[symbol] = outside_of(cells, start, row_of(cells.constraints, span, state), symbol)
                largest = max(largest, cells.sums[symbol])
                if cells.sums[symbol] > 0.0 and cells.label_stamp[cells.grammar.label[symbol]] != cells.last_stamp:
                    stamp_label(cells, cells.grammar.label[symbol], cells.last_stamp)
    if largest > 0.0:
        distribute_stamped(cells, semiring, start, end)
    for state in range(n_states):
        cell = cell_of(cells, start, row_of(cells.constraints, span, state))
        for position in range(cells.cell_begin[cell], cells.cell_end[cell]):
            cells.sums[cells.cell_symbols[position]] = 0.0
    return 0


# ---- unary rules and bridges -----------------------------------------------------------------------------

cdef int hand_down_cell(Cells* cells, semiring_t* semiring, index_t cell) except -1 nogil:
    """Give the values of a cell to unary children in it, parents before children."""
    cdef index_t position
    cdef symbol_t symbol, cycle, last_cycle = -1
    for position in range(cells.cell_end[cell] - 1, cells.cell_begin[cell] - 1, -1):
        symbol = cells.cell_symbols[position]
        cycle = cells.grammar.cycle_of[symbol]
        # Members of a cycle are neighbours in the cell: when the first comes, all have what is handed to the cycle.
        if cycle >= 0 and cycle != last_cycle:
            outside_cycle(cells, semiring, cycle, cell)
        last_cycle = cycle
        if cells.sums[symbol] * cells.cell_inside[symbol] < cells.smallest_share * cells.total:
            cells.sums[symbol] = 0.0
        if cells.sums[symbol] != 0.0:
            hand_down(cells, semiring, symbol)
    return 0


cdef int outside_cycle(Cells* cells, semiring_t* semiring, symbol_t cycle, index_t cell) except -1 nogil:
    cdef const GrammarTable* grammar = cells.grammar
    cdef symbol_t first = grammar.cycle_first[cycle], size = grammar.cycle_size[cycle], row
    cdef bint all_alive = True
    for row in range(size):
        cells.cycle_before[row] = cells.sums[first + row]
        all_alive = all_alive and cells.cell_inside[first + row] > 0.0
    if cells.span_at_work >= 0 or (cells.mask != NULL and not all_alive):
        # Which members may stand here is asked from the mask again.
        if cells.mask != NULL:
            stamp_allowed_labels(cells, cell)
        close_allowed(cells, semiring, cycle, cell, &grammar.up)
    else:
        apply_closure(cells, semiring, cycle, 1, size)
    for row in range(size):
        if cells.cell_inside[first + row] > 0.0:
            cells.sums[first + row] = cells.cycle_after[row]
    return 0


cdef void hand_down(Cells* cells, semiring_t* semiring, symbol_t symbol) noexcept nogil:
    """Give a symbol's outside value to its unary children in the same cell."""
    cdef const GrammarTable* grammar = cells.grammar
    cdef symbol_t cycle = grammar.cycle_of[symbol], child
    cdef index_t edge
    for edge in range(grammar.down.start[symbol], grammar.down.start[symbol + 1]):
        child = grammar.down.other[edge]
        # The steps inside of a cycle are in its closure.
        if cells.cell_inside[child] > 0.0 and (cycle < 0 or grammar.cycle_of[child] != cycle) and (
                keeps_state(cells, symbol, grammar.down.is_bridge[edge])):
            cells.sums[child] = plus(semiring, cells.sums[child], grammar.down.weight[edge] * cells.sums[symbol])


# ---- binary rules ----------------------------------------------------------------------------------------

cdef int distribute_cell(Cells* cells, semiring_t* semiring, position_t start, position_t end) except -1 nogil:
    """Give the values of a cell to the children of its binary rules, in shorter spans."""
    stamp_labels_with_value(cells, cell_of(cells, start, end), cells.sums.data())
    return distribute_stamped(cells, semiring, start, end)


cdef int distribute_stamped(Cells* cells, semiring_t* semiring, position_t start, position_t end) except -1 nogil:
    """The same, where the labels with a value were stamped last."""
    cdef index_t cell = cell_of(cells, start, end), position
    cdef const LiveBlock* live
    cdef OutsideStep step
    step.sums, step.smallest = cells.sums.data(), cells.smallest_share * cells.total
    step.factor = cell_weight(cells, start, end)
    if cells.mask == NULL:
        if FEW_LABELS * cells.n_cell_labels > cells.cell_end[cell] - cells.cell_begin[cell]:
            return visit_all(cells, semiring, &step, start, end)
        return visit_stamped(cells, semiring, &step, start, end)
    for position in range(cells.live_begin[cell], cells.live_end[cell]):
        live = &cells.live_blocks[position]
        if cells.label_stamp[live.label] == cells.last_stamp:
            visit_live(cells, semiring, &step, live)
    return 0


cdef int visit_stamped(
        Cells* cells, semiring_t* semiring, OutsideStep* step, position_t start, position_t end) except -1 nogil:
    """Only the treebank rules of the labels that were stamped last."""
    cdef const GrammarTable* grammar = cells.grammar
    cdef index_t position, block
    cdef symbol_t label
    cdef position_t low, high
    for position in range(cells.n_cell_labels):
        label = cells.cell_labels[position]
        for block in range(grammar.block_start[label], grammar.block_start[label + 1]):
            if split_range(cells, block, start, end, &low, &high):
                visit_block(cells, semiring, step, block, start, end, low, high)
    return 0
