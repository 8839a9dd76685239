"""Symbol-refined tree-substitution grammars over known trees as the definitions read: every state, every number of
tables, every refinement of every table, one by one.

A fragment is a tuple ``(symbol, rule, left part, right part)``; a part is such a tuple with the symbol None, a number
(the refined symbol of a frontier) or None for no child. Restaurants have names: ``("G", symbol)`` over fragments,
``("H", symbol)`` over refined rules, ``("I", label)`` over rules without their root's subcategory, ``("J", symbol)``
and ``("JX", label, level)`` over classes, ``("W", label, class)`` over words.
"""

from collections import Counter, defaultdict
from functools import cache
from itertools import product
from math import log, prod

from reference import pyp

# Tables order from restaurants of later layers only.
LAYERS = {"H": 0, "I": 1, "J": 1, "W": 1, "JX": 2}


def layer_of(name):
    """The layer of a restaurant; the levels of a label's classes are layers of their own."""
    return LAYERS[name[0]] + (name[2] if name[0] == "JX" else 0)


class Reference:
    """The model over some trees.

    Parameters
    ----------
    trees : TreeArrays
    symbol_label : list of int, one per symbol
    parameters : function of a restaurant's name
        Its discount and strength.
    stop : list of float, one per label
    rule_base, rule_class, lexical_share, class_word_base : lists
    class_levels : tsgkit.models._suffixes.ClassLevels
    levels : {1, 2, 3}
    """

    def __init__(self, trees, symbol_label, *, parameters, stop, levels, **base):
        self.children = list(zip(trees.left.tolist(), trees.right.tolist(), strict=True))
        self.rule, self.label = trees.rule.tolist(), trees.label.tolist()
        self.roots = trees.tree_start[:-1].tolist()
        self.rule_label = trees.rule_label.tolist()
        self.rule_children = list(zip(trees.rule_left_label.tolist(), trees.rule_right_label.tolist(), strict=True))
        self.symbols_of = defaultdict(list)
        for symbol, label in enumerate(symbol_label):
            self.symbols_of[label].append(symbol)
        self.parameters, self.stop, self.levels = parameters, stop, levels
        self.rule_base, self.rule_class = base["rule_base"], base["rule_class"]
        self.lexical_share, self.class_word_base = base["lexical_share"], base["class_word_base"]
        self.class_levels = base["class_levels"]

    # ---- one fragment ------------------------------------------------------------------------------------

    def part(self, node, sites, symbols):
        return (self.rule[node], *(self.below(child, sites, symbols) for child in self.children[node]))

    def below(self, child, sites, symbols):
        return None if child < 0 else symbols[child] if sites[child] else self.part(child, sites, symbols)

    def fragments(self, sites, symbols):
        """What is ordered at every site."""
        return {
            node: (symbols[node], *self.part(node, sites, symbols)) for node, is_site in enumerate(sites) if is_site
        }

    def stops(self, part):
        """The probability that nodes are frontier or internal nodes as those of a part are."""
        rule, *below = part
        probability = 1.0
        for label, code in zip(self.rule_children[rule], below, strict=True):
            if isinstance(code, tuple):
                probability *= (1 - self.stop[label]) * self.stops(code)
            elif code is not None:
                probability *= self.stop[label]
        return probability

    def refinements(self, symbol, part):
        """For every choice of the internal nodes' symbols, the refined rules ``(symbol, rule, left, right)``."""
        rule, *below = part
        choices = [
            self.symbols_of[label] if isinstance(code, tuple) else [code]
            for label, code in zip(self.rule_children[rule], below, strict=True)
        ]
        for chosen in product(*choices):
            ways = [
                list(self.refinements(own, code)) if isinstance(code, tuple) else [()]
                for own, code in zip(chosen, below, strict=True)
            ]
            for rest in product(*ways):
                yield ((symbol, rule, *chosen), *sum(rest, ()))

    # ---- restaurants of rules --------------------------------------------------------------------------------

    def orders_of(self, name, dish):
        """What a table of a restaurant orders below, and the factor that is the same for all."""
        if name[0] == "H":
            symbol, rule, left, right = dish
            label, word_class = self.rule_label[rule], self.rule_class[rule]
            if word_class >= 0:
                orders = ((("W", label, word_class), rule), (("J", symbol), (label, word_class)))
                return orders, self.lexical_share[label]
            share = 1 - self.lexical_share[label] if self.class_word_base else 1.0
            if self.levels < 3:
                return (), share * self.rule_base[rule]
            return ((("I", label), (rule, left, right)),), share
        if name[0] == "I":
            return (), self.rule_base[dish[0]]
        if name[0] == "J":
            label, word_class = dish
            return ((("JX", label, 0), word_class),), 1.0
        if name[0] == "JX":
            _, label, number = name
            word_class = self.class_levels.dish[number].tolist().index(dish)
            share = float(self.class_levels.share[number, word_class])
            if number + 1 == len(self.class_levels.dish):
                return (), share
            return ((("JX", label, number + 1), int(self.class_levels.dish[number + 1, word_class])),), share
        return (), self.class_word_base[name[2]]

    def table_weights(self, orders):
        """For every choice of numbers of tables: these, and the sum of the weights of seatings with them.

        `orders` is a dict of the number of customers of every (restaurant, dish).
        """
        totals = Counter()
        for (name, _), n in orders.items():
            totals[name] += n
        for tables in product(*(range(1, n + 1) for n in orders.values())):
            weight, n_tables = 1.0, Counter()
            for ((name, _), n), t in zip(orders.items(), tables, strict=True):
                n_tables[name] += t
                weight *= pyp.stirling(n, t, self.parameters(name)[0])
            for name, n in totals.items():
                weight *= pyp.restaurant_weight(n, n_tables[name], *self.parameters(name))
            yield tables, weight

    @cache  # noqa: B019
    def lower(self, orders, layer=0):
        """The probability of orders in the restaurants of rules, by the number of tables in all of them.

        `orders` is a sorted tuple of ((restaurant, dish), number).
        """
        if not orders:
            return {0: 1.0}
        result = Counter()
        mine = {key: n for key, n in orders if layer_of(key[0]) == layer}
        later = Counter({key: n for key, n in orders if key not in mine})
        bypassed = layer == 0 and self.levels == 1
        choices = [(tuple(mine.values()), 1.0)] if bypassed else self.table_weights(mine)
        for tables, own_weight in choices:
            weight, below = own_weight, Counter(later)
            for (name, dish), t in zip(mine, tables, strict=True):
                next_orders, factor = self.orders_of(name, dish)
                weight *= factor**t
                for order in next_orders:
                    below[order] += t
            for n_tables, rest in self.lower(tuple(sorted(below.items())), layer + 1).items():
                result[n_tables + (0 if bypassed else sum(tables))] += weight * rest
        return dict(result)

    # ---- all states ------------------------------------------------------------------------------------------

    def weights(self, sites, symbols):
        """p(sites, symbols of sites) by the numbers of tables of fragments and of rules."""
        orders = Counter((("G", fragment[0]), fragment) for fragment in self.fragments(sites, symbols).values())
        refined = {fragment: list(self.refinements(fragment[0], fragment[1:])) for _, fragment in orders}
        result = Counter()
        for tables, seats in self.table_weights(orders):
            weight = seats * prod(
                self.stops(fragment[1:]) ** t for (_, fragment), t in zip(orders, tables, strict=True)
            )
            # The refined rules of all tables, by how many ways of refining them there are.
            ways = Counter({(): 1})
            for (_, fragment), t in zip(orders, tables, strict=True):
                for _ in range(t):
                    longer = Counter()
                    for before, n in ways.items():
                        for rules in refined[fragment]:
                            counts = Counter(dict(before))
                            for rule in rules:
                                counts[("H", rule[0]), rule] += 1
                            longer[tuple(sorted(counts.items(), key=repr))] += n
                    ways = longer
            for below, n in ways.items():
                for n_lower, rest in self.lower(tuple(sorted(below))).items():
                    result[sum(tables), n_lower] += n * weight * rest
        return result

    def states(self, symbols, joint):
        """Every choice of sites, with the symbols as they are or (`joint`) with every choice of those of sites."""
        for sites in product(*[(1,) if node in self.roots else (0, 1) for node in range(len(self.rule))]):
            if not joint:
                yield sites, tuple(symbols)
                continue
            choices = [self.symbols_of[label] if site else [-1] for label, site in zip(self.label, sites, strict=True)]
            for chosen in product(*choices):
                yield sites, chosen

    def posterior(self, symbols, joint, view):
        """The exact posterior distribution of what `view` makes of sites, symbols, and numbers of tables."""
        sums = Counter()
        for sites, chosen in self.states(symbols, joint):
            for n_tables, weight in self.weights(sites, chosen).items():
                sums[view(sites, chosen, *n_tables)] += weight
        total = sum(sums.values())
        return {outcome: weight / total for outcome, weight in sums.items()}


