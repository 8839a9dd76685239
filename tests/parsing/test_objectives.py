"""Objectives: what each picks has the best score by its definition; the table of them takes others."""

from math import exp, inf, isclose, log, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from parsing.conftest import ATTACHED, ATTACHMENT, NUMBERS, model_of, trees_by_enumeration
from reference.chart import Reference, TooManyDerivations, best_tree_score, lexical_entries, tree_score
from strategies import grammars, sentences

from tsgkit.grammar import WeightedGrammar
from tsgkit.models._model import Stage
from tsgkit.parsing import Parser, ParserSettings
from tsgkit.parsing._engine import Cascade, Engine
from tsgkit.parsing._lexical import SentenceEntries
from tsgkit.parsing.objectives import OBJECTIVES, Needs, Objective
from tsgkit.parsing.search import Search

some = settings(max_examples=60, deadline=None, derandomize=True)


def search_of(grammar, sentence, needs, **options):
    cascade = Cascade([Stage(grammar)])
    entries = SentenceEntries([lexical_entries(grammar, cascade.indices[0], sentence)])
    return Search(Engine(cascade, ParserSettings(**options)), entries, needs, np.random.Generator(np.random.PCG64(1)))


def candidates_of(name, grammar, sentence, k, **options):
    """The best trees by an objective, as the parser finds them."""
    objective = OBJECTIVES[name]
    search = search_of(grammar, sentence, objective.needs, **options)
    return objective.decode(search, k) if search.fill() else []


@some
@given(data=st.data())
def test_objectives_on_tiny_grammars(data):
    """What each objective picks has the score that enumeration gives to its best tree."""
    grammar = data.draw(grammars(cyclic=False))
    sentence = data.draw(sentences(grammar, 4))
    reference = Reference(grammar, sentence)
    try:
        derivations = reference.all_derivations()[reference.root, 0, len(sentence)]
        weights = trees_by_enumeration(grammar, sentence)
    except TooManyDerivations:
        assume(False)
    counts = reference.rule_counts() if weights else {}
    root_label = reference.label[reference.root]
    expected = {
        "mpd": lambda: log(derivations[0][0]),
        "mpp": lambda: log(max(weights.values())),
        "mer": lambda: best_tree_score(counts, len(sentence), root_label, False),
        "max-rule": lambda: best_tree_score(counts, len(sentence), root_label, True),
    }
    for objective, best_score in expected.items():
        found = candidates_of(objective, grammar, sentence, 1, n_candidates=400)
        if not weights:
            assert found == []
            continue
        (found,) = found
        tree = tuple(map(tuple, found.rows.tolist()))
        assert isclose(found.score, best_score(), rel_tol=1e-7, abs_tol=1e-7)
        if tree in weights:
            assert isclose(found.log_probability, log(weights[tree]), abs_tol=1e-9)
        else:
            # Rules that are probable each can make a tree that the grammar does not make as a whole.
            assert objective in ("mer", "max-rule")
            assert found.log_probability == -inf
        if objective in ("mer", "max-rule"):
            assert isclose(tree_score(tree, counts, objective != "mer"), found.score, abs_tol=1e-7)


@pytest.mark.parametrize("objective", OBJECTIVES.names)
def test_candidates_are_different_trees_best_first(objective):
    weights = trees_by_enumeration(ATTACHMENT, NUMBERS)
    candidates = candidates_of(objective, ATTACHMENT, NUMBERS, 20, n_samples=3000)
    trees = [tuple(map(tuple, candidate.rows.tolist())) for candidate in candidates]
    assert set(trees) == set(weights)
    assert len(trees) == len(weights) == 5
    for tree, candidate in zip(trees, candidates, strict=True):
        assert isclose(candidate.log_probability, log(weights[tree]), abs_tol=1e-9)
    scores = [candidate.score for candidate in candidates]
    assert scores == sorted(scores, reverse=True)
    # Fewer are the first of more.
    for k in (1, 2):
        fewer = candidates_of(objective, ATTACHMENT, NUMBERS, k, n_samples=3000)
        assert [candidate.rows.tolist() for candidate in fewer] == [c.rows.tolist() for c in candidates[:k]]


@pytest.mark.parametrize("objective", OBJECTIVES.names)
def test_shares_are_parts_of_the_sum_over_all_trees(objective):
    reference = Reference(ATTACHMENT, NUMBERS)
    weights, counts = trees_by_enumeration(ATTACHMENT, NUMBERS), reference.rule_counts()
    derivations = reference.all_derivations()[reference.root, 0, len(NUMBERS)]
    whole = sum(weights.values())
    kind = objective.removesuffix("-sampled")
    parser = Parser(model_of(ATTACHMENT), objective=objective, n_samples=20_000)
    parse = parser.analyse(ATTACHED, k=9, confidence=True)
    expected = {
        "mpd": [max(weight for weight, rows in derivations if same_rows(rows, tree, reference)) for tree in weights],
        "mpp": list(weights.values()),
        "mer": [tree_score(tree, counts, False) / sum(counts.values()) for tree in weights],
        "max-rule": [exp(tree_score(tree, counts, True)) for tree in weights],
    }[kind]
    if kind != "mer":
        expected = [value / (sum(expected) if kind == "max-rule" else whole) for value in expected]
    close = 0.02 if objective != kind else 1e-9
    assert parse.shares == pytest.approx(sorted(expected, reverse=True), abs=close)
    assert sorted(parse.probabilities) == pytest.approx(sorted(value / whole for value in weights.values()))
    assert parser.analyse(ATTACHED, k=9).shares == []


