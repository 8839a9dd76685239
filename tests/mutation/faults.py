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
INLINE_VECTOR = "ext/tsgkit/inline_vector.hpp"
FRAGMENTS = "ext/tsgkit/_fragments.pxd"
FRAGMENT_TABLE = "ext/tsgkit/_fragments.pyx"
TSG = "ext/tsgkit/_tsg_state.pxd"
TSG_TREES = "ext/tsgkit/_tsg_state.pyx"
TSG_INSIDE = "ext/tsgkit/_tsg_inside.pyx"
TSG_BLOCKED = "ext/tsgkit/_tsg_blocked.pyx"
TSG_PATHS = "ext/tsgkit/_tsg_paths.pyx"
TSG_PARAMETERS = "ext/tsgkit/_tsg_parameters.pyx"
BACK_OFF = "ext/tsgkit/_backoff.pxd"
REFINED_RULES = "ext/tsgkit/_refined_rules.pyx"
RULE_LIST = "ext/tsgkit/_rule_list.pxd"
REFINED_SEATING = "ext/tsgkit/_refined_seating.pyx"
REFINED_BLOCKED = "ext/tsgkit/_refined_blocked.pyx"
REFINED_TRACKING = "ext/tsgkit/_refined_tracking.pyx"
SPLIT_STATE = "ext/tsgkit/_split_state.pyx"
SPLIT_SEATING = "ext/tsgkit/_split_seating.pxd"
SPLIT_TREES = "ext/tsgkit/_split_trees.pyx"
SPLIT_MOVES = "ext/tsgkit/_split_moves.pyx"
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
BACK_OFF_TESTS = "tests/models/test_back_off.py"
SPLIT_TESTS = "tests/models/test_split_sampler.py"
SITE_TESTS = "tests/models/test_sr_sites.py"
BATCH_TESTS = "tests/models/test_sr_batches.py"
CHART_TESTS = "tests/parsing/test_chart.py"
DERIVATION_TESTS = "tests/parsing/test_derivations.py"
FOREST_TESTS = "tests/parsing/test_forest.py"
OOM_TESTS = "tests/oom/test_oom.py::test_kernels"
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
        "an item is lost when a vector outgrows its inside",
        INLINE_VECTOR,
        "std::copy_n(data(), size_, items);",
        "std::copy_n(data(), size_ - 1, items);",
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
        "    parts.left = part_at(tsg, first, node, 0, derivation, &parts.left_base)\n    parts.right = part_at(tsg, first, node, 1,",
        "    parts.left = part_at(tsg, first, node, 1, derivation, &parts.left_base)\n    parts.right = part_at(tsg, first, node, 0,",
        "_tsg_state",
        TSG_TESTS,
    ),
    Fault(
        "stopping for going on in the base",
        TSG,
        "base *= tsg.stops.stop[left_label] if left == FRONTIER else (1.0 - tsg.stops.stop[left_label]) * left_base",
        "base *= 1.0 - tsg.stops.stop[left_label] if left == FRONTIER else tsg.stops.stop[left_label] * left_base",
        "_tsg_state",
        TSG_TESTS,
    ),
    Fault(
        "Metropolis-Hastings ratio upside down",
        TSG_BLOCKED,
        "/ temperature + proposal.log_before - proposal.log_after",
        "/ temperature - proposal.log_before + proposal.log_after",
        "_tsg_blocked",
        TSG_TESTS,
    ),
    Fault(
        "every proposal accepted",
        TSG_BLOCKED,
        "    if log_ratio >= 0.0 or rng.uniform() < exp(log_ratio):\n",
        "    if True:\n",
        "_tsg_blocked",
        TSG_TESTS,
    ),
    Fault(
        "a rejected tree is not rolled back",
        TSG_BLOCKED,
        "    rollback_seatings(tsg, seatings)\n    return restore_tree",
        "    return restore_tree",
        "_tsg_blocked",
        TSG_TESTS,
    ),
    Fault(
        "a rejected tree keeps its proposal's dishes",
        TSG_BLOCKED,
        "        tsg.dish[first + node] = -1\n        if state != INTERNAL:\n            tsg.dish[first + node] = proposal.before.number[node]\n",
        "",
        "_tsg_blocked",
        TSG_TESTS,
    ),
    Fault(
        "tracked tables rolled back the wrong way",
        TSG_TREES,
        "tsg.tracked.tables[last.table].size += -1 if last.is_seated else 1",
        "tsg.tracked.tables[last.table].size += 1 if last.is_seated else -1",
        "_tsg_state",
        TSG_TESTS,
    ),
    Fault(
        "frontier and internal nodes exchanged in the posterior of stopping",
        TSG_PARAMETERS,
        "rng.beta(1.0 + totals.frontier[label], 1.0 + totals.internal[label])",
        "rng.beta(1.0 + totals.internal[label], 1.0 + totals.frontier[label])",
        "_tsg_parameters",
        TSG_TESTS,
    ),
    Fault(
        "inside value without the base",
        TSG_INSIDE,
        "        total = base_weight(restaurant) * base\n",
        "        total = 0.5 * base_weight(restaurant) * base\n",
        "_tsg_inside",
        TSG_TESTS,
    ),
    Fault(
        "the lower fragment does not find the upper one's table",
        TSG_PATHS,
        "            after.n_tables += opens\n",
        "",
        "_tsg_paths",
        TSG_TESTS,
    ),
    Fault(
        "a fragment in use is removed",
        FRAGMENTS,
        "if fragment.tables.n_customers or fragment.n_above_left or fragment.n_above_right:",
        "if fragment.tables.n_customers or fragment.n_above_left:",
        "_fragments _tsg_state _tsg_blocked _tsg_local _tsg_type_moves",
        TSG_TESTS,
    ),
    Fault(
        "uses of a part not counted down",
        FRAGMENT_TABLE,
        "            table.fragments[right].n_above_right -= 1\n",
        "",
        "_fragments",
        TSG_TESTS,
    ),
    # ---- insertion
    Fault(
        "foot on the other side",
        TSG,
        "    if state[node] == LEFT_FOOT + side:\n",
        "    if state[node] == LEFT_FOOT + 1 - side:\n",
        "_tsg_state _tsg_paths",
        INSERTION_TESTS,
    ),
    Fault(
        "no insertion at the foot counted twice",
        TSG_TREES,
        "            if not tsg.is_stacked:\n                result -= tsg.log_no_insertion[label]    # the foot's\n",
        "",
        "_tsg_state",
        INSERTION_TESTS,
    ),
    Fault(
        "auxiliary trees in the restaurant of initial trees",
        TSG,
        "    return tsg.trees.label[node] + (<int32_t>n_labels(tsg) if state >= LEFT_FOOT else 0)\n",
        "    return tsg.trees.label[node]\n",
        "_tsg_state _tsg_blocked _tsg_local _tsg_type_moves",
        INSERTION_TESTS,
    ),
    # ---- the back-off of refined rules
    Fault(
        "weight of a new table left out at later levels",
        BACK_OFF,
        "        value = old_part + new_weight(restaurant) * value\n",
        "        value = old_part + value\n",
        "_refined_rules",
        BACK_OFF_TESTS,
    ),
    Fault(
        "share of rules at every level",
        BACK_OFF,
        "        if level == 1:\n            value = b.rule_share",
        "        if level >= 1:\n            value = b.rule_share",
        "_refined_rules",
        BACK_OFF_TESTS,
    ),
    Fault(
        "the level after the next is not told of a table that is removed",
        BACK_OFF,
        "    while level < n_used and leave(b, level, &address.rules[level], rng, seatings):\n        level += 1\n",
        "    while level < n_used and leave(b, level, &address.rules[level], rng, seatings):\n        level += 2\n",
        "_refined_rules",
        BACK_OFF_TESTS,
    ),
    Fault(
        "restaurants of the first context at all levels",
        REFINED_RULES,
        "address.rules[level].restaurant = b.levels[level].context[symbol]",
        "address.rules[level].restaurant = b.levels[n_used - 1].context[symbol]",
        "_refined_rules",
        BACK_OFF_TESTS,
    ),
    Fault(
        "sum of refined rules without their denominator",
        REFINED_RULES,
        "        value = value / denominator(restaurant)\n    return value\n",
        "        value = value / (denominator(restaurant) + 1.0)\n    return value\n",
        "_refined_rules",
        BACK_OFF_TESTS,
    ),
    Fault(
        "children's values exchanged in the sum",
        RULE_LIST,
        "left[rules.entries[number].left] * right[rules.entries[number].right]",
        "left[rules.entries[number].right] * right[rules.entries[number].left]",
        "_refined_rules",
        BACK_OFF_TESTS,
    ),
    # ---- subcategories
    Fault(
        "both options from the restaurant of the first",
        SPLIT_TREES,
        "restaurant = &top.restaurants[places[option].restaurant]",
        "restaurant = &top.restaurants[places[0].restaurant]",
        "_split_trees",
        SPLIT_TESTS,
    ),
    Fault(
        "inside values of swapped children",
        SPLIT_TREES,
        "pairs[0], pairs[1] = left[0] * right[0], left[0] * right[1]",
        "pairs[0], pairs[1] = left[0] * right[0], left[1] * right[0]",
        "_split_trees",
        SPLIT_TESTS,
    ),
    Fault(
        "outside values without the sibling",
        SPLIT_MOVES,
        "outside[2 * left + left_bit] += value * inside[2 * right + right_bit]",
        "outside[2 * left + left_bit] += value",
        "_split_moves",
        SPLIT_TESTS,
    ),
    Fault(
        "a rejected change of many bits keeps its seats",
        SPLIT_MOVES,
        "        touched.s.seat[touched.nodes[item]] = touched.old_seat[item]\n    roll_back(&touched.seatings, 0)",
        "        touched.s.seat[touched.nodes[item]] = touched.old_seat[item]",
        "_split_moves",
        SPLIT_TESTS,
    ),
    Fault(
        "word base once per customer",
        SPLIT_STATE,
        "            result += level.cells[cell].n_tables\n",
        "            result += level.cells[cell].n_customers\n",
        "_split_state",
        SPLIT_TESTS,
    ),
    Fault(
        "tables drawn by size without the discount",
        SPLIT_SEATING,
        "target -= first[number].size - discount",
        "target -= first[number].size",
        "_split_trees _split_moves _split_seating",
        SPLIT_TESTS,
    ),
    Fault(
        "the proposal of a tree counts against it",
        SPLIT_TREES,
        "log_ratio = log_ratio / work.temperature - work.log_proposals[item]",
        "log_ratio = log_ratio / work.temperature + work.log_proposals[item]",
        "_split_trees",
        SPLIT_TESTS,
    ),
    Fault(
        "trees after a rejected one are not rolled back",
        SPLIT_TREES,
        "roll_back(&part.seatings, part.mark[work.rejected])",
        "roll_back(&part.seatings, part.mark[work.size - 1])",
        "_split_trees",
        SPLIT_TESTS,
    ),
    Fault(
        "occurrences take a refinement that others have",
        SPLIT_MOVES,
        "return n_here == work.occurrences.size() and n_seated(s, number, index) == 0",
        "return n_here == work.occurrences.size()",
        "_split_moves",
        SPLIT_TESTS,
    ),
    Fault(
        "refinements of all occurrences drawn by the square of their weights",
        SPLIT_MOVES,
        "target += exp((log_weight[choice] - largest) / temperature)",
        "target += exp(2 * (log_weight[choice] - largest) / temperature)",
        "_split_moves",
        SPLIT_TESTS,
    ),
    # ---- sites on refined trees
    Fault(
        "stopping of sites from the wrong counts",
        REFINED_PARAMETERS,
        "rng.beta(1.0 + totals.frontier[label], 1.0 + totals.internal[label])",
        "rng.beta(1.0 + totals.frontier[label], 1.0)",
        "_refined_parameters",
        SITE_TESTS,
    ),
    Fault(
        "cached weight of a single rule not brought up to date",
        REFINED_SEATING,
        "    grow(restaurant, &dish.tables, size)\n    weigh_single(state, dish)\n",
        "    grow(restaurant, &dish.tables, size)\n",
        "_refined_seating",
        SITE_TESTS,
    ),
    Fault(
        "proposals of a batch from the streams of threads",
        REFINED_BLOCKED,
        "RNG_REFINED_PROPOSE, tree)",
        "RNG_REFINED_PROPOSE, thread)",
        "_refined_blocked",
        BATCH_TESTS,
    ),
    Fault(
        "whoever joins a tracked table is not counted there",
        REFINED_TRACKING,
        "                state.tracked.tables[seating.table].size += 1\n",
        "                pass\n",
        "_refined_tracking",
        BATCH_TESTS,
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
    Fault("a row does not grow", CELLS, "    slot.high = end\n", "", "_inside", CHART_TESTS),
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
        "    if value > 0.0 and is_allowed(cells, cell_of(cells, start, end), symbol):\n",
        "    if value > 0.0:\n",
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
        "a cycle closed upwards in the outside pass",
        OUTSIDE,
        "        apply_closure(cells, semiring, cycle, 1, size)\n",
        "        apply_closure(cells, semiring, cycle, size, 1)\n",
        "_outside",
        CHART_TESTS,
    ),
    Fault(
        "a failed allocation leaves sums behind",
        CHART,
        "            abandon_cells(&self.cells)\n",
        "            pass\n",
        "_chart",
        OOM_TESTS,
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
