"""Lines of brackets as arrays, read as EVALB reads them; the table of their labels.

Last stage of the flow: trees again -> a score. `_brackets` compares what is read here. A line is read from left to
right, once, with a pointer to the innermost open bracket instead of recursion:

* ``(TAG word)`` is a word. It is left out if TAG is a DELETE_LABEL; it counts for the length of the sentence unless
  TAG is a DELETE_LABEL_FOR_LENGTH; it is remembered as a quotation mark if TAG is a QUOTE_LABEL and the word is one.
* Any other ``(LABEL`` opens a bracket at the current number of words, ``)`` closes the innermost one.
* Everything else is a problem of the line, and reading goes on behind it, so that any bytes can be read.
"""

cimport cython
from libc.stdint cimport INT32_MAX, uint8_t, uint64_t
from libc.string cimport memchr, memcmp
from libcpp.vector cimport vector

from tsgkit._types cimport index_t, position_t, symbol_t
from tsgkit._vectors cimport fill

cdef enum ByteClass:
    TEXT
    SPACE
    OPEN
    CLOSE

# White space is that of C's isspace in the C locale; all bytes of other scripts are text, which is 0.
cdef uint8_t[256] BYTE_CLASS
cdef unsigned char white
for white in b" \t\n\v\f\r":
    BYTE_CLASS[white] = SPACE
BYTE_CLASS[c"("] = OPEN
BYTE_CLASS[c")"] = CLOSE

cdef Text NO_TEXT = Text(b"", 0)


cdef inline ByteClass class_of(char byte) noexcept nogil:
    return <ByteClass>BYTE_CLASS[<uint8_t>byte]


cdef inline const char* skip(ByteClass byte_class, const char* position, const char* end) noexcept nogil:
    while position < end and class_of(position[0]) == byte_class:
        position += 1
    return position


# ---- labels ------------------------------------------------------------------------------------------------------

cdef enum:
    N_EXACT_BYTES = 7   # labels of up to so many bytes differ in length or key


cdef inline uint64_t next_key(uint64_t key, char byte) noexcept nogil:
    """The key of a label that is longer by one byte."""
    return (key << 9 | key >> 55) ^ <uint8_t>byte


cdef uint64_t key_of(Text text) noexcept nogil:
    cdef uint64_t key = 0
    cdef index_t index
    for index in range(text.n_bytes):
        key = next_key(key, text.start[index])
    return key


cdef inline size_t slot_of(uint64_t key, size_t n_slots) noexcept nogil:
    return (key * <uint64_t>0x9e3779b97f4a7c15 >> 32) & (n_slots - 1)


cdef inline symbol_t find_label(Labels labels, Text text, uint64_t key) noexcept nogil:
    """The label with this text, or NONE."""
    cdef size_t slot = slot_of(key, labels.slots.size())
    cdef const Label* label
    while labels.slots[slot] != NONE:
        label = &labels.table[labels.slots[slot]]
        if label.key == key and label.text.n_bytes == text.n_bytes and (
                text.n_bytes <= N_EXACT_BYTES or same_text(label.text, text)):
            break
        slot = (slot + 1) & (labels.slots.size() - 1)
    return labels.slots[slot]


cdef bint contains(const vector[Text]& texts, Text text) noexcept nogil:
    cdef size_t index
    for index in range(texts.size()):
        if same_text(texts[index], text):
            return True
    return False


