"""Labels of spans, as the words around both ends of a span make them likely: what a grammar without words cannot see.

Beside the grammar, when the best tree is chosen. The model is a multinomial logistic regression: with ``i`` and ``j``
the ends of a span,

    score_y(i, j) = sum_f begin_f,y(i)  +  sum_f end_f,y(j)  +  sum_{4 kinds} pair_y(class, class)  +  length_y(j - i)
    log odds of y = score_y(i, j) - score_0(i, j)

where ``y`` is the label of the node with two children that covers the words ``i .. j`` of a binarised tree, and 0
stands for no such node. The features are those of `tsgkit._span_features`, hashed into the rows of one table with a
column per output. It is learned from trees by AdaGrad, one step per sentence. See Hall, Durrett and Klein (2014), whose
parser has features of this kind in a conditional random field.
"""

import numpy as np

cimport cython
from libc.math cimport exp, expf, sqrtf
from libc.stdint cimport int8_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._forest cimport Edge, Forest
from tsgkit._span_features cimport (
    N_END_FEATURES,
    N_EXTRA,
    N_PAIRS,
    SpanFeatures,
    check_sentence,
    feature_code,
    find_features,
    length_bucket,
    list_pairs,
)
from tsgkit._types cimport index_t, position_t, symbol_t

cdef enum:
    N_SPAN_FEATURES = N_PAIRS + 1        # of a whole span: pairs of classes, and its length

# The kinds of features of a whole span, after those of its ends.
cdef uint64_t PAIR_KIND = 16
cdef uint64_t LENGTH_KIND = 17
# The step of AdaGrad, and what its sums of squares begin with.
cdef float STEP = 0.3
cdef float FIRST_SQUARE = 0.1
# A model that was made to harm must not take weights out of the range of floats.
cdef double LARGEST_LOG_ODDS = 30.0


@cython.final
cdef class LabelScorer:
    """The model.

    Parameters
    ----------
    n_classes : int
        Classes of words, as `tsgkit._cell_closing.CellScorer` numbers them.
    weights : array of float32
        One row per feature, a power of two of them, and one column per output; output 0 stands for no node. All are
        finite.
    """

    def __init__(self, symbol_t n_classes, const float[:, ::1] weights):
        cdef index_t n_rows = weights.shape[0]
        if n_classes < 0 or n_rows < 1 or n_rows & (n_rows - 1) or weights.shape[1] < 1:
            raise ValueError("the weights of labels do not fit together")
        self.n_classes, self.n_outputs, self.n_rows = n_classes, weights.shape[1], n_rows
        self.weights.assign(&weights[0, 0], &weights[0, 0] + n_rows * self.n_outputs)

    def log_odds(self, const symbol_t[::1] words, const symbol_t[::1] classes):
        """The log odds of each output against no node, ``[start, end, output]``; -inf for spans without two words."""
        cdef LabelScores scores
        cdef position_t n_words = words.shape[0], start, end
        cdef index_t output
        check_sentence(self.n_classes, words, classes)
        result = np.full((n_words + 1, n_words + 1, self.n_outputs), -np.inf)
        cdef double[:, :, ::1] view = result
        with nogil:
            prepare(self, &scores, words, classes)
            for start in range(n_words):
                for end in range(start + 2, n_words + 1):
                    add_up(self, &scores, start, end)
                    for output in range(self.n_outputs):
                        view[start, end, output] = <double>scores.of_span[output] - scores.of_span[0]
        return result

    def weigh(self, Forest forest not None, const symbol_t[::1] words, const symbol_t[::1] classes,
              const symbol_t[::1] output_of_label, double power):
        """Multiply the posterior of every rule with two children by the odds of its label, to a power.

        Parameters
        ----------
        forest : Forest
            Of these words; it is changed.
        words, classes : arrays of int32
            Of each word its number, or -1 if it is unknown, and its class.
        output_of_label : array of int32
            For every label of the forest its output; 0 for labels that this model does not know, whose rules stay as
            they are.
        power : float
        """
        cdef LabelScores scores
        cdef vector[Edge]* edges = &forest.edges
        cdef symbol_t output, label
        cdef index_t number
        cdef position_t start = -1, end = -1
        cdef double log_odds
        check_sentence(self.n_classes, words, classes)
        if words.shape[0] != forest.n_words or output_of_label.shape[0] != forest.n_labels:
            raise ValueError("the forest has other words or labels")
        for label in range(forest.n_labels):
            if not 0 <= output_of_label[label] < self.n_outputs:
                raise ValueError(f"output {output_of_label[label]} is out of range")
        with nogil:
            prepare(self, &scores, words, classes)
            for number in range(<index_t>edges.size()):
                output = output_of_label[edges[0][number].label % forest.n_labels]
                if edges[0][number].right < 0 or output == 0:
                    continue
                # The rules of a span follow each other.
                if edges[0][number].start != start or edges[0][number].end != end:
                    start, end = edges[0][number].start, edges[0][number].end
                    add_up(self, &scores, start, end)
                log_odds = <double>scores.of_span[output] - scores.of_span[0]
                edges[0][number].posterior *= exp(
                    power * min(max(log_odds, -LARGEST_LOG_ODDS), LARGEST_LOG_ODDS))


