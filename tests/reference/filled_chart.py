"""Charts of small grammars, and comparisons of their values with those of the oracle of ``chart.py``."""

from math import inf, isclose, log

import pytest
from reference.chart import best, lexical_entries, total

from tsgkit._chart import Chart
from tsgkit._grammar_index import GrammarIndex
from tsgkit.grammar import WeightedGrammar


def bush(*, weight=0.5):
    """S -> S S | a | b: every binary tree is a derivation."""
    return WeightedGrammar(
        ["S"], ["a", "b"], [0], 0, binary=[(0, 0, 0)], binary_weight=[weight],
        lexical=[(0, 0), (0, 1)], lexical_weight=[0.25, 1e-6],
    )  # fmt: skip


def filled(grammar, sentence, index=None, **options):
    index = index or GrammarIndex(grammar)
    chart = Chart(index)
    chart.fill(*lexical_entries(grammar, index, sentence), **options)
    return chart


def items_of(chart, outside=False):
    """All values of a chart as ``{(symbol, start, end): log value}``."""
    values = chart.outside_values if outside else chart.inside_values
    return {
        (symbol, start, end): value
        for start in range(chart.n_words)
        for end in range(start + 1, chart.n_words + 1)
        for symbol, value in values(start, end).items()
    }


def assert_same(logs, expected, tolerance=1e-9):
    """`expected` holds plain values."""
    assert logs.keys() == expected.keys()
    for item, value in logs.items():
        assert isclose(value, log(expected[item]), rel_tol=tolerance, abs_tol=tolerance), item


def assert_fits(chart, reference):
    """Inside, outside and total of a chart are those of the reference."""
    combine = best if chart.is_viterbi else total
    inside = reference.inside(combine)
    assert_same(items_of(chart), inside)
    root = (reference.root, 0, reference.n_words)
    if root not in inside:
        assert chart.log_total == -inf
        with pytest.raises(ValueError, match="no derivation"):
            chart.fill_outside()
        return False
    assert isclose(chart.log_total, log(inside[root]), rel_tol=1e-9, abs_tol=1e-9)
    chart.fill_outside()
    assert_same(items_of(chart, outside=True), reference.outside(inside, combine))
    return True
