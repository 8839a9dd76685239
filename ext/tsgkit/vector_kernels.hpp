// The innermost loops of the chart: over split points, on vectors that lie next to each other in memory.
//
// Sums run in four lanes in a fixed order and never fuse multiply and add, so that the result is the same
// to the last bit with or without wide registers. On x86 the loops are compiled twice and the processor
// chooses; nothing here needs more than the baseline instruction set.
#pragma once

#include <cstdint>

// musl, as in Alpine Linux, cannot choose between them when the module is loaded: __gnu_linux__ is glibc.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__gnu_linux__)
#define TSGKIT_CLONES __attribute__((target_clones("avx2", "default"), optimize("fp-contract=off")))
#else
#define TSGKIT_CLONES
#endif

// Not every module uses every loop.
#if defined(__GNUC__)
#define TSGKIT_UNUSED __attribute__((unused))
#else
#define TSGKIT_UNUSED
#endif

namespace tsgkit {

// sum over k of left[k] * right[k]
TSGKIT_CLONES TSGKIT_UNUSED static double long_dot_product(const double* left, const double* right, int64_t n) {
    double lane[4] = {0.0, 0.0, 0.0, 0.0};
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        for (int l = 0; l < 4; ++l) lane[l] += left[k + l] * right[k + l];
    }
    double sum = (lane[0] + lane[1]) + (lane[2] + lane[3]);
    for (; k < n; ++k) sum += left[k] * right[k];
    return sum;
}

// max over k of left[k] * right[k]
TSGKIT_CLONES TSGKIT_UNUSED static double long_max_product(const double* left, const double* right, int64_t n) {
    double lane[4] = {0.0, 0.0, 0.0, 0.0};
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        for (int l = 0; l < 4; ++l) {
            const double product = left[k + l] * right[k + l];
            lane[l] = product > lane[l] ? product : lane[l];
        }
    }
    double best = 0.0;
    for (int l = 0; l < 4; ++l) best = lane[l] > best ? lane[l] : best;
    for (; k < n; ++k) {
        const double product = left[k] * right[k];
        best = product > best ? product : best;
    }
    return best;
}

// target[k] += factor * source[k]
TSGKIT_CLONES TSGKIT_UNUSED static void long_add_scaled(double* __restrict target, const double* __restrict source, double factor,
                                     int64_t n) {
    for (int64_t k = 0; k < n; ++k) target[k] += factor * source[k];
}

// target[k] = max(target[k], factor * source[k])
TSGKIT_CLONES TSGKIT_UNUSED static void long_max_scaled(double* __restrict target, const double* __restrict source, double factor,
                                     int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
        const double product = factor * source[k];
        target[k] = product > target[k] ? product : target[k];
    }
}

// target[k] += factor * left[k] * right[k]
TSGKIT_CLONES TSGKIT_UNUSED static void long_add_products(double* __restrict target, const double* __restrict left,
                                       const double* __restrict right, double factor, int64_t n) {
    for (int64_t k = 0; k < n; ++k) target[k] += factor * left[k] * right[k];
}

// The same for every length. Most vectors are shorter than a call of the above is worth; the order of the
// operations, and so the result, is theirs.
constexpr int64_t SHORT = 8;

inline double dot_product(const double* left, const double* right, int64_t n) {
    if (n >= SHORT) return long_dot_product(left, right, n);
    double sum = 0.0;
    int64_t k = 0;
    if (n >= 4) {
        sum = (left[0] * right[0] + left[1] * right[1]) + (left[2] * right[2] + left[3] * right[3]);
        k = 4;
    }
    for (; k < n; ++k) sum += left[k] * right[k];
    return sum;
}

inline double max_product(const double* left, const double* right, int64_t n) {
    if (n >= SHORT) return long_max_product(left, right, n);
    double best = 0.0;
    for (int64_t k = 0; k < n; ++k) {
        const double product = left[k] * right[k];
        best = product > best ? product : best;
    }
    return best;
}

inline void add_scaled(double* __restrict target, const double* __restrict source, double factor, int64_t n) {
    if (n >= SHORT) return long_add_scaled(target, source, factor, n);
    for (int64_t k = 0; k < n; ++k) target[k] += factor * source[k];
}

inline void max_scaled(double* __restrict target, const double* __restrict source, double factor, int64_t n) {
    if (n >= SHORT) return long_max_scaled(target, source, factor, n);
    for (int64_t k = 0; k < n; ++k) {
        const double product = factor * source[k];
        target[k] = product > target[k] ? product : target[k];
    }
}

inline void add_products(double* __restrict target, const double* __restrict left, const double* __restrict right,
                         double factor, int64_t n) {
    if (n >= SHORT) return long_add_products(target, left, right, factor, n);
    for (int64_t k = 0; k < n; ++k) target[k] += factor * left[k] * right[k];
}

inline int lowest_bit(uint64_t word) {
#if defined(__GNUC__)
    return __builtin_ctzll(word);
#else
    int position = 0;
    while (!(word & 1)) { word >>= 1; ++position; }
    return position;
#endif
}

inline int highest_bit(uint64_t word) {
#if defined(__GNUC__)
    return 63 - __builtin_clzll(word);
#else
    int position = 63;
    while (!(word >> position)) --position;
    return position;
#endif
}

}  // namespace tsgkit