# ---- scores ----------------------------------------------------------------------------------------------

cdef cppclass LabelScores:
    # What the spans of a sentence share, and the scores of the one at work.
    SpanFeatures features
    vector[float] begin                  # [position, output]: the sum over the features of spans that begin there
    vector[float] end
    vector[float] of_span                # per output
    index_t span_rows[N_SPAN_FEATURES]   # of the features of the whole span


cdef inline index_t row_of(LabelScorer scorer, uint64_t code) noexcept nogil:
    """The row of a feature in the table."""
    return code & (scorer.n_rows - 1)


cdef inline void add_row(float* sums, const float* row, index_t n_outputs) noexcept nogil:
    cdef index_t output
    for output in range(n_outputs):
        sums[output] += row[output]


cdef int prepare(LabelScorer scorer, LabelScores* scores, const symbol_t[::1] words,
                 const symbol_t[::1] classes) except -1 nogil:
    """Find the features of all positions, and add up their weights."""
    cdef index_t n_outputs = scorer.n_outputs, n_positions = words.shape[0] + 1, position, feature
    find_features(&scores.features, scorer.n_classes, words, classes)
    scores.begin.clear()
    scores.begin.resize(n_positions * n_outputs, 0.0)
    scores.end.clear()
    scores.end.resize(n_positions * n_outputs, 0.0)
    scores.of_span.resize(n_outputs)
    for position in range(n_positions):
        for feature in range(position * N_END_FEATURES, (position + 1) * N_END_FEATURES):
            add_row(
                &scores.begin[position * n_outputs],
                &scorer.weights[row_of(scorer, scores.features.begin[feature]) * n_outputs], n_outputs)
            add_row(
                &scores.end[position * n_outputs],
                &scorer.weights[row_of(scorer, scores.features.end[feature]) * n_outputs], n_outputs)
    return 0


cdef void add_up(LabelScorer scorer, LabelScores* scores, position_t start, position_t end) noexcept nogil:
    """The scores of a span."""
    cdef index_t n_outputs = scorer.n_outputs, output, feature
    cdef const float* begin = &scores.begin[start * n_outputs]
    cdef const float* at_end = &scores.end[end * n_outputs]
    list_span_rows(scorer, &scores.features, start, end, scores.span_rows)
    for output in range(n_outputs):
        scores.of_span[output] = begin[output] + at_end[output]
    for feature in range(N_SPAN_FEATURES):
        add_row(&scores.of_span[0], &scorer.weights[scores.span_rows[feature] * n_outputs], n_outputs)


cdef void list_span_rows(
        LabelScorer scorer, const SpanFeatures* features, position_t start, position_t end, index_t* rows
) noexcept nogil:
    cdef index_t pairs[N_PAIRS]
    cdef index_t kind
    list_pairs(features, scorer.n_classes + N_EXTRA, start, end, pairs)
    for kind in range(N_PAIRS):
        rows[kind] = row_of(scorer, feature_code(PAIR_KIND, pairs[kind], 0, 0))
    rows[N_PAIRS] = row_of(scorer, feature_code(LENGTH_KIND, length_bucket(end - start), 0, 0))


# ---- learning --------------------------------------------------------------------------------------------

cdef cppclass LabelGradient:
    # The derivatives of the loss of a sentence, and the squares of all before; as the table of weights.
    vector[float] weights
    vector[float] squares
    vector[index_t] rows                 # of derivatives that may not be zero
    vector[uint8_t] is_listed            # per row
    vector[float] begin                  # [position, output]: summed over the spans that begin there
    vector[float] end


