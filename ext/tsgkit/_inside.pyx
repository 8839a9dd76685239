"""Inside and Viterbi values of all cells of a chart, shorter spans first.

With ``I(x, i, j)`` the inside value of symbol ``x`` over the words ``i .. j``,

    I(x, i, j) = sum_{x -> y z} w  sum_k I(y, i, k) I(z, k, j)  +  sum_{x -> y} w I(y, i, j)

where the last sum runs over unary rules and bridges and is closed exactly, cycles included. Viterbi values have *max*
in place of *sum*. With a mask from a coarser chart, only blocks of rules whose treebank labels survived are touched.
A cell that is constrained (``_constraints.pxd``) has the values of every state of its automaton, one after the other.
"""

from tsgkit._binary_rules cimport InsideStep, visit_all, visit_block
from tsgkit._chart_cells cimport (
    Arrival,
    Cells,
    LiveBlock,
    alive_at,
    bytes_in_use,
    cell_of,
    cell_weight,
    has_label,
    has_symbol,
    highest_bit,
    inner_positions,
    inside_of,
    is_allowed,
    keeps_state,
    lowest_bit,
    split_range,
    stamp_allowed_labels,
    stamp_label,
    store,
    touch,
)
from tsgkit._constraints cimport FREE, row_of, span_at, state_after
from tsgkit._grammar_index cimport GrammarTable
from tsgkit._semiring cimport MaxProduct, SumProduct, max_semiring, plus, semiring_t, sum_semiring
from tsgkit._types cimport bits_t, index_t, position_t, symbol_t, weight_t
from tsgkit._unary_cycles cimport apply_closure, close_allowed
from tsgkit._work_limit cimport check_limit


cdef int fill_inside(Cells* cells, bint viterbi) except -1 nogil:
    """Fill cleared cells, until they are complete or over the bound of memory."""
    cdef SumProduct sums = sum_semiring(cells.grammar)
    cdef MaxProduct best = max_semiring(cells.grammar)
    return inside_pass(cells, &best) if viterbi else inside_pass(cells, &sums)


cdef int inside_pass(Cells* cells, semiring_t* semiring) except -1 nogil:
    cdef position_t length, start
    if cells.is_over_budget:
        return 0
    for length in range(1, cells.n_words + 1):
        for start in range(cells.n_words - length + 1):
            check_limit(cells.limits)
            inside_cell(cells, semiring, start, start + length)
            if bytes_in_use(cells) > cells.max_bytes:
                cells.is_over_budget = True
                return 0
    cells.total = inside_of(cells, 0, cells.n_words, cells.grammar.root)
    return 0


cdef int inside_cell(Cells* cells, semiring_t* semiring, position_t start, position_t end) except -1 nogil:
    cdef index_t cell = cell_of(cells, start, end), entry
    cdef symbol_t span = span_at(cells.constraints, start, end)
    cdef InsideStep step
    cells.cell_begin[cell] = cells.cell_end[cell] = cells.cell_symbols.size()
    if cell_weight(cells, start, end) == 0.0:
        return 0
    if cells.mask != NULL:
        if span == FREE:
            stamp_allowed_labels(cells, cell)
        else:
            stamp_entering_labels(cells, span, start)
        if not cells.n_cell_labels:
            return 0
    if end == start + 1:
        for entry in range(cells.lexical_start[start], cells.lexical_start[end]):
            # Entries of the same symbol are one rule with the sum of their weights, for Viterbi as well.
            cells.sums[cells.lexical_symbol[entry]] += cells.lexical_weight[entry]
            touch(cells, cells.lexical_symbol[entry])
    elif cells.mask != NULL:
        combine_allowed(cells, semiring, start, end)
    else:
        step = inside_step(cells, start, end)
        visit_all(cells, semiring, &step, start, end)
    if span != FREE:
        return close_constrained(cells, semiring, span, start)
    close_cell(cells, semiring, start, end)
    cells.cell_end[cell] = cells.cell_symbols.size()
    return 0


# ---- constrained cells -----------------------------------------------------------------------------------

cdef void stamp_entering_labels(Cells* cells, symbol_t span, position_t start) noexcept nogil:
    """Stamp the labels whose binary rules the mask allows in a constrained cell: in the state that they enter."""
    cdef symbol_t label, coarse
    cdef position_t row
    cells.last_stamp -= 1
    cells.n_cell_labels = 0
    for label in range(cells.grammar.n_treebank_labels):
        row = row_of(cells.constraints, span, state_after(cells.constraints, span, 0, label))
        coarse = cells.projection.coarse_label[label]
        if has_label(cells.mask, cell_of(cells, start, row), coarse):
            stamp_label(cells, label, cells.last_stamp)


