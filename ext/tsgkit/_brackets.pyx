"""Bracket counts of a test file against a gold file, one tree per line, exactly as the C program EVALB counts them.

Last stage of the flow: trees again -> a score, over the sentences whose words agree:

    recall = sum(matched) / sum(gold brackets)      precision = sum(matched) / sum(test brackets)

What EVALB does with each pair of lines, and where:

1. Read both lines (`_bracket_trees`). Words with deleted tags are left out; what is not a tree is an error.
2. If the test tree has no words left, the sentence is skipped.
3. If the numbers of words differ, restore quotation marks that only one of the trees deleted (`repair_quotes`).
4. If the numbers still differ, or a word does, the sentence is an error, and its row is empty.
5. Drop the brackets whose label is deleted, and those without words (`_bracket_matching`).
6. Count the brackets that match one to one, the test brackets that cross a gold bracket, and the tags that agree.
7. Add the row to the sums, if the sentence is valid: neither skipped nor an error.

`strict` are the sums in which the brackets of skipped sentences, errors and lines without a partner count as well.
`aligned` are those in which, besides, words are deleted by the gold tags in both trees (`_bracket_alignment`). There
are no limits on words, brackets, depth or line length, and nothing recurses, so any bytes can be scored.
"""

from libc.math cimport fma
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset
from libcpp.vector cimport vector

from tsgkit._bracket_alignment cimport align_words, are_equal_words
from tsgkit._bracket_matching cimport BracketMatcher, LabelCounts
from tsgkit._bracket_trees cimport (
    GOLD_LONGER,
    LENGTH_DIFFERS,
    STRAY_TEXT,
    TEST_LONGER,
    WORD_DIFFERS,
    Labels,
    ProblemKind,
    SyntaxProblem,
    Text,
    TextPair,
    TreeReader,
    encode,
    labels_match,
    repair_quotes,
)
from tsgkit._types cimport symbol_t

# The int32 columns of a row, in the order of the struct Row.
ROW_FIELDS = (
    "length", "status", "matched", "gold", "test", "crossing", "words", "tags",
    "all_gold", "all_test", "all_words",
    "aligned_matched", "aligned_gold", "aligned_test", "aligned_words", "aligned_tags",
)
# By the values of the enumerations ProblemKind and Side.
PROBLEM_KINDS = (
    "unclosed", "extra close", "stray text", "length differs", "word differs", "gold longer", "test longer",
)
SIDES = ("gold", "test")

cdef enum Side:
    GOLD
    TEST

cdef enum Status:
    VALID
    ERROR
    SKIP


cdef struct Problem:
    ProblemKind kind
    Side side
    int64_t line
    int64_t column            # in characters of UTF-8, from 1; 0 if the problem is the whole line
    int64_t n_gold_words
    int64_t n_test_words
    Text gold_word            # or the stray text
    Text test_word


cdef struct Row:
    int32_t length
    int32_t status
    int32_t matched
    int32_t gold
    int32_t test
    int32_t crossing
    int32_t words
    int32_t tags
    # What the strict score counts of the sentence, whatever its status.
    int32_t all_gold
    int32_t all_test
    int32_t all_words
    # The same with words deleted by the gold tags.
    int32_t aligned_matched
    int32_t aligned_gold
    int32_t aligned_test
    int32_t aligned_words
    int32_t aligned_tags


cdef struct Totals:
    int64_t sentences, errors, skips, complete
    int64_t gold, test, matched
    int64_t crossing, no_crossing, two_or_less_crossing
    int64_t words, tags


cdef struct TotalsOfAll:
    int64_t sentences, complete, gold, test, matched, words, tags


# ---- sums --------------------------------------------------------------------------------------------------------

cdef bint is_complete(const Row* row) noexcept nogil:
    return row.gold == row.test == row.matched


cdef void add_row(Totals* totals, const Row* row) noexcept nogil:
    totals.sentences += 1
    if row.status == ERROR:
        totals.errors += 1
    elif row.status == SKIP:
        totals.skips += 1
    else:
        totals.gold += row.gold
        totals.test += row.test
        totals.matched += row.matched
        totals.complete += is_complete(row)
        totals.crossing += row.crossing
        totals.no_crossing += row.crossing == 0
        totals.two_or_less_crossing += row.crossing <= 2
        totals.words += row.words
        totals.tags += row.tags


