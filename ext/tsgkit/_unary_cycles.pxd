# Cycles of unary rules and bridges, closed exactly in a cell. With U the one-step weights of a cycle and v the values
# of its members before,
#
#     inside:  (I (+) U (+) U^2 (+) ...) v          outside:  the same with the transpose of U
#
# The closure in brackets comes with the grammar. Where a mask forbids some of the members, or a constraint some of the
# steps, it does not apply. Single
# steps are then repeated until the values converge; sums that have not after `MAX_SWEEPS` of them come from the
# equations x = v + U x by elimination, whose cost does not depend on the weights. The best paths converge after as
# many steps as there are members.
from libc.math cimport fabs

from tsgkit._chart_cells cimport Cells, is_allowed, keeps_state
from tsgkit._grammar_index cimport EdgeTable, GrammarTable
from tsgkit._semiring cimport MaxProduct, SumProduct, plus, semiring_t
from tsgkit._types cimport index_t, symbol_t, weight_t
from tsgkit._work_limit cimport Limits, check_limit

cdef enum:
    MAX_SWEEPS = 200


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


cdef inline int close_allowed(
        Cells* cells, semiring_t* semiring, symbol_t cycle, index_t cell, const EdgeTable* edges) except -1 nogil:
    """The same where some members are forbidden; `edges` lead from where a value goes to where it comes from."""
    cdef symbol_t first = cells.grammar.cycle_first[cycle], size = cells.grammar.cycle_size[cycle], row
    cdef index_t _sweep, n_sweeps = MAX_SWEEPS
    cells.cycle_members.clear()
    for row in range(size):
        cells.cycle_after[row] = cells.cycle_before[row]
        if is_allowed(cells, cell, first + row):
            cells.cycle_members.push_back(row)
    if semiring_t is MaxProduct:
        n_sweeps = <index_t>cells.cycle_members.size() + 1
    for _sweep in range(n_sweeps):
        if sweep_cycle(cells, semiring, first, size, edges) <= 1e-15:   # the rounding of floats
            return 0
        check_limit(cells.limits)
    if semiring_t is SumProduct:
        eliminate_cycle(cells, first, size, edges)
    return 0


cdef inline bint is_step(const Cells* cells, const EdgeTable* edges, index_t edge, symbol_t target) noexcept nogil:
    """Whether a value may go along an edge: with a constraint, not where the parent enters another state."""
    cdef symbol_t parent = target if edges == &cells.grammar.down else edges.other[edge]
    return keeps_state(cells, parent, edges.is_bridge[edge])


cdef inline weight_t sweep_cycle(
        Cells* cells, semiring_t* semiring, symbol_t first, symbol_t size, const EdgeTable* edges) noexcept nogil:
    """One step from every allowed member; returns the largest relative change of a value."""
    cdef index_t position, edge
    cdef symbol_t row, other
    cdef weight_t value, change = 0.0
    for position in range(<index_t>cells.cycle_members.size()):
        row = cells.cycle_members[position]
        value = cells.cycle_before[row]
        for edge in range(edges.start[first + row], edges.start[first + row + 1]):
            other = edges.other[edge] - first
            if 0 <= other < size and is_step(cells, edges, edge, first + row):
                value = plus(semiring, value, edges.weight[edge] * cells.cycle_after[other])
        if value > 0.0:
            change = max(change, fabs(value - cells.cycle_after[row]) / value)
        cells.cycle_after[row] = value
    return change


cdef inline int eliminate_cycle(Cells* cells, symbol_t first, symbol_t size, const EdgeTable* edges) except -1 nogil:
    """Solve x = v + U x for the allowed members."""
    cdef index_t n = cells.cycle_members.size(), row, edge
    cdef symbol_t member, other
    cdef weight_t value
    cells.cycle_matrix.clear()
    cells.cycle_matrix.resize(n * n, 0.0)
    for row in range(n):
        cells.cycle_place[cells.cycle_members[row]] = row
    for row in range(n):
        member = cells.cycle_members[row]
        cells.cycle_after[row] = cells.cycle_before[member]
        for edge in range(edges.start[first + member], edges.start[first + member + 1]):
            other = edges.other[edge] - first
            if 0 <= other < size and cells.cycle_place[other] >= 0 and is_step(cells, edges, edge, first + member):
                cells.cycle_matrix[row * n + cells.cycle_place[other]] += edges.weight[edge]
    eliminate(cells.cycle_matrix.data(), cells.cycle_after.data(), n, cells.limits)
    # Back to the places of the members, the last first, because places only grow.
    for row in range(n - 1, -1, -1):
        member = cells.cycle_members[row]
        value = cells.cycle_after[row]
        cells.cycle_after[row] = 0.0
        cells.cycle_after[member] = value
        cells.cycle_place[member] = -1
    return 0


cdef inline int eliminate(weight_t* matrix, weight_t* values, index_t n, Limits* limits) except -1 nogil:
    """Solve x = v + U x: `values` holds v and becomes x; the matrix is destroyed.

    Members leave one after the other, and paths through one become steps between those that are left. Nothing but
    positive numbers is added, so that small values beside large ones stay exact.
    """
    cdef index_t row, column, pivot
    cdef weight_t factor, loss
    for pivot in range(n):
        check_limit(limits)
        loss = 1.0 - matrix[pivot * n + pivot]
        for row in range(pivot + 1, n):
            factor = matrix[row * n + pivot] / loss
            if factor > 0.0:
                values[row] += factor * values[pivot]
                for column in range(pivot + 1, n):
                    matrix[row * n + column] += factor * matrix[pivot * n + column]
    for pivot in range(n - 1, -1, -1):
        for column in range(pivot + 1, n):
            values[pivot] += matrix[pivot * n + column] * values[column]
        values[pivot] /= 1.0 - matrix[pivot * n + pivot]
    return 0
