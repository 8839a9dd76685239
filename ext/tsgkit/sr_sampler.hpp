// Subcategories of the nodes of known trees, and two ways to move them: whole trees by blocked Metropolis-Hastings, and
// all occurrences of a refined rule at once.
//
// Every node belongs to a *group*: a label with the subcategory that an earlier split gave it. In this split it chooses
// one of the group's two subcategories (a bit), so that the cost of a sweep does not grow with the number of
// subcategories. A refined symbol has the number 2 group + bit; a group with one option only has bit 0.
//
// Three levels of restaurants (section 4 of the models; every node is a substitution site here):
//
//     H_{x_k}  over  x_k -> y_l z_m      base  I_x
//     I_x      over  x -> y_l z_m        base  a fixed probability per treebank rule (levels = 3; otherwise I is that base)
//
// and for words, where classes are in use,
//
//     H_{x_k}  over  x_k -> w            base  J_{x_k}(class of w) W_{x,class}(w)    (a fixed share of the base of H_{x_k};
//                                              the rest of it is for rules without a word)
//     J_{x_k}  over  classes             base  J_x          J_x over classes, uniform base
//     W_{x,c}  over  words of class c    base  a fixed probability per class
//
// so that a rare word backs off to its class under the same subcategory and to the word under the unrefined tag.
//
// Nodes with the same treebank rule and groups share a *block* of cells, one for each choice of bits: nothing is hashed
// while sampling. All values of a node are divided by the larger one, whose logs are summed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "restaurant.hpp"
#include "stream.hpp"

namespace tsgkit {

enum class SrPurpose : uint64_t { kTree = 32, kTreeOrder = 33, kHyper = 34, kStart = 35, kType = 36, kMerge = 37 };

// The rules of one kind of node: which restaurants and cells its refinements use.
struct SrBlock {
    int32_t rule = -1;
    int32_t group = -1, left_group = -1, right_group = -1;
    int32_t label = -1;
    int32_t n_children = 0;
    int32_t word_class = -1;      // of a lexical rule with classes, or -1
    int32_t word_house = -1;
    int64_t first = 0;            // its cells in H: 2 << n_children of them
    int64_t base_first = 0;       // its cells in I: 1 << n_children of them; or the word's cell in W
    int64_t class_first = 0;      // the two cells of (group, class) in J_{x_k}
    int64_t label_class = 0;      // the cell of (label, class) in J_x
    int index(int bit, int left_bit, int right_bit) const {
        return n_children == 2 ? bit << 2 | left_bit << 1 | right_bit : n_children == 1 ? bit << 1 | left_bit : bit;
    }
};

class SrSampler {
public:
    // The trees: per node its label, rule, children (-1: none) and group; parents before children.
    std::vector<int32_t> label, rule, left, right, parent, group;
    std::vector<int64_t> tree_start;
    // Per rule: its probability in the last base, words with classes left out; the class of its word (-1: no word, or no classes).
    std::vector<double> rule_base;
    std::vector<int32_t> rule_class;
    // Per label: the share of words among its rules, where classes are in use.
    std::vector<double> lexical_share;
    // Per class: the probability of each of its words in the last base.
    std::vector<double> class_word_base;
    // Per group.
    std::vector<int32_t> group_label;
    std::vector<uint8_t> n_options;
    int32_t n_labels = 0;
    int levels = 3;
    uint64_t seed = 0;

    // The state: a bit per node, and who sits where.
    std::vector<uint8_t> bit;
    std::vector<int32_t> block_of;
    std::vector<SrBlock> blocks;
    std::vector<Tables> rule_cells, base_cells, class_cells, label_class_cells, word_cells;
    std::vector<House> rule_houses;          // H, by refined symbol
    std::vector<House> base_houses;          // I, by label
    std::vector<House> class_houses;         // J_{x_k}, by refined symbol
    std::vector<House> label_class_houses;   // J_x, by label
    std::vector<House> word_houses;          // W, by (label, class)
    std::vector<int32_t> word_house_label;

    struct SweepCounts {
        int64_t n_proposed = 0;
        int64_t n_accepted = 0;
        int64_t n_changed = 0;
    };

