// Pitman-Yor restaurants (section "Restaurants" of the manual): who sits where, as histograms of table sizes.
//
//     p(e) = [ n_e - d t_e + (theta + d t) P(e) ] / (theta + n)
//
// `Tables` is the seating of one dish, `House` the totals of one restaurant. Seating and unseating return the size
// of the table concerned, and can be taken back exactly with it. What a new table means for the base distribution
// is the caller's business.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "stream.hpp"

namespace tsgkit {

struct Tables {
    int32_t n_customers = 0;
    int32_t n_tables = 0;
    // (size, how many tables of that size), by size: draws walk through it in this order, always the same.
    std::vector<std::pair<int32_t, int32_t>> by_size;

    // One table of this size gets a customer more; size 0 opens a new table.
    void grow(int32_t size) {
        if (size == 0) {
            ++n_tables;
        } else {
            change(size, -1);
        }
        change(size + 1, +1);
        ++n_customers;
    }

    // One table of this size loses a customer; a table of one is removed.
    void shrink(int32_t size) {
        change(size, -1);
        if (size == 1) {
            --n_tables;
        } else {
            change(size - 1, +1);
        }
        --n_customers;
    }

    // The number of tables of this size.
    int32_t n_tables_of(int32_t size) const {
        for (const auto& entry : by_size) {
            if (entry.first == size) return entry.second;
        }
        return 0;
    }

    // The size of the table of a customer drawn uniformly.
    int32_t draw_customer(Stream& stream) const {
        int64_t target = static_cast<int64_t>(stream.below(static_cast<uint64_t>(n_customers)));
        for (const auto& entry : by_size) {
            target -= static_cast<int64_t>(entry.first) * entry.second;
            if (target < 0) return entry.first;
        }
        return by_size.back().first;
    }

    // The size of an occupied table drawn with weight size - discount.
    int32_t draw_table(Stream& stream, double discount) const {
        double target = stream.uniform() * (n_customers - discount * n_tables);
        for (const auto& entry : by_size) {
            target -= (entry.first - discount) * entry.second;
            if (target < 0.0) return entry.first;
        }
        return by_size.back().first;
    }

private:
    void change(int32_t size, int32_t by) {
        auto place = std::lower_bound(by_size.begin(), by_size.end(), std::make_pair(size, INT32_MIN));
        if (place == by_size.end() || place->first != size) {
            by_size.insert(place, std::make_pair(size, by));
        } else if ((place->second += by) == 0) {
            by_size.erase(place);
        }
    }
};

struct House {
    double discount = 0.0;
    double strength = 1.0;
    int64_t n_customers = 0;
    int64_t n_tables = 0;

    // The weights before division by `denominator()`: of all tables that serve a dish, and of a new table.
    double old_weight(const Tables& tables) const { return tables.n_customers - discount * tables.n_tables; }
    double new_weight() const { return strength + discount * static_cast<double>(n_tables); }
    double denominator() const { return strength + static_cast<double>(n_customers); }

    void grow(Tables& tables, int32_t size) {
        tables.grow(size);
        ++n_customers;
        n_tables += size == 0;
    }

    void shrink(Tables& tables, int32_t size) {
        tables.shrink(size);
        --n_customers;
        n_tables -= size == 1;
    }

    // Seat a customer of a dish with this base probability; returns the size of the table before, 0 if it is new.
    int32_t seat(Tables& tables, double base, Stream& stream) {
        const double old_part = tables.n_customers ? old_weight(tables) : 0.0, new_part = new_weight() * base;
        const bool joins = tables.n_customers && stream.uniform() * (old_part + new_part) < old_part;
        const int32_t size = joins ? tables.draw_table(stream, discount) : 0;
        grow(tables, size);
        return size;
    }

    // Unseat a customer of a dish; returns the size of the table before, 1 if it is gone.
    int32_t unseat(Tables& tables, Stream& stream) {
        const int32_t size = tables.draw_customer(stream);
        shrink(tables, size);
        return size;
    }
};

// The numbers of tables by size of one restaurant are all that its seating's probability and its hyperparameters
// depend on: counts[m] tables have m customers.

// Add the tables of a dish to those of its restaurant.
inline void add_sizes(const Tables& tables, std::vector<int64_t>& counts) {
    for (const auto& entry : tables.by_size) {
        if (static_cast<size_t>(entry.first) >= counts.size()) counts.resize(entry.first + 1, 0);
        counts[entry.first] += entry.second;
    }
}

// log p(seating) without the base probabilities of the tables' dishes.
inline double log_seating(const House& house, const std::vector<int64_t>& counts) {
    if (house.n_customers == 0) return 0.0;
    double sum = std::lgamma(house.strength + 1.0) - std::lgamma(house.strength + house.n_customers);
    if (house.discount == 0.0) {
        sum += (house.n_tables - 1) * std::log(house.strength);
    } else {
        for (int64_t table = 1; table < house.n_tables; ++table) sum += std::log(house.strength + house.discount * table);
    }
    const double smallest = std::lgamma(1.0 - house.discount);
    for (size_t size = 1; size < counts.size(); ++size) {
        if (counts[size]) sum += counts[size] * (std::lgamma(size - house.discount) - smallest);
    }
    return sum;
}

// What Teh's auxiliary variables add to the posterior of a shared (discount, strength).
struct HyperSums {
    double ones_y = 0.0;    // sum of y
    double zeros_y = 0.0;   // sum of 1 - y
    double zeros_z = 0.0;   // sum of 1 - z
    double log_x = 0.0;     // sum of log x

    void draw(const House& house, const std::vector<int64_t>& counts, Stream& stream) {
        if (house.n_customers >= 2) log_x += std::log(stream.beta(house.strength + 1.0, house.n_customers - 1.0));
        for (int64_t table = 1; table < house.n_tables; ++table) {
            const bool y = stream.uniform() * (house.strength + house.discount * table) < house.strength;
            (y ? ones_y : zeros_y) += 1.0;
        }
        // At place j, z is drawn once for every table with more than j customers.
        int64_t n_larger = 0;
        for (size_t size = counts.size(); size-- > 2;) {
            n_larger += counts[size];
            const double j = static_cast<double>(size - 1);
            zeros_z += n_larger - stream.binomial(n_larger, (j - 1.0) / (j - house.discount));
        }
    }

    double draw_discount(Stream& stream) const { return stream.beta(1.0 + zeros_y, 1.0 + zeros_z); }
    double draw_strength(Stream& stream) const { return stream.gamma(1.0 + ones_y) / (1.0 - log_x); }
};

// Draw the pair (discount, strength) that the houses of these numbers share; a Dirichlet process keeps its discount.
inline void resample_pair(std::vector<House>& houses, const std::vector<std::vector<int64_t>>& counts,
                          const std::vector<size_t>& numbers, Stream& stream, bool is_dirichlet = false) {
    if (numbers.empty()) return;
    HyperSums auxiliary;
    for (const size_t number : numbers) auxiliary.draw(houses[number], counts[number], stream);
    const double discount =
        is_dirichlet ? houses[numbers[0]].discount : std::min(auxiliary.draw_discount(stream), 1.0 - 1e-9);
    const double strength = std::max(auxiliary.draw_strength(stream), 1e-9);
    for (const size_t number : numbers) {
        houses[number].discount = discount;
        houses[number].strength = strength;
    }
}

}  // namespace tsgkit
