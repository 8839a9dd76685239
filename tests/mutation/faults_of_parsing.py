"""Deliberate faults in the chart and in what is read off it."""

from mutation.fault import Fault

CHART = "ext/tsgkit/_chart.pyx"
CELLS = "ext/tsgkit/_chart_cells.pxd"
SEMIRING = "ext/tsgkit/_semiring.pxd"
BINARY_RULES = "ext/tsgkit/_binary_rules.pxd"
INSIDE = "ext/tsgkit/_inside.pyx"
OUTSIDE = "ext/tsgkit/_outside.pyx"
PRUNING = "ext/tsgkit/_pruning.pyx"
DERIVATIONS = "ext/tsgkit/_derivations.pyx"
POSTERIORS = "ext/tsgkit/_posteriors.pyx"
TREE_RANKING = "ext/tsgkit/_tree_ranking.pyx"
TREE_OPTIONS = "ext/tsgkit/_tree_options.pyx"
CELL_CLOSING = "ext/tsgkit/_cell_closing.pyx"
SPAN_FEATURES = "ext/tsgkit/_span_features.pxd"
SPAN_LABELS = "ext/tsgkit/_span_labels.pyx"
CONSTRAINTS = "ext/tsgkit/_constraints.pyx"
TREE_SCORE = "ext/tsgkit/_tree_score.pyx"
VECTORS = "ext/tsgkit/vector_kernels.hpp"

CHART_TESTS = "tests/parsing/test_chart.py"
PRUNING_TESTS = "tests/parsing/test_pruning.py"
DERIVATION_TESTS = "tests/parsing/test_derivations.py"
FOREST_TESTS = "tests/parsing/test_forest.py"
OOM_TESTS = "tests/oom/test_oom.py::test_kernels"
CONSTRAINT_TESTS = "tests/parsing/test_constraints.py"
RANKING_TESTS = "tests/parsing/test_tree_ranking.py"
CLOSING_TESTS = "tests/models/test_closing.py"
SPAN_LABEL_TESTS = "tests/models/test_span_labels.py"
TREE_SCORE_TESTS = "tests/parsing/test_tree_score.py"

