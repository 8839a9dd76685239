"""Means of samples of refined sites: the weights of rules and fragments that were seen, and of backing off.

A grammar of several samples has the means of their weights: those of a rule or fragment ``e`` of a restaurant,
(n_e - d t_e) / (theta + n), which is 0 where it was not seen, and those of backing off, (theta + d t) / (theta + n).
"""

from dataclasses import dataclass, field

import numpy as np

from tsgkit._checks import checked_rows, require_amounts
from tsgkit._refined_insertion_sampler import RefinedInsertionSampler
from tsgkit._refined_sampler import RefinedSampler
from tsgkit.models._back_off import Levels
from tsgkit.models._distinct import distinct_rows
from tsgkit.models._rules import TreeArrays
from tsgkit.models._srtsg import Words, restored_sums

NO_CHILD = -1


def cached(counts: np.ndarray, place: np.ndarray, restaurants: np.ndarray) -> np.ndarray:
    """The cached weights of dishes with these customers and tables (two rows) in these restaurants."""
    customers, _, discount, strength = restaurants
    return np.maximum(counts[0] - discount[place] * counts[1], 0.0) / (strength + customers)[place]


def bridges(restaurants: np.ndarray) -> np.ndarray:
    """The weight of a new table in every restaurant."""
    customers, tables, discount, strength = restaurants
    return (strength + discount * tables) / (strength + customers)


@dataclass
class WeightTable:
    """Sums of weights of things with integer names, one row each.

    Attributes
    ----------
    rows : ndarray of int64 with some columns
    weight : ndarray of float
    """

    rows: np.ndarray
    weight: np.ndarray

    @classmethod
    def empty(cls, n_columns: int) -> "WeightTable":
        return cls(np.empty((0, n_columns), dtype=np.int64), np.empty(0))

    @classmethod
    def restored(cls, state: dict[str, np.ndarray], name: str, ends: list[int]) -> "WeightTable":
        """A table of a saved state, whose columns are below these ends."""
        rows = checked_rows(state[f"{name}_rows"], [0] * len(ends), ends)
        require_amounts(state[f"{name}_weight"], "float64", (len(rows),))
        return cls(rows, state[f"{name}_weight"])

    def add(self, rows: np.ndarray, weight: np.ndarray) -> None:
        """Add weights to those of existing rows, and new rows."""
        rows = np.concatenate([self.rows, rows])
        first, place, _ = distinct_rows(rows.T)
        self.rows = rows[first]
        weights = np.concatenate([self.weight, weight])
        # Of nothing at all, numpy's sums are whole numbers.
        self.weight = np.bincount(place, weights=weights, minlength=len(first)).astype(np.float64)

    def found(self, rows: np.ndarray) -> np.ndarray:
        """The weights of these rows, 0 for missing ones."""
        weight_of = dict(zip(map(tuple, self.rows.tolist()), self.weight.tolist(), strict=True))
        return np.array([weight_of.get(tuple(row), 0.0) for row in rows.tolist()])