class Mutated(Reference):
    """The model with a mistake in it.

    Parameters
    ----------
    mistake : {"blind rules", "one refinement", "rootless"}
        Rules of tables do not see each other; internal nodes have their first subcategory; fragments of all symbols
        of a label share a restaurant.
    """

    mistake = ""

    def refinements(self, symbol, part):
        every = list(super().refinements(symbol, part))
        return every[:1] if self.mistake == "one refinement" else every

    def lower(self, orders, layer=0):
        if self.mistake != "blind rules" or layer:
            return super().lower(orders, layer)
        return {0: prod(sum(super(Mutated, self).lower(((key, 1),)).values()) ** n for key, n in orders)}

    def table_weights(self, orders):
        if self.mistake == "rootless" and orders and next(iter(orders))[0][0] == "G":
            orders = {(("G", self.symbols_of[self.rule_label[dish[1]]][0]), dish): n for (_, dish), n in orders.items()}
        return super().table_weights(orders)


class Frozen:
    """Predictive probabilities with the counts of a sampler as they are, by the definitions.

    Parameters
    ----------
    reference : Reference
    sampler : RefinedSampler
    """

    def __init__(self, reference, sampler):
        self.reference = reference
        self.counts = {}  # customers and tables of every (restaurant, dish)
        parts = []
        for rule, *codes in sampler.fragments().tolist():
            parts.append((rule, *(parts[code] if code >= 0 else None if code == -1 else -2 - code for code in codes)))
        self.fragments = []
        for part, symbol, *counts in sampler.dishes().tolist():
            self.fragments.append((symbol, *parts[part]))
            self.counts[("G", symbol), self.fragments[-1]] = counts
        for rule, own, left, right, *counts in sampler.cells("rule").tolist():
            refined = self.refined(rule, own, left, right)
            self.counts[("H", refined[0]), refined] = counts
        for rule, own, left, right, *counts in sampler.cells("base").tolist():
            _, *below = self.refined(rule, own, left, right)
            self.counts[("I", reference.rule_label[rule]), tuple(below)] = counts
        label_of = {symbol: label for label, symbols in reference.symbols_of.items() for symbol in symbols}
        for symbol, word_class, *counts in sampler.cells("class").tolist():
            self.counts[("J", symbol), (label_of[symbol], word_class)] = counts
        for number, kind in enumerate(reference.class_levels.kinds):
            for label, dish, *counts in sampler.cells(kind).tolist():
                self.counts[("JX", label, number), dish] = counts
        for rule, *counts in sampler.cells("word").tolist():
            self.counts[("W", reference.rule_label[rule], reference.rule_class[rule]), rule] = counts
        self.totals = defaultdict(lambda: [0, 0])
        for (name, _), (n, t) in self.counts.items():
            self.totals[name][0] += n
            self.totals[name][1] += t

    def refined(self, rule, *subcategories):
        labels = (self.reference.rule_label[rule], *self.reference.rule_children[rule])
        symbols = (
            None if label < 0 else self.reference.symbols_of[label][own]
            for label, own in zip(labels, subcategories, strict=True)
        )
        own, *children = symbols
        return (own, rule, *children)

    def probability(self, name, dish):
        if name[0] == "G":
            base = self.reference.stops(dish[1:]) * sum(
                prod(self.rule(rule) for rule in rules) for rules in self.reference.refinements(dish[0], dish[1:])
            )
        else:
            orders, base = self.reference.orders_of(name, dish)
            base *= prod(self.probability(*order) for order in orders)
            if name[0] == "H" and self.reference.levels == 1:
                return base
        discount, strength = self.reference.parameters(name)
        (n, t), (total_n, total_t) = self.counts.get((name, dish), (0, 0)), self.totals[name]
        return (n - discount * t + (strength + discount * total_t) * base) / (strength + total_n)

    def rule(self, rule):
        return self.probability(("H", rule[0]), rule)

    def log_joint(self, seating):
        """log p of the sites, the seating, and the refinements of tables."""
        sizes = defaultdict(list)  # of the tables of every (restaurant, dish)
        reference = self.reference
        for row in seating["dish"].tolist():
            fragment = self.fragments[row[0]]
            sizes[("G", fragment[0]), fragment] += [row[1]] * row[2]
        for number, size in seating["refined"].tolist():
            fragment = self.fragments[number]
            sizes[("G", fragment[0]), fragment].append(size)
        label_of = {symbol: label for label, symbols in reference.symbols_of.items() for symbol in symbols}
        class_kinds = reference.class_levels.kinds
        for kind in ("rule", "base", "class", *class_kinds, "word"):
            for *cell, size, n_tables in seating[kind].tolist():
                if kind in ("rule", "base"):
                    own, *below = self.refined(*cell)
                    label = reference.rule_label[cell[0]]
                    key = (("H", own), (own, *below)) if kind == "rule" else (("I", label), tuple(below))
                elif kind == "class":
                    key = (("J", cell[0]), (label_of[cell[0]], cell[1]))
                elif kind in class_kinds:
                    key = (("JX", cell[0], class_kinds.index(kind)), cell[1])
                else:
                    key = (("W", reference.rule_label[cell[0]], reference.rule_class[cell[0]]), cell[0])
                sizes[key] += [size] * n_tables
        result, totals = 0.0, defaultdict(lambda: [0, 0])
        for (name, dish), own in sizes.items():
            totals[name][0] += sum(own)
            totals[name][1] += len(own)
            result += log(pyp.seating_weight(own, reference.parameters(name)[0]))
            if name[0] == "G":
                result += len(own) * log(reference.stops(dish[1:]))
                if reference.levels == 1:
                    # No restaurants of rules: their factors do not depend on subcategories.
                    rules = next(iter(reference.refinements(dish[0], dish[1:])))
                    factors = [reference.orders_of(("H", rule[0]), rule)[1] for rule in rules]
                    result += len(own) * log(prod(factors))
            else:
                result += len(own) * log(reference.orders_of(name, dish)[1])
        return result + sum(
            log(pyp.restaurant_weight(*total, *reference.parameters(name))) for name, total in totals.items()
        )

    def trees(self):
        """The probability of every tree: the sum over its derivations, sites and their symbols."""
        reference = self.reference
        ends = [*reference.roots[1:], len(reference.rule)]
        result = []
        for start, end in zip(reference.roots, ends, strict=True):
            total, n_before, n_after = 0.0, start, len(reference.rule) - end
            for flags in product(*[(1,) if node == start else (0, 1) for node in range(start, end)]):
                sites = (0,) * n_before + flags + (0,) * n_after
                choices = [
                    reference.symbols_of[label] if site else [-1]
                    for label, site in zip(reference.label, sites, strict=True)
                ]
                for symbols in product(*choices):
                    fragments = reference.fragments(sites, symbols).values()
                    total += prod(self.probability(("G", fragment[0]), fragment) for fragment in fragments)
            result.append(total)
        return result


