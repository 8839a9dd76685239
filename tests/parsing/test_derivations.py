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
from tsgkit._derivations import best_derivation, best_part, best_symbols, sample_derivations
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


def rows_key(rows):
    return tuple(map(tuple, rows.tolist()))


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
    with pytest.raises(ValueError, match="no derivation"):
        best_derivation(chart)
    with pytest.raises(ValueError, match="no derivation"):
        best_part(chart, 0, 0, 1)
    for part in ((2, 0, 1), (-1, 0, 1), (0, 0, 2), (0, 1, 1), (0, -1, 1)):
        with pytest.raises(ValueError, match="no such part"):
            best_part(chart, *part)
    with pytest.raises(ValueError, match="no derivation"):
        sample_derivations(filled(ONE_WORD, [1]), 1, np.random.PCG64(1))


def test_values_of_the_other_kind():
    with pytest.raises(ValueError, match="no Viterbi values"):
        best_derivation(filled(ONE_WORD, [0]))
    with pytest.raises(ValueError, match="has Viterbi values"):
        sample_derivations(filled(ONE_WORD, [0], viterbi=True), 1, np.random.PCG64(1))


@some
@given(data=st.data())
def test_best_symbols(data):
    grammar, sentence, reference = drawn(data, cyclic=True)
    chart = filled(grammar, sentence, viterbi=True)
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=grammar.n_symbols, max_size=grammar.n_symbols)))
    symbols, values = best_symbols(chart, allowed)
    inside = reference.inside(best)
    for start in range(len(sentence)):
        for end in range(start + 1, len(sentence) + 1):
            expected = max((inside.get((x, start, end), 0.0) for x in np.flatnonzero(allowed).tolist()), default=0.0)
            if expected == 0.0:
                assert (symbols[start, end], values[start, end]) == (-1, -inf)
            else:
                assert allowed[symbols[start, end]]
                assert isclose(values[start, end], log(expected), abs_tol=1e-9)
    with pytest.raises(ValueError, match="one flag"):
        best_symbols(chart, allowed[1:])


# ---- borders ---------------------------------------------------------------------------------------------


def chain(n_symbols, weight):
    """A symbol, its only child, and so on down to a word."""
    steps = [(symbol, symbol + 1) for symbol in range(n_symbols - 1)]
    return WeightedGrammar(
        [f"L{number}" for number in range(n_symbols)], ["a"], range(n_symbols), 0, unary=steps,
        unary_weight=[weight] * len(steps), lexical=[(n_symbols - 1, 0)], lexical_weight=[1.0],
    )  # fmt: skip


@pytest.mark.parametrize(("n_symbols", "weight"), [(3, 1e-200), (2, 5e-324), (2, 1e308), (5, 1e-120), (3, 1e150)])
@pytest.mark.parametrize("viterbi", [False, True])
def test_values_at_the_borders_of_floats(n_symbols, weight, viterbi):
    """Scale factors bring them into range: 480 decades below one, 300 above."""
    chart = filled(chain(n_symbols, weight), [0], viterbi=viterbi)
    assert isclose(chart.log_total, (n_symbols - 1) * log(weight), rel_tol=1e-9)
    if viterbi:
        assert isclose(best_derivation(chart)[1], chart.log_total, rel_tol=1e-9)


def test_values_beyond_the_borders():
    """No factor helps: values that are 0, or infinite, are no derivation or an error, but never another tree."""
    assert filled(chain(6, 1e-300), [0], viterbi=True).log_total == -inf
    with pytest.raises(OverflowError, match="range of floats"):
        filled(chain(6, 1e300), [0], viterbi=True)


def test_a_cycle_that_is_hardly_ever_left():
    """A sampled path through it has 10^9 steps on average; there is not enough memory for that."""
    grammar = WeightedGrammar(
        ["A", "B"], ["a"], [0, 1], 0, unary=[(0, 1), (1, 0)], unary_weight=[1 - 1e-9, 1.0],
        lexical=[(0, 0)], lexical_weight=[1e-9],
    )  # fmt: skip
    index = GrammarIndex(grammar)
    chart = Chart(index, 1 << 22)
    chart.fill(*lexical_entries(grammar, index, [0]))
    with pytest.raises(OverflowError, match="hardly ever left"):
        sample_derivations(chart, 10, np.random.PCG64(1))
