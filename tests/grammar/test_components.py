"""Components and closures against sums over paths, one path length after the other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import damped, sized

from tsgkit._components import components_of
from tsgkit.grammar._components import LARGEST_CYCLE, CycleError, closure_matrices

many = settings(max_examples=200, deadline=None, derandomize=True)


@st.composite
def graphs(draw):
    n_symbols = draw(st.integers(1, 7))
    symbol = st.integers(0, n_symbols - 1)
    edges = draw(sized(st.tuples(symbol, symbol), 0, 14))
    return n_symbols, np.array(edges, dtype=np.int32).reshape(-1, 2)


def reached(n_symbols, edges):
    """Whom every symbol reaches, itself included."""
    found = [{symbol} for symbol in range(n_symbols)]
    for _ in range(n_symbols):
        for parent, child in edges.tolist():
            found[parent] |= found[child]
    return found


@many
@given(graphs())
def test_components(graph):
    n_symbols, edges = graph
    component, level = components_of(n_symbols, edges)
    assert sorted(set(component.tolist())) == list(range(len(level)))
    reach = reached(n_symbols, edges)
    for one in range(n_symbols):
        for other in range(n_symbols):
            is_same = one in reach[other] and other in reach[one]
            assert (component[one] == component[other]) == is_same
            if other in reach[one]:
                assert component[other] <= component[one]
    assert level.tolist() == longest_paths(edges.tolist(), component.tolist(), len(level))


def longest_paths(edges, component, n_components):
    """For every component the length of the longest path to others."""
    level = [0] * n_components
    for _ in range(n_components):
        for parent, child in edges:
            if component[parent] != component[child]:
                level[component[parent]] = max(level[component[parent]], level[component[child]] + 1)
    return level


def test_a_deep_chain_is_no_recursion():
    n_symbols = 50_000
    edges = np.column_stack([np.arange(n_symbols - 1), np.arange(1, n_symbols)])
    component, level = components_of(n_symbols, edges)
    assert component.tolist() == list(reversed(range(n_symbols)))
    assert level.tolist() == list(range(n_symbols))
    component, level = components_of(n_symbols, np.vstack([edges, [(n_symbols - 1, 0)]]))
    assert not component.any()
    assert level.tolist() == [0]


@pytest.mark.parametrize("edge", [(0, 2), (-1, 0)])
def test_an_edge_out_of_range_is_refused(edge):
    with pytest.raises(ValueError, match="out of range: there are 2 symbols"):
        components_of(2, [edge])


@many
@given(graphs(), st.data(), st.sampled_from([0.1, 0.6, 0.95]), st.sampled_from([1.0, 1e3, 1e30]))
def test_closures_sum_all_paths(graph, data, kept, unit):
    n_symbols, edges = graph
    weights = data.draw(st.lists(st.floats(0.01, 2.0), min_size=len(edges), max_size=len(edges)))
    units = data.draw(sized(st.sampled_from([1.0, unit, 1 / unit]), n_symbols, n_symbols))
    rules = damped([(x, y, w, None) for (x, y), w in zip(edges.tolist(), weights, strict=True)], kept, units)
    weights = [rule[2] for rule in rules]
    components = closure_matrices(n_symbols, edges, np.array(weights))
    reach = reached(n_symbols, edges)
    loops = {parent for parent, child in edges.tolist() if parent == child}
    expected = {
        frozenset(other for other in range(n_symbols) if other in reach[one] and one in reach[other])
        for one in range(n_symbols)
    }
    expected = {members for members in expected if len(members) > 1 or members & loops}
    assert {frozenset(component.members.tolist()) for component in components} == expected
    for component in components:
        members = component.members.tolist()
        assert component.converges
        step = {}
        best_step = {}
        for (x, y), weight in zip(edges.tolist(), weights, strict=True):
            if x in members and y in members:
                step[x, y] = step.get((x, y), 0.0) + weight
                best_step[x, y] = max(best_step.get((x, y), 0.0), weight)
        for row, start in enumerate(members):
            sums, best = path_weights(members, step, best_step, start)
            for column, end in enumerate(members):
                assert component.sums[row, column] == pytest.approx(sums[end], rel=1e-9, abs=0)
                assert component.best[row, column] == pytest.approx(best[end], rel=1e-9, abs=0)


def path_weights(members, step, best_step, start):
    """The sum over all paths from `start` to each member, and the best path, by length."""
    here = {symbol: float(symbol == start) for symbol in members}
    best_here = dict(here)
    sums, best = dict(here), dict(here)
    for _ in range(1500):
        here = {y: sum(here[x] * step.get((x, y), 0.0) for x in members) for y in members}
        best_here = {y: max(best_here[x] * best_step.get((x, y), 0.0) for x in members) for y in members}
        for symbol in members:
            sums[symbol] += here[symbol]
            best[symbol] = max(best[symbol], best_here[symbol])
        if all(here[symbol] <= 1e-14 * sums[symbol] for symbol in members):
            break
    return sums, best


@pytest.mark.parametrize(
    "weights", [(1.0, 1.0, 1.0), (0.2, 0.5, 10.0), (1 / 3, 3.0, 1.0), (2.0, 3.0, 4.0), (1e200, 1e200, 1e200)]
)
def test_cycles_that_lose_nothing(weights):
    edges = np.array([(0, 1), (1, 2), (2, 0)])
    (component,) = closure_matrices(3, edges, np.array(weights))
    assert not component.converges
    assert not np.isfinite(component.sums).all()


def test_small_beside_large():
    """The inverse of a matrix loses what is small beside something large; sums of positive numbers do not."""
    edges = np.array([(0, 1), (1, 0), (1, 2), (2, 1), (2, 2)])
    weights = np.array([1e30, 1e-31, 1e-20, 1e19, 0.25])
    (component,) = closure_matrices(3, edges, weights)
    # Over 1 from 1: once round by 0 (a tenth), or by 2 and any number of times round 2.
    once = 0.1 + 0.1 / 0.75
    assert component.sums[1, 1] == pytest.approx(1 / (1 - once), rel=1e-12)
    assert component.sums[0, 2] == pytest.approx(1e30 / (1 - once) * 1e-20 / 0.75, rel=1e-12)
    assert component.sums[2, 0] == pytest.approx(1e19 / 0.75 / (1 - once) * 1e-31, rel=1e-12)
    assert component.best[0, 2] == pytest.approx(1e10)


def test_a_cycle_too_large_is_refused_before_memory_is_taken():
    symbols = np.arange(LARGEST_CYCLE + 1)
    ring = np.stack([symbols, np.roll(symbols, 1)], axis=1)
    with pytest.raises(CycleError, match=f"{LARGEST_CYCLE + 1} symbols reach each other"):
        closure_matrices(len(symbols), ring, np.full(len(symbols), 0.5))


def test_many_cycles_take_no_longer_than_their_edges():
    symbols = np.arange(4_000)
    loops = np.stack([symbols, symbols], axis=1)
    components = closure_matrices(len(symbols), loops, np.full(len(symbols), 0.5))
    assert len(components) == len(symbols)
    assert all(component.sums.tolist() == [[2.0]] for component in components)