cdef int close_constrained(Cells* cells, semiring_t* semiring, symbol_t span, position_t start) except -1 nogil:
    """Close the cell of every state, from what its binary rules or its word made and what comes from states before."""
    cdef symbol_t state, n_states = cells.constraints.spans[span].n_pending + 1
    cdef index_t cell, position
    cdef position_t row
    take_arrivals(cells, span)
    cells.span_at_work = span
    for state in range(n_states):
        row = row_of(cells.constraints, span, state)
        cell = cell_of(cells, start, row)
        cells.state_at_work = state
        cells.cell_begin[cell] = cells.cell_symbols.size()
        if cells.mask != NULL:
            stamp_allowed_labels(cells, cell)
        for position in range(<index_t>cells.arrivals.size()):
            if cells.arrivals[position].state == state:
                add(cells, semiring, cells.arrivals[position].symbol, cells.arrivals[position].value)
        close_cell(cells, semiring, start, row)
        cells.cell_end[cell] = cells.cell_symbols.size()
    cells.span_at_work = FREE
    cells.arrivals.clear()
    return 0


cdef int take_arrivals(Cells* cells, symbol_t span) except -1 nogil:
    """Move the sums of the cell at work to the states that their labels enter."""
    cdef index_t word
    cdef symbol_t symbol
    for word in range(<index_t>cells.touched.size()):
        while cells.touched[word]:
            symbol = 64 * word + lowest_bit(cells.touched[word])
            cells.touched[word] &= cells.touched[word] - 1
            arrive(
                cells, symbol, state_after(cells.constraints, span, 0, cells.grammar.label[symbol]),
                cells.sums[symbol])
            cells.sums[symbol] = 0.0
    for word in range(<index_t>cells.touched_words.size()):
        cells.touched_words[word] = 0
    return 0


cdef int arrive(Cells* cells, symbol_t symbol, symbol_t state, weight_t value) except -1 nogil:
    cdef Arrival arrival
    arrival.symbol, arrival.state, arrival.value = symbol, state, value
    cells.arrivals.push_back(arrival)
    return 0


cdef inline void add(Cells* cells, semiring_t* semiring, symbol_t symbol, weight_t value) noexcept nogil:
    cells.sums[symbol] = plus(semiring, cells.sums[symbol], value)
    touch(cells, symbol)


# ---- binary rules under a mask ---------------------------------------------------------------------------

cdef int combine_allowed(Cells* cells, semiring_t* semiring, position_t start, position_t end) except -1 nogil:
    """Only the treebank rules of labels that may stand here, with their children where those do."""
    cdef const GrammarTable* grammar = cells.grammar
    cdef index_t n_words = cells.n_position_words, word = start >> 6, cell = cell_of(cells, start, end)
    cdef index_t position, group, block
    cdef const bits_t* left_alive = alive_at(cells, &cells.left, start, 0) + word
    cdef const bits_t* right_alive = alive_at(cells, &cells.right, end, 0) + word
    cdef bits_t inside = inner_positions(start, end, word), left, both
    cdef bint is_narrow = end >> 6 == word   # all split points are in one word of flags
    # In a constrained cell, which symbols may stand there is asked state by state, when it is closed.
    cdef bint is_free = span_at(cells.constraints, start, end) == FREE
    cdef symbol_t coarse
    cdef LiveBlock live
    cdef InsideStep step = inside_step(cells, start, end)
    step.live = &cells.live_pairs
    cells.live_begin[cell] = cells.live_blocks.size()
    for position in range(cells.n_cell_labels):
        live.label = cells.cell_labels[position]
        for group in range(grammar.group_start[live.label], grammar.group_start[live.label + 1]):
            left = left_alive[grammar.group_left_label[group] * n_words] & inside
            if is_narrow and not left:
                continue
            for block in range(grammar.group_block_start[group], grammar.group_block_start[group + 1]):
                coarse = cells.projection.block_symbol[block]
                if coarse >= 0 and is_free and not has_symbol(cells.mask, cell, coarse):
                    continue
                if is_narrow:
                    both = left & right_alive[grammar.block_right_label[block] * n_words]
                    if not both:
                        continue
                    live.low, live.high = 64 * word + lowest_bit(both), 64 * word + highest_bit(both)
                elif not split_range(cells, block, start, end, &live.low, &live.high):
                    continue
                live.block, live.pair_begin = block, cells.live_pairs.size()
                visit_block(cells, semiring, &step, block, start, end, live.low, live.high)
                live.pair_end = cells.live_pairs.size()
                if live.pair_begin < live.pair_end:
                    cells.live_blocks.push_back(live)
    cells.live_end[cell] = cells.live_blocks.size()
    return 0


