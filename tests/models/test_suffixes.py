"""What classes back off to under a tag: the tree of shorter suffixes, and sampling with it, against enumeration."""

from collections import Counter
from itertools import pairwise, product
from math import lgamma, log

import numpy as np
import pytest
from nltk.tree import Tree
from reference import pyp

from tsgkit._random import Stream
from tsgkit._refined_rules import RuleHierarchy
from tsgkit.models import suffixes
from tsgkit.models.back_off import UNREFINED_ROOT, RefinedSymbols
from tsgkit.models.refined_words import add_unseen_tags
from tsgkit.models.rules import number_rules
from tsgkit.models.srtsg import Words, lexical_shares
from tsgkit.models.suffixes import CONCENTRATIONS, ClassTree
from tsgkit.treebank import Binarization, FlatCorpus, UnknownWords, load, prepare
from tsgkit.treebank.prepare import preparation_of

CLASSES = ["UNK", "UNK-a", "UNK-a-*s", "UNK-a-*es", "UNK-num"]
COARSER = {"UNK-a": "UNK", "UNK-a-*s": "UNK-a", "UNK-a-*es": "UNK-a-*s", "UNK-num": "UNK"}
N_TYPES = [1, 4, 2, 3, 2]
TABLES = np.array([[0, 2, 1, 3, 0], [1, 0, 0, 0, 2], [0, 0, 0, 0, 0]])


@pytest.fixture
def tree():
    return ClassTree.of(CLASSES, COARSER, N_TYPES)


def steps_of(name):
    """The steps to a class by the definition: pairs of nodes, and the last one that ends there."""
    nodes = [name]
    while nodes[0] in COARSER:
        nodes.insert(0, COARSER[nodes[0]])
    return [*pairwise(nodes), (name, "end")]


def share_of(step):
    """The share of a step by the definition."""
    below = sum(n for name, n in zip(CLASSES, N_TYPES, strict=True) if step in steps_of(name))
    return below / sum(n for name, n in zip(CLASSES, N_TYPES, strict=True) if step[0] in dict(steps_of(name)))


def urn(tables, concentration):
    """The log probability of the steps of tables, one after the other, each given those before."""
    result, seen, left = 0.0, Counter(), Counter()
    for name, n_tables in zip(CLASSES, tables, strict=True):
        for _ in range(n_tables):
            for step in steps_of(name):
                result += log((concentration * share_of(step) + seen[step]) / (concentration + left[step[0]]))
                seen[step] += 1
                left[step[0]] += 1
    return result


def test_before_any_table_classes_have_their_share_of_words(tree):
    none = np.zeros((1, len(CLASSES)), dtype=int)
    assert tree.mean(none)[0] == pytest.approx(np.array(N_TYPES) / sum(N_TYPES))


def test_posterior_of_concentrations(tree):
    logs = np.array([sum(urn(row, value) for row in TABLES) for value in CONCENTRATIONS])
    wanted = np.exp(logs - logs.max())
    assert tree.posterior(tree.step_counts(TABLES)) == pytest.approx(wanted / wanted.sum())


def test_mean_is_that_of_the_next_table(tree):
    logs = np.array([sum(urn(row, value) for row in TABLES) for value in CONCENTRATIONS])
    weights = np.exp(logs - logs.max())
    for label, number in product(range(len(TABLES)), range(len(CLASSES))):
        more = TABLES[label] + np.eye(len(CLASSES), dtype=int)[number]
        ratios = [np.exp(urn(more, value) - urn(TABLES[label], value)) for value in CONCENTRATIONS]
        assert tree.mean(TABLES)[label, number] == pytest.approx(np.average(ratios, weights=weights))
    assert tree.mean(TABLES).sum(axis=1) == pytest.approx(1.0)


def test_draws_are_distributions_around_the_mean(tree):
    random = np.random.default_rng(1)
    draws = np.array([tree.draw(TABLES, random) for _ in range(4000)])
    assert draws.sum(axis=2) == pytest.approx(1.0)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (abs(draws.mean(axis=0) - tree.mean(TABLES)) < 4.5 * error + 1e-12).all()


def test_unseen_tags_need_a_share():
    unseen = np.array([[0.5, 0.0], [0.0, 0.25], [0.0, 0.0]])
    expected = np.array([[10.0, 1.0], [0.001, 5.0], [1.0, 0.0]])
    add_unseen_tags(unseen, expected, np.array([0.5, 0.5]))
    assert unseen.tolist() == [[0.5, 0.5], [0.0, 0.25], [0.5, 0.0]]


# ---- sampling -----------------------------------------------------------------------------------------------

# One tag; words of three classes: their numbers of occurrences, and the class of each.
COUNTS, CLASS_OF = (3, 3, 1), (2, 3, 4)
CONCENTRATION = 0.3
WORD_BASE = 0.2
PAIRS = {"rule": (0.3, 0.7), "class": (0.4, 1.5), "word": (0.2, 1.0), "label_class": (0.5, 0.8)}


