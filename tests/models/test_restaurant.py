"""Restaurants against their definition: all seatings one by one, and integrals on a grid."""

from collections import Counter
from itertools import product
from math import exp, log

import numpy as np
import pytest
from reference import pyp

from tsgkit import _restaurant
from tsgkit.models.restaurant import Parameters, PitmanYorProcess, Stream

BASE = {"a": 0.5, "b": 0.3, "c": 0.2}
PAIRS = [(0.0, 1.0), (0.3, 0.5), (0.8, 2.0)]


def filled(orders, base, parameters, stream):
    process = PitmanYorProcess(base, parameters)
    for dish in orders:
        process.seat(dish, stream)
    return process


def seating(process):
    return {dish: tuple(process.table_sizes(dish)) for dish in sorted(process.dishes())}


def test_sums_over_seatings_are_stirling_numbers():
    for n, t, discount in product(range(1, 7), range(1, 7), (0.0, 0.3, 0.8)):
        weights = [
            pyp.n_seatings(sizes) * pyp.seating_weight(sizes, discount)
            for sizes in pyp.partitions(n)
            if len(sizes) == t
        ]
        assert sum(weights) == pytest.approx(pyp.stirling(n, t, discount))


@pytest.mark.parametrize(("discount", "strength"), PAIRS)
def test_probabilities_and_log_joint_of_one_level(discount, strength):
    stream = Stream(seed=1)
    for _ in range(50):
        process = filled("aabacab", BASE.get, Parameters(discount, strength), stream)
        now = pyp.seating_probability(seating(process), BASE.get, discount, strength)
        assert process.log_joint() == pytest.approx(log(now))
        # The probability of a dish is the sum over the seats that its next customer may take.
        for dish in BASE:
            sizes = seating(process).get(dish, ())
            nexts = [(*sizes, 1)] + [(*sizes[:i], size + 1, *sizes[i + 1 :]) for i, size in enumerate(sizes)]
            after = sum(
                pyp.seating_probability(seating(process) | {dish: more}, BASE.get, discount, strength) for more in nexts
            )
            assert process.probability(dish) == pytest.approx(after / now)
        assert sum(map(process.probability, BASE)) == pytest.approx(1)


@pytest.mark.parametrize(("discount", "strength"), PAIRS)
def test_log_joint_is_the_product_of_the_steps(discount, strength):
    """log p of a seating, step by step: what the customer chose, times what it had to choose from."""
    stream = Stream(seed=2)
    process = PitmanYorProcess(BASE.get, Parameters(discount, strength))
    log_product = 0.0
    for dish in "abacabaabbca":
        before, n, t = Counter(process.table_sizes(dish)), process.n_customers, process.n_tables
        process.seat(dish, stream)
        left = before - Counter(process.table_sizes(dish))  # the table before the customer came
        own = [size - discount for size in left] or [(strength + discount * t) * BASE[dish]]
        log_product += log(own[0] / (strength + n))
    assert process.log_joint() == pytest.approx(log_product)


def two_level_posterior(orders, top, bottom):
    """The exact distribution of seatings of two levels, given the orders: (lower, upper) -> probability."""
    counts = Counter(orders)
    weights = Counter()
    for sizes in product(*[list(pyp.partitions(n)) for n in counts.values()]):
        lower = dict(zip(counts, sizes, strict=True))
        own = pyp.seating_probability(lower, lambda dish: 1.0, bottom.discount, bottom.strength)
        for number in map(pyp.n_seatings, sizes):
            own *= number
        for upper_sizes in product(*[list(pyp.partitions(len(tables))) for tables in sizes]):
            upper = dict(zip(counts, upper_sizes, strict=True))
            weight = own * pyp.seating_probability(upper, BASE.get, top.discount, top.strength)
            for number in map(pyp.n_seatings, upper_sizes):
                weight *= number
            weights[tuple(sizes), tuple(upper_sizes)] += weight
    return weights


