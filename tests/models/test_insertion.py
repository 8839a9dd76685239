"""The grammar with insertion that a sample becomes, against sums over enumerated derivations."""

from collections import defaultdict
from dataclasses import replace
from math import exp, isclose, log

import numpy as np
import pytest
from nltk.tree import Tree
from reference import chart
from reference.insertion import FOOT, InsertionReference

from tsgkit._chart import Chart
from tsgkit._grammar_index import GrammarIndex
from tsgkit._pruning import Projection
from tsgkit._tree_score import TreeScorer
from tsgkit._tsg_sampler import TsgSampler
from tsgkit.inference._insertion import InsertionSettings
from tsgkit.inference._training import Training
from tsgkit.models._derivations import node_states
from tsgkit.models._tsg import TsgAverage, TsgSample, coarser_symbols
from tsgkit.models._tsg_predictive import DerivationCorrection
from tsgkit.models.rules import number_rules
from tsgkit.parsing._known_tree import KnownTreeParser
from tsgkit.parsing._rows import rows_of_tree
from tsgkit.treebank import Binarization, Cleaning, FlatCorpus, UnknownWords, prepare

WIDE = ["(T (X (X (X a) (Y b)) (Y b)))", "(T (X (Y (Y b) (X a)) (X a)))", "(T (Y b) (X (X a) (Y b)))", "(T (X a))"]
BANKS = {
    "wide": [*WIDE, "(T (X (X a) (X a)))"],
    "single": [*WIDE, "(T (X (X (X a))))", "(T (X (X (X a)) (Y b)))"],
}
PARAMETERS = [0.4, 0.3, 0.2], [1.0, 0.5], [0.5, 0.3], [0.3], [0.6], [0.7, 0.4]


class Sampled:
    """A sampler's state over some trees, its grammar, and the weights of elementary trees by the definition."""

    def __init__(self, bank, stacked, n_samples=1):
        self.corpus = FlatCorpus.from_trees(map(Tree.fromstring, BANKS[bank]))
        self.trees = number_rules(self.corpus)
        self.stacked = stacked
        sampler = TsgSampler(self.trees, 4)
        sampler.allow_insertions(self.trees.foot_probability(), stacked)
        labels = np.arange(self.trees.n_labels)
        sampler.set_parameters(*(np.array(values)[labels % len(values)] for values in PARAMETERS))
        sampler.start(np.ones(len(self.trees.label)))
        for iteration in range(10):
            sampler.blocked_sweep(iteration)
        assert sampler.n_auxiliary()[0] > 1
        self.parameters = sampler.parameters().tolist()
        fragments, customers, tables, _, _ = sampler.seating()
        names = []
        for rule, *parts in fragments.tolist():
            names.append((rule, *({-1: None, -3: FOOT}[part] if part < 0 else names[part] for part in parts)))
        self.seats = {name: (n, t) for name, n, t in zip(names, customers.tolist(), tables.tolist(), strict=True)}
        self.restaurants = defaultdict(lambda: np.zeros(2))
        reference = self.reference(0)
        for name, seats in self.seats.items():
            self.restaurants[reference.restaurant(name)] += seats
        average = TsgAverage(self.trees, stacked=stacked)
        for _ in range(n_samples):
            average.add(TsgSample(fragments, customers, tables, *sampler.parameters()))
        self.average, self.sampler = average, sampler
        self.grammar = average.grammar(self.corpus.labels, self.corpus.words, int(self.corpus.label[0]))

    def reference(self, tree):
        """The definitions over one of the trees."""
        trees = self.trees
        first, last = trees.tree_start[tree : tree + 2].tolist()
        moved = {
            name: np.where(getattr(trees, name)[first:last] < 0, -1, getattr(trees, name)[first:last] - first)
            for name in ("left", "right", "parent")
        }
        kept = {name: getattr(trees, name)[first:last] for name in ("label", "rule")}
        own = replace(trees, **moved, **kept, tree_start=np.array([0, last - first]))
        return InsertionReference(own, *self.parameters, stacked=self.stacked)

    def weights(self, reference):
        """The weight of every state of a tree."""

        def weight(fragment):
            discount, strength = reference.hyper(reference.restaurant(fragment))
            n, t = self.seats.get(fragment, (0, 0))
            n_all, t_all = self.restaurants[reference.restaurant(fragment)]
            old = n - discount * t
            return (old + (strength + discount * t_all) * reference.base(fragment)) / (strength + n_all)

        return {state: reference.frozen_weight(state, weight) for state in reference.all_states()}


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("bank", BANKS)
def test_weight_of_a_tree_is_the_sum_over_its_derivations(bank, stacked):
    sampled = Sampled(bank, stacked)
    grammar = sampled.grammar
    assert grammar.report().is_proper
    index = GrammarIndex(grammar)
    scorer = TreeScorer(index)
    numbers = {label: number for number, label in enumerate(grammar.labels)}
    for place, brackets in enumerate(BANKS[bank]):
        tree = Tree.fromstring(brackets)
        entries = chart.lexical_entries(grammar, index, [grammar.words.index(word) for word in tree.leaves()])
        found = scorer.log_weight(rows_of_tree(tree, numbers), *entries)
        assert isclose(exp(found), sum(sampled.weights(sampled.reference(place)).values()), rel_tol=1e-9)


