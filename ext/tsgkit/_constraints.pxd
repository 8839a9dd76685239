# Spans that must have nodes with given labels, as tables that the kernels of the chart read.
#
# A derivation has a path of nodes over every constrained span: a binary rule or a word at the bottom, unary rules above
# it. The path is read from the bottom up by an automaton, one per span: in state s, the s innermost of the labels that
# are asked for have been found. Values of a cell are kept by state. Those of the last state, in which everything was
# found, lie where the values of the span always do; those of state s before it lie in a *pending* cell, which has the
# same start and an end behind the sentence, so that no rule takes it for a child. A span whose cell crosses a
# constrained one stays empty.
from libcpp.vector cimport vector

from tsgkit._grammar_index cimport GrammarIndex
from tsgkit._types cimport index_t, position_t, symbol_t

cdef enum:
    FREE = -1
    CROSSING = -2


cdef struct ConstrainedSpan:
    position_t start
    position_t end
    symbol_t n_pending                   # states before the last
    position_t first_row                 # the end of the pending cell of state 0; those of the other states follow
    index_t first_entry                  # where its automaton begins in `next_state`


cdef cppclass ConstraintTable:
    position_t n_rows                    # positions of the sentence, then the ends of pending cells
    symbol_t n_labels                    # of the grammar, symbols without a label included
    symbol_t n_states                    # the most that a span has
    vector[ConstrainedSpan] spans
    vector[symbol_t] span_of_cell        # per cell: its constrained span, FREE or CROSSING
    vector[symbol_t] next_state          # per span: [state, label of a node] -> the state after it
    vector[position_t] end_of_row        # per position: where a span ends whose cell has this end


cdef class Constraints:
    cdef ConstraintTable table
    cdef readonly GrammarIndex grammar
    cdef readonly position_t n_words

    cdef int add_span(self, position_t start, position_t end, position_t n_before, automaton) except -1
    cdef int fill_cells(self, position_t n_rows) except -1


cdef inline symbol_t state_after(
        const ConstraintTable* table, symbol_t span, symbol_t state, symbol_t label) noexcept nogil:
    """The state of a path with one more node on top."""
    return table.next_state[table.spans[span].first_entry + state * table.n_labels + label]


cdef inline position_t row_of(const ConstraintTable* table, symbol_t span, symbol_t state) noexcept nogil:
    """The end of the cell that holds the values of a state."""
    cdef const ConstrainedSpan* where = &table.spans[span]
    return where.end if state == where.n_pending else where.first_row + state


cdef inline symbol_t state_of(const ConstraintTable* table, symbol_t span, position_t row) noexcept nogil:
    cdef const ConstrainedSpan* where = &table.spans[span]
    return where.n_pending if row == where.end else row - where.first_row


cdef inline symbol_t span_at(const ConstraintTable* table, position_t start, position_t end) noexcept nogil:
    """The constrained span of a cell, pending ones included; FREE or CROSSING if there is none."""
    return FREE if table == NULL else table.span_of_cell[<index_t>start * table.n_rows + end]


cdef inline symbol_t label_code(
        const ConstraintTable* table, symbol_t span, symbol_t state, symbol_t label, symbol_t n_labels) noexcept nogil:
    """The number of a label in a forest, where every state but the last has labels of its own."""
    return label if state == table.spans[span].n_pending else label + (state + 1) * n_labels
