"""The split sampler against exact posteriors and itself."""

from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise, product
from math import lgamma, log, prod

import numpy as np
import pytest
from reference import pyp
from reference.split_setting import (
    N_CLASSES,
    Setting,
    TreebankSetting,
    cell_names,
    check,
    in_batches,
    largest_deviate,
    mixed_sweeps,
    samples,
    seating_of,
    smallest_p_value,
    state_of,
    trees_only,
    with_types,
)
from reference.sr import Integrated

from tsgkit._subcategories import SplitSampler
from tsgkit.models._back_off import UNREFINED_ROOT
from tsgkit.models._srtsg import Subcategories, lexical_shares, split_levels
from tsgkit.models.back_off import RefinedSymbols

KINDS = ("rule", "base", "class", "word", "label_class", "label_class_2")

# There are more than a hundred comparisons: one in a hundred sets of seeds would fail.
LIKELY = 1e-4
DP, PYP = (0.0,), (0.6, 0.3, 0.5, 0.8)


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("bank", "options", "thin"),
    [
        pytest.param("chains", {"levels": 2, "discount": DP}, 6, id="chains-2-dp"),
        pytest.param("chains", {"levels": 2, "discount": PYP}, 6, id="chains-2-pyp"),
        pytest.param("chains", {"levels": 3, "discount": DP, "base": "uniform"}, 6, id="chains-3-dp"),
        pytest.param("chains", {"levels": 3, "discount": PYP, "classes": True}, 6, id="chains-3-pyp-classes"),
        pytest.param("branches", {"levels": 3, "discount": PYP}, 6, id="branches-3-pyp"),
        pytest.param("branches", {"levels": 2, "discount": PYP, "classes": True}, 6, id="branches-2-pyp-classes"),
        pytest.param("labels", {"levels": 3, "discount": PYP, "n_groups": 2}, 6, id="labels-3-pyp-groups"),
        pytest.param("labels", {"levels": 2, "discount": DP, "classes": True, "whole": "N"}, 6, id="labels-2-dp-whole"),
        pytest.param("one tree", {"levels": 3, "discount": DP, "classes": True}, 6, id="one-tree-3-dp-classes"),
        pytest.param("words", {"levels": 3, "discount": PYP, "classes": True}, 8, id="words-3-pyp-classes"),
        pytest.param("words", {"levels": 3, "discount": DP, "classes": True}, 8, id="words-3-dp-classes"),
        pytest.param("words", {"levels": 2, "discount": PYP, "whole": "Y"}, 8, id="words-2-pyp-whole"),
    ],
)
@pytest.mark.parametrize("move", [trees_only, in_batches, with_types])
def test_states_come_as_often_as_they_should(bank, options, thin, move):
    setting = Setting(bank, **options)
    states = samples(setting, move, thin=thin)
    assert smallest_p_value(setting, states, setting.reference()) > LIKELY
    assert largest_deviate(setting, states) < 4.5


@pytest.mark.statistics
@pytest.mark.parametrize("move", [trees_only, in_batches, with_types])
def test_tables_have_the_sizes_that_they_should(move):
    """Of the customers and tables of a dish, the sizes of its tables depend on the discount alone."""
    setting = Setting("repeated", levels=3, discount=(0.7,))
    sampler = setting.sampler()
    seen = defaultdict(list)
    for iteration in range(60000):
        move(sampler, iteration)
        if iteration % 10 == 0:
            for kind, places in seating_of(sampler).items():
                seen[kind] += [sizes for dishes in places.values() for sizes in dishes.values()]
    for kind in ("rule", "base"):
        p_values = list(pyp.p_values_of_sizes(seen[kind], 0.7))
        assert len(p_values) > 3
        assert min(p_values) > LIKELY, kind


@cache
def sampled_states(bank):
    """A setting with states that all comparisons with wrong posteriors share."""
    setting = Setting(bank, levels=3, discount=PYP, classes=True)
    n_labels = setting.trees.n_labels
    setting.parameters[0, 2 * n_labels : 3 * n_labels] = 0.3
    setting.parameters[:, -1] = 0.3, 0.5
    return setting, samples(setting, trees_only, n=8000)


