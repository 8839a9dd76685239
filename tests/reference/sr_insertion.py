"""Insertions into symbol-refined trees as the definitions read: every choice of insertions, sites and symbols.

A choice of insertions is a number for every node: 0 for none, 1 or 2 if an auxiliary tree is inserted there whose foot
is the left or the right child. What is inserted is taken out of the tree, and `reference.sr_sites` has what is left.
"""

from collections import Counter
from itertools import product

from reference.sr_sites import Reference


class InsertionReference(Reference):
    """The model over some trees.

    Parameters
    ----------
    extended : WithAuxiliary
    insertion : list of float, one per label
    stacked : bool
    others
        As for `Reference`.
    """

    def __init__(self, extended, insertion, stacked, **others):
        super().__init__(extended.trees, extended.subcategories.label.tolist(), **others)
        self.extended, self.insertion, self.stacked = extended, insertion, stacked
        self.treebank = list(self.children), list(self.rule), list(self.label), list(self.roots)
        self.parent = extended.trees.parent.tolist()

    def all_feet(self):
        """Every choice of insertions."""
        children, rules, _, roots = self.treebank
        choices = [
            [0] if node in roots else [0, *(side + 1 for side in range(2) if self.extended.top_rule[rule, side] >= 0)]
            for node, rule in enumerate(rules)
        ]
        for feet in product(*choices):
            below = [children[node][foot - 1] for node, foot in enumerate(feet) if foot]
            if self.stacked or not any(feet[node] for node in below):
                yield feet

    def link(self, feet):
        """Take what is inserted out of the trees."""
        children, rules, labels, roots = ([*each] for each in self.treebank)
        for node in reversed(range(len(feet))):
            children[node] = tuple(self.skipped(child, feet) for child in children[node])
            if feet[node]:
                side = feet[node] - 1
                rules[node] = int(self.extended.top_rule[rules[node], side])
                labels[node] = self.rule_label[rules[node]]
                children[node] = children[node][1 - side], -1
                roots.append(node)
        self.children, self.rule, self.label, self.roots = children, rules, labels, roots

    def skipped(self, node, feet):
        """Where a fragment continues that reaches a node."""
        while node >= 0 and feet[node]:
            node = self.treebank[0][node][feet[node] - 1]
        return node

    def feet_of(self, feet):
        """The nodes that are feet."""
        return {self.treebank[0][node][foot - 1] for node, foot in enumerate(feet) if foot}

    def probability_of(self, feet, sites):
        """Of the insertions, and of there being none at all other internal nodes."""
        below = self.feet_of(feet)
        result = 1.0
        for node, label in enumerate(self.treebank[2]):
            if feet[node]:
                result *= self.insertion[label]
            elif not sites[node] and (self.stacked or node not in below):
                result *= 1 - self.insertion[label]
        return result

    def posterior(self):
        """The exact posterior distribution of insertions, sites, symbols of sites, and numbers of tables."""
        sums = Counter()
        for feet in self.all_feet():
            self.link(feet)
            below = self.feet_of(feet)
            for sites, chosen in self.states(None, True):
                if any(sites[node] for node in below if not feet[node]):
                    continue
                factor = self.probability_of(feet, sites)
                for n_tables, weight in self.weights(sites, chosen).items():
                    sums[feet, sites, chosen, *n_tables] += factor * weight
        total = sum(sums.values())
        return {outcome: weight / total for outcome, weight in sums.items()}