@cython.final
cdef class Labels:
    """The labels of both files and of the parameters."""

    def __init__(self, parameters):
        cdef symbol_t label
        self.encoded = []
        fill(self.slots, 1024, <symbol_t>NONE)
        encode_all(parameters.delete_labels, self.encoded, &self.delete_labels)
        encode_all(parameters.delete_labels_for_length, self.encoded, &self.delete_labels_for_length)
        encode_all(parameters.quote_labels, self.encoded, &self.quote_labels)
        for one, other in parameters.eq_labels:
            self.set_equal(self.intern(encode(one, self.encoded)), self.intern(encode(other, self.encoded)))
        # It depends on the pairs of equal labels, which are complete only now.
        for label in range(<symbol_t>self.table.size()):
            self.table[label].deletes_bracket = self.is_bracket_deleted(label)

    cdef symbol_t intern(self, Text text) except -1 nogil:
        """The label with this text, which is added if it is new."""
        cdef uint64_t key = key_of(text)
        cdef symbol_t label = find_label(self, text, key)
        return label if label != NONE else self.add(text, key)

    cdef bint contains(self, Text text) noexcept nogil:
        return find_label(self, text, key_of(text)) != NONE

    cdef symbol_t add(self, Text text, uint64_t key) except -1 nogil:
        cdef symbol_t label = <symbol_t>self.table.size(), bare
        cdef Label entry
        cdef Text prefix
        prefix.start, prefix.n_bytes = text.start, 0
        while prefix.n_bytes < text.n_bytes and text.start[prefix.n_bytes] not in b"-=":
            prefix.n_bytes += 1
        entry.text, entry.key, entry.bare, entry.first_equal = text, key, label, NONE
        entry.deletes_word = entry.deletes_bracket = contains(self.delete_labels, text)
        entry.ignored_for_length = contains(self.delete_labels_for_length, text)
        entry.may_be_quote = contains(self.quote_labels, text)
        self.table.push_back(entry)
        self.give_slot()
        if prefix.n_bytes < text.n_bytes:
            # One level of recursion: a bare label has no - or =.
            bare = self.intern(prefix)
            self.table[label].bare = bare
        return label

    cdef int give_slot(self) except -1 nogil:
        """Give the newest label a slot; if more than half of them are taken, give all labels new ones."""
        cdef symbol_t first = <symbol_t>self.table.size() - 1
        cdef size_t slot
        cdef symbol_t label
        if 2 * self.table.size() > self.slots.size():
            fill(self.slots, 2 * self.slots.size(), <symbol_t>NONE)
            first = 0
        for label in range(first, <symbol_t>self.table.size()):
            slot = slot_of(self.table[label].key, self.slots.size())
            while self.slots[slot] != NONE:
                slot = (slot + 1) & (self.slots.size() - 1)
            self.slots[slot] = label
        return 0

    cdef int set_equal(self, symbol_t label, symbol_t other) except -1 nogil:
        cdef symbol_t n_links = <symbol_t>self.equal.size()
        if label == other:
            return 0
        self.equal.push_back(EqualLabel(other, self.table[label].first_equal))
        self.equal.push_back(EqualLabel(label, self.table[other].first_equal))
        self.table[label].first_equal = n_links
        self.table[other].first_equal = n_links + 1
        return 0

    cdef bint is_bracket_deleted(self, symbol_t label) noexcept nogil:
        """Whether a bare label is a DELETE_LABEL, or declared equal to one."""
        cdef symbol_t link = self.table[label].first_equal
        if self.table[label].deletes_word:
            return True
        while link != NONE:
            if self.table[self.equal[link].label].deletes_word:
                return True
            link = self.equal[link].next
        return False


cdef Text encode(str text, list encoded) except *:
    """A text in UTF-8; `encoded` keeps its bytes."""
    cdef bytes data = text.encode()
    encoded.append(data)
    return Text(data, len(data))


cdef int encode_all(texts, list encoded, vector[Text]* result) except -1:
    for text in texts:
        result.push_back(encode(text, encoded))
    return 0


# ---- trees -------------------------------------------------------------------------------------------------------

