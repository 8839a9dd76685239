"""Checks of numbers that come from files: tables of restaurants, weights, counts and parameters.

Samplers and models use them before anything is computed; the module imports nothing of the package.
"""

from collections.abc import Sequence

import numpy as np

LARGEST_COUNT = 1 << 53  # whole numbers up to here are exact in floating point
# Samplers keep strengths away from where probabilities become 0 or NaN.
SMALLEST_STRENGTH, LARGEST_STRENGTH = 1e-9, 1e12


def checked_rows(rows: object, lowest: Sequence[int], ends: Sequence[int]) -> np.ndarray:
    """Rows of whole numbers, each at least its column's lowest and below its column's end.

    Raises
    ------
    ValueError
        If they are anything else.

    Examples
    --------
    >>> checked_rows([[0, 3], [1, 2]], [0, 1], [2, 4]).tolist()
    [[0, 3], [1, 2]]
    >>> checked_rows([[2, 3]], [0, 1], [2, 4])
    Traceback (most recent call last):
        ...
    ValueError: a table is out of range
    """
    array = np.asarray(rows)
    if array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[1] != len(lowest):
        raise ValueError("tables are not rows of whole numbers")
    if (array < np.array(lowest)).any() or (array >= np.array(ends)).any():
        raise ValueError("a table is out of range")
    return np.ascontiguousarray(array, dtype=np.int64)


def count_customers(rows: np.ndarray, n_cells: int) -> np.ndarray:
    """The customers at the tables of every cell; rows begin with the cell and end with table size and number of such.

    Examples
    --------
    >>> count_customers(np.array([[1, 3, 2], [1, 1, 1]]), 3).tolist()
    [0.0, 7.0, 0.0]
    """
    # Numbers too large to be whole in floating point are too large to be right, and do not overflow.
    return np.bincount(rows[:, 0], weights=rows[:, -2].astype(np.float64) * rows[:, -1], minlength=n_cells)


def require_amounts(values: np.ndarray, dtype: str, shape: tuple[int, ...]) -> None:
    """Refuse an array unless it has this type and shape and nothing but finite numbers from 0 on.

    Examples
    --------
    >>> require_amounts(np.array([0.5, np.nan]), "float64", (2,))
    Traceback (most recent call last):
        ...
    ValueError: an amount is negative or no number
    """
    if values.dtype != np.dtype(dtype) or values.shape != shape:
        raise ValueError("an array has the wrong type or shape")
    if not ((values >= 0) & (values < np.inf)).all():
        raise ValueError("an amount is negative or no number")
    if values.dtype.kind in "iu" and (values > LARGEST_COUNT).any():
        raise ValueError("a number is larger than anything that was counted")


def require_discounts(values: np.ndarray) -> None:
    """Refuse discounts that no restaurant has."""
    if not ((values >= 0) & (values < 1)).all():
        raise ValueError("a discount is not in [0, 1)")


def require_strengths(values: np.ndarray) -> None:
    """Refuse strengths that no sampler draws.

    Examples
    --------
    >>> require_strengths(np.array([1e-320]))
    Traceback (most recent call last):
        ...
    ValueError: a strength is not between 1e-09 and 1e+12
    """
    if not ((values >= SMALLEST_STRENGTH) & (values <= LARGEST_STRENGTH)).all():
        raise ValueError(f"a strength is not between {SMALLEST_STRENGTH:g} and {LARGEST_STRENGTH:g}")
