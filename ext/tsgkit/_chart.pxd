# The chart of one sentence, one after the other, as Python sees it.
from libcpp.vector cimport vector

from tsgkit._cell_closing cimport OpenCells
from tsgkit._chart_cells cimport Cells
from tsgkit._constraints cimport Constraints
from tsgkit._grammar_index cimport GrammarIndex
from tsgkit._pruning cimport Mask, Projection
from tsgkit._types cimport index_t
from tsgkit._work_limit cimport WorkLimit


cdef class Chart:
    cdef Cells cells                     # what the kernels read and write
    cdef readonly GrammarIndex grammar
    cdef readonly bint is_viterbi        # best derivation instead of sum over derivations
    cdef readonly bint has_outside
    cdef readonly index_t n_fills        # how many sentences were here; tells that a chart has changed
    cdef readonly double log_total       # log of the root's value, scaling removed; -inf: no derivation
    cdef vector[double] scale_prefix     # log of the scale factors of the words before a position
    cdef Mask mask                       # these keep what the cells point to
    cdef Projection projection
    cdef OpenCells open_cells
    cdef readonly Constraints constraints  # of the last sentence, or None
    cdef WorkLimit work_limit

    cdef int require_plain_cells(self) except -1
