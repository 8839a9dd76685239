"""Brackets that trees must have: how they are read, and the chart, all objectives and products against enumeration."""

from math import exp, inf, isclose, log

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nltk.tree import Tree
from parsing.conftest import ATTACHED, ATTACHMENT, NUMBERS, model_of, trees_by_enumeration, village_model
from reference.chart import Reference, TooManyDerivations, best, lexical_entries, total
from reference.constraints import ConstrainedReference, has_brackets
from strategies import grammars, sentences

from tsgkit._chart import Chart
from tsgkit._constraints import MAX_STATES, Constraints
from tsgkit._derivations import best_derivation, sample_derivations
from tsgkit._grammar_index import GrammarIndex
from tsgkit._posteriors import forest_of
from tsgkit._pruning import Projection
from tsgkit._tree_ranking import TreeRanking
from tsgkit.errors import TreebankError, UsageError
from tsgkit.grammar import WeightedGrammar
from tsgkit.models._constraints import LabelAutomata
from tsgkit.models._model import Stage
from tsgkit.parsing import Parser, ParserSettings
from tsgkit.parsing._constraints import StateCodes
from tsgkit.parsing._engine import Cascade, Engine
from tsgkit.parsing._lexical import SentenceEntries
from tsgkit.parsing._product import ProductParser
from tsgkit.parsing._rows import project
from tsgkit.parsing.objectives import OBJECTIVES
from tsgkit.parsing.search import Search
from tsgkit.treebank import Binarization, load
from tsgkit.treebank._partial import MAX_BRACKETS, bracketed_sentence, require_brackets
from tsgkit.treebank._trees import brackets_of

many = settings(max_examples=200, deadline=None, derandomize=True)
some = settings(max_examples=60, deadline=None, derandomize=True)
# What the labels of the drawn grammars are here: a plain one, an intermediate symbol, two nodes in one, another one.
NAMES = ["A", "@A", "A+B", "B"]


# ---- how they are written ------------------------------------------------------------------------------------


def test_brackets_are_read():
    words, brackets = bracketed_sentence("(S (NP (DT the)old man)".replace(")old", ") old") + "(VP went home)) .\n")
    assert words == ["the", "old", "man", "went", "home", "."]
    assert brackets == [("S", 0, 5), ("NP", 0, 3), ("DT", 0, 1), ("VP", 3, 5)]
    assert bracketed_sentence("( the ( old\tman ) ) -LRB- \n") == (
        ["the", "old", "man", "-LRB-"],
        [(None, 0, 3), (None, 1, 3)],
    )
    assert bracketed_sentence(" \n") == ([], [])


@pytest.mark.parametrize(
    ("line", "column", "problem"),
    [
        ("the (NP old man", 5, "not closed"),
        ("the old) man", 8, "closes that was not opened"),
        ("the (NP ) man", 5, "has no words"),
        ("the ()", 5, "has no words"),
        ("f(x) is", 2, "inside of a word"),
        ("(NP f)x is", 7, "separate them"),
    ],
)
def test_bad_lines_are_errors_with_a_place(line, column, problem):
    with pytest.raises(TreebankError, match=problem) as caught:
        bracketed_sentence(line, "notes", 7)
    assert (caught.value.path, caught.value.line, caught.value.column) == ("notes", 7, column)


def test_brackets_must_fit():
    assert MAX_BRACKETS == MAX_STATES
    assert require_brackets([("B", 1, 2), ("A", 0, 2), (None, 0, 2)], 3) == [("A", 0, 2), (None, 0, 2), ("B", 1, 2)]
    for brackets, problem in (
        ([("A", 0, 2), ("B", 1, 3)], "A 0..2 and B 1..3 cross"),
        ([("A", 0, 4)], "out of range"),
        ([("A", 1, 1)], "out of range"),
        ([(3, 0, 1)], "must be"),
        (["NP"], "must be"),
        ([(None, 0, 1)] * (MAX_BRACKETS + 1), "at most"),
    ):
        with pytest.raises(UsageError, match=problem):
            require_brackets(brackets, 3)


# ---- the chart -----------------------------------------------------------------------------------------------


