"""Posteriors of treebank rules and the trees that are best by them, against enumeration."""

from math import inf, isclose, log

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference.chart import (
    UNARY,
    Reference,
    TooManyDerivations,
    best_tree_score,
    lexical_entries,
    tree_score,
)
from strategies import grammars, sentences, sized

from tsgkit._chart import Chart
from tsgkit._forest import Forest
from tsgkit._grammar_index import GrammarIndex
from tsgkit._posteriors import forest_of
from tsgkit.grammar import WeightedGrammar

many = settings(max_examples=200, deadline=None, derandomize=True)


def filled(grammar, sentence, **options):
    index = GrammarIndex(grammar)
    chart = Chart(index)
    if chart.fill(*lexical_entries(grammar, index, sentence), **options) > -inf:
        chart.fill_outside()
    return chart


def rules_of(forest):
    rules = [tuple(rule) for rule in forest.rules.tolist()]
    assert len(set(rules)) == len(rules)
    return dict(zip(rules, forest.posteriors.tolist(), strict=True))


def assert_close(found, expected, tolerance=1e-9):
    for key in found.keys() | expected.keys():
        assert isclose(found.get(key, 0.0), expected.get(key, 0.0), rel_tol=tolerance, abs_tol=1e-11), key


def nodes_of(counts):
    nodes = {}
    for (start, _, end, label, _, _), value in counts.items():
        nodes[label, start, end] = nodes.get((label, start, end), 0.0) + value
    return nodes


def check_best_trees(forest, n_words, roots):
    counts = rules_of(forest)
    for is_product in (False, True):
        for root in roots:
            expected = best_tree_score(counts, n_words, root, is_product)
            rows, score = forest.best_tree(is_product, root)
            assert isclose(score, expected, rel_tol=1e-9, abs_tol=1e-9)
            if expected == -inf:
                assert rows is None
                continue
            assert rows[0, :3].tolist() == [root, 0, n_words]
            assert isclose(tree_score(rows, counts, is_product), expected, rel_tol=1e-9, abs_tol=1e-9)


@many
@given(data=st.data())
def test_posteriors_are_sums_over_derivations(data):
    grammar = data.draw(grammars(cyclic=False))
    sentence = data.draw(sentences(grammar))
    reference = Reference(grammar, sentence)
    try:
        derivations = reference.all_derivations()[reference.root, 0, len(sentence)]
    except TooManyDerivations:
        assume(False)
    assume(derivations)
    whole = sum(weight for weight, _ in derivations)
    expected = {}
    for weight, rows in derivations:
        for rule in reference.treebank_rules(rows):
            expected[rule] = expected.get(rule, 0.0) + weight / whole
    forest = forest_of(filled(grammar, sentence))
    assert (forest.n_words, forest.n_labels) == (len(sentence), len(grammar.labels))
    assert_close(rules_of(forest), expected)
    assert_close(forest.node_posteriors(), nodes_of(expected))
    check_best_trees(forest, len(sentence), range(len(grammar.labels)))


@many
@given(data=st.data())
def test_posteriors_with_cycles(data):
    grammar = data.draw(grammars())
    sentence = data.draw(sentences(grammar))
    chart = filled(grammar, sentence)
    assume(chart.log_total > -inf)
    forest = forest_of(chart)
    expected = Reference(grammar, sentence).rule_counts()
    assert_close(rules_of(forest), expected, 1e-8)
    assert_close(forest.node_posteriors(), nodes_of(expected), 1e-8)
    check_best_trees(forest, len(sentence), range(len(grammar.labels)))


@st.composite
def forests(draw):
    """Rules anywhere with posteriors of any size, as no grammar would have them."""
    n_words, n_labels = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    label = st.integers(0, n_labels - 1)
    posterior = st.one_of(st.sampled_from([0.25, 0.5, 1.0]), st.floats(1e-6, 1.0))
    rules = {(start, -1, start + 1, draw(label), -1, -1): 1.0 for start in range(n_words)}
    place = st.tuples(st.integers(0, n_words - 1), st.integers(1, n_words), st.integers(1, n_words))
    rule = st.tuples(place, label, label, label, st.booleans(), posterior)
    for (start, length, cut), parent, left, right, is_unary, value in draw(sized(rule, 0, 25)):
        end = min(start + length, n_words)
        if is_unary:
            rules[start, -1, end, parent, left, -1] = value
        elif start < end - 1:
            rules[start, min(start + cut, end - 1), end, parent, left, right] = value
    return n_words, n_labels, rules


