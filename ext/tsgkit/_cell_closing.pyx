"""Closing cells of a chart before any grammar is looked at: a linear model of the words around both ends of a span.

Before the first stage of a coarse-to-fine cascade. The model is a logistic regression: with ``i`` and ``j`` the ends of
a span,

    log odds(i, j) = sum_f begin_f(i)  +  sum_f end_f(j)  +  sum_{4 kinds} pair(class, class)  +  length(j - i)

says whether any node of a binarised tree covers the words ``i .. j``. The features are those of
`tsgkit._span_features`; what one end has of them, hashed into one table, is added up once per position. So a cell costs
six additions, and a sentence of *n* words *n* squared of them.

It is learned from spans of trees by AdaGrad, one step per sentence. See Roark and Hollingshead (2008), and Bodenstab et
al. (2011), who close cells by models of this kind.
"""

import numpy as np

cimport cython
from libc.math cimport exp, isfinite, sqrt
from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from tsgkit._span_features cimport (
    N_END_FEATURES,
    N_EXTRA,
    N_LENGTHS,
    N_PAIRS,
    SpanFeatures,
    check_sentence,
    find_features,
    length_bucket,
    list_pairs,
)
from tsgkit._types cimport index_t, position_t, symbol_t

cdef enum:
    N_BUCKETS = 1 << 18                  # of hashed features

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
        check_sentence(self.n_classes, words, classes)
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
        check_sentence(self.n_classes, words, classes)
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


# ---- scores ----------------------------------------------------------------------------------------------

cdef cppclass Scores:
    # What the cells of a sentence share.
    SpanFeatures features
    vector[double] begin                 # per position: the sum of the features of spans that begin there
    vector[double] end


cdef inline index_t place_of(uint64_t code) noexcept nogil:
    """The place of a feature in the table."""
    return code & (N_BUCKETS - 1)


cdef int prepare(
        CellScorer scorer, Scores* scores, const symbol_t[::1] words, const symbol_t[::1] classes) except -1 nogil:
    """Find the features of all positions, and add them up."""
    find_features(&scores.features, scorer.n_classes, words, classes)
    sum_features(scorer, scores)
    return 0


cdef int sum_features(CellScorer scorer, Scores* scores) except -1 nogil:
    cdef index_t n_places = scores.features.begin.size() // N_END_FEATURES, place, feature
    scores.begin.clear()
    scores.begin.resize(n_places, 0.0)
    scores.end.clear()
    scores.end.resize(n_places, 0.0)
    for place in range(n_places):
        for feature in range(place * N_END_FEATURES, (place + 1) * N_END_FEATURES):
            scores.begin[place] += scorer.boundary[place_of(scores.features.begin[feature])]
            scores.end[place] += scorer.boundary[place_of(scores.features.end[feature])]
    return 0


cdef inline double score(CellScorer scorer, const Scores* scores, position_t start, position_t end) noexcept nogil:
    cdef index_t pairs[N_PAIRS]
    list_pairs(&scores.features, scorer.n_classes + N_EXTRA, start, end, pairs)
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
            check_sentence(n_classes, words, classes)
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
    cdef index_t feature, place, kind, n_all = scorer.n_classes + N_EXTRA
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
            list_pairs(&scores.features, n_all, start, end, pairs)
            for kind in range(N_PAIRS):
                if gradient.pairs[pairs[kind]] == 0.0:
                    gradient.changed_pairs.push_back(pairs[kind])
                gradient.pairs[pairs[kind]] += derivative
    for place in range(n_words + 1):
        for feature in range(place * N_END_FEATURES, (place + 1) * N_END_FEATURES):
            gradient.boundary[place_of(scores.features.begin[feature])] += gradient.begin[place]
            gradient.boundary[place_of(scores.features.end[feature])] += gradient.end[place]
    for feature in range(<index_t>scores.features.begin.size()):
        place = place_of(scores.features.begin[feature])
        step(&scorer.boundary, &gradient.boundary, &gradient.boundary_squares, place)
        place = place_of(scores.features.end[feature])
        step(&scorer.boundary, &gradient.boundary, &gradient.boundary_squares, place)
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
