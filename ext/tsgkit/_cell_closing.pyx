"""Closing cells of a chart before any grammar is looked at: a linear model of the words around both ends of a span.

Before the first stage of a coarse-to-fine cascade. The model is a logistic regression: with ``i`` and ``j`` the ends of
a span,

    log odds(i, j) = sum_f begin_f(i)  +  sum_f end_f(j)  +  sum_{4 kinds} pair(class, class)  +  length(j - i)

says whether any node of a binarised tree covers the words ``i .. j``. Features of one end are the words and classes on
both sides of it, hashed into one table; they are added up once per position. Pairs are the classes of the first and the
last word, of the words before and after the span, and of one of each. So a cell costs six additions, and a sentence of
*n* words *n* squared of them.

It is learned from spans of trees by AdaGrad, one step per sentence. See Roark and Hollingshead (2008), and Bodenstab et
al. (2011), who close cells by models of this kind.
"""

import numpy as np

cimport cython
from libc.math cimport exp, isfinite, sqrt
from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from tsgkit._types cimport index_t, position_t, symbol_t

cdef enum:
    N_BUCKETS = 1 << 18                  # of hashed features
    N_FEATURES = 8                       # of one end of a span
    N_PAIRS = 4
    N_LENGTHS = 16
    N_EXTRA = 3                          # classes: unknown words, before the sentence, after it

BOUNDARY_SIZE, PAIR_KINDS, LENGTH_SIZE, EXTRA_CLASSES = N_BUCKETS, N_PAIRS, N_LENGTHS, N_EXTRA
# The step of AdaGrad, and what its sums of squares begin with.
cdef double STEP = 0.3
cdef double FIRST_SQUARE = 0.1
cdef double LARGEST_LOG_ODDS = 10.0


@cython.final
cdef class OpenCells:
    """The cells of a sentence that are worth filling, with weights by which their binary rules are multiplied.

    Parameters
    ----------
    weights : square array of float
        By start and end; 0 where a cell is closed. There is one row more than words.
    """

    def __init__(self, weights):
        cdef const double[:, ::1] given = np.ascontiguousarray(weights, dtype=np.float64)
        cdef index_t n_rows = given.shape[0], start, end
        if n_rows < 1 or given.shape[1] != n_rows:
            raise ValueError(f"{n_rows} x {given.shape[1]} weights of cells: a square is needed")
        self.n_words, self.has_weights = n_rows - 1, False
        self.weights.resize(n_rows * n_rows, 0.0)
        for start in range(n_rows):
            for end in range(start + 1, n_rows):
                if not (isfinite(given[start, end]) and given[start, end] >= 0.0):
                    raise ValueError(
                        f"weight {given[start, end]} of cell {start}..{end}: must be finite and at least 0")
                self.weights[start * n_rows + end] = given[start, end]
                self.has_weights |= given[start, end] != 0.0 and given[start, end] != 1.0

    def is_open(self, position_t start, position_t end):
        if not 0 <= start < end <= self.n_words:
            raise IndexError(f"span {start}..{end} is out of range: there are {self.n_words} words")
        return self.weights[start * <index_t>(self.n_words + 1) + end] > 0.0

    def count(self):
        """How many they are."""
        cdef index_t number = 0
        cdef double weight
        for weight in self.weights:
            number += weight > 0.0
        return number


