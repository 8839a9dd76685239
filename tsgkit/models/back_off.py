"""What refined rules back off to: descriptions of the hierarchy of restaurants between them and P0, by name.

A description lists the levels of restaurants over rules ``x_k -> y_l z_m``. Each says what it knows of the rule's root;
each backs off to the next one, and the last to the base distribution P0. With those that come with tsgkit,

    H_{x_k}(r)  ->  I_x(r)  ->  P0(r)
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tsgkit.errors import UsageError
from tsgkit.registry import Registry


@dataclass(frozen=True)
class RefinedSymbols:
    """What levels can know of the refined symbols.

    Attributes
    ----------
    label : ndarray of int, one per symbol
        The label that it refines.
    parent : ndarray of int, one per symbol
        The symbol of the split before that it is a half of.
    """

    label: np.ndarray
    parent: np.ndarray

    @property
    def number(self) -> np.ndarray:
        """The symbols themselves."""
        return np.arange(len(self.label), dtype=np.int32)


@dataclass(frozen=True)
class Level:
    """One level of restaurants over rules.

    Parameters
    ----------
    name : str
        In checkpoints and messages.
    context : function of RefinedSymbols
        Gives an array with the restaurant of every symbol, counted from 0 on in the order of symbols.
    """

    name: str
    context: Callable[[RefinedSymbols], np.ndarray]


@dataclass(frozen=True)
class Levels:
    """The levels of rules over certain symbols, as compiled samplers take them.

    Attributes
    ----------
    names : tuple of str
    contexts : list of ndarray of int, one per symbol each
        The restaurant of every symbol at each level.
    n_used : int
        So many of them have customers; the last of these backs off to P0.
    """

    names: tuple[str, ...]
    contexts: list[np.ndarray]
    n_used: int


@dataclass(frozen=True)
class BackOff:
    """A hierarchy of restaurants over refined rules.

    Parameters
    ----------
    levels : tuple of Level
        From the first, which has a restaurant for every symbol, to the last, which backs off to P0. Contexts are
        nested: what a level tells apart, all levels before it tell apart as well; and none joins symbols of several
        labels.

    Examples
    --------
    >>> symbols = RefinedSymbols(label=np.array([0, 1, 1, 1, 1]), parent=np.array([0, 1, 1, 2, 2]))
    >>> coarse = Level("coarse", lambda symbols: symbols.parent)
    >>> levels = BackOff((REFINED, coarse, UNREFINED)).over(symbols)
    >>> [context.tolist() for context in levels.contexts]
    [[0, 1, 2, 3, 4], [0, 1, 1, 2, 2], [0, 1, 1, 1, 1]]
    """

    levels: tuple[Level, ...]

    @property
    def n_levels(self) -> int:
        """How many levels there are, P0 among them."""
        return len(self.levels) + 1

    def over(self, symbols: RefinedSymbols, n_levels: int | None = None) -> Levels:
        """The levels over some symbols, of which only the first `n_levels` are in use, P0 among them."""
        contexts = [np.asarray(level.context(symbols), dtype=np.int32) for level in self.levels]
        n_used = (self.n_levels if n_levels is None else n_levels) - 1
        return Levels(tuple(level.name for level in self.levels), contexts, n_used)


REFINED = Level("rule", lambda symbols: symbols.number)
UNREFINED = Level("base", lambda symbols: symbols.label)

UNREFINED_ROOT = BackOff((REFINED, UNREFINED))

BACK_OFFS: Registry[BackOff] = Registry(
    "back-off", "tsgkit.back_offs", {"unrefined": "tsgkit.models.back_off:UNREFINED_ROOT"}
)
DEFAULT = "unrefined"


def back_off_of(name: str, n_levels: int | None) -> BackOff:
    """The back-off of this name; a `UsageError` if there is none, or if it does not have so many levels."""
    back_off = BACK_OFFS.require(name, "back-off")
    allowed = range(1, back_off.n_levels + 1)
    if n_levels is not None and n_levels not in allowed:
        raise UsageError(f"levels {n_levels}: must be one of {', '.join(map(str, allowed))}")
    return back_off
