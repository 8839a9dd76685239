# Outside values and max-marginals of a sentence.
from tsgkit._chart_cells cimport Cells


cdef int fill_outside(Cells* cells, bint viterbi) except -1 nogil