    int64_t n_trees() const { return static_cast<int64_t>(tree_start.size()) - 1; }
    int64_t n_nodes() const { return static_cast<int64_t>(label.size()); }
    int32_t n_symbols() const { return static_cast<int32_t>(2 * group_label.size()); }
    Stream stream(uint64_t iteration, SrPurpose purpose, uint64_t item = 0) const {
        return Stream(seed, iteration, static_cast<uint64_t>(purpose) << 40 | item);
    }

    // Number the blocks and cells of the trees; nobody is seated.
    void build() {
        const int32_t n_groups = static_cast<int32_t>(group_label.size());
        const int32_t n_classes = static_cast<int32_t>(class_word_base.size());
        std::map<std::tuple<int32_t, int32_t, int32_t, int32_t>, int32_t> number_of;
        std::map<std::tuple<int32_t, int32_t, int32_t>, int64_t> base_of;
        std::map<std::pair<int32_t, int32_t>, int64_t> class_of, label_class_of, word_house_of;
        std::map<int32_t, int64_t> word_of;
        int64_t n_rule_cells = 0, n_base_cells = 0, n_class_cells = 0;
        blocks.clear();
        word_house_label.clear();
        block_of.resize(label.size());
        for (size_t node = 0; node < label.size(); ++node) {
            const int32_t left_group = left[node] >= 0 ? group[left[node]] : -1;
            const int32_t right_group = right[node] >= 0 ? group[right[node]] : -1;
            const auto key = std::make_tuple(rule[node], group[node], left_group, right_group);
            const auto found = number_of.emplace(key, static_cast<int32_t>(blocks.size()));
            block_of[node] = found.first->second;
            if (!found.second) continue;
            SrBlock block;
            block.rule = rule[node];
            block.group = group[node];
            block.left_group = left_group;
            block.right_group = right_group;
            block.label = label[node];
            block.n_children = (left[node] >= 0) + (right[node] >= 0);
            block.first = n_rule_cells;
            n_rule_cells += 2LL << block.n_children;
            block.word_class = block.n_children ? -1 : rule_class[block.rule];
            if (block.word_class >= 0) {
                block.base_first = word_of.emplace(block.rule, static_cast<int64_t>(word_of.size())).first->second;
                const auto own = class_of.emplace(std::make_pair(block.group, block.word_class), n_class_cells);
                n_class_cells += own.second ? 2 : 0;
                block.class_first = own.first->second;
                const auto tag = std::make_pair(block.label, block.word_class);
                block.label_class = label_class_of.emplace(tag, static_cast<int64_t>(label_class_of.size())).first->second;
                const auto house = word_house_of.emplace(tag, static_cast<int64_t>(word_house_of.size()));
                if (house.second) word_house_label.push_back(block.label);
                block.word_house = static_cast<int32_t>(house.first->second);
            } else {
                const auto base = base_of.emplace(std::make_tuple(block.rule, left_group, right_group), n_base_cells);
                n_base_cells += base.second ? 1LL << block.n_children : 0;
                block.base_first = base.first->second;
            }
            blocks.push_back(block);
        }
        rule_cells.assign(n_rule_cells, Tables());
        base_cells.assign(n_base_cells, Tables());
        class_cells.assign(n_class_cells, Tables());
        label_class_cells.assign(label_class_of.size(), Tables());
        word_cells.assign(word_of.size(), Tables());
        rule_houses.assign(2 * n_groups, House());
        class_houses.assign(2 * n_groups, House());
        base_houses.assign(n_labels, House());
        label_class_houses.assign(n_labels, House());
        word_houses.assign(word_house_label.size(), House());
        uniform_class_ = n_classes ? 1.0 / n_classes : 0.0;
        rule_share_.assign(n_labels, 1.0);
        for (int32_t symbol = 0; n_classes && symbol < n_labels; ++symbol) rule_share_[symbol] -= lexical_share[symbol];
        nodes_of_block_.assign(blocks.size(), {});
        for (size_t node = 0; node < label.size(); ++node) {
            nodes_of_block_[block_of[node]].push_back(static_cast<int32_t>(node));
        }
    }

    // Seat all trees by their bits.
    void seat_all() {
        journal_.clear();
        for (int64_t tree = 0; tree < n_trees(); ++tree) {
            Stream own = stream(0, SrPurpose::kStart, tree);
            for (int64_t node = tree_start[tree]; node < tree_start[tree + 1]; ++node) seat(node, own, journal_);
            journal_.clear();
        }
    }

