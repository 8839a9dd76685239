"""Symbol-refined grammars: subcategories as symbols, and the additive transform that makes a grammar of a sample.

With the counts of a sample frozen, a refined rule has the probability

    p(x_k -> y_l z_m) = w_H + b_{x_k} [ w_I + b_x P(x -> y z) / (K_y K_z) ]

in which the weights ``w`` belong to rules that were seen and the ``b`` to backing off. Backing off is a bridge at
the same node, so that the grammar has one rule for every rule seen and never their product.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from tsgkit._checks import require_amounts
from tsgkit._refined_sampler import RefinedSampler
from tsgkit._subcategories import SplitSampler, choices_of
from tsgkit.grammar import WeightedGrammar
from tsgkit.grammar._weighted import RULE_KINDS
from tsgkit.models._back_off import UNREFINED_ROOT, BackOff, BackOffSymbols, Levels, RefinedSymbols
from tsgkit.models._base_distributions import base_weights, shares
from tsgkit.models._refined_words import WordRules
from tsgkit.models._rules import TreeArrays
from tsgkit.models._suffixes import ClassLevels
from tsgkit.treebank import FlatCorpus, Lexicon
from tsgkit.treebank._prepare import token_nodes
from tsgkit.treebank.unknown import symbol_word

# For every word of a class that training has seen, as many that it has not.
UNSEEN_WORDS = 2.0


@dataclass(frozen=True)
class Words:
    """What lexical restaurants need to know about words.

    Attributes
    ----------
    classes : list of str
        The classes of new words; empty where rare words were replaced by their classes in the trees.
    rule_class : ndarray of int32, one per rule of the trees
        The class of a lexical rule's word, or -1.
    class_word_base : ndarray of float, one per class
        The probability of each word of the class, unseen ones included.
    levels : ClassLevels
        What classes back off to under a tag.
    has_suffixes : bool
        Whether they back off to shorter suffixes, and new words may have tags that their class was not seen with.
    """

    classes: list[str]
    rule_class: np.ndarray
    class_word_base: np.ndarray
    levels: ClassLevels
    has_suffixes: bool = False

    @classmethod
    def of(cls, corpus: FlatCorpus, trees: TreeArrays, lexicon: Lexicon | None, *, suffixes: bool = False) -> "Words":
        """The classes of the words of a corpus, where they were not put into the trees."""
        rule_class = np.full(trees.n_rules, -1, dtype=np.int32)
        if lexicon is None or lexicon.replaces:
            return cls([], rule_class, np.empty(0), ClassLevels.uniform(0))
        first = np.zeros(len(corpus.words), dtype=np.int64)
        tokens, is_first = token_nodes(corpus)
        np.add.at(first, corpus.word[tokens[is_first]], 1)
        total = np.bincount(corpus.word[tokens], minlength=len(corpus.words))
        numbers: dict[str, int] = {name: number for number, name in enumerate(sorted(lexicon.classes))}
        class_of_word = np.empty(len(corpus.words), dtype=np.int32)
        coarser: dict[str, str] = {}
        for number, word in enumerate(corpus.words):
            # A word that was only ever the first of its sentence is classed as a first word.
            position = 0 if first[number] == total[number] else 1
            form = symbol_word(word) or word
            name = lexicon.classify(form, position)
            class_of_word[number] = numbers.setdefault(name, len(numbers))
            coarser.update(pairwise(lexicon.settings.classes(form, position == 0, lexicon.words)))
        is_lexical = trees.rule_word >= 0
        rule_class[is_lexical] = class_of_word[trees.rule_word[is_lexical]]
        n_types = np.bincount(class_of_word, minlength=len(numbers))
        n_types = np.maximum(n_types, 1)
        levels = ClassLevels.uniform(len(numbers))
        if suffixes:
            levels = ClassLevels.of(list(numbers), coarser, n_types.tolist())
        return cls(list(numbers), rule_class, 1.0 / (UNSEEN_WORDS * n_types), levels, suffixes)

    def label_classes(self, sampler: SplitSampler | RefinedSampler) -> np.ndarray:
        """Labels by classes: the probability of a class under a label, by the tables of a sampler."""
        cached_weights, bridges = [], []
        for kind, dish in zip(self.levels.kinds, self.levels.dish, strict=True):
            customers, tables = class_counts(sampler, kind, int(dish.max()) + 1)
            all_customers, all_tables, discount, strength = sampler.restaurants(kind)
            scale = 1.0 / (strength + all_customers)
            cached_weights.append((customers - discount[:, None] * tables) * scale[:, None])
            bridges.append((strength + discount * all_tables) * scale)
        return self.levels.probabilities(cached_weights, bridges)


def class_counts(sampler: SplitSampler | RefinedSampler, kind: str, n_dishes: int) -> np.ndarray:
    """The numbers of customers and of tables of every dish of a level of classes: two arrays of labels by dishes."""
    if isinstance(sampler, SplitSampler):
        return sampler.cells(kind).reshape(2, sampler.n_labels, n_dishes)
    counts = np.zeros((2, sampler.n_labels, n_dishes), dtype=np.int32)
    label, dish, customers, tables = sampler.cells(kind).T
    counts[:, label, dish] = customers, tables
    return counts


@dataclass(frozen=True)
class Subcategories:
    """The symbols of a split: groups (labels with earlier subcategories), each with one or two options.

    Attributes
    ----------
    group_label : ndarray of int32, one per group
    n_options : ndarray of uint8, one per group
    n_labels : int
    """

    group_label: np.ndarray
    n_options: np.ndarray
    n_labels: int

    @property
    def exists(self) -> np.ndarray:
        """Whether each of the symbols ``2 group + option`` exists."""
        return np.stack([np.ones(len(self.n_options), dtype=bool), self.n_options > 1], axis=1).ravel()

    @property
    def number(self) -> np.ndarray:
        """The number of each symbol ``2 group + option`` among those that exist; -1 otherwise."""
        exists = self.exists
        return np.where(exists, np.cumsum(exists) - 1, -1).astype(np.int32)

    @property
    def label(self) -> np.ndarray:
        """The label of every symbol that exists."""
        return np.repeat(self.group_label, 2)[self.exists]

    @property
    def parent(self) -> np.ndarray:
        """The group of every symbol that exists."""
        return np.repeat(np.arange(len(self.group_label), dtype=np.int32), 2)[self.exists]

    @property
    def n_symbols(self) -> np.ndarray:
        """How many symbols each label has."""
        return np.bincount(self.label, minlength=self.n_labels)

    @classmethod
    def whole(cls, n_labels: int) -> "Subcategories":
        """Labels as they are."""
        return cls(np.arange(n_labels, dtype=np.int32), np.ones(n_labels, dtype=np.uint8), n_labels)

    def split(self, root: int) -> "Subcategories":
        """Every symbol becomes a group with two options, but for the root."""
        label = self.label
        return Subcategories(label, np.where(label == root, 1, 2).astype(np.uint8), self.n_labels)


def raw_probabilities(trees: TreeArrays, base: str, subcategories: Subcategories, with_classes: bool) -> np.ndarray:
    """The base distribution P0: the probability of every treebank rule before its children choose their subcategories.

    Parameters
    ----------
    trees : TreeArrays
    base : str
        Its name; see `tsgkit.models.base_distributions`. ``uniform`` is the paper's.
    subcategories : Subcategories
    with_classes : bool
        Whether words have classes; then they are not among the rules, and the others sum to 1.
    """
    weights = base_weights(base, trees, refinements(trees, subcategories))
    return shares(np.where(trees.rule_word >= 0, 0.0, weights) if with_classes else weights, trees)


def refinements(trees: TreeArrays, subcategories: Subcategories) -> np.ndarray:
    """The number of choices of subcategories for the children of every rule."""
    n_symbols = subcategories.n_symbols
    sizes = np.ones(trees.n_rules)
    for child in (trees.rule_left_label, trees.rule_right_label):
        sizes *= np.where(child >= 0, n_symbols[child], 1)
    return sizes


def refined_probabilities(trees: TreeArrays, words: Words, base: str, subcategories: Subcategories) -> np.ndarray:
    """The base distribution P0 over refined rules: of each refinement of a treebank rule; 1 for words with classes."""
    raw = raw_probabilities(trees, base, subcategories, bool(words.classes))
    return np.where(words.rule_class >= 0, 1.0, raw / refinements(trees, subcategories))


def lexical_shares(trees: TreeArrays) -> np.ndarray:
    """The share of words among the rules of every label."""
    totals = np.bincount(trees.rule_label, weights=trees.rule_count, minlength=trees.n_labels)
    words = np.bincount(
        trees.rule_label, weights=np.where(trees.rule_word >= 0, trees.rule_count, 0), minlength=trees.n_labels
    )
    return words / np.maximum(totals, 1)


def make_sampler(
    trees: TreeArrays,
    words: Words,
    groups: np.ndarray,
    subcategories: Subcategories,
    *,
    base: str = "frequency",
    back_off: BackOff = UNREFINED_ROOT,
    seed: int = 0,
) -> SplitSampler:
    """A sampler with empty restaurants."""
    return SplitSampler(
        trees,
        groups,
        subcategories.group_label,
        subcategories.n_options,
        split_levels(back_off, subcategories),
        refined_probabilities(trees, words, base, subcategories),
        words.rule_class,
        lexical_shares(trees),
        words.class_word_base,
        words.levels,
        seed=seed,
    )


def split_levels(back_off: BackOff, subcategories: Subcategories) -> Levels:
    """The levels of a back-off over the symbols ``2 group + option``, whose rules have restaurants in any case."""
    group = np.arange(len(subcategories.group_label), dtype=np.int32)
    return back_off.over(RefinedSymbols(np.repeat(subcategories.group_label, 2), np.repeat(group, 2)), least=1)


@dataclass
class RuleMeans:
    """The mean over samples of what a grammar is made of; all samples have the same blocks of cells.

    Attributes
    ----------
    values : dict of ndarray
        For every level of rules, by its name: cached weights per cell, and ``NAME_bridge``, weights of backing off, per
        restaurant; ``word`` per word cell: W; ``word_bridge`` per (tag, class): of a word not seen with them;
        ``class``: J per symbol and class. Sums, to be divided by `n_samples`.
    """

    n_samples: int = 0
    values: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, sampler: SplitSampler, words: Words) -> None:
        """Add the present state of a sampler."""
        for name, value in sample_weights(sampler, words).items():
            self.values[name] = self.values[name] + value if name in self.values else value
        self.n_samples += 1

    def mean(self) -> dict[str, np.ndarray]:
        return {name: value / self.n_samples for name, value in self.values.items()}

    def state(self) -> dict[str, np.ndarray]:
        """Everything, as arrays."""
        return {"samples": np.array([self.n_samples], dtype=np.int64), **self.values}

    @classmethod
    def restored(cls, state: dict[str, np.ndarray], sampler: SplitSampler, words: Words) -> "RuleMeans":
        """What `state` gave, if it is of samples like the present one; a ValueError says what is not."""
        values = {name: value for name, value in state.items() if name != "samples"}
        n_samples = restored_sums(values, state["samples"], sample_weights(sampler, words))
        return cls(n_samples, values)


def restored_sums(values: dict[str, np.ndarray], n_samples: np.ndarray, sample: dict[str, np.ndarray]) -> int:
    """The number of samples in sums over them; a ValueError unless each is a sum of arrays like a sample's."""
    require_amounts(n_samples, "int64", (1,))
    if set(values) != (set(sample) if n_samples[0] else set()):
        raise ValueError("the mean is not one of these quantities")
    for name, value in values.items():
        require_amounts(value, "float64", sample[name].shape)
    return int(n_samples[0])