@pytest.mark.statistics
@pytest.mark.parametrize(
    "mutation", ["none", "levels", "shares", "rules", "words", *(f"{kind} {name}" for kind in KINDS for name in "ds")]
)
def test_wrong_posteriors_are_rejected(mutation):
    """The same comparison with the exact posterior of another model."""
    kind, _, which = mutation.partition(" ")
    setting, states = sampled_states("branches" if kind == "levels" else "words")
    n_labels = setting.trees.n_labels
    fewer = split_levels(UNREFINED_ROOT.truncated(2), setting.subcategories)
    reference = setting.reference(**({"levels": fewer} if kind == "levels" else {}))
    if kind in KINDS:
        row = "ds".index(which)
        places = {reference.place_of(kind, label) for label in range(n_labels)}
        reference.parameters = setting.parameters.copy()
        reference.parameters[row, list(places)] *= (0.1, 4.0)[row]
    elif kind == "shares":
        reference.lexical_share = [value / 2 for value in reference.lexical_share]
    elif kind == "rules":
        reference.rule_base = [value / 2 for value in reference.rule_base]
    elif kind == "words":
        reference.class_word_base = [value / 2 for value in reference.class_word_base]
    smallest = smallest_p_value(setting, states, reference, bits_only=kind == "levels")
    assert smallest > LIKELY if kind == "none" else smallest < 1e-6


def test_two_ways_to_sum_over_seatings():
    """A product of Pólya urns, where the seating does not matter."""
    setting = Setting("branches", levels=2)
    reference = setting.reference()
    for bits in reference.all_bits():
        assert log(reference.probability(bits)) == pytest.approx(urns(setting, bits), abs=1e-9)


def urns(setting, bits):
    """The log probability of bits with two levels, plain words and no discounts."""
    reference = setting.reference()
    result = 0.0
    restaurants = defaultdict(Counter)
    for symbol, *dish in reference.orders(bits):
        restaurants[symbol][tuple(dish)] += 1
    for symbol, dishes in restaurants.items():
        strength = reference.pair("rule", reference.label(symbol))[1]
        result += lgamma(strength) - lgamma(strength + sum(dishes.values()))
        for dish, n in dishes.items():
            weight = strength * reference.rule_base[dish[0]]
            result += lgamma(weight + n) - lgamma(weight)
    return result


MOMENTS = {"discount": lambda d, s: d, "strength": lambda d, s: s, "both": lambda d, s: d * s}


@pytest.mark.parametrize(
    ("bank", "classes", "kinds"),
    [("chains", False, "rule base"), ("branches", True, "class word label_class label_class_2")],
)
def test_parameters_come_as_they_should(bank, classes, kinds):
    """Bits, seats and parameters drawn in turn: posterior means against integrals."""
    setting = Setting(bank, classes=classes)
    sampler = setting.sampler()
    chain = []
    for iteration in range(20000):
        sampler.tree_sweep(iteration)
        sampler.resample_parameters(iteration)
        chain.append(sampler.parameters())
    chain = np.array(chain)
    [label] = np.flatnonzero(np.array(setting.corpus.labels) == "X")
    total = setting.reference(Integrated).total()
    for kind in kinds.split():
        values = chain[:, :, setting.reference().place_of(kind, label)].T
        for name, moment in MOMENTS.items():
            prior = 1.0 if name == "strength" else 0.5
            expected = setting.reference(Integrated, moment=(kind, label, moment)).total() / total
            assert abs(pyp.deviate(moment(*values).tolist(), expected)) < 4, (kind, name)
            assert abs(pyp.deviate(moment(*values).tolist(), prior)) > 8, (kind, name)


# ---- consistency ----------------------------------------------------------------------------------------

SETTINGS = {
    "chains": ("chains", {"levels": 2, "discount": PYP}),
    "branches": ("branches", {"discount": PYP, "classes": True}),
    "labels": ("labels", {"discount": PYP, "n_groups": 2}),
    "one tree": ("one tree", {"n_groups": 2, "classes": True, "levels": 2}),
    "words": ("words", {"discount": PYP, "classes": True, "whole": "Y"}),
}


@pytest.fixture(params=SETTINGS)
def setting(request):
    bank, options = SETTINGS[request.param]
    return Setting(bank, **options)


@pytest.fixture(scope="module")
def treebank():
    return TreebankSetting()


def test_log_joint_is_that_of_the_definition(setting):
    sampler = setting.sampler()
    for iteration in range(30):
        mixed_sweeps(sampler, [iteration])
        if iteration == 29:
            sampler.set_parameters(sampler.parameters() * [[0.0], [1.0]])
        reference, seating = check(setting, sampler)
        assert sampler.log_joint() == pytest.approx(reference.log_joint(seating), abs=1e-9)


