"""Derivations out of a chart: the best one, the k best, and exact samples.

From the values of a chart to rows ``(symbol, start, end, kind)`` in the order of a walk from the root down, left to
right; ``tsgkit._codes`` has the kinds. A derivation weighs the product of its rules' weights; a sample has that weight
over the chart's total as its probability.

No back pointers are kept: at every node the choices that make its value are computed again, which costs little
because only the nodes of the wanted derivations are visited. The k best follow Huang & Chiang (2005), algorithm 3: a
node's next best derivation is looked for only when somebody asks for it.
"""

import numpy as np

from libc.math cimport log
from libcpp.algorithm cimport pop_heap, push_heap
from libcpp.deque cimport deque
from libcpp.unordered_map cimport unordered_map
from libcpp.utility cimport pair
from libcpp.vector cimport vector

from tsgkit._chart cimport Chart
from tsgkit._chart_cells cimport Cells, cell_of, inside_of, lexical_of, slots_at
from tsgkit._codes cimport BINARY, BRIDGE, LEXICAL, N_ROW_COLUMNS, ROW_END, ROW_KIND, ROW_LABEL, ROW_START, UNARY
from tsgkit._grammar_index cimport GrammarTable
from tsgkit._random cimport bitgen_of, bitgen_t, uniform
from tsgkit._types cimport index_t, position_t, symbol_t, weight_t


cdef struct Choice:
    # A rule that makes a node, and its children.
    int kind
    symbol_t left         # the only child of a unary rule or bridge
    symbol_t right
    position_t split
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
    cdef Choice choice
    cdef index_t edge
    choices.clear()
    choice.left = choice.right = choice.split = -1
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


cdef int list_binary_choices(const Cells* cells, Node node, vector[Choice]* choices) except -1 nogil:
    cdef const GrammarTable* grammar = cells.grammar
    cdef const symbol_t* left_slots = slots_at(cells, &cells.left, node.start)
    cdef const symbol_t* right_slots = slots_at(cells, &cells.right, node.end)
    cdef Choice choice
    cdef index_t rule, left, right
    cdef position_t low, high
    choice.kind = BINARY
    for rule in range(grammar.parent_start[node.symbol], grammar.parent_start[node.symbol + 1]):
        left, right = left_slots[grammar.parent_left[rule]], right_slots[grammar.parent_right[rule]]
        if left < 0 or right < 0:
            continue
        low = max(node.start + 1, max(cells.left.low[left], cells.right.low[right]))
        high = min(node.end - 1, min(cells.left.high[left], cells.right.high[right]))
        choice.left, choice.right = grammar.parent_left[rule], grammar.parent_right[rule]
        choice.weight = grammar.parent_weight[rule]
        for choice.split in range(low, high + 1):
            # In the order of the chart, so that a node with a value has a choice with a value.
            choice.value = choice.weight * (
                cells.left.inside[left * cells.stride + choice.split]
                * cells.right.inside[right * cells.stride + choice.split])
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
    return node_of(choice.left, node.start, choice.split if choice.kind == BINARY else node.end)


cdef Node right_child(Node node, Choice choice) noexcept nogil:
    return node_of(choice.right, choice.split, node.end)


