// The state of a Bayesian tree-substitution grammar over known trees, and two ways to move it: local Gibbs over single
// substitution sites, and blocked Metropolis-Hastings over whole trees through the grammar transform.
//
//     P0(e | c) = prod_{rules r of e} P(r)  prod_{frontiers f} s_f  prod_{internal nodes i} (1 - s_i)
//
// On a known tree, with the counts frozen, for every node v with label c (section 2.2 of the model):
//
//     B(v)   = P(rule at v)  prod_{children y} [ s I(y) + (1 - s) B(y) ]
//     S_g(v) = prod_{children y}  I(y) where g has a frontier,  S_{g_y}(y) where g goes on
//     I(v)   = sum_{cached e that match at v} w_e S_e(v)  +  b_c B(v)
//
// All values of a node are divided by its I(v), whose logs are summed, so that deep trees do not underflow.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "fragments.hpp"
#include "parallel.hpp"
#include "restaurant.hpp"
#include "stream.hpp"

namespace tsgkit {

// What a stream of random numbers is for; each gets its own.
enum class Purpose : uint64_t {
    kTree = 0,
    kFreeze = 1,
    kPropose = 2,
    kTreeOrder = 3,
    kHyper = 4,
    kStop = 5,
    kStart = 6,
    kSite = 7,
    kSiteOrder = 8,
    kType = 9,
};

inline uint64_t stream_number(Purpose purpose, uint64_t item) { return static_cast<uint64_t>(purpose) << 40 | item; }

// The logarithm of a product of many factors: as few logarithms as it can do with.
class LogProduct {
public:
    void multiply(double factor) {
        product_ *= factor;
        if (product_ < 1e-150 || product_ > 1e150) {
            log_ += std::log(product_);
            product_ = 1.0;
        }
    }
    void add_log(double log_factor) { log_ += log_factor; }
    double log() const { return log_ + std::log(product_); }

private:
    double log_ = 0.0, product_ = 1.0;
};

class TsgSampler {
public:
    // The trees: per node its label, rule and children (-1: none), parents before children.
    std::vector<int32_t> label, rule, left, right, parent;
    std::vector<int64_t> tree_start;
    // Per rule.
    std::vector<double> rule_probability, rule_log_probability;
    std::vector<int32_t> rule_label, rule_left_label, rule_right_label;
    // Per label.
    std::vector<House> houses;
    std::vector<double> stop, log_stop, log_go;
    // The derivations: whether a node is a substitution site, and if so the number of the fragment below it.
    std::vector<uint8_t> is_site;
    std::vector<int32_t> dish;
    FragmentStore store;
    uint64_t seed = 0;

    struct SweepCounts {
        int64_t n_proposed = 0;
        int64_t n_accepted = 0;
        int64_t n_changed = 0;   // accepted proposals that differ from what was there; sites that flipped
    };

    int64_t n_trees() const { return static_cast<int64_t>(tree_start.size()) - 1; }
    int64_t n_nodes_of(int64_t tree) const { return tree_start[tree + 1] - tree_start[tree]; }
    Stream stream(uint64_t iteration, Purpose purpose, uint64_t item = 0) const {
        return Stream(seed, iteration, stream_number(purpose, item));
    }

    // Seat all trees as `is_site` says; nobody may be seated yet.
    void seat_all() {
        dish.assign(label.size(), -1);
        Choice choice;
        std::vector<Seat> seats;
        for (int64_t tree = 0; tree < n_trees(); ++tree) {
            Stream own = stream(0, Purpose::kStart, tree);
            seats.clear();
            choice.is_site.assign(&is_site[tree_start[tree]], &is_site[tree_start[tree]] + n_nodes_of(tree));
            describe(tree, choice);
            seat_tree(tree, choice, seats, own);
        }
    }

    // Unseat all trees; every restaurant must be empty then.
    void unseat_all() {
        Choice choice;
        std::vector<Seat> seats;
        Stream own = stream(0, Purpose::kStart, n_trees());
        for (int64_t tree = 0; tree < n_trees(); ++tree) {
            seats.clear();
            describe_present(tree, choice);
            unseat_tree(tree, choice, seats, own);
            release(seats);
        }
        dish.assign(label.size(), -1);
    }

    // ---- blocked Metropolis-Hastings --------------------------------------------------------------------------

    // One proposal for every tree. Trees are taken in a random order, `batch` at a time: the proposals of a batch are
    // made against the counts without any of its trees, on several threads, and then tested one by one.
    SweepCounts blocked_sweep(uint64_t iteration, int batch, int n_threads, double temperature) {
        const std::vector<int64_t> order = random_order(n_trees(), iteration, Purpose::kTreeOrder);
        std::vector<Scratch> scratches(n_threads);
        std::vector<Proposal> proposals(batch);
        SweepCounts counts;
        for (size_t first = 0; first < order.size(); first += batch) {
            const int size = static_cast<int>(std::min<size_t>(batch, order.size() - first));
            if (size > 1) {
                freeze(order, first, size, iteration);
                pool_.loop(n_threads, size, [&](int item, int thread) {
                    Stream own = stream(iteration, Purpose::kPropose, order[first + item]);
                    propose(order[first + item], scratches[thread], proposals[item], own);
                });
                thaw();
            }
            size_t n_left = 0;   // frozen seats of the trees tested so far
            for (int item = 0; item < size; ++item) {
                const int64_t tree = order[first + item];
                Stream own = stream(iteration, Purpose::kTree, tree);
                Proposal& proposal = proposals[item];
                if (size == 1) describe_present(tree, proposal.before);
                old_seats_.clear();
                const Seat* frozen = size > 1 ? &frozen_seats_[n_left] : nullptr;
                const double log_old = unseat_tree(tree, proposal.before, old_seats_, own, frozen);
                n_left += old_seats_.size();
                if (size == 1) propose(tree, scratches[0], proposal, own);
                test(tree, proposal, log_old, temperature, own, counts);
            }
            if (size > 1) forget_followed();
        }
        return counts;
    }