def same_rows(derivation, tree, reference):
    """Whether a derivation makes a tree."""
    return tuple((reference.label[x], start, end, kind) for x, start, end, kind in derivation if kind <= 2) == tree


def test_most_probable_tree_is_not_always_that_of_the_best_derivation():
    """One derivation of weight 0.4 against two of 0.3 each."""
    grammar = WeightedGrammar(
        ["TOP", "A", "B"], ["a"], [0, 1, 2, 2], 0,
        unary=[(0, 1), (0, 2), (0, 3)], unary_weight=[0.4, 0.3, 0.3],
        lexical=[(1, 0), (2, 0), (3, 0)], lexical_weight=[1.0, 1.0, 1.0],
    )  # fmt: skip
    chosen = {
        objective: Parser(model_of(grammar), objective=objective).parse_one(["a"])[0].label()
        for objective in OBJECTIVES.names
    }
    assert chosen == {objective: "A" if objective == "mpd" else "B" for objective in OBJECTIVES.names}


def test_sampled_posteriors_approach_the_exact_ones():
    searches = [search_of(ATTACHMENT, NUMBERS, needs, n_samples=20_000) for needs in (Needs.POSTERIORS, Needs.SAMPLES)]
    assert all(search.fill() for search in searches)
    exact, sampled = (search.forest() for search in searches)
    posterior = dict(zip(map(tuple, exact.rules.tolist()), exact.posteriors, strict=True))
    share = dict(zip(map(tuple, sampled.rules.tolist()), sampled.posteriors, strict=True))
    assert set(share) <= set(posterior)
    uncertain = 0
    for rule, value in posterior.items():
        deviation = sqrt(value * max(0.0, 1 - value) / 20_000)
        assert abs(share.get(rule, 0.0) - value) <= 4.5 * deviation + 1e-9
        uncertain += 0.01 < value < 0.99
    assert uncertain >= 10


@pytest.mark.parametrize("exact", ["mpp", "mer", "max-rule"])
def test_sampled_objectives_agree_with_exact_ones_as_samples_grow(exact):
    answer = Parser(model_of(ATTACHMENT), objective=exact).analyse(ATTACHED)
    errors = []
    for n_samples in (10, 5000):
        parser = Parser(model_of(ATTACHMENT), objective=f"{exact}-sampled", n_samples=n_samples)
        wrong, distance = 0, 0.0
        for number in range(10):
            sampled = parser.analyse(ATTACHED, number=number)
            wrong += sampled.tree != answer.tree
            score = answer.log_probabilities[0] - answer.log_total if exact == "mpp" else answer.scores[0]
            found = log(sampled.scores[0]) if exact == "mpp" else sampled.scores[0]
            distance += abs(found - score) / 10
        errors.append((wrong, distance))
    assert errors[0][0] > errors[1][0] == 0
    assert errors[1][1] < min(0.05, errors[0][1])


def test_objectives_fall_back_on_candidates_when_no_tree_has_probable_rules(monkeypatch):
    monkeypatch.setattr("tsgkit.parsing._engine.SMALLEST_POSTERIOR", 0.99)
    for objective in ("mer", "max-rule"):
        parse = Parser(model_of(ATTACHMENT), objective=objective).analyse(ATTACHED)
        assert not parse.fallback
        assert parse.tree == Parser(model_of(ATTACHMENT), objective="mpd").analyse(ATTACHED).tree


def test_samples_need_random_numbers():
    search = search_of(ATTACHMENT, NUMBERS, Needs.SAMPLES)
    search.random = None
    assert search.fill()
    with pytest.raises(ValueError, match="need a random generator"):
        search.forest()


def test_every_objective_has_its_name():
    assert [OBJECTIVES[name].name for name in OBJECTIVES.names] == list(OBJECTIVES.names)
    sampled = [name for name in OBJECTIVES.names if OBJECTIVES[name].needs is Needs.SAMPLES]
    assert sampled == ["mpp-sampled", "mer-sampled", "max-rule-sampled"]


def test_an_objective_of_others(monkeypatch):
    """One that is registered is found by its name: here, the least probable of the best five trees."""

    def worst(search, k):
        return search.kbest_trees(5)[::-1][:k]

    monkeypatch.setattr(OBJECTIVES, "_loaded", dict(OBJECTIVES._loaded))
    OBJECTIVES.register("worst", Objective("worst", Needs.VITERBI, worst))
    trees = Parser(model_of(ATTACHMENT), objective="mpd").analyse(ATTACHED, k=5).trees
    assert Parser(model_of(ATTACHMENT), objective="worst").analyse(ATTACHED, k=2).trees == trees[:-3:-1]