cdef int walk(
        const Cells* cells, Node top, bitgen_t* generator, vector[Visited]* visited,
        double* log_weight) except -1 nogil:
    """Go down from a node, everywhere by the best choice or, with a generator, by a drawn one.

    `log_weight` becomes the log of the product of the rules' weights, scaled as the chart's values are.
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
        list_choices(cells, visit.node, &choices)
        choice = choices[drawn_choice(&choices, generator) if generator != NULL else best_choice(&choices)]
        visit.kind = choice.kind
        visited.push_back(visit)
        log_weight[0] += log(choice.weight)
        if choice.kind == BINARY:
            waiting.push_back(right_child(visit.node, choice))
        if choice.kind != LEXICAL:
            waiting.push_back(left_child(visit.node, choice))
    return 0


cdef object rows_of(Chart chart, const vector[Visited]* visited):
    rows = np.empty((visited.size(), N_ROW_COLUMNS), dtype=np.int32)
    cdef symbol_t[:, ::1] view = rows
    cdef index_t row
    for row in range(<index_t>visited.size()):
        view[row, ROW_LABEL] = chart.grammar.table.symbol_of[visited[0][row].node.symbol]
        view[row, ROW_START] = visited[0][row].node.start
        view[row, ROW_END] = visited[0][row].node.end
        view[row, ROW_KIND] = visited[0][row].kind
    return rows


cdef int require_derivation(Chart chart, bint viterbi) except -1:
    if chart.cells.total <= 0.0 or chart.cells.is_over_budget:
        raise ValueError("the chart holds no derivation")
    if viterbi != chart.is_viterbi:
        raise ValueError("the chart has Viterbi values" if chart.is_viterbi else "the chart has no Viterbi values")
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
    cdef Node top = node_of(chart.grammar.rank_of_symbol[symbol], start, end)
    if chart.cells.is_over_budget or inside_of(&chart.cells, start, end, top.symbol) <= 0.0:
        raise ValueError("the chart holds no derivation of it")
    cdef vector[Visited] visited
    cdef double log_weight
    with nogil:
        walk(&chart.cells, top, NULL, &visited, &log_weight)
    return rows_of(chart, &visited), log_weight - (chart.scale_prefix[end] - chart.scale_prefix[start])


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
    """
    require_derivation(chart, False)
    cdef vector[Visited] visited
    cdef bitgen_t* generator = bitgen_of(bit_generator)
    cdef Node root = node_of(chart.grammar.table.root, 0, chart.cells.n_words)
    cdef double log_weight
    cdef index_t _sample
    drawn = []
    with bit_generator.lock:
        for _sample in range(n_samples):
            with nogil:
                walk(&chart.cells, root, generator, &visited, &log_weight)
            drawn.append((rows_of(chart, &visited), log_weight - chart.scale_prefix[chart.cells.n_words]))
    return drawn


# ---- the k best ------------------------------------------------------------------------------------------

cdef struct Candidate:
    # A choice at a node together with which derivations of its children: number 0 is the best.
    weight_t value
    index_t choice
    index_t left_number
    index_t right_number


cdef bint is_worse(const Candidate& one, const Candidate& other) noexcept nogil:
    # Ties go to the choice that is listed first, so that the order is always the same.
    if one.value != other.value:
        return one.value < other.value
    if one.choice != other.choice:
        return one.choice > other.choice
    if one.left_number != other.left_number:
        return one.left_number > other.left_number
    return one.right_number > other.right_number


cdef struct Ranking:
    # The derivations of a node found so far, best first, and the candidates for the next.
    Node node
    bint is_open
    vector[Choice] choices
    vector[Candidate] found
    vector[Candidate] candidates


