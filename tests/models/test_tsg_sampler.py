"""The samplers of tree-substitution grammars against exact posteriors, the prior, and themselves."""

import os
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import cycle, islice
from random import Random

import numpy as np
import pytest
from nltk.tree import Tree
from reference import pyp
from reference.moves import blocked, local, types
from reference.tsg import DirichletSampler, Reference

from tsgkit._tsg_sampler import TsgSampler
from tsgkit.models.rules import TreeArrays, number_rules
from tsgkit.treebank import Binarization, FlatCorpus, load, prepare

# Labels recur below themselves, so that the two fragments at a site share a restaurant, or are even the same.
BANKS = {
    "ladders": ["(TOP (X (X (X (X a)))))", "(TOP (X (X b)))"],
    "chains": ["(TOP (X (X (X a))))", "(TOP (X (X a) (X a)))", "(TOP (X (X (X a))))"],
    "words": ["(TOP (X a))", "(TOP (X (X a)))", "(TOP (X (X a)))", "(TOP (X (X (X b))))"],
    "labels": ["(S (NP (D a) (N b)) (V c))", "(S (NP (D a) (N b)) (V c))", "(S (V c))"],
    "same": ["(TOP (X a))"] * 4,
    # No label twice: what is at a site depends on nothing else.
    "once": ["(TOP (A (B b) (C (D d) (E (F f)))))"],
}


def numbered(bank):
    return number_rules(FlatCorpus.from_trees(map(Tree.fromstring, BANKS[bank])))


def per_label(trees, values):
    return list(islice(cycle(values), trees.n_labels))


def tables_of(sizes):
    """How many tables there are of each size."""
    return tuple(sorted(Counter(size for own in sizes for size in own).items()))


def samples(trees, parameters, move, *, n, thin, seed=1):
    """Run a sampler with fixed parameters; counts of (sites, number of tables), and of table sizes."""
    sampler = TsgSampler(trees, seed)
    sampler.set_parameters(*parameters)
    sampler.start(np.ones(len(trees.label)))
    states, sizes = Counter(), Counter()
    for sample in range(n):
        for iteration in range(sample * thin, (sample + 1) * thin):
            move(sampler, iteration)
        table_sizes = sampler.seating()[3]
        states[sampler.sites().tobytes(), int(table_sizes[:, 2].sum())] += 1
        by_size = Counter()
        for _, size, number in table_sizes.tolist():
            by_size[size] += number
        sizes[tuple(sorted(by_size.items()))] += 1
    return states, sizes


def exact(trees, parameters):
    reference = Reference(trees, *parameters)
    return (
        reference.posterior(lambda sites, sizes: (bytes(sites), sum(map(len, sizes)))),
        reference.posterior(lambda sites, sizes: tables_of(sizes)),
    )


# Discounts, strengths and stop probabilities, for one label after the other and from the first on again.
DP = [0.0], [1.0, 0.4], [0.5, 0.3, 0.6]
PYP = [0.6, 0.3], [2.0, 0.5], [0.5, 0.3, 0.6]
STEEP = [0.8], [0.7, 0.3], [0.5, 0.3, 0.6]
SHORT_DP, SHORT_PYP = ([0.0], [0.3], [0.7]), ([0.3], [0.5], [0.7])


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("bank", "settings", "move", "thin"),
    [
        pytest.param("chains", DP, local, 6, id="local-dp"),
        pytest.param("chains", PYP, local, 6, id="local-pyp"),
        pytest.param("labels", STEEP, local, 6, id="local-labels"),
        pytest.param("ladders", SHORT_DP, local, 6, id="local-ladders-dp"),
        pytest.param("ladders", SHORT_PYP, local, 6, id="local-ladders-pyp"),
        pytest.param("chains", DP, blocked(1), 4, id="blocked-dp"),
        pytest.param("chains", PYP, blocked(1), 4, id="blocked-pyp"),
        pytest.param("labels", STEEP, blocked(1), 4, id="blocked-labels"),
        pytest.param("ladders", SHORT_PYP, blocked(1), 4, id="blocked-ladders"),
        pytest.param("labels", DP, blocked(2), 8, id="batch-2-dp"),
        pytest.param("words", PYP, blocked(2), 6, id="batch-2-pyp"),
        pytest.param("words", STEEP, blocked(4), 12, id="batch-4-pyp"),
        pytest.param("chains", PYP, types, 8, id="types-pyp"),
        pytest.param("labels", DP, types, 8, id="types-labels"),
    ],
)
def test_states_come_as_often_as_they_should(bank, settings, move, thin):
    trees = numbered(bank)
    parameters = [per_label(trees, values) for values in settings]
    states, sizes = samples(trees, parameters, move, n=8000, thin=thin)
    for seen, expected in zip((states, sizes), exact(trees, parameters), strict=True):
        assert pyp.chi_square(seen, expected) > 1e-3