@cython.final
cdef class CellScorer:
    """The model.

    Parameters
    ----------
    n_classes : int
        Classes of words, numbered from 0; the three after them stand for unknown words and for no word.
    boundary, pairs, lengths : arrays of float32
        The weights, with `BOUNDARY_SIZE`, `PAIR_KINDS` times the square of the number of classes with those three, and
        `LENGTH_SIZE` of them; all finite.
    """

    def __init__(self, symbol_t n_classes, const float[::1] boundary, const float[::1] pairs, const float[::1] lengths):
        cdef index_t n_all = n_classes + N_EXTRA
        if n_classes < 0 or boundary.shape[0] != N_BUCKETS or pairs.shape[0] != N_PAIRS * n_all * n_all or (
                lengths.shape[0] != N_LENGTHS):
            raise ValueError("the weights of cells do not fit together")
        self.n_classes = n_classes
        self.boundary.assign(&boundary[0], &boundary[0] + boundary.shape[0])
        self.pairs.assign(&pairs[0], &pairs[0] + pairs.shape[0])
        self.lengths.assign(&lengths[0], &lengths[0] + lengths.shape[0])

    def log_odds(self, const symbol_t[::1] words, const symbol_t[::1] classes):
        """The log odds that a node covers each span, as a square array; -inf where the end is not after the start."""
        cdef Scores scores
        cdef position_t n_words = words.shape[0], start, end
        check_sentence(self, words, classes)
        result = np.full((n_words + 1, n_words + 1), -np.inf)
        cdef double[:, ::1] view = result
        with nogil:
            prepare(self, &scores, words, classes)
            for start in range(n_words):
                for end in range(start + 1, n_words + 1):
                    view[start, end] = score(self, &scores, start, end)
        return result

    def open_cells(self, const symbol_t[::1] words, const symbol_t[::1] classes, double smallest, double power=0.0):
        """The cells whose log odds are at least `smallest`, and always those of single words and of all words.

        Parameters
        ----------
        words, classes : arrays of int32
            Of each word its number, or -1 if it is unknown, and its class.
        smallest : float
        power : float
            The weight of a cell is its odds to this power; with 0, that of all open cells is 1.
        """
        cdef OpenCells cells = OpenCells.__new__(OpenCells)
        cdef Scores scores
        cdef position_t n_words = words.shape[0], start, end
        cdef index_t cell
        cdef double log_odds
        check_sentence(self, words, classes)
        cells.n_words, cells.has_weights = n_words, power != 0.0
        with nogil:
            cells.weights.resize(<index_t>(n_words + 1) * (n_words + 1), 0.0)
            prepare(self, &scores, words, classes)
            for start in range(n_words):
                for end in range(start + 1, n_words + 1):
                    cell = start * <index_t>(n_words + 1) + end
                    if end == start + 1 or end - start == n_words:
                        cells.weights[cell] = 1.0
                        continue
                    log_odds = score(self, &scores, start, end)
                    if log_odds >= smallest:
                        cells.weights[cell] = exp(power * min(log_odds, LARGEST_LOG_ODDS)) if power != 0.0 else 1.0
        return cells


cdef int check_sentence(CellScorer scorer, const symbol_t[::1] words, const symbol_t[::1] classes) except -1:
    cdef position_t position
    if words.shape[0] != classes.shape[0]:
        raise ValueError(f"{words.shape[0]} words, {classes.shape[0]} classes")
    for position in range(words.shape[0]):
        if not 0 <= classes[position] <= scorer.n_classes or words[position] < -1:
            raise ValueError(f"word {words[position]} of class {classes[position]} is out of range")
    return 0


# ---- features --------------------------------------------------------------------------------------------

cdef cppclass Scores:
    # What the cells of a sentence share.
    vector[symbol_t] around              # classes, with two beyond each end of the sentence
    vector[index_t] begin_features       # [position, feature]: places in the table
    vector[index_t] end_features
    vector[double] begin                 # per position: the sum of the features of spans that begin there
    vector[double] end


cdef index_t place_of(uint64_t kind, uint64_t one, uint64_t two, uint64_t three) noexcept nogil:
    """The place of a feature in the table."""
    cdef uint64_t value = kind * <uint64_t>0x9E3779B97F4A7C15
    value = mixed(value ^ (one + 0x7F4A7C15))
    value = mixed(value ^ (two + 0x7F4A7C15))
    value = mixed(value ^ (three + 0x7F4A7C15))
    return value & (N_BUCKETS - 1)


cdef inline uint64_t mixed(uint64_t value) noexcept nogil:
    value = value * <uint64_t>0xFF51AFD7ED558CCD
    return value ^ (value >> 32)


cdef int prepare(
        CellScorer scorer, Scores* scores, const symbol_t[::1] words, const symbol_t[::1] classes) except -1 nogil:
    """Find the features of all positions, and add them up."""
    cdef position_t n_words = words.shape[0], position
    cdef symbol_t before = scorer.n_classes + 1, after = scorer.n_classes + 2
    scores.around.clear()
    scores.around.resize(n_words + 4, before)
    for position in range(n_words):
        scores.around[position + 2] = classes[position]
    scores.around[n_words + 2] = scores.around[n_words + 3] = after
    scores.begin_features.resize((n_words + 1) * N_FEATURES)
    scores.end_features.resize((n_words + 1) * N_FEATURES)
    for position in range(n_words + 1):
        list_features(scores, words, position)
    sum_features(scorer, scores)
    return 0


