"""Derivations out of a chart: the best one, and exact samples.

From the values of a chart to rows ``(symbol, start, end, kind)`` in the order of a walk from the root down, left to
right; ``tsgkit._codes`` has the kinds. A derivation weighs the product of its rules' weights; a sample has that weight
over the chart's total as its probability.

No back pointers are kept: at every node the choices that make its value are computed again, which costs little
because only the nodes of the wanted derivations are visited.
"""

import numpy as np

from libc.math cimport log
from libc.stdint cimport uint8_t
from libcpp.vector cimport vector

from tsgkit._chart cimport Chart
from tsgkit._chart_cells cimport Cells, Slot, cell_of, find_slot, inside_of, lexical_of
from tsgkit._codes cimport BINARY, BRIDGE, LEXICAL, N_ROW_COLUMNS, ROW_END, ROW_KIND, ROW_LABEL, ROW_START, UNARY
from tsgkit._constraints cimport ConstraintTable, row_of, span_at, state_after, state_of
from tsgkit._grammar_index cimport GrammarTable
from tsgkit._random cimport bitgen_of, bitgen_t, uniform
from tsgkit._types cimport index_t, position_t, symbol_t, weight_t
from tsgkit._work_limit cimport check_limit


cdef struct Choice:
    # A rule that makes a node, and its children.
    int kind
    symbol_t left         # the only child of a unary rule or bridge
    symbol_t right
    position_t split
    position_t end        # of the span, or of the pending cell of the only child (`_constraints.pxd`)
    weight_t weight       # of the rule
    weight_t value        # with the values of the children


cdef struct Node:
    symbol_t symbol
    position_t start
    position_t end


cdef struct Visited:
    Node node
    int kind


# ---- the choices at a node -------------------------------------------------------------------------------

cdef int list_choices(const Cells* cells, Node node, vector[Choice]* choices) except -1 nogil:
    """The rules that make a node, with all their children that have a value, in a fixed order."""
    cdef const GrammarTable* grammar = cells.grammar
    cdef symbol_t span = span_at(cells.constraints, node.start, node.end)
    cdef Choice choice
    cdef index_t edge
    choices.clear()
    if span >= 0:
        return list_constrained_choices(cells, node, span, choices)
    choice.left = choice.right = choice.split = -1
    choice.end = node.end
    if node.end == node.start + 1:
        choice.kind = LEXICAL
        choice.weight = choice.value = lexical_of(cells, node.start, node.symbol)
        if choice.value > 0.0:
            choices.push_back(choice)
    list_binary_choices(cells, node, choices)
    for edge in range(grammar.down.start[node.symbol], grammar.down.start[node.symbol + 1]):
        choice.kind = BRIDGE if grammar.down.is_bridge[edge] else UNARY
        choice.left, choice.weight = grammar.down.other[edge], grammar.down.weight[edge]
        choice.value = choice.weight * inside_of(cells, node.start, node.end, choice.left)
        if choice.value > 0.0:
            choices.push_back(choice)
    return 0


cdef int list_constrained_choices(
        const Cells* cells, Node node, symbol_t span, vector[Choice]* choices) except -1 nogil:
    """The same in a state of a constrained span: rules that lead there, with children in the states before."""
    cdef const ConstraintTable* table = cells.constraints
    cdef const GrammarTable* grammar = cells.grammar
    cdef symbol_t state = state_of(table, span, node.end), label = grammar.label[node.symbol], before
    cdef Choice choice
    cdef index_t edge
    choice.left = choice.right = choice.split = -1
    choice.end = table.spans[span].end
    if state_after(table, span, 0, label) == state:
        if choice.end == node.start + 1:
            choice.kind = LEXICAL
            choice.weight = choice.value = lexical_of(cells, node.start, node.symbol)
            if choice.value > 0.0:
                choices.push_back(choice)
        list_binary_choices(cells, node_of(node.symbol, node.start, choice.end), choices)
    for edge in range(grammar.down.start[node.symbol], grammar.down.start[node.symbol + 1]):
        choice.kind = BRIDGE if grammar.down.is_bridge[edge] else UNARY
        choice.left, choice.weight = grammar.down.other[edge], grammar.down.weight[edge]
        for before in range(state + 1):
            if before != state if choice.kind == BRIDGE else state_after(table, span, before, label) != state:
                continue
            choice.end = row_of(table, span, before)
            choice.value = choice.weight * inside_of(cells, node.start, choice.end, choice.left)
            if choice.value > 0.0:
                choices.push_back(choice)
    return 0