    // ---- local Gibbs ------------------------------------------------------------------------------------------

    SweepCounts local_sweep(uint64_t iteration, double temperature) {
        SweepCounts counts;
        const std::vector<int64_t> order =
            random_order(static_cast<int64_t>(label.size()), iteration, Purpose::kSiteOrder);
        for (size_t place = 0; place < order.size(); ++place) {
            // The nodes come from all over the corpus: what a visit will read is called for a few visits before.
            if (place + FAR < order.size()) prefetch_node(order[place + FAR]);
            if (place + NEAR < order.size()) prefetch_fragments(static_cast<int32_t>(order[place + NEAR]));
            if (place + CLOSE < order.size()) prefetch_lookup(static_cast<int32_t>(order[place + CLOSE]));
            const int32_t node = static_cast<int32_t>(order[place]);
            if (parent[node] < 0) continue;
            Stream own = stream(iteration, Purpose::kSite, node);
            ++counts.n_proposed;
            ++counts.n_accepted;
            counts.n_changed += resample_site(node, temperature, own);
        }
        return counts;
    }

    // ---- all instances of a fragment at once --------------------------------------------------------------------

    // Cut, or join, a fragment at one of its nodes in all places where it is used: a draw of new dishes for whole
    // tables. Nodes are drawn at random, `n_moves` of them. A cut is made only where no other place has the two parts
    // in that position, a join only where the joined fragment is not in use, so that each undoes the other and both
    // are drawn equally often; the ratio of the joint probabilities then decides (Metropolis).
    SweepCounts type_sweep(uint64_t iteration, int64_t n_moves, double temperature) {
        SweepCounts counts;
        Scratch scratch;
        Stream own = stream(iteration, Purpose::kType);
        std::vector<std::vector<int32_t>> places(store.fragments.size());   // per fragment: the sites below which it is
        for (size_t node = 0; node < dish.size(); ++node) {
            if (dish[node] >= 0) places[dish[node]].push_back(static_cast<int32_t>(node));
        }
        for (int64_t move = 0; move < n_moves; ++move) {
            const int32_t node = static_cast<int32_t>(own.below(label.size()));
            if (parent[node] < 0) continue;
            ++counts.n_proposed;
            const bool accepted = resample_type(node, places, scratch, temperature, own);
            counts.n_accepted += accepted;
            counts.n_changed += accepted;
        }
        return counts;
    }

    // ---- parameters -------------------------------------------------------------------------------------------

    // Numbers over the dishes of all tables, and of table sizes by label.
    struct Totals {
        std::vector<int64_t> rules;
        std::vector<int64_t> frontier, internal;
        std::vector<std::vector<int64_t>> tables_by_size;
    };

    Totals totals() const {
        Totals result;
        result.rules.assign(rule_label.size(), 0);
        result.frontier.assign(houses.size(), 0);
        result.internal.assign(houses.size(), 0);
        result.tables_by_size.resize(houses.size());
        std::vector<int32_t> waiting;
        for (const Fragment& root : store.fragments) {
            if (root.tables.n_tables == 0) continue;
            const int64_t n_tables = root.tables.n_tables;
            std::vector<int64_t>& sizes = result.tables_by_size[rule_label[root.rule]];
            for (const auto& entry : root.tables.by_size) {
                if (static_cast<size_t>(entry.first) >= sizes.size()) sizes.resize(entry.first + 1, 0);
                sizes[entry.first] += entry.second;
            }
            waiting.assign(1, static_cast<int32_t>(&root - store.fragments.data()));
            while (!waiting.empty()) {
                const Fragment& fragment = store.fragments[waiting.back()];
                waiting.pop_back();
                result.rules[fragment.rule] += n_tables;
                const int32_t children[2] = {fragment.left, fragment.right};
                const int32_t labels[2] = {rule_left_label[fragment.rule], rule_right_label[fragment.rule]};
                for (int side = 0; side < 2; ++side) {
                    if (labels[side] < 0) continue;
                    (children[side] < 0 ? result.frontier : result.internal)[labels[side]] += n_tables;
                    if (children[side] >= 0) waiting.push_back(children[side]);
                }
            }
        }
        return result;
    }

    // log p(derivations, seating | hyperparameters, stop probabilities)
    double log_joint(const Totals& sums) const {
        double result = 0.0;
        for (size_t symbol = 0; symbol < houses.size(); ++symbol) {
            result += log_seating(houses[symbol], sums.tables_by_size[symbol]);
            result += sums.frontier[symbol] * log_stop[symbol] + sums.internal[symbol] * log_go[symbol];
        }
        for (size_t number = 0; number < sums.rules.size(); ++number) {
            if (sums.rules[number]) result += sums.rules[number] * rule_log_probability[number];
        }
        return result;
    }

    void resample_stops(uint64_t iteration, const Totals& sums) {
        for (size_t symbol = 0; symbol < stop.size(); ++symbol) {
            Stream own = stream(iteration, Purpose::kStop, symbol);
            set_stop(symbol, own.beta(1.0 + sums.frontier[symbol], 1.0 + sums.internal[symbol]));
        }
    }

    // Kept away from 0 and 1, so that every derivation stays possible.
    void set_stop(size_t symbol, double probability) {
        stop[symbol] = std::min(std::max(probability, 1e-9), 1.0 - 1e-9);
        log_stop[symbol] = std::log(stop[symbol]);
        log_go[symbol] = std::log1p(-stop[symbol]);
        ++epoch_;
    }

    // One pair (discount, strength) per label; a Dirichlet process keeps its discount of 0.
    void resample_hyper(uint64_t iteration, const Totals& sums, bool is_dirichlet) {
        for (size_t symbol = 0; symbol < houses.size(); ++symbol) {
            Stream own = stream(iteration, Purpose::kHyper, symbol);
            HyperSums auxiliary;
            auxiliary.draw(houses[symbol], sums.tables_by_size[symbol], own);
            if (!is_dirichlet) houses[symbol].discount = std::min(auxiliary.draw_discount(own), 1.0 - 1e-9);
            houses[symbol].strength = std::max(auxiliary.draw_strength(own), 1e-9);
        }
    }

private:
    static constexpr double SMALLEST = 1e-120;   // below this, logarithms

