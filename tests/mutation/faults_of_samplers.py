"""Deliberate faults in restaurants and in the samplers of tree-substitution grammars."""

from mutation.fault import Fault

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
OPEN_TREES = "ext/tsgkit/_tsg_trees.pyx"

RESTAURANT_TESTS = "tests/models/test_restaurant.py"
TSG_TESTS = "tests/models/test_tsg_sampler.py"
INSERTION_TESTS = "tests/models/test_insertion_sampler.py"
OPEN_TREE_TESTS = "tests/inference/test_open_trees.py"

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
        "the probability of stopping for that of an internal node in the base",
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
    # ---- trees that are not known
    Fault(
        "the proposal of a tree that is not known counts against it",
        OPEN_TREES,
        "(log_new - log_old) / temperature + proposal.log_before - proposal.log_after",
        "(log_new - log_old) / temperature + proposal.log_after - proposal.log_before",
        "_tsg_trees",
        OPEN_TREE_TESTS,
    ),
    Fault(
        "trees that are not known stay frozen",
        OPEN_TREES,
        "        weigh(tsg, batch.trees[item], first_new + <index_t>item, &proposals[item])\n"
        "    rollback_seatings(tsg, &batch.seatings)\n",
        "        weigh(tsg, batch.trees[item], first_new + <index_t>item, &proposals[item])\n",
        "_tsg_trees",
        OPEN_TREE_TESTS,
    ),
    Fault(
        "a tree that replaces another is taken for the one before it",
        OPEN_TREES,
        "            kept[tree] = first_new + item\n",
        "            kept[tree] = first_new\n",
        "_tsg_trees",
        OPEN_TREE_TESTS,
    ),
]