cdef int list_binary_choices(const Cells* cells, Node node, vector[Choice]* choices) except -1 nogil:
    cdef const GrammarTable* grammar = cells.grammar
    cdef const Slot* left
    cdef const Slot* right
    cdef Choice choice
    cdef index_t rule
    cdef position_t low, high
    choice.kind, choice.end = BINARY, node.end
    for rule in range(grammar.parent_start[node.symbol], grammar.parent_start[node.symbol + 1]):
        left = find_slot(cells, &cells.left, node.start, grammar.parent_left[rule])
        right = find_slot(cells, &cells.right, node.end, grammar.parent_right[rule])
        if left == NULL or right == NULL:
            continue
        low = max(node.start + 1, max(left.low, right.low))
        high = min(node.end - 1, min(left.high, right.high))
        choice.left, choice.right = grammar.parent_left[rule], grammar.parent_right[rule]
        choice.weight = grammar.parent_weight[rule]
        for choice.split in range(low, high + 1):
            # In the order of the chart, so that a node with a value has a choice with a value.
            choice.value = choice.weight * (
                cells.left.inside[left.base + choice.split] * cells.right.inside[right.base + choice.split])
            if choice.value > 0.0:
                choices.push_back(choice)
    return 0


cdef index_t best_choice(const vector[Choice]* choices) noexcept nogil:
    cdef index_t best = 0, position
    for position in range(1, <index_t>choices.size()):
        if choices[0][position].value > choices[0][best].value:
            best = position
    return best


cdef index_t drawn_choice(const vector[Choice]* choices, bitgen_t* generator) noexcept nogil:
    cdef weight_t total = 0.0, target
    cdef index_t position
    for position in range(<index_t>choices.size()):
        total += choices[0][position].value
    target = uniform(generator) * total
    for position in range(<index_t>choices.size() - 1):
        target -= choices[0][position].value
        if target < 0.0:
            return position
    return choices.size() - 1


cdef Node node_of(symbol_t symbol, position_t start, position_t end) noexcept nogil:
    cdef Node node
    node.symbol, node.start, node.end = symbol, start, end
    return node


cdef Node left_child(Node node, Choice choice) noexcept nogil:
    return node_of(choice.left, node.start, choice.split if choice.kind == BINARY else choice.end)


cdef Node right_child(Node node, Choice choice) noexcept nogil:
    return node_of(choice.right, choice.split, choice.end)


cdef int walk(
        const Cells* cells, Node top, bitgen_t* generator, index_t max_nodes, vector[Visited]* visited,
        double* log_weight) except -1 nogil:
    """Go down from a node, everywhere by the best choice or, with a generator, by a drawn one.

    `log_weight` becomes the log of the product of the rules' weights, scaled as the chart's values are. More than
    `max_nodes` are an OverflowError: drawn paths through cycles can have any length.
    """
    cdef vector[Node] waiting
    cdef vector[Choice] choices
    cdef Choice choice
    cdef Visited visit
    log_weight[0] = 0.0
    visited.clear()
    waiting.push_back(top)
    while not waiting.empty():
        visit.node = waiting.back()
        waiting.pop_back()
        check_limit(cells.limits)
        list_choices(cells, visit.node, &choices)
        if choices.empty():
            with gil:
                raise OverflowError("the values of this sentence are too small for floats")
        if <index_t>visited.size() == max_nodes:
            with gil:
                raise OverflowError("a derivation is too long: a cycle of unary rules is hardly ever left")
        choice = choices[drawn_choice(&choices, generator) if generator != NULL else best_choice(&choices)]
        visit.kind = choice.kind
        visited.push_back(visit)
        log_weight[0] += log(choice.weight)
        if choice.kind == BINARY:
            waiting.push_back(right_child(visit.node, choice))
        if choice.kind != LEXICAL:
            waiting.push_back(left_child(visit.node, choice))
    return 0