@pytest.mark.statistics
@pytest.mark.parametrize("settings", [DP, PYP, STEEP], ids=["dp", "pyp", "steep"])
def test_trees_are_drawn_from_the_grammar_of_the_others(settings):
    """Where no label occurs twice in a tree, the frozen grammar is the predictive distribution, so it is Gibbs."""
    trees = numbered("labels")
    parameters = [per_label(trees, values) for values in settings]

    def move(sampler, iteration):
        sampler.redraw(iteration, [iteration % trees.n_trees])

    states, sizes = samples(trees, parameters, move, n=8000, thin=6)
    for seen, expected in zip((states, sizes), exact(trees, parameters), strict=True):
        assert pyp.chi_square(seen, expected) > 1e-3


def test_redrawing_does_not_depend_on_threads():
    trees = number_rules(prepare(load("village", "dev"), binarization=Binarization("right", 0)))
    found = []
    for threads in (1, 3):
        sampler = TsgSampler(trees, 1)
        sampler.set_parameters(0.5, 1.0, 0.5)
        sampler.start(np.zeros(len(trees.label)))
        sampler.redraw(0, np.arange(5, trees.n_trees), batch=6, threads=threads)
        found.append(sampler.states())
        assert not sampler.sites()[: trees.tree_start[5]].sum() > 5
    assert (found[0] == found[1]).all()
    sampler.empty()
    assert not sampler.restaurants().any()
    for wrong in ([trees.n_trees], [-1], [1, 1], [[1]]):
        with pytest.raises(ValueError, match="numbers of trees"):
            sampler.redraw(0, wrong)


@pytest.mark.statistics
@pytest.mark.parametrize("temperature", [0.5, 2.0])
@pytest.mark.parametrize("kind", ["local", "blocked", "type"])
def test_a_temperature_flattens_the_posterior(kind, temperature):
    """Where every restaurant has one customer at most, the power of the posterior is what comes out exactly."""
    trees = numbered("once")
    parameters = [per_label(trees, values) for values in PYP]

    def move(sampler, iteration):
        if kind == "type":
            sampler.type_sweep(iteration, 12, temperature=temperature)
            return
        sweep = sampler.local_sweep if kind == "local" else sampler.blocked_sweep
        sweep(iteration, temperature=temperature)

    states, _ = samples(trees, parameters, move, n=4000, thin=4)
    posterior, _ = exact(trees, parameters)
    powers = {state: share ** (1 / temperature) for state, share in posterior.items()}
    expected = {state: power / sum(powers.values()) for state, power in powers.items()}
    assert pyp.chi_square(states, expected) > 1e-3
    assert pyp.chi_square(states, posterior) < 1e-4


def test_a_batch_leaves_by_the_tables_it_was_frozen_without():
    """Else the proposals depend on the trees they are made for, through the tables that these left to the others."""
    trees = numbered("same")
    parameters = [per_label(trees, values) for values in ([0.7], [0.02], [0.5])]
    sampler = TsgSampler(trees, 1)
    sampler.set_parameters(*parameters)
    sampler.start(np.ones(len(trees.label)))
    seen = Counter()
    for iteration in range(200000):
        sampler.blocked_sweep(iteration, batch=2)
        if iteration % 2:
            # The trees are all alike.
            seen[int(sampler.sites().sum()), int(sampler.restaurants()[1].sum())] += 1
    expected = Reference(trees, *parameters).posterior(lambda sites, sizes: (sum(sites), sum(map(len, sizes))))
    assert pyp.chi_square(seen, expected) > 1e-3