cdef InsideStep inside_step(Cells* cells, position_t start, position_t end) noexcept nogil:
    cdef InsideStep step
    step.sums, step.factor = cells.sums.data(), cell_weight(cells, start, end)
    step.touched, step.touched_words = cells.touched.data(), cells.touched_words.data()
    step.live = NULL
    return step


# ---- unary rules and bridges -----------------------------------------------------------------------------

cdef int close_cell(Cells* cells, semiring_t* semiring, position_t start, position_t end) except -1 nogil:
    """Add unary rules and bridges, children before parents, and store what the cell holds."""
    cdef index_t group, word
    # The parents that are touched on the way have higher ranks.
    for group in range(<index_t>cells.touched_words.size()):
        while cells.touched_words[group]:
            word = 64 * group + lowest_bit(cells.touched_words[group])
            while cells.touched[word]:
                close_symbol(cells, semiring, start, end, 64 * word + lowest_bit(cells.touched[word]))
            cells.touched_words[group] &= cells.touched_words[group] - 1
    return 0


cdef inline int close_symbol(
        Cells* cells, semiring_t* semiring, position_t start, position_t end, symbol_t symbol) except -1 nogil:
    """Store the value of a symbol, or of the cycle that it belongs to, and clear the flag."""
    cdef weight_t value
    if cells.grammar.cycle_of[symbol] >= 0:
        return close_cycle(cells, semiring, cells.grammar.cycle_of[symbol], start, end)
    cells.touched[symbol >> 6] &= ~(<bits_t>1 << (symbol & 63))
    value = cells.sums[symbol]
    cells.sums[symbol] = 0.0
    if value > 0.0 and is_allowed(cells, cell_of(cells, start, end), symbol):
        return emit(cells, semiring, start, end, symbol, value)
    return 0


cdef int close_cycle(
        Cells* cells, semiring_t* semiring, symbol_t cycle, position_t start, position_t end) except -1 nogil:
    cdef const GrammarTable* grammar = cells.grammar
    cdef index_t cell = cell_of(cells, start, end)
    cdef symbol_t first = grammar.cycle_first[cycle], size = grammar.cycle_size[cycle], row, symbol
    cdef bint all_allowed = cells.span_at_work < 0
    for row in range(size):
        symbol = first + row
        cells.cycle_before[row] = cells.sums[symbol]
        cells.sums[symbol] = 0.0
        cells.touched[symbol >> 6] &= ~(<bits_t>1 << (symbol & 63))
        if not is_allowed(cells, cell, symbol):
            cells.cycle_before[row] = 0.0
            all_allowed = False
    if all_allowed:
        apply_closure(cells, semiring, cycle, size, 1)
    else:
        close_allowed(cells, semiring, cycle, cell, &grammar.down)
    for row in range(size):
        if cells.cycle_after[row] > 0.0 and is_allowed(cells, cell, first + row):
            emit(cells, semiring, start, end, first + row, cells.cycle_after[row])
    return 0


cdef int emit(
        Cells* cells, semiring_t* semiring, position_t start, position_t end, symbol_t symbol,
        weight_t value) except -1 nogil:
    """Store a value and offer it to the unary parents of its symbol."""
    cdef const GrammarTable* grammar = cells.grammar
    cdef symbol_t cycle = grammar.cycle_of[symbol], parent
    cdef index_t edge
    store(cells, start, end, symbol, value)
    for edge in range(grammar.up.start[symbol], grammar.up.start[symbol + 1]):
        parent = grammar.up.other[edge]
        if not keeps_state(cells, parent, grammar.up.is_bridge[edge]):
            arrive(
                cells, parent,
                state_after(cells.constraints, cells.span_at_work, cells.state_at_work, grammar.label[parent]),
                grammar.up.weight[edge] * value)
        # The steps inside of a cycle are in its closure.
        elif cycle < 0 or grammar.cycle_of[parent] != cycle:
            add(cells, semiring, parent, grammar.up.weight[edge] * value)
    return 0
