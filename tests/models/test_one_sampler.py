"""A tree-substitution grammar is a refined one with one subcategory per label and a fixed base distribution.

So the blocked samplers of both must visit the derivations of the same trees equally often: as often as the exact
posterior says, which is summed over all seatings by generalised Stirling numbers.
"""

from collections import Counter

import numpy as np
import pytest
from nltk.tree import Tree
from reference.tsg import Reference

from tsgkit._refined_sampler import RefinedSampler
from tsgkit._tsg_sampler import TsgSampler
from tsgkit.models._back_off import UNREFINED_ROOT
from tsgkit.models.back_off import RefinedSymbols
from tsgkit.models.rules import number_rules
from tsgkit.treebank import FlatCorpus

# Six nodes below the roots, so 64 states; labels recur below themselves, so that fragments of a tree share restaurants.
TREES = ["(TOP (X (X (X a))))", "(TOP (X (X a) (X b)))"]
N_SWEEPS = 40000
# Successive sweeps are not independent: so many count as one draw.
SWEEPS_PER_DRAW = 2
LARGEST_DEVIATION = 4.0  # in standard deviations: the largest of 64


def numbered():
    return number_rules(FlatCorpus.from_trees(map(Tree.fromstring, TREES)))


def parameters_of(trees, discounts, strengths):
    """Discounts, strengths and stop probabilities, one per label."""
    stops = [0.5, 0.3, 0.6]
    return [np.resize(values, trees.n_labels).astype(float) for values in (discounts, strengths, stops)]


def frequencies(sampler, **options):
    """The share of every derivation state in the sweeps of a blocked sampler."""
    seen = Counter()
    for iteration in range(N_SWEEPS):
        sampler.blocked_sweep(iteration, **options)
        seen[tuple(sampler.sites().tolist())] += 1
    return {state: n / N_SWEEPS for state, n in seen.items()}


def of_tsg(trees, parameters):
    sampler = TsgSampler(trees, 1)
    sampler.set_parameters(*parameters)
    sampler.start(np.ones(len(trees.label)))
    return frequencies(sampler)


def of_refined(trees, parameters):
    """The sampler of symbol-refined grammars, where every label is its only symbol and words have no classes."""
    labels = np.arange(trees.n_labels)
    no_class = np.full(trees.n_rules, -1)
    levels = UNREFINED_ROOT.truncated(1).over(RefinedSymbols(labels, labels))
    sampler = RefinedSampler(
        trees, labels, levels, trees.rule_probability, no_class, np.zeros(trees.n_labels), [], seed=2
    )
    discount, strength, stop = parameters
    pairs = sampler.parameters()
    pairs[:, -trees.n_labels :] = discount, strength  # of the restaurants of fragments; no other has customers
    sampler.set_parameters(pairs)
    sampler.set_stops(stop)
    sampler.start(trees.label)
    return frequencies(sampler, joint=True)


def deviation(one, other, posterior, n_samples):
    """The largest difference of two sets of shares, in standard deviations of `n_samples` independent samples."""
    n_draws = N_SWEEPS / SWEEPS_PER_DRAW
    return max(
        abs(one.get(state, 0.0) - other.get(state, 0.0)) / np.sqrt(n_samples * share * (1 - share) / n_draws)
        for state, share in posterior.items()
    )


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("discounts", "strengths"),
    [pytest.param([0.0], [1.0, 0.4], id="dp"), pytest.param([0.6, 0.3], [2.0, 0.5], id="pyp")],
)
def test_both_samplers_have_the_same_posterior(discounts, strengths):
    trees = numbered()
    parameters = parameters_of(trees, discounts, strengths)
    posterior = Reference(trees, *parameters).marginal()
    assert len(posterior) == 64
    tsg, refined = of_tsg(trees, parameters), of_refined(trees, parameters)
    assert deviation(tsg, posterior, posterior, 1) < LARGEST_DEVIATION
    assert deviation(refined, posterior, posterior, 1) < LARGEST_DEVIATION
    assert deviation(tsg, refined, posterior, 2) < LARGEST_DEVIATION
    # The comparison is sharp enough to see stop probabilities that differ by 0.02.
    other = Reference(trees, *parameters[:2], parameters[2] + 0.02).marginal()
    assert deviation(tsg, other, posterior, 1) > LARGEST_DEVIATION