def test_two_ways_to_sum_over_seatings():
    trees = numbered("chains")
    reference = Reference(trees, *[per_label(trees, values) for values in ([0.3, 0.6], [0.5, 2.0], [0.4])])
    one_by_one = reference.posterior(lambda sites, sizes: sites)
    by_stirling_numbers = reference.marginal()
    for sites, probability in one_by_one.items():
        assert by_stirling_numbers[sites] == pytest.approx(probability)


# ---- the tests find what is wrong ------------------------------------------------------------------------


@pytest.mark.statistics
@pytest.mark.parametrize("which", [0, 1, 2], ids=["discount", "strength", "stop"])
def test_other_parameters_are_rejected(which):
    trees = numbered("chains")
    parameters = [per_label(trees, values) for values in ([0.3], [1.0], [0.5])]
    states, _ = samples(trees, parameters, blocked(1), n=8000, thin=4)
    parameters[which] = [value * 1.3 for value in parameters[which]]
    assert pyp.chi_square(states, exact(trees, parameters)[0]) < 1e-6


@pytest.mark.statistics
@pytest.mark.parametrize("mutation", [None, "flipped ratio", "forgotten unseat", "blind to itself"])
def test_broken_samplers_are_rejected(mutation):
    trees = numbered("chains")
    reference = Reference(trees, *[per_label(trees, values) for values in ([0.0], [1.0], [0.5])])
    sampler = DirichletSampler(reference, Random(1), mutation)
    seen = Counter()
    for _ in range(4000):
        sampler.sweep()
        sampler.sweep()
        seen[sampler.sites()] += 1
    p_value = pyp.chi_square(seen, reference.marginal())
    assert p_value > 1e-3 if mutation is None else p_value < 1e-9


# ---- getting it right ------------------------------------------------------------------------------------

# A grammar without recursion: its trees are small whatever the parameters.
LABELS = TOP, X, Y = range(3)
RULES = [  # label, left, right, word, probability
    (TOP, X, X, -1, 0.6),
    (TOP, X, -1, -1, 0.4),
    (X, Y, Y, -1, 0.4),
    (X, Y, -1, -1, 0.3),
    (X, -1, -1, 0, 0.3),
    (Y, -1, -1, 0, 0.6),
    (Y, -1, -1, 1, 0.4),
]


