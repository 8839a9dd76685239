"""The tree-substitution grammar as weighted rules: the transform of Cohn & Blunsom (2010), and the truncated grammar.

With the counts of a sample frozen, a fragment ``e`` rooted in ``c`` has the probability ``w_e + b_c P0(e)``,

    w_e = (n_e - d t_e) / (theta + n)        b_c = (theta + d t) / (theta + n)

The infinitely many fragments become finitely many rules: ``c -> sig(e)`` with weight ``w_e``, a bridge
``c => c'`` with weight ``b_c``, and for every CFG rule ``c' -> ...`` with each child stopping (weight ``s``) or
going on (``1 - s``).

With insertion, an elementary tree that goes on into a node labelled ``X`` does so by a symbol ``N_h``, where ``h`` is
the symbol without insertion (private, or ``X'``): ``N_h`` has the rules of ``h``, times ``1 - a_X``, and ``N_h -> M h``
or ``N_h -> h M`` with weight ``a_X``. ``M``, one symbol for each rule with a foot, is what stands beside the foot; all
hosts share it. It has only bridges: to the sibling's symbols, weighed by the auxiliary trees in use and their base.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tsgkit.grammar import WeightedGrammar
from tsgkit.models.rules import TreeArrays
from tsgkit.models.tables import require_amounts

FRONTIER = -1
FOOT = -3
BRIDGE = 3  # the kind of a row; see `tsgkit.parsing.rows`
GOES_ON, SITE, LEFT_FOOT, RIGHT_FOOT = range(4)  # what a derivation says of a node; see `node_states`
Parts = tuple[int, int, int]
Foot = tuple[int, int]  # a rule, and which of its children is the foot
SUMS = ("bridge", "base", "insertion", "beside")  # of `TsgAverage`


@dataclass(frozen=True)
class TsgSample:
    """The frozen state of a sampler, as far as the grammar depends on it.

    Attributes
    ----------
    fragments : ndarray of int32 with three columns
        Rule, left part, right part; parts come before wholes, -1 is a frontier or no child, -3 a foot.
    customers, tables : ndarray of int32, one per fragment
    discount, strength, stop : ndarray of float, one per label
    auxiliary_discount, auxiliary_strength, insertion : ndarray of float, one per label, optional
        Only with insertion.
    """

    fragments: np.ndarray
    customers: np.ndarray
    tables: np.ndarray
    discount: np.ndarray
    strength: np.ndarray
    stop: np.ndarray
    auxiliary_discount: np.ndarray | None = None
    auxiliary_strength: np.ndarray | None = None
    insertion: np.ndarray | None = None

    def weights(self, trees: TreeArrays) -> tuple[np.ndarray, np.ndarray]:
        """The cached weight of every fragment, and the weight of every restaurant's bridge to the base.

        The restaurants of auxiliary trees, if there are any, come after those of initial trees.
        """
        discount, strength = self.discount, self.strength
        house = trees.rule_label[self.fragments[:, 0]]
        if self.auxiliary_discount is not None and self.auxiliary_strength is not None:
            discount = np.concatenate([discount, self.auxiliary_discount])
            strength = np.concatenate([strength, self.auxiliary_strength])
            house = house + trees.n_labels * (self.fragments[:, 1:] == FOOT).any(axis=1)
        n_customers = np.bincount(house, weights=self.customers, minlength=len(discount))
        n_tables = np.bincount(house, weights=self.tables, minlength=len(discount))
        cached = np.maximum(self.customers - discount[house] * self.tables, 0.0)
        cached /= (strength + n_customers)[house]
        return cached, (strength + discount * n_tables) / (strength + n_customers)


@dataclass
class TsgAverage:
    """The mean of the grammars of several samples: one state for `--average=1`, the last N for N.

    Parameters
    ----------
    trees : TreeArrays
        The rules that fragments are made of.
    n_samples : int
    stacked : bool
        Whether a foot may be the host of a further insertion.
    cutoff : float
        Leave out the insertion of trees with the same top rule and foot into a part of elementary trees if it is
        expected less often than this in the training trees; 0 for the exact grammar.
    """

    trees: TreeArrays
    n_samples: int = 0
    stacked: bool = False
    cutoff: float = 0.0
    number_of: dict[Parts, int] = field(default_factory=dict)
    weight: list[float] = field(default_factory=list)
    count: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        n_labels, n_rules = self.trees.n_labels, self.trees.n_rules
        self.bridge = np.zeros(n_labels)
        # For every rule, the sum over samples of P(r) times stopping or going on at its left and right child.
        self.base = np.zeros((n_rules, 2, 2))
        # With insertion: of a_X, and for every rule and foot (left, right) of the base's part of what is beside it,
        # b' P'(r) times stopping or going on there.
        self.insertion = np.zeros(n_labels)
        self.beside = np.zeros((n_rules, 2, 2))

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
                numbers[left] if left >= 0 else left,
                numbers[right] if right >= 0 else right,
            )
            number = self.number_of.setdefault(parts, len(self.weight))
            if number == len(self.weight):
                self.weight.append(0.0)
                self.count.append(0)
            self.weight[number] += weight
            self.count[number] += count
            numbers.append(number)
        self.bridge += bridge[: trees.n_labels]
        if sample.insertion is not None:
            self.insertion += sample.insertion
            self.add_beside(sample, bridge[trees.n_labels :])
        factor = np.ones((trees.n_rules, 2, 2))
        for side, child in enumerate((trees.rule_left_label, trees.rule_right_label)):
            stops = np.where(child >= 0, sample.stop[child], 1.0)
            shape = [(-1, 2, 1), (-1, 1, 2)][side]
            factor *= np.stack([stops, np.where(child >= 0, 1 - stops, 0.0)], axis=1).reshape(shape)
        self.base += trees.rule_probability[:, None, None] * factor
        self.n_samples += 1

    def add_beside(self, sample: TsgSample, bridge: np.ndarray) -> None:
        trees = self.trees
        from_base = bridge[trees.rule_label] * trees.foot_probability()
        children = (trees.rule_left_label, trees.rule_right_label)
        for foot, sibling in enumerate(reversed(children)):
            weight = np.where(children[foot] == trees.rule_label, from_base, 0.0)
            stops = np.where(sibling >= 0, sample.stop[sibling], 1.0)
            self.beside[:, foot, 0] += weight * stops
            self.beside[:, foot, 1] += weight * (1 - stops)

    def state(self) -> dict[str, np.ndarray]:
        """Everything, as arrays: of the fragments, rule and parts, and how often each was ordered in all samples."""
        return {
            "fragments": np.array(list(self.number_of), dtype=np.int32).reshape(-1, 3),
            "counts": np.array(self.count, dtype=np.int64),
            "weights": np.array(self.weight, dtype=np.float64),
            "samples": np.array([self.n_samples], dtype=np.int64),
            **{name: getattr(self, name) for name in SUMS},
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Put back what `state` gave; a ValueError says what does not fit the trees."""
        fragments, counts, weights, n_samples = (state[name] for name in ("fragments", "counts", "weights", "samples"))
        problem = what_is_wrong_with_fragments(fragments, self.trees)
        if problem:
            raise ValueError(problem)
        self.number_of = {(rule, left, right): number for number, (rule, left, right) in enumerate(fragments.tolist())}
        if len(self.number_of) < len(fragments):
            raise ValueError("a fragment stands twice")
        require_amounts(counts, "int64", (len(fragments),))
        require_amounts(weights, "float64", (len(fragments),))
        require_amounts(n_samples, "int64", (1,))
        for name in SUMS:
            require_amounts(state[name], "float64", getattr(self, name).shape)
            setattr(self, name, state[name])
        self.count, self.weight, self.n_samples = counts.tolist(), weights.tolist(), int(n_samples[0])

    def grammar(self, labels: list[str], words: list[str], root: int) -> WeightedGrammar:
        """The transform: all of the infinite grammar."""
        rules = self.collector(labels, words, root)
        for label, weight in enumerate(self.bridge / self.n_samples):
            rules.bridges.append((label, rules.base_symbol(label), weight))
        hosts = rules.base_hosts()
        for rule in range(self.trees.n_rules):
            label = int(self.trees.rule_label[rule])
            for left, right in rules.child_choices(rule):
                weight = self.base[rule, left, right] / self.n_samples
                rules.add_host(hosts[label], rule, weight, *rules.base_children(rule, left, right, hosts))
        for (rule, foot), ways in rules.ways_beside.items():
            sibling = rules.sibling(rule, foot)
            stops, goes = (self.beside[rule, foot] / self.n_samples).tolist()
            ways.append((sibling, stops))
            if sibling >= 0:
                ways.append((hosts[sibling].on, goes))
        self.add_fragments(rules)
        return rules.grammar()

    def truncated_grammar(self, labels: list[str], words: list[str], root: int) -> WeightedGrammar:
        """The paper's truncated grammar: fragments that were ordered, and the CFG rules in place of the base.

        Auxiliary trees that are not in use are likewise of one rule.
        """
        rules = self.collector(labels, words, root)
        self.add_fragments(rules)
        for rule in range(self.trees.n_rules):
            label = self.trees.rule_label[rule]
            weight = self.bridge[label] / self.n_samples * self.trees.rule_probability[rule]
            rules.add(label, rule, weight, *rules.base_children(rule, 0, 0, {}))
        for (rule, foot), ways in rules.ways_beside.items():
            ways.append((rules.sibling(rule, foot), float(self.beside[rule, foot].sum() / self.n_samples)))
        return rules.grammar()

    def collector(self, labels: list[str], words: list[str], root: int) -> "RuleCollector":
        rules = RuleCollector(
            self.trees,
            labels,
            words,
            root,
            insertion=self.insertion / self.n_samples,
            stacked=self.stacked,
            cutoff=self.cutoff,
        )
        for (rule, foot), weight in rules.foot_weight.items():
            rules.foot_weight[rule, foot] = weight + float(self.beside[rule, foot].sum()) / self.n_samples
        for (rule, left, right), weight in zip(self.number_of, self.weight, strict=True):
            if FOOT in (left, right):
                rules.foot_weight[rule, int(left != FOOT)] += weight / self.n_samples
        return rules

    def add_fragments(self, rules: "RuleCollector") -> None:
        weights = np.array(self.weight) / self.n_samples
        is_part = np.zeros(len(self.weight), dtype=bool)
        n_uses = np.zeros(len(self.weight))  # as a part of larger ones
        for (_, *parts), number in reversed(self.number_of.items()):
            for part in parts:
                if part >= 0:
                    is_part[part] = True
                    n_uses[part] += self.count[number] / self.n_samples + n_uses[number]
        private: dict[int, Host] = {}
        for (rule, left, right), number in self.number_of.items():
            if FOOT in (left, right):
                if weights[number] > 0:
                    rules.add_auxiliary(rule, left, right, float(weights[number]), private)
                continue
            children = rules.fragment_children(rule, left, right, private)
            label = int(self.trees.rule_label[rule])
            if weights[number] > 0:
                rules.add(label, rule, float(weights[number]), *children)
            if is_part[number]:
                private[number] = rules.new_host(label, n_uses=float(n_uses[number]))
                rules.add_host(private[number], rule, 1.0, *children)