    // Unseat all trees; every restaurant must be empty then.
    void unseat_all() {
        Stream own = stream(0, SrPurpose::kStart, n_trees());
        for (int64_t node = n_nodes(); node-- > 0;) {
            journal_.clear();
            unseat(node, own, journal_);
        }
        journal_.clear();
    }

    // ---- whole trees ------------------------------------------------------------------------------------------

    SweepCounts tree_sweep(uint64_t iteration, double temperature) {
        SweepCounts counts;
        for (const int64_t tree : random_order(n_trees(), stream(iteration, SrPurpose::kTreeOrder))) {
            Stream own = stream(iteration, SrPurpose::kTree, tree);
            resample_tree(tree, temperature, own, counts);
        }
        return counts;
    }

    // ---- all occurrences of a refined rule ----------------------------------------------------------------------

    // Draw a node and give all nodes with the same refined rule, and their children, other bits: the same for all. A
    // rule that is in use already is no goal, because the way back would not be the same move (`onto_used` allows it).
    SweepCounts type_sweep(uint64_t iteration, int64_t n_moves, double temperature, bool onto_used) {
        SweepCounts counts;
        Stream own = stream(iteration, SrPurpose::kType);
        for (int64_t move = 0; move < n_moves; ++move) {
            const int32_t node = static_cast<int32_t>(own.below(label.size()));
            const bool accepted = resample_type(node, temperature, onto_used, own);
            ++counts.n_proposed;
            counts.n_accepted += accepted;
            counts.n_changed += accepted;
        }
        return counts;
    }

    // ---- merging ------------------------------------------------------------------------------------------------

    // Per group: what the log joint loses when its two subcategories become one, everything else as it is. Seats are
    // drawn anew where labels change, and put back.
    std::vector<double> joint_losses(uint64_t iteration) {
        std::vector<std::vector<int32_t>> members(group_label.size());
        for (size_t node = 0; node < label.size(); ++node) members[group[node]].push_back(static_cast<int32_t>(node));
        std::vector<double> losses(group_label.size(), 0.0);
        for (size_t number = 0; number < group_label.size(); ++number) {
            if (n_options[number] < 2) continue;
            Stream own = stream(iteration, SrPurpose::kMerge, number);
            int64_t n_ones = 0;
            for (const int32_t node : members[number]) n_ones += bit[node];
            const uint8_t moving = 2 * n_ones <= static_cast<int64_t>(members[number].size()) ? 1 : 0;
            begin_change();
            for (const int32_t node : members[number]) {
                if (bit[node] == moving) plan(node, 1 - moving);
            }
            const double gain = make_change(own);
            undo_change();
            losses[number] = -gain;
        }
        return losses;
    }

    // Per group: the same for the marginal likelihood of the trees, with the counts as they are (Petrov et al. 2006).
    std::vector<double> marginal_losses() {
        std::vector<double> losses(group_label.size(), 0.0), share(n_symbols(), 0.0);
        for (size_t number = 0; number < group_label.size(); ++number) {
            const double zeros = static_cast<double>(rule_houses[2 * number].n_customers);
            const double ones = static_cast<double>(rule_houses[2 * number + 1].n_customers);
            share[2 * number] = zeros + ones > 0 ? zeros / (zeros + ones) : 1.0;
            share[2 * number + 1] = 1.0 - share[2 * number];
        }
        std::vector<double> outside;
        for (int64_t tree = 0; tree < n_trees(); ++tree) {
            const int64_t first = tree_start[tree], size = tree_start[tree + 1] - first;
            fill_inside(tree, 1.0);
            outside.assign(2 * size, 0.0);
            outside[0] = 1.0;
            for (int64_t place = 0; place < size; ++place) {
                const int64_t node = first + place;
                const SrBlock& block = blocks[block_of[node]];
                const double* weight = &weights_[8 * place];
                const int64_t children[2] = {left[node] - first, right[node] - first};
                const double total = inside_[2 * place] * outside[2 * place] + inside_[2 * place + 1] * outside[2 * place + 1];
                if (n_options[group[node]] > 1 && total > 0.0) {
                    const double merged = (share[2 * group[node]] * inside_[2 * place] + share[2 * group[node] + 1] * inside_[2 * place + 1])
                        * (outside[2 * place] + outside[2 * place + 1]);
                    losses[group[node]] += std::log(total) - std::log(merged);
                }
                // Values of a node need only be right up to a factor.
                const double scale = 1.0 / std::max(outside[2 * place], outside[2 * place + 1]);
                for (int own = 0; own < 2; ++own) {
                    const double above = outside[2 * place + own] * scale;
                    if (block.n_children == 1) {
                        for (int l = 0; l < 2; ++l) outside[2 * children[0] + l] += above * weight[own << 1 | l];
                    } else if (block.n_children == 2) {
                        for (int l = 0; l < 2; ++l) {
                            for (int r = 0; r < 2; ++r) {
                                const double value = above * weight[own << 2 | l << 1 | r];
                                outside[2 * children[0] + l] += value * inside_[2 * children[1] + r];
                                outside[2 * children[1] + r] += value * inside_[2 * children[0] + l];
                            }
                        }
                    }
                }
            }
        }
        return losses;
    }

