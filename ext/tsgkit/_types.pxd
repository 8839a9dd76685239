# The widths of all numbers that compiled modules share.
from libc.stdint cimport int32_t, int64_t, uint64_t

ctypedef int32_t symbol_t    # a grammar symbol, a label, a word: anything that is numbered from 0
ctypedef int32_t position_t  # a place between words, 0 .. length of the sentence
ctypedef int64_t index_t     # into arrays of rules, slots and cells
ctypedef double weight_t     # a rule weight or a scaled inside or outside value
ctypedef uint64_t bits_t     # 64 flags
