// Substitution sites of refined trees, and subcategories and sites together: stages 2 and 3 of the symbol-refined
// tree-substitution grammar (section 4 of the models).
//
//     G_{x_k}  over fragments, their roots and frontiers refined, their internal nodes not
//     P(e | x_k) = prod_{frontiers f} s_f  prod_{internal nodes i} (1 - s_i)  sum_{refinements of i} prod_{rules r} H(r)
//
// A new table of G draws one refinement of its dish's internal nodes, keeps it, and seats the dish's refined rules in
// the restaurants of rules. On a known tree, with the counts frozen, for every node v and its subcategories k:
//
//     B_k(v) = sum_{l,m} H(x_k -> y_l z_m)  prod_{children y_l} [ s I_l(y) + (1 - s) B_l(y) ]
//     S_g(v) = prod_{children y}  I_l(y) where g has a frontier y_l,  S_{g_y}(y) where g goes on
//     I_k(v) = sum_{cached e rooted in x_k that match at v} w_e S_e(v)  +  b_{x_k} B_k(v)
//
// where in stage 2, with k_v given, I_l(v) is zero for all l but k_v. The values of a node are divided by the largest
// I(v), so that deep trees do not underflow.
//
// Every move unseats, draws from frozen counts, seats again one after the other and is then tested against the true
// probabilities: also where nothing but seats has changed. What is refused is taken back step by step.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "restaurant.hpp"
#include "sr_parts.hpp"
#include "sr_rules.hpp"
#include "stream.hpp"

namespace tsgkit {

enum class SitePurpose : uint64_t {
    kTree = 48,
    kTreeOrder = 49,
    kHyper = 50,
    kStop = 51,
    kStart = 52,
    kSite = 53,
    kSiteOrder = 54,
};

class SrSiteSampler {
public:
    // The trees: per node its label, rule and children (-1: none), parents before children.
    std::vector<int32_t> label, rule, left, right, parent;
    std::vector<int64_t> tree_start;
    RuleRestaurants rules;
    std::vector<int32_t> symbol_label;
    std::vector<double> stop, log_stop, log_go;   // per label
    std::vector<House> dish_houses;               // G, by refined symbol
    uint64_t seed = 0;

    // The state. Of a node that is no site the symbol is a remark: the one it would have as a site in stage 2.
    std::vector<uint8_t> is_site;
    std::vector<int32_t> symbol;
    std::vector<int32_t> dish;   // at sites
    PartStore store;
    std::vector<Dish> dishes;

    struct SweepCounts {
        int64_t n_proposed = 0;
        int64_t n_accepted = 0;
        int64_t n_changed = 0;
    };

    int64_t n_trees() const { return static_cast<int64_t>(tree_start.size()) - 1; }
    int64_t n_nodes() const { return static_cast<int64_t>(label.size()); }
    Stream stream(uint64_t iteration, SitePurpose purpose, uint64_t item = 0) const {
        return Stream(seed, iteration, static_cast<uint64_t>(purpose) << 40 | item);
    }

    void build() {
        rules.build();
        dish_houses.assign(rules.n_symbols(), House());
        stop.assign(rules.n_labels(), 0.5);
        log_stop.assign(rules.n_labels(), 0.0);
        log_go.assign(rules.n_labels(), 0.0);
        for (int32_t number = 0; number < rules.n_labels(); ++number) set_stop(number, 0.5);
        offset_.resize(label.size());
        largest_ = 1;
        longest_ = 0;
        for (int64_t tree = 0; tree < n_trees(); ++tree) {
            int32_t length = 0;
            for (int64_t node = tree_start[tree]; node < tree_start[tree + 1]; ++node) {
                const int32_t n_own = rules.n_subcategories(label[node]);
                offset_[node] = length;
                length += n_own;
                largest_ = std::max(largest_, n_own);
            }
            longest_ = std::max(longest_, length);
        }
        vectors_.assign(longest_, 0.0);
        one_left_.assign(largest_, 0.0);
        one_right_.assign(largest_, 0.0);
        clear();
    }

    // Forget all seats.
    void clear() {
        for (int level = 0; level < N_RULE_LEVELS; ++level) {
            for (House& house : rules.houses[level]) house.n_customers = house.n_tables = 0;
            for (Tables& cell : rules.cells[level]) cell = Tables();
        }
        rules.tidy();
        for (House& house : dish_houses) house.n_customers = house.n_tables = 0;
        store = PartStore(rules.n_rules());
        dishes.clear();
        free_dishes_.clear();
        dish.assign(label.size(), -1);
        journal_.clear();
        graves_.clear();
    }

    // Seat all trees as sites and symbols say.
    void seat_all() {
        name_all();
        for (int64_t tree = 0; tree < n_trees(); ++tree) {
            Stream own = stream(0, SitePurpose::kStart, tree);
            for (int64_t node = tree_start[tree]; node < tree_start[tree + 1]; ++node) {
                if (is_site[node]) seat(static_cast<int32_t>(node), own, false);
            }
            forget_journal();
        }
        tidy();
    }

    // Unseat all trees; every restaurant must be empty then.
    void unseat_all() {
        Stream own = stream(0, SitePurpose::kStart, n_trees());
        for (int64_t node = n_nodes(); node-- > 0;) {
            if (!is_site[node]) continue;
            unseat(static_cast<int32_t>(node), own);
            release_dish(dish[node]);
            dish[node] = -1;
            forget_journal();
        }
        rules.tidy();
    }

    // Give parts and dishes to what sites and symbols say, in an order that depends on nothing else; nobody is seated.
    void name_all() {
        store = PartStore(rules.n_rules());
        dishes.clear();
        free_dishes_.clear();
        dish.assign(label.size(), -1);
        part_.resize(label.size());
        for (int64_t node = n_nodes(); node-- > 0;) name_node(static_cast<int32_t>(node));
    }