@dataclass
class SiteMeans:
    """The mean over samples of what a grammar is made of. Sums, to be divided by `n_samples`.

    Attributes
    ----------
    number_of : dict
        The number of every part that was seen, by its rule and children: a part's number, -1 for no child, ``-2 -
        symbol`` for a frontier. Parts come before wholes.
    fragments : WeightTable
        Of (part, root symbol): cached weights in G.
    rules : dict of WeightTable
        For every level of rules, by its name, of (rule, restaurant within the label, subcategories of the children):
        cached weights.
    values : dict of ndarray
        ``site_bridge`` per symbol, ``NAME_bridge`` per restaurant of every level in use, ``stop`` per label,
        ``frequency`` of every symbol among the nodes; with insertion, ``insertion`` per label; and for words with
        classes what `RuleMeans` has, but ``word`` and ``word_bridge`` per rule.
    """

    n_samples: int = 0
    number_of: dict[tuple[int, int, int], int] = field(default_factory=dict)
    fragments: WeightTable = field(default_factory=lambda: WeightTable.empty(2))
    rules: dict[str, WeightTable] = field(default_factory=dict)
    values: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, sampler: RefinedSampler, words: Words, levels: Levels) -> None:
        """Add the present state of a sampler."""
        numbers: list[int] = []
        for rule, left, right in sampler.fragments().tolist():
            parts = (rule, numbers[left] if left >= 0 else left, numbers[right] if right >= 0 else right)
            numbers.append(self.number_of.setdefault(parts, len(self.number_of)))
        part, symbol, *counts = sampler.dishes().T
        rows = np.stack([np.array(numbers, dtype=np.int64)[part], symbol], axis=1)
        self.fragments.add(rows, cached(np.stack(counts), symbol, sampler.restaurants("dish")))
        for name, value in sample_values(sampler, words, levels).items():
            self.values[name] = self.values[name] + value if name in self.values else value
        trees = sampler.trees
        first = np.searchsorted(sampler.symbol_labels(), np.arange(trees.n_labels))
        for kind, context in zip(levels.names, levels.contexts, strict=True):
            rows = sampler.cells(kind)
            restaurant = context[first[trees.rule_label[rows[:, 0]]]] + rows[:, 1]
            table = self.rules.setdefault(kind, WeightTable.empty(4))
            table.add(rows[:, :4], cached(rows[:, 4:].T, restaurant, sampler.restaurants(kind)))
        self.n_samples += 1

    def mean(self, name: str) -> np.ndarray:
        return self.values[name] / self.n_samples

    def parts(self) -> np.ndarray:
        return np.array(list(self.number_of), dtype=np.int64).reshape(-1, 3)

    def state(self) -> dict[str, np.ndarray]:
        """Everything, as arrays."""
        state = {"samples": np.array([self.n_samples], dtype=np.int64), "parts": self.parts()}
        tables = {"fragments": self.fragments} | {f"level_{name}": table for name, table in self.rules.items()}
        for name, table in tables.items():
            state |= {f"{name}_rows": table.rows, f"{name}_weight": table.weight}
        return state | {f"value_{name}": value for name, value in self.values.items()}

    @classmethod
    def restored(
        cls, state: dict[str, np.ndarray], sampler: RefinedSampler, words: Words, levels: Levels
    ) -> "SiteMeans":
        """What `state` gave, if it is of samples like the present one; a ValueError says what is not."""
        values = {name.removeprefix("value_"): state[name] for name in state if name.startswith("value_")}
        means = cls(restored_sums(values, state["samples"], sample_values(sampler, words, levels)), values=values)
        trees, symbol_label = sampler.trees, sampler.symbol_labels()
        parts = checked_parts(state["parts"], trees, symbol_label)
        means.number_of = {(rule, left, right): number for number, (rule, left, right) in enumerate(parts.tolist())}
        if len(means.number_of) < len(parts):
            raise ValueError("a part occurs twice")
        n_symbols = np.bincount(symbol_label, minlength=trees.n_labels)
        means.fragments = WeightTable.restored(state, "fragments", [len(parts), len(symbol_label)])
        first = np.searchsorted(symbol_label, np.arange(trees.n_labels))
        last = first + n_symbols - 1
        for name, context in zip(levels.names, levels.contexts, strict=True) if means.n_samples else ():
            table = WeightTable.restored(state, f"level_{name}", [trees.n_rules, *[int(n_symbols.max())] * 3])
            means.rules[name] = table
            labels = (trees.rule_label, trees.rule_left_label, trees.rule_right_label)
            sizes = (context[last] - context[first] + 1, n_symbols, n_symbols)
            for column, (of_rule, size) in enumerate(zip(labels, sizes, strict=True), start=1):
                label = of_rule[table.rows[:, 0]]
                if (table.rows[:, column] >= np.where(label >= 0, size[label], 1)).any():
                    raise ValueError("a rule's subcategory is out of range")
        part, symbol = means.fragments.rows.T
        if (symbol_label[symbol] != trees.rule_label[parts[part, 0]]).any():
            raise ValueError("a fragment has a root of another label than its rule")
        return means


def checked_parts(parts: np.ndarray, trees: TreeArrays, symbol_label: np.ndarray) -> np.ndarray:
    """Rows of rule, left and right as `SiteMeans.number_of` has them; a ValueError if they are anything else."""
    lowest = -1 - len(symbol_label)
    parts = checked_rows(parts, [0, lowest, lowest], [trees.n_rules, len(parts), len(parts)])
    rule = parts[:, 0]
    for child, label in ((parts[:, 1], trees.rule_left_label), (parts[:, 2], trees.rule_right_label)):
        wanted = label[rule]
        goes_on, is_frontier = child >= 0, child <= -2
        if (child >= np.arange(len(parts))).any():
            raise ValueError("a part does not come before its whole")
        if ((child == -1) != (wanted < 0)).any():
            raise ValueError("a part has not the children of its rule")
        if (trees.rule_label[rule[child[goes_on]]] != wanted[goes_on]).any() or (
            symbol_label[-2 - child[is_frontier]] != wanted[is_frontier]
        ).any():
            raise ValueError("a part has another label than the child of its rule")
    return parts


def sample_values(sampler: RefinedSampler, words: Words, levels: Levels) -> dict[str, np.ndarray]:
    """The values of one sample that `SiteMeans` adds up."""
    symbol_label = sampler.symbol_labels()
    n_symbols = len(symbol_label)
    result = {
        "site_bridge": bridges(sampler.restaurants("dish")),
        **{f"{name}_bridge": bridges(sampler.restaurants(name)) for name, _ in levels.used},
        "stop": sampler.stops(),
        "frequency": np.bincount(sampler.symbols(), minlength=n_symbols).astype(np.float64),
    }
    if isinstance(sampler, RefinedInsertionSampler):
        result["insertion"] = sampler.insertion_probabilities()
    if not words.classes:
        return result
    # J_{x_k}, densely: symbols by classes.
    restaurants, cells = sampler.restaurants("class"), sampler.cells("class")
    result["class"] = bridges(restaurants)[:, None] * words.label_classes(sampler)[symbol_label]
    result["class"][cells[:, 0], cells[:, 1]] += cached(cells[:, 2:].T, cells[:, 0], restaurants)
    restaurants, cells, place = sampler.restaurants("word"), sampler.cells("word"), sampler.word_restaurants()
    is_word = place >= 0
    class_of = np.zeros(restaurants.shape[1], dtype=np.int64)
    class_of[place[is_word]] = words.rule_class[is_word]
    unseen = bridges(restaurants) * words.class_word_base[class_of]
    result["word_bridge"] = np.where(is_word, unseen[place], 0.0)
    result["word"] = result["word_bridge"].copy()
    result["word"][cells[:, 0]] += cached(cells[:, 1:].T, place[cells[:, 0]], restaurants)
    return result
