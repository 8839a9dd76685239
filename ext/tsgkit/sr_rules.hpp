// The restaurants of refined rules below those of fragments: H over x_k -> y_l z_m, I over x -> y_l z_m, and for words
// with classes J and W (see sr_sampler.hpp, whose model this is). Any refinement can be asked for, not only those of a
// split; what was seen of every treebank rule is a list, so that sums over subcategories cost as much as was seen:
//
//     sum_{l,m} H(k, l, m) L[l] R[m] = sum_{seen in H} w L[l] R[m]
//                                      + b_k ( sum_{seen in I} w L[l] R[m] + b P(rule) / (K_y K_z) sum(L) sum(R) )
//
// Subcategories are counted from 0 within their label here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "restaurant.hpp"
#include "stream.hpp"

namespace tsgkit {

// A treebank rule with the subcategories of its parent and children; 0 where there is no child.
struct RefinedRule {
    int32_t rule = -1;
    int32_t own = 0, left = 0, right = 0;
};

enum class Level : uint8_t { kRule = 0, kBase = 1, kClass = 2, kLabelClass = 3, kWord = 4, kDish = 5 };
constexpr int N_RULE_LEVELS = 5;

// A customer who sat down at, or left, a table.
struct SrMove {
    Level level;
    bool grew;
    int32_t cell;
    int32_t size;         // of the table before
    House* house;
    int32_t table = -1;   // of a dish with internal nodes: which one
};

class RuleRestaurants {
public:
    // Per rule: its label and its children's (-1: none), the probability of each refinement in the last base, and the
    // class of its word (-1: no word, or no classes).
    std::vector<int32_t> rule_label, rule_left_label, rule_right_label;
    std::vector<double> rule_base;
    std::vector<int32_t> rule_class;
    // Per label: the share of words among its rules, where classes are in use.
    std::vector<double> lexical_share;
    // Per class: the probability of each of its words in the last base.
    std::vector<double> class_word_base;
    // Per label and one more: its first symbol.
    std::vector<int32_t> first_symbol;
    int levels = 3;

    std::vector<Tables> cells[N_RULE_LEVELS];
    std::vector<House> houses[N_RULE_LEVELS];
    std::vector<RefinedRule> rule_of_cell[2];      // of H and I
    std::vector<int32_t> word_house;               // per rule, -1 for those without a class
    std::vector<int32_t> word_house_label;

    int32_t n_labels() const { return static_cast<int32_t>(first_symbol.size()) - 1; }
    int32_t n_symbols() const { return first_symbol.back(); }
    int32_t n_rules() const { return static_cast<int32_t>(rule_label.size()); }
    int32_t n_classes() const { return static_cast<int32_t>(class_word_base.size()); }
    int32_t n_subcategories(int32_t label) const { return label < 0 ? 1 : first_symbol[label + 1] - first_symbol[label]; }
    int32_t symbol_of(const RefinedRule& rule) const { return first_symbol[rule_label[rule.rule]] + rule.own; }

    // Nobody is seated.
    void build() {
        std::map<std::pair<int32_t, int32_t>, int32_t> house_of;
        word_house.assign(n_rules(), -1);
        word_house_label.clear();
        for (int32_t rule = 0; rule < n_rules(); ++rule) {
            if (rule_class[rule] < 0) continue;
            const auto found = house_of.emplace(std::make_pair(rule_label[rule], rule_class[rule]),
                                                static_cast<int32_t>(house_of.size()));
            if (found.second) word_house_label.push_back(rule_label[rule]);
            word_house[rule] = found.first->second;
        }
        house(Level::kRule).assign(n_symbols(), House());
        house(Level::kBase).assign(n_labels(), House());
        house(Level::kClass).assign(n_symbols(), House());
        house(Level::kLabelClass).assign(n_labels(), House());
        house(Level::kWord).assign(word_house_label.size(), House());
        of(Level::kClass).assign(static_cast<size_t>(n_symbols()) * n_classes(), Tables());
        of(Level::kLabelClass).assign(static_cast<size_t>(n_labels()) * n_classes(), Tables());
        of(Level::kWord).assign(n_classes() ? n_rules() : 0, Tables());
        for (int level = 0; level < 2; ++level) {
            cells[level].clear();
            rule_of_cell[level].clear();
            cell_of_[level].clear();
            seen_[level].assign(n_rules(), {});
        }
        uniform_class_ = n_classes() ? 1.0 / n_classes() : 0.0;
    }

