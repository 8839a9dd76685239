"""The sampler of sites, subcategories and insertions of refined trees against exact posteriors."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from math import exp, prod

import numpy as np
import pytest
from models.test_sr_sites import CLASS_LEVELS
from nltk.tree import Tree
from reference import pyp
from reference.chart import lexical_entries
from reference.sr_insertion import InsertionReference
from reference.sr_sites import Frozen

from tsgkit._grammar_index import GrammarIndex
from tsgkit._tree_score import TreeScorer
from tsgkit.models._back_off import UNREFINED_ROOT
from tsgkit.models._srtsg import Subcategories, Words, lexical_shares
from tsgkit.models._srtsg_auxiliary import WithAuxiliary
from tsgkit.models._srtsg_insertion import InsertionGrammar
from tsgkit.models._srtsg_means import SiteMeans
from tsgkit.models._srtsg_sites import site_levels
from tsgkit.models.rules import number_rules
from tsgkit.parsing._rows import rows_of_tree
from tsgkit.treebank import FlatCorpus

# Several insertions are possible, at different sides; in "tower" they can be stacked.
BANKS = {
    "pair": ["(TOP (X (X a) (Y b)))", "(TOP (X a))"],
    "twins": ["(TOP (X (X a) (X a)))"],
    "tower": ["(TOP (X (X (X a) (Y b)) (Y b)))"],
    "sides": ["(TOP (X (Y b) (X (X a) (Y c))))"],
    "many": ["(TOP (X (Y b) (X (X a) (Y c))))", "(TOP (X (X (X a) (Y b)) (Y b)))", "(TOP (X (X a) (X a)))"] * 12,
}


class Case:
    """A sampler with fixed parameters, and the model it should sample from; only X has subcategories."""

    def __init__(self, bank, *, levels=3, discount=0.4, classes=False, stacked=False, seed=1):
        corpus = self.corpus = FlatCorpus.from_trees(map(Tree.fromstring, BANKS[bank]))
        trees = number_rules(corpus)
        n_options = np.array([2 if label == "X" else 1 for label in corpus.labels], dtype=np.uint8)
        subcategories = Subcategories(np.arange(trees.n_labels, dtype=np.int32), n_options, trees.n_labels)
        first = np.searchsorted(subcategories.label, trees.label)
        self.symbols = first + np.arange(len(first)) % n_options[trees.label]
        rule_class = np.where(trees.rule_word >= 0, trees.rule_word % 2, -1) if classes else np.full(trees.n_rules, -1)
        words = Words(
            ["C0", "C1"] if classes else [],
            rule_class.astype(np.int32),
            np.array([0.5, 0.3])[: 2 * classes],
            CLASS_LEVELS[classes],
        )
        self.parts = trees, words, subcategories
        self.all = WithAuxiliary.of(trees, words, subcategories)
        n_labels, label = self.all.trees.n_labels, self.all.subcategories.label
        self.levels = self.all.levels(UNREFINED_ROOT.truncated(levels))
        self.sampler = self.all.sampler(self.levels, "uniform", stacked=stacked, seed=seed)
        n_class_levels = len(CLASS_LEVELS[classes].dish)
        n_pairs = 4 * n_labels + n_class_levels + len(label)
        pairs = np.array([[discount * (1 + place % 3) / 2, 0.5 + place % 4] for place in range(n_pairs)])
        self.sampler.set_parameters(pairs.T)
        stops = 0.3 + 0.1 * (np.arange(n_labels) % 4)
        self.sampler.set_stops(stops)
        self.sampler.set_insertion_probabilities(0.4)

        def parameters(name):
            kind, number = name[:2]
            if kind == "G":
                return tuple(pairs[4 * n_labels + n_class_levels + number])
            if kind == "JX":
                return tuple(pairs[4 * n_labels + name[2]])
            return tuple(pairs["HIJW".index(kind) * n_labels + (label[number] if kind in ("H", "J") else number)])

        self.reference = InsertionReference(
            self.all,
            self.sampler.insertion_probabilities().tolist(),
            stacked,
            parameters=parameters,
            stop=stops.tolist(),
            levels=levels,
            rule_base=self.all.rule_base("uniform").tolist(),
            rule_class=self.all.words.rule_class.tolist(),
            lexical_share=lexical_shares(self.all.trees).tolist(),
            class_word_base=words.class_word_base.tolist(),
            class_levels=words.levels,
        )

    def start(self):
        self.sampler.start(self.symbols)
        return self

    def outcome(self):
        """Insertions, sites, symbols of sites, and numbers of tables, as the reference has them."""
        feet, sites, symbols = self.sampler.insertions_of_nodes(), self.sampler.sites(), self.sampler.symbols()
        n_tables = int(self.sampler.restaurants("dish")[1].sum())
        n_lower = int(sum(self.sampler.restaurants(kind)[1].sum() for kind in self.sampler.kinds))
        shown = np.where(sites, symbols, -1)
        return tuple(feet.tolist()), tuple(sites.tolist()), tuple(shown.tolist()), n_tables, n_lower

    def frequencies(self, n, thin, type_moves=0, **options):
        seen = Counter()
        for iteration in range(n * thin):
            if iteration % 2 == 0 or not type_moves:
                self.sampler.insertion_sweep(iteration, **options)
            self.sampler.type_sweep(iteration, type_moves, joint=True)
            if iteration % thin == thin - 1:
                seen[self.outcome()] += 1
        return seen


@pytest.mark.statistics
@pytest.mark.parametrize("type_moves", [0, 20])
@pytest.mark.parametrize(
    ("bank", "options"),
    [
        ("pair", {}),
        ("pair", {"levels": 1}),
        ("pair", {"levels": 2, "classes": True}),
        ("pair", {"discount": 0.0}),
        ("twins", {}),
        ("twins", {"stacked": True}),
        ("tower", {}),
        ("tower", {"stacked": True}),
        ("sides", {"levels": 2}),
        ("sides", {"levels": 2, "stacked": True}),
    ],
)
def test_posterior(bank, options, type_moves):
    case = Case(bank, **options).start()
    expected = case.reference.posterior()
    seen = case.frequencies(n=4000, thin=4, type_moves=type_moves)
    assert sum(any(outcome[0]) * n for outcome, n in seen.items()) > 100
    assert pyp.chi_square(seen, expected) > 1e-3
    assert case.sampler.counts_agree()


@pytest.mark.statistics
@pytest.mark.parametrize("options", [{}, {"levels": 2, "classes": True}, {"discount": 0.0}, {"stacked": True}], ids=str)
def test_posterior_of_batches(options):
    """Both trees are one batch."""
    case = Case("pair", **options).start()
    seen = case.frequencies(n=4000, thin=4, batch=2, threads=2)
    assert pyp.chi_square(seen, case.reference.posterior()) > 1e-3
    assert case.sampler.counts_agree()


def trace_of(case, batch, threads):
    trace = []
    for iteration in range(12):
        options = {"batch": batch, "threads": threads, "temperature": 2.0 if iteration < 4 else 1.0}
        trace += [case.sampler.insertion_sweep(iteration, **options), case.sampler.log_insertions()]
        assert case.sampler.counts_agree()
        trace.append(case.sampler.type_sweep(iteration, 30, joint=True))
        assert case.sampler.counts_agree()
        trace.append(case.sampler.resample_parameters(iteration))
    return trace, case.outcome()


@pytest.mark.parametrize("stacked", [False, True])
def test_threads_change_nothing(stacked):
    cases = [Case("many", stacked=stacked).start() for _ in range(4)]
    one, two, four, other = [
        trace_of(case, batch, threads) for case, batch, threads in zip(cases, (5, 5, 5, 1), (1, 2, 4, 2), strict=True)
    ]
    assert one == two == four != other
    cases[0].sampler.empty()
    assert not any(cases[0].sampler.restaurants(kind)[:2].any() for kind in ("dish", *cases[0].sampler.kinds))


@pytest.mark.parametrize("options", [{"batch": 0}, {"threads": 0}, {"temperature": 0.0}])
def test_what_is_no_batch(options):
    with pytest.raises(ValueError, match="must be positive"):
        Case("pair").start().sampler.insertion_sweep(0, **options)


def test_what_is_no_number_of_moves():
    sampler = Case("pair").start().sampler
    with pytest.raises(ValueError, match="must not be negative"):
        sampler.type_sweep(0, -1, joint=True)
    with pytest.raises(ValueError, match="sampled together"):
        sampler.type_sweep(0, 1)


@pytest.mark.statistics
def test_mistakes_are_noticed():
    """Feet of other nodes would be seen: without the factors for insertions the posterior is another."""
    case = Case("tower").start()
    case.reference.insertion = [0.5 if probability else 0.0 for probability in case.reference.insertion]
    assert pyp.chi_square(case.frequencies(n=4000, thin=4), case.reference.posterior()) < 1e-6


# ---- the grammar ------------------------------------------------------------------------------------------


def weights_by_definition(case):
    """The weight of every tree under the restaurants as they are: the sum over insertions, sites and symbols."""
    reference, frozen = case.reference, Frozen(case.reference, case.sampler)
    result = []
    for first, last in pairwise(case.all.trees.tree_start.tolist()):
        total, outside = 0.0, [node for node in range(len(reference.rule)) if not first <= node < last]
        for feet in reference.all_feet():
            if any(feet[node] for node in outside):
                continue
            reference.link(feet)
            below = reference.feet_of(feet)
            for sites, chosen in reference.states(None, True):
                if any(sites[node] for node in below if not feet[node]):
                    continue
                # Every node of the other trees is a site, with its first symbol, once.
                symbols = [reference.symbols_of[reference.label[node]][0] for node in outside]
                if any((sites[node], chosen[node]) != (1, own) for node, own in zip(outside, symbols, strict=True)):
                    continue
                fragments = reference.fragments(sites, chosen)
                total += reference.probability_of(feet, sites) * prod(
                    frozen.probability(("G", fragments[node][0]), fragments[node])
                    for node in range(first, last)
                    if sites[node]
                )
        result.append(total)
    return result


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize(
    ("bank", "levels", "classes"), [("tower", 3, False), ("sides", 2, True), ("pair", 1, False), ("twins", 3, True)]
)
def test_trees_weigh_what_the_definition_says(bank, levels, classes, stacked):
    case = Case(bank, levels=levels, classes=classes, stacked=stacked).start()
    means, n_sweeps = SiteMeans(), 0
    while not means.n_samples:
        case.sampler.insertion_sweep(n_sweeps)
        n_sweeps += 1
        if case.sampler.insertions_of_nodes().any() and n_sweeps > 5:
            means.add(case.sampler, case.all.words, case.levels)
    trees, words, subcategories = case.parts
    own_levels = site_levels(UNREFINED_ROOT.truncated(levels), subcategories)
    rules = InsertionGrammar(
        *(case.corpus, trees, words, subcategories, means, "uniform", own_levels),
        extended=case.all, all_levels=case.levels, stacked=stacked,
    )  # fmt: skip
    grammar = rules.grammar()
    index = GrammarIndex(grammar)
    scorer, found = TreeScorer(index), []
    numbers = {label: number for number, label in enumerate(grammar.labels)}
    for brackets in BANKS[bank]:
        tree = Tree.fromstring(brackets)
        entries = lexical_entries(grammar, index, [grammar.words.index(word) for word in tree.leaves()])
        found.append(exp(scorer.log_weight(rows_of_tree(tree, numbers), *entries)))
    assert found == pytest.approx(weights_by_definition(case), rel=1e-9)
    ancestor = subcategories.parent
    _, coarse = rules.coarse_grammar(case.symbols, ancestor)
    symbol_map = rules.symbol_map(grammar, ancestor)
    known = symbol_map >= 0
    assert (coarse.label[symbol_map[known]] == grammar.label[known]).all()
    assert known[rules.n_shared + rules.n_parts :].any()


# ---- counts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stacked", [False, True])
def test_going_on_from_what_was_saved(stacked):
    case, other = (Case("tower", classes=True, stacked=stacked) for _ in range(2))
    case.start()
    for iteration in range(12):
        case.sampler.insertion_sweep(iteration)
        assert case.sampler.counts_agree()
    assert case.sampler.insertions_of_nodes().any()
    other.sampler.set_insertions(case.sampler.insertions_of_nodes())
    other.sampler.restore(case.sampler.symbols(), case.sampler.sites(), case.sampler.seating())
    for each in (case, other):
        for iteration in range(12, 20):
            each.sampler.insertion_sweep(iteration)
            each.sampler.resample_parameters(iteration)
            each.sampler.resample_insertions(iteration)
    assert case.outcome() == other.outcome()
    assert case.sampler.insertion_probabilities().tolist() == other.sampler.insertion_probabilities().tolist()
    assert case.sampler.log_joint() == other.sampler.log_joint()
    case.sampler.empty()
    assert not any(case.sampler.restaurants(kind)[:2].any() for kind in ("dish", *case.sampler.kinds))


@pytest.mark.parametrize("stacked", [False, True])
def test_log_probability_of_insertions(stacked):
    case = Case("tower", stacked=stacked).start()
    for iteration in range(20):
        case.sampler.insertion_sweep(iteration)
        feet, sites, *_ = case.outcome()
        expected = case.reference.probability_of(feet, sites)
        assert exp(case.sampler.log_insertions()) == pytest.approx(expected, rel=1e-12)


def test_probabilities_of_insertions_are_drawn_from_the_counts():
    case = Case("tower").start()
    while not case.sampler.insertions_of_nodes().any():
        case.sampler.insertion_sweep(0)
    feet, sites, *_ = case.outcome()
    (host,) = np.flatnonzero(case.all.label >= 0)
    own = [node for node, label in enumerate(case.reference.treebank[2]) if label == host]
    n_inserted = sum(bool(feet[node]) for node in own)
    below = case.reference.feet_of(feet)
    n_none = sum(not feet[node] and not sites[node] and node not in below for node in own)
    draws = []
    for iteration in range(4000):
        case.sampler.resample_insertions(iteration)
        draws.append(case.sampler.insertion_probabilities())
    assert not np.delete(np.array(draws), host, axis=1).any()
    a, b = 1 + n_inserted, 1 + n_none
    spread = np.sqrt(a * b / (a + b) ** 2 / (a + b + 1))
    assert abs(np.mean(draws, axis=0)[host] - a / (a + b)) < 4 * spread / np.sqrt(4000)


def test_calls_that_do_not_fit_are_refused():
    case = Case("tower")
    n_nodes, n_labels = len(case.all.trees.label), case.all.trees.n_labels
    for feet in (np.zeros(3, np.uint8), np.full(n_nodes, 3, np.uint8), np.zeros(n_nodes), np.ones(n_nodes, np.uint8)):
        with pytest.raises(ValueError, match="insert"):
            case.sampler.set_insertions(feet)
    stacked = np.array([0, 1, 1, 0, 0, 0], dtype=np.uint8)
    with pytest.raises(ValueError, match="stacked"):
        case.sampler.set_insertions(stacked)
    for values in (1.0, -0.1, [0.5] * (n_labels + 1)):
        with pytest.raises(ValueError, match=r"insertions|shape|broadcast"):
            case.sampler.set_insertion_probabilities(values)
    case.sampler.set_insertions(np.array([0, 1, 0, 0, 0, 0], dtype=np.uint8))
    with pytest.raises(ValueError, match="of another label"):
        case.sampler.start(case.symbols)
    symbols = case.symbols.copy()
    symbols[1] = len(case.all.subcategories.label) - 1
    with pytest.raises(ValueError, match="sites do not fit the insertions"):
        case.sampler.start(symbols)
    case.sampler.start(symbols, [1, 1, 0, 1, 1, 1])
    for refused in (case.sampler.blocked_sweep, case.sampler.local_sweep, lambda _: case.sampler.redraw(1, [0])):
        with pytest.raises(ValueError, match="insertion_sweep"):
            refused(1)
    with pytest.raises(ValueError, match="seated already"):
        case.sampler.set_insertions(stacked)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("label", lambda label, rules: label[:-1]),
        ("label", lambda label, rules: label + 1),
        ("label", lambda label, rules: np.where(label >= 0, 0, label)),
        ("top_rule", lambda label, rules: rules[:-1]),
        ("top_rule", lambda label, rules: rules - 1),
        ("top_rule", lambda label, rules: rules + (rules >= 0)),
        ("top_rule", lambda label, rules: rules[:, ::-1]),
        ("top_rule", lambda label, rules: np.where(rules >= 0, 0, rules)),
    ],
)
def test_auxiliary_rules_that_do_not_fit_are_refused(name, change):
    case = Case("sides")
    other = replace(case.all, **{name: change(case.all.label, case.all.top_rule)})
    with pytest.raises(ValueError, match=r"auxiliary|out of range|fit"):
        other.sampler(case.levels, "uniform")