@cython.final
cdef class TreeReader:
    """The lines of a file, one tree each."""

    def __init__(self, bytes content not None, Labels labels not None):
        cdef size_t n_bytes = len(content)
        self.content, self.labels = content, labels
        self.position = content
        self.end = self.position + n_bytes
        self.has_nul = memchr(self.position, 0, n_bytes) != NULL
        if n_bytes >= 3 and memcmp(self.position, b"\xef\xbb\xbf", 3) == 0:
            self.position += 3                 # a byte-order mark

    cdef int next_line(self) except -1 nogil:
        """Go to the next line; whether there is one."""
        cdef const char* newline
        if self.position == self.end:
            return False
        newline = <const char*>memchr(self.position, c"\n", self.end - self.position)
        self.line_start = self.position
        self.line_end = newline if newline != NULL else self.end
        self.position = newline + 1 if newline != NULL else self.end
        if self.line_end - self.line_start >= INT32_MAX:
            with gil:
                raise OverflowError("a line of two gigabytes or more cannot be scored")
        return True

    cdef int read_tree(self) except -1 nogil:
        """Read the current line into `words`, `brackets`, `quotes`, `length` and `problems`."""
        cdef const char* position = self.line_start
        cdef const char* start
        cdef bint has_stray_text = False
        cdef ByteClass byte_class
        self.words.clear()
        self.brackets.clear()
        self.quotes.clear()
        self.problems.clear()
        self.deleted.clear()
        self.length, self.innermost, self.counted, self.column = 0, NONE, position, 1
        while position < self.line_end and position[0] != 0:
            byte_class = class_of(position[0])
            if byte_class == OPEN:
                position = self.read_open(position + 1)
            elif byte_class == TEXT:
                start, position = position, skip(TEXT, position, self.line_end)
                if not has_stray_text:
                    self.report(STRAY_TEXT, start, self.text_between(start, position))
                has_stray_text = True
            else:
                if byte_class == CLOSE and self.innermost == NONE:
                    self.report(EXTRA_CLOSE, position, NO_TEXT)
                elif byte_class == CLOSE:
                    self.brackets[self.innermost].end = <position_t>self.words.size()
                    self.innermost = self.brackets[self.innermost].parent
                position += 1
        if self.innermost != NONE:
            self.report(UNCLOSED, position, NO_TEXT)
        return 0

    cdef int read_all_words(self) except -1 nogil:
        """Read the current line with the words that the tags delete."""
        self.keeps_all = True
        self.read_tree()
        self.keeps_all = False
        return 0

    cdef const char* read_open(self, const char* position) except NULL nogil:
        """What follows an opening bracket: a tag and its word, or the label of a bracket, now the innermost."""
        cdef const char* label_end = position
        cdef const char* word_start
        cdef const char* word_end
        cdef uint64_t key = 0
        cdef symbol_t label
        cdef Text text
        cdef Bracket* bracket
        while label_end < self.line_end and class_of(label_end[0]) == TEXT:
            key = next_key(key, label_end[0])
            label_end += 1
        if self.has_nul:
            label = self.labels.intern(self.text_between(position, label_end))
        else:
            text = Text(position, label_end - position)
            label = find_label(self.labels, text, key)
            if label == NONE:
                label = self.labels.add(text, key)
        word_start = skip(SPACE, label_end, self.line_end)
        if word_start > label_end:
            word_end = skip(TEXT, word_start, self.line_end)
            if word_end < self.line_end and word_end[0] == c")":
                self.add_word(self.text_between(word_start, word_end), label)
                return word_end + 1
        self.brackets.emplace_back()
        bracket = &self.brackets.back()
        bracket.start, bracket.end = <position_t>self.words.size(), NONE
        bracket.label, bracket.parent = self.labels.table[label].bare, self.innermost
        self.innermost = <position_t>self.brackets.size() - 1
        return label_end

    cdef int add_word(self, Text text, symbol_t tag) except -1 nogil:
        cdef const Label* label = &self.labels.table[tag]
        cdef Quote quote
        if not label.ignored_for_length:
            self.length += 1
        if label.may_be_quote and text.n_bytes == 1 and text.start[0] in b"'\"/":
            quote.word.text, quote.word.tag, quote.parent = text, tag, self.innermost
            quote.index, quote.next_bracket = <position_t>self.words.size(), <position_t>self.brackets.size()
            self.quotes.push_back(quote)
        if label.deletes_word and not self.keeps_all:
            self.deleted.push_back(<position_t>(self.words.size() + self.deleted.size()))
        else:
            # In place, like brackets: processors stall when a struct is read right after its parts were written.
            self.words.emplace_back()
            self.words.back().text = text
            self.words.back().tag = tag
        return 0

    cdef Text text_between(self, const char* start, const char* end) noexcept nogil:
        """A label or word. A NUL byte ends a C string, so EVALB sees it up to there."""
        cdef const char* nul = NULL
        if self.has_nul:
            nul = <const char*>memchr(start, 0, end - start)
        return Text(start, (nul if nul != NULL else end) - start)

    cdef int report(self, ProblemKind kind, const char* position, Text text) except -1 nogil:
        cdef SyntaxProblem problem
        # Counting starts where the last problem of this line was, so that a line is counted once.
        while self.counted < position:
            # The bytes of a character after its first begin with the bits 10.
            if (<uint8_t>self.counted[0] & 0xc0) != 0x80:
                self.column += 1
            self.counted += 1
        problem.kind, problem.column, problem.text = kind, self.column, text
        self.problems.push_back(problem)
        return 0

    cdef position_t first_quote_at(self, position_t index) noexcept nogil:
        """The first quotation mark that does not stand before word `index`; their indices only grow."""
        cdef position_t low = 0, high = <position_t>self.quotes.size(), middle
        while low < high:
            middle = low + (high - low) // 2
            if self.quotes[middle].index < index:
                low = middle + 1
            else:
                high = middle
        return low

    cdef int restore_quote(self, position_t which) except -1 nogil:
        """Put a deleted quotation mark back among the words."""
        cdef Quote quote = self.quotes[which]
        cdef position_t bracket
        cdef size_t index
        self.words.insert(self.words.begin() + quote.index, quote.word)
        for index in range(quote.next_bracket, self.brackets.size()):
            self.brackets[index].start += 1
            self.brackets[index].end += 1
        bracket = quote.parent
        while bracket != NONE:
            self.brackets[bracket].end += 1
            bracket = self.brackets[bracket].parent
        for index in range(which, self.quotes.size()):
            self.quotes[index].index += 1
        return 0


cdef int repair_quotes(TreeReader gold, TreeReader test) except -1 nogil:
    """Restore a quotation mark that one tree deleted where the other has one under a tag that is not deleted.

    Both must have the same index among the words. The test mark's index is the one *before* it is restored: it is
    then compared with the remaining gold marks at its old index, as in EVALB.
    """
    cdef position_t test_quote, gold_quote, index
    cdef bint is_gold_deleted, is_test_deleted
    for test_quote in range(<position_t>test.quotes.size()):
        index = test.quotes[test_quote].index
        # A restored mark moves all those after it, so the indices stay in order.
        gold_quote = gold.first_quote_at(index)
        while gold_quote < <position_t>gold.quotes.size() and gold.quotes[gold_quote].index == index:
            is_gold_deleted = gold.labels.table[gold.quotes[gold_quote].word.tag].deletes_word
            is_test_deleted = test.labels.table[test.quotes[test_quote].word.tag].deletes_word
            if is_gold_deleted and not is_test_deleted:
                gold.restore_quote(gold_quote)
            elif is_test_deleted and not is_gold_deleted:
                test.restore_quote(test_quote)
            gold_quote += 1
    return 0