class Simulation:
    """Trees, their derivations and the seating, drawn together given the parameters."""

    def __init__(self, parameters, n_trees, generator):
        self.discount, self.strength, self.stop = parameters
        self.generator = generator
        self.tables = defaultdict(list)  # per label: [fragment, size]
        self.nodes = []  # label, rule, parent, fragment where it is a site
        self.children = []
        self.tree_start = [0]
        for _ in range(n_trees):
            self.expand(TOP, -1)
            self.tree_start.append(len(self.nodes))

    def choose(self, weights):
        return int(np.searchsorted(np.cumsum(weights), self.generator.random() * sum(weights), side="right"))

    def draw_base(self, label):
        own = [number for number, rule in enumerate(RULES) if rule[0] == label]
        rule = own[self.choose([RULES[number][4] for number in own])]
        parts = [
            None if child < 0 or self.generator.random() < self.stop[child] else self.draw_base(child)
            for child in RULES[rule][1:3]
        ]
        return (rule, *parts)

    def order(self, label):
        """The next customer's dish, and seat the customer."""
        tables, discount = self.tables[label], self.discount[label]
        weights = [size - discount for _, size in tables] + [self.strength[label] + discount * len(tables)]
        table = self.choose(weights)
        if table == len(tables):
            tables.append([self.draw_base(label), 0])
        tables[table][1] += 1
        return tables[table][0]

    def expand(self, label, parent):
        fragment = self.order(label)
        return self.lay_out(fragment, parent, fragment)

    def lay_out(self, fragment, parent, dish):
        number = len(self.nodes)
        rule, *parts = fragment
        self.nodes.append((RULES[rule][0], rule, parent, dish))
        self.children.append([-1, -1])
        for side, (child, part) in enumerate(zip(RULES[rule][1:3], parts, strict=True)):
            if child >= 0:
                below = self.expand(child, number) if part is None else self.lay_out(part, number, None)
                self.children[number][side] = below
        return number

    def trees(self):
        label, rule, parent = np.array([node[:3] for node in self.nodes]).T
        left, right = np.array(self.children).T
        columns = np.array(RULES)
        count = np.bincount(rule, minlength=len(RULES))
        ints = (label, rule, left, right, parent)
        return TreeArrays(
            *(column.astype(np.int32) for column in ints),
            np.array(self.tree_start),
            *(columns[:, place].astype(np.int32) for place in range(4)),
            rule_count=count,
            rule_weight=count.astype(float),
            rule_probability=columns[:, 4],
            n_labels=len(LABELS),
        )

    def sampler(self, seed):
        """A compiled sampler in the same state."""
        numbers, fragments, sizes = {}, [], Counter()

        def number(fragment):
            if fragment is None:
                return -1
            row = (fragment[0], number(fragment[1]), number(fragment[2]))
            if fragment not in numbers:
                numbers[fragment] = len(fragments)
                fragments.append(row)
            return numbers[fragment]

        dishes = np.array([number(node[3]) for node in self.nodes])
        for tables in self.tables.values():
            for fragment, size in tables:
                sizes[number(fragment), size] += 1
        sampler = TsgSampler(self.trees(), seed)
        sampler.set_parameters(self.discount, self.strength, self.stop)
        rows = [(*key, value) for key, value in sizes.items()]
        sampler.restore(dishes >= 0, np.array(fragments), np.array(rows), dishes)
        return sampler


def state_of(parameters, n_tables, n_sites):
    """What is compared between two simulations: the parameters, the derivations, and how they go together."""
    derivations = np.array([*n_tables, n_sites], dtype=float)
    return np.concatenate([derivations, np.outer(parameters, derivations).ravel()])


@pytest.mark.slow
def test_getting_it_right():
    """Geweke (2004): trees given parameters, moves of derivations and parameters given trees: the prior stays."""
    generator = np.random.default_rng(1)
    n_labels = len(LABELS)
    chain, differences = [], []
    parameters = np.full((3, n_labels), 0.5)
    for iteration in range(4000):
        sampler = Simulation(parameters, 4, generator).sampler(iteration)
        sampler.blocked_sweep(1, batch=2)
        sampler.local_sweep(1)
        sampler.type_sweep(1, 5)
        sampler.resample_parameters(1)
        parameters = sampler.parameters()
        chain.append([*parameters.ravel(), *parameters.ravel() ** 2])
        prior = [generator.random(n_labels), generator.exponential(size=n_labels), generator.random(n_labels)]
        other = Simulation(prior, 4, generator)
        n_tables = [len(other.tables[label]) for label in LABELS]
        n_sites = sum(dish is not None for *_, dish in other.nodes)
        differences.append(
            state_of(parameters, sampler.restaurants()[1], sampler.sites().sum()) - state_of(prior, n_tables, n_sites)
        )
    means = [1 / 2] * 3 + [1.0] * 3 + [1 / 2] * 3 + [1 / 3] * 3 + [2.0] * 3 + [1 / 3] * 3
    for place, (values, mean) in enumerate(zip(np.array(chain).T, means, strict=True)):
        assert abs(pyp.deviate(values.tolist(), mean)) < 4, place
    for place, values in enumerate(np.array(differences).T):
        assert abs(pyp.deviate(values.tolist(), 0.0)) < 4, place


# ---- consistency ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def treebank():
    trees = list(islice(load("village", "dev"), 40))
    return number_rules(prepare(trees, binarization=Binarization("right", horizontal=1)))


