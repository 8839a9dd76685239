"""Deliberate faults in the back-off of refined rules and in the samplers of subcategories and refined sites."""

from mutation.fault import Fault

BACK_OFF = "ext/tsgkit/_backoff.pxd"
REFINED_RULES = "ext/tsgkit/_refined_rules.pyx"
RULE_LIST = "ext/tsgkit/_rule_list.pxd"
REFINED_BASE = "ext/tsgkit/_refined_base.pyx"
REFINED_SEATING = "ext/tsgkit/_refined_seating.pyx"
REFINED_BLOCKED = "ext/tsgkit/_refined_blocked.pyx"
REFINED_TRACKING = "ext/tsgkit/_refined_tracking.pyx"
REFINED_FREEZING = "ext/tsgkit/_refined_freezing.pyx"
REFINED_TYPES = "ext/tsgkit/_refined_type_moves.pyx"
REFINED_INSERTION = "ext/tsgkit/_refined_insertion.pyx"
SPLIT_STATE = "ext/tsgkit/_split_state.pyx"
SPLIT_SEATING = "ext/tsgkit/_split_seating.pxd"
SPLIT_TREES = "ext/tsgkit/_split_trees.pyx"
SPLIT_MOVES = "ext/tsgkit/_split_moves.pyx"
REFINED_PARAMETERS = "ext/tsgkit/_refined_parameters.pyx"

BACK_OFF_TESTS = "tests/models/test_back_off.py"
SPLIT_TESTS = "tests/models/test_split_sampler.py"
SITE_TESTS = "tests/models/test_sr_sites.py"
SUFFIX_TESTS = "tests/models/test_suffixes.py"
SIZE_TESTS = "tests/models/test_sr_sites.py::test_tables_of_batches_have_the_sizes_that_they_should"
BATCH_TESTS = "tests/models/test_sr_batches.py"
REFINED_INSERTION_TESTS = "tests/models/test_sr_insertion.py"

