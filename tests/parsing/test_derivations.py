"""Derivations out of a chart against enumeration: the best, the k best, samples."""

from collections import Counter
from math import exp, inf, isclose, log, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference.chart import Reference, TooManyDerivations, best, lexical_entries, steps
from strategies import grammars, sentences

from tsgkit._chart import Chart
from tsgkit._derivations import KBest, best_derivation, best_part, sample_derivations
from tsgkit._grammar_index import GrammarIndex
from tsgkit.grammar import WeightedGrammar

many = settings(max_examples=200, deadline=None, derandomize=True)
some = settings(max_examples=50, deadline=None, derandomize=True)


def filled(grammar, sentence, **options):
    index = GrammarIndex(grammar)
    chart = Chart(index)
    chart.fill(*lexical_entries(grammar, index, sentence), **options)
    return chart


def drawn(data, cyclic):
    """A grammar and a sentence that has a derivation, as a reference."""
    grammar = data.draw(grammars(cyclic))
    sentence = data.draw(sentences(grammar))
    reference = Reference(grammar, sentence)
    assume((reference.root, 0, len(sentence)) in reference.inside(best))
    return grammar, sentence, reference


@many
@given(data=st.data())
def test_best_derivation(data):
    grammar, sentence, reference = drawn(data, cyclic=True)
    chart = filled(grammar, sentence, viterbi=True)
    rows, log_weight = best_derivation(chart)
    assert rows.dtype == np.int32
    expected = log(reference.inside(best)[reference.root, 0, len(sentence)])
    assert isclose(chart.log_total, expected, abs_tol=1e-9)
    assert isclose(log_weight, expected, abs_tol=1e-9)
    assert isclose(reference.log_weight(rows), expected, abs_tol=1e-9)
    for (symbol, start, end), value in reference.inside(best).items():
        rows, log_weight = best_part(chart, symbol, start, end)
        assert rows[0, :3].tolist() == [symbol, start, end]
        assert isclose(log_weight, log(value), abs_tol=1e-9)
        assert isclose(sum(log(reference.step_weight(*step)) for step in steps(rows)), log(value), abs_tol=1e-9)


@many
@given(data=st.data())
def test_k_best_without_cycles(data):
    grammar, sentence, reference = drawn(data, cyclic=False)
    try:
        expected = reference.all_derivations()[reference.root, 0, len(sentence)]
    except TooManyDerivations:
        assume(False)
    ranking = KBest(filled(grammar, sentence, viterbi=True))
    found = [ranking.derivation(number) for number in range(len(expected))]
    for _ in range(2):
        assert ranking.derivation(len(expected)) is None
    assert ranking.derivation(len(expected) + 7) is None
    check_ranking(found, expected, reference)
    assert {rows_key(rows) for rows, _ in found} == {rows for _, rows in expected}


@many
@given(data=st.data())
def test_k_best_with_cycles(data):
    grammar, sentence, reference = drawn(data, cyclic=True)
    expected = reference.derivations(8)[reference.root, 0, len(sentence)]
    ranking = KBest(filled(grammar, sentence, viterbi=True))
    found = [ranking.derivation(number) for number in range(8)]
    assert found[len(expected) :] == [None] * (8 - len(expected))
    check_ranking(found[: len(expected)], expected, reference)


def check_ranking(found, expected, reference):
    for (rows, log_weight), (weight, _) in zip(found, expected, strict=True):
        assert isclose(log_weight, log(weight), abs_tol=1e-9)
        assert isclose(reference.log_weight(rows), log(weight), abs_tol=1e-9)
    assert len({rows_key(rows) for rows, _ in found}) == len(found)


def rows_key(rows):
    return tuple(map(tuple, rows.tolist()))


def test_k_best_of_a_long_sentence():
    """S -> S S over n words: the number of equal derivations is large, and all are different."""
    grammar = WeightedGrammar(
        ["S"], ["a"], [0], 0, binary=[(0, 0, 0)], binary_weight=[0.5], lexical=[(0, 0)], lexical_weight=[0.5]
    )
    ranking = KBest(filled(grammar, [0] * 120, viterbi=True))
    found = [ranking.derivation(number) for number in range(300)]
    assert len({rows_key(rows) for rows, _ in found}) == 300
    assert all(isclose(log_weight, 239 * log(0.5)) for _, log_weight in found)


# ---- samples ---------------------------------------------------------------------------------------------


def assert_drawn_from(counts, probabilities):
    """Chi-square; the bound (Laurent and Massart 2000) is passed by chance once in a million times."""
    n_draws = sum(counts.values())
    assert counts.keys() <= probabilities.keys()
    rare = [key for key, share in probabilities.items() if share * n_draws < 5]
    cells = [(counts[key], share) for key, share in probabilities.items() if key not in rare]
    cells.append((sum(counts[key] for key in rare), 1 - sum(share for _, share in cells)))
    if cells[-1][1] * n_draws < 5:
        assert cells.pop()[0] <= 30
    statistic = sum((count - n_draws * share) ** 2 / (n_draws * share) for count, share in cells)
    degrees = max(len(cells) - 1, 1)
    assert statistic <= degrees + 2 * sqrt(14 * degrees) + 28


