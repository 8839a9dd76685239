"""The exact weight of a tree against sums over its derivations."""

from math import inf, isclose, log

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference.chart import BRIDGE, LEXICAL, UNARY, Reference, TooManyDerivations, lexical_entries, steps
from strategies import grammars, sentences

from tsgkit._chart import Chart
from tsgkit._derivations import sample_derivations
from tsgkit._grammar_index import GrammarIndex
from tsgkit._tree_score import TreeScorer
from tsgkit.grammar import WeightedGrammar
from tsgkit.parsing._rows import project

many = settings(max_examples=100, deadline=None, derandomize=True)


def tree_of(derivation, label):
    """The treebank tree of a derivation, as a tuple of rows."""
    return tuple((label[symbol], *rest, kind) for symbol, *rest, kind in derivation if kind != BRIDGE)


def scored(scorer, tree, entries):
    return scorer.log_weight(np.array(tree, dtype=np.int32), *entries)


@many
@given(data=st.data())
def test_sum_over_the_derivations_of_a_tree(data):
    grammar = data.draw(grammars(cyclic=False))
    sentence = data.draw(sentences(grammar))
    reference = Reference(grammar, sentence)
    try:
        derivations = reference.all_derivations()[reference.root, 0, len(sentence)]
    except TooManyDerivations:
        assume(False)
    weights = {}
    for weight, derivation in derivations:
        tree = tree_of(derivation, reference.label)
        weights[tree] = weights.get(tree, 0.0) + weight
    index = GrammarIndex(grammar)
    scorer, entries = TreeScorer(index), lexical_entries(grammar, index, sentence)
    for tree, weight in weights.items():
        assert isclose(scored(scorer, tree, entries), log(weight), abs_tol=1e-9)
    if weights:
        # All trees together are the words.
        total = sum(np.exp(scored(scorer, tree, entries)) for tree in weights)
        assert isclose(Chart(index).fill(*entries), log(total), abs_tol=1e-9)


def solved(reference, tree):
    """The weight of a tree from the equations, bridges in cycles included, by linear algebra."""
    n_symbols = len(reference.label)
    moves = np.zeros((n_symbols, n_symbols))
    for (kind, x, y), weight in reference.single.items():
        if kind == BRIDGE:
            moves[x, y] += weight
    values = {}
    for row, children in reversed(steps(tree)):
        label, start, _, kind = row
        base = np.zeros(n_symbols)
        for x in range(n_symbols):
            if reference.label[x] != label:
                continue
            if kind == LEXICAL:
                base[x] = reference.lexicon[start].get(x, 0.0)
            elif kind == UNARY:
                below = values[children[0]][-1]
                ways = ((y, w) for (k, one, y), w in reference.single.items() if k == UNARY and one == x)
                base[x] = sum(w * below[y] for y, w in ways)
            else:
                left, right = values[children[0]][-1], values[children[1]][-1]
                ways = ((y, z, w) for (one, y, z), w in reference.binary.items() if one == x)
                base[x] = sum(w * left[y] * right[z] for y, z, w in ways)
        for child in children:
            values[child].pop()
        # The same row can stand twice in a unary chain; the upper one is met last.
        values.setdefault(row, []).append(np.linalg.solve(np.eye(n_symbols) - moves, base))
    return values[tree[0]][-1][reference.root]


@many
@given(data=st.data())
def test_bridges_in_cycles(data):
    grammar = data.draw(grammars(cyclic=True))
    sentence = data.draw(sentences(grammar))
    reference, index = Reference(grammar, sentence), GrammarIndex(grammar)
    entries, chart = lexical_entries(grammar, index, sentence), Chart(index)
    assume(chart.fill(*entries) > -inf)
    scorer = TreeScorer(index)
    for rows, _ in sample_derivations(chart, 5, np.random.PCG64(0)):
        tree = tuple(map(tuple, project(rows, grammar.label).tolist()))
        expected = log(solved(reference, tree))
        assert isclose(scored(scorer, tree, entries), expected, rel_tol=1e-9, abs_tol=1e-9)