def test_classes_of_many_words():
    setting = Setting("many words", discount=PYP, classes=True)
    sampler = setting.sampler()
    reference, seating = check(setting, sampler)
    assert sampler.log_joint() == pytest.approx(reference.log_joint(seating), abs=1e-8)


def test_probabilities_are_those_of_the_definition(setting):
    sampler = setting.sampler()
    mixed_sweeps(sampler, range(5))
    reference, seating = check(setting, sampler)
    probabilities, exists = sampler.probabilities(), setting.subcategories.exists
    for cell, (symbol, _, dish) in cell_names(sampler)["rule"].items():
        is_there = all(exists[part] for part in (symbol, *dish[1:]) if part >= 0)
        expected = reference.predictive(seating, symbol, *dish) if is_there else 0.0
        assert probabilities[cell] == pytest.approx(expected, rel=1e-12)
    of_class = sampler.class_probabilities()
    classed = sampler.blocks()["word_class"] >= 0
    assert (of_class[classed] > 0).all()
    assert not of_class[~classed].any()


def test_counts_are_those_of_the_bits(treebank):
    sampler = treebank.sampler()
    for first in (0, 20):
        mixed_sweeps(sampler, range(first, first + 20))
        reference, seating = check(treebank, sampler)
        assert sampler.log_joint() == pytest.approx(reference.log_joint(seating), abs=1e-6)
    sampler.empty()
    for kind in sampler.kinds:
        assert not sampler.restaurants(kind)[:2].any()
        assert not sampler.cells(kind).any()
    assert not any(len(rows) for rows in sampler.seating().values())
    sampler.start(treebank.random_bits(3))
    check(treebank, sampler)


def test_a_temperature_of_one_hardly_ever_rejects(treebank):
    sampler = treebank.sampler()
    proposed, accepted, changed = np.sum([sampler.tree_sweep(iteration) for iteration in range(20)], axis=0)
    assert proposed == 20 * treebank.trees.n_trees
    assert changed <= accepted <= proposed
    assert accepted > 0.7 * proposed


def test_same_seed_same_result(treebank):
    samplers = [treebank.sampler(seed) for seed in (1, 1, 2)]
    traces = [mixed_sweeps(sampler, range(3)) for sampler in samplers]
    assert traces[0] == traces[1] != traces[2]
    assert state_of(samplers[0]) == state_of(samplers[1])


@pytest.mark.parametrize("batch", [1, 2, 5, 100])
def test_threads_change_nothing(treebank, batch):
    samplers = [treebank.sampler() for _ in range(4)]
    for threads, sampler in enumerate(samplers, start=1):
        for iteration in range(6):
            sampler.tree_sweep(iteration, 1.0 + iteration % 2, batch=batch, threads=threads)
        assert state_of(sampler) == state_of(samplers[0])
        losses = [each.merge_losses(1, marginal=True, threads=threads).tolist() for each in (sampler, samplers[0])]
        assert losses[0] == losses[1]
    check(treebank, samplers[-1])


def test_the_size_of_batches_matters(treebank):
    """A batch of one is a sampler of its own, with the same proposals."""
    states = []
    for batch in (1, 2, 5):
        sampler = treebank.sampler()
        sampler.tree_sweep(0, batch=batch)
        states.append(state_of(sampler))
    assert states[0] != states[1] != states[2]


def test_going_on_from_what_was_saved(treebank):
    sampler = treebank.sampler()
    mixed_sweeps(sampler, range(5))
    other = treebank.empty_sampler()
    other.set_parameters(sampler.parameters())
    other.restore(sampler.bits(), sampler.seats(), sampler.seating())
    assert state_of(other) == state_of(sampler)
    traces = [mixed_sweeps(each, range(5, 10)) for each in (sampler, other)]
    assert traces[0] == traces[1]
    assert state_of(other) == state_of(sampler)


# ---- merging ---------------------------------------------------------------------------------------------


def test_losses_leave_everything_as_it_is(setting):
    sampler = setting.sampler()
    for iteration in range(20):
        mixed_sweeps(sampler, [iteration])
        before, log_joint = state_of(sampler), sampler.log_joint()
        for marginal in (False, True):
            losses = sampler.merge_losses(iteration, marginal=marginal)
            assert np.isfinite(losses).all()
            assert not losses[setting.subcategories.n_options == 1].any()
        assert state_of(sampler) == before
        assert sampler.log_joint() == log_joint