def log_seating(pair, customers, tables):
    """The log probability of table counts in a restaurant, over all seatings with them, without base probabilities."""
    discount, strength = pair
    result = sum(log(strength + discount * number) for number in range(sum(tables)))
    result -= lgamma(strength + sum(customers)) - lgamma(strength)
    return result + sum(log(pyp.stirling(n, t, discount)) for n, t in zip(customers, tables, strict=True) if n)


def numbers_of_tables(customers):
    """All numbers of tables that so many customers can have."""
    return product(*(range(1, n + 1) if n else [0] for n in customers))


def exact_tables(concentration):
    """The posterior of the numbers of tables of J_x, B_x integrated out."""
    result = Counter()
    for of_rule in numbers_of_tables(COUNTS):
        weight = log_seating(PAIRS["rule"], COUNTS, of_rule)
        # Every class has one word: one restaurant W each.
        weight += sum(
            log(sum(np.exp(log_seating(PAIRS["word"], [n], [t])) * WORD_BASE**t for t in range(1, n + 1)))
            for n in of_rule
        )
        for of_class in numbers_of_tables(of_rule):
            of_symbol = weight + log_seating(PAIRS["class"], of_rule, of_class)
            for tables in numbers_of_tables(of_class):
                row = np.zeros(len(CLASSES), dtype=int)
                row[list(CLASS_OF)] = tables
                value = of_symbol + log_seating(PAIRS["label_class"], of_class, tables) + urn(row, concentration)
                result[tables] += np.exp(value)
    total = sum(result.values())
    return {tables: value / total for tables, value in result.items()}


def test_seats_and_bases_in_turn_sample_the_posterior(tree, monkeypatch):
    """Customers are seated given B_x, and B_x is resampled given the tables."""
    monkeypatch.setattr(suffixes, "CONCENTRATIONS", np.array([CONCENTRATION]))
    corpus = FlatCorpus.from_trees(map(Tree.fromstring, ["(S (N a))", "(S (N b))", "(S (N c))"]))
    trees = number_rules(corpus)
    is_word = trees.rule_word >= 0
    tag = corpus.labels.index("N")
    labels = np.arange(trees.n_labels)
    levels = UNREFINED_ROOT.over(RefinedSymbols(labels, labels))
    rule_class = np.where(is_word, np.array(CLASS_OF)[trees.rule_word], -1)
    word_base = np.full(len(CLASSES), WORD_BASE)
    hierarchy = RuleHierarchy(
        trees, labels, levels, np.where(is_word, 1.0, 0.5), rule_class, lexical_shares(trees), word_base
    )
    kinds = [*levels.names, "class", "word"]
    of_kinds = np.array([PAIRS.get(kind, (0.5, 1.0)) for kind in kinds])
    hierarchy.set_parameters(np.concatenate([np.repeat(of_kinds, trees.n_labels, axis=0).T, [[0.5], [0.8]]], axis=1))
    customers = [rule for rule in np.flatnonzero(is_word).tolist() for _ in range(COUNTS[trees.rule_word[rule]])]
    stream, random = Stream(1), np.random.default_rng(1)
    for rule in customers:
        hierarchy.seat(rule, 0, 0, 0, stream)
    found, n_sweeps = Counter(), 8000
    for _ in range(n_sweeps):
        for rule in customers:
            hierarchy.unseat(rule, 0, 0, 0, stream)
            hierarchy.seat(rule, 0, 0, 0, stream)
        tables = np.zeros((trees.n_labels, len(CLASSES)), dtype=int)
        for restaurant, dish, _, n_tables in hierarchy.cells("label_class"):
            tables[restaurant, dish] = n_tables
        found[tuple(tables[tag, list(CLASS_OF)].tolist())] += 1
        hierarchy.set_class_base(tree.draw(tables, random))
    exact, of_shares = exact_tables(CONCENTRATION), exact_tables(1e9)
    assert max(abs(exact[key] - of_shares[key]) for key in exact) > 0.06  # without the tree, the test fails
    for key, probability in exact.items():
        assert found[key] / n_sweeps == pytest.approx(probability, abs=0.025)


# ---- trees of a treebank ------------------------------------------------------------------------------------


def test_words_of_a_treebank():
    unknown = UnknownWords(threshold=0, min_types=2)
    corpus = prepare(load("village", "dev")[:40], binarization=Binarization("right", 0), unknown=unknown)
    trees = number_rules(corpus)
    words = Words.of(corpus, trees, preparation_of(corpus).lexicon, suffixes=True)
    assert words.tree is not None
    assert len(words.tree.path) == len(words.classes)
    none = np.zeros((1, len(words.classes)), dtype=int)
    n_types = 1.0 / words.class_word_base
    assert words.tree.mean(none)[0] == pytest.approx(n_types / n_types.sum())
    assert Words.of(corpus, trees, preparation_of(corpus).lexicon).tree is None
