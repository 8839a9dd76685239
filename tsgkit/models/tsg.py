"""The tree-substitution grammar as weighted rules: the transform of Cohn & Blunsom (2010), and the truncated grammar.

With the counts of a sample frozen, a fragment ``e`` rooted in ``c`` has the probability ``w_e + b_c P0(e)``,

    w_e = (n_e - d t_e) / (theta + n)        b_c = (theta + d t) / (theta + n)

The infinitely many fragments become finitely many rules: ``c -> sig(e)`` with weight ``w_e``, a bridge
``c => c'`` with weight ``b_c``, and for every CFG rule ``c' -> ...`` with each child stopping (weight ``s``) or
going on (``1 - s``).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tsgkit.grammar import WeightedGrammar
from tsgkit.models.rules import TreeArrays

FRONTIER = -1
Parts = tuple[int, int, int]


@dataclass(frozen=True)
class TsgSample:
    """The frozen state of a sampler, as far as the grammar depends on it.

    Attributes
    ----------
    fragments : ndarray of int32 with three columns
        Rule, left part, right part; parts come before wholes, -1 is a frontier or no child.
    customers, tables : ndarray of int32, one per fragment
    discount, strength, stop : ndarray of float, one per label
    """

    fragments: np.ndarray
    customers: np.ndarray
    tables: np.ndarray
    discount: np.ndarray
    strength: np.ndarray
    stop: np.ndarray

    def weights(self, trees: TreeArrays) -> tuple[np.ndarray, np.ndarray]:
        """The cached weight of every fragment, and the weight of every label's bridge to the base."""
        label = trees.rule_label[self.fragments[:, 0]]
        n_customers = np.bincount(label, weights=self.customers, minlength=trees.n_labels)
        n_tables = np.bincount(label, weights=self.tables, minlength=trees.n_labels)
        cached = np.maximum(self.customers - self.discount[label] * self.tables, 0.0)
        cached /= (self.strength + n_customers)[label]
        return cached, (self.strength + self.discount * n_tables) / (self.strength + n_customers)


@dataclass
class TsgAverage:
    """The mean of the grammars of several samples: one state for `--average=1`, the last N for N.

    Parameters
    ----------
    trees : TreeArrays
        The rules that fragments are made of.
    """

    trees: TreeArrays
    n_samples: int = 0
    number_of: dict[Parts, int] = field(default_factory=dict)
    weight: list[float] = field(default_factory=list)
    count: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        n_labels, n_rules = self.trees.n_labels, self.trees.n_rules
        self.bridge = np.zeros(n_labels)
        # For every rule, the sum over samples of P(r) times stopping or going on at its left and right child.
        self.base = np.zeros((n_rules, 2, 2))

    def add(self, sample: TsgSample) -> None:
        """Add one sample's grammar to the sum."""
        trees = self.trees
        cached, bridge = sample.weights(trees)
        numbers: list[int] = []
        for (rule, left, right), weight, count in zip(
            sample.fragments.tolist(), cached.tolist(), sample.customers.tolist(), strict=True
        ):
            parts = (
                rule,
                numbers[left] if left >= 0 else FRONTIER,
                numbers[right] if right >= 0 else FRONTIER,
            )
            number = self.number_of.setdefault(parts, len(self.weight))
            if number == len(self.weight):
                self.weight.append(0.0)
                self.count.append(0)
            self.weight[number] += weight
            self.count[number] += count
            numbers.append(number)
        self.bridge += bridge
        factor = np.ones((trees.n_rules, 2, 2))
        for side, child in enumerate((trees.rule_left_label, trees.rule_right_label)):
            stops = np.where(child >= 0, sample.stop[child], 1.0)
            shape = [(-1, 2, 1), (-1, 1, 2)][side]
            factor *= np.stack([stops, np.where(child >= 0, 1 - stops, 0.0)], axis=1).reshape(shape)
        self.base += trees.rule_probability[:, None, None] * factor
        self.n_samples += 1

    def fragments(self) -> tuple[np.ndarray, np.ndarray]:
        """All fragments as rule and parts, and how often each was ordered, summed over samples."""
        return np.array(list(self.number_of), dtype=np.int32).reshape(-1, 3), np.array(self.count, dtype=np.int64)

    def grammar(self, labels: list[str], words: list[str], root: int) -> WeightedGrammar:
        """The transform: all of the infinite grammar."""
        rules = RuleCollector(self.trees, labels, words, root)
        self.add_fragments(rules, np.array(self.weight) / self.n_samples)
        for label, weight in enumerate(self.bridge / self.n_samples):
            rules.bridges.append((label, rules.base_symbol(label), weight))
        for rule in range(self.trees.n_rules):
            for left, right in rules.child_choices(rule):
                weight = self.base[rule, left, right] / self.n_samples
                rules.add(
                    rules.base_symbol(self.trees.rule_label[rule]),
                    rule,
                    weight,
                    *rules.base_children(rule, left, right),
                )
        return rules.grammar()

    def truncated_grammar(self, labels: list[str], words: list[str], root: int) -> WeightedGrammar:
        """The paper's truncated grammar: fragments that were ordered, and the CFG rules in place of the base."""
        rules = RuleCollector(self.trees, labels, words, root)
        self.add_fragments(rules, np.array(self.weight) / self.n_samples)
        for rule in range(self.trees.n_rules):
            label = self.trees.rule_label[rule]
            weight = self.bridge[label] / self.n_samples * self.trees.rule_probability[rule]
            rules.add(label, rule, weight, *rules.base_children(rule, 0, 0))
        return rules.grammar()

    def add_fragments(self, rules: "RuleCollector", weights: np.ndarray) -> None:
        is_part = np.zeros(len(self.weight), dtype=bool)
        for _, left, right in self.number_of:
            for part in (left, right):
                if part >= 0:
                    is_part[part] = True
        private: dict[int, int] = {}
        for (rule, left, right), number in self.number_of.items():
            children = rules.fragment_children(rule, left, right, private)
            if weights[number] > 0:
                rules.add(self.trees.rule_label[rule], rule, float(weights[number]), *children)
            if is_part[number]:
                private[number] = rules.new_symbol(self.trees.rule_label[rule])
                rules.add(private[number], rule, 1.0, *children)