cdef void add_strictly(TotalsOfAll* totals, const Row* row) noexcept nogil:
    totals.gold += row.all_gold
    totals.test += row.all_test
    totals.words += row.all_words
    totals.sentences += row.all_words > 0
    if row.status == VALID:
        totals.matched += row.matched
        totals.tags += row.tags
        totals.complete += is_complete(row)


cdef void add_missed(TotalsOfAll* totals, int64_t n_gold, int64_t n_words) noexcept nogil:
    """Count a gold tree without a test tree."""
    totals.gold += n_gold
    totals.words += n_words
    totals.sentences += n_words > 0


cdef void add_aligned(TotalsOfAll* totals, const Row* row) noexcept nogil:
    totals.gold += row.aligned_gold
    totals.test += row.aligned_test
    totals.matched += row.aligned_matched
    totals.words += row.aligned_words
    totals.tags += row.aligned_tags
    totals.sentences += row.aligned_words > 0
    totals.complete += row.aligned_words > 0 and row.aligned_gold == row.aligned_test == row.aligned_matched


# ---- scoring -----------------------------------------------------------------------------------------------------

cdef str decode(Text text):
    """Bytes that are not UTF-8 stay visible, and two labels stay two."""
    return text.start[:text.n_bytes].decode("utf-8", "backslashreplace")