@many
@given(forests(), st.randoms(use_true_random=False))
def test_best_trees_of_any_forest(parts, random):
    n_words, n_labels, rules = parts
    assume(sum(rule[4] >= 0 > rule[5] for rule in rules) <= 12)
    # Every rule in two parts and in any order: what is equal is added up.
    rows = [*rules, *rules]
    shares = [value * 0.25 for value in rules.values()] + [value * 0.75 for value in rules.values()]
    order = list(range(len(rows)))
    random.shuffle(order)
    forest = Forest(n_words, n_labels, [rows[i] for i in order], [shares[i] for i in order])
    assert_close(rules_of(forest), rules)
    check_best_trees(forest, n_words, range(n_labels))


def test_long_chains():
    """Of many unary rules MER looks at the twelve most probable ones; the product looks at all."""
    n_labels = 5
    rng = np.random.default_rng(5)
    rules = {(0, -1, 1, 4, -1, -1): 1.0}
    for parent in range(n_labels):
        for child in range(n_labels):
            if parent != child:
                rules[0, -1, 1, parent, child, -1] = float(rng.uniform(0.1, 1.0))
    forest = Forest(1, n_labels, list(rules), list(rules.values()))
    likely = sorted((rule for rule in rules if rule[4] >= 0), key=rules.get)[-12:]
    fewer = {rule: value for rule, value in rules.items() if rule[4] < 0 or rule in likely}
    for root in range(n_labels):
        assert isclose(forest.best_tree(False, root)[1], best_tree_score(fewer, 1, root, False))
        assert isclose(forest.best_tree(True, root)[1], best_tree_score(rules, 1, root, True))


def test_rules_used_more_than_once():
    """In a cycle the expected number of a unary rule may exceed one; a chain then gains by it."""
    grammar = WeightedGrammar(
        ["A", "B", "C"], ["a"], [0, 1, 2], 0,
        unary=[(0, 1), (1, 0), (0, 2), (1, 2), (2, 1)], unary_weight=[0.9, 0.95, 0.02, 0.03, 0.5],
        lexical=[(0, 0), (2, 0)], lexical_weight=[0.01, 0.5],
    )  # fmt: skip
    chart = filled(grammar, [0])
    forest = forest_of(chart)
    assert max(value for rule, value in rules_of(forest).items() if rule[4] >= 0) > 1
    check_best_trees(forest, 1, range(3))


@pytest.mark.parametrize("n_words", [65, 130, 250])
def test_a_long_sentence(n_words):
    """X over the whole, a right-branching comb of S below: every rule is certain."""
    grammar = WeightedGrammar(
        ["X", "S", "A"], ["a"], [0, 1, 2], 0, unary=[(0, 1)], unary_weight=[0.5],
        binary=[(1, 2, 1)], binary_weight=[0.5], lexical=[(2, 0), (1, 0)], lexical_weight=[0.1, 0.2],
    )  # fmt: skip
    forest = forest_of(filled(grammar, [0] * n_words))
    counts = rules_of(forest)
    assert len(counts) == 2 * n_words
    assert all(isclose(value, 1.0) for value in counts.values())
    for is_product, expected in ((False, 2 * n_words), (True, 0.0)):
        rows, score = forest.best_tree(is_product, 0)
        assert isclose(score, expected, abs_tol=1e-9)
        assert isclose(tree_score(rows, counts, is_product), expected, abs_tol=1e-9)
        assert rows[0].tolist() == [0, 0, n_words, UNARY]


def test_small_posteriors_are_left_out():
    grammar = WeightedGrammar(
        ["S", "A", "B"], ["a"], [0, 1, 2], 0, unary=[(0, 1), (0, 2)], unary_weight=[0.9, 0.1],
        lexical=[(1, 0), (2, 0)], lexical_weight=[1.0, 1.0],
    )  # fmt: skip
    chart = filled(grammar, [0])
    assert len(forest_of(chart).rules) == 4
    assert rules_of(forest_of(chart, 0.5)) == {
        (0, -1, 1, 0, 1, -1): pytest.approx(0.9),
        (0, -1, 1, 1, -1, -1): pytest.approx(0.9),
    }