    struct Seat {
        int32_t node;
        int32_t fragment;
        int32_t size;         // of the table before
        int32_t table = -1;   // which one, if it is followed
    };

    // The sites of a tree, and for the fragment that then begins at, or goes on below, each node: its number (MISSING
    // if it is not stored) and its base probability. For the present sites, only the numbers at sites are there.
    struct Choice {
        std::vector<uint8_t> is_site;
        std::vector<int32_t> number;
        std::vector<double> base;
        uint64_t n_removed = 0;   // from the store when the numbers were found
    };

    struct Proposal {
        Choice before, after;
        double log_before = 0.0;   // log q of both
        double log_after = 0.0;
    };

    struct Scratch {
        std::vector<double> base;                       // B(v) / I(v)
        std::vector<int32_t> match_begin, match_end;    // the fragments that match at v ...
        std::vector<int32_t> match;
        std::vector<double> value;                      // ... and their S_g(v) / I(v)
        std::vector<int32_t> number;                    // the fragment below v
        std::vector<int32_t> nodes;
        std::vector<std::pair<int32_t, int32_t>> waiting;
        double log_inside = 0.0;
    };

    ThreadPool pool_;
    uint32_t epoch_ = 1;   // of the stop probabilities
    std::vector<int32_t> waiting_;
    std::vector<Seat> frozen_seats_, old_seats_, new_seats_;
    // A batch's proposals must depend on nothing but the customers outside of it. So each of its trees must leave, to
    // be tested, by the very tables that it left when the batch was frozen. Sizes alone do not tell them apart once
    // other trees of the batch have moved: the tables where the batch sat are followed, by their present sizes.
    struct Followed {
        int32_t size;
        int32_t next = -1;   // of the same fragment
    };
    std::vector<Followed> followed_;
    std::vector<std::pair<int32_t, int32_t>> followed_of_;   // by fragment: the first and the last, or -1

    std::vector<int64_t> random_order(int64_t n_items, uint64_t iteration, Purpose purpose) const {
        std::vector<int64_t> order(n_items);
        for (int64_t item = 0; item < n_items; ++item) order[item] = item;
        Stream own = stream(iteration, purpose);
        for (int64_t item = n_items - 1; item > 0; --item) std::swap(order[item], order[own.below(item + 1)]);
        return order;
    }

    // ---- seating of whole trees ---------------------------------------------------------------------------------

    // Describe the fragments that the sites of a choice make.
    void describe(int64_t tree, Choice& choice) const {
        const int64_t first = tree_start[tree], n_nodes = n_nodes_of(tree);
        choice.number.resize(n_nodes);
        choice.base.resize(n_nodes);
        choice.n_removed = store.n_removed();
        for (int64_t node = n_nodes - 1; node >= 0; --node) {
            const Parts parts = parts_of(first, node, choice);
            const bool is_known = parts.left != MISSING && parts.right != MISSING;
            choice.number[node] = is_known ? store.find(rule[first + node], parts.left, parts.right) : MISSING;
            choice.base[node] = base_at(first, node, choice);
        }
    }

    // The same for the sites as they are.
    void describe_present(int64_t tree, Choice& choice) const {
        const int64_t first = tree_start[tree], n_nodes = n_nodes_of(tree);
        choice.is_site.assign(&is_site[first], &is_site[first] + n_nodes);
        choice.number.assign(&dish[first], &dish[first] + n_nodes);
        choice.base.resize(n_nodes);
        for (int64_t node = n_nodes - 1; node >= 0; --node) choice.base[node] = base_at(first, node, choice);
    }

    struct Parts {
        int32_t left = FRONTIER, right = FRONTIER;
    };

    Parts parts_of(int64_t first, int64_t node, const Choice& choice) const {
        Parts parts;
        const int32_t left_child = left[first + node], right_child = right[first + node];
        if (left_child >= 0 && !choice.is_site[left_child - first]) parts.left = choice.number[left_child - first];
        if (right_child >= 0 && !choice.is_site[right_child - first]) parts.right = choice.number[right_child - first];
        return parts;
    }

    // P0 of what is below a node, from that below its children; 0 if it is too small for a number.
    double base_at(int64_t first, int64_t node, const Choice& choice) const {
        double base = rule_probability[rule[first + node]];
        for (const int32_t child : {left[first + node], right[first + node]}) {
            if (child < 0) continue;
            const double stops = stop[label[child]];
            base *= choice.is_site[child - first] ? stops : (1.0 - stops) * choice.base[child - first];
        }
        return base;
    }

    // Its logarithm, whatever its size.
    double log_base_at(int64_t first, int64_t node, const Choice& choice) const {
        double result = 0.0;
        std::vector<int64_t> waiting(1, node);
        while (!waiting.empty()) {
            const int64_t place = first + waiting.back();
            waiting.pop_back();
            result += rule_log_probability[rule[place]];
            for (const int32_t child : {left[place], right[place]}) {
                if (child < 0) continue;
                const bool stops = choice.is_site[child - first];
                result += stops ? log_stop[label[child]] : log_go[label[child]];
                if (!stops) waiting.push_back(child - first);
            }
        }
        return result;
    }

    // Multiply by the probability of the fragment at a site for the next customer, with the counts as they are.
    void multiply_predictive(LogProduct& product, int64_t first, int64_t node, const Choice& choice) const {
        const House& house = houses[label[first + node]];
        const int32_t number = choice.number[node];
        double weight = house.new_weight() * choice.base[node];
        if (number != MISSING) weight += house.old_weight(store.fragments[number].tables);
        if (weight > SMALLEST) {
            product.multiply(weight / house.denominator());
        } else {
            product.add_log(std::log(house.new_weight() / house.denominator()) + log_base_at(first, node, choice));
        }
    }

