"""Symbol-refined tree-substitution grammars as weighted rules: the additive transform with all levels of back-off.

With the counts of a sample frozen, a site ``x_k`` takes a fragment that was seen, or goes to the base, ``x_k'``, where
every rule is drawn by its restaurants and every child is a site or internal. With the back-off that comes with tsgkit:

    x_k   -> sig(e)            cached weight of the fragment      x_k   => x_k'   weight of a new table of G
    x_k'  -> y_l* z_m*         cached weight of the rule in H     x_k'  => x''    weight of a new table of H
    x''   -> y_l* z_m*         cached weight of the rule in I     x''   -> y? z?  a new table of I, times P0
    y_l*  => y_l, y_l'         a site, or internal                y?    => y_l*   each subcategory alike

Every level of another back-off has its symbols in place of ``x''`` (`BackOffSymbols`). Fragments share the private
symbols of their common parts. Bridges join symbols of one node, so that the grammar has one rule for every rule and
part seen and never their product.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tsgkit._refined_sampler import RefinedSampler
from tsgkit.checks import checked_rows, require_amounts
from tsgkit.grammar import WeightedGrammar
from tsgkit.models.back_off import (
    REFINED,
    UNREFINED,
    UNREFINED_ROOT,
    BackOff,
    BackOffSymbols,
    Levels,
    RefinedSymbols,
)
from tsgkit.models.rules import TreeArrays
from tsgkit.models.srtsg import (
    RefinedGrammar,
    RuleLists,
    Subcategories,
    Words,
    lexical_shares,
    raw_probabilities,
    refined_probabilities,
    refinements,
    restored_sums,
    split_levels,
)
from tsgkit.treebank import FlatCorpus

# Of the coarser grammars, which only prune: the discount of every refined rule.
COARSE_DISCOUNT = 0.5
COARSE_STRENGTH = 1.0
NO_CHILD = -1


def make_site_sampler(
    trees: TreeArrays, words: Words, subcategories: Subcategories, levels: Levels, *, base: str, seed: int = 0
) -> RefinedSampler:
    """A sampler of sites with empty restaurants; the levels are of `site_levels`."""
    return RefinedSampler(
        trees,
        subcategories.label,
        levels,
        refined_probabilities(trees, words, base, subcategories),
        words.rule_class,
        lexical_shares(trees),
        words.class_word_base,
        seed=seed,
    )


def site_levels(back_off: BackOff, subcategories: Subcategories) -> Levels:
    """The levels of a back-off over the symbols that there are."""
    return back_off.over(RefinedSymbols(subcategories.label, subcategories.parent))


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
        self.rows, place = np.unique(rows, axis=0, return_inverse=True)
        weights = np.concatenate([self.weight, weight])
        # Of nothing at all, numpy's sums are whole numbers.
        self.weight = np.bincount(place.ravel(), weights=weights, minlength=len(self.rows)).astype(np.float64)

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
        ``frequency`` of every symbol among the nodes; and for words with classes what `RuleMeans` has, but ``word`` and
        ``word_bridge`` per rule.
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
    if not words.classes:
        return result
    # J_x, densely: labels by classes; and J_{x_k}: symbols by classes.
    below = words.base(sampler)
    for kind in ("label_class", "class"):
        restaurants, cells = sampler.restaurants(kind), sampler.cells(kind)
        below = bridges(restaurants)[:, None] * (below if kind == "label_class" else below[symbol_label])
        below[cells[:, 0], cells[:, 1]] += cached(cells[:, 2:].T, cells[:, 0], restaurants)
    result["class"] = below
    restaurants, cells, place = sampler.restaurants("word"), sampler.cells("word"), sampler.word_restaurants()
    is_word = place >= 0
    class_of = np.zeros(restaurants.shape[1], dtype=np.int64)
    class_of[place[is_word]] = words.rule_class[is_word]
    unseen = bridges(restaurants) * words.class_word_base[class_of]
    result["word_bridge"] = np.where(is_word, unseen[place], 0.0)
    result["word"] = result["word_bridge"].copy()
    result["word"][cells[:, 0]] += cached(cells[:, 1:].T, place[cells[:, 0]], restaurants)
    return result


@dataclass
class SiteGrammar:
    """The transform of a mean of samples, and coarser grammars to prune it.

    Symbols: sites ``x_k`` as `Subcategories.number` counts them, then ``x_k'``, then ``x_k*`` (a site or internal),
    then those of `BackOffSymbols`, then for every label ``x?`` (any subcategory), then private symbols.

    Parameters
    ----------
    corpus : FlatCorpus
    trees : TreeArrays
    words : Words
    subcategories : Subcategories
    means : SiteMeans
    base : str
        Of the base distribution P0; see `raw_probabilities`.
    levels : Levels
        Of `site_levels`.
    """

    corpus: FlatCorpus
    trees: TreeArrays
    words: Words
    subcategories: Subcategories
    means: SiteMeans
    base: str
    levels: Levels

    def __post_init__(self) -> None:
        trees, words, subcategories = self.trees, self.words, self.subcategories
        self.raw = raw_probabilities(trees, self.base, subcategories, bool(words.classes))
        self.label = subcategories.label
        self.n_symbols, self.n_labels = len(self.label), trees.n_labels
        self.first = np.searchsorted(self.label, np.arange(self.n_labels))
        self.back_off = BackOffSymbols(self.levels, self.label, self.n_labels, 3 * self.n_symbols)
        # Rules whose words have the same tag and class share a restaurant, numbered by the first of them.
        self.word_restaurant = np.arange(trees.n_rules)
        is_word = words.rule_class >= 0
        if is_word.any():
            tags = np.stack([trees.rule_label, words.rule_class], axis=1)[is_word]
            _, first_of, place = np.unique(tags, axis=0, return_index=True, return_inverse=True)
            self.word_restaurant[is_word] = np.flatnonzero(is_word)[first_of[place.ravel()]]
        self.rules = RuleLists()

    @property
    def n_shared(self) -> int:
        """The number of symbols that are not private."""
        return self.back_off.end + self.n_labels

    def first_bridge(self) -> np.ndarray:
        """The weight with which every symbol backs off from the first level; 1 where none is in use."""
        used = self.levels.used
        return self.means.mean(f"{used[0][0]}_bridge") if used else np.ones(self.n_symbols)

    def add_rules(self, value: np.ndarray, parent: np.ndarray, rule: np.ndarray, children: list[np.ndarray]) -> None:
        """Rules with symbols in place of their labels; the symbol of a missing child is ignored."""
        left, right = children
        others = self.trees.rule_left_label[rule] >= 0
        right = np.where(self.trees.rule_right_label[rule] >= 0, right, -1)
        self.rules.add_with_children(value[others], parent[others], left[others], right[others])
        self.rules.add("lexical", value[~others], parent[~others], self.trees.rule_word[rule[~others]])

    def grammar(self) -> WeightedGrammar:
        """The whole transform."""
        site = np.arange(self.n_symbols)
        private_label = self.add_fragments()
        self.rules.add("bridge", self.means.mean("site_bridge"), site, site + self.n_symbols)
        words = self.add_base(self.means.mean("stop")[self.label], site + self.n_symbols)
        return self.finished(words, private_label)

    def finished(self, words: list[str], private_label: np.ndarray) -> WeightedGrammar:
        """The grammar of the rules that were added."""
        every_label = np.arange(self.n_labels)
        label = np.concatenate([self.label, self.label, self.label, self.back_off.label, every_label, private_label])
        root = int(self.first[self.corpus.label[0]])
        arrays: dict[str, Any] = self.rules.arrays()
        return WeightedGrammar(self.corpus.labels, words, label.astype(np.int32), root, **arrays)

    def add_base(self, stop: np.ndarray, goes_on: np.ndarray) -> list[str]:
        """The rules of the base; returns all words.

        Parameters
        ----------
        stop : ndarray, one per symbol
            The probability that a child is a site.
        goes_on : ndarray, one per symbol
            The symbol of a child that is none.
        """
        trees, means, n_symbols, n_labels = self.trees, self.means, self.n_symbols, self.n_labels
        site = np.arange(n_symbols)
        inner, either = site + n_symbols, site + 2 * n_symbols
        any_of = self.back_off.end + np.arange(n_labels)
        self.rules.add("bridge", stop, either, site)
        self.rules.add("bridge", 1.0 - stop, either, goes_on)
        has_class = self.words.rule_class >= 0
        for name, context in self.levels.used:
            table = means.rules[name]
            rule, own, *below = table.rows[~has_class[table.rows[:, 0]]].T
            value = table.weight[~has_class[table.rows[:, 0]]] / means.n_samples
            parent = self.back_off.of_level.get(name, inner)[context[self.first[trees.rule_label[rule]]] + own]
            children = [
                either[self.first[child[rule]] + subcategory]
                for child, subcategory in zip((trees.rule_left_label, trees.rule_right_label), below, strict=True)
            ]
            self.add_rules(value, parent, rule, children)
        backs_off = np.bincount(trees.rule_label[~has_class], minlength=n_labels) > 0
        goes = backs_off[self.label]
        bridge = self.first_bridge()
        if self.words.classes:
            bridge = bridge * (1.0 - lexical_shares(trees))[self.label]
        self.rules.add("bridge", bridge[goes], inner[goes], self.back_off.next_of(0)[goes])
        for name, symbols, labels, next_symbols in self.back_off.bridges():
            self.rules.add("bridge", means.mean(f"{name}_bridge") * backs_off[labels], symbols, next_symbols)
        rule = np.flatnonzero(~has_class)
        label = trees.rule_label[rule]
        children = [any_of[child[rule]] for child in (trees.rule_left_label, trees.rule_right_label)]
        value = self.raw[rule]
        if self.back_off.last is not None:
            value = value * means.mean(f"{self.back_off.last}_bridge")[label]
        self.add_rules(value, self.back_off.of_label[label], rule, children)
        per_label = np.bincount(self.label, minlength=n_labels)
        self.rules.add("bridge", 1.0 / per_label[self.label], any_of[self.label], either)
        return self.add_words() if self.words.classes else list(self.corpus.words)

    def rule_probabilities(self, rows: np.ndarray) -> np.ndarray:
        """The base probabilities of refined rules, without the factors for sites and internal children.

        Parameters
        ----------
        rows : ndarray of int with four columns
            Treebank rule, refined symbol, symbols of the children; -1 for a missing child.
        """
        trees, means, words = self.trees, self.means, self.words
        rule, symbol = rows[:, 0], rows[:, 1]
        below = [np.where(child >= 0, child - self.first[self.label[child]], 0) for child in rows[:, 2:].T]

        def through(name: str, context: np.ndarray, base: np.ndarray) -> np.ndarray:
            """The probabilities at a level, given those at the next."""
            restaurant = context[symbol]
            own = restaurant - context[self.first[self.label[symbol]]]
            found = means.rules[name].found(np.stack([rule, own, *below], axis=1)) / means.n_samples
            return found + base * means.mean(f"{name}_bridge")[restaurant]

        probability = self.raw[rule] / refinements(trees, self.subcategories)[rule]
        for name, context in reversed(self.levels.used[1:]):
            probability = through(name, context, probability)
        share, word_class = lexical_shares(trees)[self.label[symbol]], words.rule_class[rule]
        if words.classes:
            of_class = means.mean("class")[symbol, word_class] * means.mean("word")[rule]
            probability = np.where(word_class >= 0, share * of_class, (1.0 - share) * probability)
        for name, context in self.levels.used[:1]:
            probability = through(name, context, probability)
        return probability

    def add_fragments(self) -> np.ndarray:
        """The rules of fragments; returns the labels of their private symbols."""
        parts = self.means.parts()
        rule = parts[:, 0]
        is_part = np.zeros(len(parts), dtype=bool)
        for codes in parts[:, 1:].T:
            is_part[codes[codes >= 0]] = True
        private = self.n_shared + np.cumsum(is_part) - 1
        children = [np.where(codes >= 0, private[np.maximum(codes, 0)], -2 - codes) for codes in parts[:, 1:].T]
        part, symbol = self.means.fragments.rows.T
        weight = self.means.fragments.weight / self.means.n_samples
        self.add_rules(weight, symbol, rule[part], [child[part] for child in children])
        self.add_rules(np.ones(is_part.sum()), private[is_part], rule[is_part], [child[is_part] for child in children])
        return self.trees.rule_label[rule[is_part]]

    def add_words(self) -> list[str]:
        """The lexical rules of the base where words have classes; returns all words, classes included."""
        table = self.means.rules[self.levels.names[0]]
        rows, weight = table.rows, table.weight / self.means.n_samples
        lexical = self.words.rule_class[rows[:, 0]] >= 0
        symbol = self.first[self.trees.rule_label[rows[lexical, 0]]] + rows[lexical, 1]
        flat = self.flat_grammar(
            self.label,
            rows[lexical, 0],
            symbol,
            weight[lexical],
            bridge=self.first_bridge(),
            of_class=self.means.mean("class"),
        )
        of_base = RuleLists()
        words = flat.add_words(of_base)
        arrays = of_base.arrays()
        symbols, numbers = arrays["lexical"].T
        self.rules.add("lexical", arrays["lexical_weight"], symbols + self.n_symbols, numbers)
        return words

    def flat_grammar(
        self,
        label: np.ndarray,
        rule: np.ndarray,
        symbol: np.ndarray,
        weight: np.ndarray,
        *,
        bridge: np.ndarray,
        of_class: np.ndarray,
        left: np.ndarray | None = None,
        right: np.ndarray | None = None,
        frequency: np.ndarray | None = None,
        base_weight: np.ndarray | None = None,
        base_bridge: np.ndarray | None = None,
    ) -> RefinedGrammar:
        """Refined rules with these weights as stage 1 has them: every symbol a group with one option.

        Parameters
        ----------
        label : ndarray, one per symbol
        rule, symbol, weight, left, right, base_weight : ndarrays, one per refined rule
            Treebank rule, symbol, cached weight, symbols of the children, and cached weight without the root's
            subcategory.
        bridge, frequency : ndarrays, one per symbol
        of_class : ndarray
            The probability of every class under every symbol.
        base_bridge : ndarray, one per label
        """
        trees = self.trees
        # Every word once more, without weight, so that words without a cached rule are included.
        extra = np.flatnonzero(self.words.rule_class >= 0)
        n_extra = len(extra)
        none = np.full(len(rule), -1)
        first = np.searchsorted(label, np.arange(self.n_labels))
        rule, weight = np.concatenate([rule, extra]), np.concatenate([weight, np.zeros(n_extra)])
        symbol = np.concatenate([symbol, first[trees.rule_label[extra]]])
        left, right, base_weight = (
            np.concatenate([none if given is None else given, np.full(n_extra, value)])
            for given, value in ((left, -1), (right, -1), (base_weight, 0.0))
        )
        word_class = self.words.rule_class[rule]
        n_children = (trees.rule_left_label[rule] >= 0).astype(np.int64) + (trees.rule_right_label[rule] >= 0)
        n_cells = 2 << n_children
        first_cell = np.cumsum(n_cells) - n_cells
        # Cells without the root's subcategory are shared by rules that differ in nothing but the root's subcategory.
        _, first_row, base_cell = np.unique(
            np.stack([rule, left, right], axis=1), axis=0, return_index=True, return_inverse=True
        )
        cells = np.zeros(n_cells.sum())
        cells[first_cell] = weight
        base_cells = np.zeros(4 * len(first_row))
        base_cells[::4] = base_weight[first_row]
        blocks = {
            "rule": rule,
            "group": symbol,
            "left_group": left,
            "right_group": right,
            "label": trees.rule_label[rule],
            "n_children": n_children,
            "word_class": word_class,
            "word_restaurant": self.word_restaurant[rule],
            "word_cell": rule,
            f"first_{REFINED.name}": np.stack([first_cell, first_cell + n_cells // 2], axis=1),
            f"first_{UNREFINED.name}": np.stack([4 * base_cell.ravel()] * 2, axis=1),
        }
        exists = np.arange(2 * len(label)) % 2 == 0
        weights = {REFINED.name: cells, UNREFINED.name: base_cells}
        weights[f"{REFINED.name}_bridge"] = np.repeat(bridge, 2) * exists
        if base_bridge is not None:
            weights[f"{UNREFINED.name}_bridge"] = base_bridge
        if self.words.classes:
            weights |= {"class": np.repeat(of_class, 2, axis=0)}
            weights |= {name: self.means.mean(name) for name in ("word", "word_bridge")}
        subcategories = Subcategories(label.astype(np.int32), np.ones(len(label), dtype=np.uint8), self.n_labels)
        frequency = self.means.mean("frequency") if frequency is None else frequency
        levels = split_levels(UNREFINED_ROOT, subcategories)
        return RefinedGrammar(
            self.corpus, trees, self.words, subcategories, blocks, weights, np.repeat(frequency, 2), self.raw, levels
        )

    def coarse_grammar(self, symbols: np.ndarray, ancestor: np.ndarray) -> tuple[RefinedGrammar, WeightedGrammar]:
        """A grammar of refined rules alone, of the symbols of an earlier split: what prunes the transform.

        Parameters
        ----------
        symbols : ndarray, one per node
            The refined symbol of every node of the trees.
        ancestor : ndarray, one per refined symbol
            Its symbol in the earlier split.
        """
        trees, n_labels = self.trees, self.n_labels
        n_coarse = int(ancestor.max()) + 1
        label = np.zeros(n_coarse, dtype=np.int32)
        label[ancestor] = self.label
        own = ancestor[symbols]
        children = [np.where(child >= 0, own[child], -1) for child in (trees.left, trees.right)]
        rows, counts = np.unique(np.stack([trees.rule, own, *children], axis=1), axis=0, return_counts=True)
        rule, symbol, left, right = rows.T
        weight, bridge = discounted(counts, symbol, n_coarse)
        base_rows, place = np.unique(rows[:, [0, 2, 3]], axis=0, return_inverse=True)
        base_counts = np.bincount(place.ravel())
        base_weight, base_bridge = discounted(base_counts, trees.rule_label[base_rows[:, 0]], n_labels)
        frequency = self.means.mean("frequency")
        total = np.bincount(ancestor, weights=frequency, minlength=n_coarse)
        share = frequency / np.maximum(total, 1e-300)[ancestor]
        of_class = np.zeros((n_coarse, len(self.words.classes)))
        if self.words.classes:
            np.add.at(of_class, ancestor, self.means.mean("class") * share[:, None])
        flat = self.flat_grammar(
            label,
            rule,
            symbol,
            weight,
            bridge=bridge,
            of_class=of_class,
            left=left,
            right=right,
            frequency=total,
            base_weight=base_weight[place.ravel()],
            base_bridge=base_bridge,
        )
        return flat, flat.grammar()

    def symbol_map(self, fine: WeightedGrammar, ancestor: np.ndarray) -> np.ndarray:
        """For every symbol of the transform the coarser one that prunes it, or -1."""
        result = np.full(fine.n_symbols, -1, dtype=np.int32)
        result[: 3 * self.n_symbols] = np.tile(ancestor, 3)
        return result


def discounted(counts: np.ndarray, place: np.ndarray, n_restaurants: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights by counts, each less a discount, and what is left of every restaurant for others."""
    total = np.bincount(place, weights=counts, minlength=n_restaurants) + COARSE_STRENGTH
    n_types = np.bincount(place, minlength=n_restaurants)
    return (counts - COARSE_DISCOUNT) / total[place], (COARSE_STRENGTH + COARSE_DISCOUNT * n_types) / total
