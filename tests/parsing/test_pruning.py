"""Masks of charts, and projections between grammars: coarse to fine against the oracle of charts."""

from math import inf, isclose

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference.chart import Reference, best, lexical_entries, total
from reference.filled_chart import assert_fits, bush, filled
from strategies import grammars, sentences, sized

from tsgkit._chart import Chart
from tsgkit._derivations import best_derivation, sample_derivations
from tsgkit._grammar_index import GrammarIndex
from tsgkit._posteriors import forest_of
from tsgkit._pruning import Mask, Projection
from tsgkit.grammar import WeightedGrammar

many = settings(max_examples=200, deadline=None, derandomize=True)


def shares_of(reference, combine):
    """``{item: share of the whole}`` and the same for labels in place of symbols."""
    inside = reference.inside(combine)
    whole = inside[reference.root, 0, reference.n_words]
    outside = reference.outside(inside, combine)
    shares = {item: value * outside.get(item, 0.0) / whole for item, value in inside.items()}
    labels = {}
    for (symbol, start, end), share in shares.items():
        if reference.label[symbol] >= 0:
            labels.setdefault((reference.label[symbol], start, end), []).append(share)
    return shares, {key: combine(parts) for key, parts in labels.items()}


@st.composite
def coarse_and_fine(draw):
    """Two grammars over the same words, and maps from the labels and symbols of the second to the first."""
    fine = draw(grammars())
    coarse = draw(st.one_of(st.just(fine), grammars().filter(lambda other: len(other.words) >= len(fine.words))))
    symbol_map = None
    if coarse is fine and draw(st.booleans()):
        label_map = list(range(len(fine.labels)))
    else:
        label_map = draw(sized(st.integers(0, len(coarse.labels) - 1), len(fine.labels), len(fine.labels)))
    if draw(st.booleans()):
        symbols = st.integers(-1, coarse.n_symbols - 1)
        symbol_map = draw(
            st.one_of(
                sized(symbols, fine.n_symbols, fine.n_symbols),
                st.just([min(symbol, coarse.n_symbols - 1) for symbol in range(fine.n_symbols)]),
            )
        )
    return coarse, fine, label_map, symbol_map


@many
@given(data=st.data())
def test_pruning(data):
    coarse, fine, label_map, symbol_map = data.draw(coarse_and_fine())
    sentence = data.draw(sentences(fine))
    threshold = data.draw(st.sampled_from([0.0, 1e-4, 0.03, 0.2, 0.6]))
    coarse_chart = filled(coarse, sentence, viterbi=data.draw(st.booleans()))
    assume(coarse_chart.log_total > -inf)
    with pytest.raises(ValueError, match="outside"):
        coarse_chart.make_mask(threshold)
    coarse_chart.fill_outside()
    mask = coarse_chart.make_mask(threshold)

    shares, label_shares = shares_of(Reference(coarse, sentence), best if coarse_chart.is_viterbi else total)
    every = [*shares.values(), *label_shares.values()]
    assume(threshold == 0.0 or not any(isclose(share, threshold, rel_tol=1e-6) for share in every))
    left = {key for key, share in label_shares.items() if share >= threshold}
    for start, end in Reference(coarse, sentence).spans():
        assert mask.labels_at(start, end) == sorted(key[0] for key in left if key[1:] == (start, end))
    assert mask.count() == len(left)

    def allowed(symbol, start, end):
        if fine.label[symbol] >= 0 and (label_map[fine.label[symbol]], start, end) not in left:
            return False
        pruning = -1 if symbol_map is None else symbol_map[symbol]
        return pruning < 0 or shares.get((pruning, start, end), -1.0) >= threshold

    index = GrammarIndex(fine)
    projection = Projection(index, coarse_chart.grammar, label_map, symbol_map)
    for viterbi in (False, True):
        chart = filled(fine, sentence, index, viterbi=viterbi, mask=mask, projection=projection)
        reference = Reference(fine, sentence, allowed)
        if assert_fits(chart, reference):
            if viterbi:
                rows, log_weight = best_derivation(chart)
                assert isclose(reference.log_weight(rows), chart.log_total, abs_tol=1e-9)
                assert isclose(log_weight, chart.log_total, abs_tol=1e-9)
            else:
                for rows, log_weight in sample_derivations(chart, 5, np.random.PCG64(1)):
                    assert isclose(reference.log_weight(rows), log_weight, abs_tol=1e-9)
                forest = forest_of(chart)
                found = dict(zip(map(tuple, forest.rules.tolist()), forest.posteriors, strict=True))
                expected = reference.rule_counts()
                assert found.keys() <= expected.keys()
                for rule, value in expected.items():
                    assert isclose(found.get(rule, 0.0), value, rel_tol=1e-8, abs_tol=1e-11)


