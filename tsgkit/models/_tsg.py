"""The tree-substitution grammar as weighted rules: the transform of Cohn & Blunsom (2010), and the truncated grammar.

With the counts of a sample frozen, a fragment ``e`` rooted in ``c`` has the probability ``w_e + b_c P0(e)``,

    w_e = (n_e - d t_e) / (theta + n)        b_c = (theta + d t) / (theta + n)

The infinitely many fragments become finitely many rules: ``c -> sig(e)`` with weight ``w_e``, a bridge
``c => c'`` with weight ``b_c``, and for every CFG rule ``c' -> ...`` in which each child is a substitution site (weight
``s``) or internal (``1 - s``).

With insertion, an internal node of an elementary tree with the label ``X`` has a symbol ``N_h``, where ``h`` is the
symbol without insertion (private, or ``X'``): ``N_h`` has the rules of ``h``, times ``1 - a_X``, and a bridge to
``I_h`` with weight ``a_X``, which has the rules ``I_h -> M h`` and ``I_h -> h M``. ``M``, one symbol for each ``X`` and
side, is what stands beside the foot; all hosts share it. It has no label and only bridges: to the symbols of all
siblings that a foot can have, weighed by the auxiliary trees in use and their base. A grammar of labels, with symbols
for insertions and their feet beside them, prunes the ``I_h``, and the ``h`` where they are no feet.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tsgkit._checks import require_amounts
from tsgkit._codes import FOOT, FRONTIER, SITE
from tsgkit.grammar import WeightedGrammar
from tsgkit.grammar._weighted import NO_LABEL
from tsgkit.models._rules import TreeArrays

Parts = tuple[int, int, int]
LEFT, RIGHT, ALONE = range(3)  # where the foot of an auxiliary tree is among the children of its root
Foot = tuple[int, int]  # the label of an auxiliary tree's root, and where the foot is
SUMS = ("bridge", "stop", "base", "insertion", "beside")  # of `TsgAverage`


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
        restaurant = trees.rule_label[self.fragments[:, 0]]
        if self.auxiliary_discount is not None and self.auxiliary_strength is not None:
            discount = np.concatenate([discount, self.auxiliary_discount])
            strength = np.concatenate([strength, self.auxiliary_strength])
            restaurant = restaurant + trees.n_labels * (self.fragments[:, 1:] == FOOT).any(axis=1)
        n_customers = np.bincount(restaurant, weights=self.customers, minlength=len(discount))
        n_tables = np.bincount(restaurant, weights=self.tables, minlength=len(discount))
        cached = np.maximum(self.customers - discount[restaurant] * self.tables, 0.0)
        cached /= (strength + n_customers)[restaurant]
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
        Leave out insertions into a part of elementary trees if fewer than this are expected in the training trees; 0
        for the exact grammar.
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
        self.stop = np.zeros(n_labels)
        # For every rule, the sum over samples of P(r) times the probabilities that its children are sites or internal.
        self.base = np.zeros((n_rules, 2, 2))
        # With insertion: of a_X, and for every rule and foot (left, right) of the base's part of what is beside it,
        # b' P'(r) times the probabilities that it is a site or internal.
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
        self.stop += sample.stop
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
        """Everything, as arrays: the fragments, and sums over samples."""
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
        validate_fragments(fragments, self.trees)
        self.number_of = {(rule, left, right): number for number, (rule, left, right) in enumerate(fragments.tolist())}
        if len(self.number_of) < len(fragments):
            raise ValueError("a fragment occurs twice")
        require_amounts(counts, "int64", (len(fragments),))
        require_amounts(weights, "float64", (len(fragments),))
        require_amounts(n_samples, "int64", (1,))
        for name in SUMS:
            require_amounts(state[name], "float64", getattr(self, name).shape)
            setattr(self, name, state[name])
        self.count, self.weight, self.n_samples = counts.tolist(), weights.tolist(), int(n_samples[0])

    def grammar(self, labels: list[str], words: list[str], root: int) -> WeightedGrammar:
        """The transform: all of the infinite grammar."""
        rules, hosts = self.all_but_base()
        for rule in range(self.trees.n_rules):
            label = int(self.trees.rule_label[rule])
            for left, right in rules.child_choices(rule):
                weight = self.base[rule, left, right] / self.n_samples
                rules.add_host(hosts[label], rule, weight, *rules.base_children(rule, left, right, hosts))
        return rules.grammar(labels, words, root)

    def all_but_base(self, n_reserved: int | None = None) -> "tuple[RuleCollector, dict[int, Host]]":
        """Rules of all elementary trees in use and of insertions, with the symbols for internal nodes of the base.

        Parameters
        ----------
        n_reserved : int, optional
            New symbols get numbers from this one on; labels and the base have the first ones.
        """
        rules = self.collector(n_reserved)
        for label, weight in enumerate(self.bridge / self.n_samples):
            rules.bridges.append((label, rules.base_symbol(label), weight))
        hosts = rules.base_hosts()
        for rule, foot in np.argwhere(self.beside.any(axis=2)).tolist():
            site, internal = (self.beside[rule, foot] / self.n_samples).tolist()
            sibling = rules.sibling(rule, foot)
            rules.add_beside(rule, foot, site, sibling)
            if sibling >= 0:
                rules.add_beside(rule, foot, internal, hosts[sibling].on)
        self.add_fragments(rules)
        return rules, hosts

    def truncated_grammar(self, labels: list[str], words: list[str], root: int) -> WeightedGrammar:
        """The paper's truncated grammar: fragments with customers, and the CFG rules instead of the base distribution.

        Auxiliary trees that are not in use are likewise of one rule.
        """
        rules = self.collector()
        self.add_fragments(rules)
        for rule in range(self.trees.n_rules):
            label = self.trees.rule_label[rule]
            weight = self.bridge[label] / self.n_samples * self.trees.rule_probability[rule]
            rules.add(label, rule, weight, *rules.base_children(rule, 0, 0, {}))
        for rule, foot in np.argwhere(self.beside.any(axis=2)).tolist():
            weight = float(self.beside[rule, foot].sum() / self.n_samples)
            rules.add_beside(rule, foot, weight, rules.sibling(rule, foot))
        return rules.grammar(labels, words, root)

    def coarse_grammar(self, states: np.ndarray, labels: list[str], words: list[str], root: int) -> WeightedGrammar:
        """The CFG of the trees with symbols for the roots and the feet of auxiliary trees beside every label.

        Symbols: labels ``X``, then ``I_X`` where something is inserted, then the foot ``F_X`` below that, which is as
        ``X``, then ``X?``, which is ``X`` or ``I_X``. It only prunes.

        Parameters
        ----------
        states : ndarray, one per node
            A derivation of the trees; see `tsgkit.models._derivations.node_states`.
        """
        trees, every_label = self.trees, np.arange(self.trees.n_labels)
        n_nodes = np.bincount(trees.label, minlength=trees.n_labels)
        n_internal = np.bincount(trees.label[states != SITE], minlength=trees.n_labels)
        share = self.insertion / self.n_samples * n_internal / np.maximum(n_nodes, 1)
        inserting, foot_of, either = (every_label + number * trees.n_labels for number in (1, 2, 3))
        rules, top_weights = RuleCollector(trees, 4 * trees.n_labels, share, self.stacked), self.top_weights()
        for rule in range(trees.n_rules):
            label, left, right = (
                int(column[rule]) for column in (trees.rule_label, trees.rule_left_label, trees.rule_right_label)
            )
            children = [int(either[child]) if child >= 0 else -1 for child in (left, right)]
            rules.add(label, rule, float(trees.rule_probability[rule]), *children)
            for foot, weight in enumerate(top_weights[rule].tolist()):
                below = list(children)
                below[foot] = int((either if self.stacked else foot_of)[label])
                rules.add(int(inserting[label]), rule, weight, *below)
        parts = rules.arrays()
        has_insertion = share > 0
        pairs = (either, every_label), (either[has_insertion], inserting[has_insertion]), (foot_of, every_label)
        parts["bridge"] = np.concatenate([np.stack(pair, axis=1) for pair in pairs])
        parts["bridge_weight"] = np.concatenate([1.0 - share, share[has_insertion], np.ones(trees.n_labels)])
        return WeightedGrammar(labels, words, np.tile(every_label, 4), root, **parts)

    def top_weights(self) -> np.ndarray:
        """For every rule and foot (left, right), the weight of all auxiliary trees with that top."""
        weights = self.beside.sum(axis=2)
        for (rule, left, right), weight in zip(self.number_of, self.weight, strict=True):
            if FOOT in (left, right):
                weights[rule, LEFT if left == FOOT else RIGHT] += weight
        return weights / self.n_samples

    def collector(self, n_reserved: int | None = None) -> "RuleCollector":
        insertion = self.insertion / self.n_samples
        return RuleCollector(self.trees, n_reserved or 2 * self.trees.n_labels, insertion, self.stacked)

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
                is_host = n_uses[number] * rules.insertion[label] >= self.cutoff
                private[number] = rules.new_host(label, inserts=bool(is_host))
                rules.add_host(private[number], rule, 1.0, *children)


def validate_fragments(fragments: np.ndarray, trees: TreeArrays) -> None:
    """Raise a ValueError unless rows of rule and parts are fragments of these rules."""
    if fragments.dtype != np.int32 or fragments.ndim != 2 or fragments.shape[1] != 3:
        raise ValueError("fragments have the wrong type or shape")
    rule = fragments[:, 0]
    if (rule < 0).any() or (rule >= trees.n_rules).any():
        raise ValueError("a fragment has a rule out of range")
    for part, child_label in (
        (fragments[:, 1], trees.rule_left_label),
        (fragments[:, 2], trees.rule_right_label),
    ):
        is_internal, is_foot = part >= 0, part == FOOT
        if ((part < FRONTIER) & ~is_foot).any() or (part >= np.arange(len(fragments))).any():
            raise ValueError("a part does not come before its whole")
        if (trees.rule_label[rule[part[is_internal]]] != child_label[rule[is_internal]]).any():
            raise ValueError("a part has another label than its rule wants")
        if (child_label[rule[is_foot]] != trees.rule_label[rule[is_foot]]).any():
            raise ValueError("a foot has another label than its root")
    is_auxiliary = (fragments[:, 1:] == FOOT).any(axis=1)
    if (fragments[:, 1:] == FOOT).all(axis=1).any():
        raise ValueError("an auxiliary tree has two feet")
    parts = fragments[:, 1:]
    if is_auxiliary[parts[parts >= 0]].any():
        raise ValueError("an auxiliary tree is a part of another fragment")


def is_site(grammar: WeightedGrammar, symbols: np.ndarray) -> np.ndarray:
    """Which symbols of a transform, or of a plain CFG, begin a fragment: the labels, which come first."""
    return symbols < len(grammar.labels)


def is_beside(grammar: WeightedGrammar, symbols: np.ndarray) -> np.ndarray:
    """Which symbols of a transform stand beside, or in place of, a foot: those that have bridges and no rules."""
    makes_nodes = np.zeros(grammar.n_symbols, dtype=bool)
    for rules in (grammar.binary, grammar.unary, grammar.lexical):
        makes_nodes[rules[:, 0]] = True
    return ~makes_nodes[symbols] & ~is_site(grammar, symbols)


def coarser_symbols(grammar: WeightedGrammar) -> np.ndarray:
    """For every symbol of a transform with insertion the one of `TsgAverage.coarse_grammar` that prunes it, or -1.

    Those where something is inserted: to them, and to no others, bridges lead from symbols inside of elementary trees;
    and private ones that are nothing but feet of insertions.
    """
    n_labels = len(grammar.labels)
    upper, lower = grammar.bridge.T
    inside = ~is_site(grammar, upper) & ~is_beside(grammar, upper)
    is_inserting, is_other = np.zeros((2, grammar.n_symbols), dtype=bool)
    is_inserting[lower[inside]] = True
    inserts = is_inserting[grammar.binary[:, 0]]
    is_other[grammar.binary[~inserts, 1:]] = True
    is_other[grammar.unary[:, 1]] = True
    is_other[grammar.bridge[:, 1]] = True
    feet = grammar.binary[inserts, 1:].ravel()
    feet = feet[(grammar.label[feet] >= 0) & ~is_other[feet] & (feet >= 2 * n_labels)]
    result = np.full(grammar.n_symbols, -1, dtype=np.int32)
    result[is_inserting] = grammar.label[is_inserting] + n_labels
    result[feet] = grammar.label[feet] + 2 * n_labels
    return result


class Host(NamedTuple):
    """The symbols of a part of an elementary tree that insertions may go into: without one, and with or without."""

    label: int
    plain: int
    on: int


class RuleCollector:
    """Rules of a transform as they come. Symbols: label c is c itself, ``c'`` follows, then private ones.

    Parameters
    ----------
    trees : TreeArrays
    n_reserved : int
        The first number of a private symbol.
    insertion : ndarray, one per label
        Insertion probabilities.
    stacked : bool
    """

    def __init__(self, trees: TreeArrays, n_reserved: int, insertion: np.ndarray, stacked: bool) -> None:
        self.trees, self.n_reserved = trees, n_reserved
        self.insertion, self.stacked = insertion.tolist(), stacked
        self.label: list[int] = []  # of private symbols
        self.binary: list[tuple[int, int, int, float]] = []
        self.unary: list[tuple[int, int, float]] = []
        self.lexical: list[tuple[int, int, float]] = []
        self.bridges: list[tuple[int, int, float]] = []
        # What can stand beside a foot, each as a symbol (-1 for nothing) and its weight.
        self.expansions: dict[Foot, list[tuple[int, float]]] = {}
        self.hosts: list[Host] = []

    def sibling(self, rule: int, foot: int) -> int:
        """The label of a foot's sibling, -1 if it has none."""
        return int((self.trees.rule_right_label, self.trees.rule_left_label)[foot][rule])

    def base_symbol(self, label: int) -> int:
        return int(label) + self.trees.n_labels

    def new_symbol(self, label: int) -> int:
        self.label.append(int(label))
        return self.n_reserved + len(self.label) - 1

    def new_host(self, label: int, plain: int | None = None, *, inserts: bool = True) -> Host:
        """Symbols for a part of elementary trees.

        One is enough where nothing is inserted, or, unless it is used apart from that, where insertions are stacked.
        """
        is_private, inserts = plain is None, inserts and self.insertion[label] > 0
        plain = self.new_symbol(label) if plain is None else plain
        needs_two = inserts and not (self.stacked and is_private)
        host = Host(label, plain, self.new_symbol(label) if needs_two else plain)
        if inserts:
            self.hosts.append(host)
        return host

    def base_hosts(self) -> dict[int, Host]:
        """For every label, the symbols inside of the base."""
        return {label: self.new_host(label, self.base_symbol(label)) for label in range(self.trees.n_labels)}

    def add_host(self, host: Host, rule: int, weight: float, left: int, right: int) -> None:
        """A rule of a part of elementary trees, with and without the choice to insert something."""
        if host.plain != host.on:
            self.add(host.plain, rule, weight, left, right)
        self.add(host.on, rule, weight * (1 - self.insertion[host.label]), left, right)

    def add_auxiliary(self, rule: int, left: int, right: int, weight: float, private: "dict[int, Host]") -> None:
        """An auxiliary tree in use, as one expansion of what is beside its foot."""
        foot = LEFT if left == FOOT else RIGHT
        part = (right, left)[foot]
        self.add_beside(rule, foot, weight, private[part].on if part >= 0 else self.sibling(rule, foot))

    def add_beside(self, rule: int, foot: int, weight: float, symbol: int) -> None:
        """One expansion of what is beside the foot of a top rule; the symbol is -1 if there is no sibling."""
        if weight > 0:
            key = int(self.trees.rule_label[rule]), ALONE if symbol < 0 else foot
            self.expansions.setdefault(key, []).append((symbol, weight))

    def add_insertions(self) -> None:
        """Rules that insert something into hosts.

        The total weight of all expansions beside a foot goes to the hosts' rules, so that the expansions sum to one.
        """
        beside: dict[int, list[tuple[int, int, float]]] = {}
        for (label, foot), found in self.expansions.items():
            if self.insertion[label] > 0:
                total = sum(weight for _, weight in found)
                symbol = NO_LABEL if foot == ALONE else self.new_symbol(NO_LABEL)
                beside.setdefault(label, []).append((foot, symbol, total))
                self.bridges += [(symbol, other, weight / total) for other, weight in found if foot != ALONE]
        for host in self.hosts:
            if host.label not in beside:
                continue
            inside = host.on if self.stacked else host.plain
            inserting = self.new_symbol(host.label)
            self.bridges.append((host.on, inserting, self.insertion[host.label]))
            for foot, symbol, weight in beside[host.label]:
                if foot == ALONE:
                    below = self.new_symbol(host.label)
                    self.unary.append((inserting, below, weight))
                    self.bridges.append((below, inside, 1.0))
                else:
                    children = (inside, symbol) if foot == LEFT else (symbol, inside)
                    self.binary.append((inserting, *children, weight))

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
        """The symbols of the children of a fragment's root: private where they are internal, labels at the frontier."""
        labels = (self.trees.rule_left_label[rule], self.trees.rule_right_label[rule])
        first, second = (
            private[part].on if part >= 0 else int(label) for part, label in zip((left, right), labels, strict=True)
        )
        return first, second

    def child_choices(self, rule: int) -> Iterator[tuple[int, int]]:
        """A site (0) or internal (1), for each child that a rule has."""
        for left in range(2 if self.trees.rule_left_label[rule] >= 0 else 1):
            for right in range(2 if self.trees.rule_right_label[rule] >= 0 else 1):
                yield left, right

    def base_children(self, rule: int, left: int, right: int, hosts: "dict[int, Host]") -> tuple[int, int]:
        """The symbols of the children of a rule of the base, each a site (0) or internal (1)."""
        labels = (self.trees.rule_left_label[rule], self.trees.rule_right_label[rule])
        first, second = (
            -1 if label < 0 else hosts[int(label)].on if is_internal else int(label)
            for label, is_internal in zip(labels, (left, right), strict=True)
        )
        return first, second

    def grammar(self, labels: list[str], words: list[str], root: int) -> WeightedGrammar:
        every_label = range(len(labels))
        parts = self.arrays()
        label = np.array([*every_label, *every_label, *self.label], dtype=np.int32)
        return WeightedGrammar(labels, words, label, root, **parts)

    def arrays(self) -> dict[str, Any]:
        """All rules and weights, those of insertions included, as `WeightedGrammar` takes them."""
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
        return parts
