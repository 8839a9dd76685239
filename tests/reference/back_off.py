"""The hierarchy of restaurants over refined rules as the definition reads: every level a dictionary of tables.

    p(e | restaurant) = [ n_e - d t_e + (theta + d t) p(e | what it backs off to) ] / (theta + n)

Symbols are numbers over all labels here. A dish of rules is ``(rule, left symbol, right symbol)``, -1 for no child; one
of classes is a class, one of words a rule.
"""

from collections import defaultdict
from itertools import product


class Hierarchy:
    """Restaurants of rules, classes and words, whose tables the caller sets.

    Parameters
    ----------
    trees : TreeArrays
    symbol_label : list of int
    levels : tsgkit.models.back_off.Levels
    rule_base, rule_class, lexical_share, class_word_base : list
        As compiled code takes them.
    class_levels : tsgkit.models._suffixes.ClassLevels
    parameters : array of 2 by the number of pairs
    """

    def __init__(
        self, trees, *, symbol_label, levels, rule_base, rule_class, lexical_share, class_word_base, class_levels,
        parameters,
    ):  # fmt: skip
        self.trees, self.symbol_label, self.levels = trees, list(symbol_label), levels
        self.rule_base, self.rule_class = list(rule_base), list(rule_class)
        self.lexical_share, self.class_word_base = list(lexical_share), list(class_word_base)
        self.class_levels = class_levels
        self.names = [*levels.names, "class", "word", *class_levels.kinds]  # in the order of parameters
        self.parameters = parameters
        # {kind: {restaurant: {dish: (customers, tables)}}}
        self.tables = {name: defaultdict(dict) for name in self.names}

    def pair(self, kind, label):
        if kind in self.class_levels.kinds:
            first = (len(self.levels.names) + 2) * self.trees.n_labels
            return self.parameters[:, first + self.class_levels.kinds.index(kind)]
        return self.parameters[:, self.names.index(kind) * self.trees.n_labels + label]

    def restaurant(self, kind, restaurant, label, dish, base):
        dishes = self.tables[kind][restaurant]
        discount, strength = self.pair(kind, label)
        n, t = sum(n for n, _ in dishes.values()), sum(t for _, t in dishes.values())
        n_dish, t_dish = dishes.get(dish, (0, 0))
        return (n_dish - discount * t_dish + (strength + discount * t) * base) / (strength + n)

    def probability(self, rule, symbol, left, right):
        """The probability that the next node with this symbol has this rule."""
        label, klass, dish = self.symbol_label[symbol], self.rule_class[rule], (rule, left, right)
        used = list(zip(self.levels.names, self.levels.contexts, strict=True))[: self.levels.n_used]
        if klass >= 0:
            value, levels = 1.0, self.class_levels
            for kind, dish_of, share in reversed(list(zip(levels.kinds, levels.dish, levels.share, strict=True))):
                value = self.restaurant(kind, label, label, dish_of[klass], share[klass] * value)
            value = self.restaurant("class", symbol, label, klass, value)
            value *= self.restaurant("word", (label, klass), label, rule, self.class_word_base[klass])
            value *= self.lexical_share[label]
            used = used[:1]
        else:
            value = self.rule_base[rule]
            for name, context in reversed(used[1:]):
                value = self.restaurant(name, context[symbol], label, dish, value)
            value *= 1.0 - self.lexical_share[label] if self.class_word_base else 1.0
        for name, context in used[:1]:
            value = self.restaurant(name, context[symbol], label, dish, value)
        return value

    def symbols_of(self, label):
        return [-1] if label < 0 else [number for number, own in enumerate(self.symbol_label) if own == label]

    def refinements(self, rule):
        """All choices of the children's symbols."""
        trees = self.trees
        return product(*(self.symbols_of(labels[rule]) for labels in (trees.rule_left_label, trees.rule_right_label)))
