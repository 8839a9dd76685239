"""Symbol-refined grammars: subcategories as symbols, and the additive transform that makes a grammar of a sample.

With the counts of a sample frozen, a refined rule has the probability

    p(x_k -> y_l z_m) = w_H + b_{x_k} [ w_I + b_x P(x -> y z) / (K_y K_z) ]

in which the weights ``w`` belong to rules that were seen and the ``b`` to backing off. Backing off is a bridge at
the same node, so that the grammar has one rule for every rule seen and never their product.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tsgkit._sr import SrSampler
from tsgkit.grammar import WeightedGrammar
from tsgkit.models.rules import TreeArrays
from tsgkit.treebank import FlatCorpus, Lexicon
from tsgkit.treebank.unknown import symbol_word

BASES = ("uniform", "frequency")
# For every word of a class that training has seen, as many that it has not.
UNSEEN_WORDS = 2.0
# A tag that a word was never seen with is kept if it has at least this share of the word's probability.
SMALLEST_TAG_SHARE = 1e-3


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
    """

    classes: list[str]
    rule_class: np.ndarray
    class_word_base: np.ndarray

    @classmethod
    def of(cls, corpus: FlatCorpus, trees: TreeArrays, lexicon: Lexicon | None) -> "Words":
        """The classes of the words of a corpus, where they were not put into the trees."""
        rule_class = np.full(trees.n_rules, -1, dtype=np.int32)
        if lexicon is None or lexicon.replaces:
            return cls([], rule_class, np.empty(0))
        first = np.zeros(len(corpus.words), dtype=np.int64)
        tokens = np.flatnonzero(corpus.form >= 0)
        tree_of_token = np.searchsorted(corpus.tree_start, tokens, side="right")
        is_first = np.diff(tree_of_token, prepend=0) > 0
        np.add.at(first, corpus.word[tokens[is_first]], 1)
        total = np.bincount(corpus.word[tokens], minlength=len(corpus.words))
        numbers: dict[str, int] = {name: number for number, name in enumerate(sorted(lexicon.classes))}
        class_of_word = np.empty(len(corpus.words), dtype=np.int32)
        for number, word in enumerate(corpus.words):
            # A word that was only ever the first of its sentence is classed as a first word.
            position = 0 if first[number] == total[number] else 1
            name = lexicon.classify(symbol_word(word) or word, position)
            class_of_word[number] = numbers.setdefault(name, len(numbers))
        is_lexical = trees.rule_word >= 0
        rule_class[is_lexical] = class_of_word[trees.rule_word[is_lexical]]
        n_types = np.bincount(class_of_word, minlength=len(numbers))
        return cls(list(numbers), rule_class, 1.0 / (UNSEEN_WORDS * np.maximum(n_types, 1)))


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
        """Whether each of the symbols ``2 group + option`` is there."""
        return np.stack([np.ones(len(self.n_options), dtype=bool), self.n_options > 1], axis=1).ravel()

    @property
    def number(self) -> np.ndarray:
        """The number of each symbol ``2 group + option`` among those that are there; -1 otherwise."""
        exists = self.exists
        return np.where(exists, np.cumsum(exists) - 1, -1).astype(np.int32)

    @property
    def label(self) -> np.ndarray:
        """The label of every symbol that is there."""
        return np.repeat(self.group_label, 2)[self.exists]

    @property
    def parent(self) -> np.ndarray:
        """The group of every symbol that is there."""
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
    """The last base: the probability of every treebank rule before its children choose their subcategories.

    ``uniform`` is the paper's: every refinement of every rule of a label is as likely as any other. With ``frequency``
    it is the rule's relative frequency. Where words have classes, they are not among the rules.
    """
    sizes = refinements(trees, subcategories)
    weight = sizes if base == "uniform" else trees.rule_count.astype(np.float64)
    if with_classes:
        weight = np.where(trees.rule_word >= 0, 0.0, weight)
    totals = np.bincount(trees.rule_label, weights=weight, minlength=trees.n_labels)
    share = lexical_shares(trees) if with_classes else np.zeros(trees.n_labels)
    return weight / np.maximum(totals, 1e-300)[trees.rule_label] * (1.0 - share)[trees.rule_label]