    // log p of a dish for the next customer: predictive probability with the counts as they are.
    double log_predictive(int32_t symbol, const Tables* tables, double log_base) const {
        const House& house = houses[symbol];
        const double from_base = std::log(house.new_weight()) + log_base;
        if (tables == nullptr || tables->n_customers == 0) return from_base - std::log(house.denominator());
        return std::log(house.old_weight(*tables) + std::exp(from_base)) - std::log(house.denominator());
    }

    // Seat a tree's fragments one by one, from the root down; returns the sum of their log predictive probabilities.
    double seat_tree(int64_t tree, Choice& choice, std::vector<Seat>& seats, Stream& own) {
        const int64_t first = tree_start[tree], n_nodes = n_nodes_of(tree);
        // A number may have been given to another fragment since, if some were removed.
        const bool all_hold = choice.n_removed == store.n_removed();
        for (int64_t node = n_nodes - 1; node >= 0; --node) {
            int32_t& number = choice.number[node];
            if (all_hold && number != MISSING) continue;
            const Parts parts = parts_of(first, node, choice);
            if (number == MISSING || !store.is(number, rule[first + node], parts.left, parts.right)) {
                number = store.intern(rule[first + node], parts.left, parts.right);
            }
        }
        LogProduct probability;
        for (int64_t node = 0; node < n_nodes; ++node) {
            is_site[first + node] = choice.is_site[node];
            dish[first + node] = -1;
            if (!choice.is_site[node]) continue;
            multiply_predictive(probability, first, node, choice);
            const int32_t number = choice.number[node];
            Tables& tables = store.fragments[number].tables;
            const int32_t size = houses[label[first + node]].seat(tables, choice.base[node], own);
            const int32_t table = size ? draw_followed(number, size, tables, 1, own) : -1;
            if (table >= 0) ++followed_[table].size;
            seats.push_back({static_cast<int32_t>(first + node), number, size, table});
            dish[first + node] = number;
        }
        return probability.log();
    }

    // Unseat a tree's fragments, described by `choice`, in reverse; returns the same sum for them. They stay in the
    // store until `release`. A tree that has been frozen leaves by the same tables again.
    double unseat_tree(int64_t tree, const Choice& choice, std::vector<Seat>& seats, Stream& own,
                       const Seat* frozen = nullptr) {
        const int64_t first = tree_start[tree];
        LogProduct probability;
        for (int64_t node = n_nodes_of(tree) - 1; node >= 0; --node) {
            if (!choice.is_site[node]) continue;
            const int32_t number = choice.number[node];
            Tables& tables = store.fragments[number].tables;
            const int32_t table = frozen ? (frozen++)->table : -1;
            const int32_t size = table < 0 ? tables.draw_customer(own) : followed_[table].size--;
            houses[label[first + node]].shrink(tables, size);
            seats.push_back({static_cast<int32_t>(first + node), number, size, table});
            multiply_predictive(probability, first, node, choice);
        }
        return probability.log();
    }

    double log_base_of(int32_t number) const {
        double result = 0.0;
        std::vector<int32_t> waiting(1, number);
        while (!waiting.empty()) {
            const Fragment& fragment = store.fragments[waiting.back()];
            waiting.pop_back();
            result += rule_log_probability[fragment.rule];
            const int32_t children[2] = {fragment.left, fragment.right};
            const int32_t labels[2] = {rule_left_label[fragment.rule], rule_right_label[fragment.rule]};
            for (int side = 0; side < 2; ++side) {
                if (labels[side] < 0) continue;
                result += children[side] < 0 ? log_stop[labels[side]] : log_go[labels[side]];
                if (children[side] >= 0) waiting.push_back(children[side]);
            }
        }
        return result;
    }

    // Take seatings back, the last one first.
    void take_back_seats(const std::vector<Seat>& seats) {
        for (size_t item = seats.size(); item-- > 0;) {
            const Seat& seat = seats[item];
            houses[label[seat.node]].shrink(store.fragments[seat.fragment].tables, seat.size + 1);
            if (seat.table >= 0) --followed_[seat.table].size;
        }
    }

    void take_back_unseats(const std::vector<Seat>& seats) {
        for (size_t item = seats.size(); item-- > 0;) {
            const Seat& seat = seats[item];
            houses[label[seat.node]].grow(store.fragments[seat.fragment].tables, seat.size - 1);
            if (seat.table >= 0) ++followed_[seat.table].size;
        }
    }

    void release(const std::vector<Seat>& seats) {
        for (const Seat& seat : seats) store.release(seat.fragment);
    }

    // Unseat a batch, and follow the tables it leaves.
    void freeze(const std::vector<int64_t>& order, size_t first, int size, uint64_t iteration) {
        followed_of_.resize(store.fragments.size(), {-1, -1});
        for (int item = 0; item < size; ++item) {
            const int64_t tree = order[first + item];
            Stream own = stream(iteration, Purpose::kFreeze, tree);
            for (int64_t node = tree_start[tree + 1] - 1; node >= tree_start[tree]; --node) {
                if (!is_site[node]) continue;
                Tables& tables = store.fragments[dish[node]].tables;
                const int32_t n_before = tables.draw_customer(own);
                int32_t table = draw_followed(dish[node], n_before, tables, 0, own);
                if (table < 0) table = follow_table(dish[node], n_before);
                houses[label[node]].shrink(tables, n_before);
                --followed_[table].size;
                frozen_seats_.push_back({static_cast<int32_t>(node), dish[node], n_before, table});
            }
        }
    }

    int32_t follow_table(int32_t fragment, int32_t size) {
        const int32_t table = static_cast<int32_t>(followed_.size());
        std::pair<int32_t, int32_t>& list = followed_of_[fragment];
        followed_.push_back({size});
        if (list.first < 0) {
            list.first = table;
        } else {
            followed_[list.second].next = table;
        }
        list.second = table;
        return table;
    }

