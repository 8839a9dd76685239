"""Posterior probabilities of treebank rules, from the inside and outside values of a chart.

From a chart to a forest. ``q(A -> B C, i, k, j)`` is the probability that the treebank rule stands there: the sum over
all its refinements,

    q(A -> B C, i, k, j) = sum_{x -> y z}  O(x, i, j) w I(y, i, k) I(z, k, j) / I(root, 0, n)

with ``x``, ``y``, ``z`` the symbols of ``A``, ``B`` and ``C``; likewise of unary rules and of words. In a constrained
cell a label has one posterior per state of the automaton, so that a tree which is made of the rules has the brackets.
"""

from libc.math cimport INFINITY
from libcpp.algorithm cimport sort
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from tsgkit._binary_rules cimport PosteriorStep, visit_block, visit_live
from tsgkit._chart cimport Chart
from tsgkit._chart_cells cimport (
    Cells,
    LiveBlock,
    bytes_in_use,
    cell_of,
    inside_of,
    outside_of,
    split_range,
    stamp_label,
    stamp_labels_with_value,
)
from tsgkit._constraints cimport FREE, label_code, row_of, span_at, state_after, state_of
from tsgkit._forest cimport Edge, Forest, Item, add_edge, merge_edges
from tsgkit._grammar_index cimport GrammarTable
from tsgkit._semiring cimport SumProduct, sum_semiring
from tsgkit._types cimport index_t, position_t, symbol_t, weight_t
from tsgkit._hash_tables cimport put
from tsgkit._work_limit cimport check_limit

# Where a cell has more edges than this, a table finds them; before that, looking through them is faster.
cdef index_t FEW_EDGES = 32
# An edge makes at most one item with its label, and vectors can be twice as long as what they hold.
cdef index_t BYTES_PER_EDGE = 2 * (sizeof(Edge) + sizeof(Item) + sizeof(symbol_t))


def forest_of(Chart chart not None, weight_t smallest=1e-12):
    """The treebank rules of a chart with inside and outside values.

    Parameters
    ----------
    chart : Chart
    smallest : float
        Rules with less posterior probability are left out.

    Returns
    -------
    Forest
        Without any rule, and with `is_over_budget` set, where the rules and the tables to choose a tree by would
        take more memory than the chart left of its bound.
    """
    if not chart.has_outside or chart.is_viterbi:
        raise ValueError("posteriors need inside and outside values")
    chart.require_plain_cells()
    n_states = chart.constraints.n_states if chart.constraints is not None else 1
    cdef Forest forest = Forest(chart.cells.n_words, chart.grammar.n_labels, n_states=n_states)
    cdef Collector collector
    forest.limit, forest.max_bytes = chart.limit, chart.cells.max_bytes
    make_collector(&collector, &chart.cells, &forest.edges, smallest)
    with nogil:
        forest.is_over_budget = not collect(&collector)
    if forest.is_over_budget:
        forest.edges = vector[Edge]()
    if chart.grammar.table.n_labels > chart.grammar.n_labels:
        # Rules with the same labels came from different children: labelled ones, and some that are not.
        merge_edges(&forest.edges)
    return forest


cdef cppclass Collector:
    # Sums over the refinements of every treebank rule.
    Cells* cells
    vector[Edge]* edges
    weight_t smallest
    symbol_t span                        # the constrained span at work, or FREE
    index_t n_codes                      # of labels, in all states
    vector[weight_t] outside             # per symbol: outside value over the total, in the cell at work
    vector[weight_t] at_split            # per split point; zero between rules
    vector[weight_t] of_label            # per label; zero between rules
    vector[symbol_t] shared_labels       # those that are not zero
    unordered_map[index_t, index_t] edge_of_rule   # of the cell at work, if it has many: by label and left label


cdef int make_collector(Collector* collector, Cells* cells, vector[Edge]* edges, weight_t smallest) except -1:
    collector.cells, collector.edges, collector.smallest = cells, edges, smallest
    collector.span, collector.n_codes = FREE, cells.grammar.n_labels
    if cells.constraints != NULL:
        collector.n_codes *= cells.constraints.n_states
    collector.outside.resize(cells.grammar.n_symbols, 0.0)
    collector.at_split.resize(cells.n_words + 1, 0.0)
    collector.of_label.resize(cells.grammar.n_treebank_labels, 0.0)
    return 0


