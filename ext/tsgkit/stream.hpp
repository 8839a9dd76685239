// Streams of random numbers, one for every (seed, iteration, tree): no state is shared between threads, and a
// run that stops can go on from the iteration's number alone.
//
// The generator is xoshiro256++ (Blackman & Vigna), started by splitmix64 from the three numbers. The
// distributions are our own, so that a seed means the same everywhere.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace tsgkit {

inline uint64_t splitmix(uint64_t& state) {
    uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

class Stream {
public:
    Stream() : Stream(0, 0, 0) {}

    Stream(uint64_t seed, uint64_t iteration, uint64_t number) {
        uint64_t state = seed;
        state = splitmix(state) ^ iteration;
        state = splitmix(state) ^ number;
        for (uint64_t& word : words_) word = splitmix(state);
    }

    uint64_t next() {
        const uint64_t result = rotate(words_[0] + words_[3], 23) + words_[0];
        const uint64_t shifted = words_[1] << 17;
        words_[2] ^= words_[0];
        words_[3] ^= words_[1];
        words_[1] ^= words_[2];
        words_[0] ^= words_[3];
        words_[2] ^= shifted;
        words_[3] = rotate(words_[3], 45);
        return result;
    }

    // In [0, 1).
    double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

    // In 0 .. n - 1.
    uint64_t below(uint64_t n) { return static_cast<uint64_t>(uniform() * static_cast<double>(n)); }

    double normal() {
        double x, y, square;
        do {
            x = 2.0 * uniform() - 1.0;
            y = 2.0 * uniform() - 1.0;
            square = x * x + y * y;
        } while (square >= 1.0 || square == 0.0);
        return x * std::sqrt(-2.0 * std::log(square) / square);
    }

    // Marsaglia & Tsang (2000); rate 1.
    double gamma(double shape) {
        if (shape < 1.0) {
            const double u = 1.0 - uniform();
            return gamma(shape + 1.0) * std::pow(u, 1.0 / shape);
        }
        const double d = shape - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
        for (;;) {
            const double x = normal(), base = 1.0 + c * x;
            if (base <= 0.0) continue;
            const double v = base * base * base, u = 1.0 - uniform();
            if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
        }
    }

    double beta(double a, double b) {
        const double x = gamma(a), y = gamma(b);
        return x / (x + y);
    }

    // The number of successes in n trials.
    int64_t binomial(int64_t n, double probability) {
        int64_t successes = 0;
        for (int64_t trial = 0; trial < n; ++trial) successes += uniform() < probability;
        return successes;
    }

private:
    static uint64_t rotate(uint64_t word, int count) { return (word << count) | (word >> (64 - count)); }
    uint64_t words_[4];
};

// The numbers from 0 on in a random order.
inline std::vector<int64_t> random_order(int64_t n_items, Stream stream) {
    std::vector<int64_t> order(n_items);
    for (int64_t item = 0; item < n_items; ++item) order[item] = item;
    for (int64_t item = n_items - 1; item > 0; --item) std::swap(order[item], order[stream.below(item + 1)]);
    return order;
}

}  // namespace tsgkit
