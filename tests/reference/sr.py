"""Subcategories of the nodes of known trees as the definitions read: every choice, every seating, one by one.

The *symbol* of a node is ``2 group + bit``. What a node orders is ``(symbol, rule, left symbol, right symbol)``, with
-1 for no child. Kinds of restaurants, each with its dishes, are the levels of rules by their names, and further ones:

    rules         by the level's context    (rule, left symbol, right symbol)
    class         by symbol                 a class
    label_class   by label                  a class, and for each level of coarser classes after it one of these
    word          by (label, class)         a rule

A table of a level of rules is a customer of the next level; if it is a word with a class, of ``class`` and ``word``. A
table of ``class`` is a customer of ``label_class``, one of these of the next coarser level.

A *seating* is, for every kind and restaurant, the sizes of the tables of every dish.
"""

from collections import Counter, defaultdict
from itertools import pairwise, product
from math import log, prod

import numpy as np
from reference import pyp

WORD_KINDS = ("class", "word")  # in the order of the sampler's parameters; those of labels' classes come after them


class Reference:
    """The model over some trees, with fixed parameters.

    Parameters
    ----------
    trees : TreeArrays
    groups : list of int, one per node
    group_label, n_options : list of int, one per group
    rule_base, rule_class, lexical_share, class_word_base : list
        As the sampler takes them.
    class_levels : tsgkit.models._suffixes.ClassLevels
    levels : tsgkit.models.back_off.Levels
    parameters : array of 2 by the number of pairs
        Discounts and strengths.
    """

    def __init__(
        self, trees, *, groups, group_label, n_options, rule_base, rule_class, lexical_share, class_word_base,
        class_levels, levels, parameters,
    ):  # fmt: skip
        self.children = list(zip(trees.left.tolist(), trees.right.tolist(), strict=True))
        self.rule, self.n_labels = trees.rule.tolist(), trees.n_labels
        self.groups, self.group_label, self.n_options = groups, group_label, n_options
        self.rule_base, self.rule_class = rule_base, rule_class
        self.lexical_share, self.class_word_base = lexical_share, class_word_base
        self.class_kinds, self.class_dish = class_levels.kinds, class_levels.dish.tolist()
        self.class_share = class_levels.share.tolist()
        self.kinds = (*levels.names, *WORD_KINDS, *self.class_kinds)
        self.n_rule_levels = len(levels.names)
        self.levels, self.parameters = levels.used, np.asarray(parameters)
        self.first = levels.names[0]
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

    def place_of(self, kind, label):
        """Which of the sampler's pairs of parameters a restaurant has."""
        if kind in self.class_kinds:
            return (self.n_rule_levels + len(WORD_KINDS)) * self.n_labels + self.class_kinds.index(kind)
        return self.kinds.index(kind) * self.n_labels + label

    def pair(self, kind, label):
        return self.parameters[:, self.place_of(kind, label)]

    def next_level(self, kind):
        """The name and contexts of the level that a level of rules backs off to, if it is not P0."""
        names = [name for name, _ in self.levels]
        number = names.index(kind) + 1 if kind in names else len(names)
        return self.levels[number] if number < len(names) else None

    def customers(self, bits, seating):
        """Of every kind, restaurant and dish: how many customers it must have, given the tables of the kind above."""
        wanted = {kind: defaultdict(Counter) for kind in self.kinds}
        for symbol, *dish in self.orders(bits):
            wanted[self.first][symbol][tuple(dish)] += 1
        for kind, context in self.levels:
            next_level = self.next_level(kind)
            for restaurant, dishes in seating[kind].items():
                symbol = context.tolist().index(restaurant)
                for dish, sizes in dishes.items():
                    label, klass = self.label(symbol), self.rule_class[dish[0]]
                    if klass >= 0:
                        wanted["class"][symbol][klass] += len(sizes)
                        wanted["word"][label, klass][dish[0]] += len(sizes)
                    elif next_level is not None:
                        name, next_context = next_level
                        wanted[name][int(next_context[symbol])][dish] += len(sizes)
        for symbol, dishes in seating["class"].items():
            for klass, sizes in dishes.items():
                wanted["label_class"][self.label(symbol)][klass] += len(sizes)
        for number, (above, kind) in enumerate(pairwise(self.class_kinds)):
            for label, dishes in seating[above].items():
                for dish, sizes in dishes.items():
                    wanted[kind][label][self.coarser(number, dish)] += len(sizes)
        return {kind: {name: dict(dishes) for name, dishes in places.items()} for kind, places in wanted.items()}

    def coarser(self, number, dish):
        """What the next level of classes leaves of a dish of one of them."""
        return self.class_dish[number + 1][self.class_dish[number].index(dish)]

    def label_of_restaurant(self, kind, restaurant):
        if kind in ("word", *self.class_kinds):
            return restaurant[0] if kind == "word" else restaurant
        context = dict(self.levels).get(kind)
        return self.label(restaurant if context is None else context.tolist().index(restaurant))

    def base(self, kind, restaurant, dish):
        """What a table contributes that is no customer elsewhere, or before it is one."""
        label = self.label_of_restaurant(kind, restaurant)
        if kind == self.first and self.is_classed(dish[0]):
            return self.lexical_share[label]
        if kind in self.class_kinds:
            number = self.class_kinds.index(kind)
            return self.class_share[number][self.class_dish[number].index(dish)]
        if kind not in WORD_KINDS:
            share = self.rule_share(label) if kind == self.first else 1.0
            return share * (self.rule_base[dish[0]] if self.next_level(kind) is None else 1.0)
        return self.class_word_base[restaurant[1]] if kind == "word" else 1.0

    def log_joint(self, seating):
        """log p(bits, seating) of one seating of distinct customers."""
        result = 0.0
        for kind, places in seating.items():
            for place, dishes in places.items():
                discount, strength = self.pair(kind, self.label_of_restaurant(kind, place))
                sizes = [size for own in dishes.values() for size in own]
                result += sum(log(strength + discount * table) for table in range(1, len(sizes)))
                result -= sum(log(strength + customer) for customer in range(1, sum(sizes)))
                result += sum(log(customer - discount) for size in sizes for customer in range(1, size))
                result += sum(len(own) * log(self.base(kind, place, dish)) for dish, own in dishes.items())
        return result

    def predictive(self, seating, symbol, rule, left, right):
        """The probability that the next node with this symbol has this rule."""
        label, klass = self.label(symbol), self.rule_class[rule]

        def restaurant(kind, place, dish, base):
            dishes = seating[kind].get(place, {})
            discount, strength = self.pair(kind, label)
            n_customers, n_tables = sum(map(sum, dishes.values())), sum(map(len, dishes.values()))
            own = dishes.get(dish, ())
            new = (strength + discount * n_tables) * base
            return (sum(own) - discount * len(own) + new) / (strength + n_customers)

        dish = rule, left, right
        if klass >= 0:
            of_label = 1.0
            for kind, dishes, shares in reversed(
                list(zip(self.class_kinds, self.class_dish, self.class_share, strict=True))
            ):
                of_label = restaurant(kind, label, dishes[klass], shares[klass] * of_label)
            base = restaurant("class", symbol, klass, of_label)
            base *= restaurant("word", (label, klass), rule, self.class_word_base[klass]) * self.lexical_share[label]
        else:
            base = self.rule_base[rule]
            for kind, context in reversed(self.levels[1:]):
                base = restaurant(kind, int(context[symbol]), dish, base)
            base *= self.rule_share(label)
        return restaurant(self.first, symbol, dish, base)

    # ---- all states --------------------------------------------------------------------------------------

    def restaurants(self, kind, label, cells):
        """The sum over all seatings with so many customers and tables.

        Parameters
        ----------
        cells : list of (restaurant, customers, tables)
            Of one label: these share a discount and a strength.
        """
        return self.weight(*self.pair(kind, label), by_restaurant(cells))

    def weight(self, discount, strength, restaurants):
        return prod(
            pyp.restaurant_weight(sum(n for n, _ in own), sum(t for _, t in own), discount, strength)
            * prod(pyp.stirling(n, t, discount) for n, t in own)
            for own in restaurants
        )

    def of_label(self, label, orders):
        """{number of tables of every kind: sum of weights} of all orders of a label."""
        key = label, tuple(sorted(Counter(orders).items()))
        if key not in self.known:
            result = Counter()
            counts = key[1]
            for tables in product(*[range(1, n + 1) for _, n in counts]):
                cells = [(o[0], n, t) for (o, n), t in zip(counts, tables, strict=True)]
                weight = self.restaurants(self.first, label, cells)
                of_rule, of_class, of_word = Counter(), Counter(), Counter()
                for ((symbol, *dish), _), t in zip(counts, tables, strict=True):
                    weight *= self.base(self.first, symbol, dish) ** t
                    if self.is_classed(dish[0]):
                        of_class[symbol, self.rule_class[dish[0]]] += t
                        of_word[dish[0]] += t
                    elif len(self.levels) > 1:
                        of_rule[int(self.levels[1][1][symbol]), tuple(dish)] += t
                for others, below in self.below(label, of_rule, of_class, of_word).items():
                    result[sum(tables), *others] += weight * below
            self.known[key] = result
        return self.known[key]

    def below(self, label, of_rule, of_class, of_word):
        """The same for what the tables of the first level order, without theirs."""
        key = label, *(tuple(sorted(counts.items())) for counts in (of_rule, of_class, of_word))
        if key not in self.known:
            rules = self.next_levels(1, label, of_rule)
            words = self.last_kind("word", label, [((label, self.rule_class[r]), r, n) for r, n in of_word.items()])
            classes = Counter()
            for tables in product(*[range(1, n + 1) for n in of_class.values()]):
                cells = [(symbol, n, t) for ((symbol, _), n), t in zip(of_class.items(), tables, strict=True)]
                weight = self.restaurants("class", label, cells)
                of_label = Counter()
                for (_, klass), t in zip(of_class, tables, strict=True):
                    of_label[klass] += t
                for others, value in self.class_levels_from(0, label, of_label).items():
                    classes[sum(tables), *others] += weight * value
            self.known[key] = {
                (*i, j[0], w, *j[1:]): rules[i] * words[w] * classes[j] for i, w, j in product(rules, words, classes)
            }
        return self.known[key]

    def class_levels_from(self, number, label, orders):
        """{number of tables at this level of a label's classes and each after it: sum of weights}."""
        if number == len(self.class_kinds):
            return {(): 1.0}
        kind, result = self.class_kinds[number], Counter()
        for tables in product(*[range(1, n + 1) for n in orders.values()]):
            cells = [(label, n, t) for n, t in zip(orders.values(), tables, strict=True)]
            weight = self.restaurants(kind, label, cells)
            weight *= prod(self.base(kind, label, dish) ** t for dish, t in zip(orders, tables, strict=True))
            further = Counter()
            for dish, t in zip(orders, tables, strict=True):
                further[self.coarser(number, dish) if number + 1 < len(self.class_kinds) else 0] += t
            for others, value in self.class_levels_from(number + 1, label, further).items():
                result[sum(tables), *others] += weight * value
        return result

    def next_levels(self, number, label, orders):
        """{number of tables at this level of rules and each after it: sum of weights}; unused levels have none.

        Parameters
        ----------
        orders : dict
            Of (restaurant, dish): the number of customers.
        """
        n_unused = self.n_rule_levels - max(number, len(self.levels))
        if number >= len(self.levels):
            return {(0,) * n_unused: 1.0}
        kind, context = self.levels[number]
        result = Counter()
        for tables in product(*[range(1, n + 1) for n in orders.values()]):
            rows = list(zip(orders.items(), tables, strict=True))
            weight = self.restaurants(kind, label, [(place, n, t) for ((place, _), n), t in rows])
            weight *= prod(self.base(kind, place, dish) ** t for ((place, dish), _), t in rows)
            further = Counter()
            if number + 1 < len(self.levels):
                next_context = self.levels[number + 1][1]
                for ((place, dish), _), t in rows:
                    further[int(next_context[context.tolist().index(place)]), dish] += t
            for others, value in self.next_levels(number + 1, label, further).items():
                result[sum(tables), *others] += weight * value
        return result

    def last_kind(self, kind, label, counts):
        """{number of tables: sum of weights} of restaurants whose tables are no customers elsewhere.

        Parameters
        ----------
        counts : list of (restaurant, dish, customers)
        """
        result = Counter()
        for tables in product(*[range(1, n + 1) for _, _, n in counts]):
            rows = list(zip(counts, tables, strict=True))
            weight = self.restaurants(kind, label, [(place, n, t) for (place, _, n), t in rows])
            result[sum(tables)] += weight * prod(self.base(kind, place, dish) ** t for (place, dish, _), t in rows)
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
            parts = {(0,) * len(self.kinds): 1.0}
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

    def restaurants(self, kind, label, cells):
        key = kind, label, by_restaurant(cells)
        if key not in self.known:
            values = self.grid_weight * self.weight(*self.grid, key[2])
            if self.moment and self.moment[:2] == (kind, label):
                values *= self.moment[2](*self.grid)
            self.known[key] = float(values.sum())
        return self.known[key]

    def total(self):
        return sum(self.probability(bits) for bits in self.all_bits())


def by_restaurant(cells):
    """The customers and tables of each restaurant's dishes, without names."""
    restaurants = defaultdict(list)
    for name, n, t in cells:
        restaurants[name].append((n, t))
    return tuple(sorted(tuple(sorted(own)) for own in restaurants.values()))


def normalised(weights):
    total = sum(weights.values())
    return {outcome: weight / total for outcome, weight in weights.items()}
