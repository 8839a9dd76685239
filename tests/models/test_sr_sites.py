"""The sampler of sites on refined trees against exact posteriors, its own counts, and the grammar it exports."""

from collections import Counter

import numpy as np
import pytest
from nltk.tree import Tree
from reference import pyp
from reference.sr_sites import Reference

from tsgkit._sr_sites import KINDS, SrSiteSampler
from tsgkit.models.rules import number_rules
from tsgkit.treebank import FlatCorpus

# Labels recur below themselves, so that fragments and their rules find each other in the same restaurants.
BANKS = {
    "ladder": ["(TOP (X (X (X (X a)))))"],
    "ladders": ["(TOP (X (X (X a))))", "(TOP (X (X a)))"],
    "chains": ["(TOP (X (X (X a))))", "(TOP (X (X a) (X a)))"],
    "short": ["(TOP (X (X a)))", "(TOP (X (X b)))"],
    "labels": ["(S (NP (D a) (N b)) (V c))", "(S (NP (D a) (N b)) (V c))"],
}


class Case:
    """A sampler with fixed parameters, and the model it should sample from."""

    def __init__(self, bank, *, levels=3, discount=0.4, classes=False, n_subcategories=2, seed=1):
        trees = self.trees = number_rules(FlatCorpus.from_trees(map(Tree.fromstring, BANKS[bank])))
        root = trees.label[0]
        sizes = np.where(np.arange(trees.n_labels) == root, 1, n_subcategories)
        self.symbol_label = np.repeat(np.arange(trees.n_labels), sizes)
        first = np.cumsum(sizes) - sizes
        self.symbols = first[trees.label] + np.arange(len(trees.label)) * (sizes[trees.label] > 1) % n_subcategories
        refinements = np.ones(trees.n_rules)
        for child in (trees.rule_left_label, trees.rule_right_label):
            refinements *= np.where(child >= 0, sizes[child], 1)
        is_word = trees.rule_word >= 0
        n_classes = 2 if classes else 0
        share = np.where(np.arange(trees.n_labels) == root, 0.0, 0.4)
        rule_base = trees.rule_probability / refinements * (np.where(is_word, 1.0, 0.6) if classes else 1.0)
        rule_class = np.where(is_word, trees.rule_word % 2, -1) if classes else np.full(trees.n_rules, -1)
        arguments = (rule_base, rule_class, share, np.array([0.5, 0.3])[:n_classes])
        self.sampler = SrSiteSampler(trees, self.symbol_label, *arguments, levels=levels, seed=seed)
        n_labels, n_symbols = trees.n_labels, len(self.symbol_label)
        pairs = np.array([[discount * (1 + place % 3) / 2, 0.5 + place % 4] for place in range(4 * n_labels + 1 + n_symbols)])
        self.sampler.set_parameters(pairs.T)
        stops = 0.3 + 0.1 * (np.arange(n_labels) % 4)
        self.sampler.set_stops(stops)
        assert (self.sampler.parameters() == pairs.T)[:, : 3 * n_labels].all()

        def parameters(name):
            kind, number = name[:2]
            labels = {"H": 0, "I": 1, "J": 2, "W": 3}
            if kind == "G":
                return tuple(pairs[4 * n_labels + 1 + number])
            if kind == "JX":
                return tuple(pairs[4 * n_labels])
            label = self.symbol_label[number] if kind in ("H", "J") else number
            return tuple(pairs[labels[kind] * n_labels + label])

        self.reference = Reference(
            trees, self.symbol_label.tolist(), parameters, stops.tolist(), *(list(one) for one in arguments), levels
        )

    def start(self):
        self.sampler.start(self.symbols)
        return self

    def outcome(self, joint):
        """Sites, symbols of sites, and numbers of tables, as the reference has them."""
        sites, symbols = self.sampler.sites(), self.sampler.symbols()
        n_tables = int(self.sampler.houses("dish")[1].sum())
        n_lower = int(sum(self.sampler.houses(kind)[1].sum() for kind in KINDS))
        shown = np.where(sites, symbols, -1) if joint else symbols
        return tuple(sites.tolist()), tuple(shown.tolist()), n_tables, n_lower

    def frequencies(self, move, n, thin, joint=False):
        seen = Counter()
        for iteration in range(n * thin):
            MOVES[move](self.sampler, iteration)
            if iteration % thin == thin - 1:
                seen[self.outcome(joint)] += 1
        return seen


MOVES = {
    "blocked": lambda sampler, iteration: sampler.blocked_sweep(iteration),
    "joint": lambda sampler, iteration: sampler.blocked_sweep(iteration, joint=True),
    "local": lambda sampler, iteration: sampler.local_sweep(iteration),
}


def whole(*outcome):
    return outcome


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize(
    ("bank", "options"),
    [
        ("ladder", {}),
        ("ladder", {"levels": 2}),
        ("ladder", {"levels": 1}),
        ("ladders", {"discount": 0.0}),
        ("short", {"classes": True}),
        ("short", {"classes": True, "levels": 1}),
        ("chains", {"levels": 2}),
        ("labels", {}),
    ],
)
def test_posterior(bank, options, move):
    if move == "joint" and bank in ("chains", "labels", "ladders"):
        pytest.skip("too many states to enumerate")
    case = Case(bank, **options).start()
    expected = case.reference.posterior(case.symbols.tolist(), move == "joint", whole)
    seen = case.frequencies(move, n=4000, thin=4, joint=move == "joint")
    assert pyp.chi_square(seen, expected) > 1e-3