FAULTS = [
    # ---- the chart
    Fault(
        "last split point left out",
        BINARY_RULES,
        "children.pair, children.first, children.n_splits = pair, first, last - first + 1",
        "children.pair, children.first, children.n_splits = pair, first, last - first",
        "_inside _outside _posteriors",
        CHART_TESTS,
    ),
    Fault(
        "a row does not grow",
        CELLS,
        "    slot.low, slot.high = min(slot.low, end), max(slot.high, end)\n",
        "    slot.low = min(slot.low, end)\n",
        "_inside",
        CHART_TESTS,
    ),
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
        PRUNING_TESTS,
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
        "        shares[0][label] = plus(semiring, shares[0][label], share)\n",
        "        shares[0][label] = share\n",
        "_pruning",
        PRUNING_TESTS,
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
        "    return node_of(choice.right, choice.split, choice.end)\n",
        "    return node_of(choice.left, choice.split, choice.end)\n",
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
        "grammar.down.weight[edge] * collector.outside[symbol] * inside_of(cells, start, end, child))\n",
        "grammar.down.weight[edge] * collector.outside[symbol])\n",
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
    # ---- closing cells
    Fault(
        "a step of learning without the squares before",
        CELL_CLOSING,
        "        weights[0][place] -= STEP * derivative / sqrt(squares[0][place])\n",
        "        weights[0][place] -= STEP * derivative / sqrt(derivative * derivative)\n",
        "_cell_closing",
        CLOSING_TESTS,
    ),
    Fault(
        "the word after a span is its last one",
        SPAN_FEATURES,
        "last = features.around[end + 1], after = features.around[end + 2]",
        "last = features.around[end + 1], after = features.around[end + 1]",
        "_span_features _cell_closing",
        CLOSING_TESTS,
    ),
    Fault(
        "cells of single words may be closed",
        CELL_CLOSING,
        "if end == start + 1 or end - start == n_words:",
        "if end - start == n_words:",
        "_cell_closing",
        CLOSING_TESTS,
    ),
    # ---- labels of spans
    Fault(
        "the length of a span is not looked at",
        SPAN_LABELS,
        "    for feature in range(N_SPAN_FEATURES):\n        add_row(&scores.of_span[0]",
        "    for feature in range(N_SPAN_FEATURES - 1):\n        add_row(&scores.of_span[0]",
        "_span_labels",
        SPAN_LABEL_TESTS,
    ),
    Fault(
        "spans that are not to be learned from are learned as the last output",
        SPAN_LABELS,
        "            if outputs[start, end] < 0:\n                continue\n",
        "",
        "_span_labels",
        SPAN_LABEL_TESTS,
    ),
    Fault(
        "unary rules are multiplied by odds",
        SPAN_LABELS,
        "if edges[0][number].right < 0 or output == 0:",
        "if output == 0:",
        "_span_labels",
        SPAN_LABEL_TESTS,
    ),
    Fault(
        "a span has the scores of the one before that begins with it",
        SPAN_LABELS,
        "if edges[0][number].start != start or edges[0][number].end != end:",
        "if edges[0][number].start != start:",
        "_span_labels",
        SPAN_LABEL_TESTS,
    ),
    Fault(
        "odds without a limit",
        SPAN_LABELS,
        "power * min(max(log_odds, -LARGEST_LOG_ODDS), LARGEST_LOG_ODDS))",
        "power * log_odds)",
        "_span_labels",
        SPAN_LABEL_TESTS,
    ),
    Fault(
        "a row that two features share is changed once",
        SPAN_LABELS,
        "    add_row(&gradient.weights[row * n_outputs], derivatives, n_outputs)\n    return 0\n",
        "        add_row(&gradient.weights[row * n_outputs], derivatives, n_outputs)\n    return 0\n",
        "_span_labels",
        SPAN_LABEL_TESTS,
    ),
    Fault(
        "a product takes odds by the labels of all models",
        "tsgkit/models/_span_labels.py",
        'outputs = np.where(own_labels < 0, 0, outputs.take(own_labels, mode="clip")).astype(np.int32)',
        "outputs = np.resize(outputs, len(own_labels))",
        "",
        f"{SPAN_LABEL_TESTS} tests/parsing/test_product.py",
    ),
    # ---- the k best trees
    Fault(
        "combinations of trees come twice",
        TREE_RANKING,
        "            if candidate.left_number == 1:\n",
        "            if candidate.left_number >= 1:\n",
        "_tree_ranking",
        RANKING_TESTS,
    ),
    Fault(
        "another derivation is another tree",
        TREE_RANKING,
        "        if self.is_chart and self.is_seen(number, -1, tree):\n",
        "        if False:\n",
        "_tree_ranking",
        RANKING_TESTS,
    ),
    Fault(
        "paths of unary rules may repeat a label",
        TREE_RANKING,
        "            if not self.is_chart and self.is_on_path(number, last, option.left):\n",
        "            if False:\n",
        "_tree_ranking",
        RANKING_TESTS,
    ),
    Fault(
        "the next tree of the right child is left out",
        TREE_RANKING,
        "                candidate.right_number += 1\n",
        "                candidate.right_number += 2\n",
        "_tree_ranking",
        RANKING_TESTS,
    ),
    Fault(
        "options without the last split point",
        TREE_OPTIONS,
        "        for split in range(low, high + 1):\n",
        "        for split in range(low, high):\n",
        "_tree_options",
        RANKING_TESTS,
    ),
    Fault(
        "edges of an item in the place of the next",
        TREE_OPTIONS,
        "        start[0][item] = start[0][item + 1]\n",
        "        pass\n",
        "_tree_options",
        RANKING_TESTS,
    ),
    # ---- brackets that trees must have
    Fault(
        "spans that cross a bracket from the left are filled",
        CONSTRAINTS,
        "if (start < span.start < end < span.end) or (span.start < start < span.end < end):",
        "if span.start < start < span.end < end:",
        "_constraints",
        CONSTRAINT_TESTS,
    ),
    Fault(
        "a unary rule in a constrained span without its child",
        POSTERIORS,
        "                weight * collector.outside[symbol] * inside_of(\n                    cells, start, row_of(cells.constraints, span, before), child))\n",
        "                weight * collector.outside[symbol])\n",
        "_posteriors",
        CONSTRAINT_TESTS,
    ),
]