    // Make one subcategory of each of these groups' two.
    void merge(const std::vector<uint8_t>& is_merged, uint64_t iteration) {
        Stream own = stream(iteration, SrPurpose::kMerge, group_label.size());
        begin_change();
        for (size_t node = 0; node < label.size(); ++node) {
            if (is_merged[group[node]] && bit[node]) plan(static_cast<int32_t>(node), 0);
        }
        make_change(own);
        for (size_t number = 0; number < group_label.size(); ++number) {
            if (is_merged[number]) n_options[number] = 1;
        }
    }

    // ---- parameters -----------------------------------------------------------------------------------------------

    // How many tables of which size each restaurant has.
    struct Totals {
        std::vector<std::vector<int64_t>> rule, base, klass, label_class, word;
    };

    Totals totals() const {
        Totals sums;
        sums.rule.resize(rule_houses.size());
        sums.base.resize(base_houses.size());
        sums.klass.resize(class_houses.size());
        sums.label_class.resize(label_class_houses.size());
        sums.word.resize(word_houses.size());
        std::vector<bool> base_done(base_cells.size(), 0), class_done(class_cells.size(), 0);
        std::vector<bool> label_class_done(label_class_cells.size(), 0), word_done(word_cells.size(), 0);
        for (const SrBlock& block : blocks) {
            for (int index = 0; index < 2 << block.n_children; ++index) {
                add_sizes(rule_cells[block.first + index], sums.rule[2 * block.group + (index >> block.n_children)]);
            }
            if (block.word_class < 0) {
                for (int index = 0; index < 1 << block.n_children; ++index) {
                    if (seen(base_done, block.base_first + index)) break;
                    add_sizes(base_cells[block.base_first + index], sums.base[block.label]);
                }
                continue;
            }
            if (!seen(word_done, block.base_first)) add_sizes(word_cells[block.base_first], sums.word[block.word_house]);
            if (!seen(label_class_done, block.label_class)) {
                add_sizes(label_class_cells[block.label_class], sums.label_class[block.label]);
            }
            for (int own = 0; own < 2; ++own) {
                if (seen(class_done, block.class_first + own)) break;
                add_sizes(class_cells[block.class_first + own], sums.klass[2 * block.group + own]);
            }
        }
        return sums;
    }

    double log_joint(const Totals& sums) const {
        double result = 0.0;
        for (size_t house = 0; house < rule_houses.size(); ++house) {
            result += log_seating(rule_houses[house], sums.rule[house]) + log_seating(class_houses[house], sums.klass[house]);
        }
        for (size_t house = 0; house < base_houses.size(); ++house) {
            result += log_seating(base_houses[house], sums.base[house]);
            result += log_seating(label_class_houses[house], sums.label_class[house]);
        }
        for (size_t house = 0; house < word_houses.size(); ++house) result += log_seating(word_houses[house], sums.word[house]);
        std::vector<bool> base_done(base_cells.size(), 0), word_done(word_cells.size(), 0);
        std::vector<bool> label_class_done(label_class_cells.size(), 0);
        for (const SrBlock& block : blocks) {
            int64_t n_tables = 0;
            if (block.word_class >= 0) {
                for (int own = 0; own < 2; ++own) n_tables += rule_cells[block.first + own].n_tables;
                result += n_tables * std::log(lexical_share[block.label]);
                if (!seen(word_done, block.base_first)) {
                    result += word_cells[block.base_first].n_tables * std::log(class_word_base[block.word_class]);
                }
                if (!seen(label_class_done, block.label_class)) {
                    result += label_class_cells[block.label_class].n_tables * std::log(uniform_class_);
                }
                continue;
            }
            for (int index = 0; index < 2 << block.n_children; ++index) n_tables += rule_cells[block.first + index].n_tables;
            if (n_tables) result += n_tables * std::log(rule_share_[block.label]);
            if (levels >= 3) {
                n_tables = 0;
                for (int index = 0; index < 1 << block.n_children; ++index) {
                    if (!seen(base_done, block.base_first + index)) n_tables += base_cells[block.base_first + index].n_tables;
                }
            }
            if (n_tables) result += n_tables * std::log(rule_base[block.rule]);
        }
        return result;
    }