def what_is_wrong_with_fragments(fragments: np.ndarray, trees: TreeArrays) -> str:
    """Why rows of rule and parts are not fragments of these rules; ``''`` if they are."""
    if fragments.dtype != np.int32 or fragments.ndim != 2 or fragments.shape[1] != 3:
        return "fragments have the wrong type or shape"
    rule = fragments[:, 0]
    if (rule < 0).any() or (rule >= trees.n_rules).any():
        return "a fragment has a rule that is not there"
    for part, child_label in (
        (fragments[:, 1], trees.rule_left_label),
        (fragments[:, 2], trees.rule_right_label),
    ):
        goes_on, is_foot = part >= 0, part == FOOT
        if ((part < FRONTIER) & ~is_foot).any() or (part >= np.arange(len(fragments))).any():
            return "a part does not come before its whole"
        if (trees.rule_label[rule[part[goes_on]]] != child_label[rule[goes_on]]).any():
            return "a part has another label than its place"
        if (child_label[rule[is_foot]] != trees.rule_label[rule[is_foot]]).any():
            return "a foot has another label than its root"
    is_auxiliary = (fragments[:, 1:] == FOOT).any(axis=1)
    if (fragments[:, 1:] == FOOT).all(axis=1).any():
        return "an auxiliary tree has two feet"
    parts = fragments[:, 1:]
    if is_auxiliary[parts[parts >= 0]].any():
        return "an auxiliary tree is a part of another fragment"
    return ""