def is_site(grammar: WeightedGrammar, symbols: np.ndarray) -> np.ndarray:
    """Which symbols of a transform, or of a plain CFG, begin a fragment: the labels, which come first."""
    return symbols < len(grammar.labels)


class RuleCollector:
    """Rules of a transform as they come. Symbols: label c is c itself, ``c'`` follows, then private ones."""

    def __init__(self, trees: TreeArrays, labels: list[str], words: list[str], root: int) -> None:
        self.trees, self.labels, self.words, self.root = trees, labels, words, root
        self.label = [*range(len(labels)), *range(len(labels))]
        self.binary: list[tuple[int, int, int, float]] = []
        self.unary: list[tuple[int, int, float]] = []
        self.lexical: list[tuple[int, int, float]] = []
        self.bridges: list[tuple[int, int, float]] = []

    def base_symbol(self, label: int) -> int:
        return int(label) + len(self.labels)

    def new_symbol(self, label: int) -> int:
        self.label.append(int(label))
        return len(self.label) - 1

    def add(self, symbol: int, rule: int, weight: float, left: int, right: int) -> None:
        if weight <= 0:
            return
        if left < 0:
            self.lexical.append((int(symbol), int(self.trees.rule_word[rule]), weight))
        elif right < 0:
            self.unary.append((int(symbol), left, weight))
        else:
            self.binary.append((int(symbol), left, right, weight))

    def fragment_children(self, rule: int, left: int, right: int, private: dict[int, int]) -> tuple[int, int]:
        """The symbols below a fragment's root: private where it goes on, labels at its frontier."""
        labels = (self.trees.rule_left_label[rule], self.trees.rule_right_label[rule])
        first, second = (
            private[part] if part >= 0 else int(label) for part, label in zip((left, right), labels, strict=True)
        )
        return first, second

    def child_choices(self, rule: int) -> Iterator[tuple[int, int]]:
        """Stopping (0) or going on (1) at each child that a rule has."""
        for left in range(2 if self.trees.rule_left_label[rule] >= 0 else 1):
            for right in range(2 if self.trees.rule_right_label[rule] >= 0 else 1):
                yield left, right

    def base_children(self, rule: int, goes_left: int, goes_right: int) -> tuple[int, int]:
        labels = (self.trees.rule_left_label[rule], self.trees.rule_right_label[rule])
        first, second = (
            -1 if label < 0 else self.base_symbol(label) if goes else int(label)
            for label, goes in zip(labels, (goes_left, goes_right), strict=True)
        )
        return first, second

    def grammar(self) -> WeightedGrammar:
        parts: dict[str, Any] = {}
        for name, rows, n_columns in (
            ("binary", self.binary, 3),
            ("unary", self.unary, 2),
            ("lexical", self.lexical, 2),
            ("bridge", self.bridges, 2),
        ):
            table = np.array(rows, dtype=np.float64).reshape(-1, n_columns + 1)
            parts[name] = table[:, :-1].astype(np.int32)
            parts[f"{name}_weight"] = np.ascontiguousarray(table[:, -1])
        return WeightedGrammar(self.labels, self.words, np.array(self.label, dtype=np.int32), self.root, **parts)
