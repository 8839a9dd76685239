"""Coarse to fine: pruning keeps what it should, by the share it should, and its errors are counted."""

import itertools
from dataclasses import replace
from math import inf, isclose

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parsing.conftest import model_of
from reference.chart import lexical_entries
from strategies import grammars, sentences

from tsgkit.grammar import WeightedGrammar
from tsgkit.models._model import Stage
from tsgkit.parsing import Parser
from tsgkit.parsing._engine import Cascade, Engine
from tsgkit.parsing._lexical import SentenceEntries
from tsgkit.parsing._settings import PRUNING, ParserSettings
from tsgkit.parsing.objectives import OBJECTIVES
from tsgkit.parsing.search import Search

some = settings(max_examples=60, deadline=None, derandomize=True)


def projected(grammar, label_map):
    """A coarse grammar with one symbol per coarse label that makes all trees of `grammar`."""
    labels = np.where(grammar.label >= 0, np.asarray(label_map)[grammar.label], -1)
    n_labels = max(label_map) + 1
    # A symbol without a label can make a node of any.
    options = [range(n_labels) if label < 0 else [label] for label in labels.tolist()]
    binary = [
        (coarse, weight)
        for rule, weight in zip(grammar.binary.tolist(), grammar.binary_weight, strict=True)
        for coarse in itertools.product(*(options[symbol] for symbol in rule))
    ]
    unary = [(x, y) for x, y in labels[grammar.unary].tolist() if x != y]
    lexical = np.stack([labels[grammar.lexical[:, 0]], grammar.lexical[:, 1]], axis=1)
    return WeightedGrammar(
        labels=[f"C{number}" for number in range(n_labels)],
        words=grammar.words,
        label=list(range(n_labels)),
        root=labels[grammar.root],
        binary=[rule for rule, _ in binary],
        binary_weight=[weight for _, weight in binary],
        unary=unary,
        unary_weight=np.full(len(unary), 0.3 / max(len(unary), 1)),
        lexical=lexical,
        lexical_weight=grammar.lexical_weight,
    )


@some
@given(data=st.data())
def test_pruning_keeps_what_it_should(data):
    """With next to no pruning nothing changes; with much there is still a tree wherever there was one."""
    grammar = data.draw(grammars())
    sentence = data.draw(sentences(grammar))
    n_labels = len(grammar.labels)
    middle = list(range(n_labels))
    coarsest = [min(number, 1) for number in middle]
    cascade = Cascade(
        [
            Stage(projected(grammar, coarsest)),
            Stage(projected(grammar, middle), np.array(coarsest)),
            Stage(grammar, np.array(middle)),
        ]
    )
    words = SentenceEntries(
        [lexical_entries(one, index, sentence) for one, index in zip(cascade.grammars, cascade.indices, strict=True)]
    )
    for name, pruning in itertools.product(("mpd", "max-rule"), PRUNING):
        objective, answers = OBJECTIVES[name], {}
        for threshold in (0.0, 1e-200, 0.3):
            search = Search(
                Engine(cascade, ParserSettings(threshold=threshold, pruning=pruning)), words, objective.needs
            )
            answers[threshold] = objective.decode(search, 1)[0] if search.fill() else None
        exact = answers[0.0]
        if exact is None:
            assert set(answers.values()) == {None}
            continue
        assert isclose(answers[1e-200].score, exact.score, abs_tol=1e-6)
        if name == "mpd":
            assert -inf < answers[0.3].score <= exact.score + 1e-9
        else:
            assert answers[0.3] is not None


def one_word(labels, ways):
    """A grammar of the word ``a``: the root becomes one of `ways`, pairs of a label and a weight."""
    n_ways = len(ways)
    return WeightedGrammar(
        labels, ["a"], [0, *(labels.index(label) for label, _ in ways)], 0,
        unary=[(0, way + 1) for way in range(n_ways)], unary_weight=[weight for _, weight in ways],
        lexical=[(way + 1, 0) for way in range(n_ways)], lexical_weight=[1.0] * n_ways,
    )  # fmt: skip


