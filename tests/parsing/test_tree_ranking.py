"""The best trees of charts and forests, all different, against enumeration."""

from itertools import pairwise
from math import inf, isclose, log

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from parsing.test_derivations import ONE_WORD, chain, drawn, filled
from parsing.test_forest import forests
from reference.chart import BRIDGE, TooManyDerivations, all_trees, lexical_entries, tree_score

from tsgkit._forest import Forest
from tsgkit._forest_sum import log_sum
from tsgkit._tree_ranking import TreeRanking
from tsgkit.grammar import WeightedGrammar

many = settings(max_examples=80, deadline=None, derandomize=True)


def listed(ranking, n):
    """The first trees, as tuples, with their scores; twice asked for, twice the same."""
    found = []
    for number in range(n):
        each = ranking.tree(number)
        assert (each is None) == (ranking.tree(number) is None)
        if each is not None:
            found.append((tuple(map(tuple, each[0].tolist())), each[1]))
    return found


def tree_of(derivation, label):
    """The tree of a derivation: a symbol without a label is no node."""
    return tuple((label[symbol], start, end, kind) for symbol, start, end, kind in derivation if kind != BRIDGE)


def best_derivations(derivations, label):
    """``{tree: weight of its best derivation}``"""
    found = {}
    for weight, rows in derivations:
        tree = tree_of(rows, label)
        found[tree] = max(found.get(tree, 0.0), weight)
    return found


def check(found, expected):
    """Trees and scores of a ranking, best first, against ``{tree: score}``."""
    assert len({tree for tree, _ in found}) == len(found)
    scores = [score for _, score in found]
    assert all(one >= other - 1e-9 for one, other in pairwise(scores))
    for tree, score in found:
        assert isclose(score, expected[tree], rel_tol=1e-9, abs_tol=1e-9)
    best = sorted(expected.values(), reverse=True)[: len(found)]
    assert all(isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) for one, other in zip(scores, best, strict=True))


@many
@given(data=st.data())
def test_all_trees_of_a_chart(data):
    grammar, sentence, reference = drawn(data, cyclic=False)
    try:
        derivations = reference.all_derivations()[reference.root, 0, len(sentence)]
    except TooManyDerivations:
        assume(False)
    expected = {tree: log(weight) for tree, weight in best_derivations(derivations, reference.label).items()}
    ranking = TreeRanking(filled(grammar, sentence, viterbi=True))
    found = listed(ranking, len(expected) + 2)
    assert len(found) == len(expected)
    check(found, expected)
    assert not ranking.is_over_budget


@many
@given(data=st.data())
def test_the_first_trees_of_a_chart_with_cycles(data):
    grammar, sentence, reference = drawn(data, cyclic=True)
    derivations = reference.derivations(12)[reference.root, 0, len(sentence)]
    weights = best_derivations(derivations, reference.label)
    # Below the last derivation there may be others.
    last = derivations[-1][0] if len(derivations) == 12 else 0.0
    certain = {tree: log(weight) for tree, weight in weights.items() if weight > last * (1 + 1e-9)}
    found = listed(TreeRanking(filled(grammar, sentence, viterbi=True)), len(certain))
    assert len(found) == len(certain)
    check(found, certain)


@many
@given(forests())
def test_all_trees_of_a_forest(parts):
    n_words, n_labels, rules = parts
    assume(sum(rule[4] >= 0 > rule[5] for rule in rules) <= 12)
    forest = Forest(n_words, n_labels, list(rules), list(rules.values()))
    for root in range(n_labels):
        try:
            trees = all_trees(rules, n_words, root)
        except TooManyDerivations:
            assume(False)
        scores = [tree_score(tree, rules, True) for tree in trees]
        # Chains with less than 1e-9 of the best tree of a label are left out of the sum.
        assert isclose(log_sum(forest, root), np.logaddexp.reduce(scores) if scores else -inf, abs_tol=1e-7)
        for is_product in (False, True):
            expected = {tree: tree_score(tree, rules, is_product) for tree in trees}
            ranking = TreeRanking(forest, product=is_product, root=root)
            found = listed(ranking, min(len(expected) + 2, 300))
            assert len(found) == min(len(expected), 300)
            check(found, expected)


