# Inside and Viterbi values of a sentence.
from tsgkit._chart_cells cimport Cells


cdef int fill_inside(Cells* cells, bint viterbi) except -1 nogil
