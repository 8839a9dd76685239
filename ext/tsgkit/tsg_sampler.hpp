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
// With insertion, a node v inside of an elementary tree, whose label X one of its children u has too, can be the root of
// an auxiliary tree with the foot u: the tree it stands in, its host, then goes on at u. For any state h of the host,
//
//     A(v, u) = sum_{cached auxiliary e' that match} w'_e' S_e'(v)  +  b'_X P'(rule at v, u the foot) [ s I(y) + (1 - s) N_B(y) ]
//     N_h(v)  = (1 - a_X) h(v)  +  a_X sum_u A(v, u) h(u)
//
// where y is the sibling of u, and N_h stands for h wherever an elementary tree goes on into a node. If insertions may be
// stacked, N_h(u) takes the place of h(u). With a = 0, for all labels, nothing differs from a grammar without insertion.
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
    kInsertion = 10,
};

// What a derivation says of a node: it is inside of an elementary tree (or a foot), the root of an initial tree, or the
// root of an auxiliary tree whose foot is its left (or only) or its right child.
enum State : uint8_t { kGoesOn = 0, kSite = 1, kLeftFoot = 2, kRightFoot = 3 };

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
    std::vector<double> foot_probability, foot_log_probability;   // P' with one child as the foot; 0 where none can be
    // Per label.
    std::vector<House> houses;   // of initial trees; with insertion, those of auxiliary trees follow
    std::vector<double> stop, log_stop, log_go;
    std::vector<double> insert, log_insert, log_no_insert;
    // The derivations: what each node is (a State), and of all roots of elementary trees the number of the fragment.
    std::vector<uint8_t> state;
    std::vector<int32_t> dish;
    FragmentStore store;
    uint64_t seed = 0;
    bool has_insertion = false;   // whether there are auxiliary trees at all
    bool is_stacked = false;      // whether a foot may be the host of another insertion

    struct SweepCounts {
        int64_t n_proposed = 0;
        int64_t n_accepted = 0;
        int64_t n_changed = 0;   // accepted proposals that differ from what was there; nodes that changed
    };

    int64_t n_trees() const { return static_cast<int64_t>(tree_start.size()) - 1; }
    int64_t n_nodes_of(int64_t tree) const { return tree_start[tree + 1] - tree_start[tree]; }
    Stream stream(uint64_t iteration, Purpose purpose, uint64_t item = 0) const {
        return Stream(seed, iteration, stream_number(purpose, item));
    }

    size_t n_labels() const { return stop.size(); }

    // The restaurant where a fragment is ordered.
    int32_t house_of(const Fragment& fragment) const {
        return rule_label[fragment.rule] + (fragment.is_auxiliary() ? static_cast<int32_t>(n_labels()) : 0);
    }

    // Seat all trees as `state` says; nobody may be seated yet.
    void seat_all() {
        dish.assign(label.size(), -1);
        Choice choice;
        std::vector<Seat> seats;
        for (int64_t tree = 0; tree < n_trees(); ++tree) {
            Stream own = stream(0, Purpose::kStart, tree);
            seats.clear();
            choice.state.assign(&state[tree_start[tree]], &state[tree_start[tree]] + n_nodes_of(tree));
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
        const std::vector<int64_t> order = random_order(n_trees(), stream(iteration, Purpose::kTreeOrder));
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
        Scratch scratch;
        const std::vector<int64_t> order =
            random_order(static_cast<int64_t>(label.size()), stream(iteration, Purpose::kSiteOrder));
        for (size_t place = 0; place < order.size(); ++place) {
            // The nodes come from all over the corpus: what a visit will read is called for a few visits before.
            if (place + FAR < order.size()) prefetch_node(order[place + FAR]);
            if (place + NEAR < order.size()) prefetch_fragments(static_cast<int32_t>(order[place + NEAR]));
            if (place + CLOSE < order.size()) prefetch_lookup(static_cast<int32_t>(order[place + CLOSE]));
            const int32_t node = static_cast<int32_t>(order[place]);
            if (parent[node] < 0 || (!is_stacked && is_foot(node))) continue;
            Stream own = stream(iteration, Purpose::kSite, node);
            ++counts.n_proposed;
            ++counts.n_accepted;
            const bool is_plain = !can_insert(node) && !is_foot(node);   // a site or not, there is nothing else
            counts.n_changed += is_plain ? resample_site(node, temperature, own) : resample_node(node, scratch, temperature, own);
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
            if (parent[node] < 0 || state[node] >= kLeftFoot || is_foot(node)) continue;
            ++counts.n_proposed;
            const bool accepted = resample_type(node, places, scratch, temperature, own);
            counts.n_accepted += accepted;
            counts.n_changed += accepted;
        }
        return counts;
    }

    // ---- parameters -------------------------------------------------------------------------------------------

    // Numbers over the dishes of all tables, of table sizes by restaurant, and of insertions that are or could be.
    struct Totals {
        std::vector<int64_t> rules, foot_rules;
        std::vector<int64_t> frontier, internal;
        std::vector<int64_t> inserted, not_inserted;
        std::vector<std::vector<int64_t>> tables_by_size;
    };

    Totals totals() const {
        Totals result;
        result.rules.assign(rule_label.size(), 0);
        result.foot_rules.assign(rule_label.size(), 0);
        for (auto* counts : {&result.frontier, &result.internal, &result.inserted, &result.not_inserted}) {
            counts->assign(n_labels(), 0);
        }
        result.tables_by_size.resize(houses.size());
        for (size_t node = 0; has_insertion && node < state.size(); ++node) {
            if (state[node] >= kLeftFoot) {
                ++result.inserted[label[node]];
            } else if (could_insert(static_cast<int32_t>(node))) {
                ++result.not_inserted[label[node]];
            }
        }
        std::vector<int32_t> waiting;
        for (const Fragment& root : store.fragments) {
            if (root.tables.n_tables == 0) continue;
            const int64_t n_tables = root.tables.n_tables;
            add_sizes(root.tables, result.tables_by_size[house_of(root)]);
            waiting.assign(1, static_cast<int32_t>(&root - store.fragments.data()));
            while (!waiting.empty()) {
                const Fragment& fragment = store.fragments[waiting.back()];
                waiting.pop_back();
                (fragment.is_auxiliary() ? result.foot_rules : result.rules)[fragment.rule] += n_tables;
                const int32_t children[2] = {fragment.left, fragment.right};
                const int32_t labels[2] = {rule_left_label[fragment.rule], rule_right_label[fragment.rule]};
                for (int side = 0; side < 2; ++side) {
                    if (labels[side] < 0 || children[side] == FOOT) continue;
                    (children[side] < 0 ? result.frontier : result.internal)[labels[side]] += n_tables;
                    if (children[side] >= 0) waiting.push_back(children[side]);
                }
            }
        }
        return result;
    }

    // log p(derivations, seating | hyperparameters, stop and insertion probabilities)
    double log_joint(const Totals& sums) const {
        double result = 0.0;
        for (size_t symbol = 0; symbol < houses.size(); ++symbol) {
            result += log_seating(houses[symbol], sums.tables_by_size[symbol]);
            if (symbol >= n_labels()) continue;
            if (sums.inserted[symbol]) result += sums.inserted[symbol] * log_insert[symbol];
            result += sums.not_inserted[symbol] * log_no_insert[symbol];
            result += sums.frontier[symbol] * log_stop[symbol] + sums.internal[symbol] * log_go[symbol];
        }
        for (size_t number = 0; number < sums.rules.size(); ++number) {
            if (sums.rules[number]) result += sums.rules[number] * rule_log_probability[number];
            if (sums.foot_rules[number]) result += sums.foot_rules[number] * foot_log_probability[number];
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

    // Labels without any rule that could have a foot have no insertions.
    void resample_insertions(uint64_t iteration, const Totals& sums) {
        std::vector<bool> can_be_root(n_labels(), false);
        for (size_t number = 0; number < foot_probability.size(); ++number) {
            if (foot_probability[number] > 0.0) can_be_root[rule_label[number]] = true;
        }
        for (size_t symbol = 0; symbol < n_labels(); ++symbol) {
            if (!can_be_root[symbol]) continue;
            Stream own = stream(iteration, Purpose::kInsertion, symbol);
            const double drawn = own.beta(1.0 + sums.inserted[symbol], 1.0 + sums.not_inserted[symbol]);
            set_insertion(symbol, std::min(std::max(drawn, 1e-9), 1.0 - 1e-9));
        }
    }

    void set_insertion(size_t symbol, double probability) {
        insert[symbol] = probability;
        log_insert[symbol] = std::log(probability);
        log_no_insert[symbol] = std::log1p(-probability);
    }

    // One pair (discount, strength) per restaurant; a Dirichlet process keeps its discount of 0.
    void resample_hyper(uint64_t iteration, const Totals& sums, bool is_dirichlet) {
        for (size_t symbol = 0; symbol < houses.size(); ++symbol) {
            Stream own = stream(iteration, Purpose::kHyper, symbol);
            resample_pair(houses, sums.tables_by_size, {symbol}, own, is_dirichlet);
        }
    }

private:
    static constexpr double SMALLEST = 1e-120;   // below this, logarithms

    struct Seat {
        int32_t house;
        int32_t fragment;
        int32_t size;         // of the table before
        int32_t table = -1;   // which one, if it is followed
    };

    // A derivation of a tree, and of the fragment that has its root, or goes on, at each node: its number (MISSING if
    // it is not stored) and its base probability; at the root of an auxiliary tree, of that. For the present derivation,
    // only the numbers at roots are there.
    struct Choice {
        std::vector<uint8_t> state;
        std::vector<int32_t> number;
        std::vector<double> base;
        uint64_t n_removed = 0;   // from the store when the numbers were found
    };

    struct Proposal {
        Choice before, after;
        double log_before = 0.0;   // log q of both
        double log_after = 0.0;
    };

    // A node still to be drawn, and how it goes on: SITE, BASE, or by a fragment's part.
    struct Waiting {
        int32_t node;
        int32_t way;
        bool may_insert;
    };
    static constexpr int32_t SITE = -3, BASE = -4;

    struct Scratch {
        std::vector<double> base, base_on;              // B(v) / I(v) and N_B(v) / I(v)
        std::vector<double> foot_weight;                // a A(v, u) / I(v), for either child as u
        std::vector<int32_t> match_begin, match_end;    // the fragments that match at v ...
        std::vector<int32_t> on_begin, on_end;          // ... and those with which an elementary tree can go on into v
        std::vector<double> on_factor;                  // by which the values of the latter are to be multiplied
        std::vector<int32_t> match;
        std::vector<double> value;                      // S_g(v) / I(v) and N_g(v) / I(v)
        std::vector<int32_t> place;                     // of a fragment among the latter, -1 if it is not there
        std::vector<int32_t> number;                    // the fragment below v under some derivation, or MISSING
        std::vector<double> log_base;                   // log P0 of it
        std::vector<int32_t> nodes;
        std::vector<Waiting> waiting;
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

    // ---- insertions ---------------------------------------------------------------------------------------------

    int32_t child(int32_t node, int side) const { return side ? right[node] : left[node]; }

    // The foot below the root of an auxiliary tree.
    int32_t foot(int32_t node, uint8_t value) const { return child(node, value - kLeftFoot); }

    bool is_foot(int64_t node) const {
        const int32_t up = parent[node];
        return up >= 0 && state[up] >= kLeftFoot && foot(up, state[up]) == node;
    }

    // Whether a node has no insertion, but could.
    bool could_insert(int32_t node) const { return state[node] == kGoesOn && (is_stacked || !is_foot(node)); }

    // Whether this child can be the foot of an insertion.
    bool can_be_foot(int32_t node, int side) const {
        const int32_t below = child(node, side);
        return below >= 0 && label[below] == label[node] && foot_probability[rule[node]] > 0.0;
    }

    bool can_insert(int32_t node) const {
        return has_insertion && insert[label[node]] > 0.0 && (can_be_foot(node, 0) || can_be_foot(node, 1));
    }

    // The restaurant where the fragment at a node of this state is ordered.
    int32_t house_at(int64_t node, uint8_t value) const {
        return label[node] + (value >= kLeftFoot ? static_cast<int32_t>(n_labels()) : 0);
    }

    // The log probability of a tree's insertions and of there being no others.
    double log_choices(int64_t tree, const uint8_t* value) const {
        double result = 0.0;
        if (!has_insertion) return result;
        const int64_t first = tree_start[tree], n_nodes = tree_start[tree + 1] - first;
        for (int64_t node = 0; node < n_nodes; ++node) {
            const int32_t symbol = label[first + node];
            if (value[node] == kGoesOn) {
                result += log_no_insert[symbol];
            } else if (value[node] >= kLeftFoot) {
                result += log_insert[symbol];
                if (!is_stacked) result -= log_no_insert[symbol];   // the foot's
            }
        }
        return result;
    }

    // ---- seating of whole trees ---------------------------------------------------------------------------------

    // Describe the fragments that a choice makes.
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

    // The same for the derivation as it is.
    void describe_present(int64_t tree, Choice& choice) const {
        const int64_t first = tree_start[tree], n_nodes = n_nodes_of(tree);
        choice.state.assign(&state[first], &state[first] + n_nodes);
        choice.number.assign(&dish[first], &dish[first] + n_nodes);
        choice.base.resize(n_nodes);
        for (int64_t node = n_nodes - 1; node >= 0; --node) choice.base[node] = base_at(first, node, choice);
    }

    struct Parts {
        int32_t left = FRONTIER, right = FRONTIER;
    };

    // The node where a fragment goes on below one of its nodes, insertions left out.
    int64_t below_insertions(int64_t first, int64_t node, const Choice& choice) const {
        while (choice.state[node] >= kLeftFoot) node = foot(static_cast<int32_t>(first + node), choice.state[node]) - first;
        return node;
    }

    int32_t part_of(int64_t first, int64_t node, int side, const Choice& choice) const {
        if (choice.state[node] == kLeftFoot + side) return FOOT;
        const int32_t below = child(static_cast<int32_t>(first + node), side);
        if (below < 0 || choice.state[below - first] == kSite) return FRONTIER;
        return choice.number[below_insertions(first, below - first, choice)];
    }

    Parts parts_of(int64_t first, int64_t node, const Choice& choice) const {
        return {part_of(first, node, 0, choice), part_of(first, node, 1, choice)};
    }

    // P0 of what is below a node, from that below its children; 0 if it is too small for a number.
    double base_at(int64_t first, int64_t node, const Choice& choice) const {
        const uint8_t value = choice.state[node];
        double base = (value >= kLeftFoot ? foot_probability : rule_probability)[rule[first + node]];
        for (int side = 0; side < 2; ++side) {
            const int32_t below = child(static_cast<int32_t>(first + node), side);
            if (below < 0 || value == kLeftFoot + side) continue;
            const double stops = stop[label[below]];
            const bool is_site = choice.state[below - first] == kSite;
            base *= is_site ? stops : (1.0 - stops) * choice.base[below_insertions(first, below - first, choice)];
        }
        return base;
    }

    // Its logarithm, whatever its size.
    double log_base_at(int64_t first, int64_t node, const Choice& choice) const {
        double result = 0.0;
        std::vector<int64_t> waiting(1, node);
        while (!waiting.empty()) {
            const int64_t place = waiting.back();
            waiting.pop_back();
            const uint8_t value = choice.state[place];
            result += (value >= kLeftFoot ? foot_log_probability : rule_log_probability)[rule[first + place]];
            for (int side = 0; side < 2; ++side) {
                const int32_t below = child(static_cast<int32_t>(first + place), side);
                if (below < 0 || value == kLeftFoot + side) continue;
                const bool stops = choice.state[below - first] == kSite;
                result += stops ? log_stop[label[below]] : log_go[label[below]];
                if (!stops) waiting.push_back(below_insertions(first, below - first, choice));
            }
        }
        return result;
    }

    // Multiply by the probability of the fragment at a root for the next customer, with the counts as they are.
    void multiply_predictive(LogProduct& product, int64_t first, int64_t node, const Choice& choice) const {
        const House& house = houses[house_at(first + node, choice.state[node])];
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
    double log_predictive(int32_t number, const Tables* tables, double log_base) const {
        const House& house = houses[number];
        const double from_base = std::log(house.new_weight()) + log_base;
        if (tables == nullptr || tables->n_customers == 0) return from_base - std::log(house.denominator());
        return std::log(house.old_weight(*tables) + std::exp(from_base)) - std::log(house.denominator());
    }

    // Seat a tree's fragments one by one, from the root down; returns the log probability of the derivation.
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
        probability.add_log(log_choices(tree, choice.state.data()));
        for (int64_t node = 0; node < n_nodes; ++node) {
            state[first + node] = choice.state[node];
            dish[first + node] = -1;
            if (choice.state[node] == kGoesOn) continue;
            multiply_predictive(probability, first, node, choice);
            const int32_t house = house_at(first + node, choice.state[node]), number = choice.number[node];
            Tables& tables = store.fragments[number].tables;
            const int32_t size = houses[house].seat(tables, choice.base[node], own);
            const int32_t table = size ? draw_followed(number, size, tables, 1, own) : -1;
            if (table >= 0) ++followed_[table].size;
            seats.push_back({house, number, size, table});
            dish[first + node] = number;
        }
        return probability.log();
    }

    // Unseat a tree's fragments, described by `choice`, in reverse; returns the same for them. They stay in the
    // store until `release`. A tree that has been frozen leaves by the same tables again.
    double unseat_tree(int64_t tree, const Choice& choice, std::vector<Seat>& seats, Stream& own,
                       const Seat* frozen = nullptr) {
        const int64_t first = tree_start[tree];
        LogProduct probability;
        probability.add_log(log_choices(tree, choice.state.data()));
        for (int64_t node = n_nodes_of(tree) - 1; node >= 0; --node) {
            if (choice.state[node] == kGoesOn) continue;
            const int32_t house = house_at(first + node, choice.state[node]), number = choice.number[node];
            Tables& tables = store.fragments[number].tables;
            const int32_t table = frozen ? (frozen++)->table : -1;
            const int32_t size = table < 0 ? tables.draw_customer(own) : followed_[table].size--;
            houses[house].shrink(tables, size);
            seats.push_back({house, number, size, table});
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
            result += (fragment.is_auxiliary() ? foot_log_probability : rule_log_probability)[fragment.rule];
            const int32_t children[2] = {fragment.left, fragment.right};
            const int32_t labels[2] = {rule_left_label[fragment.rule], rule_right_label[fragment.rule]};
            for (int side = 0; side < 2; ++side) {
                if (labels[side] < 0 || children[side] == FOOT) continue;
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
            houses[seat.house].shrink(store.fragments[seat.fragment].tables, seat.size + 1);
            if (seat.table >= 0) --followed_[seat.table].size;
        }
    }

    void take_back_unseats(const std::vector<Seat>& seats) {
        for (size_t item = seats.size(); item-- > 0;) {
            const Seat& seat = seats[item];
            houses[seat.house].grow(store.fragments[seat.fragment].tables, seat.size - 1);
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
                if (state[node] == kGoesOn) continue;
                const int32_t house = house_at(node, state[node]);
                Tables& tables = store.fragments[dish[node]].tables;
                const int32_t n_before = tables.draw_customer(own);
                int32_t table = draw_followed(dish[node], n_before, tables, 0, own);
                if (table < 0) table = follow_table(dish[node], n_before);
                houses[house].shrink(tables, n_before);
                --followed_[table].size;
                frozen_seats_.push_back({house, dish[node], n_before, table});
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

    // Draw a derivation of a tree from the frozen grammar, and weigh it and the present one by it. Changes nothing else.
    void propose(int64_t tree, Scratch& scratch, Proposal& proposal, Stream& own) const {
        inside(tree, scratch);
        draw_derivation(tree, scratch, proposal.after.state, own);
        describe(tree, proposal.after);
        describe_present(tree, proposal.before);
        proposal.log_after = log_weight(tree, proposal.after) - scratch.log_inside;
        proposal.log_before = log_weight(tree, proposal.before) - scratch.log_inside;
    }

    double cached_weight(int32_t number, int32_t house) const {
        const Tables& tables = store.fragments[number].tables;
        return tables.n_customers ? houses[house].old_weight(tables) / houses[house].denominator() : 0.0;
    }

    void inside(int64_t tree, Scratch& scratch) const {
        const int64_t first = tree_start[tree], n_nodes = tree_start[tree + 1] - first;
        scratch.base.resize(n_nodes);
        scratch.base_on.resize(n_nodes);
        scratch.match_begin.resize(n_nodes);
        scratch.match_end.resize(n_nodes);
        scratch.on_begin.resize(n_nodes);
        scratch.on_end.resize(n_nodes);
        scratch.on_factor.resize(n_nodes);
        if (has_insertion) {
            scratch.foot_weight.resize(2 * n_nodes);
            if (scratch.place.size() < store.fragments.size()) scratch.place.resize(store.fragments.size(), -1);
        }
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
                base *= stops + (1.0 - stops) * scratch.base_on[children[side] - first];
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
            scratch.on_begin[node] = scratch.match_begin[node];
            scratch.on_end[node] = scratch.match_end[node];
            scratch.on_factor[node] = 1.0 - insert[symbol];
            scratch.base_on[node] = scratch.on_factor[node] * scratch.base[node];
            if (can_insert(static_cast<int32_t>(first + node))) inside_insertions(first, node, total, scratch);
        }
        scratch.log_inside = inside.log();
    }

    // N_h of all states h of a host, as `inside` leaves the states themselves.
    void inside_insertions(int64_t first, int64_t node, double total, Scratch& scratch) const {
        const double none = scratch.on_factor[node];
        scratch.on_begin[node] = static_cast<int32_t>(scratch.match.size());
        scratch.on_factor[node] = 1.0;
        const auto add = [&](int32_t item, double factor) {
            const int32_t number = scratch.match[item];
            const Fragment& fragment = store.fragments[number];
            if (fragment.n_above_left == 0 && fragment.n_above_right == 0) return;
            const double value = factor * scratch.value[item];
            if (scratch.place[number] >= 0) {
                scratch.value[scratch.place[number]] += value;
                return;
            }
            scratch.place[number] = static_cast<int32_t>(scratch.match.size());
            scratch.match.push_back(number);
            scratch.value.push_back(value);
        };
        for (int32_t item = scratch.match_begin[node]; item < scratch.match_end[node]; ++item) add(item, none);
        for (int side = 0; side < 2; ++side) {
            const int32_t whole = static_cast<int32_t>(first + node);
            double& weight = scratch.foot_weight[2 * node + side];
            weight = 0.0;
            if (!can_be_foot(whole, side)) continue;
            weight = base_beside(first, node, side, scratch);
            visit_cached_beside(first, node, side, scratch, [&](int32_t, double value) {
                weight += value;
                return false;
            });
            weight *= insert[label[whole]] / total;
            const int64_t below = child(whole, side) - first;
            const double factor = is_stacked ? weight * scratch.on_factor[below] : weight;
            const int32_t begin = (is_stacked ? scratch.on_begin : scratch.match_begin)[below];
            const int32_t end = (is_stacked ? scratch.on_end : scratch.match_end)[below];
            for (int32_t item = begin; item < end; ++item) add(item, factor);
            scratch.base_on[node] += weight * (is_stacked ? scratch.base_on : scratch.base)[below];
        }
        scratch.on_end[node] = static_cast<int32_t>(scratch.match.size());
        for (int32_t item = scratch.on_begin[node]; item < scratch.on_end[node]; ++item) {
            scratch.place[scratch.match[item]] = -1;
        }
    }

    // What stands beside the foot comes from the base: the second part of A(v, u).
    double base_beside(int64_t first, int64_t node, int foot_side, const Scratch& scratch) const {
        const int32_t whole = static_cast<int32_t>(first + node), sibling = child(whole, 1 - foot_side);
        const House& house = houses[label[whole] + n_labels()];
        double result = house.new_weight() / house.denominator() * foot_probability[rule[whole]];
        if (sibling >= 0) {
            const double stops = stop[label[sibling]];
            result *= stops + (1.0 - stops) * scratch.base_on[sibling - first];
        }
        return result;
    }

    // The cached auxiliary trees of the first part of A(v, u), with their weights, until `visit` says that it is enough.
    template <class Visit>
    bool visit_cached_beside(int64_t first, int64_t node, int foot_side, const Scratch& scratch, Visit visit) const {
        const int32_t whole = static_cast<int32_t>(first + node), sibling = child(whole, 1 - foot_side);
        const int32_t house = label[whole] + static_cast<int32_t>(n_labels());
        const auto visit_one = [&](int32_t part, double value) {
            const int32_t number = foot_side ? store.find(rule[whole], part, FOOT) : store.find(rule[whole], FOOT, part);
            return number != MISSING && visit(number, cached_weight(number, house) * value);
        };
        if (visit_one(FRONTIER, 1.0)) return true;
        if (sibling < 0) return false;
        const int64_t beside = sibling - first;
        for (int32_t item = scratch.on_begin[beside]; item < scratch.on_end[beside]; ++item) {
            const Fragment& part = store.fragments[scratch.match[item]];
            if ((foot_side ? part.n_above_left : part.n_above_right) == 0) continue;
            if (visit_one(scratch.match[item], scratch.on_factor[beside] * scratch.value[item])) return true;
        }
        return false;
    }

    // All stored fragments with the rule at a node whose parts match at its children.
    void find_matches(int64_t first, int64_t node, Scratch& scratch) const {
        const int32_t left_child = left[first + node], right_child = right[first + node], own_rule = rule[first + node];
        const int32_t left_begin = left_child < 0 ? 0 : scratch.on_begin[left_child - first];
        const int32_t left_end = left_child < 0 ? 0 : scratch.on_end[left_child - first];
        const double left_factor = left_child < 0 ? 1.0 : scratch.on_factor[left_child - first];
        const int32_t right_begin = right_child < 0 ? 0 : scratch.on_begin[right_child - first];
        const int32_t right_end = right_child < 0 ? 0 : scratch.on_end[right_child - first];
        const double right_factor = right_child < 0 ? 1.0 : scratch.on_factor[right_child - first];
        for (int32_t left_item = left_begin - 1; left_item < left_end; ++left_item) {
            const bool left_frontier = left_item < left_begin;
            const int32_t left_part = left_frontier ? FRONTIER : scratch.match[left_item];
            if (!left_frontier && store.fragments[left_part].n_above_left == 0) continue;
            const double left_value = left_frontier ? 1.0 : left_factor * scratch.value[left_item];
            for (int32_t right_item = right_begin - 1; right_item < right_end; ++right_item) {
                const bool right_frontier = right_item < right_begin;
                const int32_t right_part = right_frontier ? FRONTIER : scratch.match[right_item];
                if (!right_frontier && store.fragments[right_part].n_above_right == 0) continue;
                const int32_t number = store.find(own_rule, left_part, right_part);
                if (number == MISSING) continue;
                scratch.match.push_back(number);
                scratch.value.push_back(left_value * (right_frontier ? 1.0 : right_factor * scratch.value[right_item]));
            }
        }
    }

    // S_g(v) or B(v), or with `on` N_g(v) or N_B(v), all divided by I(v).
    double value_at(int64_t node, int32_t way, bool on, const Scratch& scratch) const {
        if (way == BASE) return (on ? scratch.base_on : scratch.base)[node];
        const int32_t begin = (on ? scratch.on_begin : scratch.match_begin)[node];
        const int32_t end = (on ? scratch.on_end : scratch.match_end)[node];
        for (int32_t item = begin; item < end; ++item) {
            if (scratch.match[item] == way) return (on ? scratch.on_factor[node] : 1.0) * scratch.value[item];
        }
        return 0.0;
    }

    void draw_derivation(int64_t tree, Scratch& scratch, std::vector<uint8_t>& value, Stream& own) const {
        const int64_t first = tree_start[tree], n_nodes = tree_start[tree + 1] - first;
        value.assign(n_nodes, kGoesOn);
        scratch.waiting.assign(1, Waiting{0, SITE, false});
        while (!scratch.waiting.empty()) {
            const int32_t node = scratch.waiting.back().node;
            int32_t way = scratch.waiting.back().way;
            const bool may_insert = scratch.waiting.back().may_insert;
            scratch.waiting.pop_back();
            if (way == SITE) {
                value[node] = kSite;
                way = BASE;
                double target = own.uniform();
                for (int32_t item = scratch.match_begin[node]; item < scratch.match_end[node]; ++item) {
                    target -= cached_weight(scratch.match[item], label[first + node]) * scratch.value[item];
                    if (target < 0.0) {
                        way = scratch.match[item];
                        break;
                    }
                }
            } else if (may_insert && can_insert(static_cast<int32_t>(first + node))) {
                value[node] = draw_insertion(first, node, way, scratch, own);
                if (value[node] != kGoesOn) continue;
            }
            const int32_t children[2] = {right[first + node], left[first + node]};
            for (int side = 0; side < 2; ++side) {
                if (children[side] < 0) continue;
                const int32_t below = static_cast<int32_t>(children[side] - first);
                int32_t next;
                if (way == BASE) {
                    next = draw_base_child(below, label[children[side]], scratch, own);
                } else {
                    const Fragment& fragment = store.fragments[way];
                    const int32_t part = side == 0 ? fragment.right : fragment.left;
                    next = part == FRONTIER ? SITE : part;
                }
                scratch.waiting.push_back({below, next, true});
            }
        }
    }

    // Whether the base stops or goes on at a child.
    int32_t draw_base_child(int32_t below, int32_t symbol, const Scratch& scratch, Stream& own) const {
        const double stops = stop[symbol], goes = (1.0 - stops) * scratch.base_on[below];
        return own.uniform() * (stops + goes) < stops ? SITE : BASE;
    }

    // Whether there is an insertion at a node into which a host goes on in this way. If so, the auxiliary tree is drawn
    // too; its other child and the foot are then waiting.
    uint8_t draw_insertion(int64_t first, int32_t node, int32_t way, Scratch& scratch, Stream& own) const {
        const int32_t whole = static_cast<int32_t>(first + node);
        double weights[2] = {0.0, 0.0};
        const double none = (1.0 - insert[label[whole]]) * value_at(node, way, false, scratch);
        for (int side = 0; side < 2; ++side) {
            if (!can_be_foot(whole, side)) continue;
            const int64_t below = child(whole, side) - first;
            weights[side] = scratch.foot_weight[2 * node + side] * value_at(below, way, is_stacked, scratch);
        }
        const double target = own.uniform() * (none + weights[0] + weights[1]);
        if (target < none || weights[0] + weights[1] == 0.0) return kGoesOn;
        const int side = target < none + weights[0] || weights[1] == 0.0 ? 0 : 1;
        const int32_t foot_below = static_cast<int32_t>(child(whole, side) - first), sibling = child(whole, 1 - side);
        scratch.waiting.push_back({foot_below, way, is_stacked});
        if (sibling >= 0) {
            scratch.waiting.push_back({static_cast<int32_t>(sibling - first), draw_beside(first, node, side, scratch, own), true});
        }
        return static_cast<uint8_t>(kLeftFoot + side);
    }

    // How an auxiliary tree goes on beside its foot.
    int32_t draw_beside(int64_t first, int32_t node, int foot_side, const Scratch& scratch, Stream& own) const {
        const double base = base_beside(first, node, foot_side, scratch);
        double total = base;
        visit_cached_beside(first, node, foot_side, scratch, [&](int32_t, double value) {
            total += value;
            return false;
        });
        double target = own.uniform() * total - base;
        int32_t chosen = MISSING;
        if (target >= 0.0) {
            visit_cached_beside(first, node, foot_side, scratch, [&](int32_t number, double value) {
                if (value > 0.0) chosen = number;   // the last one stays, should rounding leave a rest
                target -= value;
                return target < 0.0;
            });
        }
        if (chosen == MISSING) {
            const int32_t sibling = child(static_cast<int32_t>(first + node), 1 - foot_side);
            return draw_base_child(static_cast<int32_t>(sibling - first), label[sibling], scratch, own);
        }
        const int32_t part = foot_side ? store.fragments[chosen].left : store.fragments[chosen].right;
        return part == FRONTIER ? SITE : part;
    }

    // log prod_e (w_e + b P0(e)) over the fragments of a derivation, and the log probability of its insertions.
    double log_weight(int64_t tree, const Choice& choice) const {
        LogProduct product;
        product.add_log(log_choices(tree, choice.state.data()));
        for (int64_t node = 0; node < n_nodes_of(tree); ++node) {
            if (choice.state[node] != kGoesOn) multiply_predictive(product, tree_start[tree], node, choice);
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
            counts.n_changed += before.state != proposal.after.state;
            release(old_seats_);
            return;
        }
        take_back_seats(new_seats_);
        take_back_unseats(old_seats_);
        std::copy(before.state.begin(), before.state.end(), state.begin() + first);
        std::copy(before.number.begin(), before.number.end(), dish.begin() + first);
        release(new_seats_);
    }

    // ---- single nodes -----------------------------------------------------------------------------------------------

    static constexpr size_t FAR = 16, NEAR = 8, CLOSE = 4;   // visits ahead

    void prefetch_node(int64_t node) const {
        prefetch(&parent[node]);
        prefetch(&state[node]);
        prefetch(&dish[node]);
        prefetch(&label[node]);
        prefetch(&right[node]);
    }

    void prefetch_fragments(int32_t node) const {
        if (state[node] != kGoesOn) prefetch(&store.fragments[dish[node]]);
        if (parent[node] < 0) return;
        do {
            node = parent[node];
        } while (state[node] == kGoesOn);
        prefetch(&store.fragments[dish[node]]);
    }

    // Where the parent is the root of its fragment, one lookup is all; deeper ones are fewer.
    void prefetch_lookup(int32_t node) const {
        const int32_t above = parent[node];
        if (above < 0 || state[above] == kGoesOn) return;
        const Fragment& fragment = store.fragments[dish[above]];
        const int32_t number = state[node] == kSite ? dish[node] : FRONTIER;
        if (right[above] == node) {
            store.prefetch_slot(fragment.rule, fragment.left, number);
        } else {
            store.prefetch_slot(fragment.rule, number, fragment.right);
        }
    }

    // The way from a node up to the root of the fragment above it, insertions left out, and the numbers of what is below
    // each node on it: as it is, and with the node the other way, a site or not (MISSING if not stored).
    struct Way {
        std::vector<int32_t> nodes, present, other;
        std::vector<uint8_t> goes_right;   // whether the way goes on there at the right child
    };
    Way way_;

    // Returns the number of the fragment below the node. Only what is on the way needs to be looked up.
    int32_t find_way(int32_t node) {
        way_.nodes.clear();
        way_.goes_right.clear();
        int32_t root = node;
        for (bool is_inside = true; is_inside;) {
            const int32_t below = root;
            root = parent[below];
            if (state[root] >= kLeftFoot && foot(root, state[root]) == below) continue;
            way_.nodes.push_back(root);
            way_.goes_right.push_back(right[root] == below);
            is_inside = state[root] == kGoesOn;
        }
        const size_t length = way_.nodes.size();
        way_.present.resize(length);
        way_.other.resize(length);
        int32_t number = dish[root];
        for (size_t item = length; item-- > 0;) {
            way_.present[item] = number;
            const Fragment& fragment = store.fragments[number];
            number = way_.goes_right[item] ? fragment.right : fragment.left;
        }
        const int32_t lower = state[node] == kSite ? dish[node] : number;
        number = state[node] == kSite ? lower : FRONTIER;
        for (size_t item = 0; item < length && number != MISSING; ++item) {
            const Parts parts = parts_with(item, number);
            number = way_.other[item] = store.find(rule[way_.nodes[item]], parts.left, parts.right);
        }
        if (number == MISSING) way_.other[length - 1] = MISSING;
        return lower;
    }

    // The parts of the fragment below a node on the way, with another number where the way goes on.
    Parts parts_with(size_t item, int32_t number) const {
        const Fragment& fragment = store.fragments[way_.present[item]];
        if (way_.goes_right[item]) return {fragment.left, number};
        return {number, fragment.right};
    }

    // Store what is below the root if the node goes the other way.
    int32_t store_way(int32_t node, int32_t lower) {
        if (way_.other.back() != MISSING) return way_.other.back();
        int32_t number = state[node] == kSite ? lower : FRONTIER;
        for (size_t item = 0; item < way_.nodes.size(); ++item) {
            const Parts parts = parts_with(item, number);
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
            double sum = (fragment.is_auxiliary() ? foot_log_probability : rule_log_probability)[fragment.rule];
            bool is_ready = true;
            for (int side = 0; side < 2; ++side) {
                if (labels[side] < 0 || parts[side] == FOOT) continue;
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

    // Gibbs for one node that can only be a site or not; returns whether it changed.
    bool resample_site(int32_t node, double temperature, Stream& own) {
        const int32_t lower = find_way(node), root = way_.nodes.back();
        const bool was_site = state[node] == kSite;
        const int32_t whole = was_site ? way_.other.back() : dish[root];
        const int32_t upper = was_site ? dish[root] : way_.other.back();
        House &upper_house = houses[house_at(root, state[root])], &lower_house = houses[label[node]];
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
        const double ratio = (cut[0] + cut[1]) / (joined * (1.0 - insert[label[node]]));
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
        state[node] = now_site ? kSite : kGoesOn;
        dish[node] = now_site ? lower : -1;
        if (now_site == was_site) return false;
        store.release(old_upper);
        store.release(lower);
        return true;
    }

    // ---- single nodes that can have insertions ------------------------------------------------------------------------

    struct Description {
        int32_t number;
        double log_base;
    };

    // The fragment of a rule with these parts; a part that is nowhere stored makes it MISSING.
    Description joined(int32_t node, const Description* parts) const {
        const bool is_auxiliary = parts[0].number == FOOT || parts[1].number == FOOT;
        Description result = {MISSING, (is_auxiliary ? foot_log_probability : rule_log_probability)[rule[node]]};
        int32_t numbers[2] = {FRONTIER, FRONTIER};
        const int32_t children[2] = {left[node], right[node]};
        for (int side = 0; side < 2; ++side) {
            if (children[side] < 0) continue;
            const int32_t symbol = label[children[side]];
            numbers[side] = parts[side].number;
            if (numbers[side] == FOOT) continue;
            result.log_base += numbers[side] == FRONTIER ? log_stop[symbol] : log_go[symbol] + parts[side].log_base;
        }
        if (numbers[0] != MISSING && numbers[1] != MISSING) result.number = store.find(rule[node], numbers[0], numbers[1]);
        return result;
    }

    // Describe (and, if asked, store) the fragment at `root`, an initial or an auxiliary tree as `root_value` says, where
    // `cut` counts as being in the state `cut_value`.
    Description fragment_below(int32_t root, uint8_t root_value, int32_t cut, uint8_t cut_value, bool intern,
                               Scratch& scratch) {
        const auto value_of = [&](int32_t node) { return node == cut ? cut_value : state[node]; };
        // Where the fragment goes on at a child, insertions left out; -1 where it ends.
        const auto goes_on_at = [&](int32_t node, int side) {
            if (node == root && root_value >= kLeftFoot && side == root_value - kLeftFoot) return -1;
            int32_t below = child(node, side);
            while (below >= 0 && value_of(below) >= kLeftFoot) below = foot(below, value_of(below));
            return below >= 0 && value_of(below) == kSite ? -1 : below;
        };
        std::vector<int32_t>& nodes = scratch.nodes;
        nodes.assign(1, root);
        for (size_t item = 0; item < nodes.size(); ++item) {
            for (int side = 0; side < 2; ++side) {
                const int32_t below = goes_on_at(nodes[item], side);
                if (below >= 0) nodes.push_back(below);
            }
        }
        if (scratch.number.size() < label.size()) {
            scratch.number.resize(label.size());
            scratch.log_base.resize(label.size());
        }
        // Children come after their parents in `nodes`.
        for (size_t item = nodes.size(); item-- > 0;) {
            const int32_t node = nodes[item];
            Description parts[2] = {{FRONTIER, 0.0}, {FRONTIER, 0.0}};
            for (int side = 0; side < 2; ++side) {
                const int32_t below = goes_on_at(node, side);
                if (below >= 0) parts[side] = {scratch.number[below], scratch.log_base[below]};
            }
            if (node == root && root_value >= kLeftFoot) parts[root_value - kLeftFoot] = {FOOT, 0.0};
            Description own = joined(node, parts);
            if (intern && own.number == MISSING) own.number = store.intern(rule[node], parts[0].number, parts[1].number);
            scratch.number[node] = own.number;
            scratch.log_base[node] = own.log_base;
        }
        return {scratch.number[root], scratch.log_base[root]};
    }

    const Tables* tables_of(const Description& fragment) const {
        return fragment.number == MISSING ? nullptr : &store.fragments[fragment.number].tables;
    }

    // The log weights of seating `upper` at an old and at a new table, each times that of seating `lower` after it.
    void log_split_weights(int32_t upper_house, const Description& upper, int32_t lower_house, const Description& lower,
                           double* at_old, double* at_new) const {
        const House& house = houses[upper_house];
        const Tables* upper_tables = tables_of(upper);
        const double log_denominator = std::log(house.denominator());
        const bool has_old = upper_tables && upper_tables->n_customers;
        *at_old = has_old ? std::log(house.old_weight(*upper_tables)) - log_denominator : -INFINITY;
        *at_new = std::log(house.new_weight()) + upper.log_base - log_denominator;
        if (upper_house != lower_house) {
            const double then = log_predictive(lower_house, tables_of(lower), lower.log_base);
            *at_old += then;
            *at_new += then;
            return;
        }
        // The lower fragment finds the upper one's customer, and its table if that is new. Both are stored here.
        const bool same = upper.number == lower.number;
        for (int opens = 0; opens < 2; ++opens) {
            House after = house;
            const Tables* lower_tables = tables_of(lower);
            double n_customers = lower_tables ? lower_tables->n_customers : 0.0;
            double n_tables = lower_tables ? lower_tables->n_tables : 0.0;
            ++after.n_customers;
            after.n_tables += opens;
            if (same) {
                n_customers += 1.0;
                n_tables += opens;
            }
            const double old_part = n_customers > 0.0 ? n_customers - after.discount * n_tables : 0.0;
            const double then = std::log(old_part + after.new_weight() * std::exp(lower.log_base)) - std::log(after.denominator());
            *(opens ? at_new : at_old) += then;
        }
    }

    // One way for a node to be: the fragment around it alone, or that and the one at the node itself.
    struct Option {
        uint8_t value;
        Description upper, lower;   // numbers are to be released
        double at_old, at_new;      // log weights, by whether the upper one's table is new; both apply if there are two
        double log_weight;
    };

    // The root of the elementary tree that contains a node other than as its root; a foot counts as the host's node.
    int32_t root_above(int32_t node) const {
        int32_t up = parent[node];
        while (state[up] == kGoesOn || (state[up] >= kLeftFoot && foot(up, state[up]) == node)) {
            node = up;
            up = parent[up];
        }
        return up;
    }

    // Whether a node can be in a state, the others being what they are.
    bool can_be(int32_t node, uint8_t value) const {
        if (value == kGoesOn) return true;
        if (value == kSite) return !is_foot(node);
        if (!can_insert(node) || !can_be_foot(node, value - kLeftFoot)) return false;
        const uint8_t below = state[foot(node, value)];
        return below == kGoesOn || (is_stacked && below != kSite);
    }

    Option weigh(int32_t node, int32_t root, uint8_t value, Scratch& scratch) {
        Option option = {value, {MISSING, 0.0}, {MISSING, 0.0}, 0.0, 0.0, 0.0};
        const int32_t upper_house = house_at(root, state[root]), lower_house = house_at(node, value);
        // In the same restaurant the two may be the same fragment, which only stored ones can show.
        const bool share = value != kGoesOn && upper_house == lower_house;
        option.upper = fragment_below(root, state[root], node, value, share, scratch);
        if (value == kGoesOn) {
            option.log_weight = log_predictive(upper_house, tables_of(option.upper), option.upper.log_base);
            option.log_weight += log_no_insert[label[node]];
            return option;
        }
        option.lower = fragment_below(node, value, node, value, share, scratch);
        log_split_weights(upper_house, option.upper, lower_house, option.lower, &option.at_old, &option.at_new);
        const double largest = std::max(option.at_old, option.at_new);
        option.log_weight = largest + std::log(std::exp(option.at_old - largest) + std::exp(option.at_new - largest));
        if (value >= kLeftFoot) {
            option.log_weight += log_insert[label[node]];
            if (!is_stacked) option.log_weight -= log_no_insert[label[node]];   // the foot's
        }
        return option;
    }

    // Gibbs for one node of any kind; returns whether it changed.
    bool resample_node(int32_t node, Scratch& scratch, double temperature, Stream& own) {
        const int32_t root = root_above(node);
        const uint8_t old_value = state[node];
        const int32_t old_upper = dish[root], old_lower = dish[node];
        if (old_value != kGoesOn) houses[house_at(node, old_value)].unseat(store.fragments[old_lower].tables, own);
        houses[house_at(root, state[root])].unseat(store.fragments[old_upper].tables, own);
        Option options[4];
        double odds[4], total = 0.0;
        int n_options = 0;
        for (const uint8_t value : {kGoesOn, kSite, kLeftFoot, kRightFoot}) {
            if (!can_be(node, value)) continue;
            options[n_options] = weigh(node, root, value, scratch);
            const double log_odds = (options[n_options].log_weight - options[0].log_weight) / temperature;
            odds[n_options] = n_options ? std::min(std::exp(log_odds), 1e300) : 1.0;
            total += odds[n_options++];
        }
        double target = own.uniform() * total;
        int chosen = 0;
        while (chosen + 1 < n_options && target >= odds[chosen]) target -= odds[chosen++];
        seat_option(node, root, options[chosen], scratch, own);
        store.release(old_upper);
        if (old_lower >= 0) store.release(old_lower);
        for (int number = 0; number < n_options; ++number) {
            if (options[number].upper.number >= 0) store.release(options[number].upper.number);
            if (options[number].lower.number >= 0) store.release(options[number].lower.number);
        }
        return state[node] != old_value;
    }

    void seat_option(int32_t node, int32_t root, const Option& option, Scratch& scratch, Stream& own) {
        state[node] = option.value;
        House& house = houses[house_at(root, state[root])];
        const Description upper = fragment_below(root, state[root], node, option.value, true, scratch);
        dish[root] = upper.number;
        if (option.value == kGoesOn) {
            house.seat(store.fragments[upper.number].tables, std::exp(upper.log_base), own);
            dish[node] = -1;
            return;
        }
        const double largest = std::max(option.at_old, option.at_new);
        const double old_part = std::exp(option.at_old - largest), new_part = std::exp(option.at_new - largest);
        Tables& tables = store.fragments[upper.number].tables;
        const bool opens = own.uniform() * (old_part + new_part) >= old_part;
        house.grow(tables, opens ? 0 : tables.draw_table(own, house.discount));
        const Description lower = fragment_below(node, option.value, node, option.value, true, scratch);
        houses[house_at(node, option.value)].seat(store.fragments[lower.number].tables, std::exp(lower.log_base), own);
        dish[node] = lower.number;
    }

    // ---- all instances of a fragment at once ------------------------------------------------------------------------

    // The node of one instance that stands where `path` leads from its root (false: left, true: right), insertions left
    // out.
    int32_t follow(int32_t root, const std::vector<bool>& path) const {
        for (const bool goes_right : path) {
            root = goes_right ? right[root] : left[root];
            while (state[root] >= kLeftFoot) root = foot(root, state[root]);
        }
        return root;
    }

    // Where the joined fragment, or its upper part, is used with `path` leading to the node in question.
    std::vector<int32_t> instances(const std::vector<int32_t>& roots, const std::vector<bool>& path, bool is_cut,
                                   int32_t lower) const {
        std::vector<int32_t> result;
        for (const int32_t root : roots) {
            const int32_t node = follow(root, path);
            if (is_cut ? dish[node] == lower : state[node] == kGoesOn) result.push_back(root);
        }
        return result;
    }

    // Unseat (or, with `seats`, take back) nothing but the fragments at these roots and, where cut, at the nodes below.
    double unseat_instances(const std::vector<int32_t>& roots, const std::vector<bool>& path, bool is_cut,
                            std::vector<Seat>& seats, Stream& own) {
        double log_probability = 0.0;
        const auto unseat = [&](int32_t node) {
            const int32_t house = house_at(node, state[node]);
            Tables& tables = store.fragments[dish[node]].tables;
            const int32_t size = houses[house].unseat(tables, own);
            seats.push_back({house, dish[node], size});
            log_probability += log_predictive(house, &tables, log_base_of(dish[node]));
        };
        for (size_t item = roots.size(); item-- > 0;) {
            const int32_t node = follow(roots[item], path);
            if (is_cut) {
                unseat(node);
            } else {
                log_probability += log_no_insert[label[node]];
            }
            unseat(roots[item]);
        }
        return log_probability;
    }

    double seat_instances(const std::vector<int32_t>& roots, const std::vector<bool>& path, bool is_cut, int32_t upper,
                          int32_t lower, std::vector<Seat>& seats, Stream& own) {
        double log_probability = 0.0;
        const auto seat = [&](int32_t node, int32_t number, double log_base) {
            const int32_t house = house_at(node, state[node]);
            Tables& tables = store.fragments[number].tables;
            log_probability += log_predictive(house, &tables, log_base);
            seats.push_back({house, number, houses[house].seat(tables, std::exp(log_base), own)});
            dish[node] = number;
        };
        const double log_upper = log_base_of(upper), log_lower = is_cut ? log_base_of(lower) : 0.0;
        for (const int32_t root : roots) {
            const int32_t node = follow(root, path);
            state[node] = is_cut ? kSite : kGoesOn;
            seat(root, upper, log_upper);
            if (is_cut) {
                seat(node, lower, log_lower);
            } else {
                dish[node] = -1;
                log_probability += log_no_insert[label[node]];
            }
        }
        return log_probability;
    }

    bool resample_type(int32_t node, std::vector<std::vector<int32_t>>& places, Scratch& scratch, double temperature,
                       Stream& own) {
        std::vector<bool> path;
        int32_t root = node;
        for (bool is_inside = true; is_inside;) {
            const int32_t up = parent[root];
            const bool from_foot = is_foot(root);
            if (!from_foot) path.push_back(right[up] == root);
            is_inside = from_foot || state[up] == kGoesOn;
            root = up;
        }
        std::reverse(path.begin(), path.end());
        const bool was_cut = state[node] == kSite;
        const int32_t whole = fragment_below(root, state[root], node, kGoesOn, true, scratch).number;
        const int32_t upper = fragment_below(root, state[root], node, kSite, true, scratch).number;
        const int32_t lower = fragment_below(node, kSite, node, kSite, true, scratch).number;
        if (places.size() < store.fragments.size()) places.resize(store.fragments.size());
        const std::vector<int32_t> joined_places = instances(places[whole], path, false, lower);
        const std::vector<int32_t> cut_places = instances(places[upper], path, true, lower);
        bool accepted = false;
        // Where there is an insertion at the node, the fragment cannot be cut there.
        const bool has_insertions = std::any_of(joined_places.begin(), joined_places.end(),
                                                [&](int32_t place) { return is_foot(follow(place, path)); });
        if (upper != lower && !has_insertions && (was_cut ? joined_places : cut_places).empty()) {
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
            state[node] = was_cut ? kSite : kGoesOn;
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
