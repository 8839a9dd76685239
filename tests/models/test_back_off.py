"""The hierarchy of restaurants over refined rules against the definition, for any number of levels."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from nltk.tree import Tree
from reference import pyp
from reference.back_off import Hierarchy

from tsgkit._random import Stream
from tsgkit._refined_rules import RuleHierarchy
from tsgkit.errors import UsageError
from tsgkit.models._back_off import Levels
from tsgkit.models._srtsg import lexical_shares
from tsgkit.models._suffixes import ClassLevels
from tsgkit.models.back_off import BACK_OFFS, REFINED, UNREFINED, BackOff, Level, RefinedSymbols
from tsgkit.models.rules import number_rules
from tsgkit.treebank import FlatCorpus

TREES = ["(S (N a) (V b))", "(S (N (N a) (N b)) (V c))", "(S (V (V a)) (N d))", "(S (N c))"]
# Symbols of a label that was split twice, and one half of it merged again.
N_SYMBOLS, PARENTS = {"S": 1, "N": 4, "V": 3}, {"S": [0], "N": [0, 0, 1, 1], "V": [0, 0, 1]}
COARSE = Level("coarse", lambda symbols: symbols.parent)
FOUR = BackOff((REFINED, COARSE, UNREFINED))
# Three classes of words, of which the coarser level joins two.
CLASS_LEVELS = ClassLevels(np.array([[0, 1, 2], [0, 1, 0]]), np.array([[0.4, 1.0, 0.6], [0.7, 0.3, 0.7]]))


class Setting:
    """Rules with refined symbols, a hierarchy over them and its oracle."""

    def __init__(self, back_off=FOUR, n_levels=None, classes=False, discounts=(0.0, 0.6, 0.3)):
        corpus = FlatCorpus.from_trees(map(Tree.fromstring, TREES))
        self.trees = trees = number_rules(corpus)
        label = [number for number, name in enumerate(corpus.labels) for _ in range(N_SYMBOLS[name])]
        parent, first = [], 0
        for name in corpus.labels:
            parent += [first + number for number in PARENTS[name]]
            first = parent[-1] + 1
        self.label = np.array(label)
        self.first = np.searchsorted(self.label, np.arange(trees.n_labels))
        self.levels = back_off.truncated(n_levels).over(RefinedSymbols(self.label, np.array(parent)))
        sizes = np.ones(trees.n_rules)
        for child in (trees.rule_left_label, trees.rule_right_label):
            sizes *= np.where(child >= 0, np.bincount(self.label)[child], 1)
        is_word = trees.rule_word >= 0
        weight = np.where(is_word & classes, 0.0, sizes)
        totals = np.bincount(trees.rule_label, weights=weight)
        base = np.where(weight > 0, weight / np.maximum(totals, 1)[trees.rule_label] / sizes, 1.0)
        rule_class = np.where(is_word & classes, trees.rule_word % 3, -1)
        word_base = np.array([0.25, 0.5, 0.25]) if classes else np.empty(0)
        arguments = {
            "symbol_label": self.label,
            "levels": self.levels,
            "rule_base": base,
            "rule_class": rule_class,
            "lexical_share": lexical_shares(trees),
            "class_word_base": word_base,
            "class_levels": CLASS_LEVELS if classes else ClassLevels.uniform(0),
        }
        self.hierarchy = RuleHierarchy(trees, **arguments)
        n_pairs = self.hierarchy.parameters().shape[1]
        self.parameters = np.array([np.resize(discounts, n_pairs), np.resize([1.0, 0.4, 2.0], n_pairs)])
        self.hierarchy.set_parameters(self.parameters)
        self.oracle = Hierarchy(trees, **arguments, parameters=self.parameters)
        self.random = np.random.default_rng(1)

    def within(self, rule, *symbols):
        """Subcategories counted within their labels, as compiled code takes them."""
        labels = (self.trees.rule_label, self.trees.rule_left_label, self.trees.rule_right_label)
        return tuple(
            0 if symbol < 0 else symbol - int(self.first[label[rule]])
            for symbol, label in zip(symbols, labels, strict=True)
        )

    def random_rules(self, n_rules):
        """Rules with symbols of the parent and children."""
        for rule in self.random.integers(0, self.trees.n_rules, n_rules).tolist():
            parents = self.oracle.symbols_of(self.trees.rule_label[rule])
            choices = list(self.oracle.refinements(rule))
            yield rule, int(self.random.choice(parents)), *choices[self.random.integers(len(choices))]

    def copy_tables(self):
        """Give the oracle the tables of the hierarchy."""
        trees = self.trees
        for kind, tables in self.oracle.tables.items():
            tables.clear()
            for restaurant, dish, *counts in self.hierarchy.cells(kind):
                name, named = restaurant, dish
                if kind in self.levels.names:
                    rule, *own = dish
                    labels = (trees.rule_left_label[rule], trees.rule_right_label[rule])
                    children = [
                        -1 if child < 0 else self.first[child] + number
                        for child, number in zip(labels, own, strict=True)
                    ]
                    named = (rule, *children)
                elif kind == "word":
                    name = int(trees.rule_label[dish]), int(self.oracle.rule_class[dish])
                tables.setdefault(name, {})[named] = tuple(counts)

    def seat(self, n_customers=60, stream=None):
        """Seat customers of random rules; the rules."""
        stream = stream or Stream(1)
        rules = list(self.random_rules(n_customers))
        for rule, *symbols in rules:
            self.hierarchy.seat(rule, *self.within(rule, *symbols), stream)
        return rules


EVERY = [
    pytest.param(back_off, n_levels, classes, id=f"{name}-{n_levels}-{'classes' if classes else 'plain'}")
    for name, back_off in (("three", BACK_OFFS["unrefined"]), ("four", FOUR), ("five", BackOff((*FOUR.levels[:2],
        Level("coarse again", lambda symbols: symbols.parent), UNREFINED))))
    for n_levels in range(1, back_off.n_levels + 1)
    for classes in (False, True)
]  # fmt: skip


@pytest.mark.parametrize(("back_off", "n_levels", "classes"), EVERY)
def test_probabilities_are_those_of_the_definition(back_off, n_levels, classes):
    setting = Setting(back_off, n_levels, classes)
    stream = Stream(1)
    for rule, *symbols in setting.random_rules(80):
        setting.copy_tables()
        expected = setting.oracle.probability(rule, *symbols)
        own = setting.within(rule, *symbols)
        assert setting.hierarchy.probability(rule, *own) == pytest.approx(expected, rel=1e-12)
        assert setting.hierarchy.seat(rule, *own, stream) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("back_off", "n_levels", "classes"), EVERY)
def test_every_table_is_a_customer_of_the_next_level(back_off, n_levels, classes):
    setting = Setting(back_off, n_levels, classes)
    rules = setting.seat()
    setting.copy_tables()
    tables, levels = setting.oracle.tables, setting.levels
    wanted = {name: defaultdict(Counter) for name in tables}
    words = levels.names[: min(levels.n_used, 1)]
    for rule, symbol, left, right in rules:
        if levels.n_used:
            wanted["rule"][symbol][rule, left, right] += 1
        elif setting.oracle.rule_class[rule] >= 0:
            wanted["class"][symbol][setting.oracle.rule_class[rule]] += 1
    below = dict(zip(levels.names, levels.names[1 : levels.n_used], strict=False))
    for number, name in enumerate(levels.names):
        for restaurant, dishes in tables[name].items():
            symbol = int(np.flatnonzero(levels.contexts[number] == restaurant)[0])
            for dish, (_, n_tables) in dishes.items():
                klass = setting.oracle.rule_class[dish[0]]
                if klass >= 0 and name in words:
                    wanted["class"][symbol][klass] += n_tables
                elif name in below:
                    context = levels.contexts[number + 1][symbol]
                    wanted[below[name]][context][dish] += n_tables
    for symbol, dishes in tables["class"].items():
        for klass, (_, n_tables) in dishes.items():
            wanted["label_class"][setting.label[symbol]][klass] += n_tables
    for label, dishes in tables["label_class"].items():
        for klass, (_, n_tables) in dishes.items():
            wanted["label_class_2"][label][klass % 2] += n_tables
    for name in (*levels.names, "class", *setting.oracle.class_levels.kinds):
        found = {place: {dish: n for dish, (n, _) in dishes.items()} for place, dishes in tables[name].items()}
        assert found == {place: dict(dishes) for place, dishes in wanted[name].items()}


@pytest.mark.parametrize(("back_off", "n_levels", "classes"), EVERY)
def test_probabilities_of_a_symbol_sum_to_one(back_off, n_levels, classes):
    """Where words have classes, those that were not seen have the rest."""
    setting = Setting(back_off, n_levels, classes)
    setting.seat()
    trees = setting.trees
    for symbol, label in enumerate(setting.label.tolist()):
        total = sum(
            setting.hierarchy.probability(rule, *setting.within(rule, symbol, *children))
            for rule in np.flatnonzero(trees.rule_label == label).tolist()
            for children in setting.oracle.refinements(rule)
        )
        assert total <= 1.0 + 1e-12
        if not classes or not (trees.rule_word[trees.rule_label == label] >= 0).any():
            assert total == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(("back_off", "n_levels", "classes"), EVERY)
def test_sums_over_the_children(back_off, n_levels, classes):
    setting = Setting(back_off, n_levels, classes)
    setting.seat()
    trees = setting.trees
    for rule in range(trees.n_rules):
        values = [
            setting.random.random(len(setting.oracle.symbols_of(labels[rule])))
            for labels in (trees.rule_left_label, trees.rule_right_label)
        ]
        sums = setting.hierarchy.sums(rule, *values)
        for symbol in setting.oracle.symbols_of(trees.rule_label[rule]):
            expected = 0.0
            for children in setting.oracle.refinements(rule):
                own = setting.within(rule, symbol, *children)
                factors = [values[side][own[1 + side]] if children[side] >= 0 else 1.0 for side in (0, 1)]
                expected += setting.hierarchy.probability(rule, *own) * factors[0] * factors[1]
            parent = setting.within(rule, symbol, -1, -1)[0]
            assert sums[parent] == pytest.approx(expected, rel=1e-12)
            assert setting.hierarchy.sum_for(rule, parent, *values) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("back_off", "n_levels"), [("unrefined", 2), ("unrefined", 3), (FOUR, 3), (FOUR, 4)])
def test_children_are_drawn_by_their_terms(back_off, n_levels):
    setting = Setting(BACK_OFFS["unrefined"] if back_off == "unrefined" else back_off, n_levels)
    setting.seat(200)
    trees = setting.trees
    stream = Stream(2)
    for rule in np.flatnonzero(trees.rule_right_label >= 0).tolist():
        values = [
            setting.random.random(len(setting.oracle.symbols_of(labels[rule])))
            for labels in (trees.rule_left_label, trees.rule_right_label)
        ]
        parent = len(setting.oracle.symbols_of(trees.rule_label[rule])) - 1
        weights = {
            (left, right): setting.hierarchy.probability(rule, parent, left, right) * values[0][left] * values[1][right]
            for left in range(len(values[0]))
            for right in range(len(values[1]))
        }
        total = sum(weights.values())
        seen = Counter(setting.hierarchy.draw_children(rule, parent, *values, stream) for _ in range(3000))
        assert pyp.chi_square(seen, {choice: weight / total for choice, weight in weights.items()}) > 1e-4


@pytest.mark.parametrize(("back_off", "n_levels", "classes"), EVERY)
def test_unseating_and_rolling_back(back_off, n_levels, classes):
    setting = Setting(back_off, n_levels, classes)
    hierarchy, stream = setting.hierarchy, Stream(1)
    first = setting.seat(40, stream)

    def state():
        tables = {kind: sorted(hierarchy.cells(kind)) for kind in hierarchy.names}
        return tables, {kind: hierarchy.restaurants(kind).tolist() for kind in hierarchy.names}

    before, mark = state(), hierarchy.n_logged
    for rule, *symbols in first[:20]:
        own = setting.within(rule, *symbols)
        after = hierarchy.unseat(rule, *own, stream)
        assert after == pytest.approx(hierarchy.probability(rule, *own), rel=1e-12)
    setting.seat(30, stream)
    assert (n_levels == 1 and not classes) or state() != before
    hierarchy.roll_back(mark)
    assert state() == before
    hierarchy.sort_cells()
    assert state() == before
    for rule, *symbols in first:
        hierarchy.unseat(rule, *setting.within(rule, *symbols), stream)
    assert not any(hierarchy.cells(kind) for kind in hierarchy.names)
    assert not any(hierarchy.restaurants(kind)[:2].any() for kind in hierarchy.names)


class Fixed:
    """A back-off with these levels, whatever the symbols."""

    def __init__(self, levels):
        self.levels = levels

    def truncated(self, n_levels):
        return self

    def over(self, symbols):
        return self.levels


def test_levels_that_do_not_fit_are_refused():
    good = Setting().levels
    names, contexts = good.names, good.contexts
    for levels, message in (
        (Levels(names, contexts, 4), "levels of rules"),
        (Levels(names, contexts, -1), "levels of rules"),
        (Levels((), [], 0), "levels of rules"),
        (Levels(tuple(map(str, range(9))), contexts[:1] + contexts[1:2] * 8, 1), "levels of rules"),
        (Levels(names[1:], contexts[1:], 1), "one restaurant for every symbol"),
        (Levels(names, [contexts[0], contexts[1][1:], contexts[2]], 3), "one context for every symbol"),
        (Levels(names, [contexts[0], contexts[1] + 1, contexts[2]], 3), "numbered from 0"),
        (Levels(names, [contexts[0], contexts[1] - 1, contexts[2]], 3), "numbered from 0"),
        (Levels(names, [contexts[0], contexts[2], contexts[1]], 3), "not nested"),
        (Levels(names, [contexts[0], contexts[1], contexts[2] * 0], 3), "several labels"),
        (Levels(names, [contexts[0], contexts[1].max() - contexts[1], contexts[2]], 3), "order of symbols"),
        (Levels(names[:2], contexts, 3), "no name"),
        (Levels(("rule", "rule", "base"), contexts, 3), "the same"),
        (Levels(("rule", "word", "base"), contexts, 3), "the same"),
    ):
        with pytest.raises(ValueError, match=message):
            Setting(Fixed(levels))


def test_calls_that_do_not_fit_are_refused():
    setting = Setting()
    hierarchy, stream = setting.hierarchy, Stream(1)
    rule = int(np.flatnonzero(setting.trees.rule_right_label >= 0)[0])
    for own in ((-1, 0, 0, 0), (99, 0, 0, 0), (rule, 9, 0, 0), (rule, 0, -1, 0), (rule, 0, 0, 9)):
        with pytest.raises(ValueError, match="out of range"):
            hierarchy.probability(*own)
    with pytest.raises(ValueError, match="no customer"):
        hierarchy.unseat(rule, 0, 0, 0, stream)
    with pytest.raises(ValueError, match="one value"):
        hierarchy.sums(rule, [1.0], [1.0] * 9)
    with pytest.raises(ValueError, match="no such entry"):
        hierarchy.roll_back(1)
    with pytest.raises(ValueError, match="no restaurants of kind"):
        hierarchy.cells("tables")


def test_back_offs_are_found_by_name():
    back_off = BACK_OFFS.require("unrefined")
    assert back_off.truncated(None).n_levels == 3
    with pytest.raises(UsageError, match="levels 4: must be one of 1, 2, 3"):
        back_off.truncated(4)
    with pytest.raises(UsageError, match="must be one of unrefined"):
        BACK_OFFS.require("none")
