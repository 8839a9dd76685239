# What connects the charts of a coarse-to-fine cascade: the mask that one leaves, and the projection of the next to it.
from tsgkit._chart_cells cimport Cells, MaskTable, ProjectionTable
from tsgkit._grammar_index cimport GrammarIndex
from tsgkit._types cimport position_t


cdef class Mask:
    cdef readonly GrammarIndex grammar   # of the coarse chart
    cdef readonly position_t n_words
    cdef readonly position_t n_rows      # positions of the sentence and pending cells
    cdef MaskTable table


cdef class Projection:
    cdef readonly GrammarIndex fine
    cdef readonly GrammarIndex coarse
    cdef ProjectionTable table


cdef Mask mask_of(GrammarIndex grammar, const Cells* cells, bint viterbi, double threshold, bint symbols)