def test_many_bridges_in_cycles_end_soon():
    """Seven symbols of one label, all joined: the ways round are far too many to walk one by one."""
    n_symbols = 7
    pairs = [(x, y) for x in range(n_symbols) for y in range(n_symbols) if x != y]
    grammar = WeightedGrammar(
        ["A"], ["a"], [0] * n_symbols, 0,
        bridge=pairs, bridge_weight=[0.9 / (n_symbols - 1)] * len(pairs),
        lexical=[(symbol, 0) for symbol in range(n_symbols)], lexical_weight=[0.1] * n_symbols,
    )  # fmt: skip
    index = GrammarIndex(grammar)
    entries = lexical_entries(grammar, index, [0])
    # Every symbol has the value v = 0.1 + 0.9 v.
    assert isclose(scored(TreeScorer(index), [(0, 0, 1, LEXICAL)], entries), 0.0, abs_tol=1e-9)


def right_branching():
    """``A -> B A | a``, ``B -> a``."""
    return WeightedGrammar(
        ["A", "B"], ["a"], [0, 1], 0,
        binary=[(0, 1, 0)], binary_weight=[0.25],
        lexical=[(0, 0), (1, 0)], lexical_weight=[0.75, 1e-3],
    )  # fmt: skip


def test_deep_trees_stay_in_range():
    n_words = 3000
    index = GrammarIndex(right_branching())
    rows = []
    for start in range(n_words - 1):
        rows += [(0, start, n_words, 2), (1, start, start + 1, 0)]
    rows.append((0, n_words - 1, n_words, 0))
    expected = (n_words - 1) * log(0.25 * 1e-3) + log(0.75)
    entries = lexical_entries(right_branching(), index, [0] * n_words)
    assert isclose(scored(TreeScorer(index), rows, entries), expected, rel_tol=1e-9)


def test_what_the_grammar_does_not_make():
    index = GrammarIndex(right_branching())
    scorer, entries = TreeScorer(index), lexical_entries(right_branching(), index, [0, 0])
    assert scored(scorer, [(0, 0, 2, 2), (0, 0, 1, 0), (1, 1, 2, 0)], entries) == -inf
    assert scored(scorer, [(1, 0, 2, 2), (1, 0, 1, 0), (0, 1, 2, 0)], entries) == -inf
    # A failed tree leaves nothing behind.
    good = [(0, 0, 2, 2), (1, 0, 1, 0), (0, 1, 2, 0)]
    assert isclose(scored(scorer, good, entries), log(0.25 * 1e-3 * 0.75), rel_tol=1e-12)


@pytest.mark.parametrize(
    "rows",
    [
        np.empty((0, 4)),
        [(0, 0, 1)],
        [(0, 0, 1, 1)],
        [(0, 0, 1, 0), (0, 0, 1, 0)],
        [(2, 0, 1, 0)],
        [(-1, 0, 1, 0)],
        [(0, 1, 2, 0)],
        [(0, 0, 1, 3)],
        [(0, 0, 2, 2), (1, 0, 1, 0)],
    ],
)
def test_rows_that_are_no_tree(rows):
    index = GrammarIndex(right_branching())
    with pytest.raises(ValueError, match=r"not a node|not one tree|at least one node"):
        scored(TreeScorer(index), rows, lexical_entries(right_branching(), index, [0]))


@pytest.mark.parametrize(
    ("starts", "symbols", "weights"),
    [
        ([0, 1], [9], [1.0]),
        ([0, 2], [0], [1.0]),
        ([1, 1], [0], [1.0]),
        ([0, 1], [0], []),
        ([0, 2, 1], [0], [1.0]),
    ],
)
def test_entries_that_do_not_fit(starts, symbols, weights):
    entries = np.array(starts, np.int64), np.array(symbols, np.int32), np.array(weights, np.float64)
    with pytest.raises(ValueError, match=r"fit together|in order|out of range"):
        scored(TreeScorer(GrammarIndex(right_branching())), [(0, 0, 1, LEXICAL)], entries)