def mixed_sweeps(sampler, iterations, **options):
    """All kinds of moves in turn."""
    trace = []
    for iteration in iterations:
        trace.append(sampler.blocked_sweep(iteration, **options))
        trace.append(sampler.local_sweep(iteration))
        trace.append(sampler.type_sweep(iteration, 100))
        trace.append(sampler.resample_parameters(iteration))
    return trace


def started(trees, seed=1):
    sampler = TsgSampler(trees, seed)
    sampler.start(np.random.default_rng(seed).integers(0, 2, len(trees.label)))
    return sampler


def everything(sampler):
    arrays = [sampler.sites(), *sampler.seating(), sampler.restaurants(), sampler.parameters()]
    return [array.tolist() for array in arrays], sampler.log_joint(), sampler.n_fragments()


def spelled(fragments):
    """The fragments of `seating` as nested tuples."""
    result = []
    for rule, left, right in fragments.tolist():
        result.append((rule, *(None if part < 0 else result[part] for part in (left, right))))
    return result


def check(sampler, trees):
    """What the sampler keeps up to date equals what its sites say."""
    reference = Reference(trees, *sampler.parameters().tolist())
    fragments, customers, tables, sizes, dishes = sampler.seating()
    names = spelled(fragments)
    assert len(set(names)) == len(names) == sampler.n_fragments()[0]
    wanted = reference.fragments(sampler.sites().tolist())
    assert {node: names[dish] for node, dish in enumerate(dishes.tolist()) if dish >= 0} == wanted
    assert Counter(dict(zip(names, customers.tolist(), strict=True))) == Counter(wanted.values())
    assert sampler.n_fragments()[1] == len(set(wanted.values()))
    parts = {name[side] for name in names for side in (1, 2)} - {None}
    assert set(names) == parts | set(wanted.values())
    seating = defaultdict(tuple)
    for fragment, size, number in sizes.tolist():
        seating[names[fragment]] += (size,) * number
    restaurants = np.zeros_like(sampler.restaurants())
    for name, n, t in zip(names, customers.tolist(), tables.tolist(), strict=True):
        assert (sum(seating.get(name, ())), len(seating.get(name, ()))) == (n, t)
        restaurants[:, reference.label(name)] += n, t
    assert sampler.restaurants().tolist() == restaurants.tolist()
    return reference, seating


def test_log_joint_is_that_of_the_definition():
    for bank in BANKS:
        trees = numbered(bank)
        sampler = started(trees)
        for iteration in range(30):
            mixed_sweeps(sampler, [iteration], batch=2)
            if iteration == 29:
                sampler.set_parameters(discount=0.0)
            reference, seating = check(sampler, trees)
            assert sampler.log_joint() == pytest.approx(reference.log_joint(seating), abs=1e-9)


def test_counts_are_those_of_the_derivations(treebank):
    sampler = started(treebank)
    for first in range(0, 200, 40):
        mixed_sweeps(sampler, range(first, first + 40), batch=7, threads=2)
        check(sampler, treebank)
    sampler.empty()
    assert sampler.n_fragments() == (0, 0)
    assert not sampler.restaurants().any()
    sampler.start(np.zeros(len(treebank.label)))
    check(sampler, treebank)


