"""Resampling for the paired bootstrap test.

Last stage of the flow: trees again -> a score, and whether two systems differ in it. `resample_differences` draws

    d*_b = F(sum_i n_i a_i) - F(sum_i n_i b_i),    n ~ Multinomial(N; 1/N, ..., 1/N)

for the count vectors ``a_i`` and ``b_i`` = (matched, gold, test) of sentence i under two systems.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from tsgkit._random cimport bitgen_of, bitgen_t


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
    cdef bitgen_t* generator = bitgen_of(bit_generator)
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
    """A uniform number below `bound`, by Lemire's method: a product's high half, rejected where it would be biased."""
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
