"""Features of spans: the words and classes around both ends, as codes of 64 bits.

For linear models of spans, which have their weights in tables: which cells of a chart are worth filling
(`tsgkit._cell_closing`), and which labels spans have (`tsgkit._span_labels`). Features of one end are added up once per
position, pairs once per span.
"""

from libc.stdint cimport uint64_t

from tsgkit._types cimport position_t, symbol_t


cdef int check_sentence(symbol_t n_classes, const symbol_t[::1] words, const symbol_t[::1] classes) except -1:
    """Refuse words and classes that have no features."""
    cdef position_t position
    if words.shape[0] != classes.shape[0]:
        raise ValueError(f"{words.shape[0]} words, {classes.shape[0]} classes")
    for position in range(words.shape[0]):
        if not 0 <= classes[position] <= n_classes or words[position] < -1:
            raise ValueError(f"word {words[position]} of class {classes[position]} is out of range")
    return 0


cdef int find_features(
        SpanFeatures* features, symbol_t n_classes, const symbol_t[::1] words, const symbol_t[::1] classes
) except -1 nogil:
    """Find the features of all positions of a sentence."""
    cdef position_t n_words = words.shape[0], position
    cdef symbol_t before = n_classes + 1, after = n_classes + 2
    features.around.clear()
    features.around.resize(n_words + 4, before)
    for position in range(n_words):
        features.around[position + 2] = classes[position]
    features.around[n_words + 2] = features.around[n_words + 3] = after
    features.begin.resize((n_words + 1) * N_END_FEATURES)
    features.end.resize((n_words + 1) * N_END_FEATURES)
    for position in range(n_words + 1):
        list_features(features, words, position)
    return 0


cdef void list_features(SpanFeatures* features, const symbol_t[::1] words, position_t position) noexcept nogil:
    """The features of spans that begin at a position, and of those that end there."""
    cdef uint64_t* begin = &features.begin[position * N_END_FEATURES]
    cdef uint64_t* end = &features.end[position * N_END_FEATURES]
    # Two words before the position and two after it. Numbers of words are moved so that all are positive.
    cdef symbol_t far_left = features.around[position], left = features.around[position + 1]
    cdef symbol_t right = features.around[position + 2], far_right = features.around[position + 3]
    cdef symbol_t left_word = words[position - 1] + 2 if position > 0 else 0
    cdef symbol_t right_word = words[position] + 2 if position < words.shape[0] else 0
    begin[0], end[0] = feature_code(0, left, right, 0), feature_code(8, left, right, 0)
    begin[1], end[1] = feature_code(1, left_word, 0, 0), feature_code(9, left_word, 0, 0)
    begin[2], end[2] = feature_code(2, right_word, 0, 0), feature_code(10, right_word, 0, 0)
    begin[3], end[3] = feature_code(3, right, far_right, 0), feature_code(11, right, far_right, 0)
    begin[4], end[4] = feature_code(4, far_left, left, 0), feature_code(12, far_left, left, 0)
    begin[5], end[5] = feature_code(5, left, right, far_right), feature_code(13, left, right, far_right)
    begin[6], end[6] = feature_code(6, far_left, left, right), feature_code(14, far_left, left, right)
    begin[7], end[7] = feature_code(7, left_word, right, 0), feature_code(15, left, right_word, 0)
