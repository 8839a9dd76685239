"""`tsgkit.evaluation.differences`: brackets match as in EVALB, and sentences are sorted by difference in F1."""

import random

import pytest
from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.evaluation import evaluate, load_parameters
from tsgkit.evaluation._differences import phrases
from tsgkit.evaluation.differences import find_differences, mark_brackets
from tsgkit.treebank import Cleaning, load
from tsgkit.treebank._trees import is_preterminal, preorder, words

GOLD = [Cleaning().apply(tree) for tree in load("village", "dev")]
LABELS = ("NP", "VP", "ADVP", "PRT", "S", "TOP", "NP-SBJ")


def distorted(tree, random_numbers):
    """A tree over the same words with other labels and other brackets here and there."""
    copy = tree.copy(deep=True)
    for node in list(preorder(copy)):
        if is_preterminal(node):
            continue
        if random_numbers.random() < 0.2:
            node.set_label(random_numbers.choice(LABELS))
        if len(node) > 2 and random_numbers.random() < 0.3:
            node[0:2] = [Tree(random_numbers.choice(LABELS), node[0:2])]
    return copy


@pytest.mark.parametrize("params", ["collins", "new"])
def test_marks_add_up_to_the_score(params):
    random_numbers = random.Random(7)
    test = [distorted(tree, random_numbers) for tree in GOLD]
    evaluation = evaluate(GOLD, test, params)
    n_wrong = 0
    for gold, guess, row in zip(GOLD, test, evaluation.sentences, strict=True):
        marks = mark_brackets(gold, guess, load_parameters(params))
        assert row["status"] == 0
        assert len(marks.found) == len(marks.right) == row["matched"]
        assert len(marks.found) + len(marks.missed) == row["gold"]
        assert len(marks.right) + len(marks.wrong) == row["test"]
        nodes = list(preorder(guess))
        flags = marks.of_test(len(nodes))
        assert (flags.count("right"), flags.count("wrong")) == (len(marks.right), len(marks.wrong))
        for bracket in marks.wrong:
            assert nodes[bracket.node].label().split("-")[0] == bracket.label
            assert words(nodes[bracket.node]) == words(gold)[bracket.first : bracket.last]
        n_wrong += len(marks.wrong)
    assert n_wrong == evaluation.all.test - evaluation.all.matched > 0


def test_order_and_sides():
    random_numbers = random.Random(3)
    first, second = ([distorted(tree, random_numbers) for tree in GOLD] for _ in range(2))
    found = find_differences(GOLD, first, second)
    gaps = [abs(each.first_f1 - each.second_f1) for each in found.sentences]
    assert gaps == sorted(gaps, reverse=True)
    scores = [(each.first_f1, each.second_f1) for each in found.sentences]
    assert found.n_better == (sum(a > b for a, b in scores), sum(a < b for a, b in scores))
    swapped = find_differences(GOLD, second, first)
    assert swapped.n_better == found.n_better[::-1]
    assert {(label, one, other) for label, other, one in swapped.by_label()} == set(found.by_label())
    for one, other in zip(found.sentences, swapped.sentences, strict=True):
        assert (one.number, one.only_first, one.second_mistakes) == (
            other.number,
            other.only_second,
            other.first_mistakes,
        )
        # What only one has right and what only the other has wrong explain the difference in full.
        row = evaluate([one.gold], [one.first]).all, evaluate([one.gold], [one.second]).all
        assert row[0].matched - row[1].matched == len(one.only_first) - len(one.only_second)


def test_the_same_trees_do_not_differ():
    found = find_differences(GOLD, GOLD, GOLD)
    assert (found.sentences, found.n_better, found.by_label()) == ([], (0, 0), [])


def test_a_missing_tree_has_no_right_bracket():
    found = find_differences(GOLD[:2], [None, GOLD[1]], GOLD[:2])
    (only,) = found.sentences
    assert (only.number, only.first, only.first_f1, only.second_f1) == (1, None, 0.0, 100.0)
    assert len(only.only_second) == evaluate(GOLD[:1], GOLD[:1]).all.gold
    assert next(phrases(only.only_second, words(only.gold))).endswith(" ".join(words(GOLD[0])))


def test_files_of_different_lengths():
    with pytest.raises(TreebankError, match="1 trees, but 2 in gold"):
        find_differences(GOLD[:2], GOLD[:1], GOLD[:2])
