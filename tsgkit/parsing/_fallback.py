"""Trees for sentences that the grammar cannot analyse: the best parts side by side, or tags alone."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from tsgkit._chart import Chart
from tsgkit._derivations import best_part, best_symbols
from tsgkit.grammar import WeightedGrammar
from tsgkit.parsing._lexical import Entries
from tsgkit.parsing._rows import project
from tsgkit.treebank._binarize import undo_label
from tsgkit.treebank._partial import Span


def unmet_spans(chart: Chart, spans: Iterable[Span]) -> list[Span]:
    """The constrained spans of a chart that have no symbol: the grammar has no part with the brackets there."""
    symbols, _ = best_symbols(chart, np.ones(chart.grammar.n_symbols, dtype=bool))
    return [span for span in spans if symbols[span] < 0]


def glued_rows(
    chart: Chart, grammar: WeightedGrammar, is_part_label: Sequence[bool], unmet: Collection[Span] = ()
) -> list[np.ndarray]:
    """The fewest parts that cover the sentence, and among those the most probable.

    Parameters
    ----------
    chart : Chart
        With Viterbi values; every word has at least a tag.
    grammar : WeightedGrammar
        Of the chart.
    is_part_label : sequence of bool
        For every label, whether it is one of the treebank; intermediate symbols are not.
    unmet : collection of (start, end)
        Spans that no part may contain strictly.

    Returns
    -------
    list of ndarray
        The rows of each part, left to right. Intermediate symbols are no parts, and the root is one only
        over a word that has no other tag. Empty if the weights of a word are too small for any part.
    """
    is_part = np.append(is_part_label, False)[grammar.label]
    is_part[grammar.label == grammar.label[grammar.root]] = False
    labelled = best_symbols(chart, grammar.label >= 0)
    phrases = best_symbols(chart, is_part)
    # best[end] = number of parts, minus their log weight, and where the last part begins
    best: list[tuple[float, float, int, int]] = [(0, 0.0, -1, -1)]
    for end in range(1, chart.n_words + 1):
        options = []
        for start in range(end):
            if any(start <= first and last <= end and last - first < end - start for first, last in unmet):
                continue
            symbol, value = phrases[0][start, end], phrases[1][start, end]
            if symbol < 0 and end == start + 1:
                symbol, value = labelled[0][start, end], labelled[1][start, end]
            if symbol >= 0:
                options.append((best[start][0] + 1, best[start][1] - float(value), start, int(symbol)))
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


def flat_rows(
    entries: Entries, symbol_of_rank: np.ndarray, grammar: WeightedGrammar, wanted: Sequence[str | None]
) -> list[np.ndarray]:
    """Every word under the tag that makes it with the largest weight; under the wanted one if the word can have it."""
    starts, ranks, weights = entries
    parts = []
    for position, tag in enumerate(wanted):
        span = slice(starts[position], starts[position + 1])
        labels = grammar.label[symbol_of_rank[ranks[span]]]
        is_wanted = np.array([tag is not None and undo_label(grammar.labels[label]) == tag for label in labels])
        chosen = np.argmax(np.where(is_wanted, weights[span], 0.0) if is_wanted.any() else weights[span])
        parts.append(np.array([(labels[chosen], position, position + 1, 0)], dtype=np.int32))
    return parts
