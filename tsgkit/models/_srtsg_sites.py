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

from dataclasses import dataclass
from typing import Any

import numpy as np

from tsgkit._refined_sampler import RefinedSampler
from tsgkit.grammar import WeightedGrammar
from tsgkit.models._back_off import (
    REFINED,
    UNREFINED,
    UNREFINED_ROOT,
    BackOff,
    BackOffSymbols,
    Levels,
    RefinedSymbols,
)
from tsgkit.models._distinct import distinct_rows
from tsgkit.models._rules import TreeArrays
from tsgkit.models._srtsg import (
    RefinedGrammar,
    RuleLists,
    Subcategories,
    Words,
    lexical_shares,
    raw_probabilities,
    refined_probabilities,
    refinements,
    split_levels,
)
from tsgkit.models._srtsg_means import SiteMeans
from tsgkit.treebank import FlatCorpus

# Of the coarser grammars, which only prune: the discount of every refined rule.
COARSE_DISCOUNT = 0.5
COARSE_STRENGTH = 1.0


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
        words.levels,
        seed=seed,
    )


def site_levels(back_off: BackOff, subcategories: Subcategories) -> Levels:
    """The levels of a back-off over the symbols that there are."""
    return back_off.over(RefinedSymbols(subcategories.label, subcategories.parent))


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
            first_of, place, _ = distinct_rows([trees.rule_label[is_word], words.rule_class[is_word]])
            self.word_restaurant[is_word] = np.flatnonzero(is_word)[first_of[place]]
        self.rules = RuleLists()
        self.also_parts = np.empty(0, dtype=np.int64)  # parts that are in use, although of no fragment here

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
        internal = self.continued(site + self.n_symbols, self.label)
        words = self.add_base(self.means.mean("stop")[self.label], internal)
        return self.finished(words, private_label)

    def continued(self, symbols: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The symbols by which fragments reach these symbols of internal nodes, which have these labels."""
        return symbols

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
        site = np.arange(self.n_symbols)
        inner, either = site + self.n_symbols, site + 2 * self.n_symbols
        self.rules.add("bridge", stop, either, site)
        self.rules.add("bridge", 1.0 - stop, either, goes_on)
        self.add_seen(inner, either)
        self.add_back_off(inner)
        self.add_unrefined(either)
        return self.add_words() if self.words.classes else list(self.corpus.words)

    def add_seen(self, inner: np.ndarray, either: np.ndarray) -> None:
        """The rules that restaurants have seen, at every level; words with classes have separate ones."""
        trees, has_class = self.trees, self.words.rule_class >= 0
        for name, context in self.levels.used:
            table = self.means.rules[name]
            rule, own, *below = table.rows[~has_class[table.rows[:, 0]]].T
            value = table.weight[~has_class[table.rows[:, 0]]] / self.means.n_samples
            parent = self.back_off.of_level.get(name, inner)[context[self.first[trees.rule_label[rule]]] + own]
            children = [
                either[self.first[child[rule]] + subcategory]
                for child, subcategory in zip((trees.rule_left_label, trees.rule_right_label), below, strict=True)
            ]
            self.add_rules(value, parent, rule, children)

    def add_back_off(self, inner: np.ndarray) -> None:
        """The bridges down the levels."""
        has_class = self.words.rule_class >= 0
        backs_off = np.bincount(self.trees.rule_label[~has_class], minlength=self.n_labels) > 0
        goes = backs_off[self.label]
        bridge = self.first_bridge()
        if self.words.classes:
            bridge = bridge * (1.0 - lexical_shares(self.trees))[self.label]
        self.rules.add("bridge", bridge[goes], inner[goes], self.back_off.next_of(0)[goes])
        for name, symbols, labels, next_symbols in self.back_off.bridges():
            self.rules.add("bridge", self.means.mean(f"{name}_bridge") * backs_off[labels], symbols, next_symbols)

    def add_unrefined(self, either: np.ndarray) -> None:
        """P0: treebank rules with children of any subcategory."""
        trees = self.trees
        any_of = self.back_off.end + np.arange(self.n_labels)
        rule = np.flatnonzero(self.words.rule_class < 0)
        label = trees.rule_label[rule]
        children = [any_of[child[rule]] for child in (trees.rule_left_label, trees.rule_right_label)]
        value = self.raw[rule]
        if self.back_off.last is not None:
            value = value * self.means.mean(f"{self.back_off.last}_bridge")[label]
        self.add_rules(value, self.back_off.of_label[label], rule, children)
        per_label = np.bincount(self.label, minlength=self.n_labels)
        self.rules.add("bridge", 1.0 / per_label[self.label], any_of[self.label], either)

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
        is_part[self.also_parts] = True
        private = self.n_shared + np.cumsum(is_part) - 1
        self.n_parts = int(is_part.sum())
        self.inside = np.full(len(parts), -1)
        self.inside[is_part] = self.continued(private[is_part], self.trees.rule_label[rule[is_part]])
        children = [np.where(codes >= 0, self.inside[np.maximum(codes, 0)], -2 - codes) for codes in parts[:, 1:].T]
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
        first_row, base_cell, _ = distinct_rows([rule, left, right])
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
            f"first_{UNREFINED.name}": np.stack([4 * base_cell] * 2, axis=1),
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
        columns = np.stack([trees.rule, own, *children])
        first, _, counts = distinct_rows(columns)
        rule, symbol, left, right = columns[:, first]
        weight, bridge = discounted(counts, symbol, n_coarse)
        first_base, place, base_counts = distinct_rows([rule, left, right])
        base_weight, base_bridge = discounted(base_counts, trees.rule_label[rule[first_base]], n_labels)
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
            base_weight=base_weight[place],
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