cdef void list_features(Scores* scores, const symbol_t[::1] words, position_t position) noexcept nogil:
    """The features of spans that begin at a position, and of those that end there."""
    cdef index_t* begin = &scores.begin_features[position * N_FEATURES]
    cdef index_t* end = &scores.end_features[position * N_FEATURES]
    # Two words before the position and two after it. Numbers of words are moved so that all are positive.
    cdef symbol_t far_left = scores.around[position], left = scores.around[position + 1]
    cdef symbol_t right = scores.around[position + 2], far_right = scores.around[position + 3]
    cdef symbol_t left_word = words[position - 1] + 1 if position > 0 else -1
    cdef symbol_t right_word = words[position] + 1 if position < words.shape[0] else -1
    begin[0], end[0] = place_of(0, left, right, 0), place_of(8, left, right, 0)
    begin[1], end[1] = place_of(1, left_word + 1, 0, 0), place_of(9, left_word + 1, 0, 0)
    begin[2], end[2] = place_of(2, right_word + 1, 0, 0), place_of(10, right_word + 1, 0, 0)
    begin[3], end[3] = place_of(3, right, far_right, 0), place_of(11, right, far_right, 0)
    begin[4], end[4] = place_of(4, far_left, left, 0), place_of(12, far_left, left, 0)
    begin[5], end[5] = place_of(5, left, right, far_right), place_of(13, left, right, far_right)
    begin[6], end[6] = place_of(6, far_left, left, right), place_of(14, far_left, left, right)
    begin[7], end[7] = place_of(7, left_word + 1, right, 0), place_of(15, left, right_word + 1, 0)


cdef int sum_features(CellScorer scorer, Scores* scores) except -1 nogil:
    cdef index_t n_places = scores.begin_features.size() // N_FEATURES, place, feature
    scores.begin.clear()
    scores.begin.resize(n_places, 0.0)
    scores.end.clear()
    scores.end.resize(n_places, 0.0)
    for place in range(n_places):
        for feature in range(place * N_FEATURES, (place + 1) * N_FEATURES):
            scores.begin[place] += scorer.boundary[scores.begin_features[feature]]
            scores.end[place] += scorer.boundary[scores.end_features[feature]]
    return 0


cdef inline index_t length_bucket(position_t length) noexcept nogil:
    """Lengths up to eight one by one, then in ranges that grow."""
    cdef index_t bucket = 8
    if length <= 8:
        return length - 1
    length = (length - 1) >> 3
    while length > 1 and bucket < N_LENGTHS - 1:
        length >>= 1
        bucket += 1
    return bucket


cdef inline void list_pairs(CellScorer scorer, const Scores* scores, position_t start, position_t end,
                            index_t* pairs) noexcept nogil:
    """The places of the four pairs of classes of a span."""
    cdef index_t n_all = scorer.n_classes + N_EXTRA
    cdef index_t before = scores.around[start + 1], first = scores.around[start + 2]
    cdef index_t last = scores.around[end + 1], after = scores.around[end + 2]
    pairs[0] = first * n_all + last
    pairs[1] = (n_all + before) * n_all + after
    pairs[2] = (2 * n_all + first) * n_all + after
    pairs[3] = (3 * n_all + before) * n_all + last


cdef inline double score(CellScorer scorer, const Scores* scores, position_t start, position_t end) noexcept nogil:
    cdef index_t pairs[N_PAIRS]
    list_pairs(scorer, scores, start, end, pairs)
    return (
        scores.begin[start] + scores.end[end] + scorer.lengths[length_bucket(end - start)]
        + scorer.pairs[pairs[0]] + scorer.pairs[pairs[1]] + scorer.pairs[pairs[2]] + scorer.pairs[pairs[3]])


# ---- learning --------------------------------------------------------------------------------------------

cdef cppclass Gradient:
    # The derivatives of the loss of a sentence, and the squares of all before.
    vector[double] boundary
    vector[double] pairs
    vector[double] lengths
    vector[double] boundary_squares
    vector[double] pair_squares
    vector[double] length_squares
    vector[index_t] changed_pairs        # places of derivatives that may not be zero
    vector[double] begin                 # per position, summed over the spans that begin there
    vector[double] end