    // Bring everything into an order that does not depend on how it came about: a run that goes on from a checkpoint
    // finds what one that never stopped has.
    void tidy() {
        std::vector<Dish> old_dishes;
        std::vector<int32_t> old_dish(dish);
        old_dishes.swap(dishes);
        name_all();
        for (size_t node = 0; node < dish.size(); ++node) {
            if (dish[node] < 0 || dishes[dish[node]].tables.n_customers) continue;
            dishes[dish[node]].tables = std::move(old_dishes[old_dish[node]].tables);
            dishes[dish[node]].refined = std::move(old_dishes[old_dish[node]].refined);
        }
        rules.tidy();
    }

    // ---- blocked Metropolis-Hastings ----------------------------------------------------------------------------

    // One proposal for every tree: sites (stage 2), or sites and subcategories (`joint`).
    SweepCounts blocked_sweep(uint64_t iteration, bool joint) {
        SweepCounts counts;
        for (const int64_t tree : random_order(n_trees(), stream(iteration, SitePurpose::kTreeOrder))) {
            Stream own = stream(iteration, SitePurpose::kTree, tree);
            resample_tree(tree, joint, own, counts);
        }
        tidy();
        return counts;
    }

    // ---- single sites -------------------------------------------------------------------------------------------

    SweepCounts local_sweep(uint64_t iteration) {
        SweepCounts counts;
        for (const int64_t node : random_order(n_nodes(), stream(iteration, SitePurpose::kSiteOrder))) {
            if (parent[node] < 0) continue;
            Stream own = stream(iteration, SitePurpose::kSite, node);
            resample_site(static_cast<int32_t>(node), own, counts);
        }
        tidy();
        return counts;
    }

    // ---- parameters -----------------------------------------------------------------------------------------------

    // Numbers of table sizes by restaurant, and numbers over the dishes of all tables.
    struct Totals {
        std::vector<std::vector<int64_t>> sizes[N_RULE_LEVELS];
        std::vector<std::vector<int64_t>> dish_sizes;
        std::vector<int64_t> frontier, internal, rules;
    };

    Totals totals() const {
        Totals sums;
        for (int level = 0; level < N_RULE_LEVELS; ++level) {
            sums.sizes[level].resize(rules.houses[level].size());
            for (size_t cell = 0; cell < rules.cells[level].size(); ++cell) {
                const Tables& tables = rules.cells[level][cell];
                if (tables.n_customers == 0) continue;
                add_sizes(tables, sums.sizes[level][rules.house_of(static_cast<Level>(level), static_cast<int32_t>(cell))]);
            }
        }
        sums.dish_sizes.resize(dish_houses.size());
        sums.frontier.assign(rules.n_labels(), 0);
        sums.internal.assign(rules.n_labels(), 0);
        sums.rules.assign(rules.n_rules(), 0);
        std::vector<int32_t> waiting;
        for (const Dish& one : dishes) {
            if (one.part < 0 || one.tables.n_tables == 0) continue;
            add_sizes(one.tables, sums.dish_sizes[one.symbol]);
            waiting.assign(1, one.part);
            while (!waiting.empty()) {
                const Part& part = store.parts[waiting.back()];
                waiting.pop_back();
                sums.rules[part.rule] += one.tables.n_tables;
                const int32_t labels[2] = {rules.rule_left_label[part.rule], rules.rule_right_label[part.rule]};
                const int32_t children[2] = {part.left, part.right};
                for (int side = 0; side < 2; ++side) {
                    if (labels[side] < 0) continue;
                    (children[side] < 0 ? sums.frontier : sums.internal)[labels[side]] += one.tables.n_tables;
                    if (children[side] >= 0) waiting.push_back(children[side]);
                }
            }
        }
        return sums;
    }

    // log p(sites, symbols of sites, seating, refinements of tables | parameters)
    double log_joint(const Totals& sums) const {
        double result = 0.0;
        for (int level = 0; level < N_RULE_LEVELS; ++level) {
            for (size_t number = 0; number < rules.houses[level].size(); ++number) {
                result += log_seating(rules.houses[level][number], sums.sizes[level][number]);
            }
        }
        for (size_t number = 0; number < dish_houses.size(); ++number) {
            result += log_seating(dish_houses[number], sums.dish_sizes[number]);
        }
        for (size_t number = 0; number < stop.size(); ++number) {
            if (sums.frontier[number]) result += sums.frontier[number] * log_stop[number];
            if (sums.internal[number]) result += sums.internal[number] * log_go[number];
        }
        if (rules.levels == 1) {
            for (int32_t number = 0; number < rules.n_rules(); ++number) {
                if (rules.rule_class[number] < 0 && sums.rules[number]) {
                    const double share = rules.rule_share(rules.rule_label[number]);
                    result += sums.rules[number] * std::log(share * rules.rule_base[number]);
                }
            }
        } else {
            for (size_t cell = 0; cell < rules.cells[0].size(); ++cell) {
                const int32_t number = rules.rule_of_cell[0][cell].rule;
                if (rules.rule_class[number] >= 0) continue;
                result += rules.cells[0][cell].n_tables * std::log(rules.rule_share(rules.rule_label[number]));
            }
            const int last = rules.levels == 2 ? 0 : 1;
            for (size_t cell = 0; cell < rules.cells[last].size(); ++cell) {
                const int32_t number = rules.rule_of_cell[last][cell].rule;
                if (rules.rule_class[number] < 0) result += rules.cells[last][cell].n_tables * std::log(rules.rule_base[number]);
            }
        }
        const std::vector<Tables>& words = rules.of(Level::kWord);
        for (size_t number = 0; number < words.size(); ++number) {
            if (words[number].n_customers == 0) continue;
            result += words[number].n_customers * std::log(rules.lexical_share[rules.rule_label[number]]);
            result += words[number].n_tables * std::log(rules.class_word_base[rules.rule_class[number]]);
        }
        for (const Tables& cell : rules.of(Level::kLabelClass)) {
            if (cell.n_tables) result -= cell.n_tables * std::log(static_cast<double>(rules.n_classes()));
        }
        return result;
    }

