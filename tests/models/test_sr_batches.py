"""Batches and threads of the sampler of refined trees: exact posteriors, counts, and the same result on any threads."""

import numpy as np
import pytest
from models.test_sr_sites import Case, everything, whole
from nltk.tree import Tree
from reference import pyp

from tsgkit.models._back_off import UNREFINED_ROOT
from tsgkit.models._srtsg import Subcategories, Words
from tsgkit.models._srtsg_sites import make_site_sampler, site_levels
from tsgkit.models._suffixes import ClassLevels
from tsgkit.models.rules import number_rules
from tsgkit.treebank import FlatCorpus

# All trees of a bank are one batch. In `ladders` and `short` they share fragments, tables and rules, so that
# one tree leaves or joins tables of another while both are frozen.
POSTERIORS = [
    ("ladders", {}, False),
    ("ladders", {"levels": 2, "discount": 0.0}, False),
    ("ladders", {"levels": 1}, False),
    ("chains", {"levels": 2}, False),
    ("labels", {"classes": True}, False),
    ("short", {"classes": True}, True),
    ("short", {"classes": True, "levels": 1}, True),
    ("short", {"discount": 0.6}, True),
]


@pytest.mark.statistics
@pytest.mark.parametrize(("bank", "options", "joint"), POSTERIORS)
def test_posterior_of_batches(bank, options, joint):
    case = Case(bank, **options).start()
    expected = case.reference.posterior(case.symbols.tolist(), joint, whole)
    seen = {}
    # Most customers keep their seats until all of a tree move, so that states are alike for some sweeps.
    for iteration in range(64000):
        case.sampler.blocked_sweep(iteration, joint=joint, batch=2, threads=2)
        if iteration % 16 == 15:
            outcome = case.outcome(joint)
            seen[outcome] = seen.get(outcome, 0) + 1
    assert pyp.chi_square(seen, expected) > 1e-3


def sampler_of(n_trees, seed=3):
    """Two subcategories of every label but the root's, on trees that share most fragments."""
    brackets = [
        "(S (NP (D a) (N b)) (VP (V c) (NP (N b))))",
        "(S (NP (N d)) (VP (V c)))",
        "(S (VP (V c) (NP (D a) (N d))))",
    ]
    corpus = FlatCorpus.from_trees(Tree.fromstring(brackets[number % 3]) for number in range(n_trees))
    trees = number_rules(corpus)
    n_options = np.where(np.arange(trees.n_labels) == trees.label[0], 1, 2).astype(np.uint8)
    subcategories = Subcategories(np.arange(trees.n_labels, dtype=np.int32), n_options, trees.n_labels)
    classes = np.where(trees.rule_word >= 0, trees.rule_word % 2, -1).astype(np.int32)
    words = Words(["C0", "C1"], classes, np.array([0.5, 0.3]), ClassLevels.uniform(2))
    levels = site_levels(UNREFINED_ROOT, subcategories)
    sampler = make_site_sampler(trees, words, subcategories, levels, base="frequency", seed=seed)
    first = np.searchsorted(subcategories.label, trees.label)
    sampler.start(first + np.arange(len(first)) % n_options[trees.label])
    return sampler


def run(sampler, batch, threads, n_sweeps=12):
    trace = []
    for iteration in range(n_sweeps):
        joint = iteration % 3 > 0
        temperature = 2.0 if iteration < 3 else 1.0
        trace.append(
            sampler.blocked_sweep(iteration, joint=joint, batch=batch, threads=threads, temperature=temperature)
        )
        assert sampler.counts_agree()
        trace.append(sampler.resample_parameters(iteration))
    return trace


@pytest.mark.parametrize("batch", [1, 7, 64, 1000])
def test_threads_change_nothing(batch):
    samplers = [sampler_of(60) for _ in range(3)]
    traces = [run(sampler, batch, threads) for sampler, threads in zip(samplers, (1, 2, 4), strict=True)]
    assert traces[0] == traces[1] == traces[2]
    assert everything(samplers[0]) == everything(samplers[1]) == everything(samplers[2])
    samplers[0].empty()
    assert not any(samplers[0].restaurants(kind)[:2].any() for kind in ("dish", *samplers[0].kinds))


def test_the_size_of_batches_changes_the_samples():
    one, other = sampler_of(60), sampler_of(60)
    assert run(one, 1, 1) != run(other, 8, 1)


@pytest.mark.parametrize("options", [{"batch": 0}, {"threads": 0}, {"temperature": 0.0}])
def test_what_is_no_batch(options):
    with pytest.raises(ValueError, match="must be positive"):
        sampler_of(3).blocked_sweep(0, **options)