def learn_weights(symbol_t n_classes, sentences, int n_epochs, order):
    """Learn the weights from sentences of which the spans of all nodes are known.

    Parameters
    ----------
    n_classes : int
    sentences : list of (words, classes, is_node)
        Arrays of int32, and flags of spans as a square array of uint8, [start, end].
    n_epochs : int
    order : list of sequences of int
        In which order the sentences are gone through in each epoch.

    Returns
    -------
    boundary, pairs, lengths : ndarray of float32
    """
    cdef index_t n_all = n_classes + N_EXTRA
    cdef CellScorer scorer = CellScorer(
        n_classes, np.zeros(N_BUCKETS, np.float32), np.zeros(N_PAIRS * n_all * n_all, np.float32),
        np.zeros(N_LENGTHS, np.float32))
    cdef Gradient gradient
    cdef const symbol_t[::1] words, classes
    cdef const unsigned char[:, ::1] is_node
    make_gradient(&gradient, scorer)
    for epoch in range(n_epochs):
        for number in order[epoch]:
            words, classes, is_node = sentences[number]
            check_sentence(scorer, words, classes)
            if is_node.shape[0] != words.shape[0] + 1 or is_node.shape[1] != words.shape[0] + 1:
                raise ValueError(f"sentence {number}: one flag is needed for every span")
            learn_sentence(scorer, &gradient, words, classes, is_node)
    return (
        np.array(<float[:scorer.boundary.size()]>scorer.boundary.data()),
        np.array(<float[:scorer.pairs.size()]>scorer.pairs.data()),
        np.array(<float[:scorer.lengths.size()]>scorer.lengths.data()))


cdef int make_gradient(Gradient* gradient, CellScorer scorer) except -1:
    gradient.boundary.resize(scorer.boundary.size(), 0.0)
    gradient.pairs.resize(scorer.pairs.size(), 0.0)
    gradient.lengths.resize(scorer.lengths.size(), 0.0)
    gradient.boundary_squares.resize(scorer.boundary.size(), FIRST_SQUARE)
    gradient.pair_squares.resize(scorer.pairs.size(), FIRST_SQUARE)
    gradient.length_squares.resize(scorer.lengths.size(), FIRST_SQUARE)
    return 0


cdef int learn_sentence(
        CellScorer scorer, Gradient* gradient, const symbol_t[::1] words, const symbol_t[::1] classes,
        const unsigned char[:, ::1] is_node) except -1 nogil:
    """One step along the gradient of a sentence."""
    cdef Scores scores
    cdef position_t n_words = words.shape[0], start, end
    cdef index_t feature, place, kind
    cdef index_t pairs[N_PAIRS]
    cdef double derivative
    prepare(scorer, &scores, words, classes)
    gradient.begin.clear()
    gradient.begin.resize(n_words + 1, 0.0)
    gradient.end.clear()
    gradient.end.resize(n_words + 1, 0.0)
    for start in range(n_words):
        for end in range(start + 2, n_words + 1):
            derivative = 1.0 / (1.0 + exp(-score(scorer, &scores, start, end))) - is_node[start, end]
            gradient.begin[start] += derivative
            gradient.end[end] += derivative
            gradient.lengths[length_bucket(end - start)] += derivative
            list_pairs(scorer, &scores, start, end, pairs)
            for kind in range(N_PAIRS):
                if gradient.pairs[pairs[kind]] == 0.0:
                    gradient.changed_pairs.push_back(pairs[kind])
                gradient.pairs[pairs[kind]] += derivative
    for place in range(n_words + 1):
        for feature in range(place * N_FEATURES, (place + 1) * N_FEATURES):
            gradient.boundary[scores.begin_features[feature]] += gradient.begin[place]
            gradient.boundary[scores.end_features[feature]] += gradient.end[place]
    for feature in range(<index_t>scores.begin_features.size()):
        step(&scorer.boundary, &gradient.boundary, &gradient.boundary_squares, scores.begin_features[feature])
        step(&scorer.boundary, &gradient.boundary, &gradient.boundary_squares, scores.end_features[feature])
    for place in range(<index_t>gradient.changed_pairs.size()):
        step(&scorer.pairs, &gradient.pairs, &gradient.pair_squares, gradient.changed_pairs[place])
    gradient.changed_pairs.clear()
    for place in range(N_LENGTHS):
        step(&scorer.lengths, &gradient.lengths, &gradient.length_squares, place)
    return 0


cdef inline void step(
        vector[float]* weights, vector[double]* derivatives, vector[double]* squares, index_t place) noexcept nogil:
    """Change one weight, once: its derivative is zero after that."""
    cdef double derivative = derivatives[0][place]
    if derivative != 0.0:
        squares[0][place] += derivative * derivative
        weights[0][place] -= STEP * derivative / sqrt(squares[0][place])
        derivatives[0][place] = 0.0
