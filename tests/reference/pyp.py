"""Pitman-Yor restaurants as the definitions read: seatings one by one, and what sums and frequencies should be.

A seating of ``n`` customers of a dish is known by its table sizes, a sorted tuple; many seatings of distinct
customers have the same sizes, and `seatings` says how many.
"""

from collections import Counter
from itertools import groupby
from math import erfc, factorial, prod, sqrt


def rising(start, step, n_factors):
    """``start (start + step) (start + 2 step) ...``, so many factors."""
    return prod(start + step * factor for factor in range(n_factors))


def partitions(n, largest=None):
    """The ways to write `n` as a sum of positive numbers, each as a tuple that does not increase."""
    if n == 0:
        yield ()
    for first in range(min(n, largest or n), 0, -1):
        for rest in partitions(n - first, first):
            yield (first, *rest)


def n_seatings(sizes):
    """How many ways distinct customers have to sit at tables of these sizes."""
    same = [len(list(group)) for _, group in groupby(sorted(sizes))]
    return factorial(sum(sizes)) // prod(map(factorial, sizes)) // prod(map(factorial, same))


def stirling(n, t, discount):
    """The generalised Stirling number: the sum over all seatings of n customers at t tables of their weights."""
    if n == 0 or t == 0:
        return float(n == t)
    return stirling(n - 1, t - 1, discount) + (n - 1 - discount * t) * stirling(n - 1, t, discount)


def seating_weight(sizes, discount):
    """What the tables of one dish contribute to a seating's probability."""
    return prod(rising(1 - discount, 1, size - 1) for size in sizes)


def restaurant_weight(n_customers, n_tables, discount, strength):
    """What the totals of a restaurant contribute to it."""
    if n_customers == 0:
        return 1.0
    return rising(strength + discount, discount, n_tables - 1) / rising(strength + 1, 1, n_customers - 1)


def seating_probability(seating, base, discount, strength):
    """The probability of one seating of distinct customers.

    Parameters
    ----------
    seating : dict
        Of every dish the table sizes.
    base : function of a dish
        Its base probability.
    """
    n_customers = sum(sum(sizes) for sizes in seating.values())
    n_tables = sum(map(len, seating.values()))
    return restaurant_weight(n_customers, n_tables, discount, strength) * prod(
        base(dish) ** len(sizes) * seating_weight(sizes, discount) for dish, sizes in seating.items()
    )


def orders_probability(orders, base, discount, strength):
    """The probability of a sequence of orders, whatever the seating: in how many tables is summed out dish by dish."""
    n_tables = {0: 1.0}  # number of tables -> sum of weights
    for dish, n in Counter(orders).items():
        longer = Counter()
        for before, weight in n_tables.items():
            for t in range(1, n + 1):
                longer[before + t] += weight * stirling(n, t, discount) * base(dish) ** t
        n_tables = longer
    return sum(weight * restaurant_weight(len(orders), t, discount, strength) for t, weight in n_tables.items())


def p_values_of_sizes(seen, discount, smallest=200):
    """Of the sizes of the tables of dishes, given how many customers and tables they have: these fix all but the sizes.

    Parameters
    ----------
    seen : iterable of tuple
        The table sizes of a dish, again and again.
    discount : float
    smallest : int
        Numbers of customers and tables that were seen less often are left out.
    """
    by_numbers = {}
    for sizes in seen:
        by_numbers.setdefault((sum(sizes), len(sizes)), Counter())[tuple(sorted(sizes, reverse=True))] += 1
    for (n, t), found in by_numbers.items():
        possible = [sizes for sizes in partitions(n) if len(sizes) == t]
        if len(possible) > 1 and found.total() >= smallest:
            total = stirling(n, t, discount)
            yield chi_square(
                found, {sizes: n_seatings(sizes) * seating_weight(sizes, discount) / total for sizes in possible}
            )


def chi_square(observed, expected, smallest=5.0):
    """The p-value of counts against probabilities (Pearson; the tail by Wilson and Hilferty's approximation).

    Parameters
    ----------
    observed : dict
        How often every outcome was seen.
    expected : dict
        The probability of every outcome.
    smallest : float
        Outcomes that are expected less often than this are taken as one.
    """
    unknown = set(observed) - set(expected)
    assert not unknown, f"outcomes of probability 0: {sorted(unknown)[:3]}"
    n = sum(observed.values())
    rare_seen = rare_expected = statistic = 0.0
    n_cells = 0
    for outcome, probability in expected.items():
        seen, wanted = observed.get(outcome, 0), n * probability
        if wanted < smallest:
            rare_seen, rare_expected = rare_seen + seen, rare_expected + wanted
        else:
            statistic += (seen - wanted) ** 2 / wanted
            n_cells += 1
    if rare_expected > 0:
        statistic += (rare_seen - rare_expected) ** 2 / max(rare_expected, smallest)
        n_cells += 1
    spread = 2 / (9 * (n_cells - 1))
    deviate = ((statistic / (n_cells - 1)) ** (1 / 3) - (1 - spread)) / sqrt(spread)
    return erfc(deviate / sqrt(2)) / 2


def deviate(values, expected, n_batches=50):
    """How many standard errors the mean of a chain lies off; the error is that of means of long stretches."""
    length = len(values) // n_batches
    means = [sum(values[i * length : (i + 1) * length]) / length for i in range(n_batches)]
    mean = sum(means) / n_batches
    variance = sum((value - mean) ** 2 for value in means) / (n_batches - 1)
    return (mean - expected) / sqrt(variance / n_batches)