    void resample_stops(uint64_t iteration, const Totals& sums) {
        for (size_t number = 0; number < stop.size(); ++number) {
            Stream own = stream(iteration, SitePurpose::kStop, number);
            set_stop(number, own.beta(1.0 + sums.frontier[number], 1.0 + sums.internal[number]));
        }
    }

    // Kept away from 0 and 1, so that every derivation stays possible.
    void set_stop(size_t number, double probability) {
        stop[number] = std::min(std::max(probability, 1e-9), 1.0 - 1e-9);
        log_stop[number] = std::log(stop[number]);
        log_go[number] = std::log1p(-stop[number]);
    }

    // One pair (discount, strength) per refined symbol for fragments; below, one per label and kind of restaurant, and
    // one for the classes of all labels.
    void resample_hyper(uint64_t iteration, const Totals& sums) {
        std::vector<std::vector<size_t>> words(rules.n_labels());
        for (size_t number = 0; number < rules.word_house_label.size(); ++number) {
            words[rules.word_house_label[number]].push_back(number);
        }
        std::vector<size_t> all(rules.n_labels()), symbols;
        const auto resample = [&](Level level, const std::vector<size_t>& numbers, Stream& own) {
            resample_pair(rules.house(level), sums.sizes[static_cast<int>(level)], numbers, own);
        };
        for (int32_t number = 0; number < rules.n_labels(); ++number) {
            Stream own = stream(iteration, SitePurpose::kHyper, number);
            symbols.clear();
            for (int32_t one = rules.first_symbol[number]; one < rules.first_symbol[number + 1]; ++one) symbols.push_back(one);
            for (const size_t one : symbols) resample_pair(dish_houses, sums.dish_sizes, {one}, own);
            resample(Level::kRule, symbols, own);
            resample(Level::kBase, {static_cast<size_t>(number)}, own);
            resample(Level::kClass, symbols, own);
            resample(Level::kWord, words[number], own);
            all[number] = number;
        }
        Stream own = stream(iteration, SitePurpose::kHyper, rules.n_labels());
        resample(Level::kLabelClass, all, own);
    }

    // ---- for checks -------------------------------------------------------------------------------------------------

    // Whether every number of customers is what the level above it asks for, and every total is that of its parts.
    bool counts_fit() const {
        std::vector<int64_t> orders(dishes.size(), 0);
        for (size_t node = 0; node < dish.size(); ++node) {
            if ((dish[node] >= 0) != static_cast<bool>(is_site[node])) return false;
            if (dish[node] >= 0) ++orders[dish[node]];
        }
        std::unordered_map<int64_t, int64_t> wanted[N_RULE_LEVELS];
        std::vector<std::pair<int64_t, int64_t>> sums(dish_houses.size(), {0, 0});
        SrSiteSampler::CellFinder find(rules);
        const auto order_base = [&](const RefinedRule& one, int64_t n) {
            const int32_t klass = rules.rule_class[one.rule];
            if (klass >= 0) {
                wanted[static_cast<int>(Level::kWord)][one.rule] += n;
                wanted[static_cast<int>(Level::kClass)][rules.class_cell(rules.symbol_of(one), klass)] += n;
            } else if (rules.levels >= 3) {
                wanted[static_cast<int>(Level::kBase)][find(Level::kBase, one)] += n;
            }
        };
        const auto order = [&](const RefinedRule& one, int64_t n) {
            if (rules.levels == 1) {
                order_base(one, n);
            } else {
                wanted[static_cast<int>(Level::kRule)][find(Level::kRule, one)] += n;
            }
        };
        std::vector<RefinedRule> list;
        for (size_t number = 0; number < dishes.size(); ++number) {
            const Dish& one = dishes[number];
            if (one.part < 0) continue;
            if (one.tables.n_customers != orders[number]) return false;
            sums[one.symbol].first += one.tables.n_customers;
            sums[one.symbol].second += one.tables.n_tables;
            if (!has_internal(one)) {
                rules_of(one, nullptr, list);
                order(list[0], one.tables.n_tables);
                continue;
            }
            Tables again;
            for (const RefinedTable& table : one.refined) {
                for (int32_t size = 0; size < table.size; ++size) again.grow(size);
                rules_of(one, table.refinement.data(), list);
                for (const RefinedRule& each : list) order(each, 1);
            }
            if (again.by_size != one.tables.by_size || again.n_customers != one.tables.n_customers) return false;
        }
        for (size_t number = 0; number < dish_houses.size(); ++number) {
            if (dish_houses[number].n_customers != sums[number].first) return false;
            if (dish_houses[number].n_tables != sums[number].second) return false;
        }
        for (int number = 0; number < N_RULE_LEVELS; ++number) {
            const Level level = static_cast<Level>(number);
            sums.assign(rules.houses[number].size(), {0, 0});
            for (size_t cell = 0; cell < rules.cells[number].size(); ++cell) {
                const Tables& tables = rules.cells[number][cell];
                const auto found = wanted[number].find(cell);
                if (tables.n_customers != (found == wanted[number].end() ? 0 : found->second)) return false;
                if (tables.n_customers == 0) continue;
                const int32_t house = rules.house_of(level, static_cast<int32_t>(cell));
                sums[house].first += tables.n_customers;
                sums[house].second += tables.n_tables;
                if (level == Level::kRule) order_base(rules.rule_of_cell[0][cell], tables.n_tables);
                if (level == Level::kClass) {
                    const int64_t klass = static_cast<int64_t>(cell) % rules.n_classes();
                    wanted[static_cast<int>(Level::kLabelClass)][rules.class_cell(symbol_label[house], klass)] += tables.n_tables;
                }
            }
            if (wanted[number].count(-1)) return false;
            for (size_t house = 0; house < sums.size(); ++house) {
                if (rules.houses[number][house].n_customers != sums[house].first) return false;
                if (rules.houses[number][house].n_tables != sums[house].second) return false;
            }
        }
        return true;
    }

