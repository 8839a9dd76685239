"""The chart against plain enumeration and equations, and against closed forms where sentences are long."""

from math import comb, inf, isclose, log

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference.chart import Reference, TooManyDerivations, lexical_entries
from reference.filled_chart import assert_fits, assert_same, bush, filled, items_of
from strategies import grammars, sentences, sized

from tsgkit._cell_closing import OpenCells
from tsgkit._chart import Chart
from tsgkit._derivations import best_derivation, sample_derivations
from tsgkit._grammar_index import GrammarIndex
from tsgkit._posteriors import forest_of
from tsgkit._pruning import Projection
from tsgkit.grammar import WeightedGrammar

many = settings(max_examples=200, deadline=None, derandomize=True)
some = settings(max_examples=100, deadline=None, derandomize=True)


# ---- values ----------------------------------------------------------------------------------------------


@many
@given(data=st.data())
def test_values_solve_the_equations(data):
    grammar = data.draw(grammars())
    sentence = data.draw(sentences(grammar))
    for viterbi in (False, True):
        assert_fits(filled(grammar, sentence, viterbi=viterbi), Reference(grammar, sentence))


@many
@given(data=st.data())
def test_weights_of_cells(data):
    """A closed cell has no values, and the binary rules of an open one are multiplied by its weight."""
    grammar = data.draw(grammars())
    sentence = data.draw(sentences(grammar))
    n_rows = len(sentence) + 1
    weight = st.sampled_from([0.0, 1.0, 1.0, 0.25, 3.0])
    weights = np.array(data.draw(sized(weight, n_rows * n_rows, n_rows * n_rows))).reshape(n_rows, n_rows)
    cells = OpenCells(weights)
    spans = [(start, end) for start in range(n_rows) for end in range(start + 1, n_rows)]
    assert cells.count() == sum(weights[span] > 0 for span in spans)
    assert [cells.is_open(*span) for span in spans] == [weights[span] > 0 for span in spans]
    for viterbi in (False, True):
        reference = Reference(
            grammar,
            sentence,
            allowed=lambda symbol, start, end: weights[start, end] > 0,
            factor=lambda start, end: weights[start, end],
        )
        chart = filled(grammar, sentence, viterbi=viterbi, open_cells=cells)
        if assert_fits(chart, reference) and cells.has_weights:
            with pytest.raises(ValueError, match="weights of cells"):
                best_derivation(chart) if viterbi else forest_of(chart, 1e-5)


def test_open_cells_that_do_not_fit():
    with pytest.raises(ValueError, match="2 x 3 weights"):
        OpenCells(np.ones((2, 3)))
    for value in (-1.0, inf, np.nan):
        with pytest.raises(ValueError, match=r"cell 0\.\.1: must be finite and at least 0"):
            OpenCells(np.full((2, 2), value))
    cells = OpenCells(np.ones((3, 3)))
    with pytest.raises(IndexError, match=r"span 0\.\.3 is out of range: there are 2 words"):
        cells.is_open(0, 3)
    with pytest.raises(ValueError, match="those of another sentence"):
        filled(bush(), [0], open_cells=cells)


@many
@given(data=st.data())
def test_values_are_sums_over_derivations(data):
    grammar = data.draw(grammars(cyclic=False))
    sentence = data.draw(sentences(grammar))
    reference = Reference(grammar, sentence)
    try:
        derivations = reference.all_derivations()
    except TooManyDerivations:
        assume(False)
    found = {item: [weight for weight, _ in ways] for item, ways in derivations.items() if ways}
    whole = derivations[reference.root, 0, len(sentence)]
    through = {}
    for weight, rows in whole:
        for symbol, start, end, _ in rows:
            through.setdefault((symbol, start, end), []).append(weight)
    for viterbi, combine in ((False, sum), (True, max)):
        chart = filled(grammar, sentence, viterbi=viterbi)
        inside = items_of(chart)
        assert_same(inside, {item: combine(ways) for item, ways in found.items()})
        assert (chart.log_total > -inf) == bool(whole)
        if whole:
            assert isclose(chart.log_total, log(combine(weight for weight, _ in whole)), abs_tol=1e-9)
            chart.fill_outside()
            both = {item: value + inside[item] for item, value in items_of(chart, outside=True).items()}
            assert_same(both, {item: combine(ways) for item, ways in through.items()})