def test_merged_groups_have_one_option(setting, treebank):
    for each in (setting, treebank):
        sampler = each.sampler()
        mixed_sweeps(sampler, range(3))
        is_merged = np.arange(len(each.subcategories.n_options)) % 2
        expected = sampler.bits() * (is_merged[each.groups] == 0)
        sampler.merge(is_merged, 5)
        assert sampler.bits().tolist() == expected.tolist()
        assert sampler.n_options().tolist() == np.where(is_merged, 1, each.subcategories.n_options).tolist()
        check(each, sampler)
        mixed_sweeps(sampler, range(3, 6))
        assert not sampler.bits()[is_merged[each.groups] == 1].any()
        check(each, sampler)
        sampler.empty()


@pytest.mark.parametrize("bank", ["chains", "branches", "labels", "one tree"])
def test_joint_loss_is_a_ratio_of_urns(bank):
    setting = Setting(bank, levels=2)
    sampler = setting.sampler()
    n_seen = 0
    for iteration in range(20):
        sampler.tree_sweep(iteration)
        bits = sampler.bits()
        losses = sampler.merge_losses(iteration)
        for group in np.flatnonzero(setting.subcategories.n_options == 2).tolist():
            merged = np.where(setting.groups == group, 0, bits)
            loss = urns(setting, bits.tolist()) - urns(setting, merged.tolist())
            # Which of the two options remains makes no difference.
            assert losses[group] == pytest.approx(loss, abs=1e-9)
            n_seen += (merged != bits).any()
    assert n_seen


def test_marginal_loss_is_that_of_the_definition(setting):
    sampler = setting.sampler()
    mixed_sweeps(sampler, range(4))
    reference, seating = check(setting, sampler)
    n_customers = sampler.restaurants("rule")[0]
    starts = setting.trees.tree_start.tolist()
    losses = np.zeros(len(setting.subcategories.n_options))
    known = {}

    def predictive(*order):
        if order not in known:
            known[order] = reference.predictive(seating, *order)
        return known[order]

    def choices(first, end):
        """All symbols of the nodes of a tree."""
        options = [range(reference.n_options[reference.groups[node]]) for node in range(first, end)]
        for bits in product(*options):
            yield [0] * first + list(bits)

    for first, end in pairwise(starts):
        likelihood = sum(
            prod(predictive(*reference.order(node, bits)) for node in range(first, end)) for bits in choices(first, end)
        )
        for merged in range(first, end):
            group = reference.groups[merged]
            if reference.n_options[group] == 1:
                continue
            # Its parent sees one option and its children another, drawn by how often they are seen.
            pair = n_customers[2 * group : 2 * group + 2]
            share = pair / pair.sum()
            value = 0.0
            for bits in choices(first, end):
                own = reference.order(merged, bits)[1:]
                rest = prod(predictive(*reference.order(node, bits)) for node in range(first, end) if node != merged)
                value += rest * sum(share[bit] * predictive(2 * group + bit, *own) for bit in (0, 1))
            losses[group] += log(likelihood) - log(value)
    assert sampler.merge_losses(0, marginal=True) == pytest.approx(losses, abs=1e-9)


# ---- what is refused --------------------------------------------------------------------------------------


def test_states_that_do_not_fit_are_refused(setting):
    sampler = setting.sampler()
    bits, seats, seating = sampler.bits(), sampler.seats(), sampler.seating()
    no_option = bits.copy()
    no_option[np.flatnonzero(setting.subcategories.n_options[setting.groups] == 1)[0]] = 1
    flipped = bits.copy()
    flipped[np.flatnonzero(setting.subcategories.n_options[setting.groups] == 2)[0]] ^= 1

    def damaged(change):
        for kind, rows in seating.items():
            if len(rows):
                yield bits, seats, seating | {kind: change(rows.astype(np.int64))}

    broken = {
        "does not have": [(no_option, seats, seating), (bits[1:], seats, seating)],
        "out of range": [
            (bits, seats[1:], seating),
            (bits, seats - 1000, seating),
            (bits, seats.astype(np.int64), seating),
            *damaged(lambda rows: rows * [1, 1, 0, 1, 1]),
            *damaged(lambda rows: rows - [0, 1000, 0, 0, 0]),
            *damaged(lambda rows: rows - [1000, 0, 0, 0, 0]),
            *damaged(lambda rows: rows - [-1000000, 0, 0, 0, 0]),
            *damaged(lambda rows: rows - [0, 0, 0, -1000, 0]),
            *damaged(lambda rows: np.vstack([rows, [0, 2**32, 2**32, -1, -1]])),
        ],
        "do not fit": [
            (flipped, seats, seating),
            (bits, seats + 1, seating),
            *damaged(lambda rows: rows[1:]),
            *damaged(lambda rows: rows - [0, 0, -1, 0, 0]),
            *damaged(lambda rows: rows - [0, -1, 0, 0, 0]),
            *damaged(lambda rows: rows * [1, 1, 1, 0, 1] - [0, 0, 0, -1, 0]),
            *damaged(lambda rows: rows * [1, 1, 1, 1, 0] - [0, 0, 0, 0, 2 * (rows[0, 4] >= 0) - 1]),
            *damaged(lambda rows: np.vstack([rows, rows[:1]])),
        ],
    }
    for message, states in broken.items():
        for state in states:
            other = setting.empty_sampler()
            with pytest.raises(ValueError, match=message):
                other.restore(*state)
            assert not other.cells("rule").any()
    with pytest.raises(ValueError, match="seated already"):
        sampler.restore(bits, seats, seating)