    // One pair (discount, strength) per label and kind of restaurant; one for all J_x.
    void resample_hyper(uint64_t iteration, const Totals& sums) {
        std::vector<std::vector<size_t>> symbols(n_labels), words(n_labels);
        for (size_t number = 0; number < group_label.size(); ++number) {
            for (size_t own = 0; own < 2; ++own) symbols[group_label[number]].push_back(2 * number + own);
        }
        for (size_t house = 0; house < word_houses.size(); ++house) words[word_house_label[house]].push_back(house);
        std::vector<size_t> all(n_labels);
        for (int32_t symbol = 0; symbol < n_labels; ++symbol) {
            Stream own = stream(iteration, SrPurpose::kHyper, symbol);
            resample_pair(rule_houses, sums.rule, symbols[symbol], own);
            resample_pair(base_houses, sums.base, {static_cast<size_t>(symbol)}, own);
            resample_pair(class_houses, sums.klass, symbols[symbol], own);
            resample_pair(word_houses, sums.word, words[symbol], own);
            all[symbol] = symbol;
        }
        Stream own = stream(iteration, SrPurpose::kHyper, n_labels);
        resample_pair(label_class_houses, sums.label_class, all, own);
    }

    // The predictive probability of a refined rule with the counts as they are.
    double probability(const SrBlock& block, int index) const {
        const House& house = rule_houses[2 * block.group + (index >> block.n_children)];
        return (house.old_weight(rule_cells[block.first + index]) + house.new_weight() * base_probability(block, index))
            / house.denominator();
    }

    double base_probability(const SrBlock& block, int index) const {
        if (block.word_class < 0) {
            const double share = rule_share_[block.label];
            if (levels < 3) return share * rule_base[block.rule];
            const House& house = base_houses[block.label];
            const Tables& cell = base_cells[block.base_first + (index & ((1 << block.n_children) - 1))];
            return share * (house.old_weight(cell) + house.new_weight() * rule_base[block.rule]) / house.denominator();
        }
        const House& words = word_houses[block.word_house];
        const double word = (words.old_weight(word_cells[block.base_first])
            + words.new_weight() * class_word_base[block.word_class]) / words.denominator();
        return lexical_share[block.label] * class_probability(block, index) * word;
    }

    double class_probability(const SrBlock& block, int own) const {
        const House& house = class_houses[2 * block.group + own];
        return (house.old_weight(class_cells[block.class_first + own])
            + house.new_weight() * label_class_probability(block)) / house.denominator();
    }

    double label_class_probability(const SrBlock& block) const {
        const House& house = label_class_houses[block.label];
        return (house.old_weight(label_class_cells[block.label_class]) + house.new_weight() * uniform_class_) / house.denominator();
    }

private:
    // A customer who sat down at, or left, a table that had so many.
    struct Move {
        House* house;
        Tables* cell;
        int32_t size;
    };

    double uniform_class_ = 0.0;
    std::vector<double> rule_share_;   // per label: the share of rules without a word, where these have classes
    std::vector<std::vector<int32_t>> nodes_of_block_;
    std::vector<double> inside_, weights_;
    double log_inside_ = 0.0;
    std::vector<Move> journal_, seated_;
    std::vector<uint8_t> new_bits_;
    // A change of many bits at once: the nodes, their old bits, and the nodes whose rules it touches.
    std::vector<std::pair<int32_t, uint8_t>> planned_;
    std::vector<int32_t> touched_;
    std::vector<uint32_t> planned_epoch_, touched_epoch_;
    std::vector<uint8_t> planned_bit_;
    uint32_t epoch_ = 0;