    void forget_followed() {
        for (const Seat& seat : frozen_seats_) followed_of_[seat.fragment] = {-1, -1};
        frozen_seats_.clear();
        followed_.clear();
    }

    // One of a fragment's tables of this size, all alike: its number if it is followed, or -1. `n_gone` of them are
    // no longer in the histogram.
    int32_t draw_followed(int32_t fragment, int32_t size, const Tables& tables, int32_t n_gone, Stream& own) const {
        if (static_cast<size_t>(fragment) >= followed_of_.size() || followed_of_[fragment].first < 0) return -1;
        uint64_t target = own.below(static_cast<uint64_t>(tables.n_tables_of(size) + n_gone));
        for (int32_t table = followed_of_[fragment].first; table >= 0; table = followed_[table].next) {
            if (followed_[table].size == size && target-- == 0) return table;
        }
        return -1;
    }

    void thaw() { take_back_unseats(frozen_seats_); }

    // ---- proposals ------------------------------------------------------------------------------------------------

    // Draw sites for a tree from the frozen grammar, and weigh them and the present ones by it. Changes nothing else.
    void propose(int64_t tree, Scratch& scratch, Proposal& proposal, Stream& own) const {
        inside(tree, scratch);
        draw_sites(tree, scratch, proposal.after.is_site, own);
        describe(tree, proposal.after);
        describe_present(tree, proposal.before);
        proposal.log_after = log_weight(tree, proposal.after) - scratch.log_inside;
        proposal.log_before = log_weight(tree, proposal.before) - scratch.log_inside;
    }

    double cached_weight(int32_t number, int32_t symbol) const {
        const Tables& tables = store.fragments[number].tables;
        return tables.n_customers ? houses[symbol].old_weight(tables) / houses[symbol].denominator() : 0.0;
    }

    void inside(int64_t tree, Scratch& scratch) const {
        const int64_t first = tree_start[tree], n_nodes = tree_start[tree + 1] - first;
        scratch.base.resize(n_nodes);
        scratch.match_begin.resize(n_nodes);
        scratch.match_end.resize(n_nodes);
        scratch.match.clear();
        scratch.value.clear();
        LogProduct inside;
        for (int64_t node = n_nodes - 1; node >= 0; --node) {
            const int32_t symbol = label[first + node];
            scratch.match_begin[node] = static_cast<int32_t>(scratch.match.size());
            find_matches(first, node, scratch);
            scratch.match_end[node] = static_cast<int32_t>(scratch.match.size());
            double base = rule_probability[rule[first + node]];
            const int32_t children[2] = {left[first + node], right[first + node]};
            for (int side = 0; side < 2; ++side) {
                if (children[side] < 0) continue;
                const double stops = stop[label[children[side]]];
                base *= stops + (1.0 - stops) * scratch.base[children[side] - first];
            }
            const double to_base = houses[symbol].new_weight() / houses[symbol].denominator();
            double total = to_base * base;
            for (int32_t item = scratch.match_begin[node]; item < scratch.match_end[node]; ++item) {
                total += cached_weight(scratch.match[item], symbol) * scratch.value[item];
            }
            scratch.base[node] = base / total;
            for (int32_t item = scratch.match_begin[node]; item < scratch.match_end[node]; ++item) {
                scratch.value[item] /= total;
            }
            inside.multiply(total);
        }
        scratch.log_inside = inside.log();
    }

    // All stored fragments with the rule at a node whose parts match at its children.
    void find_matches(int64_t first, int64_t node, Scratch& scratch) const {
        const int32_t left_child = left[first + node], right_child = right[first + node], own_rule = rule[first + node];
        const int32_t left_begin = left_child < 0 ? 0 : scratch.match_begin[left_child - first];
        const int32_t left_end = left_child < 0 ? 0 : scratch.match_end[left_child - first];
        const int32_t right_begin = right_child < 0 ? 0 : scratch.match_begin[right_child - first];
        const int32_t right_end = right_child < 0 ? 0 : scratch.match_end[right_child - first];
        for (int32_t left_item = left_begin - 1; left_item < left_end; ++left_item) {
            const bool left_frontier = left_item < left_begin;
            const int32_t left_part = left_frontier ? FRONTIER : scratch.match[left_item];
            if (!left_frontier && store.fragments[left_part].n_above_left == 0) continue;
            const double left_value = left_frontier ? 1.0 : scratch.value[left_item];
            for (int32_t right_item = right_begin - 1; right_item < right_end; ++right_item) {
                const bool right_frontier = right_item < right_begin;
                const int32_t right_part = right_frontier ? FRONTIER : scratch.match[right_item];
                if (!right_frontier && store.fragments[right_part].n_above_right == 0) continue;
                const int32_t number = store.find(own_rule, left_part, right_part);
                if (number == MISSING) continue;
                scratch.match.push_back(number);
                scratch.value.push_back(left_value * (right_frontier ? 1.0 : scratch.value[right_item]));
            }
        }
    }