cdef bint collect(Collector* collector) except -1 nogil:
    """Collect the rules of all cells; false when they are more than memory is left for."""
    cdef position_t n_words = collector.cells.n_words, length, start
    cdef index_t most = (collector.cells.max_bytes - bytes_in_use(collector.cells)) // BYTES_PER_EDGE
    for length in range(1, n_words + 1):
        for start in range(n_words - length + 1):
            check_limit(collector.cells.limits)
            collect_cell(collector, start, start + length)
            if <index_t>collector.edges.size() > most:
                return False
    return True


cdef int collect_cell(Collector* collector, position_t start, position_t end) except -1 nogil:
    cdef Cells* cells = collector.cells
    cdef symbol_t span = span_at(cells.constraints, start, end)
    if span >= 0:
        return collect_constrained(collector, span, start, end)
    if load_outside(collector, start, end, FREE) >= collector.smallest:
        if end == start + 1:
            collect_words(collector, start)
        else:
            stamp_labels_with_value(cells, cell_of(cells, start, end), collector.outside.data())
            collect_binary(collector, start, end)
        collector.edge_of_rule.clear()
        collect_unary(collector, start, end, collector.edges.size())
    clear_outside(collector, start, end)
    return 0


cdef weight_t load_outside(Collector* collector, position_t start, position_t end, symbol_t entered) noexcept nogil:
    """Outside values of a cell as shares of the total; the largest posterior. Of a constrained span, if one is given,
    only of the symbols whose binary rules enter the state of the cell."""
    cdef Cells* cells = collector.cells
    cdef index_t cell = cell_of(cells, start, end), position
    cdef symbol_t symbol
    cdef weight_t largest = 0.0
    for position in range(cells.cell_begin[cell], cells.cell_end[cell]):
        symbol = cells.cell_symbols[position]
        if entered >= 0 and (
                state_after(cells.constraints, entered, 0, cells.grammar.label[symbol])
                != state_of(cells.constraints, entered, end)):
            continue
        collector.outside[symbol] = outside_of(cells, start, end, symbol) / cells.total
        if collector.outside[symbol] > 0.0:
            largest = max(largest, collector.outside[symbol] * inside_of(cells, start, end, symbol))
    return largest


cdef void clear_outside(Collector* collector, position_t start, position_t end) noexcept nogil:
    cdef index_t cell = cell_of(collector.cells, start, end), position
    for position in range(collector.cells.cell_begin[cell], collector.cells.cell_end[cell]):
        collector.outside[collector.cells.cell_symbols[position]] = 0.0


cdef int collect_constrained(Collector* collector, symbol_t span, position_t start, position_t end) except -1 nogil:
    """The rules of a constrained cell, labels by state: those of words or pairs first, then unary rules."""
    cdef Cells* cells = collector.cells
    cdef symbol_t state, label, n_states = cells.constraints.spans[span].n_pending + 1
    cdef index_t first_unary, position, cell
    cdef weight_t largest = 0.0
    collector.span = span
    cells.last_stamp -= 1
    cells.n_cell_labels = 0
    for state in range(n_states):
        largest = max(largest, load_outside(collector, start, row_of(cells.constraints, span, state), span))
        cell = cell_of(cells, start, row_of(cells.constraints, span, state))
        for position in range(cells.cell_begin[cell], cells.cell_end[cell]):
            label = cells.grammar.label[cells.cell_symbols[position]]
            if collector.outside[cells.cell_symbols[position]] > 0.0 and cells.label_stamp[label] != cells.last_stamp:
                stamp_label(cells, label, cells.last_stamp)
    if largest >= collector.smallest:
        if end == start + 1:
            collect_words(collector, start)
        else:
            collect_binary(collector, start, end)
    for state in range(n_states):
        clear_outside(collector, start, row_of(cells.constraints, span, state))
    collector.edge_of_rule.clear()
    first_unary = collector.edges.size()
    for state in range(n_states):
        load_outside(collector, start, row_of(cells.constraints, span, state), FREE)
        collect_unary(collector, start, row_of(cells.constraints, span, state), first_unary)
        clear_outside(collector, start, row_of(cells.constraints, span, state))
    collector.span = FREE
    return 0


