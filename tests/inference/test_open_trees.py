"""Trees that are not known: sampled trees and derivations against exact posteriors, and the training around it."""

from collections import Counter
from dataclasses import replace
from itertools import cycle, islice, product

import numpy as np
import pytest
from nltk.tree import Tree
from reference import pyp
from reference.constraints import has_brackets
from reference.tsg import Reference

from tsgkit.errors import TreebankError, UsageError
from tsgkit.inference._insertion import InsertionSettings
from tsgkit.inference._open_trees import OpenTsgSampling
from tsgkit.inference._training import Training
from tsgkit.inference._tsg import TSG, TsgSettings
from tsgkit.models._open_trees import (
    OPEN,
    OpenPart,
    RuleTable,
    induced_corpus,
    tree_of_nodes,
    trees_of_corpus,
    with_open_sentences,
    words_of,
)
from tsgkit.parsing import Parser
from tsgkit.treebank import Binarization, Cleaning, FlatCorpus, UnknownWords, load, prepare
from tsgkit.treebank._trees import brackets_of

DP = [0.0], [1.0, 0.4], [0.5, 0.3, 0.6]
PYP = [0.6, 0.3], [2.0, 0.5], [0.5, 0.3, 0.6]
KNOWN = ["(TOP (X (Y (X a)) (X b)))"]


def corpora():
    """Small corpora with open sentences: nothing known but words; a known tree, and brackets or none."""
    known = FlatCorpus.from_trees(map(Tree.fromstring, KNOWN))
    return {
        "induced": induced_corpus([(["a", "b", "a"], []), (["b", "a"], [])], 1).corpus,
        "two-labels": induced_corpus([(["a", "b", "b"], [])], 2).corpus,
        "induced-brackets": induced_corpus([(["a", "b", "b", "a"], [(None, 0, 2)])], 1).corpus,
        "unary": with_open_sentences(known, [(["a", "b", "a"], [])]).corpus,
        "brackets": with_open_sentences(known, [(["a", "b", "a"], [("Y", 0, 2)])]).corpus,
        "any-label": with_open_sentences(known, [(["b", "a", "b"], [(None, 1, 3)])]).corpus,
    }


def all_trees(table, words):
    """Every tree over words by the rules of a table, as rows ``(label, start, end, number of children)``."""

    def below(label, start, end, above=()):
        for parent, left, right, word in table.rules:
            if parent != label:
                continue
            if word >= 0:
                if end == start + 1 and words[start] == word:
                    yield ((label, start, end, 0),)
            elif right < 0:
                if left not in above:
                    for rows in below(left, start, end, (*above, label)):
                        yield ((label, start, end, 1), *rows)
            else:
                for split in range(start + 1, end):
                    for one, other in product(below(left, start, split), below(right, split, end)):
                        yield ((label, start, end, 2), *one, *other)

    return list(below(table.root, 0, len(words)))


def exact(corpus, material, parameters):
    """The posterior of the trees of all open sentences and of the sites of all trees."""
    part, table = material.opened.part, material.opened.table
    known = trees_of_corpus(corpus, table)[: part.first]
    nodes = [(label,) for label in table.labels]
    choices = []
    for number in range(part.first, corpus.n_trees):
        words = words_of(corpus, number).tolist()
        trees = [
            rows for rows in all_trees(table, words) if has_brackets(rows, nodes, part.brackets[number - part.first])
        ]
        choices.append([tree_of_nodes(np.array(rows), words, table) for rows in trees])
    weights = {}
    for chosen in product(*choices):
        trees = replace(table.trees([*known, *chosen]), rule_probability=material.trees.rule_probability)
        for sites, weight in Reference(trees, *parameters).site_probabilities().items():
            weights[trees.rule.tobytes(), bytes(sites)] = weight
    total = sum(weights.values())
    return {outcome: weight / total for outcome, weight in weights.items()}, [len(each) for each in choices]