    void draw_sites(int64_t tree, Scratch& scratch, std::vector<uint8_t>& site, Stream& own) const {
        const int64_t first = tree_start[tree], n_nodes = tree_start[tree + 1] - first;
        constexpr int32_t SITE = -3, BASE = -4;   // how a waiting node goes on, if not by a fragment's part
        site.assign(n_nodes, 0);
        scratch.waiting.assign(1, std::make_pair(0, SITE));
        while (!scratch.waiting.empty()) {
            const int32_t node = scratch.waiting.back().first;
            int32_t way = scratch.waiting.back().second;
            scratch.waiting.pop_back();
            if (way == SITE) {
                site[node] = 1;
                way = BASE;
                double target = own.uniform();
                for (int32_t item = scratch.match_begin[node]; item < scratch.match_end[node]; ++item) {
                    target -= cached_weight(scratch.match[item], label[first + node]) * scratch.value[item];
                    if (target < 0.0) {
                        way = scratch.match[item];
                        break;
                    }
                }
            }
            const int32_t children[2] = {right[first + node], left[first + node]};
            for (int side = 0; side < 2; ++side) {
                if (children[side] < 0) continue;
                const int32_t child = static_cast<int32_t>(children[side] - first);
                int32_t next;
                if (way == BASE) {
                    const double stops = stop[label[children[side]]], goes = (1.0 - stops) * scratch.base[child];
                    next = own.uniform() * (stops + goes) < stops ? SITE : BASE;
                } else {
                    const Fragment& fragment = store.fragments[way];
                    const int32_t part = side == 0 ? fragment.right : fragment.left;
                    next = part == FRONTIER ? SITE : part;
                }
                scratch.waiting.push_back(std::make_pair(child, next));
            }
        }
    }

    // log prod_e (w_e + b P0(e)) over the fragments that the sites make.
    double log_weight(int64_t tree, const Choice& choice) const {
        LogProduct product;
        for (int64_t node = 0; node < n_nodes_of(tree); ++node) {
            if (choice.is_site[node]) multiply_predictive(product, tree_start[tree], node, choice);
        }
        return product.log();
    }

    // Seat a proposal, and keep it or go back; the tree has been unseated as `old_seats_` tells.
    void test(int64_t tree, Proposal& proposal, double log_old, double temperature, Stream& own, SweepCounts& counts) {
        const int64_t first = tree_start[tree];
        const Choice& before = proposal.before;
        new_seats_.clear();
        const double log_new = seat_tree(tree, proposal.after, new_seats_, own);
        const double log_ratio = (log_new - log_old) / temperature + proposal.log_before - proposal.log_after;
        ++counts.n_proposed;
        if (log_ratio >= 0.0 || own.uniform() < std::exp(log_ratio)) {
            ++counts.n_accepted;
            counts.n_changed += before.is_site != proposal.after.is_site;
            release(old_seats_);
            return;
        }
        take_back_seats(new_seats_);
        take_back_unseats(old_seats_);
        std::copy(before.is_site.begin(), before.is_site.end(), is_site.begin() + first);
        std::copy(before.number.begin(), before.number.end(), dish.begin() + first);
        release(new_seats_);
    }

    // ---- single sites -----------------------------------------------------------------------------------------------

    static constexpr size_t FAR = 16, NEAR = 8, CLOSE = 4;   // visits ahead

    void prefetch_node(int64_t node) const {
        prefetch(&parent[node]);
        prefetch(&is_site[node]);
        prefetch(&dish[node]);
        prefetch(&label[node]);
        prefetch(&right[node]);
    }

    void prefetch_fragments(int32_t node) const {
        if (is_site[node]) prefetch(&store.fragments[dish[node]]);
        if (parent[node] < 0) return;
        do {
            node = parent[node];
        } while (!is_site[node]);
        prefetch(&store.fragments[dish[node]]);
    }

    // Where the parent is the root of its fragment, one lookup is all; deeper ones are fewer.
    void prefetch_lookup(int32_t node) const {
        const int32_t above = parent[node];
        if (above < 0 || !is_site[above]) return;
        const Fragment& fragment = store.fragments[dish[above]];
        const int32_t number = is_site[node] ? dish[node] : FRONTIER;
        if (right[above] == node) {
            store.prefetch_slot(fragment.rule, fragment.left, number);
        } else {
            store.prefetch_slot(fragment.rule, number, fragment.right);
        }
    }

    // The way from a node up to the root of the fragment above it, and the numbers of what is below each node on it:
    // as it is, and with the node the other way, a site or not (MISSING if not stored).
    struct Way {
        std::vector<int32_t> nodes, present, other;

        bool goes_right(size_t item, int32_t node, const std::vector<int32_t>& right) const {
            return right[nodes[item]] == (item ? nodes[item - 1] : node);
        }
    };
    Way way_;

    // Returns the number of the fragment below the node. Only what is on the way needs to be looked up.
    int32_t find_way(int32_t node) {
        way_.nodes.clear();
        int32_t root = node;
        do {
            root = parent[root];
            way_.nodes.push_back(root);
        } while (!is_site[root]);
        const size_t length = way_.nodes.size();
        way_.present.resize(length);
        way_.other.resize(length);
        int32_t number = dish[root];
        for (size_t item = length; item-- > 0;) {
            way_.present[item] = number;
            const Fragment& fragment = store.fragments[number];
            number = way_.goes_right(item, node, right) ? fragment.right : fragment.left;
        }
        const int32_t lower = is_site[node] ? dish[node] : number;
        number = is_site[node] ? lower : FRONTIER;
        for (size_t item = 0; item < length && number != MISSING; ++item) {
            const Parts parts = parts_with(item, node, number);
            number = way_.other[item] = store.find(rule[way_.nodes[item]], parts.left, parts.right);
        }
        if (number == MISSING) way_.other[length - 1] = MISSING;
        return lower;
    }

    // The parts of the fragment below a node on the way, with another number where the way goes on.
    Parts parts_with(size_t item, int32_t node, int32_t number) const {
        const Fragment& fragment = store.fragments[way_.present[item]];
        if (way_.goes_right(item, node, right)) return {fragment.left, number};
        return {number, fragment.right};
    }

    // Store what is below the root if the node goes the other way.
    int32_t store_way(int32_t node, int32_t lower) {
        if (way_.other.back() != MISSING) return way_.other.back();
        int32_t number = is_site[node] ? lower : FRONTIER;
        for (size_t item = 0; item < way_.nodes.size(); ++item) {
            const Parts parts = parts_with(item, node, number);
            number = store.intern(rule[way_.nodes[item]], parts.left, parts.right);
        }
        return number;
    }