@pytest.mark.parametrize("objective", ["mpd", "max-rule"])
def test_the_two_shares_that_pruning_goes_by(objective):
    """In the middle grammar A has 0.45 in three ways, each with 0.27 of what B, the best, has."""
    model = model_of(
        one_word(["TOP", "X"], [("X", 1.0)]),
        one_word(["TOP", "A", "B"], [("A", 0.15), ("A", 0.15), ("A", 0.15), ("B", 0.55)]),
        one_word(["TOP", "A", "B"], [("A", 0.9), ("B", 0.1)]),
        maps=(np.array([0, 1, 1]), np.array([0, 1, 2])),
    )
    chosen = {
        (pruning, threshold): Parser(model, objective=objective, pruning=pruning, threshold=threshold)
        .parse_one(["a"])[0]
        .label()
        for pruning in PRUNING
        for threshold in (0.25, 0.3, 0.5)
    }
    assert chosen == {
        ("posterior", 0.25): "A",
        ("posterior", 0.3): "A",
        ("posterior", 0.5): "B",
        ("max-marginal", 0.25): "A",
        ("max-marginal", 0.3): "B",
        ("max-marginal", 0.5): "B",
    }


def test_pruning_looks_at_less(model, dev):
    parser = Parser(model)
    engine = Engine(parser._cascade, parser.settings)
    words = max(dev, key=len)
    symbols = model.preparation.vocabulary_words(words)
    entries = [table.entries(symbols) for table in parser._tables]
    coarse = engine.charts[0]
    coarse.fill(*entries[0])
    coarse.fill_outside()
    everything, little = coarse.make_mask(0.0).count(), coarse.make_mask(1e-4).count()
    assert little < everything / 3


# ---- cells that are closed ---------------------------------------------------------------------------------


def test_only_probable_spans_are_looked_at(model, dev):
    parser = Parser(model)
    words = max(dev, key=len)
    n_cells = len(words) * (len(words) + 1) // 2
    n_open = [parser.with_settings(closing=closing)._entries(words).open_cells.count() for closing in (1e-4, 1e-2, 0.5)]
    assert n_cells > n_open[0] > n_open[1] > n_open[2]
    assert n_open[1] < n_cells / 2
    for changes in ({"closing": 0.0}, {"threshold": 0.0}):
        assert parser.with_settings(**changes)._entries(words).open_cells is None
    one_grammar = replace(model, stages=[Stage(model.grammar)])
    assert Parser(one_grammar)._entries(words).open_cells is None


def test_without_closing_the_search_is_that_of_a_model_without_it(model, dev):
    sample = dev[:25]
    off, none = Parser(model, closing=0.0), Parser(replace(model, closing=None))
    assert [off.analyse(words).tree for words in sample] == [none.analyse(words).tree for words in sample]
    # With next to nothing closed, next to nothing changes; the weights of cells prune differently.
    weak = Parser(model, closing=1e-12, threshold=1e-12)
    assert [weak.analyse(words).tree for words in sample] == [
        none.with_settings(threshold=1e-12).analyse(words).tree for words in sample
    ]


@pytest.mark.parametrize("pruning", PRUNING)
def test_a_sentence_whose_cells_are_all_closed_is_parsed_all_the_same(model, dev, pruning):
    lengths = np.full_like(model.closing.lengths, -1e6)
    hostile = replace(model, closing=replace(model.closing, lengths=lengths))
    closed, opened = Parser(hostile, pruning=pruning), Parser(model, pruning=pruning, closing=0.0)
    for words in (words for words in dev[:25] if len(words) > 3):
        assert closed._entries(words).open_cells.count() == len(words) + 1
        one, other = closed.analyse(words), opened.analyse(words)
        assert (one.tree, one.fallback) == (other.tree, other.fallback)


def test_search_errors(model, dev):
    sample = dev[:25]

    def best(**options):
        parser = Parser(model, **options)
        return [parser.analyse(words) for words in sample]

    exact = best(threshold=0.0)
    n_compared = sum(not parse.fallback for parse in exact)
    assert Parser(model, threshold=0.0).search_errors(sample) == (0, n_compared)
    counts = {}
    for pruning, threshold in itertools.product(PRUNING, (1e-4, 0.5)):
        options = {"threshold": threshold, "coarse_threshold": threshold, "pruning": pruning}
        pruned = best(**options)
        changed = sum(one.tree != other.tree for one, other in zip(pruned, exact, strict=True) if not other.fallback)
        parser = Parser(model, **options)
        assert parser.search_errors(sample) == (changed, n_compared)
        assert parser.settings.threshold == threshold
        counts[pruning, threshold] = changed
    assert counts["posterior", 0.5] > counts["posterior", 1e-4]
    # A sentence that cannot be compared is not counted.
    assert Parser(model, max_length=0).search_errors(sample) == (0, 0)
