"""Checks and orders of rules, compared with numpy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsgkit._rule_arrays import are_in_order, are_in_range, are_positive, order_by_last, rules_of

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), max_size=12)


def as_rules(rows, n_columns=3):
    return np.array(rows, dtype=np.int32).reshape(-1, n_columns)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(rows=ROWS)
def test_order(rows):
    assert are_in_order(as_rules(rows)) == (rows == sorted(set(rows)))
    assert are_in_order(as_rules(sorted(set(rows))))


def test_range():
    rules, limits = as_rules([(0, 2), (3, 1)], 2), np.array([4, 3])
    assert are_in_range(rules, limits)
    assert are_in_range(rules[:0], limits)
    assert not any(are_in_range(rules, np.array(wrong)) for wrong in ([3, 3], [4, 2]))
    assert not are_in_range(as_rules([(0, 2), (3, -1)], 2), limits)
    with pytest.raises(ValueError, match="1 limits for 2 columns"):
        are_in_range(rules, limits[:1])


def test_positive():
    assert are_positive(np.array([1e-300, 2.0]))
    assert are_positive(np.empty(0))
    assert not any(are_positive(np.array([1.0, wrong])) for wrong in (0.0, -1.0, np.inf, np.nan))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(rows=ROWS, values=st.lists(st.integers(0, 3), max_size=6))
def test_rules_by_last_column(rows, values):
    rules = as_rules(rows)
    order, starts = order_by_last(rules, 4)
    assert order.tolist() == np.argsort(rules[:, 2], kind="stable").tolist()
    assert starts.tolist() == np.searchsorted(np.sort(rules[:, 2]), np.arange(5)).tolist()
    symbols, weights = rules[order, 0], np.arange(len(rules))[order] + 0.5
    expected = [[row for row in order.tolist() if rules[row, 2] == value] for value in values]
    found = rules_of(np.array(values, dtype=np.int32), starts, symbols, weights)
    assert found[0].tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert found[1].tolist() == [rules[row, 0] for part in expected for row in part]
    assert found[2].tolist() == [row + 0.5 for part in expected for row in part]


def test_what_is_refused():
    for wrong in (4, -1):
        with pytest.raises(ValueError, match=f"{wrong} is out of range: there are 4"):
            order_by_last(as_rules([(0, wrong)], 2), 4)
    starts, symbols, weights = np.array([0, 1, 2]), np.zeros(2, dtype=np.int32), np.ones(2)
    for value in (2, -1):
        with pytest.raises(ValueError, match="out of range: there are 2"):
            rules_of(np.array([value], dtype=np.int32), starts, symbols, weights)
    for other_starts, other_weights in ((starts + 1, weights), (starts, weights[:1]), (starts - 1, weights)):
        with pytest.raises(ValueError, match="do not fit together"):
            rules_of(np.array([0], dtype=np.int32), other_starts, symbols, other_weights)
    with pytest.raises(ValueError, match="out of range"):
        rules_of(np.array([0], dtype=np.int32), np.array([2, 0, 2]), symbols, weights)
