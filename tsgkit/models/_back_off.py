"""What refined rules back off to: descriptions of the hierarchy of restaurants between them and P0, by name.

A description lists the levels of restaurants over rules ``x_k -> y_l z_m``. Each says what it knows of the rule's root;
each backs off to the next one, and the last to the base distribution P0. With those that come with tsgkit,

    H_{x_k}(r)  ->  I_x(r)  ->  P0(r)
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tsgkit import _plugins
from tsgkit._registry import Registry
from tsgkit.errors import UsageError


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

    @property
    def used(self) -> list[tuple[str, np.ndarray]]:
        """Names and contexts of the levels in use."""
        return list(zip(self.names, self.contexts, strict=True))[: self.n_used]


@dataclass(frozen=True)
class BackOff:
    """A hierarchy of restaurants over refined rules.

    Parameters
    ----------
    levels : tuple of Level
        From the first, which has a restaurant for every symbol, to the last, which backs off to P0. Contexts are
        nested: what a level tells apart, all levels before it tell apart as well; and none joins symbols of several
        labels.
    n_used : int, optional
        Only the first so many levels are in use, and the last of them backs off to P0; unless given, all.

    Examples
    --------
    >>> symbols = RefinedSymbols(label=np.array([0, 1, 1, 1, 1]), parent=np.array([0, 1, 1, 2, 2]))
    >>> coarse = Level("coarse", lambda symbols: symbols.parent)
    >>> levels = BackOff((REFINED, coarse, UNREFINED)).over(symbols)
    >>> [context.tolist() for context in levels.contexts]
    [[0, 1, 2, 3, 4], [0, 1, 1, 2, 2], [0, 1, 1, 1, 1]]
    """

    levels: tuple[Level, ...]
    n_used: int | None = None

    @property
    def n_levels(self) -> int:
        """How many levels there are, P0 among them."""
        return len(self.levels) + 1

    def truncated(self, n_levels: int | None) -> "BackOff":
        """The same with only the first `n_levels` in use, P0 among them; None for all."""
        allowed = range(1, self.n_levels + 1)
        if n_levels is not None and n_levels not in allowed:
            raise UsageError(f"levels {n_levels}: must be one of {', '.join(map(str, allowed))}")
        return self if n_levels is None else replace(self, n_used=n_levels - 1)

    def over(self, symbols: RefinedSymbols, least: int = 0) -> Levels:
        """The levels over some symbols, of which at least so many are in use."""
        contexts = [np.asarray(level.context(symbols), dtype=np.int32) for level in self.levels]
        n_used = len(self.levels) if self.n_used is None else self.n_used
        return Levels(tuple(level.name for level in self.levels), contexts, max(n_used, least))


REFINED = Level("rule", lambda symbols: symbols.number)
UNREFINED = Level("base", lambda symbols: symbols.label)

UNREFINED_ROOT = BackOff((REFINED, UNREFINED))

BACK_OFFS: Registry[BackOff] = _plugins.BACK_OFFS


class BackOffSymbols:
    """The symbols of a grammar for what refined symbols back off to: the restaurants of later levels, and P0.

    Backing off is a bridge at the same node. P0 has a symbol for every label: that of the last level, where it has one
    restaurant for each, and otherwise its own.

    Parameters
    ----------
    levels : Levels
    label : ndarray, one per refined symbol that `levels` counts
    n_labels : int
    first : int
        The number of the first of them in the grammar.

    Attributes
    ----------
    of_level : dict of ndarray
        Of every level in use after the first, by name: the symbols of its restaurants.
    of_label : ndarray, one per label
        The symbols of P0.
    label : ndarray, one per symbol from `first` on
    last : str or None
        The level whose symbols are those of P0, too: its bridges are factors of P0's rules.

    Examples
    --------
    >>> symbols = RefinedSymbols(label=np.array([0, 1, 1]), parent=np.array([0, 1, 1]))
    >>> added = BackOffSymbols(UNREFINED_ROOT.over(symbols), symbols.label, n_labels=2, first=3)
    >>> added.of_level["base"].tolist(), added.of_label.tolist(), added.next_of(0).tolist()
    ([3, 4], [3, 4], [3, 4, 4])
    """

    def __init__(self, levels: Levels, label: np.ndarray, n_labels: int, first: int) -> None:
        self.levels, self.first = levels, first
        self.of_level: dict[str, np.ndarray] = {}
        self.label_of: dict[str, np.ndarray] = {}
        self.last: str | None = None
        labels = [np.empty(0, dtype=np.int64)]
        for name, context in levels.used[1:]:
            own = np.zeros(int(context.max()) + 1, dtype=np.int64)
            own[context] = label
            self.of_level[name], self.label_of[name] = first + sum(map(len, labels)) + np.arange(len(own)), own
            labels.append(own)
            self.last = name if own.tolist() == list(range(n_labels)) else None
        self.symbol_label = label
        self.of_label = first + sum(map(len, labels)) + np.arange(n_labels)
        if self.last is not None:
            self.of_label = self.of_level[self.last]
        else:
            labels.append(np.arange(n_labels))
        self.label = np.concatenate(labels)

    @property
    def end(self) -> int:
        """The number of the first symbol after them."""
        return self.first + len(self.label)

    def next_of(self, level: int) -> np.ndarray:
        """What the restaurants of a level in use back off to: a symbol for each."""
        used = self.levels.used
        context = used[level][1] if used else np.arange(len(self.symbol_label))
        result = np.zeros(int(context.max()) + 1, dtype=np.int64)
        if level + 1 < len(used):
            name, next_context = used[level + 1]
            result[context] = self.of_level[name][next_context]
        else:
            result[context] = self.of_label[self.symbol_label]
        return result

    def bridges(self) -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
        """The bridges from later levels to the next: of each level its name, symbols, labels, and what they go to."""
        return [
            (name, self.of_level[name], self.label_of[name], self.next_of(number))
            for number, (name, _) in enumerate(self.levels.used)
            if number > 0 and name != self.last
        ]
