"""Brackets that all trees of a sentence must have, checked, as the chart reads them.

From spans with labels to the automata of `_constraints.pxd`. With ``s`` the number of the labels of a span that were
found from the bottom up, and ``A -> ...`` the next node over the same span,

    s' = s + 1 if A is the label s + 1 of the span, else s

and a derivation counts only if the path over every constrained span ends in its last state: the chart then has the
values of the derivations whose trees have all brackets, and no others.
"""

import numpy as np

cimport cython

from tsgkit._grammar_index cimport GrammarIndex
from tsgkit._types cimport index_t, position_t, symbol_t

MAX_STATES = 1 << 12


@cython.final
cdef class Constraints:
    """Constrained spans of a sentence, for one grammar.

    Parameters
    ----------
    grammar : GrammarIndex
    n_words : int
    spans : sequence of (int, int)
        Start and end; no two are equal, and no two cross.
    automata : sequence of array of int32
        One per span, by state and label of the treebank: the state of a path with a node of this label on top. The
        last state is never left, and no state is smaller than the one before.
    """

    def __init__(self, GrammarIndex grammar not None, position_t n_words, spans, automata):
        self.grammar, self.n_words = grammar, n_words
        if n_words < 1 or len(spans) != len(automata):
            raise ValueError(f"{n_words} words, {len(spans)} spans, {len(automata)} automata")
        n_pending = 0
        for (start, end), automaton in zip(spans, automata, strict=True):
            self.add_span(start, end, n_pending, np.ascontiguousarray(automaton, dtype=np.int32))
            n_pending += len(automaton) - 1
        if n_pending > MAX_STATES:
            raise ValueError(f"{n_pending} brackets: at most {MAX_STATES} are possible")
        self.fill_cells(n_words + 1 + n_pending)

    cdef int add_span(self, position_t start, position_t end, position_t n_before, automaton) except -1:
        cdef ConstrainedSpan span
        cdef symbol_t value
        n_states, n_labels = automaton.shape
        states = np.arange(n_states)[:, None]
        if not 0 <= start < end <= self.n_words:
            raise ValueError(f"span {start}..{end} is out of range: there are {self.n_words} words")
        if n_labels != self.grammar.n_labels or not n_states or (automaton < states).any() or (
                automaton >= n_states).any():
            raise ValueError(f"the automaton of span {start}..{end} does not fit")
        span.start, span.end, span.n_pending = start, end, n_states - 1
        span.first_row, span.first_entry = self.n_words + 1 + n_before, self.table.next_state.size()
        self.table.spans.push_back(span)
        self.table.n_labels = self.grammar.table.n_labels
        self.table.n_states = max(self.table.n_states, <symbol_t>n_states)
        # A symbol without a label makes no node.
        n_unlabelled = self.table.n_labels - n_labels
        for value in np.concatenate([automaton, np.repeat(states, n_unlabelled, axis=1)], axis=1).ravel():
            self.table.next_state.push_back(value)
        return 0

    cdef int fill_cells(self, position_t n_rows) except -1:
        cdef index_t number
        cdef position_t row, start, end, state
        cdef ConstrainedSpan span
        self.table.n_rows = n_rows
        self.table.span_of_cell.resize(<index_t>n_rows * n_rows, FREE)
        self.table.end_of_row.resize(n_rows)
        for row in range(n_rows):
            self.table.end_of_row[row] = row
        for number in range(<index_t>self.table.spans.size()):
            span = self.table.spans[number]
            for start in range(span.end):
                for end in range(max(start, span.start) + 1, self.n_words + 1):
                    if (start < span.start < end < span.end) or (span.start < start < span.end < end):
                        self.table.span_of_cell[start * <index_t>n_rows + end] = CROSSING
        for number in range(<index_t>self.table.spans.size()):
            span = self.table.spans[number]
            if self.table.span_of_cell[span.start * <index_t>n_rows + span.end] != FREE:
                raise ValueError(f"span {span.start}..{span.end} crosses another, or is given twice")
            for state in range(span.n_pending + 1):
                row = span.end if state == span.n_pending else span.first_row + state
                self.table.span_of_cell[span.start * <index_t>n_rows + row] = number
                self.table.end_of_row[row] = span.end
        return 0

    @property
    def n_states(self):
        """The most states that the automaton of a span has."""
        return self.table.n_states

    @property
    def n_rows(self):
        """The positions of the sentence and the pending cells."""
        return self.table.n_rows