@some
@given(data=st.data())
def test_samples_without_cycles(data):
    grammar, sentence, reference = drawn(data, cyclic=False)
    try:
        derivations = reference.all_derivations()[reference.root, 0, len(sentence)]
    except TooManyDerivations:
        assume(False)
    whole = sum(weight for weight, _ in derivations)
    weights = {rows: weight for weight, rows in derivations}
    counts = Counter()
    for rows, log_weight in sample_derivations(filled(grammar, sentence), 1500, np.random.PCG64(7)):
        counts[rows_key(rows)] += 1
        assert isclose(log_weight, log(weights[rows_key(rows)]), abs_tol=1e-9)
    assert_drawn_from(counts, {rows: weight / whole for rows, weight in weights.items()})


@some
@given(data=st.data())
def test_samples_with_cycles(data):
    grammar, sentence, reference = drawn(data, cyclic=True)
    chart = filled(grammar, sentence)
    counts, probabilities = Counter(), {}
    for rows, log_weight in sample_derivations(chart, 500, np.random.PCG64(7)):
        key = rows_key(rows)
        counts[key] += 1
        if key not in probabilities:
            assert isclose(log_weight, reference.log_weight(rows), abs_tol=1e-9)
            probabilities[key] = exp(log_weight - chart.log_total)
    assert_drawn_from(counts, probabilities)


def test_samples_many():
    """A grammar with everything in it, and enough draws to see a small mistake."""
    grammar = WeightedGrammar(
        ["S", "A"], ["a"], [0, 0, 1, 1], 0,
        binary=[(0, 2, 1), (1, 2, 2), (1, 0, 2), (2, 2, 3)], binary_weight=[0.5, 0.3, 0.2, 0.4],
        bridge=[(0, 1), (2, 3)], bridge_weight=[0.7, 0.6],
        unary=[(1, 2), (3, 1)], unary_weight=[0.4, 0.2],
        lexical=[(2, 0), (3, 0)], lexical_weight=[0.3, 0.8],
    )  # fmt: skip
    chart = filled(grammar, [0, 0, 0])
    reference = Reference(grammar, [0, 0, 0])
    counts = Counter(rows_key(rows) for rows, _ in sample_derivations(chart, 40000, np.random.PCG64(3)))
    # What was never drawn is together one cell of the test.
    assert_drawn_from(counts, {rows: exp(reference.log_weight(rows) - chart.log_total) for rows in counts})


def test_the_seed_decides():
    grammar = WeightedGrammar(
        ["S"], ["a"], [0], 0, binary=[(0, 0, 0)], binary_weight=[0.5], lexical=[(0, 0)], lexical_weight=[0.5]
    )
    chart = filled(grammar, [0] * 12)

    def draw(seed):
        return [rows_key(rows) for rows, _ in sample_derivations(chart, 5, np.random.PCG64(seed))]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    generator = np.random.PCG64(1)
    together = [rows_key(rows) for _ in range(5) for rows, _ in sample_derivations(chart, 1, generator)]
    assert together == draw(1)
    assert sample_derivations(chart, 0, generator) == []


# ---- errors ----------------------------------------------------------------------------------------------

ONE_WORD = WeightedGrammar(["S", "X"], ["a", "b"], [0, 1], 0, lexical=[(0, 0), (1, 1)], lexical_weight=[0.5, 0.5])


def test_a_chart_without_derivation():
    chart = filled(ONE_WORD, [1], viterbi=True)
    assert chart.log_total == -inf
    for ask in (best_derivation, KBest):
        with pytest.raises(ValueError, match="no derivation"):
            ask(chart)
    with pytest.raises(ValueError, match="no derivation"):
        best_part(chart, 0, 0, 1)
    for part in ((2, 0, 1), (-1, 0, 1), (0, 0, 2), (0, 1, 1), (0, -1, 1)):
        with pytest.raises(ValueError, match="no such part"):
            best_part(chart, *part)
    with pytest.raises(ValueError, match="no derivation"):
        sample_derivations(filled(ONE_WORD, [1]), 1, np.random.PCG64(1))


def test_values_of_the_other_kind():
    for ask in (best_derivation, KBest):
        with pytest.raises(ValueError, match="no Viterbi values"):
            ask(filled(ONE_WORD, [0]))
    with pytest.raises(ValueError, match="has Viterbi values"):
        sample_derivations(filled(ONE_WORD, [0], viterbi=True), 1, np.random.PCG64(1))


def test_a_ranking_belongs_to_its_sentence():
    chart = filled(ONE_WORD, [0], viterbi=True)
    ranking = KBest(chart)
    assert rows_key(ranking.derivation(0)[0]) == ((0, 0, 1, 0),)
    assert ranking.derivation(1) is None
    with pytest.raises(ValueError, match="no derivation -1"):
        ranking.derivation(-1)
    chart.fill(*lexical_entries(ONE_WORD, chart.grammar, [0]), viterbi=True)
    with pytest.raises(ValueError, match="another sentence"):
        ranking.derivation(0)