def test_calls_that_do_not_fit_are_refused(setting):
    sampler = setting.empty_sampler()
    for call in (
        sampler.empty,
        lambda: sampler.tree_sweep(1),
        lambda: sampler.type_sweep(1, 1),
        lambda: sampler.merge_losses(1),
        lambda: sampler.merge([], 1),
    ):
        with pytest.raises(ValueError, match="no trees are seated"):
            call()
    sampler.start(setting.random_bits())
    with pytest.raises(ValueError, match="seated already"):
        sampler.start(setting.random_bits())
    for options in ({"batch": 0}, {"threads": 0}):
        with pytest.raises(ValueError, match="positive"):
            sampler.tree_sweep(1, **options)
    with pytest.raises(ValueError, match="positive"):
        sampler.merge_losses(1, marginal=True, threads=0)
    for temperature in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="positive"):
            sampler.tree_sweep(1, temperature)
        with pytest.raises(ValueError, match="positive"):
            sampler.type_sweep(1, 1, temperature)
    with pytest.raises(ValueError, match="one flag"):
        sampler.merge([1], 1)
    good = sampler.parameters()
    sampler.set_parameters(good)
    assert sampler.parameters().tolist() == good.tolist()
    n_labels = setting.trees.n_labels
    assert good[:, : 2 * n_labels].tolist() == setting.parameters[:, : 2 * n_labels].tolist()
    for row, value in ((0, 1.0), (0, -0.1), (1, 0.0), (1, 1e-320), (1, float("inf")), (0, float("nan"))):
        wrong = good.copy()
        wrong[row, 1] = value
        with pytest.raises(ValueError, match="strength" if row else "discount"):
            sampler.set_parameters(wrong)
    with pytest.raises(ValueError, match="every restaurant"):
        sampler.set_parameters(good[:, 1:])
    with pytest.raises(ValueError, match="no restaurants of kind"):
        sampler.cells("words")


def test_arrays_that_do_not_fit_are_refused():
    setting = Setting("branches", classes=True)
    trees, options = setting.trees, setting.subcategories.n_options
    good = {
        "groups": setting.groups, "group_label": setting.subcategories.group_label, "n_options": options,
        "levels": split_levels(UNREFINED_ROOT, setting.subcategories),
        "rule_base": np.full(trees.n_rules, 0.5), "rule_class": setting.words.rule_class,
        "lexical_share": lexical_shares(trees), "class_word_base": setting.words.class_word_base,
    }  # fmt: skip
    symbols = RefinedSymbols(*np.repeat([setting.subcategories.group_label, np.arange(len(options))], 2, axis=1))
    SplitSampler(trees, **good)
    for name, value, message in (
        ("groups", setting.groups + 1, "out of range"),
        ("groups", setting.groups[::-1], "another label"),
        ("n_options", options + 1, "one or two"),
        ("n_options", np.full_like(options, 2), "roots"),
        ("rule_base", np.zeros(trees.n_rules), "base probability"),
        ("rule_class", np.full(trees.n_rules, 2), "out of range"),
        ("rule_class", np.zeros(trees.n_rules), "without a word"),
        ("lexical_share", np.zeros(trees.n_labels), "share"),
        ("lexical_share", np.ones(trees.n_labels), "share"),
        ("class_word_base", np.zeros(N_CLASSES), "base probability"),
        ("levels", split_levels(UNREFINED_ROOT, Subcategories.whole(trees.n_labels + 1)), "every symbol"),
        ("levels", UNREFINED_ROOT.truncated(1).over(symbols), "no level"),
    ):
        with pytest.raises(ValueError, match=message):
            SplitSampler(trees, **(good | {name: value}))
