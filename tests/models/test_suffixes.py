"""What the classes of words back off to under a tag: the levels of shorter suffixes, and sampling with them."""

from collections import Counter
from itertools import product
from math import exp, lgamma, log

import numpy as np
import pytest
from nltk.tree import Tree
from reference import pyp

from tsgkit._backoff import validate_class_levels
from tsgkit._random import Stream
from tsgkit._refined_rules import RuleHierarchy
from tsgkit.models._back_off import UNREFINED_ROOT
from tsgkit.models._refined_words import add_unseen_tags
from tsgkit.models._srtsg import Words, lexical_shares
from tsgkit.models._suffixes import MOST_LEVELS, ClassLevels
from tsgkit.models.back_off import RefinedSymbols
from tsgkit.models.rules import number_rules
from tsgkit.treebank import Binarization, FlatCorpus, UnknownWords, load, prepare
from tsgkit.treebank._prepare import preparation_of

CLASSES = ["UNK", "UNK-a", "UNK-a-*s", "UNK-a-*es", "UNK-num"]
COARSER = {"UNK-a": "UNK", "UNK-a-*s": "UNK-a", "UNK-a-*es": "UNK-a-*s", "UNK-num": "UNK"}
N_TYPES = [1, 4, 2, 3, 2]


@pytest.fixture
def levels():
    return ClassLevels.of(CLASSES, COARSER, N_TYPES)


def test_levels_cut_classes_off(levels):
    """The classes, those of suffixes of one letter, and those without a suffix."""
    assert levels.dish.tolist() == [[0, 1, 2, 3, 4], [0, 1, 2, 2, 3], [0, 1, 1, 1, 2]]
    assert levels.share == pytest.approx(
        np.array([[1, 1, 2 / 5, 3 / 5, 1], [1, 4 / 9, 5 / 9, 5 / 9, 1], [1 / 12, 9 / 12, 9 / 12, 9 / 12, 2 / 12]])
    )
    assert levels.kinds == ["label_class", "label_class_2", "label_class_3"]
    validate_class_levels(levels.dish, levels.share, len(CLASSES))


def test_before_any_table_classes_have_their_share_of_words(levels):
    cached = [np.zeros((1, dish.max() + 1)) for dish in levels.dish]
    found = levels.probabilities(cached, [np.ones(1)] * len(levels.dish))
    assert found[0] == pytest.approx(np.array(N_TYPES) / sum(N_TYPES))


def test_steps_without_a_choice_have_no_level():
    coarser = {"UNK-x-y": "UNK-x", "UNK-x": "UNK"}
    assert ClassLevels.of(["UNK-x-y"], coarser, [3]).dish.tolist() == [[0]]
    assert ClassLevels.of(["UNK"], {}, [3]).share.tolist() == [[1.0]]


def test_no_more_levels_than_samplers_take():
    names = ["UNK" + "-x" * length for length in range(30)]
    levels = ClassLevels.of(names, dict(zip(names[1:], names, strict=False)), [1] * 30)
    assert len(levels.dish) == MOST_LEVELS
    validate_class_levels(levels.dish, levels.share, len(names))


def test_one_level_of_equally_probable_classes():
    levels = ClassLevels.uniform(4)
    validate_class_levels(levels.dish, levels.share, 4)
    assert levels.share.tolist() == [[0.25] * 4]


@pytest.mark.parametrize(
    ("dish", "share", "problem"),
    [
        ([[0, 1, 2]], [[0.5, 0.5]], "one dish for every class"),
        ([[0, 0, 1]], [[0.5, 0.5, 0.5]], "first level"),
        ([[0, 1, 2]], [[0.5, 0.5, 0.0]], "no share"),
        ([[0, 1, 2]], [[0.5, 0.5, 0.5]], "sum to 1"),
        ([[0, 1, 2], [0, 2, 2]], [[1, 0.5, 0.5], [0.4, 0.6, 0.6]], "numbered from 0"),
        ([[0, 1, 2], [0, 1, 1], [0, 0, 1]], [[1, 0.5, 0.5], [1, 1, 1], [0.5, 0.5, 0.5]], "not nested"),
        ([[0, 1, 2], [0, 1, 1]], [[1, 0.5, 0.5], [0.4, 0.6, 0.5]], "several shares"),
        ([[0, 1, 2]] * (MOST_LEVELS + 1), [[1, 1, 1]] * (MOST_LEVELS + 1), "levels of classes"),
    ],
)
def test_levels_that_are_none_are_refused(dish, share, problem):
    with pytest.raises(ValueError, match=problem):
        validate_class_levels(np.array(dish), np.array(share, dtype=float), 3)


def test_unseen_tags_need_a_share():
    unseen = np.array([[0.5, 0.0], [0.0, 0.25], [0.0, 0.0]])
    expected = np.array([[10.0, 1.0], [0.001, 5.0], [1.0, 0.0]])
    add_unseen_tags(unseen, expected, np.array([0.5, 0.5]))
    assert unseen.tolist() == [[0.5, 0.5], [0.0, 0.25], [0.5, 0.0]]


# ---- sampling -----------------------------------------------------------------------------------------------