def learn_label_weights(symbol_t n_classes, symbol_t n_outputs, index_t n_rows, sentences, order):
    """Learn the weights from sentences of which the labels of spans are known.

    Parameters
    ----------
    n_classes, n_outputs : int
    n_rows : int
        Of hashed features, a power of two.
    sentences : list of (words, classes, outputs)
        Arrays of int32; outputs of spans as a square array of int8, ``[start, end]``: -1 for spans not to learn from.
    order : list of sequences of int
        In which order the sentences are gone through in each epoch.

    Returns
    -------
    ndarray of float32
        By row and output.
    """
    cdef LabelScorer scorer = LabelScorer(n_classes, np.zeros((n_rows, n_outputs), np.float32))
    cdef LabelGradient gradient
    cdef const symbol_t[::1] words, classes
    cdef const int8_t[:, ::1] outputs
    gradient.weights.resize(scorer.weights.size(), 0.0)
    gradient.squares.resize(scorer.weights.size(), FIRST_SQUARE)
    gradient.is_listed.resize(n_rows, 0)
    for epoch in order:
        for number in epoch:
            words, classes, outputs = sentences[number]
            check_sentence(n_classes, words, classes)
            if outputs.shape[0] != words.shape[0] + 1 or outputs.shape[1] != words.shape[0] + 1:
                raise ValueError(f"sentence {number}: one output is needed for every span")
            if np.max(outputs, initial=0) >= n_outputs:
                raise ValueError(f"sentence {number}: an output is out of range")
            learn_sentence(scorer, &gradient, words, classes, outputs)
    return np.array(<float[:scorer.weights.size()]>scorer.weights.data()).reshape(n_rows, n_outputs)


cdef int learn_sentence(
        LabelScorer scorer, LabelGradient* gradient, const symbol_t[::1] words, const symbol_t[::1] classes,
        const int8_t[:, ::1] outputs) except -1 nogil:
    """One step along the gradient of a sentence."""
    cdef LabelScores scores
    cdef index_t n_outputs = scorer.n_outputs, n_positions = words.shape[0] + 1, position, feature
    cdef position_t start, end
    prepare(scorer, &scores, words, classes)
    gradient.begin.clear()
    gradient.begin.resize(n_positions * n_outputs, 0.0)
    gradient.end.clear()
    gradient.end.resize(n_positions * n_outputs, 0.0)
    for start in range(words.shape[0]):
        for end in range(start + 2, n_positions):
            if outputs[start, end] < 0:
                continue
            add_up(scorer, &scores, start, end)
            take_errors(&scores.of_span[0], n_outputs, outputs[start, end])
            add_row(&gradient.begin[start * n_outputs], &scores.of_span[0], n_outputs)
            add_row(&gradient.end[end * n_outputs], &scores.of_span[0], n_outputs)
            for feature in range(N_SPAN_FEATURES):
                add_derivatives(gradient, scores.span_rows[feature], &scores.of_span[0], n_outputs)
    for position in range(n_positions):
        for feature in range(position * N_END_FEATURES, (position + 1) * N_END_FEATURES):
            add_derivatives(
                gradient, row_of(scorer, scores.features.begin[feature]), &gradient.begin[position * n_outputs],
                n_outputs)
            add_derivatives(
                gradient, row_of(scorer, scores.features.end[feature]), &gradient.end[position * n_outputs],
                n_outputs)
    take_step(scorer, gradient)
    return 0


cdef void take_errors(float* scores, index_t n_outputs, index_t right) noexcept nogil:
    """Turn the scores of a span into the derivatives of its loss: probabilities, less 1 for the right output."""
    cdef float largest = scores[0], total = 0.0
    cdef index_t output
    for output in range(1, n_outputs):
        largest = max(largest, scores[output])
    for output in range(n_outputs):
        scores[output] = expf(scores[output] - largest)
        total += scores[output]
    for output in range(n_outputs):
        scores[output] /= total
    scores[right] -= 1.0


cdef int add_derivatives(
        LabelGradient* gradient, index_t row, const float* derivatives, index_t n_outputs) except -1 nogil:
    if not gradient.is_listed[row]:
        gradient.rows.push_back(row)
        gradient.is_listed[row] = 1
    add_row(&gradient.weights[row * n_outputs], derivatives, n_outputs)
    return 0


cdef void take_step(LabelScorer scorer, LabelGradient* gradient) noexcept nogil:
    """Change the weights of all rows with derivatives, which are zero after that."""
    cdef index_t n_outputs = scorer.n_outputs, place, number
    cdef float derivative
    for number in range(<index_t>gradient.rows.size()):
        gradient.is_listed[gradient.rows[number]] = 0
        for place in range(gradient.rows[number] * n_outputs, (gradient.rows[number] + 1) * n_outputs):
            derivative = gradient.weights[place]
            gradient.squares[place] += derivative * derivative
            scorer.weights[place] -= STEP * derivative / sqrtf(gradient.squares[place])
            gradient.weights[place] = 0.0
    gradient.rows.clear()