    std::vector<Tables>& of(Level level) { return cells[static_cast<int>(level)]; }
    const std::vector<Tables>& of(Level level) const { return cells[static_cast<int>(level)]; }
    std::vector<House>& house(Level level) { return houses[static_cast<int>(level)]; }
    const std::vector<House>& house(Level level) const { return houses[static_cast<int>(level)]; }

    // The cell of a rule in H or I, made if it is not there.
    int32_t cell(Level level, const RefinedRule& rule) {
        const int number = static_cast<int>(level);
        const auto found = cell_of_[number].emplace(key(level, rule), static_cast<int32_t>(cells[number].size()));
        if (found.second) {
            cells[number].emplace_back();
            rule_of_cell[number].push_back(rule);
            if (level == Level::kBase) rule_of_cell[number].back().own = 0;
            seen_[number][rule.rule].push_back(found.first->second);
        }
        return found.first->second;
    }

    // Forget empty cells, and bring the others into an order that does not depend on how they came.
    void tidy() {
        for (const Level level : {Level::kRule, Level::kBase}) {
            const int number = static_cast<int>(level);
            std::vector<std::pair<uint64_t, int32_t>> order;
            for (size_t cell = 0; cell < cells[number].size(); ++cell) {
                if (cells[number][cell].n_customers == 0) continue;
                order.emplace_back(key(level, rule_of_cell[number][cell]), static_cast<int32_t>(cell));
            }
            std::sort(order.begin(), order.end());
            std::vector<Tables> kept(order.size());
            std::vector<RefinedRule> rules(order.size());
            for (auto& list : seen_[number]) list.clear();
            cell_of_[number].clear();
            for (size_t place = 0; place < order.size(); ++place) {
                kept[place] = std::move(cells[number][order[place].second]);
                rules[place] = rule_of_cell[number][order[place].second];
                seen_[number][rules[place].rule].push_back(static_cast<int32_t>(place));
                cell_of_[number].emplace(order[place].first, static_cast<int32_t>(place));
            }
            cells[number].swap(kept);
            rule_of_cell[number].swap(rules);
        }
    }

    // ---- probabilities --------------------------------------------------------------------------------------------

    // Of a refined rule for the next customer.
    double probability(const RefinedRule& rule) const {
        const double base = base_probability(rule);
        return levels == 1 ? base : predictive(house(Level::kRule)[symbol_of(rule)], tables(Level::kRule, rule), base);
    }

    double base_probability(const RefinedRule& rule) const {
        if (rule_class[rule.rule] >= 0) return word_base(rule.rule, rule.own);
        if (levels < 3) return rule_base[rule.rule];
        return predictive(house(Level::kBase)[rule_label[rule.rule]], tables(Level::kBase, rule), rule_base[rule.rule]);
    }

    double word_base(int32_t rule, int32_t own) const {
        const int32_t klass = rule_class[rule], label = rule_label[rule];
        const double word = predictive(house(Level::kWord)[word_house[rule]], &of(Level::kWord)[rule], class_word_base[klass]);
        return lexical_share[label] * class_probability(first_symbol[label] + own, label, klass) * word;
    }

    double class_probability(int32_t symbol, int32_t label, int32_t klass) const {
        return predictive(house(Level::kClass)[symbol], &of(Level::kClass)[class_cell(symbol, klass)],
                          label_class_probability(label, klass));
    }

    double label_class_probability(int32_t label, int32_t klass) const {
        return predictive(house(Level::kLabelClass)[label], &of(Level::kLabelClass)[class_cell(label, klass)], uniform_class_);
    }

    // ---- sums over the children's subcategories ----------------------------------------------------------------------

    // For every subcategory of the parent, the sum over those of the children of H times their values. A child that is
    // not there has the one value 1.
    void sums(int32_t rule, const double* left, const double* right, double* result) const {
        const int32_t label = rule_label[rule], first = first_symbol[label], n_own = n_subcategories(label);
        if (rule_class[rule] >= 0) {
            for (int32_t own = 0; own < n_own; ++own) result[own] = word_base(rule, own);
        } else {
            std::fill(result, result + n_own, base_sum(rule, left, right));
        }
        if (levels == 1) return;
        const House* rule_houses = &house(Level::kRule)[first];
        for (int32_t own = 0; own < n_own; ++own) {
            result[own] *= rule_houses[own].new_weight() / rule_houses[own].denominator();
        }
        for (const int32_t cell : seen_[0][rule]) {
            const Tables& seen = cells[0][cell];
            if (seen.n_customers == 0) continue;
            const RefinedRule& refined = rule_of_cell[0][cell];
            const House& own = rule_houses[refined.own];
            result[refined.own] += own.old_weight(seen) / own.denominator() * left[refined.left] * right[refined.right];
        }
    }

