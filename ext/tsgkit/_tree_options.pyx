"""The nodes of a chart or of a forest, and the options of making each from others.

What `_tree_ranking` ranks: a chart with Viterbi values, whose nodes are symbols over spans, or a forest of treebank
rules with posteriors, whose nodes are labels over spans. An option is a word, a binary rule with a split point, or a
unary rule; its score is the log of the rule's weight, or of a forest its posterior or the log of that.
"""

from libc.math cimport INFINITY, log
from libcpp.vector cimport vector

from tsgkit._chart cimport Chart
from tsgkit._chart_cells cimport Cells, Slot, cell_of, find_slot, inside_of, lexical_of
from tsgkit._constraints cimport row_of, span_at, state_after, state_of
from tsgkit._forest cimport Edge, Forest, find, is_unary, make_decoder
from tsgkit._grammar_index cimport GrammarTable
from tsgkit._types cimport index_t, position_t, symbol_t, weight_t


cdef index_t open_chart(TreeSource* source, Chart chart) except -2:
    source.cells = &chart.cells
    return cell_of(source.cells, 0, chart.cells.n_words) * chart.grammar.n_symbols + chart.grammar.table.root


cdef index_t open_forest(TreeSource* source, Forest forest, bint product, symbol_t root) except -2:
    cdef index_t node
    source.cells = NULL
    make_decoder(&source.decoder, forest, product)
    with nogil:
        group_edges(source)
    node = find(&source.decoder, 0, forest.n_words, root)
    return node if node >= 0 and source.decoder.items[node].best > -INFINITY else -1


cdef int group_edges(TreeSource* source) except -1 nogil:
    """The edges of a forest by item: those without unary rules, and the unary rules that paths may have."""
    cdef index_t n_edges = source.decoder.edges.size(), position, item
    cdef vector[index_t] item_of_base, item_of_unary
    cdef Edge edge
    item_of_base.resize(n_edges, -1)
    item_of_unary.resize(n_edges, -1)
    for position in range(n_edges):
        edge = source.decoder.edges[0][position]
        item = find(&source.decoder, edge.start, edge.end, edge.label)
        if not is_unary(edge):
            item_of_base[position] = item
        elif source.decoder.may_chain[position]:
            item_of_unary[position] = item
    group(item_of_base, source.decoder.items.size(), &source.base_start, &source.base_edge)
    return group(item_of_unary, source.decoder.items.size(), &source.unary_start, &source.unary_edge)


cdef int group(
    const vector[index_t]& item_of_edge, index_t n_items, vector[index_t]* start, vector[index_t]* edges
) except -1 nogil:
    """The edges of each item in their order, and where those of each begin; edges without an item (-1) are left out."""
    cdef index_t position, item
    start.resize(n_items + 1, 0)
    for position in range(<index_t>item_of_edge.size()):
        if item_of_edge[position] >= 0:
            start[0][item_of_edge[position] + 1] += 1
    for item in range(n_items):
        start[0][item + 1] += start[0][item]
    edges.resize(start[0][n_items])
    # Filled from the end of each item, which makes every `start[item + 1]` the start of `item`.
    for position in range(<index_t>item_of_edge.size() - 1, -1, -1):
        item = item_of_edge[position]
        if item >= 0:
            start[0][item + 1] -= 1
            edges[0][start[0][item + 1]] = position
    for item in range(n_items):
        start[0][item] = start[0][item + 1]
    start[0][n_items] = edges.size()
    return 0


# ---- nodes ----------------------------------------------------------------------------------------------------

cdef double best_of(const TreeSource* source, index_t node) noexcept nogil:
    cdef index_t cell
    if source.cells == NULL:
        return source.decoder.items[node].best
    cell = node // source.cells.grammar.n_symbols
    return log(inside_of(
        source.cells, cell // source.cells.n_rows, cell % source.cells.n_rows,
        node % source.cells.grammar.n_symbols))


cdef bint has_unary(const TreeSource* source, index_t node) noexcept nogil:
    cdef symbol_t symbol
    if source.cells == NULL:
        return source.unary_start[node] < source.unary_start[node + 1]
    symbol = node % source.cells.grammar.n_symbols
    return source.cells.grammar.down.start[symbol] < source.cells.grammar.down.start[symbol + 1]


cdef symbol_t label_of(const TreeSource* source, index_t node) noexcept nogil:
    if source.cells == NULL:
        return source.decoder.items[node].label % source.decoder.n_labels
    return source.cells.grammar.label[node % source.cells.grammar.n_symbols]


cdef position_t start_of(const TreeSource* source, index_t node) noexcept nogil:
    if source.cells == NULL:
        return source.decoder.edges[0][source.base_edge[source.base_start[node]]].start
    return node // source.cells.grammar.n_symbols // source.cells.n_rows


# ---- options --------------------------------------------------------------------------------------------------

cdef int list_base(const TreeSource* source, index_t node, vector[Option]* options) except -1 nogil:
    options.clear()
    if source.cells == NULL:
        return list_forest_base(source, node, options)
    return list_chart_base(source.cells, node, options)


cdef int list_unary(const TreeSource* source, index_t node, vector[Option]* options) except -1 nogil:
    options.clear()
    if source.cells == NULL:
        return list_forest_unary(source, node, options)
    return list_chart_unary(source, node, options)