    // log P0 of a stored fragment, which keeps it until a stop probability changes.
    double kept_log_base(int32_t number) {
        if (store.fragments[number].epoch == epoch_) return store.fragments[number].log_base;
        std::vector<int32_t>& waiting = waiting_;
        waiting.assign(1, number);
        while (!waiting.empty()) {
            Fragment& fragment = store.fragments[waiting.back()];
            const int32_t parts[2] = {fragment.left, fragment.right};
            const int32_t labels[2] = {rule_left_label[fragment.rule], rule_right_label[fragment.rule]};
            double sum = rule_log_probability[fragment.rule];
            bool is_ready = true;
            for (int side = 0; side < 2; ++side) {
                if (labels[side] < 0) continue;
                if (parts[side] < 0) {
                    sum += log_stop[labels[side]];
                } else if (store.fragments[parts[side]].epoch == epoch_) {
                    sum += log_go[labels[side]] + store.fragments[parts[side]].log_base;
                } else {
                    waiting.push_back(parts[side]);
                    is_ready = false;
                }
            }
            if (!is_ready) continue;
            fragment.log_base = sum;
            fragment.epoch = epoch_;
            waiting.pop_back();
        }
        return store.fragments[number].log_base;
    }

    int32_t n_customers_of(int32_t number) const {
        return number == MISSING ? 0 : store.fragments[number].tables.n_customers;
    }

    double old_weight_of(const House& house, int32_t number) const {
        return n_customers_of(number) ? house.old_weight(store.fragments[number].tables) : 0.0;
    }

    // Gibbs for one node; returns whether it changed.
    bool resample_site(int32_t node, double temperature, Stream& own) {
        const int32_t lower = find_way(node), root = way_.nodes.back();
        const bool was_site = is_site[node];
        const int32_t whole = was_site ? way_.other.back() : dish[root];
        const int32_t upper = was_site ? dish[root] : way_.other.back();
        House &upper_house = houses[label[root]], &lower_house = houses[label[node]];
        // Of the three, at most the one that is not there now is not stored; its base follows from the others.
        const double log_lower = kept_log_base(lower), log_present = kept_log_base(dish[root]);
        const double log_join = log_go[label[node]] + log_lower - log_stop[label[node]];
        const double log_whole = was_site ? log_present + log_join : log_present;
        const double log_upper = was_site ? log_present : log_present - log_join;
        if (was_site) lower_house.unseat(store.fragments[lower].tables, own);
        upper_house.unseat(store.fragments[dish[root]].tables, own);
        // Where all comes from the base, common factors are left out: they may be too small for a number.
        const bool same = upper == lower, is_new = n_customers_of(whole) == 0;
        const double upper_scale = is_new && n_customers_of(upper) == 0 ? log_upper : 0.0;
        const double lower_scale = is_new && n_customers_of(lower) == 0 && !same ? log_lower : 0.0;
        const double denominator = upper_house.denominator();
        const double joined = (old_weight_of(upper_house, whole) +
                               upper_house.new_weight() * std::exp(log_whole - upper_scale - lower_scale)) / denominator;
        // The upper one at an old or at a new table, each times the lower one after it.
        const double base_lower = std::exp(log_lower - lower_scale);
        double cut[2] = {old_weight_of(upper_house, upper) / denominator,
                         upper_house.new_weight() * std::exp(log_upper - upper_scale) / denominator};
        for (int opens = 0; opens < 2; ++opens) {
            House after = lower_house;
            double n_customers = n_customers_of(lower), n_tables = store.fragments[lower].tables.n_tables;
            if (&upper_house == &lower_house) {
                ++after.n_customers;
                after.n_tables += opens;
            }
            if (same) {
                n_customers += 1.0;
                n_tables += opens;
            }
            const double old_part = n_customers > 0.0 ? n_customers - after.discount * n_tables : 0.0;
            cut[opens] *= (old_part + after.new_weight() * base_lower) / after.denominator();
        }
        const double ratio = (cut[0] + cut[1]) / joined;
        const double odds = temperature == 1.0 ? ratio : std::pow(ratio, 1.0 / temperature);
        const bool now_site = own.uniform() * (1.0 + odds) >= 1.0;
        const int32_t old_upper = dish[root];
        if (now_site != was_site) dish[root] = store_way(node, lower);
        Tables& tables = store.fragments[dish[root]].tables;
        if (now_site) {
            const bool opens = own.uniform() * (cut[0] + cut[1]) >= cut[0];
            upper_house.grow(tables, opens ? 0 : tables.draw_table(own, upper_house.discount));
            lower_house.seat(store.fragments[lower].tables, std::exp(log_lower), own);
        } else {
            upper_house.seat(tables, std::exp(log_whole), own);
        }
        is_site[node] = now_site;
        dish[node] = now_site ? lower : -1;
        if (now_site == was_site) return false;
        store.release(old_upper);
        store.release(lower);
        return true;
    }

    // ---- all instances of a fragment at once ------------------------------------------------------------------------

    // Store the fragment below `root`, where `cut` counts as a site or not as given; returns its number.
    int32_t fragment_below(int32_t root, int32_t cut, bool cut_is_site, Scratch& scratch) {
        const auto ends = [&](int32_t node) { return node == cut ? cut_is_site : static_cast<bool>(is_site[node]); };
        std::vector<int32_t>& nodes = scratch.nodes;
        nodes.assign(1, root);
        for (size_t item = 0; item < nodes.size(); ++item) {
            for (const int32_t child : {left[nodes[item]], right[nodes[item]]}) {
                if (child >= 0 && !ends(child)) nodes.push_back(child);
            }
        }
        scratch.number.resize(label.size());
        // Children come after their parents in `nodes`.
        for (size_t item = nodes.size(); item-- > 0;) {
            const int32_t node = nodes[item], left_child = left[node], right_child = right[node];
            const int32_t left_part = left_child < 0 || ends(left_child) ? FRONTIER : scratch.number[left_child];
            const int32_t right_part = right_child < 0 || ends(right_child) ? FRONTIER : scratch.number[right_child];
            scratch.number[node] = store.intern(rule[node], left_part, right_part);
        }
        return scratch.number[root];
    }