    // Whether a flag was set before; it is now.
    static bool seen(std::vector<bool>& flags, int64_t place) {
        const bool result = flags[place];
        flags[place] = true;
        return result;
    }

    int index_of(int64_t node) const {
        const SrBlock& block = blocks[block_of[node]];
        return block.index(bit[node], left[node] >= 0 ? bit[left[node]] : 0, right[node] >= 0 ? bit[right[node]] : 0);
    }

    // Seat a customer for the rule at a node; returns its predictive probability before that.
    double seat(int64_t node, Stream& own, std::vector<Move>& moves) {
        const SrBlock& block = blocks[block_of[node]];
        const int index = index_of(node);
        House& house = rule_houses[2 * block.group + (index >> block.n_children)];
        Tables& cell = rule_cells[block.first + index];
        const double base = base_probability(block, index);
        const double result = (house.old_weight(cell) + house.new_weight() * base) / house.denominator();
        if (!sit(house, cell, base, own, moves)) return result;
        if (block.word_class < 0) {
            if (levels < 3) return result;
            Tables& below = base_cells[block.base_first + (index & ((1 << block.n_children) - 1))];
            sit(base_houses[block.label], below, rule_base[block.rule], own, moves);
            return result;
        }
        sit(word_houses[block.word_house], word_cells[block.base_first], class_word_base[block.word_class], own, moves);
        const double of_label = label_class_probability(block);
        if (sit(class_houses[2 * block.group + index], class_cells[block.class_first + index], of_label, own, moves)) {
            sit(label_class_houses[block.label], label_class_cells[block.label_class], uniform_class_, own, moves);
        }
        return result;
    }

    // Unseat a customer of the rule at a node; returns its predictive probability after that.
    double unseat(int64_t node, Stream& own, std::vector<Move>& moves) {
        const SrBlock& block = blocks[block_of[node]];
        const int index = index_of(node);
        House& house = rule_houses[2 * block.group + (index >> block.n_children)];
        Tables& cell = rule_cells[block.first + index];
        if (leave(house, cell, own, moves)) {
            if (block.word_class >= 0) {
                if (leave(class_houses[2 * block.group + index], class_cells[block.class_first + index], own, moves)) {
                    leave(label_class_houses[block.label], label_class_cells[block.label_class], own, moves);
                }
                leave(word_houses[block.word_house], word_cells[block.base_first], own, moves);
            } else if (levels >= 3) {
                leave(base_houses[block.label], base_cells[block.base_first + (index & ((1 << block.n_children) - 1))], own, moves);
            }
        }
        return (house.old_weight(cell) + house.new_weight() * base_probability(block, index)) / house.denominator();
    }

    // Whether the table is new.
    static bool sit(House& house, Tables& cell, double base, Stream& own, std::vector<Move>& moves) {
        const int32_t size = house.seat(cell, base, own);
        moves.push_back({&house, &cell, size});
        return size == 0;
    }

    // Whether the table is gone.
    static bool leave(House& house, Tables& cell, Stream& own, std::vector<Move>& moves) {
        const int32_t size = house.unseat(cell, own);
        moves.push_back({&house, &cell, size});
        return size == 1;
    }

    static void take_back_seats(std::vector<Move>& moves) {
        for (size_t place = moves.size(); place-- > 0;) moves[place].house->shrink(*moves[place].cell, moves[place].size + 1);
        moves.clear();
    }

    static void put_back(std::vector<Move>& moves) {
        for (size_t place = moves.size(); place-- > 0;) moves[place].house->grow(*moves[place].cell, moves[place].size - 1);
        moves.clear();
    }

