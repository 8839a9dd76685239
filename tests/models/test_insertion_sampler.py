"""The samplers of tree-substitution grammars with insertion against exact posteriors, the prior, and themselves."""

from collections import Counter, defaultdict
from itertools import cycle, islice

import numpy as np
import pytest
from nltk.tree import Tree
from reference import pyp
from reference.insertion import FOOT, InsertionReference
from reference.moves import blocked, local, types

from tsgkit._tsg_sampler import TsgSampler
from tsgkit.models.rules import TreeArrays, number_rules
from tsgkit.treebank import Binarization, FlatCorpus, load, prepare

# Feet to the left, to the right, on both sides and above; auxiliary trees with insides, and inside of others.
BANKS = {
    "chains": ["(T (X (X (X a) (Y b)) (Y b)))", "(T (X (X a) (Y b)))"],
    "both": ["(T (X (X a) (X (X a) (X a))))", "(T (X a))"],
    "single": ["(T (X (X (X a))))", "(T (X (X a)))"],
    "nested": ["(T (X (Y (X (Y b) (X a))) (X a)))", "(T (X (Y b) (X a)))"],
    "apart": ["(T (U (X (X a) (Y b)) (X (Y b) (X a))))"],
}


def numbered(bank):
    return number_rules(FlatCorpus.from_trees(map(Tree.fromstring, BANKS[bank])))


def per_label(trees, settings):
    return [list(islice(cycle(values), trees.n_labels)) for values in settings]


def sampler_of(trees, parameters, seed=1, stacked=False):
    sampler = TsgSampler(trees, seed)
    sampler.allow_insertions(trees.foot_probability(), stacked)
    sampler.set_parameters(*parameters)
    return sampler


# Discounts and strengths of initial trees, stop probabilities, discounts and strengths of auxiliary trees, insertion
# probabilities: for one label after the other and from the first on again.
DP = [0.0], [1.0, 0.4], [0.4, 0.3], [0.0], [0.5], [0.5]
PYP = [0.6, 0.3], [2.0, 0.5], [0.4, 0.3, 0.2], [0.5, 0.2], [1.5, 0.6], [0.6, 0.4]
STEEP = [0.8], [0.7, 0.3], [0.2], [0.7], [0.3], [0.8]


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("bank", "settings", "move", "thin", "stacked"),
    [
        pytest.param("chains", DP, local, 6, False, id="local-dp"),
        pytest.param("chains", PYP, local, 6, False, id="local-pyp"),
        pytest.param("both", STEEP, local, 6, False, id="local-both"),
        pytest.param("nested", PYP, local, 6, False, id="local-nested"),
        pytest.param("chains", STEEP, local, 6, True, id="local-stacked"),
        pytest.param("single", PYP, local, 6, True, id="local-single-stacked"),
        pytest.param("chains", DP, blocked(1), 3, False, id="blocked-dp"),
        pytest.param("chains", PYP, blocked(1), 3, False, id="blocked-pyp"),
        pytest.param("both", STEEP, blocked(1), 3, False, id="blocked-both"),
        pytest.param("nested", PYP, blocked(1), 3, False, id="blocked-nested"),
        pytest.param("apart", PYP, blocked(1), 3, False, id="blocked-apart"),
        pytest.param("chains", STEEP, blocked(1), 3, True, id="blocked-stacked"),
        pytest.param("single", DP, blocked(1), 3, True, id="blocked-single-stacked"),
        pytest.param("both", PYP, blocked(2), 5, False, id="batch-2"),
        pytest.param("nested", PYP, types, 6, False, id="types"),
        pytest.param("chains", STEEP, types, 6, True, id="types-stacked"),
    ],
)
def test_states_come_as_often_as_they_should(bank, settings, move, thin, stacked):
    trees = numbered(bank)
    parameters = per_label(trees, settings)
    sampler = sampler_of(trees, parameters, stacked=stacked)
    sampler.start(np.ones(len(trees.label)))
    seen = Counter()
    for sample in range(5000):
        for iteration in range(sample * thin, (sample + 1) * thin):
            move(sampler, iteration)
        seen[sampler.states().tobytes(), int(sampler.restaurants()[1].sum())] += 1
    # Labels that no auxiliary tree can have at its root keep an insertion probability of 0.
    reference = InsertionReference(trees, *sampler.parameters().tolist(), stacked=stacked)
    expected = reference.posterior(lambda state, sizes: (bytes(state), sum(map(len, sizes))))
    assert sum(2 in state or 3 in state for state, _ in expected) > 1
    assert pyp.chi_square(seen, expected) > 1e-3


