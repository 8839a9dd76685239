"""Trees for sentences that the grammar cannot analyse: the best parts side by side, or tags alone."""

import numpy as np

from tsgkit._chart import Chart
from tsgkit._derivations import best_part
from tsgkit.grammar import WeightedGrammar
from tsgkit.parsing.lexical import Entries
from tsgkit.parsing.rows import project
from tsgkit.treebank.binarize import undo_label


def glued_rows(chart: Chart, grammar: WeightedGrammar) -> list[np.ndarray]:
    """The fewest parts that cover the sentence, and among those the most probable.

    Parameters
    ----------
    chart : Chart
        With Viterbi values; every word has at least a tag.
    grammar : WeightedGrammar
        Of the chart.

    Returns
    -------
    list of ndarray
        The rows of each part, left to right. Intermediate symbols are no parts, and the root is one only
        over a word that has no other tag. Empty if the weights of a word are too small for any part.
    """
    root_label = grammar.label[grammar.root]
    is_part = np.array([undo_label(label) is not None for label in grammar.labels])
    is_part[root_label] = False
    # best[end] = number of parts, minus their log weight, and where the last part begins
    best: list[tuple[float, float, int, int]] = [(0, 0.0, -1, -1)]
    for end in range(1, chart.n_words + 1):
        options = []
        for start in range(end):
            found = {
                symbol: value for symbol, value in chart.inside_values(start, end).items() if grammar.label[symbol] >= 0
            }
            values = {symbol: value for symbol, value in found.items() if is_part[grammar.label[symbol]]}
            if not values and end == start + 1:
                values = found
            if values:
                symbol = max(values, key=lambda one: (values[one], -one))
                options.append((best[start][0] + 1, best[start][1] - values[symbol], start, symbol))
        if not options:
            return []
        best.append(min(options))
    parts = []
    end = chart.n_words
    while end > 0:
        _, _, start, symbol = best[end]
        parts.append(project(best_part(chart, symbol, start, end)[0], grammar.label))
        end = start
    return parts[::-1]


def flat_rows(entries: Entries, symbol_of_rank: np.ndarray, grammar: WeightedGrammar) -> list[np.ndarray]:
    """Every word under the tag that makes it with the largest weight."""
    starts, ranks, weights = entries
    parts = []
    for position in range(len(starts) - 1):
        span = slice(starts[position], starts[position + 1])
        rank = ranks[span][int(np.argmax(weights[span]))]
        label = grammar.label[symbol_of_rank[rank]]
        parts.append(np.array([(label, position, position + 1, 0)], dtype=np.int32))
    return parts