cdef inline symbol_t entering_code(const Collector* collector, symbol_t label) noexcept nogil:
    """The number of a label in the forest where its binary rule or its word stands."""
    cdef const Cells* cells = collector.cells
    if collector.span < 0:
        return label
    return label_code(
        cells.constraints, collector.span, state_after(cells.constraints, collector.span, 0, label), label,
        cells.grammar.n_treebank_labels)


cdef int collect_words(Collector* collector, position_t start) except -1 nogil:
    cdef Cells* cells = collector.cells
    cdef index_t first_edge = collector.edges.size(), entry
    cdef symbol_t symbol
    collector.edge_of_rule.clear()
    for entry in range(cells.lexical_start[start], cells.lexical_start[start + 1]):
        symbol = cells.lexical_symbol[entry]
        add_up(
            collector, first_edge, start, start + 1, entering_code(collector, cells.grammar.label[symbol]), -1,
            cells.lexical_weight[entry] * collector.outside[symbol])
    return 0


cdef int collect_unary(
        Collector* collector, position_t start, position_t end, index_t first_edge) except -1 nogil:
    cdef Cells* cells = collector.cells
    cdef const GrammarTable* grammar = cells.grammar
    cdef index_t cell = cell_of(cells, start, end), position, edge
    cdef symbol_t symbol, child
    for position in range(cells.cell_begin[cell], cells.cell_end[cell]):
        symbol = cells.cell_symbols[position]
        if collector.outside[symbol] == 0.0:
            continue
        for edge in range(grammar.down.start[symbol], grammar.down.start[symbol + 1]):
            if not grammar.down.is_bridge[edge]:
                child = grammar.down.other[edge]
                if collector.span >= 0:
                    add_up_states(collector, first_edge, start, end, symbol, child, grammar.down.weight[edge])
                else:
                    add_up(
                        collector, first_edge, start, end, grammar.label[symbol], grammar.label[child],
                        grammar.down.weight[edge] * collector.outside[symbol] * inside_of(cells, start, end, child))
    return 0


cdef int add_up_states(
        Collector* collector, index_t first_edge, position_t start, position_t row, symbol_t symbol, symbol_t child,
        weight_t weight) except -1 nogil:
    """A unary rule in a state of a constrained span, with its child in every state from which the rule leads there."""
    cdef Cells* cells = collector.cells
    cdef symbol_t span = collector.span, state = state_of(cells.constraints, span, row), before
    cdef symbol_t n_labels = cells.grammar.n_treebank_labels, label = cells.grammar.label[symbol]
    for before in range(state + 1):
        if state_after(cells.constraints, span, before, label) == state:
            add_up(
                collector, first_edge, start, cells.constraints.spans[span].end,
                label_code(cells.constraints, span, state, label, n_labels),
                label_code(cells.constraints, span, before, cells.grammar.label[child], n_labels),
                weight * collector.outside[symbol] * inside_of(
                    cells, start, row_of(cells.constraints, span, before), child))
    return 0


cdef int add_up(
        Collector* collector, index_t first_edge, position_t start, position_t end, symbol_t label, symbol_t left,
        weight_t posterior) except -1 nogil:
    """Add to a unary or lexical rule of the cell at work, whose edges begin at `first_edge`."""
    cdef index_t position
    # Values beyond the range of floats make posteriors that are no numbers.
    if not collector.smallest <= posterior < INFINITY:
        return 0
    position = find_edge(collector, first_edge, label, left)
    if position >= 0:
        collector.edges[0][position].posterior += posterior
        return 0
    return add_edge(collector.edges, start, -1, end, label, left, -1, posterior)


cdef index_t find_edge(Collector* collector, index_t first_edge, symbol_t label, symbol_t left) except -2 nogil:
    """The edge with these labels among those from `first_edge` on; -1 if there is none, which the caller then adds."""
    cdef const vector[Edge]* edges = collector.edges
    cdef index_t n_edges = edges.size(), n_labels = collector.n_codes, position, key
    if n_edges - first_edge < FEW_EDGES:
        for position in range(first_edge, n_edges):
            if edges[0][position].label == label and edges[0][position].left == left:
                return position
        return -1
    if collector.edge_of_rule.empty():
        for position in range(first_edge, n_edges):
            key = edges[0][position].label * n_labels + edges[0][position].left
            put(collector.edge_of_rule, key, position)
    key = label * n_labels + left
    if collector.edge_of_rule.count(key):
        return collector.edge_of_rule.at(key)
    put(collector.edge_of_rule, key, n_edges)
    return -1