FAULTS = [
    # ---- the back-off of refined rules
    Fault(
        "a class backs off to coarser ones without its share",
        BACK_OFF,
        "        value *= class_share(b, number, word_class)\n",
        "        value *= 1.0\n",
        "_refined_rules",
        BACK_OFF_TESTS,
    ),
    Fault(
        "tables of the next to last level of classes seat nobody at the last",
        BACK_OFF,
        "    while is_new and number < b.n_class_levels:\n",
        "    while is_new and number < b.n_class_levels - 1:\n",
        "_refined_rules",
        BACK_OFF_TESTS,
    ),
    Fault(
        "tables of coarser classes seated by the base of the first level",
        BACK_OFF,
        "        is_new = sit(b, label_class_level(b) + number, &place, bases[number], rng, seatings)\n",
        "        is_new = sit(b, label_class_level(b) + number, &place, bases[0], rng, seatings)\n",
        "_refined_rules",
        SUFFIX_TESTS,
    ),
    Fault(
        "customers of coarser classes stay when a word leaves, in splits",
        SPLIT_SEATING,
        "    while table.size == 0 and number < s.back_off.n_class_levels:\n",
        "    while table.size == 0 and number < 1:\n",
        "_split_seating _split_trees _split_moves _subcategories",
        SPLIT_TESTS,
    ),
    Fault(
        "customers of coarser classes leave any tracked table",
        REFINED_FREEZING,
        "        above = table\n        place = label_class_place",
        "        above = of_rule\n        place = label_class_place",
        "_refined_freezing",
        f"{BATCH_TESTS} {SITE_TESTS}",
    ),
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
    Fault(
        "trees of a batch stay frozen",
        SPLIT_TREES,
        "    elif work.first == 0:\n        roll_back(&part.seatings, part.first_unseated)\n",
        "",
        "_split_trees",
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
        "    cdef Rng rng = rng_of_proposal(work, item)\n    propose(",
        "    cdef Rng rng = rng_of_proposal(work, thread)\n    propose(",
        "_refined_blocked",
        BATCH_TESTS,
    ),
    Fault(
        "whoever joins a tracked table is not counted there",
        REFINED_TRACKING,
        "                tracked_at(state, seating.table).size += 1\n",
        "                pass\n",
        "_refined_tracking",
        BATCH_TESTS,
    ),
    Fault(
        "nodes inside a refined fragment do not count",
        REFINED_BASE,
        "            result += state.stops.log_internal[state.trees.label[below]]\n",
        "            pass\n",
        "_refined_base",
        SITE_TESTS,
    ),
    Fault(
        "the scale of a refined fragment forgotten",
        REFINED_BASE,
        "    return log(largest)\n",
        "    return 0.0\n",
        "_refined_base",
        SITE_TESTS,
    ),
    Fault(
        "refinements drawn as if the parent were the first subcategory",
        REFINED_BASE,
        "            drawn.parent = refinement[0][item - 1]\n",
        "            drawn.parent = 0\n",
        "_refined_base",
        SITE_TESTS,
    ),
    Fault(
        "tables of refined fragments drawn without the discount",
        REFINED_SEATING,
        "        target -= dish.refined[table].size - discount\n",
        "        target -= dish.refined[table].size\n",
        "_refined_seating",
        SITE_TESTS,
    ),
    Fault(
        "customers of refined fragments drawn by table",
        REFINED_SEATING,
        "        target -= dish.refined[table].size\n        if target < 0:\n",
        "        target -= 1\n        if target < 0:\n",
        "_refined_seating",
        SITE_TESTS,
    ),
    Fault(
        "the rules of a new table all at once",
        REFINED_SEATING,
        "        multiply(product, seat_tracked_rule(state, &address, rng))\n",
        "        seat_tracked_rule(state, &address, rng)\n",
        "_refined_seating",
        SITE_TESTS,
    ),
    Fault(
        "a refined tree of a batch stays frozen",
        REFINED_BLOCKED,
        "    make_proposals(work, kind, size, pool)\n    restore_trees(&work.frozen, work.n_threads, pool)\n",
        "    make_proposals(work, kind, size, pool)\n",
        "_refined_blocked",
        BATCH_TESTS,
    ),
    Fault(
        "a tracked table is never another one of its size",
        REFINED_TRACKING,
        "    target = rng.below(<uint64_t>(n_tables_of_size(tables_of(state, entry), entry.size) + 1))\n",
        "    target = 0\n",
        "_refined_tracking",
        SIZE_TESTS,
    ),
    Fault(
        "the word of a tracked table is taken for its class",
        REFINED_FREEZING,
        "        tracked_at(state, above).below[which] = table\n",
        "        tracked_at(state, above).below[0] = table\n",
        "_refined_freezing",
        BATCH_TESTS,
    ),
    Fault(
        "a customer who has left a tracked table is drawn again",
        REFINED_FREEZING,
        "        if <int32_t>rng.below(<uint64_t>size) < table.size:\n",
        "        if True:\n",
        "_refined_freezing",
        f"{BATCH_TESTS} {SITE_TESTS}",
    ),
    Fault(
        "customers who keep their seats are seated again",
        REFINED_BLOCKED,
        "        if state.is_site[node] and not proposal.is_kept[node - first]:\n",
        "        if state.is_site[node]:\n",
        "_refined_blocked",
        BATCH_TESTS,
    ),
    Fault(
        "customers keep their seats at other fragments",
        REFINED_BLOCKED,
        "            and proposal.derivation.dish[node] == state.dish[first + node]\n",
        "            and state.dish[first + node] >= 0\n",
        "_refined_blocked",
        BATCH_TESTS,
    ),
    # ---- moves of types over refined fragments
    Fault(
        "the symbol of a cut is drawn, and not corrected for",
        REFINED_TYPES,
        "log_ratio / temperature + (log_symbol if move.was_cut else -log_symbol)",
        "log_ratio / temperature",
        "_refined_type_moves",
        SITE_TESTS,
    ),
    Fault(
        "refined fragments are cut where both parts occur",
        REFINED_TYPES,
        "        if has_parts(state, move, descend(state, roots[0][item], move)):\n            return False\n",
        "        pass\n",
        "_refined_type_moves",
        SITE_TESTS,
    ),
    Fault(
        "refined fragments are joined where the whole occurs",
        REFINED_TYPES,
        "        if has_whole(state, move, descend(state, roots[0][item], move)):\n            return False\n",
        "        pass\n",
        "_refined_type_moves",
        SITE_TESTS,
    ),
    Fault(
        "a type of given symbols has any symbol at its node",
        REFINED_TYPES,
        "    return move.joint or state.symbol[end] == move.symbol\n",
        "    return True\n",
        "_refined_type_moves",
        SITE_TESTS,
    ),
    Fault(
        "a join forgets that nothing is inserted at its node",
        REFINED_TYPES,
        "(log_none if move.was_cut else -log_none)",
        "0.0",
        "_refined_type_moves",
        REFINED_INSERTION_TESTS,
    ),
    # ---- insertions into refined trees
    Fault(
        "an insertion is drawn as if it had no foot",
        REFINED_INSERTION,
        "                inside.internal[offset + number] += weight * host[below + number]\n",
        "                inside.internal[offset + number] += weight\n",
        "_refined_insertion",
        REFINED_INSERTION_TESTS,
    ),
    Fault(
        "links of rejected insertions stay",
        REFINED_BLOCKED,
        "        swap_derivation(state, &proposal.derivation, first)\n        if kind.exchange is not NULL:\n",
        "        swap_derivation(state, &proposal.derivation, first)\n        if False:\n",
        "_refined_blocked",
        REFINED_INSERTION_TESTS,
    ),
    Fault(
        "insertions of a batch from the streams of threads",
        REFINED_INSERTION,
        "rng_of_proposal(work, item)",
        "rng_of_proposal(work, thread)",
        "_refined_insertion",
        REFINED_INSERTION_TESTS,
    ),
    Fault(
        "feet count as nodes without an insertion",
        REFINED_INSERTION,
        "    return insertions.stacked or not is_foot_of(insertions, node)\n",
        "    return True\n",
        "_refined_insertion",
        REFINED_INSERTION_TESTS,
    ),
]