cdef class Scorer:
    """Score the trees in `test` against those in `gold`, one tree per line.

    Call `advance` until it returns False, then read the results.

    Parameters
    ----------
    gold, test : bytes
        The contents of the two files.
    parameters : tsgkit.evaluation.Parameters
        What to delete and what counts as equal.
    stop_on_errors : bool
        Whether to stop where EVALB does, at error number ``max_error + 2`` or at text outside brackets.
    """

    cdef int64_t cutoff_length, max_errors
    cdef bint stop_on_errors
    cdef vector[TextPair] equal_words
    cdef list encoded                 # what they point into
    cdef Labels labels
    cdef TreeReader gold, test
    cdef BracketMatcher matcher
    cdef bint is_running              # and for good if scoring ended in an exception
    cdef int64_t n_lines              # read so far, of the longer file
    cdef Status status                # of the sentence
    cdef vector[Row] table
    cdef vector[Problem] errors
    cdef Totals all, cutoff
    cdef TotalsOfAll strict, aligned
    cdef int64_t n_deleted            # words of the gold file
    cdef readonly bint stopped        # too many errors ended the scoring early
    cdef readonly int64_t n_errors    # by EVALB's count; a sentence can have several

    def __init__(self, bytes gold not None, bytes test not None, parameters, bint stop_on_errors=False):
        cdef TextPair words
        if self.encoded is not None:
            raise RuntimeError("a Scorer scores one pair of files")
        self.cutoff_length, self.max_errors = parameters.cutoff_len, parameters.max_error
        self.stop_on_errors = stop_on_errors
        self.encoded = []
        for one, other in parameters.eq_words:
            words.left, words.right = encode(one, self.encoded), encode(other, self.encoded)
            self.equal_words.push_back(words)
        self.labels = Labels(parameters)
        self.gold, self.test = TreeReader(gold, self.labels), TreeReader(test, self.labels)
        self.matcher = BracketMatcher(self.labels, parameters.labeled)

    cdef int require_files(self) except -1:
        if self.matcher is None:
            raise RuntimeError("this Scorer was not initialised")
        return 0

    def advance(self, int64_t n_sentences):
        """Score up to `n_sentences` more; whether there are any left."""
        self.require_files()
        if self.is_running:
            raise RuntimeError("this Scorer failed, or another thread is using it")
        self.is_running = True
        with nogil:
            self.score_lines(n_sentences)
        self.is_running = False
        return not self.stopped and self.n_bytes_left > 0

    cdef int score_lines(self, int64_t n_sentences) except -1 nogil:
        cdef bint has_gold, has_test
        while n_sentences > 0 and not self.stopped:
            has_gold, has_test = self.gold.next_line(), self.test.next_line()
            if not has_gold and not has_test:
                return 0
            self.n_lines += 1
            if has_gold and has_test:
                self.score_pair()
            else:
                self.count_unpaired(GOLD if has_gold else TEST)
            n_sentences -= 1
        return 0

    cdef int score_pair(self) except -1 nogil:
        """Score one line of both files; nothing is counted of the line at which scoring stops."""
        cdef Row row
        memset(&row, 0, sizeof(Row))
        self.status = VALID
        self.gold.read_tree()
        self.add_syntax_problems(GOLD, self.gold)
        if self.stopped:
            return 0
        self.test.read_tree()
        self.add_syntax_problems(TEST, self.test)
        if self.stopped:
            return 0
        row.length, row.all_words = self.gold.length, <int32_t>self.gold.words.size()
        self.n_deleted += self.gold.deleted.size()
        self.take_brackets()
        row.all_gold, row.all_test = <int32_t>self.matcher.gold.size(), <int32_t>self.matcher.test.size()
        if self.test.words.empty():
            self.status = SKIP
        elif self.words_agree():
            self.compare(&row)
        if self.stopped:
            return 0
        row.status = self.status
        self.compare_aligned(&row)
        self.table.push_back(row)
        add_row(&self.all, &row)
        if row.length <= self.cutoff_length:
            add_row(&self.cutoff, &row)
        add_strictly(&self.strict, &row)
        add_aligned(&self.aligned, &row)
        return 0

    cdef int count_unpaired(self, Side side) except -1 nogil:
        """Count a line without a partner. It is no sentence to EVALB, which reads the first one of the gold file."""
        cdef bint is_first = self.n_lines == <int64_t>self.table.size() + 1
        if side == TEST:
            self.test.read_tree()
            self.matcher.take_test(self.test)
            self.strict.test += self.matcher.test.size()
            self.aligned.test += self.matcher.test.size()
        else:
            self.gold.read_tree()
            if is_first:
                self.add_syntax_problems(GOLD, self.gold)
            self.matcher.take_gold(self.gold)
            add_missed(&self.strict, self.matcher.gold.size(), self.gold.words.size())
            add_missed(&self.aligned, self.matcher.gold.size(), self.gold.words.size())
        if is_first and not self.stopped:
            self.add_problem(self.problem(GOLD_LONGER if side == GOLD else TEST_LONGER, side))
        return 0

    cdef int take_brackets(self) except -1 nogil:
        self.matcher.take_gold(self.gold)
        self.matcher.take_test(self.test)
        return 0

    cdef int words_agree(self) except -1 nogil:
        """Whether both trees have the same words; if not, it is an error."""
        cdef size_t index
        cdef Text gold, test
        cdef Problem problem
        if self.gold.words.size() != self.test.words.size():
            repair_quotes(self.gold, self.test)
            self.take_brackets()
        if self.gold.words.size() != self.test.words.size():
            self.add_problem(self.problem(LENGTH_DIFFERS, TEST))
            return False
        for index in range(self.gold.words.size()):
            gold, test = self.gold.words[index].text, self.test.words[index].text
            if not are_equal_words(self.equal_words, gold, test):
                problem = self.problem(WORD_DIFFERS, TEST)
                problem.gold_word, problem.test_word = gold, test
                self.add_problem(problem)
                return False
        return True

    cdef int compare(self, Row* row) except -1 nogil:
        """Count what matches. The strict score counts the same brackets, with restored quotation marks."""
        row.gold = row.all_gold = <int32_t>self.matcher.gold.size()
        row.test = row.all_test = <int32_t>self.matcher.test.size()
        self.matcher.match(self.status == VALID)
        row.matched, row.crossing = self.matcher.n_matched, self.matcher.count_crossing()
        row.words = row.all_words = <int32_t>self.gold.words.size()
        row.tags = self.count_tags()
        return 0

    cdef int compare_aligned(self, Row* row) except -1 nogil:
        """Count what matches if words are deleted by the gold tags; all is wrong if the trees have other words.

        Where both trees have deleted the words at the same positions already, the counts are those of EVALB.
        """
        row.aligned_gold, row.aligned_test, row.aligned_words = row.all_gold, row.all_test, row.all_words
        if row.status == VALID and self.gold.deleted == self.test.deleted:
            row.aligned_matched, row.aligned_tags = row.matched, row.tags
            return 0
        if not self.gold.problems.empty() or not self.test.problems.empty():
            return 0
        if align_words(self.gold, self.test, self.equal_words):
            self.take_brackets()
            row.aligned_gold, row.aligned_test = <int32_t>self.matcher.gold.size(), <int32_t>self.matcher.test.size()
            self.matcher.match(False)
            row.aligned_matched = self.matcher.n_matched
            row.aligned_words = <int32_t>self.gold.words.size()
            row.aligned_tags = self.count_tags()
        return 0

    cdef int32_t count_tags(self) noexcept nogil:
        """The number of words with the right tag, of trees over the same words."""
        cdef int32_t n_right = 0
        cdef size_t index
        for index in range(self.gold.words.size()):
            n_right += labels_match(self.labels, self.gold.words[index].tag, self.test.words[index].tag)
        return n_right

    # ---- problems ------------------------------------------------------------------------------------------------

    cdef Problem problem(self, ProblemKind kind, Side side) noexcept nogil:
        """A problem of the current line."""
        cdef Problem problem
        memset(&problem, 0, sizeof(Problem))
        problem.kind, problem.side, problem.line = kind, side, self.n_lines
        if kind == LENGTH_DIFFERS or kind == WORD_DIFFERS:
            problem.n_gold_words, problem.n_test_words = self.gold.words.size(), self.test.words.size()
        return problem

    cdef int add_syntax_problems(self, Side side, TreeReader tree) except -1 nogil:
        cdef Problem problem
        cdef SyntaxProblem found
        cdef size_t index
        for index in range(tree.problems.size()):
            found = tree.problems[index]
            problem = self.problem(found.kind, side)
            problem.column, problem.gold_word = found.column, found.text
            self.add_problem(problem)
            # EVALB repeats the message about stray text until it has made too many errors.
            if found.kind == STRAY_TEXT and self.stop_on_errors:
                self.stopped = True
        return 0

    cdef int add_problem(self, Problem problem) except -1 nogil:
        self.errors.push_back(problem)
        if self.n_errors > self.max_errors and self.stop_on_errors:
            self.stopped = True
        self.n_errors += 1
        self.status = ERROR
        return 0

    # ---- results -------------------------------------------------------------------------------------------------

    @property
    def n_bytes_left(self):
        """Bytes of both files not yet read."""
        self.require_files()
        return (self.gold.end - self.gold.position) + (self.test.end - self.test.position)

    @property
    def rows(self):
        """The table: `ROW_FIELDS` of every sentence as int32, in the machine's byte order."""
        if self.table.empty():
            return b""
        return (<const char*>self.table.data())[:self.table.size() * sizeof(Row)]

    @property
    def totals(self):
        """EVALB's sums over all sentences and over those up to the cut-off length, as two dicts."""
        return self.all, self.cutoff

    @property
    def strict_totals(self):
        """The sums in which every gold bracket of the file counts, as a dict."""
        return self.strict

    @property
    def aligned_totals(self):
        """The same with words deleted by the gold tags."""
        return self.aligned

    @property
    def n_deleted_words(self):
        """The number of gold words that the parameters delete."""
        return self.n_deleted

    def has_label(self, str label not None):
        """Whether a label or tag occurs in one of the files, or in a pair of equal labels."""
        cdef Text text
        self.require_files()
        text = encode(label, self.encoded)
        return self.labels.contains(text)

    @property
    def label_counts(self):
        """For every bracket label: gold, test, matched gold and matched test brackets."""
        cdef symbol_t label
        cdef LabelCounts n
        self.require_files()
        result = {}
        for label in range(<symbol_t>self.matcher.label_counts.size()):
            n = self.matcher.label_counts[label]
            if n.gold or n.test:
                result[decode(self.labels.table[label].text)] = (n.gold, n.test, n.matched_gold, n.matched_test)
        return result

    @property
    def confusions(self):
        """How often a gold label met another test label over the same words: ``{(gold, test): count}``."""
        self.require_files()
        return {
            (decode(self.labels.table[item.first >> 32].text),
             decode(self.labels.table[item.first & 0xffffffff].text)): item.second
            for item in self.matcher.confusions
        }

    @property
    def problems(self):
        """Every error: kind, side, line, column, numbers of gold and of test words, gold word, test word."""
        return [
            (
                PROBLEM_KINDS[<int>problem.kind], SIDES[<int>problem.side],
                problem.line, problem.column, problem.n_gold_words, problem.n_test_words,
                decode(problem.gold_word), decode(problem.test_word),
            )
            for problem in self.errors
        ]


