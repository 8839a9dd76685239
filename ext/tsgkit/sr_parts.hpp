// Elementary trees with refined roots and frontiers, as parts that are stored once. A part is a rule and, for every
// child, the part that goes on below it or the refined symbol of a frontier; its own root has no subcategory, so that
// fragments that differ in nothing but that share it. A *dish* is a part with a root symbol: what customers order.
//
// Parts know who uses them, so that those that match a tree are found without trying all pairs of children.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "restaurant.hpp"

namespace tsgkit {

constexpr int32_t NO_CHILD = -1;
constexpr int32_t NOT_STORED = INT32_MIN;

// What stands for a frontier with this symbol where a part could stand.
inline int32_t frontier_code(int32_t symbol) { return -2 - symbol; }
inline int32_t frontier_symbol(int32_t code) { return -2 - code; }
inline bool is_frontier(int32_t code) { return code <= -2; }

struct Part {
    int32_t rule = -1;   // -1: the number is free
    int32_t left = NO_CHILD;
    int32_t right = NO_CHILD;
    int32_t n_uses = 0;          // parts above it, and dishes
    int32_t n_above_right = 0;   // parts of which it is the right part
    std::vector<int32_t> above_left;     // parts of which it is the left (or only) part
    std::vector<int32_t> above_right;    // parts of which it is the right part, with a frontier on their left
    std::vector<std::pair<int32_t, int32_t>> dishes;   // root symbols and dishes
};

class PartStore {
public:
    std::vector<Part> parts;
    std::vector<std::vector<int32_t>> plain;   // per rule: its parts that go on nowhere

    explicit PartStore(size_t n_rules = 0) : plain(n_rules) { slots_.assign(1024, EMPTY); }

    int32_t find(int32_t rule, int32_t left, int32_t right) const {
        for (size_t slot = hash(rule, left, right) & mask();; slot = (slot + 1) & mask()) {
            const int32_t number = slots_[slot];
            if (number == EMPTY) return NOT_STORED;
            const Part& part = parts[number];
            if (part.rule == rule && part.left == left && part.right == right) return number;
        }
    }

    int32_t intern(int32_t rule, int32_t left, int32_t right) {
        int32_t number = find(rule, left, right);
        if (number != NOT_STORED) return number;
        if (free_.empty()) {
            number = static_cast<int32_t>(parts.size());
            parts.emplace_back();
        } else {
            number = free_.back();
            free_.pop_back();
        }
        Part& part = parts[number];
        part.rule = rule;
        part.left = left;
        part.right = right;
        if (left >= 0) {
            ++parts[left].n_uses;
            parts[left].above_left.push_back(number);
        }
        if (right >= 0) {
            ++parts[right].n_uses;
            ++parts[right].n_above_right;
            if (left < 0) parts[right].above_right.push_back(number);
        }
        if (left < 0 && right < 0) plain[rule].push_back(number);
        ++n_used_;
        if (2 * n_used_ > slots_.size()) {
            rehash();
        } else {
            place(number);
        }
        return number;
    }

    // Remove a part that nobody uses, and what only it used; one that is in use stays.
    void release(int32_t number) {
        std::vector<int32_t> waiting(1, number);
        while (!waiting.empty()) {
            const int32_t next = waiting.back();
            waiting.pop_back();
            Part& part = parts[next];
            if (part.rule < 0 || part.n_uses) continue;
            unplace(next);
            if (part.left >= 0) {
                --parts[part.left].n_uses;
                drop(parts[part.left].above_left, next);
                waiting.push_back(part.left);
            }
            if (part.right >= 0) {
                --parts[part.right].n_uses;
                --parts[part.right].n_above_right;
                if (part.left < 0) drop(parts[part.right].above_right, next);
                waiting.push_back(part.right);
            }
            if (part.left < 0 && part.right < 0) drop(plain[part.rule], next);
            part = Part();
            free_.push_back(next);
            --n_used_;
        }
    }

    size_t n_used() const { return n_used_; }

private:
    static constexpr int32_t EMPTY = -1;
    std::vector<int32_t> slots_;
    std::vector<int32_t> free_;
    size_t n_used_ = 0;

    size_t mask() const { return slots_.size() - 1; }

    static void drop(std::vector<int32_t>& list, int32_t number) {
        const auto place = std::find(list.begin(), list.end(), number);
        *place = list.back();
        list.pop_back();
    }

    static size_t hash(int32_t rule, int32_t left, int32_t right) {
        uint64_t state = (static_cast<uint64_t>(static_cast<uint32_t>(rule)) << 32) ^ static_cast<uint32_t>(left);
        state *= 0x9e3779b97f4a7c15ULL;
        state ^= state >> 29;
        state += static_cast<uint32_t>(right);
        state *= 0xbf58476d1ce4e5b9ULL;
        return state ^ (state >> 32);
    }

    size_t home(int32_t number) const {
        const Part& part = parts[number];
        return hash(part.rule, part.left, part.right) & mask();
    }

    void place(int32_t number) {
        size_t slot = home(number);
        while (slots_[slot] != EMPTY) slot = (slot + 1) & mask();
        slots_[slot] = number;
    }

    void rehash() {
        slots_.assign(2 * slots_.size(), EMPTY);
        for (size_t number = 0; number < parts.size(); ++number) {
            if (parts[number].rule >= 0) place(static_cast<int32_t>(number));
        }
    }

    // Take a number out and close the gap: what was pushed past it moves back.
    void unplace(int32_t number) {
        size_t gap = home(number);
        while (slots_[gap] != number) gap = (gap + 1) & mask();
        for (size_t slot = (gap + 1) & mask(); slots_[slot] != EMPTY; slot = (slot + 1) & mask()) {
            const size_t wanted = home(slots_[slot]);
            // Whether `wanted` lies cyclically in (gap, slot]: then the entry must stay.
            const bool stays = gap <= slot ? (gap < wanted && wanted <= slot) : (gap < wanted || wanted <= slot);
            if (!stays) {
                slots_[gap] = slots_[slot];
                gap = slot;
            }
        }
        slots_[gap] = EMPTY;
    }
};

// A table with the subcategories that were drawn for its dish's internal nodes when it opened.
struct RefinedTable {
    int32_t size = 0;
    std::vector<int16_t> refinement;   // of the internal nodes from the root down, level by level
};

struct Dish {
    int32_t part = -1;   // -1: the number is free
    int32_t symbol = -1;
    Tables tables;
    std::vector<RefinedTable> refined;   // the same tables one by one, if the dish has internal nodes
};

}  // namespace tsgkit
