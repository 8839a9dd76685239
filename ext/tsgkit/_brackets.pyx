"""The EVALB-exact bracket scorer and the paired bootstrap over its counts.

Last stage of the flow: trees again -> a score. `Scorer` wraps the C++ class of ``bracket_scorer.hpp``,
which reads both files straight from memory; `resample_differences` draws

    d*_b = F(sum_i n_i a_i) - F(sum_i n_i b_i),    n ~ Multinomial(N; 1/N, ..., 1/N)

for the count vectors ``a_i`` and ``b_i`` = (matched, gold, test) of sentence i under two systems.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp cimport bool
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector


cdef extern from "bracket_scorer.hpp" namespace "tsgkit" nogil:
    cdef cppclass ScorerSettings:
        bool labelled
        int64_t cutoff_length
        int64_t max_errors
        bool stop_on_errors
        vector[string] delete_labels
        vector[string] delete_labels_for_length
        vector[string] quote_labels
        vector[pair[string, string]] equal_labels
        vector[pair[string, string]] equal_words

    cdef enum class ProblemKind(int32_t):
        pass

    cdef enum class Side(int32_t):
        pass

    cdef cppclass Problem:
        ProblemKind kind
        Side side
        int64_t line
        int64_t column
        int64_t n_gold_words
        int64_t n_test_words
        string gold_word
        string test_word

    cdef cppclass Row:
        pass

    cdef struct Totals:
        int64_t sentences, errors, skips, complete
        int64_t gold, test, matched
        int64_t crossing, no_crossing, two_or_less_crossing
        int64_t words, tags

    cdef struct StrictTotals:
        int64_t sentences, complete, gold, test, matched, words, tags

    cdef cppclass LabelCounts:
        int64_t gold, test, matched_gold, matched_test

    cdef cppclass BracketScorer:
        ScorerSettings settings
        vector[Row] rows
        vector[Problem] problems
        Totals all
        Totals cutoff
        StrictTotals strict
        vector[LabelCounts] label_counts
        unordered_map[uint64_t, int64_t] confusions
        int64_t n_errors
        bool stopped
        void begin(const char* gold, size_t gold_size, const char* test, size_t test_size) except +
        bool advance(int64_t n_sentences) except +
        int64_t n_bytes_left()
        const string& label_text(int32_t label)

    string format_rows(const vector[Row]& rows) except +


# Only the struct is needed, so numpy itself need not be imported for scoring.
cdef extern from "numpy/random/bitgen.h" nogil:
    ctypedef struct bitgen_t:
        void* state
        uint32_t (*next_uint32)(void* state) noexcept nogil


# The int32 columns of a row, in the order of the struct Row.
ROW_FIELDS = (
    "length", "status", "matched", "gold", "test", "crossing", "words", "tags",
    "all_gold", "all_test", "all_words",
)
# By the values of the enumeration ProblemKind.
PROBLEM_KINDS = (
    "unclosed", "extra close", "stray text", "length differs", "word differs", "gold longer", "test longer",
)
SIDES = ("gold", "test")


cdef vector[string] strings(texts) except *:
    cdef vector[string] result
    for text in texts:
        result.push_back(text.encode())
    return result


cdef vector[pair[string, string]] string_pairs(pairs) except *:
    cdef vector[pair[string, string]] result
    for left, right in pairs:
        result.push_back(pair[string, string](left.encode(), right.encode()))
    return result


cdef str text(const string& characters):
    """Bytes that are not UTF-8 stay visible, and two labels stay two."""
    return characters.decode("utf-8", "backslashreplace")


cdef class Scorer:
    """Score the trees in `test` against those in `gold`, one tree a line.

    Call `advance` until it returns False, then read the results.

    Parameters
    ----------
    gold, test : bytes
        The contents of the two files.
    parameters : tsgkit.evaluation.Parameters
        What to delete and what to hold equal.
    stop_on_errors : bool
        Whether to stop where EVALB does, at error number ``max_error + 2`` or at text outside brackets.
    """

    cdef BracketScorer scorer
    # The scorer points into these.
    cdef bytes gold
    cdef bytes test

    def __init__(self, bytes gold not None, bytes test not None, parameters, bint stop_on_errors=False):
        cdef ScorerSettings* settings = &self.scorer.settings
        if self.gold is not None:
            raise RuntimeError("a Scorer scores one pair of files")
        settings.labelled = parameters.labeled
        settings.cutoff_length = parameters.cutoff_len
        settings.max_errors = parameters.max_error
        settings.stop_on_errors = stop_on_errors
        settings.delete_labels = strings(parameters.delete_labels)
        settings.delete_labels_for_length = strings(parameters.delete_labels_for_length)
        settings.quote_labels = strings(parameters.quote_labels)
        settings.equal_labels = string_pairs(parameters.eq_labels)
        settings.equal_words = string_pairs(parameters.eq_words)
        self.gold = gold
        self.test = test
        self.scorer.begin(<const char*>gold, len(gold), <const char*>test, len(test))

    def advance(self, int64_t n_sentences):
        """Score up to `n_sentences` more; whether there are any left."""
        cdef bint any_left
        if self.gold is None:
            raise RuntimeError("this Scorer was not initialised")
        with nogil:
            any_left = self.scorer.advance(n_sentences)
        return any_left

    @property
    def n_bytes_left(self):
        """Bytes of both files not yet read."""
        return self.scorer.n_bytes_left()

    @property
    def stopped(self):
        """Whether too many errors ended the scoring early."""
        return self.scorer.stopped

    @property
    def n_errors(self):
        """Errors by EVALB's count; a sentence can have several."""
        return self.scorer.n_errors

    @property
    def rows(self):
        """The table: `ROW_FIELDS` of every sentence as int32, in the machine's byte order."""
        if self.scorer.rows.empty():
            return b""
        return (<const char*>self.scorer.rows.data())[:self.scorer.rows.size() * sizeof(Row)]

    @property
    def totals(self):
        """EVALB's sums over all sentences and over those up to the cut-off length, as two dicts."""
        return self.scorer.all, self.scorer.cutoff

    @property
    def strict_totals(self):
        """The sums in which every gold bracket of the file counts, as a dict."""
        return self.scorer.strict

    @property
    def label_counts(self):
        """For every bracket label: gold, test, matched gold and matched test brackets."""
        cdef int32_t label
        cdef LabelCounts n
        result = {}
        for label in range(<int32_t>self.scorer.label_counts.size()):
            n = self.scorer.label_counts[label]
            if n.gold or n.test:
                result[self.label(label)] = (n.gold, n.test, n.matched_gold, n.matched_test)
        return result

    @property
    def confusions(self):
        """How often a gold label met another test label over the same words: ``{(gold, test): count}``."""
        return {
            (self.label(item.first >> 32), self.label(item.first & 0xffffffff)): item.second
            for item in self.scorer.confusions
        }

    @property
    def problems(self):
        """Every error: kind, side, line, column, numbers of gold and of test words, gold word, test word."""
        return [
            (
                PROBLEM_KINDS[<int32_t>problem.kind], SIDES[<int32_t>problem.side],
                problem.line, problem.column, problem.n_gold_words, problem.n_test_words,
                text(problem.gold_word), text(problem.test_word),
            )
            for problem in self.scorer.problems
        ]

    cdef str label(self, int32_t label):
        return text(self.scorer.label_text(label))