    bool has_internal(const Dish& one) const {
        const Part& part = store.parts[one.part];
        return part.left >= 0 || part.right >= 0;
    }

    // The labels of the internal nodes of a dish, in the order of refinements.
    std::vector<int32_t> internal_labels(int32_t number) const {
        std::vector<int32_t> parts(1, dishes[number].part), result;
        for (size_t item = 0; item < parts.size(); ++item) {
            const Part& part = store.parts[parts[item]];
            if (part.left >= 0) parts.push_back(part.left);
            if (part.right >= 0) parts.push_back(part.right);
            if (item) result.push_back(rules.rule_label[part.rule]);
        }
        return result;
    }

    // log of the predictive probability of the fragment at a site, with the counts as they are.
    double log_predictive_at(int32_t node) { return log_predictive(dishes[dish[node]], log_base_of(node)); }

private:
    // Where a rule has its cell; -1 if it has none.
    struct CellFinder {
        std::unordered_map<uint64_t, int64_t> number_of[2];
        explicit CellFinder(const RuleRestaurants& rules) {
            for (int level = 0; level < 2; ++level) {
                for (size_t cell = 0; cell < rules.rule_of_cell[level].size(); ++cell) {
                    number_of[level][key(level, rules.rule_of_cell[level][cell])] = static_cast<int64_t>(cell);
                }
            }
        }
        static uint64_t key(int level, const RefinedRule& rule) {
            return static_cast<uint64_t>(rule.rule) << 30 | static_cast<uint64_t>(level ? 0 : rule.own) << 20
                | static_cast<uint64_t>(rule.left) << 10 | static_cast<uint64_t>(rule.right);
        }
        int64_t operator()(Level level, const RefinedRule& rule) const {
            const int number = static_cast<int>(level);
            const auto found = number_of[number].find(key(number, rule));
            return found == number_of[number].end() ? -1 : found->second;
        }
    };

    // Where values of a tree's nodes begin in arrays with one value per subcategory.
    std::vector<int32_t> offset_;
    int32_t largest_ = 1, longest_ = 0;
    std::vector<int32_t> part_;   // per node: the part below it, while naming
    std::vector<int32_t> free_dishes_;
    std::vector<SrMove> journal_;
    std::vector<RefinedTable> graves_;   // tables that were removed since the journal began
    // The fragment at work: its nodes level by level, and values of its internal nodes' subcategories.
    std::vector<int32_t> fragment_;
    std::vector<double> vectors_;
    std::vector<double> one_left_, one_right_;
    std::vector<RefinedRule> list_;
    // The inside pass.
    std::vector<double> inside_, base_, mixed_;
    std::vector<int32_t> match_begin_, match_end_, match_;
    std::vector<double> value_;
    std::vector<int64_t> stamp_;   // when a part was last found on the right
    int64_t now_ = 0;
    std::vector<double> stamp_value_;
    // What was there before a proposal, and the proposal.
    std::vector<uint8_t> old_site_, new_site_;
    std::vector<int32_t> old_symbol_, new_symbol_, old_dish_;

    struct Waiting {
        int32_t node;
        int32_t way;   // the number of a part, or how else the node goes on
        int32_t own;
    };
    static constexpr int32_t SITE = -1, BASE = -2;
    std::vector<Waiting> waiting_;

    int32_t own_of(int32_t one) const { return one - rules.first_symbol[symbol_label[one]]; }

    void forget_journal() {
        journal_.clear();
        graves_.clear();
    }

    // ---- parts and dishes -------------------------------------------------------------------------------------------

    // The part below a node, whose children have theirs; and its dish if it is a site.
    void name_node(int32_t node) {
        int32_t codes[2] = {NO_CHILD, NO_CHILD};
        const int32_t children[2] = {left[node], right[node]};
        for (int side = 0; side < 2; ++side) {
            if (children[side] < 0) continue;
            codes[side] = is_site[children[side]] ? frontier_code(symbol[children[side]]) : part_[children[side]];
        }
        part_[node] = store.intern(rule[node], codes[0], codes[1]);
        dish[node] = is_site[node] ? intern_dish(part_[node], symbol[node]) : -1;
    }

    int32_t find_dish(const Part& part, int32_t root) const {
        for (const auto& entry : part.dishes) {
            if (entry.first == root) return entry.second;
        }
        return -1;
    }

    int32_t intern_dish(int32_t part, int32_t root) {
        int32_t number = find_dish(store.parts[part], root);
        if (number >= 0) return number;
        if (free_dishes_.empty()) {
            number = static_cast<int32_t>(dishes.size());
            dishes.emplace_back();
        } else {
            number = free_dishes_.back();
            free_dishes_.pop_back();
        }
        dishes[number].part = part;
        dishes[number].symbol = root;
        store.parts[part].dishes.emplace_back(root, number);
        ++store.parts[part].n_uses;
        return number;
    }

    // Remove a dish that nobody orders, and its part.
    void release_dish(int32_t number) {
        const int32_t part = dishes[number].part;
        if (part < 0 || dishes[number].tables.n_customers) return;
        auto& list = store.parts[part].dishes;
        for (auto& entry : list) {
            if (entry.second != number) continue;
            entry = list.back();
            list.pop_back();
            break;
        }
        --store.parts[part].n_uses;
        store.release(part);
        dishes[number] = Dish();
        free_dishes_.push_back(number);
    }

