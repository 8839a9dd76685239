# Cycles of unary rules and bridges, closed exactly in a cell. With U the one-step weights of a cycle and v the values
# of its members before,
#
#     inside:  (I (+) U (+) U^2 (+) ...) v          outside:  the same with the transpose of U
#
# The closure in brackets comes with the grammar. Where a mask forbids some of the members it does not apply, and single
# steps are repeated until the values converge.
from libc.math cimport fabs

from tsgkit._chart_cells cimport Cells, is_allowed
from tsgkit._grammar_index cimport EdgeTable, GrammarTable
from tsgkit._semiring cimport MaxProduct, SumProduct, plus, semiring_t
from tsgkit._types cimport index_t, symbol_t, weight_t

cdef enum:
    MAX_SWEEPS = 100000


cdef inline void apply_closure(
        Cells* cells, semiring_t* semiring, symbol_t cycle, index_t target_stride,
        index_t source_stride) noexcept nogil:
    """The values after from those before; the strides are those of the closure's matrix or of its transpose."""
    cdef const weight_t* closure = semiring.closures + cells.grammar.cycle_matrix[cycle]
    cdef index_t size = cells.grammar.cycle_size[cycle], target, source
    cdef weight_t value
    for target in range(size):
        value = 0.0
        for source in range(size):
            value = plus(
                semiring, value, closure[target * target_stride + source * source_stride] * cells.cycle_before[source])
        cells.cycle_after[target] = value


cdef inline void iterate_cycle(
        Cells* cells, semiring_t* semiring, symbol_t cycle, index_t cell, const EdgeTable* edges) noexcept nogil:
    """The same where some members are forbidden; `edges` lead from where a value goes to where it comes from."""
    cdef symbol_t first = cells.grammar.cycle_first[cycle], size = cells.grammar.cycle_size[cycle], row, other
    cdef index_t edge
    cdef weight_t value, change
    cdef int _sweep
    for row in range(size):
        cells.cycle_after[row] = cells.cycle_before[row]
    for _sweep in range(MAX_SWEEPS):
        change = 0.0
        for row in range(size):
            if not is_allowed(cells, cell, first + row):
                continue
            value = cells.cycle_before[row]
            for edge in range(edges.start[first + row], edges.start[first + row + 1]):
                other = edges.other[edge] - first
                if 0 <= other < size:
                    value = plus(semiring, value, edges.weight[edge] * cells.cycle_after[other])
            if value > 0.0:
                change = max(change, fabs(value - cells.cycle_after[row]) / value)
            cells.cycle_after[row] = value
        if change <= 1e-15:   # the rounding of floats
            return