@pytest.mark.parametrize("is_product", [False, True])
def test_children_with_several_trees_each(is_product):
    """Every pair of trees of two children is combined once: S -> S S, and each word is S or, below an S, an A."""
    random, n_words = np.random.default_rng(1), 4
    rules = {
        (start, split, end, 0, 0, 0): float(random.uniform(0.1, 0.9))
        for start in range(n_words)
        for end in range(start + 2, n_words + 1)
        for split in range(start + 1, end)
    }
    for start in range(n_words):
        for label, left in ((0, -1), (1, -1), (0, 1)):
            rules[start, -1, start + 1, label, left, -1] = float(random.uniform(0.1, 0.9))
    trees = all_trees(rules, n_words, 0)
    assert len(trees) == 5 * 2**n_words
    expected = {tree: tree_score(tree, rules, is_product) for tree in trees}
    ranking = TreeRanking(Forest(n_words, 2, list(rules), list(rules.values())), product=is_product, root=0)
    found = listed(ranking, len(expected) + 2)
    assert len(found) == len(expected)
    check(found, expected)


def test_trees_of_a_long_sentence():
    """S -> S S over n words: the number of equal trees is large, and all are different."""
    grammar = WeightedGrammar(
        ["S"], ["a"], [0], 0, binary=[(0, 0, 0)], binary_weight=[0.5], lexical=[(0, 0)], lexical_weight=[0.5]
    )
    found = listed(TreeRanking(filled(grammar, [0] * 120, viterbi=True)), 300)
    assert len({tree for tree, _ in found}) == 300
    assert all(isclose(score, 239 * log(0.5)) for _, score in found)


def test_a_long_chain_of_unary_rules():
    """No recursion: once it was the stack that limited the length."""
    n_symbols = 100_000
    ranking = TreeRanking(filled(chain(n_symbols, 1.0), [0], viterbi=True))
    rows, score = ranking.tree(0)
    assert rows[:, 0].tolist() == list(range(n_symbols))
    assert isclose(score, 0.0, abs_tol=1e-6)
    assert ranking.tree(1) is None


def test_many_derivations_of_one_tree():
    """Ten symbols of one label over each of twelve words: 10^12 derivations of the best tree, and one other tree."""
    n = 10
    grammar = WeightedGrammar(
        ["S", "A", "B"], ["a"], [0] + [1] * n + [2], 0,
        unary=[(0, 1), (0, n + 1)], unary_weight=[0.9, 1e-9],
        binary=[(x, y, z) for x in range(1, n + 1) for y in range(1, n + 1) for z in range(1, n + 1) if z == 1]
        + [(n + 1, n + 1, n + 1)],
        binary_weight=[0.01] * n * n + [0.5],
        lexical=[(x, 0) for x in range(1, n + 2)], lexical_weight=[0.5] * (n + 1),
    )  # fmt: skip
    found = listed(TreeRanking(filled(grammar, [0, 0, 0], viterbi=True)), 20)
    # Each of the two labels has two trees over three words.
    assert len(found) == 4


def test_no_tree():
    assert TreeRanking(Forest(2, 1), product=True, root=0).tree(0) is None
    with pytest.raises(ValueError, match="label 1 is out of range"):
        TreeRanking(Forest(2, 1), root=1)
    with pytest.raises(TypeError, match="a Chart or a Forest"):
        TreeRanking(ONE_WORD)
    with pytest.raises(ValueError, match="no derivation"):
        TreeRanking(filled(ONE_WORD, [1], viterbi=True))
    with pytest.raises(ValueError, match="no Viterbi values"):
        TreeRanking(filled(ONE_WORD, [0]))


def test_a_ranking_belongs_to_its_sentence():
    chart = filled(ONE_WORD, [0], viterbi=True)
    ranking = TreeRanking(chart)
    assert listed(ranking, 2) == [(((0, 0, 1, 0),), pytest.approx(log(0.5)))]
    with pytest.raises(ValueError, match="no tree -1"):
        ranking.tree(-1)
    chart.fill(*lexical_entries(ONE_WORD, chart.grammar, [0]), viterbi=True)
    with pytest.raises(ValueError, match="another sentence"):
        ranking.tree(0)


def test_memory_is_bounded():
    """The list ends before memory does, and says so."""
    n_words, n_labels = 60, 20
    random = np.random.default_rng(1)
    rules = {(word, -1, word + 1, label, -1, -1): 0.5 for word in range(n_words) for label in range(n_labels)}
    for start in range(n_words):
        for end in range(start + 2, n_words + 1):
            others = random.integers(0, n_labels, (2 * n_labels, 2)).tolist()
            rules.update({(start, start + 1, end, x // 2, y, z): 0.5 for x, (y, z) in enumerate(others)})
    forest = Forest(n_words, n_labels, list(rules), list(rules.values()))
    forest.max_bytes = 1 << 20
    ranking = TreeRanking(forest, product=True, root=0)
    n_found = len(listed(ranking, 3000))
    assert 0 < n_found < 3000
    assert ranking.is_over_budget
    assert ranking.tree(0)[1] > -inf
