# Lines of brackets as arrays, read as EVALB reads them, and the table of their labels.
# No text is copied: a Text points into the contents of a file or into an encoded parameter, which the classes below
# keep alive.
cimport cython
from libc.stdint cimport uint64_t
from libc.string cimport memcmp
from libcpp.vector cimport vector

from tsgkit._types cimport index_t, position_t, symbol_t

cdef enum:
    NONE = -1


cdef struct Text:
    const char* start
    index_t n_bytes


cdef struct TextPair:
    Text left
    Text right


cdef enum ProblemKind:
    UNCLOSED            # brackets that the line never closes
    EXTRA_CLOSE         # a closing bracket too many
    STRAY_TEXT          # text that is not the word of a tag; EVALB never gets past it
    LENGTH_DIFFERS
    WORD_DIFFERS
    GOLD_LONGER         # more lines than the test file
    TEST_LONGER


cdef struct Label:
    Text text
    uint64_t key              # a number made of its bytes, to find it by
    symbol_t bare             # without function tags, that is, up to the first - or =: the label of a bracket
    symbol_t first_equal      # into Labels.equal, or NONE
    bint deletes_word         # as a tag
    bint deletes_bracket      # as a bare label
    bint ignored_for_length
    bint may_be_quote


cdef struct EqualLabel:
    # A label that matches another, and the next one that does (into Labels.equal, or NONE).
    symbol_t label
    symbol_t next


@cython.final
cdef class Labels:
    # The labels and tags seen so far, as small integers, with what the parameters say about each.
    cdef vector[Label] table
    cdef vector[EqualLabel] equal
    cdef vector[symbol_t] slots            # hash table, open addressing: a power of two, at most half full
    cdef vector[Text] delete_labels
    cdef vector[Text] delete_labels_for_length
    cdef vector[Text] quote_labels
    cdef list encoded                      # what the texts of the parameters point into

    cdef symbol_t intern(self, Text text) except -1 nogil
    cdef bint contains(self, Text text) noexcept nogil
    cdef symbol_t add(self, Text text, uint64_t key) except -1 nogil
    cdef int give_slot(self) except -1 nogil
    cdef int set_equal(self, symbol_t label, symbol_t other) except -1 nogil
    cdef bint is_bracket_deleted(self, symbol_t label) noexcept nogil


cdef struct Word:
    Text text
    symbol_t tag


cdef struct Bracket:
    position_t start
    position_t end            # NONE while it is open, and for good if the line never closes it
    symbol_t label            # bare
    position_t parent         # into TreeReader.brackets, or NONE


cdef struct Quote:
    # A quotation mark, deleted or not, with what is needed to restore it among the words.
    Word word
    position_t index          # of the word that it is, or would be
    position_t next_bracket   # this bracket and those after it open after the mark
    position_t parent         # the innermost bracket around it


cdef struct SyntaxProblem:
    ProblemKind kind
    index_t column            # in characters of UTF-8, from 1
    Text text                 # the stray text, or empty


@cython.final
cdef class TreeReader:
    # A file in memory, and the tree on its current line.
    cdef Labels labels
    cdef bytes content
    cdef const char* position              # of what is not yet read
    cdef const char* end
    cdef bint has_nul
    cdef const char* line_start
    cdef const char* line_end

    cdef vector[Word] words                # those that are not deleted
    cdef vector[Bracket] brackets          # in the order in which they open
    cdef vector[Quote] quotes
    cdef vector[SyntaxProblem] problems
    cdef position_t length                 # in words, as the parameters count them
    cdef vector[position_t] deleted        # the numbers of the deleted words, counted with these
    cdef bint keeps_all                    # while the line is read with all its words

    cdef position_t innermost              # open bracket, or NONE
    cdef const char* counted               # up to here the line has column - 1 characters
    cdef index_t column

    cdef int next_line(self) except -1 nogil
    cdef int read_tree(self) except -1 nogil
    cdef int read_all_words(self) except -1 nogil
    cdef const char* read_open(self, const char* position) except NULL nogil
    cdef int add_word(self, Text text, symbol_t tag) except -1 nogil
    cdef Text text_between(self, const char* start, const char* end) noexcept nogil
    cdef int report(self, ProblemKind kind, const char* position, Text text) except -1 nogil
    cdef position_t first_quote_at(self, position_t index) noexcept nogil
    cdef int restore_quote(self, position_t quote) except -1 nogil


cdef Text encode(str text, list encoded) except *
cdef int repair_quotes(TreeReader gold, TreeReader test) except -1 nogil


cdef inline bint same_text(Text left, Text right) noexcept nogil:
    return left.n_bytes == right.n_bytes and memcmp(left.start, right.start, left.n_bytes) == 0


cdef inline bint labels_match(Labels labels, symbol_t left, symbol_t right) noexcept nogil:
    """Whether two labels or tags are the same or declared equal (EQ_LABEL), which is not transitive."""
    cdef symbol_t link
    if left == right:
        return True
    link = labels.table[left].first_equal
    while link != NONE:
        if labels.equal[link].label == right:
            return True
        link = labels.equal[link].next
    return False