def test_a_forest_stays_within_the_bound_of_its_chart():
    grammar = WeightedGrammar(
        ["S"], ["a"], [0], 0, binary=[(0, 0, 0)], binary_weight=[0.3], lexical=[(0, 0)], lexical_weight=[0.7]
    )
    index = GrammarIndex(grammar)
    entries = lexical_entries(grammar, index, [0] * 30)
    needed = Chart(index)
    needed.fill(*entries)
    for spare, fits in ((10_000, False), (10_000_000, True)):
        chart = Chart(index, needed.n_bytes + spare)
        chart.fill(*entries)
        chart.fill_outside()
        forest = forest_of(chart)
        assert forest.is_over_budget == (not fits)
        assert bool(len(forest.rules)) == fits
        assert (forest.best_tree(True, 0)[0] is not None) == fits


def test_no_tree():
    forest = Forest(2, 2, [(0, -1, 1, 0, -1, -1), (1, -1, 2, 0, -1, -1)], [1.0, 1.0])
    for is_product in (False, True):
        assert forest.best_tree(is_product, 0) == (None, -inf)
    assert Forest(3, 1).best_tree(False, 0) == (None, -inf)
    assert Forest(1, 1, np.empty((0, 6), np.int32), []).best_tree(True, 0) == (None, -inf)


def test_a_unary_rule_over_nothing():
    forest = Forest(1, 3, [(0, -1, 1, 0, 1, -1), (0, -1, 1, 1, 2, -1)], [1.0, 1.0])
    for is_product in (False, True):
        assert forest.best_tree(is_product, 0) == (None, -inf)


@pytest.mark.parametrize("root", [-1, 2, 100])
def test_a_root_that_is_no_label(root):
    forest = Forest(1, 2, [(0, -1, 1, 0, -1, -1)], [1.0])
    with pytest.raises(ValueError, match="label"):
        forest.best_tree(False, root)


@pytest.mark.parametrize(
    ("rule", "posterior"),
    [
        ((0, 1, 2, 0, 0, 0), 0.0),
        ((0, 1, 2, 0, 0, 0), -0.5),
        ((0, 1, 2, 0, 0, 0), float("nan")),
        ((0, 1, 2, 0, 0, 0), inf),
        ((-1, 1, 2, 0, 0, 0), 1.0),
        ((0, 1, 4, 0, 0, 0), 1.0),
        ((0, 0, 2, 0, 0, 0), 1.0),
        ((0, 2, 2, 0, 0, 0), 1.0),
        ((0, 1, 2, 2, 0, 0), 1.0),
        ((0, 1, 2, 0, 2, 0), 1.0),
        ((0, 1, 2, 0, 0, 2), 1.0),
        ((0, 1, 2, 0, -1, 0), 1.0),
        ((0, 1, 2, 0, 0, -1), 1.0),
        ((0, -1, 2, 0, -1, -1), 1.0),
        ((0, -1, 2, 0, -2, -1), 1.0),
        ((2, 1, 1, 0, 0, 0), 1.0),
    ],
)
def test_bad_rules(rule, posterior):
    with pytest.raises(ValueError, match="does not fit"):
        Forest(3, 2, [rule], [posterior])


def test_a_posterior_for_every_rule():
    with pytest.raises(ValueError, match="one posterior"):
        Forest(3, 2, [(0, -1, 1, 0, -1, -1)], [0.5, 0.5])


def test_charts_without_posteriors():
    grammar = WeightedGrammar(["S"], ["a"], [0], 0, lexical=[(0, 0)], lexical_weight=[0.5])
    index = GrammarIndex(grammar)
    chart = Chart(index)
    chart.fill(*lexical_entries(grammar, index, [0]))
    with pytest.raises(ValueError, match="outside"):
        forest_of(chart)
    with pytest.raises(ValueError, match="inside and outside"):
        forest_of(filled(grammar, [0], viterbi=True))


def test_scores_are_of_the_given_posteriors():
    rules = [(0, -1, 1, 0, -1, -1), (1, -1, 2, 1, -1, -1), (0, 1, 2, 2, 0, 1), (0, -1, 2, 3, 2, -1)]
    forest = Forest(2, 4, rules, [0.5, 0.25, 0.125, 2.0])
    rows, score = forest.best_tree(True, 3)
    assert rows.tolist() == [[3, 0, 2, 1], [2, 0, 2, 2], [0, 0, 1, 0], [1, 1, 2, 0]]
    assert isclose(score, log(0.5 * 0.25 * 0.125 * 2.0))
    assert isclose(forest.best_tree(False, 3)[1], 2.875)
