# The two semirings of the chart: sums over derivations (inside and outside values), or the best of them (Viterbi values
# and max-marginals).
#
# Every kernel is written once, for `semiring_t`, and compiled once for each: which one is known from the type of the
# pointer that it gets. With (+) for sum or max, and products in both, the kernels compute
#
#     plus         x (+) y
#     dot          (+)_k  left[k] * right[k]
#     plus_scaled  target[k] = target[k] (+) factor * source[k]
from tsgkit._grammar_index cimport GrammarTable
from tsgkit._types cimport index_t, weight_t

cdef extern from "vector_kernels.hpp" namespace "tsgkit" nogil:
    weight_t dot_product(const weight_t* left, const weight_t* right, index_t n) noexcept
    weight_t max_product(const weight_t* left, const weight_t* right, index_t n) noexcept
    void add_scaled(weight_t* target, const weight_t* source, weight_t factor, index_t n) noexcept
    void max_scaled(weight_t* target, const weight_t* source, weight_t factor, index_t n) noexcept


cdef struct SumProduct:
    const weight_t* closures             # of the unary cycles of a grammar: the sums over all paths


cdef struct MaxProduct:
    const weight_t* closures             # the weights of the best paths


ctypedef fused semiring_t:
    SumProduct
    MaxProduct


cdef inline SumProduct sum_semiring(const GrammarTable* grammar) noexcept nogil:
    cdef SumProduct semiring
    semiring.closures = grammar.cycle_sums
    return semiring


cdef inline MaxProduct max_semiring(const GrammarTable* grammar) noexcept nogil:
    cdef MaxProduct semiring
    semiring.closures = grammar.cycle_best
    return semiring


cdef inline weight_t plus(semiring_t* semiring, weight_t old, weight_t new) noexcept nogil:
    if semiring_t is SumProduct:
        return old + new
    else:
        return new if new > old else old


cdef inline weight_t dot(
        semiring_t* semiring, const weight_t* left, const weight_t* right, index_t n) noexcept nogil:
    if semiring_t is SumProduct:
        return dot_product(left, right, n)
    else:
        return max_product(left, right, n)


cdef inline void plus_scaled(
        semiring_t* semiring, weight_t* target, const weight_t* source, weight_t factor, index_t n) noexcept nogil:
    if semiring_t is SumProduct:
        add_scaled(target, source, factor, n)
    else:
        max_scaled(target, source, factor, n)
