# The brackets of two trees over the same words: which match, which labels are confused, which brackets cross.
cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from tsgkit._bracket_trees cimport Bracket, Labels, TreeReader
from tsgkit._types cimport position_t, symbol_t


cdef struct LabelCounts:
    int64_t gold
    int64_t test
    int64_t matched_gold
    int64_t matched_test


cdef struct Span:
    position_t start
    position_t end


@cython.final
cdef class BracketMatcher:
    cdef Labels labels
    cdef bint is_labelled                            # whether labels must match, or spans alone
    cdef vector[Bracket] gold                        # that count, by start; of those with one start the longest first
    cdef vector[Bracket] test
    cdef bint is_valid                               # the sentence: both trees are well-formed
    cdef position_t n_matched
    cdef vector[uint8_t] is_matched                  # by test bracket
    # Sums over the valid sentences.
    cdef vector[LabelCounts] label_counts            # by bare label
    cdef unordered_map[uint64_t, int64_t] confusions   # gold label << 32 | test label -> brackets with the same span

    # Scratch, kept between sentences so that nothing is allocated for most of them.
    cdef vector[position_t] first_of_label           # the first free test bracket of a label, or NONE, as between spans
    cdef vector[position_t] next_of_label            # of a test bracket: the next free one of its label, or NONE
    cdef vector[symbol_t] unmatched_gold             # labels
    cdef vector[uint8_t] is_crossing                 # by test bracket
    cdef vector[position_t] ends                     # a heap, least first
    cdef vector[Span] front

    cdef int take_gold(self, TreeReader tree) except -1 nogil
    cdef int take_test(self, TreeReader tree) except -1 nogil
    cdef int keep_counted(self, vector[Bracket]* brackets, vector[Bracket]* kept) except -1 nogil

    cdef int match(self, bint is_valid) except -1 nogil
    cdef void count_labels(self) noexcept nogil
    cdef void add_match(self, position_t gold, position_t test) noexcept nogil
    cdef int match_span(
        self, position_t gold_start, position_t gold_end, position_t test_start, position_t test_end
    ) except -1 nogil
    cdef symbol_t label_to_match(self, Bracket bracket) noexcept nogil
    cdef position_t take_first(self, symbol_t label) noexcept nogil
    cdef int count_confusions(self, position_t test_start, position_t test_end) except -1 nogil

    cdef position_t count_crossing(self) except -1 nogil
    cdef int mark_overlaps_from_left(self) except -1 nogil
    cdef int mark_overlaps_from_right(self) except -1 nogil
