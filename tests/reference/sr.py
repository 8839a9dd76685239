"""Subcategories of the nodes of known trees as the definitions read: every choice, every seating, one by one.

The *symbol* of a node is ``2 group + bit``. What a node orders is ``(symbol, rule, left symbol, right symbol)``, with
-1 for no child. There are five kinds of restaurants, each with its dishes:

    H   by symbol            (rule, left symbol, right symbol)     a table is a customer of I, or of J and W
    I   by label             (rule, left symbol, right symbol)
    J   by symbol            a class                               a table is a customer of JX
    JX  by label             a class
    W   by (label, class)    a rule

A *seating* is, for every kind and restaurant, the sizes of the tables of every dish.
"""

from collections import Counter, defaultdict
from itertools import product
from math import log, prod

import numpy as np
from reference import pyp

KINDS = ("H", "I", "J", "W", "JX")  # in the order of the sampler's parameters


def place_of(kind, label, n_labels):
    """Which of the sampler's pairs of parameters a restaurant has."""
    return KINDS.index(kind) * n_labels + (0 if kind == "JX" else label)


class Reference:
    """The model over some trees, with fixed parameters.

    Parameters
    ----------
    trees : TreeArrays
    groups : list of int, one per node
    group_label, n_options : list of int, one per group
    rule_base, rule_class, lexical_share, class_word_base : list
        As the sampler takes them.
    levels : int
    parameters : array of 2 by 4 n_labels + 1
        Discounts and strengths.
    """

    def __init__(
        self, trees, *, groups, group_label, n_options, rule_base, rule_class, lexical_share, class_word_base,
        levels, parameters,
    ):  # fmt: skip
        self.children = list(zip(trees.left.tolist(), trees.right.tolist(), strict=True))
        self.rule, self.n_labels = trees.rule.tolist(), trees.n_labels
        self.groups, self.group_label, self.n_options = groups, group_label, n_options
        self.rule_base, self.rule_class = rule_base, rule_class
        self.lexical_share, self.class_word_base = lexical_share, class_word_base
        self.levels, self.parameters = levels, np.asarray(parameters)
        self.has_classes = len(class_word_base) > 0
        self.known = {}

    # ---- one state -------------------------------------------------------------------------------------

    def all_bits(self):
        return product(*[range(self.n_options[group]) for group in self.groups])

    def symbol(self, node, bits):
        return -1 if node < 0 else 2 * self.groups[node] + bits[node]

    def order(self, node, bits):
        left, right = self.children[node]
        return self.symbol(node, bits), self.rule[node], self.symbol(left, bits), self.symbol(right, bits)

    def orders(self, bits):
        """What all nodes order."""
        return [self.order(node, bits) for node in range(len(self.rule))]

    def label(self, symbol):
        return self.group_label[symbol // 2]

    def is_classed(self, rule):
        return self.rule_class[rule] >= 0

    def rule_share(self, label):
        """The share of rules without a word, where words are kept apart from them."""
        return 1.0 - self.lexical_share[label] if self.has_classes else 1.0

    def pair(self, kind, label):
        return self.parameters[:, place_of(kind, label, self.n_labels)]

    def customers(self, bits, seating):
        """Of every kind, restaurant and dish: how many customers it must have, given the tables of the kind above."""
        wanted = {kind: defaultdict(Counter) for kind in KINDS}
        for symbol, *dish in self.orders(bits):
            wanted["H"][symbol][tuple(dish)] += 1
        for symbol, dishes in seating["H"].items():
            for dish, sizes in dishes.items():
                label, klass = self.label(symbol), self.rule_class[dish[0]]
                if klass >= 0:
                    wanted["J"][symbol][klass] += len(sizes)
                    wanted["W"][label, klass][dish[0]] += len(sizes)
                elif self.levels == 3:
                    wanted["I"][label][dish] += len(sizes)
        for symbol, dishes in seating["J"].items():
            for klass, sizes in dishes.items():
                wanted["JX"][self.label(symbol)][klass] += len(sizes)
        return {kind: {house: dict(dishes) for house, dishes in houses.items()} for kind, houses in wanted.items()}

    def label_of_house(self, kind, house):
        return house[0] if kind == "W" else self.label(house) if kind in ("H", "J") else house

    def last_base(self, kind, house, dish):
        """What a table contributes that is no customer elsewhere, or before it is one."""
        label = self.label_of_house(kind, house)
        if kind == "H":
            if self.is_classed(dish[0]):
                return self.lexical_share[label]
            return self.rule_share(label) * (self.rule_base[dish[0]] if self.levels < 3 else 1.0)
        if kind == "I":
            return self.rule_base[dish[0]]
        if kind == "W":
            return self.class_word_base[house[1]]
        return 1.0 / len(self.class_word_base) if kind == "JX" else 1.0

    def log_joint(self, seating):
        """log p(bits, seating) of one seating of distinct customers."""
        result = 0.0
        for kind, houses in seating.items():
            for house, dishes in houses.items():
                discount, strength = self.pair(kind, self.label_of_house(kind, house))
                sizes = [size for own in dishes.values() for size in own]
                result += sum(log(strength + discount * table) for table in range(1, len(sizes)))
                result -= sum(log(strength + guest) for guest in range(1, sum(sizes)))
                result += sum(log(guest - discount) for size in sizes for guest in range(1, size))
                result += sum(len(own) * log(self.last_base(kind, house, dish)) for dish, own in dishes.items())
        return result

    def predictive(self, seating, symbol, rule, left, right):
        """The probability that the next node with this symbol has this rule."""
        label, klass = self.label(symbol), self.rule_class[rule]

        def restaurant(kind, house, dish, base):
            dishes = seating[kind].get(house, {})
            discount, strength = self.pair(kind, self.label_of_house(kind, house))
            n_customers, n_tables = sum(map(sum, dishes.values())), sum(map(len, dishes.values()))
            own = dishes.get(dish, ())
            new = (strength + discount * n_tables) * base
            return (sum(own) - discount * len(own) + new) / (strength + n_customers)

        dish = rule, left, right
        if klass >= 0:
            of_label = restaurant("JX", label, klass, 1.0 / len(self.class_word_base))
            base = restaurant("J", symbol, klass, of_label)
            base *= restaurant("W", (label, klass), rule, self.class_word_base[klass]) * self.lexical_share[label]
        else:
            base = self.rule_base[rule]
            if self.levels == 3:
                base = restaurant("I", label, dish, base)
            base *= self.rule_share(label)
        return restaurant("H", symbol, dish, base)

    # ---- all states --------------------------------------------------------------------------------------

    def houses(self, kind, label, cells):
        """The sum over all seatings with so many customers and tables.

        Parameters
        ----------
        cells : list of (restaurant, customers, tables)
            Of one label: these share a discount and a strength.
        """
        return self.weight(*self.pair(kind, label), by_house(cells))

    def weight(self, discount, strength, houses):
        return prod(
            pyp.house_weight(sum(n for n, _ in own), sum(t for _, t in own), discount, strength)
            * prod(pyp.stirling(n, t, discount) for n, t in own)
            for own in houses
        )

    def of_label(self, label, orders):
        """{number of tables of every kind: sum of weights} of all orders of a label."""
        key = label, tuple(sorted(Counter(orders).items()))
        if key not in self.known:
            result = Counter()
            counts = key[1]
            for tables in product(*[range(1, n + 1) for _, n in counts]):
                weight = self.houses("H", label, [(o[0], n, t) for (o, n), t in zip(counts, tables, strict=True)])
                of_rule, of_class, of_word = Counter(), Counter(), Counter()
                for ((symbol, *dish), _), t in zip(counts, tables, strict=True):
                    weight *= self.last_base("H", symbol, dish) ** t
                    if self.is_classed(dish[0]):
                        of_class[symbol, self.rule_class[dish[0]]] += t
                        of_word[dish[0]] += t
                    elif self.levels == 3:
                        of_rule[tuple(dish)] += t
                for others, below in self.below(label, of_rule, of_class, of_word).items():
                    result[sum(tables), *others] += weight * below
            self.known[key] = result
        return self.known[key]

    def below(self, label, of_rule, of_class, of_word):
        """The same for what the tables of H order, without theirs."""
        key = label, *(tuple(sorted(counts.items())) for counts in (of_rule, of_class, of_word))
        if key not in self.known:
            rules = self.last_kind("I", label, [(label, dish, n) for dish, n in of_rule.items()])
            words = self.last_kind("W", label, [((label, self.rule_class[r]), r, n) for r, n in of_word.items()])
            classes = Counter()
            for tables in product(*[range(1, n + 1) for n in of_class.values()]):
                cells = [(symbol, n, t) for ((symbol, _), n), t in zip(of_class.items(), tables, strict=True)]
                weight = self.houses("J", label, cells)
                of_label = Counter()
                for (_, klass), t in zip(of_class, tables, strict=True):
                    of_label[klass] += t
                for t, value in self.last_kind("JX", label, [(label, k, n) for k, n in of_label.items()]).items():
                    classes[sum(tables), t] += weight * value
            self.known[key] = {
                (i, j, w, x): rules[i] * words[w] * classes[j, x] for i, w, (j, x) in product(rules, words, classes)
            }
        return self.known[key]

    def last_kind(self, kind, label, counts):
        """{number of tables: sum of weights} of restaurants whose tables are no customers elsewhere.

        Parameters
        ----------
        counts : list of (restaurant, dish, customers)
        """
        result = Counter()
        for tables in product(*[range(1, n + 1) for _, _, n in counts]):
            rows = list(zip(counts, tables, strict=True))
            weight = self.houses(kind, label, [(house, n, t) for (house, _, n), t in rows])
            result[sum(tables)] += weight * prod(self.last_base(kind, house, dish) ** t for (house, dish, _), t in rows)
        return result

    def by_label(self, bits):
        orders = defaultdict(list)
        for order in self.orders(bits):
            orders[self.label(order[0])].append(order)
        return orders

    def probability(self, bits):
        """p(trees, bits), whatever the seating."""
        return prod(sum(self.of_label(label, orders).values()) for label, orders in self.by_label(bits).items())

    def marginal(self):
        """The exact posterior distribution of the bits."""
        return normalised({bits: self.probability(bits) for bits in self.all_bits()})

    def posterior(self):
        """The exact posterior distribution of the bits and the number of tables of every kind."""
        weights = {}
        for bits in self.all_bits():
            parts = {(0,) * len(KINDS): 1.0}
            for label, orders in self.by_label(bits).items():
                longer = Counter()
                for (tables, weight), (more, factor) in product(parts.items(), self.of_label(label, orders).items()):
                    longer[tuple(map(sum, zip(tables, more, strict=True)))] += weight * factor
                parts = longer
            weights |= {(bits, *tables): weight for tables, weight in parts.items()}
        return normalised(weights)


class Integrated(Reference):
    """The same with uniform discounts and strengths ~ Gamma(1, 1), by quadrature.

    `moment` is ``(kind, label, function of discount and strength)``: what is multiplied into the integrals of one pair
    of parameters, so that a ratio of two sums over all bits is its posterior mean. Labels must not share a pair.
    """

    def __init__(self, *arguments, moment=None, **options):
        super().__init__(*arguments, parameters=None, **options)
        self.moment = moment
        points, weights = np.polynomial.legendre.leggauss(12)
        strengths, strength_weights = np.polynomial.laguerre.laggauss(40)
        self.grid = np.meshgrid((points + 1) / 2, strengths)
        self.grid_weight = np.outer(strength_weights, weights / 2)

    def houses(self, kind, label, cells):
        key = kind, label, by_house(cells)
        if key not in self.known:
            values = self.grid_weight * self.weight(*self.grid, key[2])
            if self.moment and self.moment[:2] == (kind, label):
                values *= self.moment[2](*self.grid)
            self.known[key] = float(values.sum())
        return self.known[key]

    def total(self):
        return sum(self.probability(bits) for bits in self.all_bits())


def by_house(cells):
    """The customers and tables of each restaurant's dishes, without names."""
    houses = defaultdict(list)
    for house, n, t in cells:
        houses[house].append((n, t))
    return tuple(sorted(tuple(sorted(own)) for own in houses.values()))


def normalised(weights):
    total = sum(weights.values())
    return {outcome: weight / total for outcome, weight in weights.items()}