cdef inline double score_of(const TreeSource* source, const Edge& edge) noexcept nogil:
    return log(edge.posterior) if source.decoder.product else edge.posterior


cdef int list_forest_base(const TreeSource* source, index_t node, vector[Option]* options) except -1 nogil:
    cdef Option option
    cdef Edge edge
    cdef index_t position
    option.makes_node = True
    for position in range(source.base_start[node], source.base_start[node + 1]):
        edge = source.decoder.edges[0][source.base_edge[position]]
        option.left = option.right = -1
        if edge.left >= 0:
            option.left = find(&source.decoder, edge.start, edge.split, edge.left)
            option.right = find(&source.decoder, edge.split, edge.end, edge.right)
            if option.left < 0 or option.right < 0:
                continue
        option.score = score_of(source, edge)
        options.push_back(option)
    return 0


cdef int list_forest_unary(const TreeSource* source, index_t node, vector[Option]* options) except -1 nogil:
    cdef Option option
    cdef Edge edge
    cdef index_t position
    option.right = -1
    option.makes_node = True
    for position in range(source.unary_start[node], source.unary_start[node + 1]):
        edge = source.decoder.edges[0][source.unary_edge[position]]
        option.left = find(&source.decoder, edge.start, edge.end, edge.left)
        option.score = score_of(source, edge)
        if option.left >= 0:
            options.push_back(option)
    return 0


cdef int list_chart_base(const Cells* cells, index_t node, vector[Option]* options) except -1 nogil:
    cdef const GrammarTable* grammar = cells.grammar
    cdef symbol_t symbol = node % grammar.n_symbols
    cdef index_t cell = node // grammar.n_symbols, rule
    cdef const Slot* left
    cdef const Slot* right
    cdef position_t start = cell // cells.n_rows, end = cell % cells.n_rows, split, low, high
    cdef symbol_t span = span_at(cells.constraints, start, end)
    cdef weight_t value
    cdef Option option
    if span >= 0:
        if state_after(cells.constraints, span, 0, grammar.label[symbol]) != state_of(cells.constraints, span, end):
            return 0
        end = cells.constraints.spans[span].end
    option.left = option.right = -1
    option.makes_node = True
    value = lexical_of(cells, start, symbol) if end == start + 1 else 0.0
    if value > 0.0:
        option.score = log(value)
        options.push_back(option)
    for rule in range(grammar.parent_start[symbol], grammar.parent_start[symbol + 1]):
        left = find_slot(cells, &cells.left, start, grammar.parent_left[rule])
        right = find_slot(cells, &cells.right, end, grammar.parent_right[rule])
        if left == NULL or right == NULL:
            continue
        low = max(start + 1, max(left.low, right.low))
        high = min(end - 1, min(left.high, right.high))
        option.score = log(grammar.parent_weight[rule])
        for split in range(low, high + 1):
            if cells.left.inside[left.base + split] > 0.0 and cells.right.inside[right.base + split] > 0.0:
                option.left = cell_of(cells, start, split) * grammar.n_symbols + grammar.parent_left[rule]
                option.right = cell_of(cells, split, end) * grammar.n_symbols + grammar.parent_right[rule]
                options.push_back(option)
    return 0


cdef int list_chart_unary(const TreeSource* source, index_t node, vector[Option]* options) except -1 nogil:
    cdef const GrammarTable* grammar = source.cells.grammar
    cdef symbol_t symbol = node % grammar.n_symbols
    cdef index_t cell = node // grammar.n_symbols, position
    cdef position_t start = cell // source.cells.n_rows, end = cell % source.cells.n_rows
    cdef Option option
    if span_at(source.cells.constraints, start, end) >= 0:
        return list_constrained_unary(source, symbol, start, end, options)
    option.right = -1
    for position in range(grammar.down.start[symbol], grammar.down.start[symbol + 1]):
        option.left = cell * grammar.n_symbols + grammar.down.other[position]
        option.score = log(grammar.down.weight[position])
        option.makes_node = not grammar.down.is_bridge[position]
        if best_of(source, option.left) > -INFINITY:
            options.push_back(option)
    return 0


cdef int list_constrained_unary(
        const TreeSource* source, symbol_t symbol, position_t start, position_t row,
        vector[Option]* options) except -1 nogil:
    """The same in a state of a constrained span: children stand in the states from which a rule leads there."""
    cdef const Cells* cells = source.cells
    cdef symbol_t span = span_at(cells.constraints, start, row), state = state_of(cells.constraints, span, row)
    cdef symbol_t before, label = cells.grammar.label[symbol]
    cdef index_t position
    cdef Option option
    option.right = -1
    for position in range(cells.grammar.down.start[symbol], cells.grammar.down.start[symbol + 1]):
        option.score = log(cells.grammar.down.weight[position])
        option.makes_node = not cells.grammar.down.is_bridge[position]
        for before in range(state + 1):
            if before != state if not option.makes_node else (
                    state_after(cells.constraints, span, before, label) != state):
                continue
            option.left = cell_of(cells, start, row_of(cells.constraints, span, before)) * (
                cells.grammar.n_symbols) + cells.grammar.down.other[position]
            if best_of(source, option.left) > -INFINITY:
                options.push_back(option)
    return 0