def test_the_share_of_a_label():
    """Three symbols of one label with a third each: together certain, by max-marginals as good as the best."""
    grammar = WeightedGrammar(
        ["S", "A"], ["a"], [0, 1, 1, 1], 0, unary=[(0, 1), (0, 2), (0, 3)], unary_weight=[0.3, 0.3, 0.2],
        lexical=[(1, 0), (2, 0), (3, 0)], lexical_weight=[1.0] * 3,
    )  # fmt: skip
    chart = filled(grammar, [0])
    chart.fill_outside()
    assert chart.make_mask(0.9).labels_at(0, 1) == [0, 1]
    # By symbols none of the three is left.
    projection = Projection(chart.grammar, chart.grammar, [0, 1], range(4))
    masked = filled(grammar, [0], chart.grammar, mask=chart.make_mask(0.9), projection=projection)
    assert masked.log_total == -inf
    chart.fill(*lexical_entries(grammar, chart.grammar, [0]), viterbi=True)
    chart.fill_outside()
    masked = filled(grammar, [0], chart.grammar, mask=chart.make_mask(0.9), projection=projection)
    assert masked.inside_values(0, 1).keys() == {0, 1, 2}


@pytest.mark.parametrize("kept", [0.5, 0.99])
def test_part_of_a_cycle_is_forbidden(kept):
    """The symbols 1, 2, 3 go round; the mask leaves out one of them, and whoever needs it."""
    round_trip = [(1, 2), (2, 3), (3, 1), (2, 1), (0, 1), (1, 1)]
    weights = [2.0, 3.0, kept / 24, kept / 8, 1.0, kept / 4]
    fine = WeightedGrammar(
        ["S", "A", "B", "C"], ["a", "b"], [0, 1, 2, 3], 0, unary=round_trip, unary_weight=weights,
        binary=[(1, 2, 3), (3, 1, 2), (0, 3, 1)], binary_weight=[0.5, 0.25, 2.0],
        lexical=[(2, 0), (3, 0), (1, 1)], lexical_weight=[0.25, 0.5, 1.0],
    )  # fmt: skip
    index = GrammarIndex(fine)
    for forbidden in (1, 2, 3):
        others = [symbol for symbol in (1, 2, 3) if symbol != forbidden]
        # A coarse grammar that makes every span of the others' labels.
        coarse = WeightedGrammar(
            fine.labels, fine.words, fine.label, 0,
            binary=[(x, y, z) for x in (0, *others) for y in others for z in others],
            binary_weight=[1.0] * 12, unary=[(0, others[0])], unary_weight=[1.0],
            lexical=[(x, word) for x in others for word in (0, 1)], lexical_weight=[1.0] * 4,
        )  # fmt: skip
        for sentence in ([0], [1], [0, 1], [1, 0, 0], [0, 1, 0, 1]):
            coarse_chart = filled(coarse, sentence)
            coarse_chart.fill_outside()
            mask = coarse_chart.make_mask(0.0)
            projection = Projection(index, coarse_chart.grammar, range(4))
            for viterbi in (False, True):
                chart = filled(fine, sentence, index, viterbi=viterbi, mask=mask, projection=projection)
                assert_fits(chart, Reference(fine, sentence, lambda symbol, *_, no=forbidden: symbol != no))


def test_a_mask_of_something_else():
    grammar = bush()
    index, other = GrammarIndex(grammar), GrammarIndex(grammar)
    chart = filled(grammar, [0, 0], index)
    chart.fill_outside()
    mask = chart.make_mask(0.0)
    entries = {n: lexical_entries(grammar, index, [0] * n) for n in (2, 3)}
    right, wrong_fine, wrong_coarse = (
        Projection(*pair, [0]) for pair in ((index, index), (other, index), (index, other))
    )
    assert Chart(index).fill(*entries[2], mask=mask, projection=right) == pytest.approx(chart.log_total)
    for n_words, projection in ((3, right), (2, wrong_fine), (2, wrong_coarse), (2, None)):
        with pytest.raises(ValueError, match="does not belong"):
            Chart(index).fill(*entries[n_words], mask=mask, projection=projection)
    with pytest.raises(ValueError, match="does not belong"):
        Chart(index).fill(*entries[2], mask=Mask(), projection=right)


@pytest.mark.parametrize("label_map", [[], [1], [-1], [0, 0]])
def test_label_maps_that_do_not_fit(label_map):
    index = GrammarIndex(bush())
    with pytest.raises(ValueError, match="label map"):
        Projection(index, index, label_map)


@pytest.mark.parametrize("symbol_map", [[], [1], [-2], [0, 0]])
def test_symbol_maps_that_do_not_fit(symbol_map):
    index = GrammarIndex(bush())
    with pytest.raises(ValueError, match="symbol map"):
        Projection(index, index, [0], symbol_map)
