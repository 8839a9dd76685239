"""Deliberate faults in kernels and samplers, each of which the quick tests must notice.

A fault is a text that stands exactly once in a file, what to put in its place, the compiled modules to build with it,
and the tests that should fail then.
"""

from typing import NamedTuple


class Fault(NamedTuple):
    """One change to one file, and who should notice."""

    name: str
    path: str
    old: str
    new: str
    modules: str
    tests: str


RESTAURANT = "ext/tsgkit/_restaurant.pxd"
HYPERPARAMETERS = "ext/tsgkit/_restaurant.pyx"
STORE = "ext/tsgkit/fragments.hpp"
TSG = "ext/tsgkit/tsg_sampler.hpp"
SR = "ext/tsgkit/sr_sampler.hpp"
SR_RULES = "ext/tsgkit/sr_rules.hpp"
REFINED_PARAMETERS = "ext/tsgkit/_refined_parameters.pyx"
CHART = "ext/tsgkit/_chart.pyx"
CELLS = "ext/tsgkit/_chart_cells.pxd"
SEMIRING = "ext/tsgkit/_semiring.pxd"
BINARY_RULES = "ext/tsgkit/_binary_rules.pxd"
INSIDE = "ext/tsgkit/_inside.pyx"
OUTSIDE = "ext/tsgkit/_outside.pyx"
PRUNING = "ext/tsgkit/_pruning.pyx"
DERIVATIONS = "ext/tsgkit/_derivations.pyx"
POSTERIORS = "ext/tsgkit/_posteriors.pyx"
TREE_SCORE = "ext/tsgkit/_tree_score.pyx"
VECTORS = "ext/tsgkit/vector_kernels.hpp"
SCORER = "ext/tsgkit/_brackets.pyx"
BRACKET_TREES = "ext/tsgkit/_bracket_trees.pyx"
BRACKET_MATCHING = "ext/tsgkit/_bracket_matching.pyx"

RESTAURANT_TESTS = "tests/models/test_restaurant.py"
TSG_TESTS = "tests/models/test_tsg_sampler.py"
INSERTION_TESTS = "tests/models/test_insertion_sampler.py"
SR_TESTS = "tests/models/test_sr_sampler.py"
SITE_TESTS = "tests/models/test_sr_sites.py"
CHART_TESTS = "tests/parsing/test_chart.py"
DERIVATION_TESTS = "tests/parsing/test_derivations.py"
FOREST_TESTS = "tests/parsing/test_forest.py"
TREE_SCORE_TESTS = "tests/parsing/test_tree_score.py"
EVALB_TESTS = "tests/evaluation/test_oracle.py tests/evaluation/test_quirks.py tests/evaluation/test_evalb.py"
SCORER_TESTS = "tests/evaluation/test_scorer.py"