    // The refined rules of a dish, its root's first, with these subcategories of its internal nodes.
    void rules_of(const Dish& one, const int16_t* refinement, std::vector<RefinedRule>& list) const {
        list.clear();
        std::vector<std::pair<int32_t, int32_t>> parts(1, std::make_pair(one.part, own_of(one.symbol)));
        for (size_t item = 0; item < parts.size(); ++item) {
            const Part& part = store.parts[parts[item].first];
            int32_t own[2] = {0, 0};
            const int32_t codes[2] = {part.left, part.right};
            for (int side = 0; side < 2; ++side) {
                if (codes[side] == NO_CHILD) continue;
                if (is_frontier(codes[side])) {
                    own[side] = own_of(frontier_symbol(codes[side]));
                } else {
                    own[side] = *refinement++;
                    parts.emplace_back(codes[side], own[side]);
                }
            }
            list.push_back({part.rule, parts[item].second, own[0], own[1]});
        }
    }

    // ---- the fragment at a site -----------------------------------------------------------------------------------------

    void collect(int32_t root) {
        fragment_.assign(1, root);
        for (size_t item = 0; item < fragment_.size(); ++item) {
            const int32_t children[2] = {left[fragment_[item]], right[fragment_[item]]};
            for (const int32_t child : children) {
                if (child >= 0 && !is_site[child]) fragment_.push_back(child);
            }
        }
    }

    // Values of the subcategories of a node's child: those of `vectors_`, or the one that a site has.
    const double* child_values(int32_t child, std::vector<double>& one) const {
        if (child >= 0 && !is_site[child]) return &vectors_[offset_[child]];
        one[child < 0 ? 0 : own_of(symbol[child])] = 1.0;
        return one.data();
    }

    void clear_child(int32_t child, std::vector<double>& one) const {
        if (child < 0) {
            one[0] = 0.0;
        } else if (is_site[child]) {
            one[own_of(symbol[child])] = 0.0;
        }
    }

    RefinedRule plain_rule(int32_t node) const {
        return {rule[node], own_of(symbol[node]), left[node] < 0 ? 0 : own_of(symbol[left[node]]),
                right[node] < 0 ? 0 : own_of(symbol[right[node]])};
    }

    // log P(e | x_k) of the fragment below a site; leaves its nodes in `fragment_` and their values in `vectors_`.
    double log_base_of(int32_t root) {
        collect(root);
        double result = 0.0;
        for (size_t item = fragment_.size(); item-- > 0;) {
            const int32_t node = fragment_[item];
            const int32_t children[2] = {left[node], right[node]};
            for (const int32_t child : children) {
                if (child >= 0) result += is_site[child] ? log_stop[label[child]] : log_go[label[child]];
            }
            if (fragment_.size() == 1) return result + std::log(rules.probability(plain_rule(node)));
            const double* left_values = child_values(left[node], one_left_);
            const double* right_values = child_values(right[node], one_right_);
            if (item == 0) {
                result += std::log(rules.sum(rule[node], own_of(symbol[node]), left_values, right_values));
            } else {
                double* own = &vectors_[offset_[node]];
                const int32_t n_own = rules.n_subcategories(label[node]);
                rules.sums(rule[node], left_values, right_values, own);
                const double largest = *std::max_element(own, own + n_own);
                for (int32_t number = 0; number < n_own; ++number) own[number] /= largest;
                result += std::log(largest);
            }
            clear_child(left[node], one_left_);
            clear_child(right[node], one_right_);
        }
        return result;
    }

    // Draw a refinement of the fragment that `log_base_of` has just described.
    void draw_refinement(std::vector<int16_t>& refinement, Stream& own) {
        refinement.clear();
        for (size_t item = 0; item < fragment_.size(); ++item) {
            const int32_t node = fragment_[item];
            const bool goes_left = left[node] >= 0 && !is_site[left[node]], goes_right = right[node] >= 0 && !is_site[right[node]];
            if (!goes_left && !goes_right) continue;
            // Refinements come in the order of `fragment_`, without its root.
            RefinedRule drawn = {rule[node], item ? refinement[item - 1] : own_of(symbol[node]), 0, 0};
            const double* left_values = child_values(left[node], one_left_);
            const double* right_values = child_values(right[node], one_right_);
            rules.draw(drawn, left_values, right_values, own);
            clear_child(left[node], one_left_);
            clear_child(right[node], one_right_);
            if (goes_left) refinement.push_back(static_cast<int16_t>(drawn.left));
            if (goes_right) refinement.push_back(static_cast<int16_t>(drawn.right));
        }
    }

    double log_predictive(const Dish& one, double log_base) const {
        const House& house = dish_houses[one.symbol];
        const double from_base = std::log(house.new_weight()) + log_base;
        if (one.tables.n_customers == 0) return from_base - std::log(house.denominator());
        return std::log(house.old_weight(one.tables) + std::exp(from_base)) - std::log(house.denominator());
    }

    // ---- seating ----------------------------------------------------------------------------------------------------------