@many
@given(data=st.data(), smallest=st.sampled_from([1e-3, 0.1, 0.6]))
def test_small_shares_get_no_outside_value(data, smallest):
    grammar = data.draw(grammars())
    sentence = data.draw(sentences(grammar))
    for viterbi in (False, True):
        chart, exact = (filled(grammar, sentence, viterbi=viterbi) for _ in range(2))
        assume(chart.log_total > -inf)
        exact.fill_outside()
        chart.fill_outside(smallest)
        inside, kept, all_values = items_of(chart), items_of(chart, outside=True), items_of(exact, outside=True)
        for item, value in kept.items():
            assert value <= all_values[item] + 1e-9
            assert value + inside[item] - chart.log_total >= log(smallest) - 1e-9
        if viterbi:
            large = {
                item: value
                for item, value in all_values.items()
                if value + inside[item] - chart.log_total > log(smallest) + 1e-9
            }
            assert {item: kept[item] for item in large} == pytest.approx(large)
        chart.fill_outside()
        assert items_of(chart, outside=True) == all_values


@some
@given(data=st.data())
def test_weights_of_any_size(data):
    grammar = data.draw(grammars(cyclic=False))
    for kind in ("binary", "unary", "bridge", "lexical"):
        weights = getattr(grammar, f"{kind}_weight")
        powers = data.draw(st.lists(st.integers(-30, 30), min_size=len(weights), max_size=len(weights)))
        setattr(grammar, f"{kind}_weight", weights * 10.0 ** np.array(powers, dtype=float))
    # Short enough for the range of floats, as the values of a cell must fit into it together.
    sentence = data.draw(sentences(grammar, 2))
    for viterbi in (False, True):
        assert_fits(filled(grammar, sentence, viterbi=viterbi), Reference(grammar, sentence))


def test_entries_of_the_same_symbol_are_one():
    grammar = WeightedGrammar(["S"], ["a"], [0], 0, lexical=[(0, 0)], lexical_weight=[1.0])
    for viterbi in (False, True):
        chart = Chart(GrammarIndex(grammar))
        entries = np.array([0, 2]), np.zeros(2, np.int32), np.array([0.25, 0.5])
        assert isclose(chart.fill(*entries, viterbi=viterbi), log(0.75))
    assert isclose(best_derivation(chart)[1], log(0.75))


# ---- one chart for many sentences ------------------------------------------------------------------------


@some
@given(data=st.data())
def test_nothing_stays_of_the_last_sentence(data):
    grammar = data.draw(grammars())
    index = GrammarIndex(grammar)
    chart, coarse = Chart(index), Chart(index)
    projection = Projection(index, index, range(len(grammar.labels)), range(grammar.n_symbols))
    for sentence in data.draw(st.lists(sentences(grammar, 8), min_size=2, max_size=6)):
        entries = lexical_entries(grammar, index, sentence)
        mask = None
        if coarse.fill(*entries) > -inf:
            coarse.fill_outside()
            mask = coarse.make_mask(data.draw(st.sampled_from([0.0, 0.2])))
        for options in data.draw(
            st.lists(
                st.sampled_from(
                    [{}, {"viterbi": True}, {"mask": mask}, {"mask": mask, "viterbi": True}, {"growth": -2.0}]
                ),
                min_size=1,
                max_size=4,
            )
        ):
            fresh = Chart(index)
            for one in (chart, fresh):
                one.fill(*entries, projection=projection, **options)
            # To the last bit: nothing but the sentence may enter.
            assert chart.log_total == fresh.log_total
            assert items_of(chart) == items_of(fresh)
            if chart.log_total > -inf:
                for one in (chart, fresh):
                    one.fill_outside()
                assert items_of(chart, outside=True) == items_of(fresh, outside=True)
                assert chart.make_mask(0.1).count() == fresh.make_mask(0.1).count()
            if chart.log_total > -inf and not chart.is_viterbi:
                one, other = forest_of(chart), forest_of(fresh)
                assert (one.rules == other.rules).all()
                assert (one.posteriors == other.posteriors).all()
                assert (forest_of(chart).posteriors == one.posteriors).all()