    // The same for one subcategory of the parent.
    double sum(int32_t rule, int32_t own, const double* left, const double* right) const {
        const double base = rule_class[rule] >= 0 ? word_base(rule, own) : base_sum(rule, left, right);
        if (levels == 1) return base;
        const House& from = house(Level::kRule)[first_symbol[rule_label[rule]] + own];
        double result = 0.0;
        for (const int32_t cell : seen_[0][rule]) {
            const RefinedRule& refined = rule_of_cell[0][cell];
            if (refined.own != own || cells[0][cell].n_customers == 0) continue;
            result += from.old_weight(cells[0][cell]) * left[refined.left] * right[refined.right];
        }
        return (result + from.new_weight() * base) / from.denominator();
    }

    // Draw the children's subcategories from the terms of `sum`.
    void draw(RefinedRule& rule, const double* left, const double* right, Stream& own) const {
        const double total = sum(rule.rule, rule.own, left, right);
        double target = own.uniform() * total;
        if (levels > 1) {
            const House& from = house(Level::kRule)[symbol_of(rule)];
            const double scale = 1.0 / from.denominator();
            for (const int32_t cell : seen_[0][rule.rule]) {
                const RefinedRule& refined = rule_of_cell[0][cell];
                if (refined.own != rule.own || cells[0][cell].n_customers == 0) continue;
                target -= from.old_weight(cells[0][cell]) * scale * left[refined.left] * right[refined.right];
                if (target < 0.0) {
                    rule = refined;
                    return;
                }
            }
            target /= from.new_weight() * scale;
        }
        if (levels > 2) {
            const House& from = house(Level::kBase)[rule_label[rule.rule]];
            const double scale = 1.0 / from.denominator();
            for (const int32_t cell : seen_[1][rule.rule]) {
                const RefinedRule& refined = rule_of_cell[1][cell];
                if (cells[1][cell].n_customers == 0) continue;
                target -= from.old_weight(cells[1][cell]) * scale * left[refined.left] * right[refined.right];
                if (target < 0.0) {
                    rule.left = refined.left;
                    rule.right = refined.right;
                    return;
                }
            }
        }
        rule.left = draw_one(left, n_subcategories(rule_left_label[rule.rule]), own);
        rule.right = draw_one(right, n_subcategories(rule_right_label[rule.rule]), own);
    }

    // ---- seating --------------------------------------------------------------------------------------------------

    // Seat a customer for a rule; returns its predictive probability before that.
    double seat(const RefinedRule& rule, Stream& own, std::vector<SrMove>& moves) {
        const double base = base_probability(rule);
        if (levels == 1) {
            seat_base(rule, own, moves);
            return base;
        }
        House& from = house(Level::kRule)[symbol_of(rule)];
        const int32_t place = cell(Level::kRule, rule);
        const double result = predictive(from, &of(Level::kRule)[place], base);
        if (sit(Level::kRule, from, place, base, own, moves)) seat_base(rule, own, moves);
        return result;
    }

    // Unseat a customer of a rule; returns its predictive probability after that.
    double unseat(const RefinedRule& rule, Stream& own, std::vector<SrMove>& moves) {
        if (levels == 1) {
            unseat_base(rule, own, moves);
        } else if (leave(Level::kRule, house(Level::kRule)[symbol_of(rule)], cell(Level::kRule, rule), own, moves)) {
            unseat_base(rule, own, moves);
        }
        return probability(rule);
    }

    void take_back(const SrMove& move) {
        Tables& cell = of(move.level)[move.cell];
        if (move.grew) {
            move.house->shrink(cell, move.size + 1);
        } else {
            move.house->grow(cell, move.size - 1);
        }
    }

    size_t class_cell(int32_t row, int32_t klass) const { return static_cast<size_t>(row) * n_classes() + klass; }

    // The restaurant of a cell.
    int32_t house_of(Level level, int32_t cell) const {
        switch (level) {
            case Level::kRule: return symbol_of(rule_of_cell[0][cell]);
            case Level::kBase: return rule_label[rule_of_cell[1][cell].rule];
            case Level::kWord: return word_house[cell];
            default: return cell / n_classes();
        }
    }

private:
    double uniform_class_ = 0.0;
    std::unordered_map<uint64_t, int32_t> cell_of_[2];
    std::vector<std::vector<int32_t>> seen_[2];   // per rule: its cells in H and I