# ---- EVALB's table -----------------------------------------------------------------------------------------------

cdef enum:
    # Longer than a row can be: eleven numbers of at most 20 characters, and the spaces between them.
    MAX_ROW_BYTES = 512


def format_table(bytes rows not None):
    """The lines of EVALB's table for `rows`, as `Scorer.rows` gives them; sentences are numbered from 1."""
    # No string: Cython takes its functions for ones that cannot fail.
    cdef vector[char] text
    cdef const char* data = rows
    cdef char* end
    cdef size_t n_rows = len(rows) // sizeof(Row), index
    cdef Row row
    cdef char[MAX_ROW_BYTES] line
    if len(rows) % sizeof(Row):
        raise ValueError(f"{len(rows)} bytes are not a whole number of rows")
    with nogil:
        text.reserve(n_rows * 80)
        for index in range(n_rows):
            memcpy(&row, data + index * sizeof(Row), sizeof(Row))
            end = write_row(line, index + 1, &row)
            text.insert(text.end(), <char*>line, end)
    return text.data()[:text.size()].decode("ascii") if n_rows else ""


cdef char* write_row(char* position, int64_t number, const Row* row) noexcept nogil:
    position = write_integer(position, number, 4)
    position = write_count(position, 2, row.length, 3)
    position = write_count(position, 4, row.status, 1)
    position = write_spaces(position, 2)
    position = write_percent(position, row.matched, row.gold)
    position = write_spaces(position, 1)
    position = write_percent(position, row.matched, row.test)
    position = write_count(position, 3, row.matched, 3)
    position = write_count(position, 4, row.gold, 3)
    position = write_count(position, 2, row.test, 3)
    position = write_count(position, 4, row.crossing, 3)
    position = write_count(position, 3, row.words, 4)
    position = write_count(position, 2, row.tags, 4)
    position = write_spaces(position, 3)
    position = write_percent(position, row.tags, row.words)
    position[0] = c"\n"
    return position + 1


