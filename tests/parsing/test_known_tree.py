"""The best derivation of a given tree against all of them, one by one."""

from math import inf, isclose, log

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nltk.tree import Tree
from reference.chart import BRIDGE, Reference, TooManyDerivations, lexical_entries
from strategies import grammars, sentences

from tsgkit._chart import Chart
from tsgkit._derivations import best_derivation
from tsgkit._grammar_index import GrammarIndex
from tsgkit.grammar import WeightedGrammar
from tsgkit.parsing._known_tree import KnownTreeParser, NoDerivationError
from tsgkit.parsing._rows import project, tree_of_rows

many = settings(max_examples=100, deadline=None, derandomize=True)


def tree_of(derivation, grammar, sentence):
    """The `nltk.Tree` that a derivation makes."""
    rows = project(np.array(derivation, dtype=np.int32), grammar.label)
    return tree_of_rows(rows, grammar.labels, [grammar.words[word] for word in sentence])


def as_tuples(rows):
    return tuple(map(tuple, rows.tolist()))


@many
@given(data=st.data())
def test_all_trees_of_a_sentence(data):
    grammar = data.draw(grammars(cyclic=False))
    sentence = data.draw(sentences(grammar))
    reference = Reference(grammar, sentence)
    try:
        derivations = reference.all_derivations()[reference.root, 0, len(sentence)]
    except TooManyDerivations:
        assume(False)
    heaviest, trees = {}, {}
    for weight, rows in derivations:
        tree = tree_of(rows, grammar, sentence)
        trees[str(tree)] = tree
        heaviest.setdefault(str(tree), weight)  # they come heaviest first
    parser = KnownTreeParser(grammar)
    for text, weight in heaviest.items():
        rows, log_weight = parser.best(trees[text])
        assert isclose(log_weight, log(weight), abs_tol=1e-9)
        assert isclose(reference.log_weight(rows), log(weight), abs_tol=1e-9)
        assert str(tree_of(rows, grammar, sentence)) == text
        assert as_tuples(rows) == as_tuples(KnownTreeParser(grammar).best(trees[text])[0])


@many
@given(data=st.data())
def test_the_best_tree_with_bridges_in_circles(data):
    grammar = data.draw(grammars(cyclic=True))
    sentence = data.draw(sentences(grammar))
    index = GrammarIndex(grammar)
    chart = Chart(index)
    assume(chart.fill(*lexical_entries(grammar, index, sentence), viterbi=True) > -inf)
    expected, expected_weight = best_derivation(chart)
    reference = Reference(grammar, sentence)
    rows, log_weight = KnownTreeParser(grammar).best(tree_of(expected, grammar, sentence))
    # The best derivation of the best derivation's tree weighs as much as that.
    assert isclose(log_weight, expected_weight, rel_tol=1e-9, abs_tol=1e-9)
    assert isclose(reference.log_weight(rows), log_weight, rel_tol=1e-9, abs_tol=1e-9)


def test_bridges_in_circles_and_ties():
    """Of ``0 => 1 => 2 => 0``, only 2 makes the word; 3 and 4 are alike, so the smaller number is taken."""
    grammar = WeightedGrammar(
        ["A", "B"], ["a"], [0, 0, 0, 1, 1], 0,
        bridge=[(0, 1), (1, 2), (2, 0)], bridge_weight=[0.5, 0.5, 0.9],
        unary=[(2, 3), (2, 4)], unary_weight=[0.5, 0.5],
        lexical=[(3, 0), (4, 0)], lexical_weight=[1.0, 1.0],
    )  # fmt: skip
    rows, log_weight = KnownTreeParser(grammar).best(Tree("A", [Tree("B", ["a"])]))
    assert as_tuples(rows) == (
        (0, 0, 1, BRIDGE),
        (1, 0, 1, BRIDGE),
        (2, 0, 1, 1),
        (3, 0, 1, 0),
    )
    assert isclose(log_weight, log(0.125))


def right_branching():
    """``A -> B A | a``, ``B -> a``."""
    return WeightedGrammar(
        ["A", "B", "C"], ["a", "b"], [0, 1, 2], 0,
        binary=[(0, 1, 0), (2, 1, 1)], binary_weight=[0.25, 1.0],
        lexical=[(0, 0), (1, 0)], lexical_weight=[0.75, 1e-3],
    )  # fmt: skip


def test_deep_trees():
    tree = Tree("A", ["a"])
    n_words = 3000
    for _ in range(n_words - 1):
        tree = Tree("A", [Tree("B", ["a"]), tree])
    rows, log_weight = KnownTreeParser(right_branching()).best(tree)
    assert len(rows) == 2 * n_words - 1
    assert isclose(log_weight, (n_words - 1) * log(0.25 * 1e-3) + log(0.75), rel_tol=1e-9)


def test_words_as_the_grammar_knows_them():
    tree = Tree.fromstring("(A (B x) (A y))")
    rows, log_weight = KnownTreeParser(right_branching()).best(tree, ["a", "a"])
    assert as_tuples(rows) == ((0, 0, 2, 2), (1, 0, 1, 0), (0, 1, 2, 0))
    assert isclose(log_weight, log(0.25 * 1e-3 * 0.75))


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ("(A (B a) (B a))", "has no rule A -> B B"),
        ("(A (A a))", "has no rule A -> A"),
        ("(A (B a) (A b))", "has no rule A -> b"),
        ("(A (B a) (A c))", "has no rule A -> c"),
        ("(A (D a) (A a))", "has no label D"),
        ("(C (B a) (B a))", "the tree's root is C, the grammar's A"),
        ("(A (B a) (B a) (A a))", "not binarised"),
    ],
)
def test_what_the_grammar_does_not_make(tree, problem):
    with pytest.raises(NoDerivationError, match=problem):
        KnownTreeParser(right_branching()).best(Tree.fromstring(tree))


def test_rules_that_do_not_fit_together():
    """The rule S -> A is there, but only over another symbol of that label."""
    grammar = WeightedGrammar(
        ["S", "A"], ["a", "b"], [0, 1, 1, 0], 0,
        unary=[(0, 1), (3, 2)], unary_weight=[1.0, 1.0],
        lexical=[(1, 0), (2, 1)], lexical_weight=[1.0, 1.0],
    )  # fmt: skip
    parser = KnownTreeParser(grammar)
    assert len(parser.best(Tree.fromstring("(S (A a))"))[0]) == 2
    with pytest.raises(NoDerivationError, match="no derivation that begins with S -> A"):
        parser.best(Tree.fromstring("(S (A b))"))
    other = WeightedGrammar(
        ["S", "A"], ["a"], [0, 1, 1], 0,
        unary=[(0, 1)], unary_weight=[1.0], lexical=[(2, 0)], lexical_weight=[1.0],
    )  # fmt: skip
    with pytest.raises(NoDerivationError, match="no derivation that uses the rule S -> A"):
        KnownTreeParser(other).best(Tree.fromstring("(S (A a))"))