def refinements(trees: TreeArrays, subcategories: Subcategories) -> np.ndarray:
    """The number of choices of subcategories for the children of every rule."""
    n_symbols = subcategories.n_symbols
    sizes = np.ones(trees.n_rules)
    for child in (trees.rule_left_label, trees.rule_right_label):
        sizes *= np.where(child >= 0, n_symbols[child], 1)
    return sizes


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
    levels: int = 3,
    seed: int = 0,
) -> SrSampler:
    """A sampler with nobody seated."""
    raw = raw_probabilities(trees, base, subcategories, bool(words.classes))
    rule_base = raw / refinements(trees, subcategories)
    return SrSampler(
        trees,
        groups,
        subcategories.group_label,
        subcategories.n_options,
        np.where(words.rule_class >= 0, 1.0, rule_base),
        words.rule_class,
        lexical_shares(trees),
        words.class_word_base,
        levels=levels,
        seed=seed,
    )


@dataclass
class RuleMeans:
    """The mean over samples of what a grammar is made of; all samples have the same blocks of cells.

    Attributes
    ----------
    values : dict of ndarray
        ``rule`` and ``base``: cached weights of H and I per cell; ``rule_bridge`` per symbol ``2 group + option`` and
        ``base_bridge`` per label: weights of backing off; ``word`` per word cell: W; ``word_bridge`` per (tag, class):
        of a word not seen with them; ``class``: J per symbol and class. Sums, to be divided by `n_samples`.
    """

    n_samples: int = 0
    values: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, sampler: SrSampler, words: Words) -> None:
        """Add the present state of a sampler."""
        for name, value in sample_weights(sampler, words).items():
            self.values[name] = self.values[name] + value if name in self.values else value
        self.n_samples += 1

    def mean(self) -> dict[str, np.ndarray]:
        return {name: value / self.n_samples for name, value in self.values.items()}