@pytest.mark.parametrize("batch", [2, 4, 16])
def test_threads_do_not_change_the_result(treebank, batch):
    results = []
    for threads in (1, 2, 5):
        sampler = started(treebank)
        trace = mixed_sweeps(sampler, range(8), batch=batch, threads=threads)
        results.append((trace, everything(sampler)))
    assert results[0] == results[1] == results[2]
    other = started(treebank, seed=2)
    assert mixed_sweeps(other, range(8), batch=batch) != results[0][0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_starts_its_own_threads(treebank):
    sampler = started(treebank)
    mixed_sweeps(sampler, range(2), batch=16, threads=3)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            mixed_sweeps(sampler, range(2, 4), batch=16, threads=3)
            os.write(writer, np.packbits(sampler.sites()).tobytes())
            del sampler  # joins the child's threads and nobody else's
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        of_child = pipe.read()
    assert os.waitpid(child, 0) == (child, 0)
    mixed_sweeps(sampler, range(2, 4), batch=16, threads=3)
    assert of_child == np.packbits(sampler.sites()).tobytes()


def test_going_on_from_what_was_saved(treebank):
    sampler = started(treebank)
    mixed_sweeps(sampler, range(10), batch=5)
    fragments, _, _, sizes, dishes = sampler.seating()
    other = TsgSampler(treebank, 1)
    other.set_parameters(*sampler.parameters())
    other.restore(sampler.sites(), fragments, sizes, dishes)
    assert everything(other) == everything(sampler)
    traces = [mixed_sweeps(each, range(10, 20), batch=5) for each in (sampler, other)]
    assert traces[0] == traces[1]
    assert everything(other) == everything(sampler)


# ---- what is refused --------------------------------------------------------------------------------------


def test_states_that_do_not_fit_are_refused():
    trees = numbered("chains")
    sampler = started(trees)
    sites = sampler.sites()
    fragments, _, _, sizes, dishes = sampler.seating()
    more = sizes.copy()
    more[0, 2] += 1
    twos, no_root, swapped = sites.copy(), sites.copy(), dishes.copy()
    twos[np.flatnonzero(sites == 0)[0]] = 2
    no_root[0] = 0
    used = np.flatnonzero(dishes >= 0)
    swapped[used] = dishes[used[::-1]]
    broken = {
        "states do not fit": [(sites[1:], fragments, sizes, dishes), (twos, fragments, sizes, dishes)],
        "root is no substitution site": [(no_root, fragments, sizes, np.where(no_root, dishes, -1))],
        "out of range": [
            (sites, fragments[:-1], sizes, dishes),
            (sites, fragments[::-1], sizes, dishes),
            (sites, fragments + np.array([1000, 0, 0]), sizes, dishes),
        ],
        "listed twice": [(sites, np.vstack([fragments, fragments[:1]]), sizes, dishes)],
        "used nowhere": [(sites, np.vstack([fragments, [fragments[0, 0], 0, 0]]), sizes, dishes)],
        "table is out of range": [(sites, fragments, sizes * [1, 0, 1], dishes)],
        "tables do not fit": [(sites, fragments, more, dishes), (sites, fragments, sizes[1:], dishes)],
        "not what the trees have": [(sites, fragments, sizes, swapped)],
    }
    for message, states in broken.items():
        for state in states:
            with pytest.raises(ValueError, match=message):
                TsgSampler(trees).restore(*state)
    with pytest.raises(ValueError, match="before its first trees"):
        sampler.restore(sites, fragments, sizes, dishes)


def test_calls_that_do_not_fit_are_refused():
    trees = numbered("chains")
    sampler = TsgSampler(trees)
    for call in (sampler.empty, lambda: sampler.local_sweep(1), lambda: sampler.blocked_sweep(1)):
        with pytest.raises(ValueError, match="no trees are seated"):
            call()
    with pytest.raises(ValueError, match="one state"):
        sampler.start([1])
    sites = np.zeros(len(trees.label), dtype=np.uint8)
    sampler.start(sites)
    assert not sites.any()  # the roots were added to a copy
    with pytest.raises(ValueError, match="seated already"):
        sampler.start(sites)
    for options in ({"batch": 0}, {"threads": 0}, {"temperature": 0}, {"temperature": float("nan")}):
        with pytest.raises(ValueError, match="positive"):
            sampler.blocked_sweep(1, **options)
    sampler.blocked_sweep(1, batch=2**30, threads=2**30)
    sampler.empty()
    assert [len(array) for array in sampler.seating()[:4]] == [0, 0, 0, 0]
    with pytest.raises(ValueError, match="no trees are seated"):
        sampler.empty()
    for name, value in (("discount", 1.0), ("strength", 0.0), ("stop", 1.0), ("stop", float("nan"))):
        with pytest.raises(ValueError, match=name):
            sampler.set_parameters(**{name: value})
    with pytest.raises(ValueError, match="not positive"):
        TsgSampler(replace(trees, rule_probability=np.zeros(trees.n_rules)))
