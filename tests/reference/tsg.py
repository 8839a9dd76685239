"""Tree-substitution grammars over known trees as the definitions read: every derivation, every seating, one by one.

A fragment is a tuple ``(rule, left part, right part)``; a part is a fragment, or None for a frontier or no child. A
state is the sites, one flag a node, and a seating: of every fragment the sizes of its tables.
"""

from collections import Counter, defaultdict
from itertools import product
from math import log, prod

from reference import pyp


class Reference:
    """The model over some trees.

    Parameters
    ----------
    trees : TreeArrays
    discount, strength, stop : list of float, one per label
    """

    def __init__(self, trees, discount, strength, stop):
        self.children = list(zip(trees.left.tolist(), trees.right.tolist(), strict=True))
        self.rule = trees.rule.tolist()
        self.roots = trees.tree_start[:-1].tolist()
        self.rule_label = trees.rule_label.tolist()
        self.rule_children = list(zip(trees.rule_left_label.tolist(), trees.rule_right_label.tolist(), strict=True))
        self.rule_probability = trees.rule_probability.tolist()
        self.discount, self.strength, self.stop = discount, strength, stop

    # ---- one state -------------------------------------------------------------------------------------

    def fragment(self, node, sites):
        """What the sites cut out below a node."""
        parts = [None if child < 0 or sites[child] else self.fragment(child, sites) for child in self.children[node]]
        return (self.rule[node], *parts)

    def fragments(self, sites):
        """What is ordered at every site, in the order of the nodes."""
        return {node: self.fragment(node, sites) for node, is_site in enumerate(sites) if is_site}

    def label(self, fragment):
        return self.rule_label[fragment[0]]

    def base(self, fragment):
        """P0."""
        rule, *parts = fragment
        probability = self.rule_probability[rule]
        for label, part in zip(self.rule_children[rule], parts, strict=True):
            if label >= 0:
                stop = self.stop[label]
                probability *= stop if part is None else (1 - stop) * self.base(part)
        return probability

    def log_joint(self, seating):
        """log p(sites, seating) of one seating of distinct customers."""
        by_label = defaultdict(dict)
        for fragment, sizes in seating.items():
            by_label[self.label(fragment)][fragment] = sizes
        return sum(
            log(pyp.seating_probability(dishes, self.base, self.discount[label], self.strength[label]))
            for label, dishes in by_label.items()
        )

    # ---- all states --------------------------------------------------------------------------------------

    def all_sites(self, nodes=None):
        """Every choice of sites; with `nodes`, only over these, and no flags but theirs."""
        nodes = range(len(self.rule)) if nodes is None else nodes
        return product(*[(1,) if node in self.roots else (0, 1) for node in nodes])

    def posterior(self, view):
        """The exact posterior distribution of what `view` makes of sites and seating.

        All seatings are summed up one by one; how many there are of the same sizes is counted.
        """
        weights = Counter()
        for sites in self.all_sites():
            orders = Counter(self.fragments(sites).values())
            base = {fragment: self.base(fragment) for fragment in orders}
            ways = [list(pyp.partitions(n)) for n in orders.values()]
            totals = Counter()
            for fragment, n in orders.items():
                totals[self.label(fragment)] += n
            for sizes in product(*ways):
                weight, n_tables = 1.0, Counter()
                for fragment, own in zip(orders, sizes, strict=True):
                    label = self.label(fragment)
                    n_tables[label] += len(own)
                    weight *= pyp.n_seatings(own) * pyp.seating_weight(own, self.discount[label])
                    weight *= base[fragment] ** len(own)
                for label, n in totals.items():
                    weight *= pyp.restaurant_weight(n, n_tables[label], self.discount[label], self.strength[label])
                weights[view(sites, sizes)] += weight
        total = sum(weights.values())
        return {outcome: weight / total for outcome, weight in weights.items()}

    def marginal(self):
        """The exact posterior distribution of the sites alone."""
        weights = self.site_probabilities()
        total = sum(weights.values())
        return {sites: weight / total for sites, weight in weights.items()}

    def site_probabilities(self):
        """The probability of the trees with every choice of sites, by generalised Stirling numbers."""
        weights = {}
        for sites in self.all_sites():
            orders = defaultdict(list)
            for fragment in self.fragments(sites).values():
                orders[self.label(fragment)].append(fragment)
            weights[sites] = prod(
                pyp.orders_probability(dishes, self.base, self.discount[label], self.strength[label])
                for label, dishes in orders.items()
            )
        return weights


class DirichletSampler:
    """Blocked Metropolis-Hastings over all derivations of a tree, for discounts of 0, where seats do not matter.

    It can be broken on purpose.

    Parameters
    ----------
    reference : Reference
    generator : random.Random
    mutation : {None, "flipped ratio", "forgotten unseat", "blind to itself"}
        Take the acceptance ratio upside down; make and test the proposal with the old derivation still seated; accept
        as if a tree's fragments did not see each other.
    """

    def __init__(self, reference, generator, mutation=None):
        self.reference, self.generator, self.mutation = reference, generator, mutation
        ends = [*reference.roots[1:], len(reference.rule)]
        self.choices = []  # per tree: all derivations, each as flags and fragments
        for start, end in zip(reference.roots, ends, strict=True):
            derivations = []
            for flags in reference.all_sites(range(start, end)):
                sites = (0,) * start + flags
                fragments = reference.fragments(sites + (0,) * (len(reference.rule) - end))
                derivations.append((flags, list(fragments.values())))
            self.choices.append(derivations)
        self.weight = {
            fragment: reference.strength[reference.label(fragment)] * reference.base(fragment)
            for derivations in self.choices
            for _, fragments in derivations
            for fragment in fragments
        }
        self.n_orders, self.n_customers = Counter(), Counter()
        self.state = [derivations[-1] for derivations in self.choices]
        for _, fragments in self.state:
            self.count(fragments, +1)

    def sites(self):
        return sum((flags for flags, _ in self.state), ())

    def count(self, fragments, by):
        for fragment in fragments:
            self.n_orders[fragment] += by
            self.n_customers[self.reference.label(fragment)] += by

    def predictive(self, fragment):
        label = self.reference.label(fragment)
        strength = self.reference.strength[label]
        return (self.n_orders[fragment] + self.weight[fragment]) / (strength + self.n_customers[label])

    def frozen(self, fragments):
        return prod(map(self.predictive, fragments))

    def true(self, fragments):
        """The same, but each fragment finds those before it."""
        if self.mutation == "blind to itself":
            return self.frozen(fragments)
        probability = 1.0
        for fragment in fragments:
            probability *= self.predictive(fragment)
            self.count([fragment], +1)
        self.count(fragments, -1)
        return probability

    def sweep(self):
        for tree, derivations in enumerate(self.choices):
            old = self.state[tree]
            forgets = self.mutation == "forgotten unseat"
            if not forgets:
                self.count(old[1], -1)
            weights = [self.frozen(fragments) for _, fragments in derivations]
            [new] = self.generator.choices(derivations, weights)
            ratio = self.true(new[1]) / self.frozen(new[1]) * self.frozen(old[1]) / self.true(old[1])
            if self.mutation == "flipped ratio":
                ratio = 1 / ratio
            if forgets:
                self.count(old[1], -1)
            self.state[tree] = new if self.generator.random() < ratio else old
            self.count(self.state[tree][1], +1)