@pytest.mark.parametrize("stacked", [False, True])
def test_every_derivation_is_read_off_its_rows(stacked):
    """Grouped by tree and states, the derivations of a sentence weigh what the states weigh."""
    sampled = Sampled("wide", stacked)
    grammar = sampled.grammar
    reference = sampled.reference(0)
    tree = Tree.fromstring(BANKS["wide"][0])
    sentence = [grammar.words.index(word) for word in tree.leaves()]
    numbers = {label: number for number, label in enumerate(grammar.labels)}
    rows = rows_of_tree(tree, numbers).tolist()
    found = defaultdict(float)
    slow = chart.Reference(grammar, sentence)
    for weight, derivation in slow.all_derivations()[slow.root, 0, len(sentence)]:
        nodes, states = node_states(grammar, np.array(derivation, dtype=np.int32))
        if nodes.tolist() == rows:
            found[tuple(states.tolist())] += weight
    expected = sampled.weights(reference)
    assert set(found) == set(expected)
    for state, weight in expected.items():
        assert isclose(found[state], weight, rel_tol=1e-9)
    index = GrammarIndex(grammar)
    total = sum(weight for weight, _ in slow.all_derivations()[slow.root, 0, len(sentence)])
    assert isclose(Chart(index).fill(*chart.lexical_entries(grammar, index, sentence)), log(total), rel_tol=1e-9)


def test_corrections_see_the_elementary_trees_of_a_derivation():
    trees = [Tree.fromstring(brackets) for brackets in BANKS["single"]]
    corpus = prepare(trees, Cleaning(repeats=False, root=""), Binarization("right", 0), UnknownWords("one", 0))
    settings = InsertionSettings(iterations=40, average=1, insertion_probability=0.6, insertion_cutoff=0.0)
    training = Training(corpus, settings, seed=2)
    training.start()
    n_inserted = 0
    for iteration in range(1, 41):
        training.iterate(iteration)
        model = training.model()
        trees_of_model = training.active.trees
        reference = InsertionReference(trees_of_model, *training.active.sampler.parameters().tolist())
        correction = DerivationCorrection(model, with_insertion=True)
        parser = KnownTreeParser(model.grammar)
        state, expected, found = (), [], []
        for tree in trees:
            rows, _ = parser.best(tree)
            state += tuple(node_states(model.grammar, rows)[1].tolist())
            words = [model.grammar.words.index(word) for word in tree.leaves()]
            found += [(restaurant, log_base) for _, _, restaurant, log_base in correction.fragments_of(rows, words)]
        for fragment in reference.fragments(state).values():
            label, is_auxiliary = reference.restaurant(fragment)
            expected.append((label + is_auxiliary * trees_of_model.n_labels, log(reference.base(fragment))))
            n_inserted += is_auxiliary
        for (restaurant, log_base), (wanted, log_wanted) in zip(found, expected, strict=True):
            assert restaurant == wanted
            assert isclose(log_base, log_wanted, abs_tol=1e-9)
    assert n_inserted > 5


def test_a_cutoff_leaves_out_what_is_hardly_ever_inserted():
    sampled = Sampled("single", stacked=False)
    numbers = {label: number for number, label in enumerate(sampled.grammar.labels)}
    n_rules, weights = [], []
    for cutoff in (0.0, 0.5, 100.0):
        sampled.average.cutoff = cutoff
        grammar = sampled.average.grammar(sampled.corpus.labels, sampled.corpus.words, sampled.grammar.root)
        index = GrammarIndex(grammar)
        scorer = TreeScorer(index)
        weights.append(0.0)
        for tree in map(Tree.fromstring, BANKS["single"]):
            entries = chart.lexical_entries(grammar, index, [grammar.words.index(word) for word in tree.leaves()])
            weights[-1] += scorer.log_weight(rows_of_tree(tree, numbers), *entries)
        n_rules.append(grammar.n_rules)
        assert not grammar.report().unproductive
    assert n_rules[0] > n_rules[1] > n_rules[2]
    assert weights[0] > weights[1] > weights[2]


@pytest.mark.parametrize("stacked", [False, True])
def test_the_grammar_that_prunes_makes_all_that_the_other_makes(stacked):
    sampled = Sampled("single", stacked)
    fine = sampled.grammar
    coarse = sampled.average.coarse_grammar(sampled.sampler.states(), fine.labels, fine.words, fine.root)
    assert coarse.report().is_proper
    symbol_map = coarser_symbols(fine)
    is_mapped = symbol_map >= 0
    assert (coarse.label[symbol_map[is_mapped]] == fine.label[is_mapped]).all()
    n_labels = len(fine.labels)
    # What symbols inside of elementary trees have bridges to is pruned as an insertion, and all of that.
    upper, lower = fine.bridge.T
    inserting = {below for above, below in zip(upper.tolist(), lower.tolist(), strict=True) if symbol_map[below] >= 0}
    assert inserting == set(np.flatnonzero((symbol_map >= n_labels) & (symbol_map < 2 * n_labels)).tolist())
    assert {int(fine.label[symbol]) for symbol in inserting} == {fine.labels.index("X"), fine.labels.index("Y")}
    assert ((symbol_map >= 2 * n_labels).any()) != stacked
    indices = [GrammarIndex(grammar) for grammar in (coarse, fine)]
    projection = Projection(indices[1], indices[0], np.arange(n_labels), symbol_map)
    for brackets in BANKS["single"]:
        words = [fine.words.index(word) for word in Tree.fromstring(brackets).leaves()]
        pruning, pruned, whole = Chart(indices[0]), Chart(indices[1]), Chart(indices[1])
        pruning.fill(*chart.lexical_entries(coarse, indices[0], words))
        pruning.fill_outside()
        entries = chart.lexical_entries(fine, indices[1], words)
        # Nothing has the share 0: nothing may be lost.
        kept = pruned.fill(*entries, mask=pruning.make_mask(1e-12), projection=projection)
        assert isclose(kept, whole.fill(*entries), rel_tol=1e-9)
