"""Distinct rows of tables of integers against numpy's comparison of whole rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsgkit.models._distinct import distinct_rows

# Three columns of the widest range have more than 2 ** 63 combinations.
NUMBERS = st.one_of(st.integers(-2, 2), st.integers(-(2**31), 2**31 - 1))
TABLES = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.lists(NUMBERS, min_size=n, max_size=n), max_size=12).map(
        lambda rows: np.array(rows, dtype=np.int64).reshape(-1, n)
    )
)


@given(TABLES)
def test_rows_are_those_of_numpy(table):
    first, place, counts = distinct_rows(table.T)
    rows, *expected = np.unique(table, axis=0, return_index=True, return_inverse=True, return_counts=True)
    assert table[first].tolist() == rows.tolist()
    assert [part.ravel().tolist() for part in (first, place, counts)] == [part.ravel().tolist() for part in expected]


@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_columns_of_small_types_do_not_overflow(dtype):
    column = np.array([np.iinfo(dtype).max, np.iinfo(dtype).min, 0, 0], dtype=dtype)
    rows = distinct_rows([column, column, column])
    assert rows.place.tolist() == [2, 0, 1, 1]