@pytest.mark.statistics
@pytest.mark.parametrize("stacked", [False, True])
def test_a_temperature_flattens_the_posterior_of_a_tree(stacked):
    """Of one tree alone and without discounts, since tables are seated as ever."""
    trees = number_rules(FlatCorpus.from_trees([Tree.fromstring(BANKS["chains"][0])]))
    temperature = 3.0
    sampler = sampler_of(trees, per_label(trees, DP), stacked=stacked)
    sampler.start(np.ones(len(trees.label)))
    seen = Counter()
    for iteration in range(20000):
        sampler.blocked_sweep(iteration, temperature=temperature)
        if iteration % 4 == 0:
            seen[sampler.states().tobytes()] += 1
    reference = InsertionReference(trees, *sampler.parameters().tolist(), stacked=stacked)
    posterior = reference.posterior(lambda state, sizes: bytes(state))
    powers = {state: share ** (1 / temperature) for state, share in posterior.items()}
    expected = {state: power / sum(powers.values()) for state, power in powers.items()}
    assert pyp.chi_square(seen, expected) > 1e-3
    assert pyp.chi_square(seen, posterior) < 1e-4


@pytest.mark.statistics
@pytest.mark.parametrize("which", range(6))
def test_other_parameters_are_rejected(which):
    trees = numbered("both")
    parameters = per_label(trees, ([0.3], [1.0], [0.4], [0.3], [1.0], [0.6]))
    sampler = sampler_of(trees, parameters)
    sampler.start(np.ones(len(trees.label)))
    seen = Counter()
    for iteration in range(24000):
        sampler.blocked_sweep(iteration)
        if iteration % 3 == 0:
            seen[sampler.states().tobytes(), int(sampler.restaurants()[1].sum())] += 1
    parameters = sampler.parameters().tolist()
    parameters[which] = [value * 1.5 for value in parameters[which]]
    expected = InsertionReference(trees, *parameters).posterior(
        lambda state, sizes: (bytes(state), sum(map(len, sizes)))
    )
    assert pyp.chi_square(seen, expected) < 1e-4


# ---- without insertions it is the plain sampler ------------------------------------------------------------


@pytest.fixture(scope="module")
def treebank():
    trees = list(islice(load("village", "dev"), 40))
    return number_rules(prepare(trees, binarization=Binarization("centre-head", horizontal=0)))


def mixed_sweeps(sampler, iterations, insertions=True, **options):
    """All kinds of moves in turn."""
    trace = []
    for iteration in iterations:
        trace.append(sampler.blocked_sweep(iteration, **options))
        trace.append(sampler.local_sweep(iteration))
        trace.append(sampler.type_sweep(iteration, 100))
        trace.append(sampler.resample_parameters(iteration, insertions=insertions))
    return trace


@pytest.mark.parametrize("stacked", [False, True])
def test_with_probability_0_it_is_the_plain_sampler_bit_for_bit(treebank, stacked):
    sites = np.random.default_rng(1).integers(0, 2, len(treebank.label))
    plain = TsgSampler(treebank, 5)
    other = sampler_of(treebank, [], seed=5, stacked=stacked)
    assert not other.parameters()[5].any()
    results = []
    for sampler in (plain, other):
        sampler.start(sites)
        trace = mixed_sweeps(sampler, range(20), insertions=False, batch=3)
        n_labels = sampler.n_labels
        arrays = [sampler.states(), *sampler.seating(), sampler.parameters()[:3], sampler.restaurants()[:, :n_labels]]
        results.append((trace, [array.tolist() for array in arrays]))
    assert results[0] == results[1]


# ---- getting it right ------------------------------------------------------------------------------------

