"""The weighted grammar with a projection: what every model exports and the one chart parses with.

A *symbol* is what the chart works with; it projects to a *label* of the (binarised) treebank. Four kinds of
rules: binary ``x -> y z``, unary ``x -> y`` and lexical ``x -> word`` each make one tree node labelled with
the projection of ``x``; a *bridge* ``x => y`` moves from one symbol to another of the same node. A symbol may have no
label: then it has nothing but bridges, is a child in binary rules only, and stands for whatever its bridges lead to.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tsgkit._archive import read_archive, require, take_array, write_archive
from tsgkit._components import components_of
from tsgkit._rule_arrays import are_in_order, are_in_range, are_positive
from tsgkit.errors import TsgkitError
from tsgkit.grammar._components import Component, CycleError, closure_matrices

KIND = "grammar"
VERSION = 1
PROPER_TOLERANCE = 1e-9
NO_LABEL = -1
RULE_KINDS = {"binary": 3, "unary": 2, "bridge": 2, "lexical": 2}


class GrammarError(TsgkitError):
    """A grammar that no chart can work with; the message names the symbol or the rule."""


@dataclass(frozen=True)
class GrammarReport:
    """What `WeightedGrammar.report` found.

    Attributes
    ----------
    is_proper : bool
        Whether the weights of the rules of every used symbol sum to one.
    largest_excess : float
        The largest distance of such a sum from one.
    unreachable, unproductive : list of int
        Symbols that no derivation from the root contains; symbols that derive no words.
    cycles : list of list of int
        Sets of symbols that reach each other by unary rules and bridges.
    """

    is_proper: bool
    largest_excess: float
    unreachable: list[int]
    unproductive: list[int]
    cycles: list[list[int]]


@dataclass(repr=False)
class WeightedGrammar:
    """Rules as integer arrays, their weights, and the projection to treebank labels.

    Parameters
    ----------
    labels : sequence of str
        Treebank labels, as in the prepared corpus.
    words : sequence of str
        The closed vocabulary.
    label : array of int, one per symbol
        The projection; -1 for a symbol without a label.
    root : int
        The symbol that derives sentences.
    binary, unary, bridge, lexical : arrays of int with 3, 2, 2 and 2 columns
        ``(x, y, z)``, ``(x, y)``, ``(x, y)``, ``(x, word)``. The same rule twice counts with the sum of
        the weights.
    binary_weight, unary_weight, bridge_weight, lexical_weight : arrays of float
        Positive.
    names : sequence of str, optional
        How symbols are called in files for people; made from the labels unless given.

    Examples
    --------
    >>> grammar = WeightedGrammar(
    ...     labels=["S", "A"], words=["a"], label=[0, 1], root=0,
    ...     binary=[(0, 1, 1)], binary_weight=[1.0], lexical=[(1, 0)], lexical_weight=[1.0])
    >>> grammar.n_rules, grammar.report().is_proper
    (2, True)
    """

    labels: Sequence[str]
    words: Sequence[str]
    label: np.ndarray
    root: int
    binary: np.ndarray = field(default_factory=lambda: np.empty((0, 3), np.int32))
    binary_weight: np.ndarray = field(default_factory=lambda: np.empty(0))
    unary: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.int32))
    unary_weight: np.ndarray = field(default_factory=lambda: np.empty(0))
    bridge: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.int32))
    bridge_weight: np.ndarray = field(default_factory=lambda: np.empty(0))
    lexical: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.int32))
    lexical_weight: np.ndarray = field(default_factory=lambda: np.empty(0))
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        self.labels, self.words = list(self.labels), list(self.words)
        self.label = whole_numbers(self.label, "label", ())
        self.root = int(self.root)
        self.names = None if self.names is None else list(self.names)
        for kind, n_columns in RULE_KINDS.items():
            rules = whole_numbers(getattr(self, kind), kind, (n_columns,))
            weights = np.asarray(getattr(self, f"{kind}_weight"), dtype=np.float64).reshape(-1)
            if len(rules) != len(weights):
                raise GrammarError(f"{len(rules)} {kind} rules but {len(weights)} weights")
            if not (weights > 0).all():
                raise GrammarError(f"a {kind} rule has a weight that is not a positive number")
            rules, weights = sorted_sums(rules, weights)
            setattr(self, kind, rules)
            setattr(self, f"{kind}_weight", weights)
        self.validate()

    @property
    def n_symbols(self) -> int:
        """The number of symbols."""
        return len(self.label)

    def __repr__(self) -> str:
        return f"<WeightedGrammar of {self.n_rules} rules, {self.n_symbols} symbols, {len(self.labels)} labels>"

    @property
    def n_rules(self) -> int:
        """The number of rules, lexical ones included."""
        return sum(len(getattr(self, kind)) for kind in RULE_KINDS)

    def validate(self) -> None:
        """Check what compiled code relies on.

        Raises
        ------
        GrammarError
            The message names the symbol or the kind of rule.
        """
        if not self.n_symbols or not 0 <= self.root < self.n_symbols:
            raise GrammarError(f"the root {self.root} is not one of {self.n_symbols} symbols")
        if self.label.min() < NO_LABEL or self.label.max() >= len(self.labels):
            raise GrammarError("the projection points outside of the labels")
        if self.names is not None and (len(self.names) != self.n_symbols or len(set(self.names)) != self.n_symbols):
            raise GrammarError("the names of symbols are not one for each, all different")
        for kind in RULE_KINDS:
            self.validate_rules(kind)
        upper, lower = self.label[self.bridge.T]
        if ((upper != lower) & (upper != NO_LABEL)).any():
            raise GrammarError("a bridge joins symbols with different labels")
        if self.has_label_needed():
            raise GrammarError("a symbol without a label is more than a child in binary rules with bridges to others")
        for component in self.components:
            if not component.converges:
                members = ", ".join(map(self.name_of, component.members[:8]))
                raise GrammarError(f"the sum over a cycle of unary rules and bridges does not converge: {members}")

    def validate_rules(self, kind: str) -> None:
        """Check the rules of one kind by themselves."""
        rules, weights = getattr(self, kind), getattr(self, f"{kind}_weight")
        if not are_positive(weights):
            raise GrammarError(f"a {kind} rule has a weight that is not a positive number")
        limits = [self.n_symbols] * (rules.shape[1] - 1) + [len(self.words) if kind == "lexical" else self.n_symbols]
        if not are_in_range(rules, np.array(limits)):
            raise GrammarError(f"a {kind} rule names a symbol or word that is out of range")

    def has_label_needed(self) -> bool:
        """Whether a symbol without a label is used where one is needed."""
        is_bare = self.label == NO_LABEL
        if not is_bare.any():
            return False
        labelled = (self.binary[:, 0], self.unary.ravel(), self.lexical[:, 0], self.bridge[:, 1], self.root)
        two_bare = is_bare[self.binary[:, 1]] & is_bare[self.binary[:, 2]]
        return bool(two_bare.any() or any(is_bare[symbols].any() for symbols in labelled))

    @cached_property
    def components(self) -> list[Component]:
        """The sets of symbols in unary cycles with their closures; see `tsgkit.grammar._components`."""
        edges = np.concatenate([self.unary, self.bridge])
        weights = np.concatenate([self.unary_weight, self.bridge_weight])
        try:
            return closure_matrices(self.n_symbols, edges, weights)
        except CycleError as error:
            raise GrammarError(str(error)) from None

    def bottom_up_order(self) -> np.ndarray:
        """All symbols, children of unary rules and bridges before their parents; those in one cycle side by side.

        Apart from that those with the same label are side by side, so that what reads them one after the other reads
        memory in order.
        """
        component, level = components_of(self.n_symbols, np.concatenate([self.unary, self.bridge]))
        first = np.full(len(level), self.n_symbols, dtype=np.int64)
        np.minimum.at(first, component, np.arange(self.n_symbols))
        first_member = first[component]
        order = np.lexsort((np.arange(self.n_symbols), first_member, self.label[first_member], level[component]))
        return order.astype(np.int32)

    def name_of(self, symbol: int) -> str:
        """A name for people: the label, with a number where several symbols share it."""
        if self.names is not None:
            return self.names[symbol]
        return self.default_names[symbol]

    @cached_property
    def default_names(self) -> list[str]:
        # The last of these is for symbols without a label, whose names are numbers alone.
        labels = [*self.labels, ""]
        counts = np.bincount(self.label % len(labels), minlength=len(labels))
        taken = set(labels)
        next_number = [0] * len(labels)
        names = []
        for label in self.label.tolist():
            name = labels[label]
            while (counts[label] > 1 or label == NO_LABEL) and name in taken:
                name = f"{labels[label]}#{next_number[label]}"
                next_number[label] += 1
            taken.add(name)
            names.append(name)
        return names

    def report(self) -> GrammarReport:
        """Look at the grammar as a whole: proper or not, symbols without use, unary cycles."""
        totals = np.zeros(self.n_symbols)
        for kind in RULE_KINDS:
            np.add.at(totals, getattr(self, kind)[:, 0], getattr(self, f"{kind}_weight"))
        productive = self.productive_symbols()
        reachable = self.reachable_symbols()
        excess = np.abs(totals - 1)[reachable]
        return GrammarReport(
            is_proper=bool((excess < PROPER_TOLERANCE).all()),
            largest_excess=float(excess.max(initial=0.0)),
            unreachable=np.flatnonzero(~reachable).tolist(),
            unproductive=np.flatnonzero(~productive).tolist(),
            cycles=[component.members.tolist() for component in self.components],
        )

    def productive_symbols(self) -> np.ndarray:
        """Which symbols derive at least one string of words."""
        # The parents of every symbol in all rules, with the other child, which must be productive, too.
        single = np.concatenate([self.unary, self.bridge])
        children = np.concatenate([single[:, 1], self.binary[:, 1], self.binary[:, 2]])
        others = np.concatenate([single[:, 1], self.binary[:, 2], self.binary[:, 1]])
        parents = np.concatenate([single[:, 0], self.binary[:, 0], self.binary[:, 0]])
        return spread(self.n_symbols, self.lexical[:, 0], children, parents, others)

    def reachable_symbols(self) -> np.ndarray:
        """Which symbols occur in a derivation from the root, complete or not."""
        single = np.concatenate([self.unary, self.bridge])
        parents = np.concatenate([single[:, 0], self.binary[:, 0], self.binary[:, 0]])
        children = np.concatenate([single[:, 1], self.binary[:, 1], self.binary[:, 2]])
        return spread(self.n_symbols, np.array([self.root]), parents, children, parents)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the grammar to a ``.npz`` file, whole or not at all."""
        header, arrays = self.to_parts()
        write_archive(path, KIND, VERSION, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "WeightedGrammar":
        """Read a grammar that `save` wrote, and check that it is one."""
        header, arrays = read_archive(path, KIND, VERSION)
        return cls.from_parts(header, arrays, path)

    def to_parts(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        """The header and the arrays of an archive."""
        header = {"labels": self.labels, "words": self.words, "root": self.root, "names": self.names}
        arrays = {"label": self.label}
        for kind in RULE_KINDS:
            arrays[kind] = getattr(self, kind)
            arrays[f"{kind}_weight"] = getattr(self, f"{kind}_weight")
        return header, arrays

    @classmethod
    def from_parts(cls, header: dict, arrays: dict[str, np.ndarray], path: str | os.PathLike[str]) -> "WeightedGrammar":
        """The inverse of `to_parts`; everything is checked."""
        for table in ("labels", "words"):
            is_table = isinstance(header.get(table), list) and all(isinstance(name, str) for name in header[table])
            require(is_table, path, f"{table} is not a list of names")
        names = header.get("names")
        is_names = names is None or (isinstance(names, list) and all(isinstance(name, str) for name in names))
        require(is_names, path, "names is not a list of names")
        require(isinstance(header.get("root"), int), path, "the root is missing")
        taken = {"label": take_array(arrays, "label", "int32", (None,), path)}
        for kind, n_columns in RULE_KINDS.items():
            taken[kind] = take_array(arrays, kind, "int32", (None, n_columns), path)
            taken[f"{kind}_weight"] = take_array(arrays, f"{kind}_weight", "float64", (len(taken[kind]),), path)
        try:
            return cls(header["labels"], header["words"], root=header["root"], names=names, **taken)
        except GrammarError as error:
            raise GrammarError(f"{os.fspath(path)}: damaged: {error}") from None


def spread(
    n_symbols: int, first: np.ndarray, sources: np.ndarray, targets: np.ndarray, needed: np.ndarray
) -> np.ndarray:
    """The symbols that a property spreads to: from each source to its target, if the one that is needed has it, too.

    Every edge is looked at once, or as often as one of its two ends gets the property: the cost is linear.
    """
    has_it = np.zeros(n_symbols, dtype=bool)
    order = np.argsort(sources, kind="stable")
    starts = np.searchsorted(sources[order], np.arange(n_symbols + 1)).tolist()
    edges = list(zip(targets[order].tolist(), needed[order].tolist(), strict=True))
    waiting = np.unique(first).tolist()
    found = [False] * n_symbols
    for symbol in waiting:
        found[symbol] = True
    while waiting:
        symbol = waiting.pop()
        for target, other in edges[starts[symbol] : starts[symbol + 1]]:
            if not found[target] and found[other]:
                found[target] = True
                waiting.append(target)
    has_it[:] = found
    return has_it


def whole_numbers(values: object, name: str, columns: tuple[int, ...]) -> np.ndarray:
    """An array of int32 with these columns; nothing is cut off or rearranged to make it one."""
    array = np.asarray(values)
    if not array.size:
        return np.empty((0, *columns), dtype=np.int32)
    limits = np.iinfo(np.int32)
    if array.ndim != 1 + len(columns) or array.shape[1:] != columns:
        raise GrammarError(f"{name} has the shape {array.shape}")
    if array.dtype.kind not in "iu" or array.min() < limits.min or array.max() > limits.max:
        raise GrammarError(f"{name} holds what is not the number of a symbol")
    return np.ascontiguousarray(array, dtype=np.int32)


def sorted_sums(rules: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rules in order, each once, with the sum of its weights."""
    rules = np.ascontiguousarray(rules)
    if are_in_order(rules):
        return rules, np.array(weights)
    order = np.lexsort(rules.T[::-1])
    rules, weights = rules[order], weights[order]
    is_new = np.ones(len(rules), dtype=bool)
    is_new[1:] = (rules[1:] != rules[:-1]).any(axis=1)
    if is_new.all():
        return np.ascontiguousarray(rules), np.ascontiguousarray(weights)
    with np.errstate(over="ignore"):  # an infinite weight is refused later
        return np.ascontiguousarray(rules[is_new]), np.add.reduceat(weights, np.flatnonzero(is_new))