    // Seat the customer of a site. Returns the log of the ratio of the probability of the seats to that of drawing them:
    // the predictive probability, and where a table opens, that of its rules one after the other against all at once.
    double seat(int32_t node, Stream& own, bool annotate) {
        const double log_base = log_base_of(node);
        Dish& one = dishes[dish[node]];
        House& house = dish_houses[one.symbol];
        double result = log_predictive(one, log_base);
        const double old_part = one.tables.n_customers ? house.old_weight(one.tables) : 0.0;
        const double new_part = house.new_weight() * std::exp(log_base);
        const bool joins = one.tables.n_customers && own.uniform() * (old_part + new_part) < old_part;
        const bool refined = fragment_.size() > 1;
        int32_t size = 0, table = -1;
        if (joins && refined) {
            double target = own.uniform() * old_part;
            for (table = 0; table + 1 < static_cast<int32_t>(one.refined.size()); ++table) {
                if ((target -= one.refined[table].size - house.discount) < 0.0) break;
            }
            size = one.refined[table].size++;
        } else if (joins) {
            size = one.tables.draw_table(own, house.discount);
        } else if (refined) {
            table = static_cast<int32_t>(one.refined.size());
            one.refined.emplace_back();
            one.refined.back().size = 1;
            draw_refinement(one.refined.back().refinement, own);
        }
        house.grow(one.tables, size);
        journal_.push_back({Level::kDish, true, dish[node], size, &house, table});
        if (annotate && refined) {
            for (size_t item = 1; item < fragment_.size(); ++item) {
                symbol[fragment_[item]] = rules.first_symbol[label[fragment_[item]]] + one.refined[table].refinement[item - 1];
            }
        }
        if (joins) return result;
        if (!refined) {
            rules.seat(plain_rule(node), own, journal_);
            return result;
        }
        rules_of(one, one.refined[table].refinement.data(), list_);
        for (const RefinedRule& each : list_) result -= std::log(rules.probability(each));
        for (const RefinedRule& each : list_) result += std::log(rules.seat(each, own, journal_));
        return result;
    }

    // Unseat the customer of a site; returns what `seat` would return for the same seats.
    double unseat(int32_t node, Stream& own) {
        Dish& one = dishes[dish[node]];
        House& house = dish_houses[one.symbol];
        const bool refined = has_internal(one);
        int32_t size, table = -1;
        double result = 0.0;
        if (refined) {
            int64_t target = static_cast<int64_t>(own.below(static_cast<uint64_t>(one.tables.n_customers)));
            for (table = 0; table + 1 < static_cast<int32_t>(one.refined.size()); ++table) {
                if ((target -= one.refined[table].size) < 0) break;
            }
            size = one.refined[table].size--;
        } else {
            size = one.tables.draw_customer(own);
        }
        house.shrink(one.tables, size);
        journal_.push_back({Level::kDish, false, dish[node], size, &house, table});
        if (size == 1 && !refined) {
            rules.unseat(plain_rule(node), own, journal_);
        } else if (size == 1) {
            rules_of(one, one.refined[table].refinement.data(), list_);
            std::swap(one.refined[table], one.refined.back());
            graves_.push_back(std::move(one.refined.back()));
            one.refined.pop_back();
            for (size_t item = list_.size(); item-- > 0;) result += std::log(rules.unseat(list_[item], own, journal_));
            for (const RefinedRule& each : list_) result -= std::log(rules.probability(each));
        }
        return result + log_predictive(one, log_base_of(node));
    }

    // Take everything back that the journal tells, the last move first.
    void undo() {
        for (size_t item = journal_.size(); item-- > 0;) {
            const SrMove& move = journal_[item];
            if (move.level != Level::kDish) {
                rules.take_back(move);
                continue;
            }
            Dish& one = dishes[move.cell];
            if (move.grew) {
                move.house->shrink(one.tables, move.size + 1);
                if (move.table >= 0 && --one.refined[move.table].size == 0) one.refined.pop_back();
            } else {
                move.house->grow(one.tables, move.size - 1);
                if (move.table < 0) continue;
                if (move.size == 1) {
                    one.refined.push_back(std::move(graves_.back()));
                    graves_.pop_back();
                    std::swap(one.refined[move.table], one.refined.back());
                }
                ++one.refined[move.table].size;
            }
        }
        forget_journal();
    }

    // ---- whole trees ------------------------------------------------------------------------------------------------------

    double cached_weight(const Dish& one) const {
        const House& house = dish_houses[one.symbol];
        return one.tables.n_customers ? house.old_weight(one.tables) / house.denominator() : 0.0;
    }

    // Which subcategories of a node may be those of a site.
    std::pair<int32_t, int32_t> allowed(int64_t node, bool joint) const {
        if (joint) return {0, rules.n_subcategories(label[node])};
        const int32_t own = own_of(symbol[node]);
        return {own, own + 1};
    }

    void inside(int64_t tree, bool joint) {
        const int64_t first = tree_start[tree], n_own_nodes = tree_start[tree + 1] - first;
        inside_.assign(longest_, 0.0);
        base_.resize(longest_);
        mixed_.resize(longest_);
        match_begin_.resize(n_own_nodes);
        match_end_.resize(n_own_nodes);
        match_.clear();
        value_.clear();
        stamp_.resize(store.parts.size(), 0);
        stamp_value_.resize(store.parts.size(), 0.0);
        const double one = 1.0;
        for (int64_t node = tree_start[tree + 1]; node-- > first;) {
            const int64_t place = node - first;
            const int32_t n_own = rules.n_subcategories(label[node]), start = offset_[node];
            rules.sums(rule[node], left[node] < 0 ? &one : &mixed_[offset_[left[node]]],
                       right[node] < 0 ? &one : &mixed_[offset_[right[node]]], &base_[start]);
            match_begin_[place] = static_cast<int32_t>(match_.size());
            find_matches(first, node, joint);
            match_end_[place] = static_cast<int32_t>(match_.size());
            const auto range = allowed(node, joint);
            const int32_t first_own = rules.first_symbol[label[node]];
            for (int32_t own = range.first; own < range.second; ++own) {
                const House& house = dish_houses[first_own + own];
                inside_[start + own] = house.new_weight() / house.denominator() * base_[start + own];
            }
            for (int32_t item = match_begin_[place]; item < match_end_[place]; ++item) {
                for (const auto& entry : store.parts[match_[item]].dishes) {
                    const int32_t own = entry.first - first_own;
                    if (own < range.first || own >= range.second) continue;
                    inside_[start + own] += cached_weight(dishes[entry.second]) * value_[item];
                }
            }
            const double scale = 1.0 / *std::max_element(&inside_[start], &inside_[start] + n_own);
            const double stops = stop[label[node]];
            for (int32_t own = 0; own < n_own; ++own) {
                inside_[start + own] *= scale;
                base_[start + own] *= scale;
                mixed_[start + own] = stops * inside_[start + own] + (1.0 - stops) * base_[start + own];
            }
            for (int32_t item = match_begin_[place]; item < match_end_[place]; ++item) value_[item] *= scale;
        }
    }