LABELS = TOP, X, Y = range(3)
RULES = [  # label, left, right, word, probability, probability with a foot
    (TOP, X, Y, -1, 1.0, 0.0),
    (X, X, Y, -1, 0.1, 0.5),
    (X, Y, X, -1, 0.1, 0.5),
    (X, Y, -1, -1, 0.8, 0.0),
    (Y, -1, -1, 0, 0.7, 0.0),
    (Y, -1, -1, 1, 0.3, 0.0),
]


class Simulation:
    """Trees, their derivations and the seating, drawn together given the parameters."""

    def __init__(self, parameters, n_trees, generator):
        self.discount, self.strength, self.stop = parameters[[0, 3]], parameters[[1, 4]], parameters[2]
        self.insertion, self.parameters, self.generator = parameters[5], parameters, generator
        self.tables = defaultdict(list)  # per label and kind: [fragment, size]
        self.nodes, self.children, self.tree_start = [], [], [0]
        for _ in range(n_trees):
            self.expand(TOP, -1)
            self.tree_start.append(len(self.nodes))

    def choose(self, weights):
        return int(np.searchsorted(np.cumsum(weights), self.generator.random() * sum(weights), side="right"))

    def draw_base(self, label, is_auxiliary=0):
        rule = self.choose([(row[0] == label) * row[4 + is_auxiliary] for row in RULES])
        _, *children = RULES[rule][:3]
        parts = [
            FOOT
            if is_auxiliary and child == label
            else None
            if child < 0 or self.generator.random() < self.stop[child]
            else self.draw_base(child)
            for child in children
        ]
        return (rule, *parts)

    def order(self, label, is_auxiliary=0):
        tables, discount = self.tables[label, is_auxiliary], self.discount[is_auxiliary, label]
        opening = self.strength[is_auxiliary, label] + discount * len(tables)
        table = self.choose([size - discount for _, size in tables] + [opening])
        if table == len(tables):
            tables.append([self.draw_base(label, is_auxiliary), 0])
        tables[table][1] += 1
        return tables[table][0]

    def expand(self, label, parent):
        fragment = self.order(label)
        return self.lay_out(fragment, parent, 1, fragment)

    def lay_out(self, fragment, parent, state, dish, below=None):
        """A node of an elementary tree; `below` is what an auxiliary tree has at its foot."""
        number = len(self.nodes)
        rule, *parts = fragment
        self.nodes.append((RULES[rule][0], rule, parent, state, dish))
        self.children.append([-1, -1])
        for side, (child, part) in enumerate(zip(RULES[rule][1:3], parts, strict=True)):
            if child >= 0:
                self.children[number][side] = (
                    self.lay_out(below, number, 0, None)
                    if part is FOOT
                    else self.expand(child, number)
                    if part is None
                    else self.go_on(part, number)
                )
        return number

    def go_on(self, part, parent):
        label = RULES[part[0]][0]
        if label != X or self.generator.random() >= self.insertion[X]:
            return self.lay_out(part, parent, 0, None)
        auxiliary = self.order(label, 1)
        return self.lay_out(auxiliary, parent, 2 if auxiliary[1] is FOOT else 3, auxiliary, below=part)

    def sampler(self, seed):
        """A compiled sampler in the same state."""
        numbers, fragments, sizes = {}, [], Counter()

        def number(fragment):
            if fragment is None or fragment is FOOT:
                return -1 if fragment is None else -3
            row = (fragment[0], number(fragment[1]), number(fragment[2]))
            if fragment not in numbers:
                numbers[fragment] = len(fragments)
                fragments.append(row)
            return numbers[fragment]

        dishes = np.array([number(node[4]) for node in self.nodes])
        for tables in self.tables.values():
            for fragment, size in tables:
                sizes[number(fragment), size] += 1
        label, rule, parent, state = np.array([node[:4] for node in self.nodes], dtype=np.int32).T.copy()
        left, right = np.array(self.children, dtype=np.int32).T.copy()
        columns = np.array(RULES)
        trees = TreeArrays(
            *(label, rule, left, right, parent),
            np.array(self.tree_start),
            *(columns[:, place].astype(np.int32) for place in range(4)),
            rule_count=np.ones(len(RULES), dtype=np.int64),
            rule_weight=np.ones(len(RULES)),
            rule_probability=columns[:, 4],
            n_labels=len(LABELS),
        )
        sampler = TsgSampler(trees, seed)
        sampler.allow_insertions(columns[:, 5])
        sampler.set_parameters(*self.parameters)
        rows = [(*key, value) for key, value in sizes.items()]
        sampler.restore(state, np.array(fragments), np.array(rows), dishes)
        return sampler