def tree_weight(grammar, trees, root):
    """The inside weight of a known tree: the sum over all ways in which the grammar makes it."""
    bridges = defaultdict(list)
    for (above, below), weight in zip(grammar.bridge.tolist(), grammar.bridge_weight.tolist(), strict=True):
        bridges[below].append((above, weight))

    def inside(node):
        children = [inside(child) for child in (trees.left[node], trees.right[node]) if child >= 0]
        kind = ("lexical", "unary", "binary")[len(children)]
        word = int(trees.rule_word[trees.rule[node]])
        values = Counter()
        rules, weights = getattr(grammar, kind).tolist(), getattr(grammar, f"{kind}_weight").tolist()
        for (symbol, *below), weight in zip(rules, weights, strict=True):
            if grammar.label[symbol] != trees.label[node] or (not children and below != [word]):
                continue
            values[symbol] += weight * prod(child[own] for child, own in zip(children, below, strict=False))
        # Bridges are in no circle: what they add is passed on until nothing is left.
        fresh = Counter(values)
        while fresh:
            more = Counter()
            for below, value in fresh.items():
                for above, weight in bridges[below]:
                    more[above] += weight * value
            values.update(more)
            fresh = Counter({symbol: value for symbol, value in more.items() if value})
        return values

    return inside(root)[grammar.root]
