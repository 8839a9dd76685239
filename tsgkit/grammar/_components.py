"""Unary cycles: which symbols reach each other by unary rules and bridges, and the sum over all paths that do.

A part of the weighted grammar, for the chart. For a cycle's matrix ``U`` of one-step weights,
``I + U + U^2 + ... = (I - U)^-1`` sums every path exactly. Members are allowed as intermediate nodes of paths one after
the other; the best single path comes from the same recursion with *max* in place of *sum*. Nothing but positive numbers
is added, so that small sums beside large ones stay exact. Only members that have a path to and from the intermediate
node are touched, and how many pairs of them may be is bounded: a file must not be able to take hours to load.
"""

from dataclasses import dataclass

import numpy as np

from tsgkit._components import components_of

# Sums over cycles whose weight is nearer to one have no correct digits.
SMALLEST_LOSS = 1e-12
# The closure of a cycle takes memory by the square of its symbols, and time by their cube if all are connected.
LARGEST_CYCLE = 1024
# Pairs of symbols that the closures of a grammar may touch; some seconds.
LARGEST_WORK = 1 << 30


class CycleError(ValueError):
    """A cycle is too large to sum over."""


@dataclass(frozen=True)
class Component:
    """Symbols that reach each other.

    Attributes
    ----------
    members : ndarray of int
    sums, best : ndarray, square
        The sum over all paths from a to b, the empty one included, and the weight of the best of them;
        infinite unless the spectral radius of the one-step weights is below one.
    """

    members: np.ndarray
    sums: np.ndarray
    best: np.ndarray

    @property
    def converges(self) -> bool:
        return bool(np.isfinite(self.sums).all())


def closure_matrices(n_symbols: int, edges: np.ndarray, weights: np.ndarray) -> list[Component]:
    """The components that contain a cycle, with their closures."""
    number_of, _ = components_of(n_symbols, edges)
    # The edges inside of components, component by component: those that have any are the cycles.
    is_inside = number_of[edges[:, 0]] == number_of[edges[:, 1]]
    edges, weights = edges[is_inside], weights[is_inside]
    order = np.argsort(number_of[edges[:, 0]], kind="stable")
    numbers, starts = np.unique(number_of[edges[order, 0]], return_index=True)
    parts = np.split(order, starts[1:]) if len(numbers) else ()
    by_component = np.argsort(number_of, kind="stable")
    bounds = np.searchsorted(number_of[by_component], [numbers, numbers + 1]).T.tolist()
    work = Work()
    return [
        close(by_component[low:high], edges[inside], weights[inside], work)
        for (low, high), inside in zip(bounds, parts, strict=True)
    ]


class Work:
    """How much the closures of a grammar may still cost."""

    def __init__(self) -> None:
        self.n_left = LARGEST_WORK

    def spend(self, n_pairs: int) -> None:
        self.n_left -= n_pairs
        if self.n_left < 0:
            raise CycleError("the cycles of unary rules and bridges are too large and too dense to sum over")


def close(members: np.ndarray, edges: np.ndarray, weights: np.ndarray, work: Work) -> Component:
    """The closure of a component with these edges inside of it."""
    if len(members) > LARGEST_CYCLE:
        raise CycleError(f"{len(members)} symbols reach each other by unary rules and bridges; at most {LARGEST_CYCLE}")
    step = np.zeros((len(members), len(members)))
    rows = np.searchsorted(members, edges[:, 0])
    columns = np.searchsorted(members, edges[:, 1])
    with np.errstate(over="ignore"):  # what is infinite does not converge
        np.add.at(step, (rows, columns), weights)
    best_step = np.zeros_like(step)
    np.maximum.at(best_step, (rows, columns), weights)
    sums, best = step, np.maximum(np.eye(len(members)), best_step)
    for middle in range(len(members)):
        loss = 1 - sums[middle, middle]
        if not loss > SMALLEST_LOSS:
            sums = best = np.full_like(step, np.inf)
            break
        # Those that have a path to the middle, or from it; the same for sums and for best paths.
        above = np.flatnonzero(sums[:, middle])
        below = np.flatnonzero(sums[middle])
        work.spend(len(above) * len(below))
        pairs = np.ix_(above, below)
        with np.errstate(over="ignore", invalid="ignore"):
            sums[pairs] += np.outer(sums[above, middle] / loss, sums[middle, below])
            best[pairs] = np.maximum(best[pairs], np.outer(best[above, middle], best[middle, below]))
    return Component(members, sums + np.eye(len(members)), best)