@pytest.mark.slow
def test_getting_it_right():
    """Geweke (2004): trees given parameters, moves of derivations and parameters given trees: the prior stays.

    The restaurants of initial trees keep theirs, so that the sizes of trees have a mean.
    """
    generator = np.random.default_rng(1)
    parameters = np.full((6, len(LABELS)), 0.5)
    parameters[0], parameters[1] = 0.1, 20.0
    chain = []
    for iteration in range(4000):
        sampler = Simulation(parameters, 3, generator).sampler(iteration)
        sampler.blocked_sweep(1, batch=2)
        sampler.local_sweep(1)
        sampler.type_sweep(1, 5)
        sampler.resample_parameters(1)
        parameters[2:] = sampler.parameters()[2:]
        values = np.array([*parameters[2, [X, Y]], *parameters[3:6, X]])
        chain.append([*values, *values**2])
    means = [1 / 2, 1 / 2, 1 / 2, 1.0, 1 / 2, 1 / 3, 1 / 3, 1 / 3, 2.0, 1 / 3]
    for place, (values, mean) in enumerate(zip(np.array(chain).T, means, strict=True)):
        assert abs(pyp.deviate(values.tolist(), mean)) < 4, place


# ---- consistency ------------------------------------------------------------------------------------------


def started(trees, seed=1, stacked=False):
    settings = ([0.5], [1.0], [0.5], [0.5], [1.0], [0.3])
    sampler = sampler_of(trees, per_label(trees, settings), seed, stacked)
    sampler.start(np.random.default_rng(seed).integers(0, 2, len(trees.label)))
    return sampler


def everything(sampler):
    arrays = [sampler.states(), *sampler.seating(), sampler.restaurants(), sampler.parameters()]
    return [array.tolist() for array in arrays], sampler.log_joint(), sampler.n_fragments(), sampler.n_auxiliary()


def spelled(fragments):
    """The fragments of `seating` as nested tuples."""
    result = []
    for rule, *parts in fragments.tolist():
        result.append((rule, *({-1: None, -3: FOOT}[part] if part < 0 else result[part] for part in parts)))
    return result


def check(sampler, trees, stacked):
    """What the sampler keeps up to date equals what its states say."""
    reference = InsertionReference(trees, *sampler.parameters().tolist(), stacked=stacked)
    state = tuple(sampler.states().tolist())
    assert reference.is_valid(state)
    fragments, customers, tables, sizes, dishes = sampler.seating()
    names = spelled(fragments)
    assert len(set(names)) == len(names) == sampler.n_fragments()[0]
    wanted = reference.fragments(state)
    assert {node: names[dish] for node, dish in enumerate(dishes.tolist()) if dish >= 0} == wanted
    assert Counter(dict(zip(names, customers.tolist(), strict=True))) == Counter(wanted.values())
    auxiliary = [fragment for fragment in wanted.values() if FOOT in fragment]
    assert sampler.n_auxiliary() == (len(set(auxiliary)), len(auxiliary))
    for found, counted in zip(sampler.insertion_counts(), reference.choices(state), strict=True):
        assert found.tolist() == [counted[label] for label in range(trees.n_labels)]
    seating = defaultdict(tuple)
    for fragment, size, number in sizes.tolist():
        seating[names[fragment]] += (size,) * number
    restaurants = np.zeros_like(sampler.restaurants())
    for name, n, t in zip(names, customers.tolist(), tables.tolist(), strict=True):
        assert (sum(seating.get(name, ())), len(seating.get(name, ()))) == (n, t)
        label, is_auxiliary = reference.restaurant(name)
        restaurants[:, label + is_auxiliary * trees.n_labels] += n, t
    assert sampler.restaurants().tolist() == restaurants.tolist()
    return reference, seating, state


