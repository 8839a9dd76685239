"""Rules as rows of an array: whether they are in order and within range, and their order by other keys.

Between a grammar's file or training and its index: what is looked at in every rule whenever a grammar is made. All of
it takes linear time; a sort by several keys is one stable counting sort for each, the last key first,

    place(rule) = number of rules with a smaller key  +  number of rules before it with the same key
"""

import numpy as np

from libc.math cimport isfinite
from libcpp.vector cimport vector

from tsgkit._types cimport index_t, symbol_t, weight_t


def are_in_order(const symbol_t[:, ::1] rules not None):
    """Whether every rule is larger than the one before it, compared column by column from the left."""
    cdef index_t row
    for row in range(1, rules.shape[0]):
        if not is_larger(rules, row):
            return False
    return True


cdef inline bint is_larger(const symbol_t[:, ::1] rules, index_t row) noexcept nogil:
    cdef index_t column
    for column in range(rules.shape[1]):
        if rules[row, column] != rules[row - 1, column]:
            return rules[row, column] > rules[row - 1, column]
    return False


def are_in_range(const symbol_t[:, ::1] rules not None, const index_t[::1] limits not None):
    """Whether the numbers of every column are at least 0 and below its limit."""
    cdef index_t row, column
    cdef bint is_outside = False
    if limits.shape[0] != rules.shape[1]:
        raise ValueError(f"{limits.shape[0]} limits for {rules.shape[1]} columns")
    for row in range(rules.shape[0]):
        for column in range(rules.shape[1]):
            is_outside |= not 0 <= rules[row, column] < limits[column]
    return not is_outside


def are_positive(const weight_t[::1] weights not None):
    """Whether all weights are finite and above 0."""
    cdef index_t place
    for place in range(weights.shape[0]):
        if not (weights[place] > 0.0 and isfinite(weights[place])):
            return False
    return True


def order_by_last(const symbol_t[:, ::1] rules not None, symbol_t n_values):
    """Rules by their last column, and where those with each value begin.

    Parameters
    ----------
    rules : array of int32
        The numbers of the last column are at least 0 and below `n_values`.
    n_values : int

    Returns
    -------
    order : ndarray of int32
        Of equal rules, the first one comes first.
    starts : ndarray of int64
        Per value, and one more.
    """
    cdef index_t n_rules = rules.shape[0], row
    order = np.empty(n_rules, dtype=np.int32)
    starts = np.zeros(n_values + 2, dtype=np.int64)
    cdef symbol_t[::1] order_view = order
    cdef index_t[::1] start = starts   # one place further on, per value where the next rule goes
    cdef symbol_t last = rules.shape[1] - 1, value
    for row in range(n_rules):
        if not 0 <= rules[row, last] < n_values:
            raise ValueError(f"{rules[row, last]} is out of range: there are {n_values} values")
        start[rules[row, last] + 2] += 1
    for value in range(n_values):
        start[value + 2] += start[value + 1]
    for row in range(n_rules):
        value = rules[row, last]
        order_view[start[value + 1]] = row
        start[value + 1] += 1
    return order, starts[:n_values + 1]


def rules_of(const symbol_t[::1] values not None, const index_t[::1] starts not None,
             const symbol_t[::1] symbols not None, const weight_t[::1] weights not None):
    """The rules of some values, one after the other, of rules that are sorted by value.

    Parameters
    ----------
    values : array of int32
        Whose rules are asked for.
    starts : array of int64
        Where the rules of each value begin, and one more.
    symbols, weights : arrays of int32 and of float
        A symbol and a weight of every rule.

    Returns
    -------
    starts, symbols, weights : ndarray
        In the order of `values`.
    """
    cdef index_t n_values = values.shape[0], place, rule
    found_starts = np.zeros(n_values + 1, dtype=np.int64)
    cdef index_t[::1] start = found_starts
    if starts.shape[0] == 0 or starts[starts.shape[0] - 1] > min(symbols.shape[0], weights.shape[0]) or starts[0] < 0:
        raise ValueError("the rules do not fit together")
    for place in range(n_values):
        if not 0 <= values[place] < starts.shape[0] - 1 or starts[values[place]] > starts[values[place] + 1]:
            raise ValueError(f"{values[place]} is out of range: there are {starts.shape[0] - 1} values")
        start[place + 1] = start[place] + starts[values[place] + 1] - starts[values[place]]
    found_symbols = np.empty(start[n_values], dtype=np.int32)
    found_weights = np.empty(start[n_values])
    cdef symbol_t[::1] symbol = found_symbols
    cdef weight_t[::1] weight = found_weights
    for place in range(n_values):
        for rule in range(start[place + 1] - start[place]):
            symbol[start[place] + rule] = symbols[starts[values[place]] + rule]
            weight[start[place] + rule] = weights[starts[values[place]] + rule]
    return found_starts, found_symbols, found_weights


cdef int sort_by(vector[symbol_t]* order, const symbol_t* key, symbol_t n_values) except -1 nogil:
    """Sort places by a key that each has; those with the same key stay in the order in which they are."""
    cdef vector[index_t] start   # per value: where the next place with it goes
    cdef vector[symbol_t] result
    cdef index_t n_places = order.size(), number
    cdef symbol_t value
    start.resize(<index_t>n_values + 1, 0)
    result.resize(n_places)
    for number in range(n_places):
        start[key[number] + 1] += 1
    for value in range(n_values):
        start[value + 1] += start[value]
    for number in range(n_places):
        value = key[order[0][number]]
        result[start[value]] = order[0][number]
        start[value] += 1
    order.swap(result)
    return 0