@pytest.mark.statistics
@pytest.mark.parametrize(("discount", "strength"), PAIRS)
def test_gibbs_over_two_levels_visits_seatings_as_often_as_it_should(discount, strength):
    top, bottom = Parameters(discount, strength), Parameters(0.4, 0.7)
    orders = "aaaabb"
    weights = two_level_posterior(orders, top, bottom)
    total = sum(weights.values())
    stream = Stream(seed=3)
    upper = PitmanYorProcess(BASE.get, top)
    lower = filled(orders, upper, bottom, stream)
    seen = Counter()
    for _ in range(20000):
        for dish in orders:
            lower.unseat(dish, stream)
            lower.seat(dish, stream)
        state = [tuple(tuple(level.table_sizes(dish)[::-1]) for dish in "ab") for level in (lower, upper)]
        seen[tuple(state)] += 1
        joint = lower.log_joint() + upper.log_joint()
    assert pyp.chi_square(seen, {state: weight / total for state, weight in weights.items()}) > 1e-3
    # The same numbers also say how probable the orders are, and the joint is that of the last seating.
    ways = [pyp.n_seatings(sizes) for level in state for sizes in level]
    assert exp(joint) * np.prod(ways) == pytest.approx(weights[tuple(state)])


def test_a_lost_table_shows_in_the_frequencies():
    """The statistic rejects a Gibbs sampler whose new tables forget to seat a customer in the base."""
    top, bottom = Parameters(0.3, 0.5), Parameters(0.4, 0.7)
    weights = two_level_posterior("aaaabb", top, bottom)
    total = sum(weights.values())
    stream = Stream(seed=3)
    upper = filled("ab", BASE.get, top, stream)
    lower = filled("aaaabb", upper.probability, bottom, stream)
    seen = Counter()
    for _ in range(20000):
        for dish in "aaaabb":
            lower.unseat(dish, stream)
            lower.seat(dish, stream)
        seen[tuple(tuple(lower.table_sizes(dish)[::-1]) for dish in "ab")] += 1
    expected = Counter()
    for (sizes, _), weight in weights.items():
        expected[sizes] += weight / total
    assert pyp.chi_square(seen, expected) < 1e-9


@pytest.mark.parametrize(("discount", "strength"), PAIRS)
def test_orders_have_the_probability_that_the_stirling_numbers_give(discount, strength):
    """Averaged over seatings, the product of predictive probabilities is that of the orders."""
    orders = "aabab"
    stream = Stream(seed=4)
    products = []
    for _ in range(20000):
        process = PitmanYorProcess(BASE.get, Parameters(discount, strength))
        value = 1.0
        for dish in orders:
            value *= process.probability(dish)
            process.seat(dish, stream)
        products.append(value)
    exact = pyp.orders_probability(orders, BASE.get, discount, strength)
    spread = np.std(products) / len(products) ** 0.5
    assert abs(np.mean(products) - exact) < 4 * spread + 1e-12


def test_who_leaves_is_drawn_among_customers_and_not_among_tables():
    stream = Stream(1)
    n_seen = n_from_small = 0
    while n_seen < 3000:
        restaurant = _restaurant.DishRestaurant()
        for _ in range(5):
            restaurant.seat("soup", 1.0, 0.5, 1.0, stream)
        if restaurant.table_sizes("soup") == [2, 3]:
            n_seen += 1
            restaurant.unseat("soup", stream)
            n_from_small += restaurant.table_sizes("soup") == [1, 3]
    # Two of five customers sit at the smaller table; the standard error is 0.009.
    assert abs(n_from_small / n_seen - 0.4) < 0.04


def test_unseating_all_leaves_nothing_at_any_level():
    stream = Stream(seed=5)
    levels = [PitmanYorProcess(0.1)]
    for _ in range(30):
        levels.append(PitmanYorProcess(levels[-1], levels[0].parameters))
    orders = [("word", number % 7) for number in range(200)]
    for dish in orders:
        levels[-1].seat(dish, stream)
    for below, above in zip(levels[1:], levels[:-1], strict=True):
        assert below.n_tables == above.n_customers
        for dish in below.dishes():
            assert below.counts(dish)[1] == above.counts(dish)[0]
            assert sum(below.table_sizes(dish)) == below.counts(dish)[0]
    for dish in orders:
        levels[-1].unseat(dish, stream)
    for process in levels:
        assert (process.n_customers, process.n_tables, process.dishes()) == (0, 0, [])
        assert process.log_joint() == 0
        assert process.probability("any") == pytest.approx(0.1)


def test_depth_is_bounded_by_memory_only():
    stream = Stream(seed=6)
    process = PitmanYorProcess(0.25)
    for _ in range(5000):
        process = PitmanYorProcess(process)
    process.seat("a", stream)
    assert process.probability("a") > 0.9
    process.unseat("a", stream)
    assert process.probability("a") == pytest.approx(0.25)


