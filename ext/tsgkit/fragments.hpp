// Elementary trees, each stored once: a fragment is a rule and, for every child, the fragment that goes on below it
// or none (a frontier). Subtrees are fragments themselves, so they are shared. An auxiliary tree has one child of its
// root marked as the foot, so it is never the same as an initial tree.
//
// A fragment lives as long as it is part of another one or somebody orders it; `release` removes it, and what only
// it used, when neither holds any more. Numbers are given again, so memory does not grow beyond what is in use.
#pragma once

#include <cstdint>
#include <vector>

#include "restaurant.hpp"

namespace tsgkit {

constexpr int32_t FRONTIER = -1;
constexpr int32_t MISSING = -2;
constexpr int32_t FOOT = -3;

inline void prefetch(const void* place) {
#if defined(__GNUC__)
    __builtin_prefetch(place);
#else
    static_cast<void>(place);
#endif
}

// One line of the processor's cache.
struct alignas(64) Fragment {
    int32_t rule = -1;              // -1: the number is free
    int32_t left = FRONTIER;
    int32_t right = FRONTIER;
    int32_t n_above_left = 0;       // fragments of which this is the left (or only) part, and the right part
    int32_t n_above_right = 0;
    uint32_t epoch = 0;             // when its log base probability was computed; 0: never
    double log_base = 0.0;
    Tables tables;                  // who ordered it

    bool is_auxiliary() const { return left == FOOT || right == FOOT; }
};

class FragmentStore {
public:
    std::vector<Fragment> fragments;

    FragmentStore() { slots_.assign(1024, Slot()); }

    // The number of a fragment, MISSING if there is none.
    int32_t find(int32_t rule, int32_t left, int32_t right) const {
        const uint64_t code = hash(rule, left, right);
        for (size_t place = code & mask();; place = (place + 1) & mask()) {
            const Slot& slot = slots_[place];
            if (slot.number == EMPTY) return MISSING;
            if (slot.tag == tag_of(code) && is(slot.number, rule, left, right)) return slot.number;
        }
    }

    void prefetch_slot(int32_t rule, int32_t left, int32_t right) const {
        prefetch(&slots_[hash(rule, left, right) & mask()]);
    }

    bool is(int32_t number, int32_t rule, int32_t left, int32_t right) const {
        const Fragment& fragment = fragments[number];
        return fragment.rule == rule && fragment.left == left && fragment.right == right;
    }

    int32_t intern(int32_t rule, int32_t left, int32_t right) {
        int32_t number = find(rule, left, right);
        if (number != MISSING) return number;
        if (free_.empty()) {
            number = static_cast<int32_t>(fragments.size());
            fragments.emplace_back();
        } else {
            number = free_.back();
            free_.pop_back();
        }
        Fragment& fragment = fragments[number];
        fragment.rule = rule;
        fragment.left = left;
        fragment.right = right;
        if (left >= 0) ++fragments[left].n_above_left;
        if (right >= 0) ++fragments[right].n_above_right;
        ++n_used_;
        if (2 * n_used_ > slots_.size()) {
            rehash();
        } else {
            place(number);
        }
        return number;
    }

    // Remove a fragment that nobody uses; one that is in use stays.
    void release(int32_t number) {
        if (is_used(fragments[number])) return;
        std::vector<int32_t> waiting(1, number);
        while (!waiting.empty()) {
            const int32_t next = waiting.back();
            waiting.pop_back();
            Fragment& fragment = fragments[next];
            if (fragment.rule < 0 || is_used(fragment)) continue;
            unplace(next);
            if (fragment.left >= 0) {
                --fragments[fragment.left].n_above_left;
                waiting.push_back(fragment.left);
            }
            if (fragment.right >= 0) {
                --fragments[fragment.right].n_above_right;
                waiting.push_back(fragment.right);
            }
            fragment = Fragment();
            free_.push_back(next);
            --n_used_;
            ++n_removed_;
        }
    }

    size_t n_used() const { return n_used_; }
    // How many were removed so far: numbers hold as long as this does not change.
    uint64_t n_removed() const { return n_removed_; }

private:
    static constexpr int32_t EMPTY = -1;
    // The tag, bits of the hash that do not decide the place, saves most looks at fragments that are others.
    struct Slot {
        int32_t number = EMPTY;
        uint32_t tag = 0;
    };
    std::vector<Slot> slots_;
    std::vector<int32_t> free_;
    size_t n_used_ = 0;
    uint64_t n_removed_ = 0;

    static bool is_used(const Fragment& fragment) {
        return fragment.tables.n_customers || fragment.n_above_left || fragment.n_above_right;
    }

    size_t mask() const { return slots_.size() - 1; }

    static uint32_t tag_of(uint64_t code) { return static_cast<uint32_t>(code >> 32); }

    static uint64_t hash(int32_t rule, int32_t left, int32_t right) {
        uint64_t state = (static_cast<uint64_t>(static_cast<uint32_t>(rule)) << 32) ^ static_cast<uint32_t>(left);
        state *= 0x9e3779b97f4a7c15ULL;
        state ^= state >> 29;
        state += static_cast<uint32_t>(right);
        state *= 0xbf58476d1ce4e5b9ULL;
        return state ^ (state >> 32);
    }

    uint64_t code_of(int32_t number) const {
        const Fragment& fragment = fragments[number];
        return hash(fragment.rule, fragment.left, fragment.right);
    }

    void place(int32_t number) {
        const uint64_t code = code_of(number);
        size_t place = code & mask();
        while (slots_[place].number != EMPTY) place = (place + 1) & mask();
        slots_[place].number = number;
        slots_[place].tag = tag_of(code);
    }

    void rehash() {
        slots_.assign(2 * slots_.size(), Slot());
        for (size_t number = 0; number < fragments.size(); ++number) {
            if (fragments[number].rule >= 0) place(static_cast<int32_t>(number));
        }
    }

    // Take a number out and close the gap: what was pushed past it moves back.
    void unplace(int32_t number) {
        size_t gap = code_of(number) & mask();
        while (slots_[gap].number != number) gap = (gap + 1) & mask();
        for (size_t slot = (gap + 1) & mask(); slots_[slot].number != EMPTY; slot = (slot + 1) & mask()) {
            const size_t wanted = code_of(slots_[slot].number) & mask();
            // Whether `wanted` lies cyclically in (gap, slot]: then the entry must stay.
            const bool stays = gap <= slot ? (gap < wanted && wanted <= slot) : (gap < wanted || wanted <= slot);
            if (!stays) {
                slots_[gap] = slots_[slot];
                gap = slot;
            }
        }
        slots_[gap] = Slot();
    }
};

}  // namespace tsgkit
