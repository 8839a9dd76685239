"""The brackets of a gold and a test tree over the same words: which match, and which cross.

Last stage of the flow: trees again -> a score. A bracket is (label, start, end). As in EVALB, it counts unless its
label is deleted or no words are left in it, and

    matched    every gold bracket, in the order in which they open, takes the first free test bracket with the same
               start and end and an equal label; so matching is one to one
    crossing   test brackets that overlap some gold bracket without one containing the other,
               start' < start < end' < end  or  start < start' < end < end'

EVALB compares each gold with each test bracket. Here both lists are sorted, and each step takes n log n for n brackets.
Nothing is assumed of malformed trees but the order of the lists: a bracket that is never closed ends at NONE.
"""

cimport cython
from cython.operator cimport dereference
from libc.stdint cimport int64_t, uint64_t
from libcpp.algorithm cimport pop_heap, push_heap, stable_sort
from libcpp.functional cimport greater
from libcpp.utility cimport pair
from libcpp.vector cimport vector

from tsgkit._bracket_trees cimport NONE, Bracket, Labels, TreeReader
from tsgkit._types cimport position_t, symbol_t
from tsgkit._vectors cimport fill


cdef inline bint opens_before(const Bracket& left, const Bracket& right) noexcept nogil:
    return left.start < right.start if left.start != right.start else left.end > right.end


cdef position_t end_of_group(const vector[Bracket]& brackets, position_t first) noexcept nogil:
    """Behind the last bracket with the span of the `first` one."""
    cdef position_t last = first + 1
    while (last < <position_t>brackets.size() and brackets[last].start == brackets[first].start
           and brackets[last].end == brackets[first].end):
        last += 1
    return last