    // Ten bits for every subcategory.
    static uint64_t key(Level level, const RefinedRule& rule) {
        const uint64_t own = level == Level::kRule ? rule.own : 0;
        return static_cast<uint64_t>(rule.rule) << 30 | own << 20 | static_cast<uint64_t>(rule.left) << 10
            | static_cast<uint64_t>(rule.right);
    }

    const Tables* tables(Level level, const RefinedRule& rule) const {
        const int number = static_cast<int>(level);
        const auto found = cell_of_[number].find(key(level, rule));
        return found == cell_of_[number].end() ? nullptr : &cells[number][found->second];
    }

    static double predictive(const House& house, const Tables* tables, double base) {
        const double old_weight = tables ? house.old_weight(*tables) : 0.0;
        return (old_weight + house.new_weight() * base) / house.denominator();
    }

    double base_sum(int32_t rule, const double* left, const double* right) const {
        const double all = std::accumulate(left, left + n_subcategories(rule_left_label[rule]), 0.0)
            * std::accumulate(right, right + n_subcategories(rule_right_label[rule]), 0.0) * rule_base[rule];
        if (levels < 3) return all;
        const House& from = house(Level::kBase)[rule_label[rule]];
        double result = 0.0;
        for (const int32_t cell : seen_[1][rule]) {
            if (cells[1][cell].n_customers == 0) continue;
            const RefinedRule& refined = rule_of_cell[1][cell];
            result += from.old_weight(cells[1][cell]) * left[refined.left] * right[refined.right];
        }
        return (result + from.new_weight() * all) / from.denominator();
    }

    static int32_t draw_one(const double* values, int32_t n_values, Stream& own) {
        double target = own.uniform() * std::accumulate(values, values + n_values, 0.0);
        int32_t last = 0;
        for (int32_t number = 0; number < n_values; ++number) {
            if (values[number] <= 0.0) continue;
            last = number;
            if ((target -= values[number]) < 0.0) break;
        }
        return last;
    }

    void seat_base(const RefinedRule& rule, Stream& own, std::vector<SrMove>& moves) {
        const int32_t label = rule_label[rule.rule], klass = rule_class[rule.rule];
        if (klass < 0) {
            if (levels < 3) return;
            sit(Level::kBase, house(Level::kBase)[label], cell(Level::kBase, rule), rule_base[rule.rule], own, moves);
            return;
        }
        sit(Level::kWord, house(Level::kWord)[word_house[rule.rule]], rule.rule, class_word_base[klass], own, moves);
        const int32_t symbol = symbol_of(rule);
        if (sit(Level::kClass, house(Level::kClass)[symbol], static_cast<int32_t>(class_cell(symbol, klass)),
                label_class_probability(label, klass), own, moves)) {
            sit(Level::kLabelClass, house(Level::kLabelClass)[label], static_cast<int32_t>(class_cell(label, klass)),
                uniform_class_, own, moves);
        }
    }

    void unseat_base(const RefinedRule& rule, Stream& own, std::vector<SrMove>& moves) {
        const int32_t label = rule_label[rule.rule], klass = rule_class[rule.rule];
        if (klass < 0) {
            if (levels >= 3) leave(Level::kBase, house(Level::kBase)[label], cell(Level::kBase, rule), own, moves);
            return;
        }
        const int32_t symbol = symbol_of(rule);
        if (leave(Level::kClass, house(Level::kClass)[symbol], static_cast<int32_t>(class_cell(symbol, klass)), own, moves)) {
            leave(Level::kLabelClass, house(Level::kLabelClass)[label], static_cast<int32_t>(class_cell(label, klass)), own,
                  moves);
        }
        leave(Level::kWord, house(Level::kWord)[word_house[rule.rule]], rule.rule, own, moves);
    }

    // Whether the table is new.
    bool sit(Level level, House& from, int32_t place, double base, Stream& own, std::vector<SrMove>& moves) {
        const int32_t size = from.seat(of(level)[place], base, own);
        moves.push_back({level, true, place, size, &from});
        return size == 0;
    }

    // Whether the table is gone.
    bool leave(Level level, House& from, int32_t place, Stream& own, std::vector<SrMove>& moves) {
        const int32_t size = from.unseat(of(level)[place], own);
        moves.push_back({level, false, place, size, &from});
        return size == 1;
    }
};

}  // namespace tsgkit