cdef index_t max_rows(const Cells* cells) noexcept nogil:
    """How many rows derivations may have: what a quarter of the chart's bound of memory holds."""
    return max(cells.max_bytes // (4 * <index_t>sizeof(Visited)), 1 << 16)


cdef object rows_of(Chart chart, const vector[Visited]* visited):
    rows = np.empty((visited.size(), N_ROW_COLUMNS), dtype=np.int32)
    cdef symbol_t[:, ::1] view = rows
    cdef index_t row
    for row in range(<index_t>visited.size()):
        view[row, ROW_LABEL] = chart.grammar.table.symbol_of[visited[0][row].node.symbol]
        view[row, ROW_START] = visited[0][row].node.start
        view[row, ROW_END] = visited[0][row].node.end
        if chart.cells.constraints != NULL:
            view[row, ROW_END] = chart.cells.constraints.end_of_row[visited[0][row].node.end]
        view[row, ROW_KIND] = visited[0][row].kind
    return rows


cdef int require_derivation(Chart chart, bint viterbi) except -1:
    if chart.cells.total <= 0.0 or chart.cells.is_over_budget:
        raise ValueError("the chart holds no derivation")
    if viterbi != chart.is_viterbi:
        raise ValueError("the chart has Viterbi values" if chart.is_viterbi else "the chart has no Viterbi values")
    chart.require_plain_cells()
    return 0


def best_derivation(Chart chart not None):
    """The most probable derivation of a chart with Viterbi values.

    Returns
    -------
    rows : ndarray of int32, four columns
    log_weight : float
    """
    require_derivation(chart, True)
    return best_part(chart, chart.grammar.symbol_of_rank[chart.grammar.table.root], 0, chart.cells.n_words)


def best_part(Chart chart not None, symbol_t symbol, position_t start, position_t end):
    """The most probable derivation of a symbol over a span, in a chart with Viterbi values.

    Returns
    -------
    rows : ndarray of int32, four columns
    log_weight : float
    """
    if not (chart.is_viterbi and 0 <= symbol < chart.grammar.n_symbols and 0 <= start < end <= chart.cells.n_words):
        raise ValueError("no such part of a chart with Viterbi values")
    chart.require_plain_cells()
    cdef Node top = node_of(chart.grammar.rank_of_symbol[symbol], start, end)
    if chart.cells.is_over_budget or inside_of(&chart.cells, start, end, top.symbol) <= 0.0:
        raise ValueError("the chart holds no derivation of it")
    chart.grammar.need_parent()
    cdef vector[Visited] visited
    cdef double log_weight
    with nogil:
        walk(&chart.cells, top, NULL, max_rows(&chart.cells), &visited, &log_weight)
    return rows_of(chart, &visited), log_weight - (chart.scale_prefix[end] - chart.scale_prefix[start])


def best_symbols(Chart chart not None, allowed):
    """Of every span the allowed symbol with the largest value in a chart, and the log of that value.

    Parameters
    ----------
    chart : Chart
    allowed : ndarray of bool
        For every symbol of the grammar.

    Returns
    -------
    symbols, values : ndarray
        By start and end; -1 and -inf where a span has none. Of equal values, that of the smaller number.
    """
    cdef const uint8_t[::1] is_allowed = np.ascontiguousarray(allowed, dtype=np.uint8)
    cdef const Cells* cells = &chart.cells
    cdef index_t n_rows = cells.n_words + 1, position, cell
    cdef position_t start, end
    cdef symbol_t symbol
    cdef weight_t value
    if is_allowed.shape[0] != chart.grammar.n_symbols:
        raise ValueError("one flag is needed for every symbol")
    symbols, values = np.full((n_rows, n_rows), -1, dtype=np.int32), np.zeros((n_rows, n_rows))
    cdef symbol_t[:, ::1] best_symbol = symbols
    cdef weight_t[:, ::1] best_value = values
    if not cells.is_over_budget:
        with nogil:
            for start in range(cells.n_words):
                for end in range(start + 1, cells.n_words + 1):
                    check_limit(cells.limits)
                    cell = cell_of(cells, start, end)
                    for position in range(cells.cell_begin[cell], cells.cell_end[cell]):
                        symbol = cells.grammar.symbol_of[cells.cell_symbols[position]]
                        value = inside_of(cells, start, end, cells.cell_symbols[position])
                        if is_allowed[symbol] and value > 0.0 and (value > best_value[start, end] or (
                                value == best_value[start, end] and symbol < best_symbol[start, end])):
                            best_symbol[start, end], best_value[start, end] = symbol, value
    scale = np.array([chart.scale_prefix[position] for position in range(n_rows)])
    with np.errstate(divide="ignore"):
        return symbols, np.log(values) - (scale[None, :] - scale[:, None])


def sample_derivations(Chart chart not None, index_t n_samples, bit_generator):
    """Independent draws from the distribution over derivations.

    Parameters
    ----------
    chart : Chart
        With inside values.
    n_samples : int
    bit_generator : numpy.random.BitGenerator

    Returns
    -------
    list of (rows, log_weight)

    Raises
    ------
    OverflowError
        When all of them together would have more rows than a part of the chart's bound of memory holds.
    """
    require_derivation(chart, False)
    chart.grammar.need_parent()
    cdef vector[Visited] visited
    cdef bitgen_t* generator = bitgen_of(bit_generator)
    cdef Node root = node_of(chart.grammar.table.root, 0, chart.cells.n_words)
    cdef double log_weight
    cdef index_t _sample, n_left = max_rows(&chart.cells)
    drawn = []
    with bit_generator.lock:
        for _sample in range(n_samples):
            with nogil:
                walk(&chart.cells, root, generator, n_left, &visited, &log_weight)
            n_left -= visited.size()
            drawn.append((rows_of(chart, &visited), log_weight - chart.scale_prefix[chart.cells.n_words]))
    return drawn
