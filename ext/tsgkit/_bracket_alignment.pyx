"""The words of a gold and a test tree, aligned: which are punctuation is decided by the gold tags for both trees.

Last stage of the flow: trees again -> a score. EVALB deletes words by the tags of each tree, so that a parse with one
tag that differs in whether it is deleted has other words than the gold tree, and the sentence drops out. Here a word
is deleted in both trees if its *gold* tag is a DELETE_LABEL. If both trees delete the words at the same positions and
the others agree, these are aligned, whatever was deleted. Otherwise words are aligned from left to right:

    the same word on both sides     aligned; deleted in both trees, or in none, by the gold tag
    otherwise                       a gold word with a deleted tag has no partner (a trace), then a test word with one
    neither                         the sentences differ: nothing is aligned
"""

from libc.stdint cimport uint8_t
from libcpp.vector cimport vector

from tsgkit._bracket_trees cimport Text, TextPair, TreeReader, same_text
from tsgkit._types cimport position_t


cdef bint are_equal_words(const vector[TextPair]& pairs, Text gold, Text test) noexcept nogil:
    """Whether two words are the same, or the parameters declare them equal (EQ_WORD)."""
    cdef size_t index
    if same_text(gold, test):
        return True
    for index in range(pairs.size()):
        if same_text(gold, pairs[index].left) and same_text(test, pairs[index].right):
            return True
        if same_text(gold, pairs[index].right) and same_text(test, pairs[index].left):
            return True
    return False


cdef inline bint is_deleted(TreeReader tree, size_t word) noexcept nogil:
    return tree.labels.table[tree.words[word].tag].deletes_word


cdef int align_words(TreeReader gold, TreeReader test, const vector[TextPair]& equal_words) except -1 nogil:
    """Read the current lines again and delete words by the gold tags; whether the other words agree.

    Both lines must be well-formed. If the words do not agree, the trees keep all their words.
    """
    cdef vector[uint8_t] gold_kept, test_kept
    cdef size_t n_gold = 0, n_test = 0
    cdef bint keeps
    gold.read_all_words()
    test.read_all_words()
    while n_gold < gold.words.size() or n_test < test.words.size():
        if (n_gold < gold.words.size() and n_test < test.words.size()
                and are_equal_words(equal_words, gold.words[n_gold].text, test.words[n_test].text)):
            keeps = not is_deleted(gold, n_gold)
            gold_kept.push_back(keeps)
            test_kept.push_back(keeps)
            n_gold += 1
            n_test += 1
        elif n_gold < gold.words.size() and is_deleted(gold, n_gold):
            gold_kept.push_back(False)
            n_gold += 1
        elif n_test < test.words.size() and is_deleted(test, n_test):
            test_kept.push_back(False)
            n_test += 1
        else:
            return False
    keep_words(gold, gold_kept)
    keep_words(test, test_kept)
    return True


cdef int keep_words(TreeReader tree, const vector[uint8_t]& kept) except -1 nogil:
    """Remove words from a tree, and from the spans of its brackets."""
    cdef vector[position_t] n_kept_before
    cdef position_t n_kept = 0
    cdef size_t index
    for index in range(kept.size()):
        n_kept_before.push_back(n_kept)
        if kept[index]:
            tree.words[n_kept] = tree.words[index]
            n_kept += 1
    n_kept_before.push_back(n_kept)
    tree.words.resize(n_kept)
    for index in range(tree.brackets.size()):
        tree.brackets[index].start = n_kept_before[tree.brackets[index].start]
        tree.brackets[index].end = n_kept_before[tree.brackets[index].end]
    return 0