def posterior_moments(seatings, is_dirichlet):
    """The means of discount, strength and their squares given seatings that share them, on a grid."""
    strengths = (np.arange(4000) + 0.5) * 0.005
    discounts = np.zeros(1) if is_dirichlet else (np.arange(200) + 0.5) / 200
    d, theta = np.meshgrid(discounts, strengths, indexing="ij")
    weight = np.exp(-theta)
    for sizes in seatings:
        for factor in range(1, len(sizes)):
            weight = weight * (theta + d * factor)
        for factor in range(1, sum(sizes)):
            weight = weight / (theta + factor)
        for size in sizes:
            for factor in range(1, size):
                weight = weight * (factor - d)
    return [(value * weight).sum() / weight.sum() for value in (d, d**2, theta, theta**2)]


@pytest.mark.parametrize("is_dirichlet", [False, True])
def test_parameters_follow_their_posterior(is_dirichlet):
    """Given fixed seatings of two restaurants that share them."""
    stream = Stream(seed=7)
    parameters = Parameters(0.0 if is_dirichlet else 0.5, 1.0)
    processes = [filled("aaaaabbbccd", 0.01, parameters, stream), filled("xxxxxxxxy", 0.1, parameters, stream)]
    sizes = [[size for dish in p.dishes() for size in p.table_sizes(dish)] for p in processes]
    drawn = []
    for _ in range(30000):
        parameters.resample(processes, stream)
        drawn.append((parameters.discount, parameters.strength))
    discounts, strengths = np.array(drawn).T
    moments = posterior_moments(sizes, is_dirichlet)
    chains = (discounts, discounts**2, strengths, strengths**2)
    if is_dirichlet:
        assert not discounts.any()
        moments, chains = moments[2:], chains[2:]
    for chain, moment in zip(chains, moments, strict=True):
        assert abs(pyp.deviate(chain.tolist(), moment)) < 4


PRIOR_MOMENTS = {"discount": 1 / 2, "discount squared": 1 / 3, "strength": 1.0, "strength squared": 2.0}


def test_getting_it_right():
    """Geweke (2004): parameters, then orders and seats given them, then parameters given these: the prior stays.

    Two levels, each with its own parameters; customers are simulated again in every round.
    """
    stream = Stream(seed=8)
    top, bottom = Parameters(), Parameters()
    chains = {(name, level): [] for name in PRIOR_MOMENTS for level in ("top", "bottom")}
    for _ in range(6000):
        upper = PitmanYorProcess(BASE.get, top)
        lower = [PitmanYorProcess(upper, bottom) for _ in range(2)]
        for customer in range(16):
            process = lower[customer % 2]
            target = stream.uniform()
            for dish in BASE:
                target -= process.probability(dish)
                if target < 0:
                    break
            process.seat(dish, stream)
        for process in lower:  # a transition of the seats, too
            for dish in process.dishes():
                process.unseat(dish, stream)
                process.seat(dish, stream)
        top.resample([upper], stream)
        bottom.resample(lower, stream)
        for level, parameters in (("top", top), ("bottom", bottom)):
            chains["discount", level].append(parameters.discount)
            chains["discount squared", level].append(parameters.discount**2)
            chains["strength", level].append(parameters.strength)
            chains["strength squared", level].append(parameters.strength**2)
    for (name, level), chain in chains.items():
        assert abs(pyp.deviate(chain, PRIOR_MOMENTS[name])) < 4, (name, level)


def test_the_same_seed_gives_the_same_seats():
    def sizes(seed):
        process = filled("ab" * 30, 0.5, Parameters(0.5, 3.0), Stream(seed))
        return seating(process)

    assert sizes(1) == sizes(1)
    assert sizes(1) != sizes(2)


def test_errors():
    stream = Stream(seed=9)
    process = PitmanYorProcess(lambda dish: 0.0 if dish == "no" else 0.5)
    with pytest.raises(ValueError, match="no customer has the dish 'a'"):
        process.unseat("a", stream)
    with pytest.raises(ValueError, match=r"gives 'no' the probability 0\.0"):
        PitmanYorProcess(process).seat("no", stream)
    assert process.n_customers == 0
    with pytest.raises(TypeError, match="unhashable"):
        process.seat([], stream)
    with pytest.raises(ValueError, match="other parameters"):
        Parameters().resample([process], stream)
    with pytest.raises(ValueError, match="base probability 0"):
        PitmanYorProcess(0)
    for discount, strength in ((-0.1, 1), (1, 1), (0.5, 0), (0.5, float("inf")), (float("nan"), 1)):
        with pytest.raises(ValueError, match="is not"):
            Parameters(discount, strength)
