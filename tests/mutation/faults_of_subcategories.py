"""Deliberate faults in the back-off of refined rules and in the samplers of subcategories and refined sites."""

from mutation.fault import Fault

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

BACK_OFF_TESTS = "tests/models/test_back_off.py"
SPLIT_TESTS = "tests/models/test_split_sampler.py"
SITE_TESTS = "tests/models/test_sr_sites.py"
BATCH_TESTS = "tests/models/test_sr_batches.py"

FAULTS = [
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
]
