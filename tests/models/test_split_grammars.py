"""Grammars made of samples of the split sampler: the probabilities of trees, sums over rules, tags of words."""

from collections import Counter
from itertools import product
from math import exp, log, prod

import numpy as np
import pytest
from reference.chart import lexical_entries
from reference.split_setting import (
    N_CLASSES,
    Setting,
    TreebankSetting,
    cell_names,
    check,
    mixed_sweeps,
    refined,
    rows_of,
    seating_of,
    sum_of_refinements,
    sums_of,
)

from tsgkit._grammar_index import GrammarIndex
from tsgkit._tree_score import TreeScorer
from tsgkit.models._srtsg import lexical_shares

PYP = (0.6, 0.3, 0.5, 0.8)


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize(("bank", "n_groups"), [("branches", 1), ("labels", 1), ("labels", 2), ("one tree", 2)])
@pytest.mark.parametrize("base", ["frequency", "uniform"])
def test_grammar_gives_trees_their_probabilities(bank, levels, classes, n_groups, base):
    setting = Setting(bank, levels=levels, discount=PYP, n_groups=n_groups, classes=classes, base=base)
    sampler = setting.sampler()
    for iteration in range(5):
        sampler.tree_sweep(iteration)
    reference, seating = setting.reference(), seating_of(sampler)
    grammar = refined(setting, sampler).grammar()
    index = GrammarIndex(grammar)
    scorer = TreeScorer(index)
    probabilities, names = sampler.probabilities(), cell_names(sampler)["rule"]
    of_order = {(symbol, *dish): probabilities[cell] for cell, (symbol, _, dish) in names.items()}
    for tree in range(setting.trees.n_trees):
        rows, words = rows_of(setting, tree)
        found = scorer.log_weight(rows, *lexical_entries(grammar, index, words))
        assert exp(found) == pytest.approx(sum_of_refinements(setting, reference, seating, tree), rel=1e-9)
        if n_groups == 1:
            # All refinements are among those that the sampler chooses from.
            first, end = setting.trees.tree_start[tree : tree + 2].tolist()
            options = [range(reference.n_options[reference.groups[node]]) for node in range(first, end)]
            every = ([0] * first + list(bits) for bits in product(*options))
            total = sum(prod(of_order[reference.order(node, bits)] for node in range(first, end)) for bits in every)
            assert exp(found) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize("base", ["frequency", "uniform"])
def test_rules_of_a_symbol_sum_to_one(levels, base):
    for bank in ("branches", "labels", "one tree"):
        setting = Setting(bank, levels=levels, discount=PYP, n_groups=2, base=base)
        made = refined(setting, setting.sampler())
        fine = made.grammar()
        assert sums_of(fine) == pytest.approx(np.ones(fine.n_symbols))
        for ancestor in (setting.subcategories.parent, setting.subcategories.label):
            coarse, symbol_map = made.projected(fine, ancestor)
            total = np.bincount(ancestor, weights=made.symbol_frequency)
            wanted = np.concatenate([total > 0, np.ones(2 * made.n_labels)])
            assert sums_of(coarse) == pytest.approx(wanted.astype(float))
            assert symbol_map[fine.root] == coarse.root
            assert (coarse.label[symbol_map] == fine.label).all()
        raw = made.raw_grammar(fine)
        # A label that has words and rules keeps the share of its words only roughly.
        pure = np.isin(lexical_shares(setting.trees), (0.0, 1.0))
        assert sums_of(raw)[pure] == pytest.approx(np.ones(pure.sum()))


@pytest.mark.parametrize("levels", [2, 3])
def test_rules_and_words_of_classes_sum_to_one(levels, monkeypatch):
    """All words of a class that were not seen with a tag are as likely as the class itself stands for."""
    monkeypatch.setattr("tsgkit.models._refined_words.SMALLEST_TAG_SHARE", 0.0)
    setting = Setting("branches", levels=levels, discount=PYP, classes=True)
    made = refined(setting, setting.sampler())
    fine = made.grammar()
    words = setting.corpus.words
    n_known = Counter(number % N_CLASSES for number in range(len(words)))
    sums = sums_of(fine)
    for (symbol, word), weight in zip(fine.lexical.tolist(), fine.lexical_weight.tolist(), strict=True):
        if word >= len(words):
            klass = setting.words.classes.index(fine.words[word])
            n_words = 1.0 / setting.words.class_word_base[klass]
            sums[symbol] += weight * (n_words - n_known[klass] - 1)
    assert fine.words == [*words, *setting.words.classes]
    assert sums == pytest.approx(np.ones(fine.n_symbols))


@pytest.mark.parametrize("classes", [False, True])
def test_raw_grammar_gives_words_the_same_tags(classes):
    for bank in ("branches", "labels", "words"):
        setting = Setting(bank, discount=PYP, classes=classes)
        made = refined(setting, setting.sampler())
        fine = made.grammar()
        raw = made.raw_grammar(fine)
        assert raw.words == fine.words
        pairs = {(int(fine.label[symbol]), word) for symbol, word in fine.lexical.tolist()}
        assert {tuple(row) for row in raw.lexical.tolist()} == pairs
        assert (raw.lexical_weight > 0).all()


def test_a_symbol_without_nodes_has_the_words_of_its_tag():
    setting = Setting("labels", classes=True, n_groups=2, discount=PYP)
    # All nodes of a label are in its first group.
    first = np.array([np.flatnonzero(setting.subcategories.group_label == label)[0] for label in range(3)])
    setting.groups = first[setting.trees.label]
    sampler = setting.sampler()
    reference, seating = setting.reference(), seating_of(sampler)
    fine = refined(setting, sampler).grammar()
    weights = {tuple(pair): weight for pair, weight in zip(fine.lexical.tolist(), fine.lexical_weight, strict=True)}
    trees, number = setting.trees, setting.subcategories.number
    for rule in np.flatnonzero(trees.rule_word >= 0).tolist():
        for symbol in np.flatnonzero(setting.subcategories.exists).tolist():
            if reference.label(symbol) == trees.rule_label[rule]:
                expected = reference.predictive(seating, symbol, rule, -1, -1)
                assert weights[number[symbol], trees.rule_word[rule]] == pytest.approx(expected, rel=1e-12)


def test_grammar_of_a_treebank():
    treebank = TreebankSetting()
    sampler = treebank.sampler()
    mixed_sweeps(sampler, range(5))
    made = refined(treebank, sampler)
    fine = made.grammar()
    coarse, symbol_map = made.projected(fine, treebank.subcategories.parent)
    assert len(symbol_map) == fine.n_symbols
    # What the class of new words leaves to other new words is missing.
    for grammar in (fine, coarse, made.raw_grammar(fine)):
        assert sums_of(grammar).max() < 1.0 + 1e-9
    reference, seating = check(treebank, sampler)
    index = GrammarIndex(fine)
    for tree in range(2):
        rows, words = rows_of(treebank, tree)
        found = TreeScorer(index).log_weight(rows, *lexical_entries(fine, index, words))
        assert found == pytest.approx(log(sum_of_refinements(treebank, reference, seating, tree)), rel=1e-9)