@st.composite
def given_brackets(draw, n_words):
    """Brackets of which no two cross, some over the same span."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, n_words - 1))
        end = draw(st.integers(start + 1, n_words))
        if not any(a < start < b < end or start < a < end < b for _, a, b in found):
            found.append((draw(st.sampled_from(["A", "B", None])), start, end))
    return require_brackets(found, n_words)


def automata_of(grammar, index):
    return LabelAutomata(index, NAMES[: len(grammar.labels)], joins_chains=True)


def constrained_chart(grammar, sentence, brackets, **options):
    index = GrammarIndex(grammar)
    constraints = automata_of(grammar, index).constraints(brackets, len(sentence))
    chart = Chart(index)
    chart.fill(*lexical_entries(grammar, index, sentence), constraints=constraints, **options)
    return chart


@many
@given(data=st.data())
def test_totals_are_those_of_the_equations(data):
    """With cycles of unary rules, too: the sum and the best of all derivations with the brackets."""
    grammar = data.draw(grammars())
    sentence = data.draw(sentences(grammar, 4))
    brackets = data.draw(given_brackets(len(sentence)))
    index = GrammarIndex(grammar)
    reference = ConstrainedReference(grammar, sentence, automata_of(grammar, index).nodes, brackets)
    for viterbi, combine in ((False, total), (True, best)):
        chart = constrained_chart(grammar, sentence, brackets, viterbi=viterbi)
        expected = reference.total_of_trees(combine)
        if expected == 0.0:
            assert chart.log_total == -inf
            continue
        assert isclose(chart.log_total, log(expected), rel_tol=1e-9, abs_tol=1e-9)
        # Outside values: every word is under every derivation's tags exactly once.
        chart.fill_outside()
        if not viterbi:
            rules, posteriors = forest_of(chart).rules, forest_of(chart).posteriors
            for place in range(len(sentence)):
                assert isclose(posteriors[(rules[:, 0] == place) & (rules[:, 4] < 0)].sum(), 1.0, abs_tol=1e-6)


@many
@given(data=st.data())
def test_derivations_and_posteriors_are_those_of_enumeration(data):
    """Without cycles: the trees with the brackets one by one, their order, the posteriors of their rules, samples."""
    grammar = data.draw(grammars(cyclic=False))
    sentence = data.draw(sentences(grammar, 4))
    brackets = data.draw(given_brackets(len(sentence)))
    nodes = automata_of(grammar, GrammarIndex(grammar)).nodes
    reference, weights, by_derivation, counts = Reference(grammar, sentence), {}, {}, {}
    try:
        derivations = reference.all_derivations()[reference.root, 0, len(sentence)]
    except TooManyDerivations:
        assume(False)
    for weight, rows in derivations:
        tree = tuple((reference.label[x], start, end, kind) for x, start, end, kind in rows if kind <= 2)
        if has_brackets(tree, nodes, brackets):
            weights[tree] = weights.get(tree, 0.0) + weight
            by_derivation.setdefault(tree, weight)
            for rule in reference.treebank_rules(rows):
                counts[rule] = counts.get(rule, 0.0) + weight
    chart = constrained_chart(grammar, sentence, brackets)
    if not weights:
        assert chart.log_total == -inf
        return
    whole = sum(weights.values())
    assert isclose(chart.log_total, log(whole), rel_tol=1e-9, abs_tol=1e-9)
    for rows, _ in sample_derivations(chart, 20, np.random.PCG64(1)):
        assert tuple(map(tuple, project(rows, grammar.label).tolist())) in weights
    chart.fill_outside()
    forest = forest_of(chart)
    found = {}
    for rule, posterior in zip(forest.rules.tolist(), forest.posteriors, strict=True):
        labels = [label % len(grammar.labels) if label >= 0 else -1 for label in rule[3:]]
        found[*rule[:3], *labels] = found.get((*rule[:3], *labels), 0.0) + posterior
    assert found.keys() == {rule for rule, value in counts.items() if value / whole > 1e-12}
    assert all(isclose(found[rule], counts[rule] / whole, abs_tol=1e-9) for rule in found)
    viterbi = constrained_chart(grammar, sentence, brackets, viterbi=True)
    assert isclose(best_derivation(viterbi)[1], log(max(by_derivation.values())), abs_tol=1e-9)
    ranking, trees = TreeRanking(viterbi), {}
    while (tree := ranking.tree(len(trees))) is not None:
        trees[tuple(map(tuple, tree[0].tolist()))] = tree[1]
    assert trees.keys() == by_derivation.keys()
    assert all(isclose(value, log(by_derivation[tree]), abs_tol=1e-9) for tree, value in trees.items())


@some
@given(data=st.data())
def test_every_objective_returns_trees_with_the_brackets(data):
    grammar = data.draw(grammars())
    sentence = data.draw(sentences(grammar, 4))
    brackets = data.draw(given_brackets(len(sentence)))
    cascade = Cascade([Stage(grammar)])
    automata = automata_of(grammar, cascade.indices[0])
    entries = SentenceEntries(
        [lexical_entries(grammar, cascade.indices[0], sentence)],
        constraints=[automata.constraints(brackets, len(sentence))],
    )
    for objective in map(OBJECTIVES.__getitem__, OBJECTIVES.names):
        engine = Engine(cascade, ParserSettings(n_samples=50))
        random = np.random.Generator(np.random.PCG64(1))
        search = Search(engine, entries, objective.needs, random, codes=StateCodes(automata, brackets))
        for candidate in objective.decode(search, 5) if search.fill() else []:
            assert has_brackets(tuple(map(tuple, candidate.rows.tolist())), automata.nodes, brackets)


@some
@given(data=st.data())
def test_a_mask_with_nothing_pruned_changes_nothing(data):
    """A grammar as its own coarse grammar: constrained charts prune each other state by state."""
    grammar = data.draw(grammars())
    sentence = data.draw(sentences(grammar, 4))
    brackets = data.draw(given_brackets(len(sentence)))
    index = GrammarIndex(grammar)
    constraints = automata_of(grammar, index).constraints(brackets, len(sentence))
    entries = lexical_entries(grammar, index, sentence)
    coarse, fine = Chart(index), Chart(index)
    if coarse.fill(*entries, constraints=constraints) == -inf:
        return
    coarse.fill_outside()
    projection = Projection(index, index, np.arange(len(grammar.labels)), np.arange(grammar.n_symbols))
    mask = coarse.make_mask(1e-300)
    assert isclose(
        fine.fill(*entries, mask=mask, projection=projection, constraints=constraints), coarse.log_total, abs_tol=1e-9
    )
    fine.fill_outside()
    for one, other in zip(forest_of(coarse).posteriors, forest_of(fine).posteriors, strict=True):
        assert isclose(one, other, abs_tol=1e-9)
    with pytest.raises(ValueError, match="other constraints"):
        fine.fill(*entries, mask=mask, projection=projection)


def test_constraints_are_checked():
    index = GrammarIndex(ATTACHMENT)
    table = np.zeros((1, len(ATTACHMENT.labels)), dtype=np.int32)
    for spans, automata, problem in (
        ([(0, 9)], [table], "out of range"),
        ([(0, 2), (1, 3)], [table, table], "crosses"),
        ([(0, 2), (0, 2)], [table, table], "twice"),
        ([(0, 2)], [table[:, 1:]], "does not fit"),
        ([(0, 2)], [table + 1], "does not fit"),
        ([(0, 2)], [], "automata"),
    ):
        with pytest.raises(ValueError, match=problem):
            Constraints(index, 4, spans, automata)
    fits = Constraints(index, 4, [(0, 2)], [table])
    with pytest.raises(ValueError, match="belong"):
        Chart(index).fill(*lexical_entries(ATTACHMENT, index, NUMBERS), constraints=fits)


# ---- the parser ----------------------------------------------------------------------------------------------

GIVEN = [("VP", 1, 7), (None, 1, 5)]


def conditional(brackets):
    """The posterior of every tree of the attachment grammar given brackets, by enumeration."""
    weights = trees_by_enumeration(ATTACHMENT, NUMBERS)
    nodes = [(label,) for label in ATTACHMENT.labels]
    kept = {tree: weight for tree, weight in weights.items() if has_brackets(tree, nodes, brackets)}
    assert 1 < len(kept) < len(weights)
    return {tree: weight / sum(kept.values()) for tree, weight in kept.items()}


@pytest.mark.parametrize("objective", OBJECTIVES.names)
def test_posteriors_are_conditional(objective):
    expected = conditional(GIVEN)
    parser = Parser(model_of(ATTACHMENT), objective=objective, n_samples=2000)
    parse = parser.analyse(ATTACHED, k=50, confidence=True, brackets=GIVEN)
    assert len(parse.trees) == len(expected)
    assert not parse.fallback
    for tree, log_probability in zip(parse.trees, parse.log_probabilities, strict=True):
        found = brackets_of(tree)
        assert ("VP", 1, 7) in found
        assert any((start, end) == (1, 5) for _, start, end in found)
        assert any(isclose(exp(log_probability - parse.log_total), share, abs_tol=1e-9) for share in expected.values())
    for (label, start, end), value in parse.confidence.items():
        number = ATTACHMENT.labels.index(label)
        share = sum(p for tree, p in expected.items() if any(row[:3] == (number, start, end) for row in tree))
        assert isclose(value, share, abs_tol=1e-6)


@pytest.mark.parametrize("product", ["rules", "trees"])
def test_products_have_the_brackets(product):
    """Each model alone prefers another tree; the product of two is the normalised product of what is left of both."""
    parts = {name: getattr(ATTACHMENT, name) for name in ("labels", "words", "label", "root", "unary", "unary_weight")}
    parts |= {name: getattr(ATTACHMENT, name) for name in ("bridge", "bridge_weight", "lexical", "lexical_weight")}
    other = WeightedGrammar(**parts, binary=ATTACHMENT.binary, binary_weight=[1.0, 0.4, 0.6, 0.6, 0.3, 1.0])
    parser = ProductParser([model_of(ATTACHMENT), model_of(other)], product=product)
    parse = parser.analyse(ATTACHED, k=50, confidence=True, brackets=GIVEN)
    assert not parse.fallback
    assert len(parse.trees) == len(conditional(GIVEN))
    for tree in parse.trees:
        assert ("VP", 1, 5) in brackets_of(tree)
    assert parse.confidence["VP", 1, 5] == pytest.approx(1.0)
    if product == "trees":
        assert parse.log_probabilities == sorted(parse.log_probabilities, reverse=True)


def covers(tree, bracket):
    label, start, end = bracket
    return any((a, b) == (start, end) and label in (None, name) for name, a, b in brackets_of(tree))


@pytest.fixture(scope="module")
def village():
    return [village_model(Binarization("right", 1, 2), split) for split in ("train", "dev")]


@pytest.mark.parametrize("binarization", [Binarization("right", 1, 2), Binarization("centre-head", 0)])
def test_gold_brackets_in_a_cascade(binarization):
    """Closed cells and pruning leave what brackets ask for; the phrases of the gold tree are those of the parse."""
    parser = Parser(village_model(binarization))
    for gold in load("village", "dev")[:25]:
        tree = parser.model.preparation.cleaning.apply(gold)
        wanted = [bracket for bracket in brackets_of(tree) if bracket[2] - bracket[1] > 1 and bracket[0] != "TOP"]
        parse = parser.analyse(tree.leaves(), brackets=wanted, k=3)
        assert all(covers(found, bracket) for found in parse.trees for bracket in wanted)
        unlabelled = [(None, start, end) for _, start, end in wanted]
        parse = parser.analyse(tree.leaves(), brackets=unlabelled)
        assert all(covers(parse.tree, bracket) for bracket in unlabelled)


@pytest.mark.parametrize("n_models", [1, 2])
def test_what_no_grammar_makes_is_a_fallback_with_the_brackets(village, n_models):
    parser = ProductParser(village[:n_models])
    words = "the old man smiled .".split()  # noqa: SIM905
    for brackets, kind in (
        ([("FOO", 0, 2)], "brackets"),
        ([("NP", 0, 3), ("NP", 2, 5), (None, 3, 5), ("BAR", 3, 4)], "brackets"),
        ([("TOP", 0, 5), ("S", 0, 5), ("FOO", 1, 2)], "brackets"),
        ([("DT", 0, 1), ("NP", 0, 3)], ""),
    ):
        usable = [bracket for bracket in brackets if bracket != ("NP", 2, 5)]
        parse = parser.analyse(words, brackets=usable, k=2)
        assert parse.fallback == kind
        assert parse.tree.leaves() == words
        assert parse.tree.label() == "TOP"
        assert all(covers(tree, bracket) for tree in parse.trees for bracket in usable)
        assert set(parse.unmet) <= set(usable)
        assert bool(parse.unmet) == (kind == "brackets")
        flat = parser.with_settings(max_length=3).analyse(words, brackets=usable)
        assert flat.fallback == "flat"
        assert all(covers(flat.tree, bracket) for bracket in usable)


def test_a_fallback_has_brackets_with_the_label_of_the_root():
    """Where the root is a label that phrases have, too: parts with this label are not side by side under the root."""
    grammar = WeightedGrammar(
        ["S", "A"], ["a"], [0, 1], 0,
        binary=[(0, 1, 0), (0, 1, 1)], binary_weight=[0.5, 0.5], lexical=[(1, 0)], lexical_weight=[1.0],
    )  # fmt: skip
    parse = Parser(model_of(grammar)).analyse(["a"] * 4, brackets=[("FOO", 0, 1), ("S", 2, 4)])
    assert parse.fallback == "brackets"
    assert str(parse.tree) == "(S (FOO (A a)) (A a) (S (A a) (A a)))"
    assert parse.unmet == (("FOO", 0, 1),)


def test_a_word_may_have_a_tag_that_it_never_had(village):
    parse = Parser(village[1]).analyse(["the", "old", "man", "smiled", "."], brackets=[("JJ", 0, 1)])
    assert covers(parse.tree, ("JJ", 0, 1))
    assert not parse.unmet


def test_a_batch_takes_brackets(village):
    parser = Parser(village[0])
    words = ["the", "old", "man", "smiled", "."]
    batch = [(words, None, [("NP", 0, 2)]), (words, None), (words, None, [])]
    one, other, none = parser.parse_batch(batch)
    assert covers(one.tree, ("NP", 0, 2))
    assert not covers(other.tree, ("NP", 0, 2))
    assert other.tree == none.tree
    assert [parse.tree for parse in parser.parse_batch(batch, threads=2)] == [one.tree, other.tree, none.tree]
    assert isinstance(one.tree, Tree)
    assert one.log_total < other.log_total