@pytest.mark.parametrize("stacked", [False, True])
def test_log_joint_is_that_of_the_definition(stacked):
    for bank in BANKS:
        trees = numbered(bank)
        sampler = started(trees, stacked=stacked)
        for iteration in range(20):
            mixed_sweeps(sampler, [iteration], batch=2)
            reference, seating, state = check(sampler, trees, stacked)
            assert sampler.log_joint() == pytest.approx(reference.log_joint(seating, state), abs=1e-9)


@pytest.mark.parametrize("stacked", [False, True])
def test_counts_are_those_of_the_derivations(treebank, stacked):
    sampler = started(treebank, stacked=stacked)
    most = 0
    for first in range(0, 60, 20):
        mixed_sweeps(sampler, range(first, first + 20), batch=7, threads=2)
        check(sampler, treebank, stacked)
        most = max(most, sampler.n_auxiliary()[1])
    assert most > 0
    state = sampler.states()
    sampler.empty()
    assert sampler.n_fragments() == (0, 0)
    assert not sampler.restaurants().any()
    sampler.start(state)
    check(sampler, treebank, stacked)


def test_threads_do_not_change_the_result(treebank):
    results = []
    for threads in (1, 3):
        sampler = started(treebank)
        trace = mixed_sweeps(sampler, range(8), batch=5, threads=threads)
        results.append((trace, everything(sampler)))
    assert results[0] == results[1]


def test_going_on_from_what_was_saved(treebank):
    sampler = started(treebank)
    mixed_sweeps(sampler, range(10), batch=5)
    fragments, _, _, sizes, dishes = sampler.seating()
    other = sampler_of(treebank, sampler.parameters())
    other.restore(sampler.states(), fragments, sizes, dishes)
    assert everything(other) == everything(sampler)
    traces = [mixed_sweeps(each, range(10, 15), batch=5) for each in (sampler, other)]
    assert traces[0] == traces[1]
    assert everything(other) == everything(sampler)


# ---- what is refused --------------------------------------------------------------------------------------


def test_states_that_do_not_fit_are_refused():
    trees = numbered("chains")
    parameters = per_label(trees, DP)
    sites, inserted = np.ones(len(trees.label)), np.zeros(len(trees.label))
    inserted[1] = 2
    with pytest.raises(ValueError, match="state of a node is out of range"):
        TsgSampler(trees).start(inserted)
    with pytest.raises(ValueError, match="no auxiliary trees"):
        TsgSampler(trees).set_parameters(insertion=0.5)
    stacked = inserted.copy()
    stacked[2] = 2
    for state in (sites * 2, np.where(sites.cumsum() == 2, 3, 0), stacked, inserted + (sites.cumsum() == 3)):
        with pytest.raises(ValueError, match="no foot"):
            sampler_of(trees, parameters).start(state)
    sampler_of(trees, parameters, stacked=True).start(stacked)
    with pytest.raises(ValueError, match="probability 0"):
        sampler_of(trees, []).start(inserted)
    sampler = sampler_of(trees, parameters)
    sampler.start(inserted)
    with pytest.raises(ValueError, match="there are such insertions"):
        sampler.set_parameters(insertion=0.0)
    for name, value in (("auxiliary_discount", 1.0), ("auxiliary_strength", 0.0), ("insertion", 1.0)):
        with pytest.raises(ValueError, match=name.rpartition("_")[2]):
            sampler.set_parameters(**{name: value})
    with pytest.raises(ValueError, match="every rule with a foot"):
        TsgSampler(trees).allow_insertions(np.zeros(trees.n_rules))
    fragments, _, _, sizes, dishes = sampler.seating()
    used = np.flatnonzero(dishes >= 0)
    assert dishes[used[0]] == dishes[used[2]]  # with and without an insertion, the same initial tree
    swapped = dishes.copy()
    swapped[used[:2]] = dishes[used[1::-1]]
    with pytest.raises(ValueError, match="not what the trees have"):
        sampler_of(trees, parameters).restore(sampler.states(), fragments, sizes, swapped)
    with pytest.raises(ValueError, match="state of a node is out of range"):
        TsgSampler(trees).restore(sampler.states(), fragments, sizes, dishes)