@cython.final
cdef class BracketMatcher:
    """Match the brackets of one pair of trees after the other, and keep sums by label."""

    def __init__(self, Labels labels not None, bint is_labelled):
        self.labels, self.is_labelled = labels, is_labelled

    cdef int take_gold(self, TreeReader tree) except -1 nogil:
        """Set `gold` to the brackets of a tree that count."""
        return self.keep_counted(&tree.brackets, &self.gold)

    cdef int take_test(self, TreeReader tree) except -1 nogil:
        return self.keep_counted(&tree.brackets, &self.test)

    cdef int keep_counted(self, vector[Bracket]* brackets, vector[Bracket]* kept) except -1 nogil:
        """Drop brackets without words and those with deleted labels."""
        cdef bint is_sorted = True
        cdef Bracket bracket
        cdef size_t index
        kept.clear()
        for index in range(brackets.size()):
            bracket = dereference(brackets)[index]
            if bracket.start != bracket.end and not self.labels.table[bracket.label].deletes_bracket:
                # The brackets of a well-formed tree open in this order already.
                is_sorted = is_sorted and (kept.empty() or not opens_before(bracket, kept.back()))
                kept.push_back(bracket)
        if not is_sorted:
            stable_sort(kept.begin(), kept.end(), &opens_before)
        return 0

    # ---- matching ------------------------------------------------------------------------------------------------

    cdef int match(self, bint is_valid) except -1 nogil:
        """Set `n_matched` and `is_matched`; add the brackets of a valid sentence to the sums by label."""
        cdef position_t n_gold = <position_t>self.gold.size(), n_test = <position_t>self.test.size()
        cdef position_t gold = 0, test = 0, gold_end, test_end
        self.is_valid, self.n_matched = is_valid, 0
        self.label_counts.resize(self.labels.table.size())
        self.first_of_label.resize(self.labels.table.size(), <position_t>NONE)
        self.next_of_label.resize(n_test)
        fill(self.is_matched, n_test, 0)
        if is_valid:
            self.count_labels()
        while gold < n_gold and test < n_test:
            if opens_before(self.gold[gold], self.test[test]):
                gold += 1
            elif opens_before(self.test[test], self.gold[gold]):
                test += 1
            else:
                gold_end, test_end = end_of_group(self.gold, gold), end_of_group(self.test, test)
                # Most often there is one of each, and they match.
                if gold_end == gold + 1 and test_end == test + 1 and self.gold[gold].label == self.test[test].label:
                    self.add_match(gold, test)
                else:
                    self.match_span(gold, gold_end, test, test_end)
                gold, test = gold_end, test_end
        return 0

    cdef void count_labels(self) noexcept nogil:
        cdef size_t index
        for index in range(self.gold.size()):
            self.label_counts[self.gold[index].label].gold += 1
        for index in range(self.test.size()):
            self.label_counts[self.test[index].label].test += 1

    cdef void add_match(self, position_t gold, position_t test) noexcept nogil:
        self.n_matched += 1
        self.is_matched[test] = True
        if self.is_valid:
            self.label_counts[self.gold[gold].label].matched_gold += 1
            self.label_counts[self.test[test].label].matched_test += 1

    cdef int match_span(
        self, position_t gold_start, position_t gold_end, position_t test_start, position_t test_end
    ) except -1 nogil:
        """Match brackets with one span, from the outermost in. The free test brackets of each label form a list."""
        cdef position_t gold, test
        cdef symbol_t label
        for test in range(test_end - 1, test_start - 1, -1):
            label = self.label_to_match(self.test[test])
            self.next_of_label[test] = self.first_of_label[label]
            self.first_of_label[label] = test
        self.unmatched_gold.clear()
        for gold in range(gold_start, gold_end):
            test = self.take_first(self.label_to_match(self.gold[gold]))
            if test != NONE:
                self.add_match(gold, test)
            else:
                self.unmatched_gold.push_back(self.gold[gold].label)
        for test in range(test_start, test_end):
            self.first_of_label[self.label_to_match(self.test[test])] = NONE
        if self.is_valid:
            self.count_confusions(test_start, test_end)
        return 0

    cdef symbol_t label_to_match(self, Bracket bracket) noexcept nogil:
        return bracket.label if self.is_labelled else 0

    cdef position_t take_first(self, symbol_t label) noexcept nogil:
        """Take the first free test bracket whose label matches, and return it; NONE if there is none."""
        cdef symbol_t best = label, other, link
        cdef position_t test
        if self.is_labelled:
            link = self.labels.table[label].first_equal
            while link != NONE:
                other = self.labels.equal[link].label
                test = self.first_of_label[other]
                if test != NONE and (self.first_of_label[best] == NONE or test < self.first_of_label[best]):
                    best = other
                link = self.labels.equal[link].next
        test = self.first_of_label[best]
        if test != NONE:
            self.first_of_label[best] = self.next_of_label[test]
        return test

    cdef int count_confusions(self, position_t test_start, position_t test_end) except -1 nogil:
        """Pair the unmatched gold and test brackets of one span, from the outermost in."""
        cdef position_t test = test_start
        cdef uint64_t key
        cdef size_t index
        cdef int64_t* count
        for index in range(self.unmatched_gold.size()):
            while test < test_end and self.is_matched[test]:
                test += 1
            if test == test_end:
                return 0
            key = <uint64_t>self.unmatched_gold[index] << 32 | <uint64_t>self.test[test].label
            # By insert(), which Cython knows may run out of memory, as it does not know of operator[].
            count = &dereference(self.confusions.insert(pair[uint64_t, int64_t](key, 0)).first).second
            count[0] += 1
            test += 1
        return 0

    # ---- crossing ------------------------------------------------------------------------------------------------

    cdef position_t count_crossing(self) except -1 nogil:
        """The number of test brackets that cross a gold bracket; after `match`."""
        cdef position_t n_crossing = 0
        cdef size_t test
        fill(self.is_crossing, self.test.size(), 0)
        if not self.is_valid:
            # A matched bracket has the span of a gold bracket. In a well-formed tree these do not cross, so that it
            # need not be looked at; a malformed tree gives no such guarantee.
            fill(self.is_matched, self.test.size(), 0)
        self.mark_overlaps_from_left()
        self.mark_overlaps_from_right()
        for test in range(self.test.size()):
            n_crossing += self.is_crossing[test]
        return n_crossing

    cdef int mark_overlaps_from_left(self) except -1 nogil:
        """Mark test brackets with gold.start < start < gold.end < end.

        Of the gold brackets that start before, those that end by `start` can be forgotten, since starts only grow; of
        the others the first to end decides.
        """
        cdef size_t gold = 0, test
        cdef position_t start
        self.ends.clear()
        for test in range(self.test.size()):
            if self.is_matched[test]:
                continue
            start = self.test[test].start
            while gold < self.gold.size() and self.gold[gold].start < start:
                if self.gold[gold].end > start:
                    self.ends.push_back(self.gold[gold].end)
                    push_heap(self.ends.begin(), self.ends.end(), greater[position_t]())
                gold += 1
            while not self.ends.empty() and self.ends.front() <= start:
                pop_heap(self.ends.begin(), self.ends.end(), greater[position_t]())
                self.ends.pop_back()
            if not self.ends.empty() and self.ends.front() < self.test[test].end:
                self.is_crossing[test] = True
        return 0

    cdef int mark_overlaps_from_right(self) except -1 nogil:
        """Mark test brackets with start < gold.start < end < gold.end.

        Of the gold brackets that start after, one is useless if another starts no later and ends no earlier; on the
        others, `front`, starts and ends fall together.
        """
        cdef size_t n_gold = self.gold.size(), test, low, high, middle
        cdef Bracket bracket
        self.front.clear()
        for test in range(self.test.size(), 0, -1):
            if self.is_matched[test - 1]:
                continue
            bracket = self.test[test - 1]
            while n_gold > 0 and self.gold[n_gold - 1].start > bracket.start:
                n_gold -= 1
                while not self.front.empty() and self.front.back().end <= self.gold[n_gold].end:
                    self.front.pop_back()
                self.front.push_back(Span(self.gold[n_gold].start, self.gold[n_gold].end))
            # The first on the front that starts before the end of the bracket ends last.
            low, high = 0, self.front.size()
            while low < high:
                middle = low + (high - low) // 2
                if self.front[middle].start >= bracket.end:
                    low = middle + 1
                else:
                    high = middle
            if low < self.front.size() and self.front[low].end > bracket.end:
                self.is_crossing[test - 1] = True
        return 0