def cached(sampler: SplitSampler, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """The cached weight of every cell of a kind, and the weight of every restaurant's bridge."""
    customers, tables, discount, strength = sampler.restaurants(kind)
    counts, cell_tables = sampler.cells(kind)
    place = sampler.restaurant_of_cells(kind)
    weight = np.maximum(counts - discount[place] * cell_tables, 0.0) / (strength + customers)[place]
    return weight, (strength + discount * tables) / (strength + customers)


def sample_weights(sampler: SplitSampler, words: Words) -> dict[str, np.ndarray]:
    """What `RuleMeans` adds up."""
    blocks = sampler.blocks()
    result: dict[str, np.ndarray] = {}
    for kind in sampler.rule_kinds:
        result[kind], result[f"{kind}_bridge"] = cached(sampler, kind)
    if not words.classes:
        return result
    is_word = blocks["word_class"] >= 0
    word_class = blocks["word_class"][is_word]
    # J_{x_k}, densely: symbols by classes.
    weight, bridge = cached(sampler, "class")
    symbol_label = np.repeat(sampler.group_labels(), 2)
    of_symbol = bridge[:, None] * words.label_classes(sampler)[symbol_label]
    cells, first = np.unique(blocks["class_first"][is_word], return_index=True)
    group = blocks["group"][is_word][first]
    for option in range(2):
        of_symbol[2 * group + option, word_class[first]] += weight[cells + option]
    result["class"] = of_symbol
    weight, bridge = cached(sampler, "word")
    class_of = np.zeros(len(bridge), dtype=np.int64)
    class_of[blocks["word_restaurant"][is_word]] = word_class
    unseen = bridge * words.class_word_base[class_of]
    result["word"], result["word_bridge"] = weight + unseen[sampler.restaurant_of_cells("word")], unseen
    return result


class RuleLists:
    """Rules as they come, and the arrays that `WeightedGrammar` takes."""

    def __init__(self) -> None:
        self.rows: dict[str, list[np.ndarray]] = {"binary": [], "unary": [], "bridge": [], "lexical": []}
        self.weights: dict[str, list[np.ndarray]] = {kind: [] for kind in self.rows}

    def add(self, kind: str, weights: np.ndarray, *columns: np.ndarray) -> None:
        """Add rules of a kind, but for those without weight."""
        keep = weights > 0
        self.rows[kind].append(np.stack([column[keep] for column in columns], axis=1))
        self.weights[kind].append(weights[keep])

    def add_with_children(
        self, weights: np.ndarray, parents: np.ndarray, lefts: np.ndarray, rights: np.ndarray
    ) -> None:
        """Add rules with one or two children; -1 where there is no second one."""
        two = rights >= 0
        self.add("binary", weights[two], parents[two], lefts[two], rights[two])
        self.add("unary", weights[~two], parents[~two], lefts[~two])

    def arrays(self) -> dict[str, Any]:
        result: dict[str, Any] = {kind: np.concatenate(rows) for kind, rows in self.rows.items() if rows}
        return result | {f"{kind}_weight": np.concatenate(self.weights[kind]) for kind in result}


@dataclass(frozen=True)
class Cells:
    """The cells of the first level as rules: of every one its block, option, children's options, and symbols."""

    block: np.ndarray
    option: np.ndarray
    below: np.ndarray
    parent: np.ndarray
    left: np.ndarray
    right: np.ndarray
    is_word: np.ndarray

    @classmethod
    def of(cls, blocks: dict[str, np.ndarray], number: np.ndarray) -> "Cells":
        block, option, below = choices_of(blocks)
        n_children = blocks["n_children"][block]
        left_bit = np.where(n_children == 2, below >> 1, below)
        left = np.where(n_children > 0, number[2 * blocks["left_group"][block] + left_bit], -1)
        right = np.where(n_children > 1, number[2 * blocks["right_group"][block] + (below & 1)], -1)
        return cls(block, option, below, number[2 * blocks["group"][block] + option], left, right, n_children == 0)


@dataclass
class RefinedGrammar:
    """The additive transform of a mean of samples, and its projections to earlier splits.

    Symbols: the refined symbols as `Subcategories.number` counts them, then those of `BackOffSymbols`, and then for
    every label "any subcategory", which bridges to all of them.

    Parameters
    ----------
    corpus : FlatCorpus
    trees : TreeArrays
    words : Words
    subcategories : Subcategories
    blocks : dict of ndarray
        Of the sampler.
    weights : dict of ndarray
        Of `RuleMeans.mean`.
    frequency : ndarray, one per symbol ``2 group + option``
        How many nodes have it.
    raw : ndarray, one per rule
        The probability of each treebank rule in the base distribution P0.
    levels : Levels
        Of `split_levels`.
    """

    corpus: FlatCorpus
    trees: TreeArrays
    words: Words
    subcategories: Subcategories
    blocks: dict[str, np.ndarray]
    weights: dict[str, np.ndarray]
    frequency: np.ndarray
    raw: np.ndarray
    levels: Levels

    def __post_init__(self) -> None:
        self.number = self.subcategories.number
        self.label = self.subcategories.label
        self.n_refined = len(self.label)
        self.symbol_frequency = self.frequency[self.subcategories.exists]
        self.n_labels = len(self.corpus.labels)
        symbol_label = np.repeat(self.subcategories.group_label, 2)
        self.back_off = BackOffSymbols(self.levels, symbol_label, self.n_labels, self.n_refined)
        self.any_of = self.back_off.end + np.arange(self.n_labels)

    def grammar(self) -> WeightedGrammar:
        """The grammar of the finest symbols."""
        rules = RuleLists()
        self.add_seen(rules)
        self.add_back_off(rules)
        words = self.add_words(rules) if self.words.classes else list(self.corpus.words)
        label = np.concatenate([self.label, self.back_off.label, np.arange(self.n_labels)])
        root_label = int(self.corpus.label[0])
        root = int(self.number[2 * np.flatnonzero(self.subcategories.group_label == root_label)[0]])
        return WeightedGrammar(self.corpus.labels, words, label.astype(np.int32), root, **rules.arrays())

    def add_seen(self, rules: RuleLists) -> None:
        """The rules that restaurants have seen, at every level."""
        blocks, cells = self.blocks, Cells.of(self.blocks, self.number)
        word = self.trees.rule_word[blocks["rule"][cells.block]]
        # Words with classes have separate restaurants.
        is_rule = blocks["word_class"][cells.block] < 0
        symbol = 2 * blocks["group"][cells.block] + cells.option
        for name, context in self.levels.used:
            parents = self.back_off.of_level[name][context[symbol]] if name in self.back_off.of_level else cells.parent
            place = blocks[f"first_{name}"][cells.block, cells.option] + cells.below
            # Several cells of the first level can stand above the same cell.
            chosen = np.flatnonzero(is_rule)
            used, first = np.unique(place[chosen], return_index=True)
            chosen = chosen[first]
            lexical = cells.is_word[chosen]
            value, chosen_words = self.weights[name][used], chosen[lexical]
            rules.add("lexical", value[lexical], parents[chosen_words], word[chosen_words])
            others = chosen[~lexical]
            rules.add_with_children(value[~lexical], parents[others], cells.left[others], cells.right[others])

    def add_back_off(self, rules: RuleLists) -> None:
        """The bridges down the levels, and P0: treebank rules with children of any subcategory."""
        trees = self.trees
        in_base = np.flatnonzero(self.raw > 0)
        has_base = np.zeros(self.n_labels, dtype=bool)
        has_base[trees.rule_label[in_base]] = True
        goes = np.flatnonzero(has_base[self.label])
        bridge = self.weights[f"{self.levels.names[0]}_bridge"][self.subcategories.exists]
        if self.words.classes:
            bridge = bridge * (1.0 - lexical_shares(trees))[self.label]
        rules.add("bridge", bridge[goes], goes, self.back_off.next_of(0)[self.subcategories.exists][goes])
        for name, symbols, labels, below in self.back_off.bridges():
            rules.add("bridge", self.weights[f"{name}_bridge"] * has_base[labels], symbols, below)
        value, of_label = self.raw.copy(), self.back_off.of_label
        if self.back_off.last is not None:
            value *= self.weights[f"{self.back_off.last}_bridge"][trees.rule_label]
        lexical = in_base[trees.rule_word[in_base] >= 0]
        rules.add("lexical", value[lexical], of_label[trees.rule_label[lexical]], trees.rule_word[lexical])
        others = in_base[trees.rule_word[in_base] < 0]
        left, right = trees.rule_left_label[others], trees.rule_right_label[others]
        rules.add_with_children(
            value[others],
            of_label[trees.rule_label[others]],
            self.any_of[left],
            np.where(right >= 0, self.any_of[right], -1),
        )
        share = 1.0 / self.subcategories.n_symbols[self.label]
        rules.add("bridge", share, self.any_of[self.label], np.arange(self.n_refined))

    def add_words(self, rules: RuleLists) -> list[str]:
        """The lexical rules of all words, and of the classes that stand for new ones; returns all words."""
        return WordRules(self, lexical_shares(self.trees)).add(rules)

    def raw_grammar(self, fine: WeightedGrammar) -> WeightedGrammar:
        """The unrefined rules of the treebank by relative frequency, with the words of the fine grammar."""
        trees = self.trees
        total = np.bincount(self.label, weights=self.symbol_frequency, minlength=self.n_labels)
        share = np.ones(fine.n_symbols)
        share[: self.n_refined] = self.symbol_frequency / np.maximum(total, 1)[self.label]
        # Words that later levels have are reached through bridges, level by level; "any subcategory" has none.
        share[self.n_refined :] = 0.0
        starts = [0, *(symbols[0] for _, symbols, _, _ in self.back_off.bridges())]
        ends = [self.n_refined, *(symbols[-1] + 1 for _, symbols, _, _ in self.back_off.bridges())]
        for start, end in zip(starts, ends, strict=True):
            down = (fine.bridge[:, 0] >= start) & (fine.bridge[:, 0] < end)
            above, below = fine.bridge[down].T
            share += np.bincount(below, weights=share[above] * fine.bridge_weight[down], minlength=fine.n_symbols)
        rules = RuleLists()
        others = trees.rule_word < 0
        columns = (trees.rule_probability, trees.rule_label, trees.rule_left_label, trees.rule_right_label)
        rules.add_with_children(*(column[others] for column in columns))
        weight = fine.lexical_weight * share[fine.lexical[:, 0]]
        rules.add("lexical", weight, fine.label[fine.lexical[:, 0]], fine.lexical[:, 1])
        root = int(self.corpus.label[0])
        return WeightedGrammar(fine.labels, fine.words, np.arange(self.n_labels), root, **rules.arrays())

    def projected(self, fine: WeightedGrammar, ancestor: np.ndarray) -> tuple[WeightedGrammar, np.ndarray]:
        """The grammar of an earlier split, and for every fine symbol its coarser one.

        Parameters
        ----------
        fine : WeightedGrammar
            Of `grammar`.
        ancestor : ndarray, one per refined symbol
            Its symbol in the earlier split.
        """
        n_coarse = int(ancestor.max()) + 1
        total = np.bincount(ancestor, weights=self.symbol_frequency, minlength=n_coarse)
        share = np.ones(fine.n_symbols)
        share[: self.n_refined] = self.symbol_frequency / np.maximum(total[ancestor], 1)
        others = np.arange(fine.n_symbols - self.n_refined)
        symbol_map = np.concatenate([ancestor, n_coarse + others]).astype(np.int32)
        label = np.zeros(n_coarse + len(others), dtype=np.int32)
        label[symbol_map] = fine.label
        parts: dict[str, Any] = {}
        for kind in RULE_KINDS:
            rules, weight = getattr(fine, kind).copy(), getattr(fine, f"{kind}_weight")
            weight = weight * share[rules[:, 0]]
            n_symbols = rules.shape[1] - (kind == "lexical")
            rules[:, :n_symbols] = symbol_map[rules[:, :n_symbols]]
            parts[kind], parts[f"{kind}_weight"] = rules[weight > 0], weight[weight > 0]
        return WeightedGrammar(fine.labels, fine.words, label, int(symbol_map[fine.root]), **parts), symbol_map