    void add_match(int32_t number, double value) {
        if (number < 0 || value <= 0.0) return;
        match_.push_back(number);
        value_.push_back(value);
    }

    // All stored parts with the rule at a node that match below it, and their S(v).
    void find_matches(int64_t first, int64_t node, bool joint) {
        const int32_t l = left[node], r = right[node], own_rule = rule[node];
        if (l < 0) {
            for (const int32_t number : store.plain[own_rule]) add_match(number, 1.0);
            return;
        }
        const auto left_range = allowed(l, joint), right_range = r < 0 ? std::make_pair(0, 1) : allowed(r, joint);
        const int32_t left_first = rules.first_symbol[label[l]], right_first = r < 0 ? 0 : rules.first_symbol[label[r]];
        const double one = 1.0;
        const double* left_inside = &inside_[offset_[l]];
        const double* right_inside = r < 0 ? &one : &inside_[offset_[r]];
        // Frontiers only.
        const auto right_code = [&](int32_t own) { return r < 0 ? NO_CHILD : frontier_code(right_first + own); };
        if (joint) {
            for (const int32_t number : store.plain[own_rule]) {
                const Part& part = store.parts[number];
                const double right_value = r < 0 ? 1.0 : right_inside[frontier_symbol(part.right) - right_first];
                add_match(number, left_inside[frontier_symbol(part.left) - left_first] * right_value);
            }
        } else {
            const int32_t number = store.find(own_rule, frontier_code(left_first + left_range.first), right_code(right_range.first));
            add_match(number, left_inside[left_range.first] * right_inside[right_range.first]);
        }
        const int32_t left_begin = match_begin_[l - first], left_end = match_end_[l - first];
        const int32_t right_begin = r < 0 ? 0 : match_begin_[r - first], right_end = r < 0 ? 0 : match_end_[r - first];
        ++now_;
        for (int32_t item = right_begin; item < right_end; ++item) {
            stamp_[match_[item]] = now_;
            stamp_value_[match_[item]] = value_[item];
        }
        // A part on the left.
        const size_t n_right = right_range.second - right_range.first + right_end - right_begin;
        for (int32_t item = left_begin; item < left_end; ++item) {
            const int32_t below = match_[item];
            const std::vector<int32_t>& above = store.parts[below].above_left;
            if (above.empty()) continue;
            const double left_value = value_[item];
            if (above.size() <= n_right) {
                for (const int32_t number : above) {
                    const Part& part = store.parts[number];
                    if (part.rule != own_rule) continue;
                    double right_value = 1.0;
                    if (part.right >= 0) {
                        right_value = stamp_[part.right] == now_ ? stamp_value_[part.right] : 0.0;
                    } else if (part.right != NO_CHILD) {
                        right_value = right_inside[frontier_symbol(part.right) - right_first];
                    }
                    add_match(number, left_value * right_value);
                }
                continue;
            }
            for (int32_t own = right_range.first; own < right_range.second; ++own) {
                add_match(store.find(own_rule, below, right_code(own)), left_value * right_inside[own]);
            }
            for (int32_t other = right_begin; other < right_end; ++other) {
                if (store.parts[match_[other]].n_above_right == 0) continue;
                add_match(store.find(own_rule, below, match_[other]), left_value * value_[other]);
            }
        }
        // A frontier on the left, a part on the right.
        for (int32_t item = right_begin; item < right_end; ++item) {
            const int32_t below = match_[item];
            const std::vector<int32_t>& above = store.parts[below].above_right;
            const double right_value = value_[item];
            if (above.size() <= static_cast<size_t>(left_range.second - left_range.first)) {
                for (const int32_t number : above) {
                    const Part& part = store.parts[number];
                    if (part.rule != own_rule) continue;
                    add_match(number, left_inside[frontier_symbol(part.left) - left_first] * right_value);
                }
                continue;
            }
            for (int32_t own = left_range.first; own < left_range.second; ++own) {
                add_match(store.find(own_rule, frontier_code(left_first + own), below), left_inside[own] * right_value);
            }
        }
    }

    // Draw sites and their symbols from the inside pass into `new_site_` and `new_symbol_`.
    void draw(int64_t tree, Stream& own) {
        const int64_t first = tree_start[tree];
        new_site_.assign(tree_start[tree + 1] - first, 0);
        new_symbol_.assign(symbol.begin() + first, symbol.begin() + tree_start[tree + 1]);
        waiting_.assign(1, {static_cast<int32_t>(first), SITE, own_of(symbol[first])});
        const double one = 1.0;
        while (!waiting_.empty()) {
            const Waiting next = waiting_.back();
            waiting_.pop_back();
            const int32_t node = next.node;
            const int64_t place = node - first;
            int32_t way = next.way;
            if (way == SITE) {
                const int32_t root = rules.first_symbol[label[node]] + next.own;
                new_site_[place] = 1;
                new_symbol_[place] = root;
                way = BASE;
                double target = own.uniform() * inside_[offset_[node] + next.own];
                for (int32_t item = match_begin_[place]; item < match_end_[place]; ++item) {
                    const int32_t number = find_dish(store.parts[match_[item]], root);
                    if (number < 0) continue;
                    target -= cached_weight(dishes[number]) * value_[item];
                    if (target < 0.0) {
                        way = match_[item];
                        break;
                    }
                }
            }
            if (left[node] < 0) continue;
            const int32_t children[2] = {left[node], right[node]};
            if (way == BASE) {
                RefinedRule drawn = {rule[node], next.own, 0, 0};
                rules.draw(drawn, &mixed_[offset_[left[node]]], right[node] < 0 ? &one : &mixed_[offset_[right[node]]], own);
                const int32_t owns[2] = {drawn.left, drawn.right};
                for (int side = 0; side < 2; ++side) {
                    if (children[side] < 0) continue;
                    const int32_t at = offset_[children[side]] + owns[side];
                    const double stops = stop[label[children[side]]] * inside_[at];
                    const bool is_end = own.uniform() * mixed_[at] < stops;
                    waiting_.push_back({children[side], is_end ? SITE : BASE, owns[side]});
                }
                continue;
            }
            const int32_t codes[2] = {store.parts[way].left, store.parts[way].right};
            for (int side = 0; side < 2; ++side) {
                if (children[side] < 0) continue;
                if (is_frontier(codes[side])) {
                    waiting_.push_back({children[side], SITE, own_of(frontier_symbol(codes[side]))});
                } else {
                    waiting_.push_back({children[side], codes[side], 0});
                }
            }
        }
    }