# One tag; words of three classes: their numbers of occurrences, and the class of each.
COUNTS, CLASS_OF = (3, 2, 1), (2, 3, 4)
WORD_BASE = 0.2
PAIRS = {"rule": (0.3, 0.7), "class": (0.4, 1.5), "word": (0.2, 1.0)}
# Sweeps between samples, so that these are nearly independent.
THINNED = 6
LEVEL_PAIRS = [(0.5, 0.8), (0.6, 0.4), (0.2, 1.2)]


def log_seating(pair, customers, tables):
    """The log probability of table counts in a restaurant, over all seatings with them, without base probabilities."""
    discount, strength = pair
    result = sum(log(strength + discount * number) for number in range(sum(tables)))
    result -= lgamma(strength + sum(customers)) - lgamma(strength)
    return result + sum(log(pyp.stirling(n, t, discount)) for n, t in zip(customers, tables, strict=True))


def tables_of_levels(levels, number, customers, pairs):
    """{tables of every level from this one on: weight}, given the customers of its dishes."""
    if number == len(levels.dish):
        return {(): 1.0}
    result = Counter()
    dish, share = levels.dish[number].tolist(), levels.share[number].tolist()
    for tables in product(*(range(1, n + 1) for n in customers.values())):
        weight = exp(log_seating(pairs[number], list(customers.values()), tables))
        below = Counter()
        for own, n_tables in zip(customers, tables, strict=True):
            word_class = dish.index(own)
            weight *= share[word_class] ** n_tables
            if number + 1 < len(levels.dish):
                below[int(levels.dish[number + 1, word_class])] += n_tables
        for others, value in tables_of_levels(levels, number + 1, below, pairs).items():
            result[sum(tables), *others] += weight * value
    return result


def exact_tables(levels, pairs):
    """The posterior of the numbers of tables of the levels of J_x."""
    result = Counter()
    for of_rule in product(*(range(1, n + 1) for n in COUNTS)):
        weight = exp(log_seating(PAIRS["rule"], COUNTS, of_rule))
        for n in of_rule:  # Every class has one word: one restaurant W each.
            weight *= sum(exp(log_seating(PAIRS["word"], [n], [t])) * WORD_BASE**t for t in range(1, n + 1))
        for of_class in product(*(range(1, n + 1) for n in of_rule)):
            of_symbol = weight * exp(log_seating(PAIRS["class"], of_rule, of_class))
            for tables, value in tables_of_levels(levels, 0, dict(zip(CLASS_OF, of_class, strict=True)), pairs).items():
                result[tables] += of_symbol * value
    total = sum(result.values())
    return {tables: value / total for tables, value in result.items()}


def test_seats_sample_the_posterior(levels):
    """Tables of a class are customers of its coarser class, and so on."""
    corpus = FlatCorpus.from_trees(map(Tree.fromstring, ["(S (N a))", "(S (N b))", "(S (N c))"]))
    trees = number_rules(corpus)
    is_word = trees.rule_word >= 0
    labels = np.arange(trees.n_labels)
    of_rules = UNREFINED_ROOT.over(RefinedSymbols(labels, labels))
    rule_class = np.where(is_word, np.array(CLASS_OF)[trees.rule_word], -1)
    hierarchy = RuleHierarchy(
        trees,
        labels,
        of_rules,
        np.where(is_word, 1.0, 0.5),
        rule_class,
        lexical_shares(trees),
        np.full(len(CLASSES), WORD_BASE),
        levels,
    )
    of_kinds = np.array([PAIRS.get(kind, (0.5, 1.0)) for kind in (*of_rules.names, "class", "word")])
    pairs = np.concatenate([np.repeat(of_kinds, trees.n_labels, axis=0), LEVEL_PAIRS])
    hierarchy.set_parameters(pairs.T)
    customers = [rule for rule in np.flatnonzero(is_word).tolist() for _ in range(COUNTS[trees.rule_word[rule]])]
    stream = Stream(1)
    for rule in customers:
        hierarchy.seat(rule, 0, 0, 0, stream)
    found, n_samples = Counter(), 20000
    for sweep in range(THINNED * n_samples):
        for rule in customers:
            hierarchy.unseat(rule, 0, 0, 0, stream)
            hierarchy.seat(rule, 0, 0, 0, stream)
        if sweep % THINNED == 0:
            found[tuple(sum(n for *_, n in hierarchy.cells(kind)) for kind in levels.kinds)] += 1
    exact = exact_tables(levels, LEVEL_PAIRS)
    assert pyp.chi_square(found, exact) > 1e-3
    for number in range(3):
        wrong = [*LEVEL_PAIRS[:number], (0.05, 3.0), *LEVEL_PAIRS[number + 1 :]]
        assert pyp.chi_square(found, exact_tables(levels, wrong)) < 1e-6


# ---- trees of a treebank ------------------------------------------------------------------------------------


def test_words_of_a_treebank():
    unknown = UnknownWords(threshold=0, min_types=2)
    corpus = prepare(load("village", "dev")[:40], binarization=Binarization("right", 0), unknown=unknown)
    trees = number_rules(corpus)
    words = Words.of(corpus, trees, preparation_of(corpus).lexicon, suffixes=True)
    validate_class_levels(words.levels.dish, words.levels.share, len(words.classes))
    n_types = 1.0 / words.class_word_base
    assert words.levels.share.prod(axis=0) == pytest.approx(n_types / n_types.sum())
    plain = Words.of(corpus, trees, preparation_of(corpus).lexicon)
    assert (len(plain.levels.dish), plain.has_suffixes) == (1, False)