    // The node of one instance that stands where `path` leads from its root (false: left, true: right).
    int32_t follow(int32_t root, const std::vector<bool>& path) const {
        for (const bool goes_right : path) root = goes_right ? right[root] : left[root];
        return root;
    }

    // Where the joined fragment, or its upper part, is used with `path` leading to the node in question.
    std::vector<int32_t> instances(const std::vector<int32_t>& roots, const std::vector<bool>& path, bool is_cut,
                                   int32_t lower) const {
        std::vector<int32_t> result;
        for (const int32_t root : roots) {
            const int32_t node = follow(root, path);
            if (is_cut ? dish[node] == lower : !is_site[node]) result.push_back(root);
        }
        return result;
    }

    // Unseat (or, with `seats`, take back) nothing but the fragments at these roots and, where cut, at the nodes below.
    double unseat_instances(const std::vector<int32_t>& roots, const std::vector<bool>& path, bool is_cut,
                            std::vector<Seat>& seats, Stream& own) {
        double log_probability = 0.0;
        const auto unseat = [&](int32_t node) {
            Tables& tables = store.fragments[dish[node]].tables;
            const int32_t size = houses[label[node]].unseat(tables, own);
            seats.push_back({node, dish[node], size});
            log_probability += log_predictive(label[node], &tables, log_base_of(dish[node]));
        };
        for (size_t item = roots.size(); item-- > 0;) {
            if (is_cut) unseat(follow(roots[item], path));
            unseat(roots[item]);
        }
        return log_probability;
    }

    double seat_instances(const std::vector<int32_t>& roots, const std::vector<bool>& path, bool is_cut, int32_t upper,
                          int32_t lower, std::vector<Seat>& seats, Stream& own) {
        double log_probability = 0.0;
        const auto seat = [&](int32_t node, int32_t number, double log_base) {
            Tables& tables = store.fragments[number].tables;
            log_probability += log_predictive(label[node], &tables, log_base);
            seats.push_back({node, number, houses[label[node]].seat(tables, std::exp(log_base), own)});
            dish[node] = number;
        };
        const double log_upper = log_base_of(upper), log_lower = is_cut ? log_base_of(lower) : 0.0;
        for (const int32_t root : roots) {
            const int32_t node = follow(root, path);
            is_site[node] = is_cut;
            seat(root, upper, log_upper);
            if (is_cut) {
                seat(node, lower, log_lower);
            } else {
                dish[node] = -1;
            }
        }
        return log_probability;
    }

    bool resample_type(int32_t node, std::vector<std::vector<int32_t>>& places, Scratch& scratch, double temperature,
                       Stream& own) {
        std::vector<bool> path;
        int32_t root = node;
        do {
            path.push_back(right[parent[root]] == root);
            root = parent[root];
        } while (!is_site[root]);
        std::reverse(path.begin(), path.end());
        const bool was_cut = is_site[node];
        const int32_t whole = fragment_below(root, node, false, scratch);
        const int32_t upper = fragment_below(root, node, true, scratch);
        const int32_t lower = fragment_below(node, node, true, scratch);
        if (places.size() < store.fragments.size()) places.resize(store.fragments.size());
        const std::vector<int32_t> joined_places = instances(places[whole], path, false, lower);
        const std::vector<int32_t> cut_places = instances(places[upper], path, true, lower);
        bool accepted = false;
        if (upper != lower && (was_cut ? joined_places : cut_places).empty()) {
            accepted = test_type(was_cut ? cut_places : joined_places, path, was_cut, whole, upper, lower, places,
                                 temperature, own);
        }
        for (const int32_t number : {whole, upper, lower}) store.release(number);
        return accepted;
    }

    bool test_type(const std::vector<int32_t>& roots, const std::vector<bool>& path, bool was_cut, int32_t whole,
                   int32_t upper, int32_t lower, std::vector<std::vector<int32_t>>& places, double temperature,
                   Stream& own) {
        old_seats_.clear();
        new_seats_.clear();
        const double log_old = unseat_instances(roots, path, was_cut, old_seats_, own);
        const double log_new = seat_instances(roots, path, !was_cut, was_cut ? whole : upper, lower, new_seats_, own);
        const double log_ratio = (log_new - log_old) / temperature;
        if (log_ratio >= 0.0 || own.uniform() < std::exp(log_ratio)) {
            move_places(roots, path, was_cut, whole, upper, lower, places);
            return true;
        }
        take_back_seats(new_seats_);
        take_back_unseats(old_seats_);
        for (const int32_t root : roots) {
            const int32_t node = follow(root, path);
            is_site[node] = was_cut;
            dish[root] = was_cut ? upper : whole;
            dish[node] = was_cut ? lower : -1;
        }
        return false;
    }

    // Keep `places` as it is after a change: lists stay sorted, so that they do not depend on the history.
    static void move_places(const std::vector<int32_t>& from, std::vector<int32_t>& list, bool adds) {
        std::vector<int32_t> sorted(from), result;
        std::sort(sorted.begin(), sorted.end());
        if (adds) {
            std::merge(list.begin(), list.end(), sorted.begin(), sorted.end(), std::back_inserter(result));
        } else {
            std::set_difference(list.begin(), list.end(), sorted.begin(), sorted.end(), std::back_inserter(result));
        }
        list.swap(result);
    }

    void move_places(const std::vector<int32_t>& roots, const std::vector<bool>& path, bool was_cut, int32_t whole,
                     int32_t upper, int32_t lower, std::vector<std::vector<int32_t>>& places) const {
        std::vector<int32_t> nodes;
        for (const int32_t root : roots) nodes.push_back(follow(root, path));
        move_places(roots, places[whole], was_cut);
        move_places(roots, places[upper], !was_cut);
        move_places(nodes, places[lower], !was_cut);
    }
};

}  // namespace tsgkit