# ---- binary rules ----------------------------------------------------------------------------------------

cdef int collect_binary(Collector* collector, position_t start, position_t end) except -1 nogil:
    """The binary rules of a cell, whose labels with a value were stamped last."""
    cdef Cells* cells = collector.cells
    cdef const GrammarTable* grammar = cells.grammar
    cdef index_t cell = cell_of(cells, start, end), position, block
    cdef LiveBlock live
    if cells.mask != NULL:
        for position in range(cells.live_begin[cell], cells.live_end[cell]):
            live = cells.live_blocks[position]
            if cells.label_stamp[live.label] == cells.last_stamp:
                collect_block(collector, live, start, end)
        return 0
    for position in range(cells.n_cell_labels):
        live.label = cells.cell_labels[position]
        for block in range(grammar.block_start[live.label], grammar.block_start[live.label + 1]):
            live.block = block
            if split_range(cells, block, start, end, &live.low, &live.high):
                collect_block(collector, live, start, end)
    return 0


cdef int collect_block(Collector* collector, LiveBlock live, position_t start, position_t end) except -1 nogil:
    cdef const GrammarTable* grammar = collector.cells.grammar
    cdef SumProduct semiring = sum_semiring(grammar)
    cdef PosteriorStep step
    cdef index_t position
    cdef position_t split
    cdef symbol_t left, right
    step.outside, step.at_split = collector.outside.data(), collector.at_split.data()
    step.factor = 1.0
    if collector.cells.mask != NULL:
        visit_live(collector.cells, &semiring, &step, &live)
    else:
        visit_block(collector.cells, &semiring, &step, live.block, start, end, live.low, live.high)
    for split in range(live.low, live.high + 1):
        if collector.at_split[split] >= collector.smallest:
            left, right = grammar.block_left_label[live.block], grammar.block_right_label[live.block]
            if left >= grammar.n_treebank_labels:
                share_out(collector, left, start, split)
                for position in range(<index_t>collector.shared_labels.size()):
                    left = collector.shared_labels[position]
                    take_share(collector, start, split, end, live.label, left, right, left)
            elif right >= grammar.n_treebank_labels:
                share_out(collector, right, split, end)
                for position in range(<index_t>collector.shared_labels.size()):
                    right = collector.shared_labels[position]
                    take_share(collector, start, split, end, live.label, left, right, right)
            elif collector.at_split[split] < INFINITY:
                add_edge(
                    collector.edges, start, split, end, entering_code(collector, live.label), left, right,
                    collector.at_split[split])
        collector.at_split[split] = 0.0
    return 0


cdef int share_out(Collector* collector, symbol_t label, position_t start, position_t end) except -1 nogil:
    """For a symbol without a label, which has bridges only: the share of every label in its inside value."""
    cdef const GrammarTable* grammar = collector.cells.grammar
    cdef symbol_t symbol = grammar.unlabelled[label - grammar.n_treebank_labels], child
    cdef weight_t total = inside_of(collector.cells, start, end, symbol)
    cdef weight_t share
    cdef index_t edge
    collector.shared_labels.clear()
    for edge in range(grammar.down.start[symbol], grammar.down.start[symbol + 1]):
        child = grammar.down.other[edge]
        share = grammar.down.weight[edge] * inside_of(collector.cells, start, end, child) / total
        if share > 0.0:
            if collector.of_label[grammar.label[child]] == 0.0:
                collector.shared_labels.push_back(grammar.label[child])
            collector.of_label[grammar.label[child]] += share
    # In the order of labels, whatever the order of symbols is.
    sort(collector.shared_labels.begin(), collector.shared_labels.end())
    return 0


cdef int take_share(
        Collector* collector, position_t start, position_t split, position_t end, symbol_t label, symbol_t left,
        symbol_t right, symbol_t shared) except -1 nogil:
    """Add a rule with the share that the label `shared` has in its posterior."""
    cdef weight_t posterior = collector.at_split[split] * collector.of_label[shared]
    collector.of_label[shared] = 0.0
    if collector.smallest <= posterior < INFINITY:
        add_edge(
            collector.edges, start, split, end, entering_code(collector, label), left, right, posterior)
    return 0
