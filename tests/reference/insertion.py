"""Tree-substitution grammars with insertion over known trees, as the definitions read: every derivation, one by one.

Elementary trees are tuples ``(rule, left part, right part)`` as in `reference.tsg`; the foot of an auxiliary tree is
the part `FOOT`. The state of a node is one of

    GOES_ON      inside of an elementary tree, or a foot
    SITE         the root of an initial tree
    LEFT, RIGHT  the root of an auxiliary tree whose foot is the left (or only) or the right child
"""

from collections import Counter, defaultdict
from itertools import product
from math import log, prod

from reference import pyp
from reference.tsg import Reference

GOES_ON, SITE, LEFT, RIGHT = range(4)
FOOT = "foot"


class InsertionReference(Reference):
    """The model over some trees.

    Parameters
    ----------
    trees : TreeArrays
    parameters : lists of float, one per label
        Discounts and strengths of initial trees, stop probabilities, discounts and strengths of auxiliary trees,
        insertion probabilities.
    stacked : bool
        Whether a foot may be the host of a further insertion.
    """

    def __init__(self, trees, *parameters, stacked=False):
        super().__init__(trees, *parameters[:3])
        self.auxiliary_discount, self.auxiliary_strength, self.insertion = parameters[3:]
        self.stacked = stacked
        self.node_label = trees.label.tolist()
        self.parent = trees.parent.tolist()
        # P'(X -> .. X* ..): each rule of X counts once for every child that can be the foot.
        totals = Counter()
        for rule, count in enumerate(trees.rule_count.tolist()):
            totals[self.rule_label[rule]] += count * self.rule_children[rule].count(self.rule_label[rule])
        self.top_probability = [
            count / totals[label] if label in children and count else 0.0
            for label, children, count in zip(
                self.rule_label, self.rule_children, trees.rule_count.tolist(), strict=True
            )
        ]

    # ---- one state -------------------------------------------------------------------------------------

    def foot(self, node, state):
        """The foot below the root of an auxiliary tree."""
        return self.children[node][state[node] - LEFT]

    def is_foot(self, node, state):
        above = self.parent[node]
        return above >= 0 and state[above] >= LEFT and self.foot(above, state) == node

    def is_valid(self, state):
        for node, value in enumerate(state):
            if (node in self.roots) and value != SITE:
                return False
            if value >= LEFT:
                foot = self.foot(node, state)
                if foot < 0 or self.node_label[foot] != self.node_label[node]:
                    return False
                if state[foot] == SITE or (state[foot] != GOES_ON and not self.stacked):
                    return False
        return True

    def fragment(self, node, state):
        """The initial tree at a site, or the part of one below a node inside of it: insertions are left out."""
        if state[node] >= LEFT:
            return self.fragment(self.foot(node, state), state)
        parts = [self.part(child, state) for child in self.children[node]]
        return (self.rule[node], *parts)

    def part(self, child, state):
        return None if child < 0 or state[child] == SITE else self.fragment(child, state)

    def auxiliary(self, node, state):
        """The auxiliary tree at a node."""
        parts = [
            FOOT if side == state[node] - LEFT else self.part(child, state)
            for side, child in enumerate(self.children[node])
        ]
        return (self.rule[node], *parts)

    def fragments(self, state):
        """What is ordered at every site and at every insertion, in the order of the nodes."""
        orders = {}
        for node, value in enumerate(state):
            if value != GOES_ON:
                orders[node] = self.fragment(node, state) if value == SITE else self.auxiliary(node, state)
        return orders

    def restaurant(self, fragment):
        """The restaurant of an elementary tree: its label, and whether it is auxiliary."""
        return self.label(fragment), FOOT in fragment

    def hyper(self, restaurant):
        label, is_auxiliary = restaurant
        if is_auxiliary:
            return self.auxiliary_discount[label], self.auxiliary_strength[label]
        return self.discount[label], self.strength[label]

    def base(self, fragment):
        """P0 or P0'."""
        rule, *parts = fragment
        probability = self.top_probability[rule] if FOOT in parts else self.rule_probability[rule]
        for label, part in zip(self.rule_children[rule], parts, strict=True):
            if label >= 0 and part != FOOT:
                stop = self.stop[label]
                probability *= stop if part is None else (1 - stop) * self.base(part)
        return probability

    def choices(self, state):
        """How often each label's internal nodes have an insertion and how often they have none."""
        inserted, none = Counter(), Counter()
        for node, value in enumerate(state):
            if value >= LEFT:
                inserted[self.node_label[node]] += 1
            elif value == GOES_ON and (self.stacked or not self.is_foot(node, state)):
                none[self.node_label[node]] += 1
        return inserted, none

    def choice_probability(self, state):
        inserted, none = self.choices(state)
        return prod(self.insertion[label] ** n for label, n in inserted.items()) * prod(
            (1 - self.insertion[label]) ** n for label, n in none.items()
        )

    def log_joint(self, seating, state):
        """log p(state, seating) of one seating of distinct customers."""
        by_restaurant = defaultdict(dict)
        for fragment, sizes in seating.items():
            by_restaurant[self.restaurant(fragment)][fragment] = sizes
        return log(self.choice_probability(state)) + sum(
            log(pyp.seating_probability(dishes, self.base, *self.hyper(restaurant)))
            for restaurant, dishes in by_restaurant.items()
        )

    # ---- all states --------------------------------------------------------------------------------------

    def all_states(self):
        values = [
            [SITE] if node in self.roots else [GOES_ON, SITE, *(LEFT + side for side in (0, 1) if children[side] >= 0)]
            for node, children in enumerate(self.children)
        ]
        for state in product(*values):
            if self.is_valid(state) and self.choice_probability(state) > 0:
                yield state

    def posterior(self, view):
        """The exact posterior distribution of what `view` makes of a state and its seating; see `Reference`."""
        weights = Counter()
        for state in self.all_states():
            orders = Counter(self.fragments(state).values())
            base = {fragment: self.base(fragment) for fragment in orders}
            ways = [list(pyp.partitions(n)) for n in orders.values()]
            totals = Counter()
            for fragment, n in orders.items():
                totals[self.restaurant(fragment)] += n
            for sizes in product(*ways):
                weight, n_tables = self.choice_probability(state), Counter()
                for fragment, own in zip(orders, sizes, strict=True):
                    restaurant = self.restaurant(fragment)
                    n_tables[restaurant] += len(own)
                    weight *= pyp.n_seatings(own) * pyp.seating_weight(own, self.hyper(restaurant)[0])
                    weight *= base[fragment] ** len(own)
                for restaurant, n in totals.items():
                    weight *= pyp.restaurant_weight(n, n_tables[restaurant], *self.hyper(restaurant))
                weights[view(state, sizes)] += weight
        total = sum(weights.values())
        return {outcome: weight / total for outcome, weight in weights.items()}

    def frozen_weight(self, state, sample_weight):
        """The weight of a state under frozen counts; `sample_weight` gives that of an elementary tree."""
        return self.choice_probability(state) * prod(map(sample_weight, self.fragments(state).values()))