def format_table(bytes rows not None):
    """The lines of EVALB's table for `rows`, as `Scorer.rows` gives them."""
    cdef vector[Row] copy
    cdef string text
    cdef const char* data = rows
    cdef size_t n_bytes = len(rows)
    if n_bytes % sizeof(Row):
        raise ValueError(f"{n_bytes} bytes are not a whole number of rows")
    with nogil:
        copy.resize(n_bytes // sizeof(Row))
        if n_bytes:
            memcpy(copy.data(), data, n_bytes)
        text = format_rows(copy)
    return text.decode("ascii")


def resample_differences(
    bit_generator, const int64_t[:, ::1] first not None, const int64_t[:, ::1] second not None,
    double[::1] differences not None,
):
    """Fill `differences` with F-measures of `first` minus those of `second` on resampled sentences.

    Parameters
    ----------
    bit_generator : numpy.random.BitGenerator
        Where the randomness comes from; its lock is held meanwhile.
    first, second : int64 array, (sentences, 3)
        Matched, gold and test brackets of every sentence under the two systems.
    differences : float64 array
        Receives one difference, in points of F, for each resample.
    """
    cdef bitgen_t* generator = <bitgen_t*>PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")
    if first.shape[0] != second.shape[0] or first.shape[1] != 3 or second.shape[1] != 3:
        raise ValueError("first and second must both be (sentences, 3)")
    if first.shape[0] == 0 or first.shape[0] > 0xffffffff:
        raise ValueError("there must be between 1 and 2**32 - 1 sentences")
    with bit_generator.lock, nogil:
        fill_differences(generator, first, second, differences)


cdef void fill_differences(
    bitgen_t* generator, const int64_t[:, ::1] first, const int64_t[:, ::1] second, double[::1] differences
) noexcept nogil:
    cdef uint32_t n_sentences = <uint32_t>first.shape[0]
    cdef Py_ssize_t resample, sentence
    cdef uint32_t _draw
    cdef int64_t[6] sums
    for resample in range(differences.shape[0]):
        sums[:] = [0, 0, 0, 0, 0, 0]
        for _draw in range(n_sentences):
            sentence = uniform_below(generator, n_sentences)
            sums[0] += first[sentence, 0]
            sums[1] += first[sentence, 1]
            sums[2] += first[sentence, 2]
            sums[3] += second[sentence, 0]
            sums[4] += second[sentence, 1]
            sums[5] += second[sentence, 2]
        differences[resample] = f_measure(sums[0], sums[1], sums[2]) - f_measure(sums[3], sums[4], sums[5])


cdef inline uint32_t uniform_below(bitgen_t* generator, uint32_t bound) noexcept nogil:
    """A uniform number below `bound`, by Lemire's method: a product's high half, drawn anew where unfair."""
    cdef uint64_t product = <uint64_t>generator.next_uint32(generator.state) * bound
    cdef uint32_t threshold
    if <uint32_t>product < bound:
        threshold = (<uint32_t>0 - bound) % bound
        while <uint32_t>product < threshold:
            product = <uint64_t>generator.next_uint32(generator.state) * bound
    return <uint32_t>(product >> 32)


cdef inline double f_measure(int64_t matched, int64_t gold, int64_t test) noexcept nogil:
    """In points: 2PR / (P + R) with P = matched / test and R = matched / gold; 0 if there are no brackets."""
    return 200.0 * matched / (gold + test) if gold + test > 0 else 0.0
