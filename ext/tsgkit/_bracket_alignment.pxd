# The words of two trees aligned, with those deleted in both that the gold tags delete.
from libcpp.vector cimport vector

from tsgkit._bracket_trees cimport Text, TextPair, TreeReader


cdef bint are_equal_words(const vector[TextPair]& pairs, Text gold, Text test) noexcept nogil
cdef int align_words(TreeReader gold, TreeReader test, const vector[TextPair]& equal_words) except -1 nogil
