"""Checks of numbers from files: what is valid passes unchanged, everything else is refused."""

import numpy as np
import pytest

from tsgkit._checks import (
    LARGEST_COUNT,
    LARGEST_STRENGTH,
    SMALLEST_STRENGTH,
    checked_rows,
    count_customers,
    require_amounts,
    require_discounts,
    require_strengths,
)

LOWEST, ENDS = [0, 1], [3, 10]


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64"])
def test_rows_in_range_become_arrays_of_64_bits(dtype):
    rows = np.array([[0, 1], [2, 9]], dtype=dtype)[:, ::-1][:, ::-1]
    checked = checked_rows(rows, LOWEST, ENDS)
    assert checked.dtype == np.int64
    assert checked.flags.c_contiguous
    assert checked.tolist() == [[0, 1], [2, 9]]


@pytest.mark.parametrize("rows", [[[0, 0]], [[-1, 1]], [[3, 1]], [[0, 10]], [[0, 1], [0, 10]]])
def test_rows_out_of_range(rows):
    with pytest.raises(ValueError, match="out of range"):
        checked_rows(rows, LOWEST, ENDS)


@pytest.mark.parametrize("rows", [[[0.0, 1.0]], [0, 1], [[0, 1, 2]], [["0", "1"]], [[[0, 1]]]])
def test_rows_of_another_form(rows):
    with pytest.raises(ValueError, match="not rows of whole numbers"):
        checked_rows(rows, LOWEST, ENDS)


def test_customers_of_tables_that_are_too_many_do_not_overflow():
    rows = np.array([[0, 2**62, 2**62], [1, 2, 3], [1, 1, 1]])
    assert count_customers(rows, 3).tolist() == [2.0**124, 7.0, 0.0]


def test_amounts():
    require_amounts(np.array([0.0, 2.5]), "float64", (2,))
    require_amounts(np.array([0, LARGEST_COUNT]), "int64", (2,))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (np.array([1.0, -1e-9]), "negative or no number"),
        (np.array([1.0, np.inf]), "negative or no number"),
        (np.array([1.0, np.nan]), "negative or no number"),
        (np.array([1.0]), "wrong type or shape"),
        (np.array([1.0, 2.0], dtype="float32"), "wrong type or shape"),
        (np.array([[1.0, 2.0]]), "wrong type or shape"),
    ],
)
def test_wrong_amounts(values, problem):
    with pytest.raises(ValueError, match=problem):
        require_amounts(values, "float64", (2,))


def test_counts_that_are_not_exact_in_floating_point():
    with pytest.raises(ValueError, match="larger than"):
        require_amounts(np.array([LARGEST_COUNT + 1]), "int64", (1,))


@pytest.mark.parametrize("value", [-1e-9, 1.0, np.nan])
def test_discounts(value):
    require_discounts(np.array([0.0, 0.999]))
    with pytest.raises(ValueError, match="discount"):
        require_discounts(np.array([0.5, value]))


@pytest.mark.parametrize("value", [0.0, SMALLEST_STRENGTH / 2, LARGEST_STRENGTH * 2, np.nan, np.inf])
def test_strengths(value):
    require_strengths(np.array([SMALLEST_STRENGTH, 1.0, LARGEST_STRENGTH]))
    with pytest.raises(ValueError, match="strength"):
        require_strengths(np.array([1.0, value]))
