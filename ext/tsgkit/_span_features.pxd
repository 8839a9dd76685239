# What a linear model sees of a span of words: the words and classes around both of its ends.
#
# Features of one end are the words and classes on both sides of it. Pairs are the classes of the first and the last
# word, of the words before and after the span, and of one of each.
from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from tsgkit._types cimport index_t, position_t, symbol_t

cdef enum:
    N_END_FEATURES = 8                   # of one end of a span
    N_PAIRS = 4
    N_LENGTHS = 16
    N_EXTRA = 3                          # classes: unknown words, before the sentence, after it


cdef cppclass SpanFeatures:
    # What the spans of a sentence share.
    vector[symbol_t] around              # classes, with two beyond each end of the sentence
    vector[uint64_t] begin               # [position, feature]: codes of the features of spans that begin there
    vector[uint64_t] end


cdef int check_sentence(symbol_t n_classes, const symbol_t[::1] words, const symbol_t[::1] classes) except -1
cdef int find_features(
    SpanFeatures* features, symbol_t n_classes, const symbol_t[::1] words, const symbol_t[::1] classes
) except -1 nogil


cdef inline uint64_t mixed(uint64_t value) noexcept nogil:
    value = value * <uint64_t>0xFF51AFD7ED558CCD
    return value ^ (value >> 32)


cdef inline uint64_t feature_code(uint64_t kind, uint64_t one, uint64_t two, uint64_t three) noexcept nogil:
    """The code of a feature: the place of its weights in a hashed table, by as many of its lowest bits as that has."""
    cdef uint64_t value = kind * <uint64_t>0x9E3779B97F4A7C15
    value = mixed(value ^ (one + 0x7F4A7C15))
    value = mixed(value ^ (two + 0x7F4A7C15))
    return mixed(value ^ (three + 0x7F4A7C15))


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


cdef inline void list_pairs(
        const SpanFeatures* features, index_t n_all, position_t start, position_t end, index_t* pairs) noexcept nogil:
    """The four pairs of classes of a span, numbered by kind and by the classes, of which there are `n_all`."""
    cdef index_t before = features.around[start + 1], first = features.around[start + 2]
    cdef index_t last = features.around[end + 1], after = features.around[end + 2]
    pairs[0] = first * n_all + last
    pairs[1] = (n_all + before) * n_all + after
    pairs[2] = (2 * n_all + first) * n_all + after
    pairs[3] = (3 * n_all + before) * n_all + last