BANKS = ["two-labels", "induced-brackets", "brackets", "any-label"]


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("bank", "batch", "settings"),
    [
        pytest.param("induced", 2, PYP, id="induced-2-pyp"),
        pytest.param("unary", 1, PYP, id="unary-pyp"),
        pytest.param("induced", 1, DP, id="induced-dp", marks=pytest.mark.slow),
        pytest.param("induced", 2, DP, id="induced-2-dp", marks=pytest.mark.slow),
        pytest.param("induced", 1, PYP, id="induced-pyp", marks=pytest.mark.slow),
        pytest.param("unary", 1, DP, id="unary-dp", marks=pytest.mark.slow),
        *(pytest.param(bank, 1, PYP, id=f"{bank}-pyp", marks=pytest.mark.slow) for bank in BANKS),
        *(pytest.param(bank, 1, DP, id=f"{bank}-dp", marks=pytest.mark.slow) for bank in BANKS),
    ],
)
def test_trees_and_derivations_come_as_often_as_they_should(bank, batch, settings):
    corpus = corpora()[bank]
    material = TSG.material(corpus, TsgSettings(), seed=1, threads=1)
    parameters = [list(islice(cycle(values), len(corpus.labels))) for values in settings]
    expected, n_trees = exact(corpus, material, parameters)
    assert max(n_trees) > 1 or bank in ("brackets", "any-label")
    sampling = OpenTsgSampling(material, TsgSettings())
    sampling.proposals.batch = batch
    sampling.sampler.set_parameters(*parameters)
    sampling.sampler.start(np.ones(corpus.n_nodes))
    seen, accepted = Counter(), 0.0
    for step in range(1, 6001):
        sampling.sampler.blocked_sweep(step)
        accepted += sampling.resample_trees(step)["open_acceptance"]
        if step % 2 == 0:
            seen[sampling.sampler.trees.rule.tobytes(), sampling.sampler.sites().tobytes()] += 1
    assert seen.keys() <= expected.keys()
    assert pyp.chi_square(seen, expected) > 1e-3
    assert 0.5 < accepted / 6000 <= 1.0


# ---- training ------------------------------------------------------------------------------------------------


def village(n_known=40, n_open=15):
    """Some trees of the village treebank, and sentences of others with the brackets of their noun phrases."""
    trees = load("village", "train")[: n_known + n_open]
    corpus = prepare(trees[:n_known], binarization=Binarization("right", 0), unknown=UnknownWords())
    clean = [Cleaning().apply(tree) for tree in trees[n_known:]]
    sentences = [
        (
            tree.leaves(),
            [bracket for bracket in brackets_of(tree) if bracket[0] == "NP" and bracket[2] - bracket[1] > 1],
        )
        for tree in clean
    ]
    return with_open_sentences(corpus, sentences)


SETTINGS = TsgSettings(iterations=6, type_moves=20, average=2, average_every=1)


def trained(corpus, *, threads=1, steps=6):
    training = Training(corpus, SETTINGS, seed=3, threads=threads)
    training.start()
    for step in range(1, steps + 1):
        training.iterate(step)
    return training


def test_training_keeps_sentences_brackets_and_known_trees():
    found = village()
    corpus = found.corpus
    training = trained(corpus)
    model = training.model()
    part = OpenPart.of_corpus(corpus)
    before, after = list(corpus.trees()), list(model.corpus.trees())
    assert [tree.leaves() for tree in before] == [tree.leaves() for tree in after]
    assert before[: part.first] == after[: part.first]
    assert before[part.first :] != after[part.first :]
    decode = model.preparation.decode
    for tree, brackets in zip(after[part.first :], part.brackets, strict=True):
        assert set(brackets) <= set(brackets_of(decode(tree)))
    assert model.info["open_trees"] == len(part.brackets) == 15 - len(found.left_out)
    assert Parser(model).analyse(after[-1].leaves()).fallback in ("", "coarse")
    assert len(TSG.fragments(model).select(root="NP"))
    with pytest.raises(UsageError, match="cannot correct"):
        TSG.correction(model)