cdef class KBest:
    """The derivations of a chart with Viterbi values, best first, each computed when it is asked for."""

    cdef Chart chart
    cdef index_t n_fills                 # of the chart when the first derivation was asked for
    cdef deque[Ranking] rankings
    cdef unordered_map[index_t, index_t] number_of_node

    def __init__(self, Chart chart not None):
        require_derivation(chart, True)
        self.chart, self.n_fills = chart, chart.n_fills

    cdef Ranking* ranking(self, Node node) except NULL nogil:
        cdef const Cells* cells = &self.chart.cells
        cdef index_t key = cell_of(cells, node.start, node.end) * cells.grammar.n_symbols + node.symbol
        cdef pair[index_t, index_t] entry
        cdef Ranking fresh
        entry.first, entry.second = key, self.rankings.size()
        if self.number_of_node.count(key) == 0:
            fresh.node, fresh.is_open = node, False
            self.rankings.push_back(fresh)
            self.number_of_node.insert(entry)
        return &self.rankings[self.number_of_node.at(key)]

    cdef int open_ranking(self, Ranking* ranking) except -1 nogil:
        cdef Candidate candidate
        cdef index_t choice
        list_choices(&self.chart.cells, ranking.node, &ranking.choices)
        for choice in range(<index_t>ranking.choices.size()):
            candidate.value, candidate.choice = ranking.choices[choice].value, choice
            candidate.left_number = candidate.right_number = 0
            self.push(ranking, candidate)
        ranking.is_open = True
        return 0

    cdef int push(self, Ranking* ranking, Candidate candidate) except -1 nogil:
        ranking.candidates.push_back(candidate)
        push_heap(ranking.candidates.begin(), ranking.candidates.end(), &is_worse)
        return 0

    cdef int pop(self, Ranking* ranking) except -1 nogil:
        """Move the best of the candidates to the derivations that were found."""
        pop_heap(ranking.candidates.begin(), ranking.candidates.end(), &is_worse)
        ranking.found.push_back(ranking.candidates.back())
        ranking.candidates.pop_back()
        return 0

    cdef weight_t value_of(self, Node node, index_t number) except -1 nogil:
        """The value of a node's derivation of this number; 0 if it has not so many."""
        cdef Ranking* ranking
        if number == 0:
            return inside_of(&self.chart.cells, node.start, node.end, node.symbol)
        ranking = self.ranking(node)
        if not ranking.is_open:
            self.open_ranking(ranking)
        while <index_t>ranking.found.size() <= number:
            if not ranking.found.empty():
                self.push_successors(ranking, ranking.found.back())
            if ranking.candidates.empty():
                return 0.0
            self.pop(ranking)
        return ranking.found[number].value

    cdef int push_successors(self, Ranking* ranking, Candidate last) except -1 nogil:
        """The candidates that come after `last`: the next derivation of one of its children.

        The right child moves on only while the left one is at its best, so that every combination has
        exactly one predecessor.
        """
        cdef Choice choice = ranking.choices[last.choice]
        if choice.kind == LEXICAL:
            return 0
        self.push_successor(ranking, last.choice, last.left_number + 1, last.right_number)
        if choice.kind == BINARY and last.left_number == 0:
            self.push_successor(ranking, last.choice, 0, last.right_number + 1)
        return 0

    cdef int push_successor(self, Ranking* ranking, index_t number, index_t left, index_t right) except -1 nogil:
        """A choice with these derivations of its children, if they exist."""
        cdef Choice choice = ranking.choices[number]
        cdef Candidate candidate
        candidate.choice, candidate.left_number, candidate.right_number = number, left, right
        candidate.value = choice.weight * self.value_of(left_child(ranking.node, choice), left)
        if choice.kind == BINARY and candidate.value > 0.0:
            candidate.value *= self.value_of(right_child(ranking.node, choice), right)
        if candidate.value > 0.0:
            self.push(ranking, candidate)
        return 0

    cdef int unfold(self, index_t number, vector[Visited]* visited, double* log_weight) except -1 nogil:
        """The root's derivation of this number, node by node, and its scaled log weight."""
        cdef vector[Node] waiting
        cdef vector[index_t] numbers
        cdef Visited visit
        cdef Ranking* ranking
        cdef Candidate found
        cdef Choice choice
        cdef index_t wanted
        log_weight[0] = 0.0
        visited.clear()
        waiting.push_back(node_of(self.chart.grammar.table.root, 0, self.chart.cells.n_words))
        numbers.push_back(number)
        while not waiting.empty():
            visit.node, wanted = waiting.back(), numbers.back()
            waiting.pop_back()
            numbers.pop_back()
            ranking = self.ranking(visit.node)
            if ranking.found.empty():
                # Nobody asked for more than the best of this node yet.
                if not ranking.is_open:
                    self.open_ranking(ranking)
                self.pop(ranking)
            found = ranking.found[wanted]
            choice = ranking.choices[found.choice]
            visit.kind = choice.kind
            visited.push_back(visit)
            log_weight[0] += log(choice.weight)
            if choice.kind == BINARY:
                waiting.push_back(right_child(visit.node, choice))
                numbers.push_back(found.right_number)
            if choice.kind != LEXICAL:
                waiting.push_back(left_child(visit.node, choice))
                numbers.push_back(found.left_number)
        return 0

    def derivation(self, index_t number):
        """The derivation of this number, counted from 0: its rows and its log weight; None past the last.

        Numbers must be asked for in order.
        """
        if number < 0:
            raise ValueError(f"there is no derivation {number}")
        if self.n_fills != self.chart.n_fills:
            raise ValueError("the chart holds another sentence by now")
        cdef vector[Visited] visited
        cdef double log_weight = 0.0
        cdef weight_t value
        cdef Node root = node_of(self.chart.grammar.table.root, 0, self.chart.cells.n_words)
        try:
            with nogil:
                value = self.value_of(root, number)
                if value > 0.0:
                    self.unfold(number, &visited, &log_weight)
        except MemoryError:
            # Some of it may be incomplete: it is found again when it is asked for.
            self.rankings.clear()
            self.number_of_node.clear()
            raise
        if value <= 0.0:
            return None
        return rows_of(self.chart, &visited), log_weight - self.chart.scale_prefix[self.chart.cells.n_words]