    // The weights of all refinements of the rules of a tree, and the inside values of its nodes' options.
    void fill_inside(int64_t tree, double temperature) {
        const int64_t first = tree_start[tree], size = tree_start[tree + 1] - first;
        inside_.resize(2 * size);
        weights_.resize(8 * size);
        log_inside_ = 0.0;
        for (int64_t place = size; place-- > 0;) {
            const int64_t node = first + place;
            const SrBlock& block = blocks[block_of[node]];
            double* weight = &weights_[8 * place];
            fill_weights(block, weight);
            if (temperature != 1.0) {
                for (int index = 0; index < 2 << block.n_children; ++index) {
                    if (weight[index] > 0.0) weight[index] = std::pow(weight[index], 1.0 / temperature);
                }
            }
            double value[2];
            if (block.n_children == 2) {
                const double* l = &inside_[2 * (left[node] - first)];
                const double* r = &inside_[2 * (right[node] - first)];
                const double pairs[4] = {l[0] * r[0], l[0] * r[1], l[1] * r[0], l[1] * r[1]};
                for (int own = 0; own < 2; ++own) {
                    const double* w = weight + 4 * own;
                    value[own] = w[0] * pairs[0] + w[1] * pairs[1] + w[2] * pairs[2] + w[3] * pairs[3];
                }
            } else if (block.n_children == 1) {
                const double* l = &inside_[2 * (left[node] - first)];
                for (int own = 0; own < 2; ++own) value[own] = weight[2 * own] * l[0] + weight[2 * own + 1] * l[1];
            } else {
                value[0] = weight[0];
                value[1] = weight[1];
            }
            const double largest = std::max(value[0], value[1]);
            log_inside_ += std::log(largest);
            inside_[2 * place] = value[0] / largest;
            inside_[2 * place + 1] = value[1] / largest;
        }
    }

    // Zero for options that a group does not have.
    void fill_weights(const SrBlock& block, double* weight) const {
        const int n_below = 1 << block.n_children;
        double base[8];
        if (block.word_class >= 0) {
            base[0] = base_probability(block, 0);
            base[1] = n_options[block.group] > 1 ? base_probability(block, 1) : 0.0;
        } else {
            for (int index = 0; index < n_below; ++index) base[index] = base_probability(block, index);
        }
        bool exists[4] = {true, true, true, true};
        if (block.n_children >= 1 && n_options[block.left_group] < 2) {
            for (int index = n_below / 2; index < n_below; ++index) exists[index] = false;
        }
        if (block.n_children == 2 && n_options[block.right_group] < 2) exists[1] = exists[3] = false;
        for (int own = 0; own < 2; ++own) {
            const House& house = rule_houses[2 * block.group + own];
            const double scale = 1.0 / house.denominator(), fresh = house.new_weight();
            const bool has_option = own < n_options[block.group];
            for (int below = 0; below < n_below; ++below) {
                const int index = own * n_below + below;
                weight[index] = has_option && exists[below]
                    ? (house.old_weight(rule_cells[block.first + index]) + fresh * base[block.word_class >= 0 ? own : below]) * scale
                    : 0.0;
            }
        }
    }

    void resample_tree(int64_t tree, double temperature, Stream& own, SweepCounts& counts) {
        const int64_t first = tree_start[tree], size = tree_start[tree + 1] - first;
        journal_.clear();
        double log_old = 0.0, log_new = 0.0, q_old = 0.0, q_new = 0.0;
        for (int64_t node = first + size; node-- > first;) log_old += std::log(unseat(node, own, journal_));
        fill_inside(tree, temperature);
        new_bits_.resize(size);
        bool differs = false;
        for (int64_t place = 0; place < size; ++place) {
            const int64_t node = first + place;
            const SrBlock& block = blocks[block_of[node]];
            const double* weight = &weights_[8 * place];
            if (place == 0) new_bits_[0] = draw_bit(inside_[0], inside_[1], own);
            const int64_t l = left[node] - first, r = right[node] - first;
            const int mine = new_bits_[place];
            int index = mine;
            if (block.n_children == 2) {
                double value[4], target = 0.0;
                for (int below = 0; below < 4; ++below) {
                    value[below] = weight[4 * mine + below] * inside_[2 * l + (below >> 1)] * inside_[2 * r + (below & 1)];
                    target += value[below];
                }
                target *= own.uniform();
                int below = 0;
                while (below < 3 && (target -= value[below]) >= 0.0) ++below;
                while (value[below] <= 0.0) --below;   // rounding
                new_bits_[l] = below >> 1;
                new_bits_[r] = below & 1;
                index = 4 * mine + below;
            } else if (block.n_children == 1) {
                new_bits_[l] = draw_bit(weight[2 * mine] * inside_[2 * l], weight[2 * mine + 1] * inside_[2 * l + 1], own);
                index = 2 * mine + new_bits_[l];
            }
            q_new += std::log(weight[index]);
            q_old += std::log(weight[index_of(node)]);
            differs |= new_bits_[place] != bit[node];
        }
        ++counts.n_proposed;
        // Also for the same labels: seats drawn one after the other are a proposal, not a draw from the posterior.
        for (int64_t place = 0; place < size; ++place) std::swap(new_bits_[place], bit[first + place]);
        seated_.clear();
        for (int64_t node = first; node < first + size; ++node) log_new += std::log(seat(node, own, seated_));
        const double log_ratio = (log_new - log_old) / temperature - (q_new - q_old);
        if (log_ratio >= 0.0 || own.uniform() < std::exp(log_ratio)) {
            ++counts.n_accepted;
            counts.n_changed += differs;
            return;
        }
        take_back_seats(seated_);
        for (int64_t place = 0; place < size; ++place) bit[first + place] = new_bits_[place];
        put_back(journal_);
    }