def test_the_result_does_not_depend_on_threads_or_interruption():
    corpus = village().corpus
    whole = trained(corpus)
    assert trained(corpus, threads=2).model().to_bytes() == whole.model().to_bytes()
    half = trained(corpus, steps=3)
    state = {name: np.array(value) for name, value in half.state().items()}
    resumed = Training(corpus, SETTINGS, seed=3)
    resumed.restore(state, 3)
    for step in range(4, 7):
        resumed.iterate(step)
    assert resumed.model().to_bytes() == whole.model().to_bytes()
    other = {**state, "tree_rule": state["tree_rule"][::-1].copy()}
    with pytest.raises(UsageError, match="does not fit"):
        Training(corpus, SETTINGS, seed=3).restore(other, 3)


def test_counts_agree_after_any_number_of_moves():
    """Emptying all restaurants works, and what the derivations order is what the restaurants have."""
    training = trained(village().corpus)
    sampler = training.active.sampler
    fragments, customers, _, _, dishes = sampler.seating()
    assert (np.bincount(dishes[dishes >= 0], minlength=len(fragments)) == customers).all()
    sampler.empty()
    assert not sampler.restaurants().any()


def test_frozen_trees_come_back():
    training = trained(village().corpus)
    sampler = training.active.sampler
    before = sampler.seating(), sampler.restaurants()
    sampler.freeze(7, [41, 43])
    assert sampler.restaurants()[0].sum() < before[1][0].sum()
    with pytest.raises(ValueError, match="frozen"):
        sampler.blocked_sweep(7)
    with pytest.raises(ValueError, match="not those of the frozen trees"):
        sampler.replace(7, sampler.trees, sampler.states())
    sampler.unfreeze()
    assert all(np.array_equal(one, other) for one, other in zip(before[0], sampler.seating(), strict=True))
    assert np.array_equal(before[1], sampler.restaurants())


def test_words_without_a_tag_may_have_any():
    known = FlatCorpus.from_trees(map(Tree.fromstring, KNOWN))
    corpus = with_open_sentences(known, [(["a", "c"], []), (["b", "b"], [("Y", 0, 1)])]).corpus
    table = RuleTable.of_corpus(corpus, OpenPart.of_corpus(corpus))
    words = {(table.labels[label], table.words[word]) for label, _, _, word in table.rules if word >= 0}
    assert words == {("X", "a"), ("X", "b"), ("X", "c")}


def test_sentences_that_no_tree_fits_are_left_out():
    known = FlatCorpus.from_trees(map(Tree.fromstring, KNOWN))
    found = with_open_sentences(known, [(["a", "b"], [("Z", 0, 1)]), (["a", "b"], []), (["a", "b"], [("X", 0, 2)])])
    assert found.left_out == [0]
    assert OpenPart.of_corpus(found.corpus).brackets == [[], [("X", 0, 2)]]
    with pytest.raises(TreebankError, match="no rule"):
        with_open_sentences(known, [(["a", "b"], [("Z", 0, 1)])])
    with pytest.raises(TreebankError, match="no sentences"):
        with_open_sentences(known, [])
    for problem in ({"first": 9}, {"brackets": [[]]}, {"brackets": [[["X", 0, 9]], []]}, {"more": 1}):
        damaged = replace(found.corpus, settings={**found.corpus.settings})
        damaged.settings[OPEN] = {**found.corpus.settings[OPEN], **problem}
        with pytest.raises(TreebankError, match="damaged"):
            OpenPart.of_corpus(damaged)


def test_other_models_need_all_trees():
    with pytest.raises(UsageError, match="needs a tree for every sentence"):
        Training(corpora()["unary"], InsertionSettings(iterations=1))
    with pytest.raises(UsageError, match="induced labels"):
        induced_corpus([(["a"], [])], 0)
    with pytest.raises(UsageError, match="name of an induced label"):
        induced_corpus([(["X1"], [])], 1)
