"""Labelled recall (Goodman, 1996): the tree with the most expected correct brackets.

With q(X, i, j) the posterior probability that a node X covers the words from i to j, it is

    argmax_t  sum_{(X, i, j) in t} q(X, i, j).

``mer`` counts a node only if its children are right as well; EVALB does not ask for that.
"""

from collections import Counter

from tsgkit.parsing.objectives import Needs, Objective, best_by_rules
from tsgkit.treebank import undo_label

# Nodes that only binarisation knows are not in the tree, and worth nothing; but what a rule is worth must be above 0.
NOTHING = 1e-12


def most_expected_brackets(search, k):
    """Up to `k` trees: the one with the most expected brackets, then others of the best derivations by the same sum."""
    plain = [undo_label(label) for label in search.labels]  # NP^S is an NP; None if intermediate

    def worth(forest):
        expected = Counter()
        for (label, start, end), posterior in forest.node_posteriors().items():
            expected[plain[label], start, end] += posterior
        return [
            NOTHING if plain[label] is None else expected[plain[label], start, end]
            for start, _, end, label, _, _ in forest.rules.tolist()
        ]

    return best_by_rules(search, k, product=False, worth=worth)


OBJECTIVE = Objective("labelled-recall", Needs.POSTERIORS, most_expected_brackets)