    static uint8_t draw_bit(double zero, double one, Stream& own) { return own.uniform() * (zero + one) >= zero ? one > 0.0 : 0; }

    // ---- changes of many bits -------------------------------------------------------------------------------------

    void begin_change() {
        planned_.clear();
        touched_.clear();
        planned_epoch_.resize(label.size(), 0);
        touched_epoch_.resize(label.size(), 0);
        planned_bit_.resize(label.size(), 0);
        ++epoch_;
    }

    // Whether a node can have this bit together with what was planned before.
    bool plan(int32_t node, uint8_t value) {
        if (planned_epoch_[node] == epoch_) return planned_bit_[node] == value;
        planned_epoch_[node] = epoch_;
        planned_bit_[node] = value;
        if (bit[node] == value) return true;
        planned_.emplace_back(node, bit[node]);
        touch(node);
        if (parent[node] >= 0) touch(parent[node]);
        return true;
    }

    void touch(int32_t node) {
        if (touched_epoch_[node] == epoch_) return;
        touched_epoch_[node] = epoch_;
        touched_.push_back(node);
    }

    // Make the planned change; returns the log of the ratio of the joint probabilities, seats included.
    double make_change(Stream& own) {
        double result = 0.0;
        journal_.clear();
        seated_.clear();
        for (size_t place = touched_.size(); place-- > 0;) result -= std::log(unseat(touched_[place], own, journal_));
        for (const auto& entry : planned_) bit[entry.first] = 1 - entry.second;
        for (const int32_t node : touched_) result += std::log(seat(node, own, seated_));
        return result;
    }

    void undo_change() {
        take_back_seats(seated_);
        for (const auto& entry : planned_) bit[entry.first] = entry.second;
        put_back(journal_);
    }

    bool resample_type(int32_t node, double temperature, bool onto_used, Stream& own) {
        const int32_t number = block_of[node];
        const SrBlock& block = blocks[number];
        const int index = index_of(node);
        int choices[8], n_choices = 0;
        const int options[3] = {
            n_options[block.group],
            block.n_children >= 1 ? n_options[block.left_group] : 1,
            block.n_children == 2 ? n_options[block.right_group] : 1,
        };
        for (int one = 0; one < options[0]; ++one) {
            for (int two = 0; two < options[1]; ++two) {
                for (int three = 0; three < options[2]; ++three) {
                    const int other = block.index(one, two, three);
                    if (other != index) choices[n_choices++] = other;
                }
            }
        }
        if (n_choices == 0) return false;
        const int goal = choices[own.below(n_choices)];
        if (!onto_used && rule_cells[block.first + goal].n_customers > 0) return false;
        begin_change();
        size_t n_occurrences = 0;
        const int n = block.n_children;
        for (const int32_t place : nodes_of_block_[number]) {
            if (index_of(place) != index) continue;
            ++n_occurrences;
            bool fits = plan(place, goal >> n);
            if (n >= 1) fits = plan(left[place], n == 2 ? goal >> 1 & 1 : goal & 1) && fits;
            if (n == 2) fits = plan(right[place], goal & 1) && fits;
            if (!fits) return false;
        }
        const double log_ratio = make_change(own);
        // Other nodes may have become the new rule by the way, and the way back would take them along; or the old one, and
        // the way back would lead to a rule that is in use.
        const bool has_way_back = static_cast<size_t>(rule_cells[block.first + goal].n_customers) == n_occurrences
            && rule_cells[block.first + index].n_customers == 0;
        if ((onto_used || has_way_back) && (log_ratio >= 0.0 || own.uniform() < std::exp(log_ratio / temperature))) return true;
        undo_change();
        return false;
    }
};

}  // namespace tsgkit