FAULTS = [
    # ---- restaurants
    Fault(
        "sign of the discount",
        RESTAURANT,
        "return tables.n_customers - restaurant.discount * tables.n_tables",
        "return tables.n_customers + restaurant.discount * tables.n_tables",
        "_restaurant",
        RESTAURANT_TESTS,
    ),
    Fault(
        "new table without the tables there are",
        RESTAURANT,
        "return restaurant.strength + restaurant.discount * <double>restaurant.n_tables",
        "return restaurant.strength + restaurant.discount",
        "_restaurant",
        RESTAURANT_TESTS,
    ),
    Fault(
        "denominator of tables instead of customers",
        RESTAURANT,
        "return restaurant.strength + <double>restaurant.n_customers",
        "return restaurant.strength + <double>restaurant.n_tables",
        "_restaurant",
        RESTAURANT_TESTS,
    ),
    Fault(
        "a table that empties stays",
        RESTAURANT,
        "restaurant.n_tables -= size == 1",
        "restaurant.n_tables -= size == 0",
        "_restaurant",
        RESTAURANT_TESTS,
    ),
    Fault(
        "tables drawn without the discount",
        RESTAURANT,
        "target -= (tables.by_size[position].size - discount) * tables.by_size[position].n_tables",
        "target -= tables.by_size[position].size * tables.by_size[position].n_tables",
        "_restaurant",
        RESTAURANT_TESTS,
    ),
    Fault(
        "customers drawn by table",
        RESTAURANT,
        "target -= <int64_t>tables.by_size[position].size * tables.by_size[position].n_tables",
        "target -= tables.by_size[position].n_tables",
        "_restaurant",
        RESTAURANT_TESTS,
    ),
    Fault(
        "seating counts one table too many",
        HYPERPARAMETERS,
        "for table in range(1, restaurant.n_tables):\n            result +=",
        "for table in range(1, restaurant.n_tables + 1):\n            result +=",
        "_restaurant",
        RESTAURANT_TESTS,
    ),
    Fault(
        "discount and strength from each other's draws",
        HYPERPARAMETERS,
        "            sums.ones_y += 1.0\n        else:\n            sums.zeros_y += 1.0",
        "            sums.zeros_y += 1.0\n        else:\n            sums.ones_y += 1.0",
        "_restaurant",
        RESTAURANT_TESTS,
    ),
    # ---- tree-substitution grammars
    Fault(
        "fragments with swapped children",
        TSG,
        "return {part_of(first, node, 0, choice), part_of(first, node, 1, choice)};",
        "return {part_of(first, node, 1, choice), part_of(first, node, 0, choice)};",
        "_tsg",
        TSG_TESTS,
    ),
    Fault(
        "stopping for going on in the base",
        TSG,
        "base *= is_site ? stops : (1.0 - stops) * choice.base[below_insertions(first, below - first, choice)];",
        "base *= is_site ? 1.0 - stops : stops * choice.base[below_insertions(first, below - first, choice)];",
        "_tsg",
        TSG_TESTS,
    ),
    Fault(
        "Metropolis-Hastings ratio upside down",
        TSG,
        "/ temperature + proposal.log_before - proposal.log_after;",
        "/ temperature - proposal.log_before + proposal.log_after;",
        "_tsg",
        TSG_TESTS,
    ),
    Fault(
        "every proposal accepted",
        TSG,
        "if (log_ratio >= 0.0 || own.uniform() < std::exp(log_ratio)) {\n            ++counts.n_accepted;\n            counts.n_changed += before.state",
        "if (true) {\n            ++counts.n_accepted;\n            counts.n_changed += before.state",
        "_tsg",
        TSG_TESTS,
    ),
    Fault(
        "a rejected tree is not unseated",
        TSG,
        "        take_back_seats(new_seats_);\n        take_back_unseats(old_seats_);\n        std::copy(before.state",
        "        take_back_unseats(old_seats_);\n        std::copy(before.state",
        "_tsg",
        TSG_TESTS,
    ),
    Fault(
        "a refused tree keeps its proposal's dishes",
        TSG,
        "        std::copy(before.number.begin(), before.number.end(), dish.begin() + first);\n",
        "",
        "_tsg",
        TSG_TESTS,
    ),
    Fault(
        "frontier and internal nodes exchanged in the posterior of stopping",
        TSG,
        "set_stop(symbol, own.beta(1.0 + sums.frontier[symbol], 1.0 + sums.internal[symbol]));",
        "set_stop(symbol, own.beta(1.0 + sums.internal[symbol], 1.0 + sums.frontier[symbol]));",
        "_tsg",
        TSG_TESTS,
    ),
    Fault(
        "inside value without the base",
        TSG,
        "double total = to_base * base;",
        "double total = 0.5 * to_base * base;",
        "_tsg",
        TSG_TESTS,
    ),
    Fault(
        "a fragment in use is removed",
        STORE,
        "return fragment.tables.n_customers || fragment.n_above_left || fragment.n_above_right;",
        "return fragment.tables.n_customers || fragment.n_above_left;",
        "_tsg",
        TSG_TESTS,
    ),
    Fault(
        "uses of a part not counted down",
        STORE,
        "                --fragments[fragment.right].n_above_right;\n",
        "",
        "_tsg",
        TSG_TESTS,
    ),
    # ---- insertion
    Fault(
        "foot on the other side",
        TSG,
        "if (choice.state[node] == kLeftFoot + side) return FOOT;",
        "if (choice.state[node] == kLeftFoot + 1 - side) return FOOT;",
        "_tsg",
        INSERTION_TESTS,
    ),
    Fault(
        "no insertion at the foot counted twice",
        TSG,
        "if (!is_stacked) result -= log_no_insert[symbol];   // the foot's",
        "",
        "_tsg",
        INSERTION_TESTS,
    ),
    Fault(
        "auxiliary trees in the restaurant of initial trees",
        TSG,
        "return label[node] + (value >= kLeftFoot ? static_cast<int32_t>(n_labels()) : 0);",
        "return label[node];",
        "_tsg",
        INSERTION_TESTS,
    ),
    # ---- subcategories
    Fault(
        "refined rule without its share of the base",
        SR,
        "return (house.old_weight(rule_cells[block.first + index]) + house.new_weight() * base_probability(block, index))",
        "return (house.old_weight(rule_cells[block.first + index]) + base_probability(block, index))",
        "_sr",
        SR_TESTS,
    ),
    Fault(
        "the base restaurant is not told of a table that is gone",
        SR,
        "            } else if (levels >= 3) {\n                leave(",
        "            } else if (levels > 3) {\n                leave(",
        "_sr",
        SR_TESTS,
    ),
    Fault(
        "inside values of swapped children",
        SR,
        "{l[0] * r[0], l[0] * r[1], l[1] * r[0], l[1] * r[1]}",
        "{l[0] * r[0], l[1] * r[0], l[0] * r[1], l[1] * r[1]}",
        "_sr",
        SR_TESTS,
    ),
    Fault(
        "outside values without the sibling",
        SR,
        "outside[2 * children[0] + l] += value * inside_[2 * children[1] + r];",
        "outside[2 * children[0] + l] += value;",
        "_sr",
        SR_TESTS,
    ),
    Fault(
        "word base once per customer",
        SR,
        "result += word_cells[block.base_first].n_tables * std::log(class_word_base[block.word_class]);",
        "result += word_cells[block.base_first].n_customers * std::log(class_word_base[block.word_class]);",
        "_sr",
        SR_TESTS,
    ),
    # ---- sites on refined trees
    Fault(
        "sum of refined rules without their denominator",
        SR_RULES,
        "return (result + from.new_weight() * base) / from.denominator();",
        "return (result + from.new_weight() * base) / (from.denominator() + 1.0);",
        "_sr_sites",
        SITE_TESTS,
    ),
    Fault(
        "children's values exchanged in the sum",
        SR_RULES,
        "result += from.old_weight(cells[0][cell]) * left[refined.left] * right[refined.right];",
        "result += from.old_weight(cells[0][cell]) * left[refined.right] * right[refined.left];",
        "_sr_sites",
        SITE_TESTS,
    ),
    Fault(
        "stopping of sites from the wrong counts",
        REFINED_PARAMETERS,
        "rng.beta(1.0 + totals.frontier[label], 1.0 + totals.internal[label])",
        "rng.beta(1.0 + totals.frontier[label], 1.0)",
        "_refined_parameters",
        SITE_TESTS,
    ),
    # ---- the chart
    Fault(
        "last split point left out",
        BINARY_RULES,
        "children.pair, children.first, children.n_splits = pair, first, last - first + 1",
        "children.pair, children.first, children.n_splits = pair, first, last - first",
        "_inside _outside _posteriors",
        CHART_TESTS,
    ),
    Fault("a row does not grow", CELLS, "    cells.left.high[slot] = end\n", "", "_inside", CHART_TESTS),
    Fault(
        "cycles closed by the best path in sums",
        SEMIRING,
        "    semiring.closures = grammar.cycle_sums\n",
        "    semiring.closures = grammar.cycle_best\n",
        "_inside _outside",
        CHART_TESTS,
    ),
    Fault(
        "a forbidden symbol is stored",
        INSIDE,
        "            if value > 0.0 and is_allowed(cells, cell, symbol):\n",
        "            if value > 0.0:\n",
        "_inside",
        CHART_TESTS,
    ),
    Fault(
        "a sum of outside values in the best derivation",
        SEMIRING,
        "        max_scaled(target, source, factor, n)\n",
        "        add_scaled(target, source, factor, n)\n",
        "_outside",
        CHART_TESTS,
    ),
    Fault(
        "outside values along the edges of the inside pass",
        OUTSIDE,
        "        iterate_cycle(cells, semiring, cycle, cell, &grammar.up)\n",
        "        iterate_cycle(cells, semiring, cycle, cell, &grammar.down)\n",
        "_outside",
        CHART_TESTS,
    ),
    Fault(
        "a failed allocation leaves sums behind",
        CHART,
        "            abandon_cells(&self.cells)\n",
        "            pass\n",
        "_chart",
        "tests/parsing/test_memory.py",
    ),
    Fault(
        "the share of a label is that of its last symbol",
        PRUNING,
        "                shares[label] = plus(semiring, shares[label], share)\n",
        "                shares[label] = share\n",
        "_pruning",
        CHART_TESTS,
    ),
    Fault(
        "sum for maximum in short products",
        VECTORS,
        "        const double product = left[k] * right[k];\n        best = product > best ? product : best;\n    }\n    return best;\n}\n\ninline void add_scaled",
        "        const double product = left[k] * right[k];\n        best += product;\n    }\n    return best;\n}\n\ninline void add_scaled",
        "_inside",
        CHART_TESTS,
    ),
    # ---- what is read off the chart
    Fault(
        "derivations with swapped children",
        DERIVATIONS,
        "    return node_of(choice.right, choice.split, node.end)\n",
        "    return node_of(choice.left, choice.split, node.end)\n",
        "_derivations",
        DERIVATION_TESTS,
    ),
    Fault(
        "the last choice is never drawn",
        DERIVATIONS,
        "    target = uniform(generator) * total\n",
        "    target = uniform(generator) * total * 0.5\n",
        "_derivations",
        DERIVATION_TESTS,
    ),
    Fault(
        "posterior of a unary rule without its child",
        POSTERIORS,
        "posterior = grammar.down.weight[edge] * collector.outside[symbol] * inside_of(cells, start, end, child)\n",
        "posterior = grammar.down.weight[edge] * collector.outside[symbol]\n",
        "_posteriors",
        FOREST_TESTS,
    ),
    Fault(
        "a bridge taken for a unary rule",
        TREE_SCORE,
        "                if not grammar.up.is_bridge[edge] and grammar.label[grammar.up.other[edge]] == label:\n",
        "                if grammar.label[grammar.up.other[edge]] == label:\n",
        "_tree_score",
        TREE_SCORE_TESTS,
    ),
    Fault(
        "a tree's scale forgotten",
        TREE_SCORE,
        "            log_scale[0] += log(largest)\n",
        "            log_scale[0] += 0.0\n",
        "_tree_score",
        TREE_SCORE_TESTS,
    ),
    # ---- scores
    Fault(
        "complete match without the test brackets",
        SCORER,
        "    return row.gold == row.test == row.matched\n",
        "    return row.gold == row.matched\n",
        "_brackets",
        EVALB_TESTS,
    ),
    Fault(
        "two crossings are too many",
        SCORER,
        "totals.two_or_less_crossing += row.crossing <= 2\n",
        "totals.two_or_less_crossing += row.crossing < 2\n",
        "_brackets",
        EVALB_TESTS,
    ),
    Fault(
        "scoring stops one error too late",
        SCORER,
        "        if self.n_errors > self.max_errors and self.stop_on_errors:\n",
        "        if self.n_errors > self.max_errors + 1 and self.stop_on_errors:\n",
        "_brackets",
        EVALB_TESTS,
    ),
    Fault(
        "restored quotation marks without new brackets",
        SCORER,
        "            repair_quotes(self.gold, self.test)\n            self.take_brackets()\n",
        "            repair_quotes(self.gold, self.test)\n",
        "_brackets",
        EVALB_TESTS,
    ),
    Fault(
        "percentages are rounded half up",
        SCORER,
        "            hundredths += past_half > 0 or (past_half == 0 and hundredths % 2 == 1)\n",
        "            hundredths += 1\n",
        "_brackets",
        SCORER_TESTS,
    ),
    Fault(
        "labels are cut at = only",
        BRACKET_TREES,
        'text.start[prefix.n_bytes] not in b"-=":\n',
        'text.start[prefix.n_bytes] not in b"=":\n',
        "_bracket_trees",
        EVALB_TESTS,
    ),
    Fault(
        "a label equal to a deleted one stays",
        BRACKET_TREES,
        "            self.table[label].deletes_bracket = self.is_bracket_deleted(label)\n",
        "            self.table[label].deletes_bracket = self.table[label].deletes_word\n",
        "_bracket_trees",
        EVALB_TESTS,
    ),
    Fault(
        "long labels with one key are one",
        BRACKET_TREES,
        "text.n_bytes <= N_EXACT_BYTES or same_text(label.text, text)",
        "text.n_bytes <= 1 << 30 or same_text(label.text, text)",
        "_bracket_trees",
        SCORER_TESTS,
    ),
    Fault(
        "a restored quotation mark does not move brackets",
        BRACKET_TREES,
        "            self.brackets[index].start += 1\n",
        "            self.brackets[index].start += 0\n",
        "_bracket_trees",
        EVALB_TESTS,
    ),
    Fault(
        "a matched bracket stays free",
        BRACKET_MATCHING,
        "            self.first_of_label[best] = self.next_of_label[test]\n",
        "            pass\n",
        "_bracket_matching",
        EVALB_TESTS,
    ),
    Fault(
        "brackets that end together cross",
        BRACKET_MATCHING,
        "self.ends.front() < self.test[test].end:\n",
        "self.ends.front() <= self.test[test].end:\n",
        "_bracket_matching",
        EVALB_TESTS,
    ),
    Fault(
        "matched brackets of malformed trees cannot cross",
        BRACKET_MATCHING,
        "        if not self.is_valid:\n",
        "        if False:\n",
        "_bracket_matching",
        EVALB_TESTS,
    ),
]