# ---- long sentences --------------------------------------------------------------------------------------


def log_n_trees(n_leaves):
    """The logarithm of the number of binary trees: Catalan's."""
    return log(comb(2 * n_leaves - 2, n_leaves - 1) // n_leaves)


@pytest.mark.parametrize("weight", [0.5, 1e-30, 1e30, 1e-60, 1e60])
@pytest.mark.parametrize("n_words", [2, 63, 64, 65, 127, 128, 129, 250])
def test_all_trees_over_a_long_sentence(weight, n_words):
    grammar = bush(weight=weight)
    sentence = [word % 3 % 2 for word in range(n_words)]
    log_word = [log([0.25, 1e-6][word]) for word in sentence]
    index = GrammarIndex(grammar)
    entries = lexical_entries(grammar, index, sentence)
    free = Chart(index)
    free.fill(*entries)
    free.fill_outside()
    projection = Projection(index, index, [0])
    masked = Chart(index)
    masked.fill(*entries, mask=free.make_mask(0.0), projection=projection)
    masked.fill_outside()
    for chart in (free, masked):
        assert isclose(chart.log_total, log_n_trees(n_words) + (n_words - 1) * log(weight) + sum(log_word))
        for start in range(0, n_words, 7):
            for end in range(start + 1, n_words + 1, 5):
                length, outer = end - start, n_words - (end - start)
                inside = log_n_trees(length) + (length - 1) * log(weight) + sum(log_word[start:end])
                # Seen from outside, the span is one leaf.
                outside = log_n_trees(outer + 1) + outer * log(weight)
                outside += sum(log_word[:start]) + sum(log_word[end:])
                assert isclose(chart.inside_values(start, end)[0], inside, rel_tol=1e-9)
                assert isclose(chart.outside_values(start, end)[0], outside, rel_tol=1e-9, abs_tol=1e-9)
    viterbi = Chart(index)
    viterbi.fill(*entries, viterbi=True)
    assert isclose(viterbi.log_total, (n_words - 1) * log(weight) + sum(log_word))
    rows, log_weight = best_derivation(viterbi)
    assert len(rows) == 2 * n_words - 1
    assert isclose(log_weight, viterbi.log_total)


def test_scale_factors_are_found_for_a_single_word():
    """The factors that long sentences start from would take these values out of the range of floats."""
    for power, n_rules in ((200, 2), (-100, 2)):
        chain = [(number, number + 1) for number in range(n_rules)]
        grammar = WeightedGrammar(
            ["S"], ["a"], [0] * (n_rules + 1), 0, bridge=chain, bridge_weight=[10.0**power] * n_rules,
            lexical=[(n_rules, 0)], lexical_weight=[0.5],
        )  # fmt: skip
        assert isclose(filled(grammar, [0]).log_total, n_rules * power * log(10) + log(0.5))


def test_values_that_no_scale_factor_brings_into_range():
    grammar = WeightedGrammar(
        ["S"], ["a"], [0] * 9, 0, bridge=[(number, number + 1) for number in range(8)],
        bridge_weight=[1e200] * 8, lexical=[(8, 0)], lexical_weight=[0.5],
    )  # fmt: skip
    index = GrammarIndex(grammar)
    chart = Chart(index)
    with pytest.raises(OverflowError, match="range of floats"):
        chart.fill(*lexical_entries(grammar, index, [0]))
    assert chart.log_total == -inf
    with pytest.raises(ValueError, match="no derivation"):
        chart.fill_outside()


@pytest.mark.parametrize("n_left", [1, 63, 64, 65])
@pytest.mark.parametrize("n_before", [1, 62, 63, 64, 65, 127, 128])
def test_a_single_split_point_anywhere(n_before, n_left):
    """p..p a..a b..b, cut where the mask allows it: near the ends of words of 64 flags."""
    labels = ["X", "S", "P", "A", "B"]
    parts = {"p": n_before, "a": n_left, "b": 64}
    sentence = [word for word, count in enumerate(parts.values()) for _ in range(count)]
    rules = [(0, 2, 1), (1, 3, 4), (2, 2, 2), (3, 3, 3), (4, 4, 4)]
    coarse = WeightedGrammar(
        labels, list(parts), range(5), 0, binary=rules, binary_weight=[0.5] * 5,
        lexical=[(2, 0), (3, 1), (4, 2)], lexical_weight=[0.5] * 3,
    )  # fmt: skip
    # The fine grammar has two symbols for B, and would cut anywhere if it might.
    fine = WeightedGrammar(
        labels, list(parts), [0, 1, 2, 3, 4, 4], 0,
        binary=[*rules, (1, 3, 5), (1, 4, 3), (3, 2, 3), (4, 4, 3), (2, 2, 3), (5, 5, 5)],
        binary_weight=[0.5] * 11,
        lexical=[(2, 0), (3, 1), (4, 2), (5, 2)], lexical_weight=[0.5, 0.5, 0.5, 0.25],
    )  # fmt: skip
    coarse_chart = filled(coarse, sentence)
    coarse_chart.fill_outside()
    mask = coarse_chart.make_mask(0.0)
    index = GrammarIndex(fine)
    projection = Projection(index, coarse_chart.grammar, range(5))
    chart = filled(fine, sentence, index, mask=mask, projection=projection)
    trees = sum(log_n_trees(count) for count in parts.values())
    n_words = len(sentence)
    expected = trees + (2 * n_words - 1) * log(0.5) + log(1 + 0.5**64)
    assert isclose(chart.log_total, expected)
    chart.fill_outside()
    root = (0, n_words)
    assert isclose(chart.outside_values(*root)[0], 0.0, abs_tol=1e-9)
    share = chart.inside_values(n_before, n_words)[1] + chart.outside_values(n_before, n_words)[1]
    assert isclose(share, chart.log_total)
    found = {(start, split, end) for start, split, end, label, *_ in forest_of(chart, 0.1).rules.tolist() if label <= 1}
    assert found == {(0, n_before, n_words), (n_before, n_before + n_left, n_words)}


def test_a_long_right_linear_sentence():
    """One derivation, under a grammar of many symbols, with very different words."""
    n_symbols, n_words = 130, 250
    chain = [(symbol, (symbol + 1) % n_symbols) for symbol in range(n_symbols)]
    lexical_weight = [10.0 ** -(symbol % 25) for symbol in range(n_symbols)]
    grammar = WeightedGrammar(
        [f"L{number}" for number in range(n_symbols)] + ["T"], [f"w{number}" for number in range(n_symbols)],
        [*range(n_symbols), n_symbols], n_symbols - 1,
        binary=[(x, n_symbols, y) for x, y in chain], binary_weight=[0.5] * n_symbols,
        lexical=[(n_symbols, word) for word in range(n_symbols)] + [(x, 0) for x in range(n_symbols)],
        lexical_weight=lexical_weight + [0.125] * n_symbols,
    )  # fmt: skip
    sentence = [word % n_symbols for word in range(n_words - 1)] + [0]
    expected = (n_words - 1) * log(0.5) + sum(log(lexical_weight[word]) for word in sentence[:-1]) + log(0.125)
    for viterbi in (False, True):
        assert isclose(filled(grammar, sentence, viterbi=viterbi).log_total, expected)
    rows, log_weight = best_derivation(filled(grammar, sentence, viterbi=True))
    assert isclose(Reference(grammar, sentence).log_weight(rows), expected)
    assert isclose(log_weight, expected)


# ---- limits and errors -----------------------------------------------------------------------------------


def test_memory_bound():
    grammar = bush()
    index = GrammarIndex(grammar)
    chart = Chart(index, max_bytes=20_000)
    short, long = [0, 1, 0], [0] * 100
    for viterbi in (False, True):
        for sentence in (short, long, short, [0] * 20, [0] * 30, [0] * 40, short):
            log_total = chart.fill(*lexical_entries(grammar, index, sentence), viterbi=viterbi)
            fresh = filled(grammar, sentence, viterbi=viterbi)
            assert chart.is_over_budget == (fresh.n_bytes > 20_000)
            if not chart.is_over_budget:
                assert log_total == fresh.log_total
                assert items_of(chart) == items_of(fresh)
                continue
            assert log_total == chart.log_total == -inf
            assert chart.inside_values(0, 1) == {}
            with pytest.raises(ValueError, match="no derivation"):
                chart.fill_outside()
            with pytest.raises(ValueError, match="no derivation"):
                best_derivation(chart) if viterbi else sample_derivations(chart, 1, np.random.PCG64(1))
    assert Chart(index, max_bytes=0).fill(*lexical_entries(grammar, index, short)) == -inf


def test_the_bound_holds_before_memory_is_taken():
    index = GrammarIndex(bush())
    chart = Chart(index)
    n_words = 1_000_000
    starts = np.arange(n_words + 1)
    assert chart.fill(starts, np.zeros(n_words, np.int32), np.ones(n_words)) == -inf
    assert chart.is_over_budget
    assert chart.fill(starts[:2], np.zeros(1, np.int32), np.full(1, 0.5)) == pytest.approx(log(0.5))


def test_a_word_without_entries():
    chart = Chart(GrammarIndex(bush()))
    nothing = np.zeros(3, np.int64), np.empty(0, np.int32), np.empty(0)
    assert chart.fill(*nothing) == -inf
    assert chart.fill(np.array([0, 1, 1, 2]), np.zeros(2, np.int32), np.ones(2)) == -inf
    assert chart.inside_values(0, 3) == {}
    assert chart.inside_values(0, 1) == {0: pytest.approx(0.0)}


@pytest.mark.parametrize(
    ("starts", "ranks", "weights", "problem"),
    [
        ([0], [], [], "at least one word"),
        ([], [], [], "at least one word"),
        ([0, 1], [1], [0.5], "symbol 1 is out of range"),
        ([0, 1], [-1], [0.5], "symbol -1 is out of range"),
        ([0, 2], [0], [0.5], "fit together"),
        ([0, 1], [0, 0], [0.5, 0.5], "fit together"),
        ([0, 1], [0], [0.5, 0.5], "fit together"),
        ([1, 1], [0], [0.5], "fit together"),
        ([-1, 1], [0], [0.5], "fit together"),
        ([0, 2, 1], [0], [0.5], "not in order"),
        ([0, -5, 1], [0], [0.5], "not in order"),
        ([0, 1], [0], [0.0], "positive"),
        ([0, 1], [0], [-1.0], "positive"),
        ([0, 1], [0], [float("nan")], "positive"),
        ([0, 1], [0], [float("inf")], "positive"),
    ],
)
def test_bad_entries(starts, ranks, weights, problem):
    chart = Chart(GrammarIndex(bush()))
    with pytest.raises(ValueError, match=problem):
        chart.fill(np.array(starts, np.int64), np.array(ranks, np.int32), np.array(weights, np.float64))


def test_bad_types():
    chart = Chart(GrammarIndex(bush()))
    starts, ranks, weights = np.array([0, 1]), np.zeros(1, np.int32), np.ones(1)
    for entries in (
        (starts.astype(np.int32), ranks, weights),
        (starts, ranks.astype(np.int64), weights),
        (starts, ranks, weights.astype(np.float32)),
        (np.zeros((2, 2), np.int64), ranks, weights),
        (np.array([0, 9, 1])[::2], ranks, weights),
    ):
        with pytest.raises(ValueError, match=r"Buffer|buffer|contiguous"):
            chart.fill(*entries)
    for growth in (float("nan"), inf, -inf, 700.0):
        with pytest.raises(ValueError, match="growth"):
            chart.fill(starts, ranks, weights, growth=growth)


def test_any_growth_gives_the_same():
    grammar = bush()
    index = GrammarIndex(grammar)
    entries = lexical_entries(grammar, index, [0, 1, 0, 0])
    expected = Chart(index).fill(*entries)
    for growth in (-500.0, -3.0, 0.0, 10.0, 500.0):
        assert isclose(Chart(index).fill(*entries, growth=growth), expected)


def test_spans_out_of_range():
    chart = filled(bush(), [0, 0])
    chart.fill_outside()
    for span in ((0, 0), (1, 1), (-1, 1), (0, 3), (2, 1)):
        for ask in (chart.inside_values, chart.outside_values, chart.make_mask(0.0).labels_at):
            with pytest.raises(IndexError, match="out of range"):
                ask(*span)
    with pytest.raises(ValueError, match="outside"):
        filled(bush(), [0, 0]).outside_values(0, 1)