def cached(sampler: SrSampler, kind: str, house_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cached weight of every cell of a kind, and the weight of every restaurant's bridge."""
    customers, tables, discount, strength = sampler.houses(kind)
    counts, cell_tables = sampler.cells(kind)
    weight = np.maximum(counts - discount[house_of] * cell_tables, 0.0) / (strength + customers)[house_of]
    return weight, (strength + discount * tables) / (strength + customers)


def sample_weights(sampler: SrSampler, words: Words) -> dict[str, np.ndarray]:
    """What `RuleMeans` adds up."""
    blocks = sampler.blocks()
    result: dict[str, np.ndarray] = {}
    for kind in ("rule", "base"):
        result[kind], result[f"{kind}_bridge"] = cached(sampler, kind, sampler.house_of_cells(kind))
    if not words.classes:
        return result
    n_classes = len(words.classes)
    is_word = blocks["word_class"] >= 0
    label, word_class = blocks["label"][is_word], blocks["word_class"][is_word]
    # J_x, densely: labels by classes; and J_{x_k}: symbols by classes.
    weight, bridge = cached(sampler, "label_class", sampler.house_of_cells("label_class"))
    of_label = np.tile(bridge[:, None] / n_classes, (1, n_classes))
    cells, first = np.unique(blocks["label_class"][is_word], return_index=True)
    of_label[label[first], word_class[first]] += weight[cells]
    weight, bridge = cached(sampler, "class", sampler.house_of_cells("class"))
    symbol_label = np.repeat(group_labels(blocks, len(bridge) // 2), 2)
    of_symbol = bridge[:, None] * of_label[symbol_label]
    cells, first = np.unique(blocks["class_first"][is_word], return_index=True)
    group = blocks["group"][is_word][first]
    for option in range(2):
        of_symbol[2 * group + option, word_class[first]] += weight[cells + option]
    result["class"] = of_symbol
    house_of = sampler.house_of_cells("word")
    weight, bridge = cached(sampler, "word", house_of)
    class_of_house = np.zeros(len(bridge), dtype=np.int64)
    class_of_house[blocks["word_house"][is_word]] = word_class
    unseen = bridge * words.class_word_base[class_of_house]
    result["word"], result["word_bridge"] = weight + unseen[house_of], unseen
    return result


def group_labels(blocks: dict[str, np.ndarray], n_groups: int) -> np.ndarray:
    labels = np.zeros(n_groups, dtype=np.int64)
    labels[blocks["group"]] = blocks["label"]
    return labels


class RefinedGrammar:
    """The additive transform of a mean of samples, and its projections to earlier splits.

    Symbols: the refined symbols as `Subcategories.number` counts them, then for every label ``x''`` (its root
    without subcategory) and then for every label "any subcategory", which bridges to all of them.

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
        The probability of each treebank rule in the last base.
    """

    def __init__(
        self,
        corpus: FlatCorpus,
        trees: TreeArrays,
        words: Words,
        subcategories: Subcategories,
        blocks: dict[str, np.ndarray],
        weights: dict[str, np.ndarray],
        frequency: np.ndarray,
        raw: np.ndarray,
        levels: int,
    ) -> None:
        self.corpus, self.trees, self.words = corpus, trees, words
        self.subcategories, self.blocks, self.weights = subcategories, blocks, weights
        self.raw, self.levels = raw, levels
        self.number = subcategories.number
        self.n_refined = int(subcategories.exists.sum())
        self.frequency = frequency[subcategories.exists]
        self.n_labels = len(corpus.labels)

    def grammar(self) -> WeightedGrammar:
        """The grammar of the finest symbols."""
        n_labels, number = self.n_labels, self.number
        unrefined = self.n_refined + np.arange(n_labels)
        any_of = unrefined + n_labels
        blocks = self.blocks
        n_cells = 2 << blocks["n_children"]
        block = np.repeat(np.arange(len(n_cells)), n_cells)
        place = np.arange(len(block)) - blocks["first"][block]
        n_children = blocks["n_children"][block]
        left_bit = np.where(n_children == 2, place >> 1 & 1, place & 1)
        parents = number[2 * blocks["group"][block] + (place >> n_children)]
        lefts = number[2 * blocks["left_group"][block] + left_bit]
        rights = number[2 * blocks["right_group"][block] + (place & 1)]
        weight = self.weights["rule"]
        is_used = (weight > 0) & (blocks["word_class"][block] < 0)
        parts: dict[str, list[np.ndarray]] = {"binary": [], "unary": [], "bridge": [], "lexical": []}
        sums: dict[str, list[np.ndarray]] = {name: [] for name in parts}

        def add(kind: str, value: np.ndarray, *columns: np.ndarray) -> None:
            keep = value > 0
            parts[kind].append(np.stack([column[keep] for column in columns], axis=1))
            sums[kind].append(value[keep])

        for kind, wanted, columns in (
            ("binary", 2, (parents, lefts, rights)),
            ("unary", 1, (parents, lefts)),
        ):
            chosen = is_used & (n_children == wanted)
            add(kind, weight[chosen], *(column[chosen] for column in columns))
        # x_k => x'' and below it the rules of I; every cell of I belongs to one or more blocks.
        exists = self.subcategories.exists
        backs_off = np.zeros(n_labels, dtype=bool)
        backs_off[self.trees.rule_label[self.trees.rule_left_label >= 0]] = True
        if not self.words.classes:
            backs_off[self.trees.rule_label] = True
        goes = backs_off[self.subcategories.label]
        bridge = self.weights["rule_bridge"][exists]
        add("bridge", bridge[goes], np.arange(self.n_refined)[goes], unrefined[self.subcategories.label[goes]])
        base_bridge = np.ones(n_labels)
        if self.levels == 3:
            base_bridge = self.weights["base_bridge"]
            for wanted in (0, 1, 2):
                chosen = np.flatnonzero((n_children == wanted) & (blocks["word_class"][block] < 0))
                cells = blocks["base_first"][block[chosen]] + (place[chosen] & ((1 << wanted) - 1))
                cells, first = np.unique(cells, return_index=True)
                chosen = chosen[first]
                parent = unrefined[blocks["label"][block[chosen]]]
                value = self.weights["base"][cells]
                if wanted == 0:
                    add("lexical", value, parent, self.trees.rule_word[blocks["rule"][block[chosen]]])
                elif wanted == 1:
                    add("unary", value, parent, lefts[chosen])
                else:
                    add("binary", value, parent, lefts[chosen], rights[chosen])
        # The last base: treebank rules whose children are of any subcategory.
        trees = self.trees
        value = self.raw * base_bridge[trees.rule_label]
        parent = unrefined[trees.rule_label]
        is_lexical = trees.rule_left_label < 0
        two = trees.rule_right_label >= 0
        one = ~is_lexical & ~two
        add("binary", value[two], parent[two], any_of[trees.rule_left_label[two]], any_of[trees.rule_right_label[two]])
        add("unary", value[one], parent[one], any_of[trees.rule_left_label[one]])
        label = self.subcategories.label
        add("bridge", 1.0 / self.subcategories.n_symbols[label], any_of[label], np.arange(self.n_refined))
        words = list(self.corpus.words)
        if self.words.classes:
            words = self.add_words(words, add)
        else:
            add("lexical", value[is_lexical], parent[is_lexical], trees.rule_word[is_lexical])
            chosen = is_used & (n_children == 0)
            add("lexical", weight[chosen], parents[chosen], trees.rule_word[blocks["rule"][block[chosen]]])
        arrays: dict[str, Any] = {name: np.concatenate(rows) for name, rows in parts.items() if rows}
        arrays |= {f"{name}_weight": np.concatenate(values) for name, values in sums.items() if values}
        symbol_label = np.concatenate([label, np.arange(n_labels), np.arange(n_labels)]).astype(np.int32)
        root = int(number[2 * self.root_group()])
        return WeightedGrammar(self.corpus.labels, words, symbol_label, root, **arrays)

    def root_group(self) -> int:
        root_label = int(self.corpus.label[0])
        return int(np.flatnonzero(self.subcategories.group_label == root_label)[0])

    def add_words(self, words: list[str], add: Any) -> list[str]:
        """The lexical rules of all words, and of the classes that stand for new ones; returns all words."""
        trees, blocks, weights = self.trees, self.blocks, self.weights
        exists = self.subcategories.exists
        share = lexical_shares(trees)
        label = self.subcategories.label
        back_off = weights["rule_bridge"][exists] * share[label]
        of_class = weights["class"][exists] * back_off[:, None]
        is_word = blocks["word_class"] >= 0
        # For every tag and class seen together: the symbols of the tag.
        tag_class, house = (
            np.unique(
                np.stack(
                    [blocks["label"][is_word], blocks["word_class"][is_word], blocks["word_house"][is_word]], axis=1
                ),
                axis=0,
            )[:, :2],
            None,
        )
        del house
        unseen = np.zeros((self.n_labels, len(self.words.classes)))
        unseen[blocks["label"][is_word], blocks["word_class"][is_word]] = weights["word_bridge"][
            blocks["word_house"][is_word]
        ]
        order = np.argsort(label, kind="stable")
        starts = np.searchsorted(label[order], np.arange(self.n_labels + 1))
        symbols_of = [order[starts[tag] : starts[tag + 1]] for tag in range(self.n_labels)]
        columns: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

        def put(symbols: np.ndarray, word: int, value: np.ndarray) -> None:
            columns.append((symbols, np.full(len(symbols), word), value))

        # Words with the tags they were seen with: the part that backs off ...
        rules = np.flatnonzero(self.words.rule_class >= 0)
        word_cell = np.full(trees.n_rules, -1, dtype=np.int64)
        word_cell[blocks["rule"][is_word]] = blocks["base_first"][is_word]
        n_seen = np.bincount(trees.rule_word[rules], weights=trees.rule_count[rules], minlength=len(words))
        tag_total = np.bincount(trees.rule_label, weights=trees.rule_count, minlength=self.n_labels)
        tags_of: dict[int, list[int]] = {}
        class_of: dict[int, int] = {}
        for rule in rules.tolist():
            tag, word, klass = int(trees.rule_label[rule]), int(trees.rule_word[rule]), int(self.words.rule_class[rule])
            symbols = symbols_of[tag]
            put(symbols, word, of_class[symbols, klass] * weights["word"][word_cell[rule]])
            tags_of.setdefault(word, []).append(tag)
            class_of[word] = klass
        # ... and the cached part.
        numbers = np.flatnonzero(is_word)
        for option in range(2):
            symbols = self.number[2 * blocks["group"][numbers] + option]
            value = np.where(symbols >= 0, weights["rule"][blocks["first"][numbers] + option], 0.0)
            add("lexical", value, symbols, trees.rule_word[blocks["rule"][numbers]])
        # Tags that a word was not seen with, where they have a noticeable share of its probability.
        shares = self.frequency / np.maximum(tag_total[label], 1)
        tag_of_class = np.zeros((self.n_labels, len(self.words.classes)))
        np.add.at(tag_of_class, label, of_class * shares[:, None])
        tag_of_class *= unseen * tag_total[:, None]
        for word, klass in class_of.items():
            seen = tags_of[word]
            for tag in np.flatnonzero(tag_of_class[:, klass] >= SMALLEST_TAG_SHARE * n_seen[word]).tolist():
                if tag not in seen:
                    symbols = symbols_of[tag]
                    put(symbols, word, of_class[symbols, klass] * unseen[tag, klass])
        # New words of every class.
        names = {name: number for number, name in enumerate(words)}
        for tag, klass in tag_class.tolist():
            name = self.words.classes[klass]
            if name not in names:
                names[name] = len(words)
                words.append(name)
            symbols = symbols_of[tag]
            put(symbols, names[name], of_class[symbols, klass] * unseen[tag, klass])
        add(
            "lexical",
            np.concatenate([value for _, _, value in columns]),
            np.concatenate([symbols for symbols, _, _ in columns]),
            np.concatenate([word for _, word, _ in columns]),
        )
        return words

    def raw_grammar(self, fine: WeightedGrammar) -> WeightedGrammar:
        """The treebank's own rules by relative frequency, with the words of the fine grammar."""
        trees = self.trees
        total = np.bincount(self.subcategories.label, weights=self.frequency, minlength=self.n_labels)
        share = self.frequency / np.maximum(total, 1)[self.subcategories.label]
        share = np.concatenate([share, np.ones(2 * self.n_labels)])
        two = trees.rule_right_label >= 0
        one = (trees.rule_left_label >= 0) & ~two
        lexical = np.stack([fine.label[fine.lexical[:, 0]], fine.lexical[:, 1]], axis=1)
        lexical_weight = fine.lexical_weight * share[fine.lexical[:, 0]]
        lexical, lexical_weight = lexical[lexical_weight > 0], lexical_weight[lexical_weight > 0]
        return WeightedGrammar(
            fine.labels,
            fine.words,
            np.arange(self.n_labels),
            int(self.corpus.label[0]),
            binary=np.stack([trees.rule_label, trees.rule_left_label, trees.rule_right_label], axis=1)[two],
            binary_weight=trees.rule_probability[two],
            unary=np.stack([trees.rule_label, trees.rule_left_label], axis=1)[one],
            unary_weight=trees.rule_probability[one],
            lexical=lexical,
            lexical_weight=lexical_weight,
        )

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
        total = np.bincount(ancestor, weights=self.frequency, minlength=n_coarse)
        share = np.concatenate([self.frequency / np.maximum(total[ancestor], 1), np.ones(2 * self.n_labels)])
        symbol_map = np.concatenate([ancestor, n_coarse + np.arange(2 * self.n_labels)]).astype(np.int32)
        coarse_label = np.zeros(n_coarse, dtype=np.int32)
        coarse_label[ancestor] = self.subcategories.label
        label = np.concatenate([coarse_label, np.arange(self.n_labels), np.arange(self.n_labels)])
        parts: dict[str, Any] = {}
        for kind in ("binary", "unary", "bridge", "lexical"):
            rules, weight = getattr(fine, kind).copy(), getattr(fine, f"{kind}_weight")
            parts[f"{kind}_weight"] = weight * share[rules[:, 0]]
            n_symbols = rules.shape[1] - (kind == "lexical")
            rules[:, :n_symbols] = symbol_map[rules[:, :n_symbols]]
            parts[kind] = rules
        keep = {kind: parts[f"{kind}_weight"] > 0 for kind in ("binary", "unary", "bridge", "lexical")}
        for kind, chosen in keep.items():
            parts[kind], parts[f"{kind}_weight"] = parts[kind][chosen], parts[f"{kind}_weight"][chosen]
        return WeightedGrammar(fine.labels, fine.words, label, int(symbol_map[fine.root]), **parts), symbol_map