def is_site(grammar: WeightedGrammar, symbols: np.ndarray) -> np.ndarray:
    """Which symbols of a transform, or of a plain CFG, begin a fragment: the labels, which come first."""
    return symbols < len(grammar.labels)


def is_beside(grammar: WeightedGrammar, symbols: np.ndarray) -> np.ndarray:
    """Which symbols of a transform stand beside, or in place of, a foot: the only others that have bridges."""
    has_bridge = np.zeros(grammar.n_symbols, dtype=bool)
    has_bridge[grammar.bridge[:, 0]] = True
    return has_bridge[symbols] & ~is_site(grammar, symbols)


def nodes_of(grammar: WeightedGrammar, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nodes of a derivation, and for every row the number of its node.

    Parameters
    ----------
    grammar : WeightedGrammar
    rows : ndarray of int with four columns
        ``(symbol, start, end, kind)`` from the root down, left to right. A bridge is at the same node as the row
        after it.

    Returns
    -------
    nodes : ndarray of int with four columns
        The rows that are no bridges, ``(label, start, end, kind)``.
    node_of_row : ndarray of int
    """
    is_node = rows[:, 3] != BRIDGE
    nodes = rows[is_node]
    nodes[:, 0] = grammar.label[nodes[:, 0]]
    return nodes, np.cumsum(is_node) - is_node


def node_states(grammar: WeightedGrammar, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nodes of a derivation, and what it says of each.

    Parameters
    ----------
    grammar : WeightedGrammar
        A transform, or a plain CFG.
    rows : ndarray of int with four columns
        As `nodes_of` takes them.

    Returns
    -------
    nodes : ndarray of int with four columns
        As `nodes_of` gives them.
    states : ndarray of int, one per node
        0 inside of an elementary tree (or a foot), 1 where an initial tree begins, 2 or 3 at the root of an auxiliary
        tree whose foot is the left (or only) or the right child.
    """
    nodes, node_of_row = nodes_of(grammar, rows)
    begins, beside = np.zeros((2, len(nodes)), dtype=bool)
    np.logical_or.at(begins, node_of_row, is_site(grammar, rows[:, 0]))
    np.logical_or.at(beside, node_of_row, is_beside(grammar, rows[:, 0]))
    states = begins.astype(np.int64)
    waiting: list[int] = []  # subtrees to the right of the node at work, the nearest last
    for node in reversed(range(len(nodes))):
        children = [waiting.pop() for _ in range(nodes[node, 3])]
        if any(beside[child] for child in children):
            # Of two children it is the one beside the foot; a single one is the foot itself.
            states[node] = RIGHT_FOOT if len(children) == 2 and beside[children[0]] else LEFT_FOOT
        waiting.append(node)
    return nodes, states


class Host(NamedTuple):
    """The symbols of a part of an elementary tree that insertions may go into: without one, and with or without."""

    label: int
    plain: int
    on: int


class RuleCollector:
    """Rules of a transform as they come. Symbols: label c is c itself, ``c'`` follows, then private ones."""

    def __init__(
        self,
        trees: TreeArrays,
        labels: list[str],
        words: list[str],
        root: int,
        *,
        insertion: np.ndarray,
        stacked: bool,
        cutoff: float,
    ) -> None:
        self.trees, self.labels, self.words, self.root = trees, labels, words, root
        self.insertion, self.stacked, self.cutoff = insertion.tolist(), stacked, cutoff
        self.label = [*range(len(labels)), *range(len(labels))]
        self.binary: list[tuple[int, int, int, float]] = []
        self.unary: list[tuple[int, int, float]] = []
        self.lexical: list[tuple[int, int, float]] = []
        self.bridges: list[tuple[int, int, float]] = []
        # By rule and foot (0: left): the weight of all auxiliary trees with that top; the symbol of what stands beside
        # the foot, or -1 if nothing does, and the ways to make it, each as a symbol (-1 for nothing) and its weight.
        self.foot_weight: dict[Foot, float] = {}
        self.beside: dict[Foot, int] = {}
        self.ways_beside: dict[Foot, list[tuple[int, float]]] = {}
        self.feet_of: dict[int, list[Foot]] = {}
        self.hosts: list[tuple[Host, list[Foot]]] = []
        for rule, label in enumerate(trees.rule_label.tolist()):
            for foot, child in enumerate((trees.rule_left_label, trees.rule_right_label)):
                if self.insertion[label] > 0 and child[rule] == label:
                    self.feet_of.setdefault(label, []).append((rule, foot))
                    sibling = self.sibling(rule, foot)
                    self.beside[rule, foot] = -1 if sibling < 0 else self.new_symbol(sibling)
                    self.ways_beside[rule, foot] = []
                    self.foot_weight[rule, foot] = 0.0

    def sibling(self, rule: int, foot: int) -> int:
        """The label of a foot's sibling, -1 if it has none."""
        return int((self.trees.rule_right_label, self.trees.rule_left_label)[foot][rule])

    def base_symbol(self, label: int) -> int:
        return int(label) + len(self.labels)

    def new_symbol(self, label: int) -> int:
        self.label.append(int(label))
        return len(self.label) - 1

    def new_host(self, label: int, plain: int | None = None, n_uses: float = math.inf) -> Host:
        """Symbols for a part of elementary trees.

        One is enough where nothing is inserted, or, unless it is used apart from that, where insertions are stacked.
        """
        is_private = plain is None
        plain = self.new_symbol(label) if plain is None else plain
        share = self.insertion[label]
        feet = [key for key in self.feet_of.get(label, ()) if n_uses * share * self.foot_weight[key] >= self.cutoff]
        needs_two = len(feet) > 0 and not (self.stacked and is_private)
        host = Host(label, plain, self.new_symbol(label) if needs_two else plain)
        self.hosts.append((host, feet))
        return host

    def base_hosts(self) -> dict[int, Host]:
        """For every label, the symbols inside of the base."""
        return {label: self.new_host(label, self.base_symbol(label)) for label in range(len(self.labels))}

    def add_host(self, host: Host, rule: int, weight: float, left: int, right: int) -> None:
        """A rule of a part of elementary trees, with and without the choice to insert something."""
        if host.plain != host.on:
            self.add(host.plain, rule, weight, left, right)
        self.add(host.on, rule, weight * (1 - self.insertion[host.label]), left, right)

    def add_auxiliary(self, rule: int, left: int, right: int, weight: float, private: "dict[int, Host]") -> None:
        """An auxiliary tree in use, as one way to make what is beside its foot."""
        foot = int(left != FOOT)
        part = (right, left)[foot]
        self.ways_beside[rule, foot].append((private[part].on if part >= 0 else self.sibling(rule, foot), weight))

    def add_insertions(self) -> None:
        """Rules that insert something into hosts.

        The weight of a rule and its foot goes to the hosts' rules, so that the ways beside the foot sum to one.
        """
        for key in {key for _, feet in self.hosts for key in feet}:
            if self.beside[key] >= 0:
                total = self.foot_weight[key]
                self.bridges += [(self.beside[key], way, weight / total) for way, weight in self.ways_beside[key]]
        for host, feet in self.hosts:
            inside = host.on if self.stacked else host.plain
            for key in feet:
                weight, beside = self.insertion[host.label] * self.foot_weight[key], self.beside[key]
                if beside >= 0:
                    self.binary.append((host.on, *((inside, beside), (beside, inside))[key[1]], weight))
                else:
                    foot = self.new_symbol(host.label)
                    self.unary.append((host.on, foot, weight))
                    self.bridges.append((foot, inside, 1.0))

    def add(self, symbol: int, rule: int, weight: float, left: int, right: int) -> None:
        if weight <= 0:
            return
        if left < 0:
            self.lexical.append((int(symbol), int(self.trees.rule_word[rule]), weight))
        elif right < 0:
            self.unary.append((int(symbol), left, weight))
        else:
            self.binary.append((int(symbol), left, right, weight))

    def fragment_children(self, rule: int, left: int, right: int, private: "dict[int, Host]") -> tuple[int, int]:
        """The symbols below a fragment's root: private where it goes on, labels at its frontier."""
        labels = (self.trees.rule_left_label[rule], self.trees.rule_right_label[rule])
        first, second = (
            private[part].on if part >= 0 else int(label) for part, label in zip((left, right), labels, strict=True)
        )
        return first, second

    def child_choices(self, rule: int) -> Iterator[tuple[int, int]]:
        """Stopping (0) or going on (1) at each child that a rule has."""
        for left in range(2 if self.trees.rule_left_label[rule] >= 0 else 1):
            for right in range(2 if self.trees.rule_right_label[rule] >= 0 else 1):
                yield left, right

    def base_children(self, rule: int, goes_left: int, goes_right: int, hosts: "dict[int, Host]") -> tuple[int, int]:
        labels = (self.trees.rule_left_label[rule], self.trees.rule_right_label[rule])
        first, second = (
            -1 if label < 0 else hosts[int(label)].on if goes else int(label)
            for label, goes in zip(labels, (goes_left, goes_right), strict=True)
        )
        return first, second

    def grammar(self) -> WeightedGrammar:
        self.add_insertions()
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