cdef char* write_spaces(char* position, int n_spaces) noexcept nogil:
    memset(position, c" ", n_spaces)
    return position + n_spaces


cdef char* write_integer(char* position, int64_t value, int width) noexcept nogil:
    """A number with spaces before it up to `width`, as C's %*d prints it."""
    cdef char[24] digits
    cdef int n_digits = 0, index
    cdef int64_t rest = value if value >= 0 else -value
    while n_digits == 0 or rest > 0:
        digits[n_digits] = <char>(c"0" + rest % 10)
        rest //= 10
        n_digits += 1
    if value < 0:
        digits[n_digits] = c"-"
        n_digits += 1
    if n_digits < width:
        position = write_spaces(position, width - n_digits)
    for index in range(n_digits):
        position[index] = digits[n_digits - 1 - index]
    return position + n_digits


cdef char* write_count(char* position, int n_spaces, int64_t value, int width) noexcept nogil:
    """`n_spaces` and a number, however wide it is."""
    return write_integer(write_spaces(position, n_spaces), value, width)


cdef char* write_percent(char* position, int64_t part, int64_t whole) noexcept nogil:
    """part / whole in percent, two decimals in six columns, as C's %6.2f prints the double 100.0 * part / whole.

    In integers, because printf is slow and its decimal point depends on the locale. How the double was rounded matters
    only where the true value lies halfway between two numbers of two decimals.
    """
    cdef int64_t hundredths = 0, twice_remainder
    cdef double past_half
    if whole > 0:
        hundredths = 10000 * part // whole
        twice_remainder = 2 * (10000 * part % whole)
        if twice_remainder > whole:
            hundredths += 1
        elif twice_remainder == whole:
            past_half = fma(100.0 * <double>part / <double>whole, 200.0, -<double>(2 * hundredths + 1))
            hundredths += past_half > 0 or (past_half == 0 and hundredths % 2 == 1)
    position = write_integer(position, hundredths // 100, 3)
    position[0] = c"."
    position[1] = <char>(c"0" + hundredths % 100 // 10)
    position[2] = <char>(c"0" + hundredths % 10)
    return position + 3