    // The sum over the sites of a tree, but for those with the same dish in `other`, of the log weight of their
    // fragments in the frozen grammar.
    double log_weight(int64_t tree, const std::vector<int32_t>& other) {
        double result = 0.0;
        const int64_t first = tree_start[tree];
        for (int64_t node = first; node < tree_start[tree + 1]; ++node) {
            if (is_site[node] && dish[node] != other[node - first]) result += log_predictive_at(static_cast<int32_t>(node));
        }
        return result;
    }

    void swap_state(int64_t tree, std::vector<uint8_t>& sites, std::vector<int32_t>& symbols, std::vector<int32_t>& numbers) {
        const int64_t first = tree_start[tree];
        std::swap_ranges(sites.begin(), sites.end(), is_site.begin() + first);
        std::swap_ranges(symbols.begin(), symbols.end(), symbol.begin() + first);
        std::swap_ranges(numbers.begin(), numbers.end(), dish.begin() + first);
    }

    void resample_tree(int64_t tree, bool joint, Stream& own, SweepCounts& counts) {
        const int64_t first = tree_start[tree], end = tree_start[tree + 1];
        forget_journal();
        double log_ratio = 0.0;
        for (int64_t node = end; node-- > first;) {
            if (is_site[node]) log_ratio -= unseat(static_cast<int32_t>(node), own);
        }
        inside(tree, joint);
        draw(tree, own);
        old_site_ = new_site_;
        old_symbol_ = new_symbol_;
        old_dish_.assign(end - first, -1);
        swap_state(tree, old_site_, old_symbol_, old_dish_);   // old_... have what was there from now on
        part_.resize(label.size());
        for (int64_t node = end; node-- > first;) name_node(static_cast<int32_t>(node));
        log_ratio -= log_weight(tree, old_dish_);
        const std::vector<int32_t> new_dish(dish.begin() + first, dish.begin() + end);
        swap_state(tree, old_site_, old_symbol_, old_dish_);
        log_ratio += log_weight(tree, new_dish);
        swap_state(tree, old_site_, old_symbol_, old_dish_);
        for (int64_t node = first; node < end; ++node) {
            if (is_site[node]) log_ratio += seat(static_cast<int32_t>(node), own, joint);
        }
        ++counts.n_proposed;
        const bool accepted = log_ratio >= 0.0 || own.uniform() < std::exp(log_ratio);
        if (accepted) {
            ++counts.n_accepted;
            counts.n_changed += old_dish_ != new_dish;
            forget_journal();
        } else {
            undo();
            swap_state(tree, old_site_, old_symbol_, old_dish_);
        }
        for (int64_t node = 0; node < end - first; ++node) {
            if (old_dish_[node] >= 0) release_dish(old_dish_[node]);
        }
    }

    // ---- single sites -----------------------------------------------------------------------------------------------------

    // Parts and a dish for the fragment below a site.
    void name_fragment(int32_t root) {
        collect(root);
        for (size_t item = fragment_.size(); item-- > 0;) name_node(fragment_[item]);
    }

    // Choose whether a node is a site by frozen counts, seat, and test.
    void resample_site(int32_t node, Stream& own, SweepCounts& counts) {
        int32_t root = parent[node];
        while (!is_site[root]) root = parent[root];
        forget_journal();
        part_.resize(label.size());
        const bool was_site = is_site[node];
        const int32_t old_upper = dish[root], old_lower = dish[node];
        double log_ratio = 0.0;
        if (was_site) log_ratio -= unseat(node, own);
        log_ratio -= unseat(root, own);
        double log_weights[2];
        int32_t uppers[2], lower = -1;
        for (int cut = 0; cut < 2; ++cut) {
            is_site[node] = cut;
            name_fragment(root);
            uppers[cut] = dish[root];
            log_weights[cut] = log_predictive_at(root);
            if (!cut) continue;
            name_fragment(node);
            lower = dish[node];
            log_weights[cut] += log_predictive_at(node);
        }
        const bool now_site = own.uniform() * (1.0 + std::exp(log_weights[1] - log_weights[0])) >= 1.0;
        is_site[node] = now_site;
        dish[root] = uppers[now_site];
        dish[node] = now_site ? lower : -1;
        log_ratio += log_weights[was_site] - log_weights[now_site];
        log_ratio += seat(root, own, false);
        if (now_site) log_ratio += seat(node, own, false);
        ++counts.n_proposed;
        if (log_ratio >= 0.0 || own.uniform() < std::exp(log_ratio)) {
            ++counts.n_accepted;
            counts.n_changed += now_site != was_site;
            forget_journal();
        } else {
            undo();
            is_site[node] = was_site;
            dish[root] = old_upper;
            dish[node] = old_lower;
        }
        for (const int32_t number : {old_upper, old_lower, uppers[0], uppers[1], lower}) {
            if (number >= 0) release_dish(number);
        }
    }
};

}  // namespace tsgkit
