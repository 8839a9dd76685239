"""Products of models: votes are counted as the definitions say."""

import math
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from tsgkit._forest import Forest, product_of
from tsgkit.errors import UsageError
from tsgkit.inference._srtsg import SrSettings
from tsgkit.inference._training import Training
from tsgkit.models._cfg import cfg_model
from tsgkit.parsing import Parser
from tsgkit.parsing._base import SentenceParser, results_of
from tsgkit.parsing._engine import SMALLEST_POSTERIOR
from tsgkit.parsing._product import ProductParser, parser_of
from tsgkit.parsing._votes import N_BEST, RULES_THRESHOLD
from tsgkit.treebank import Binarization, Cleaning, UnknownWords, load, prepare

SENTENCES = ["the old man smiled .", "she gave him a book in the garden", "who ?", "nobody knows zyzzyva"]


@pytest.fixture(scope="module")
def models():
    trees = list(load("village", "train"))
    result = []
    for seed, part in enumerate((trees[::2], trees[1::2], trees)):
        corpus = prepare(part, binarization=Binarization("right", 0), unknown=UnknownWords(threshold=0))
        if seed == 0:
            result.append(cfg_model(corpus))
            continue
        training = Training(corpus, SrSettings(splits=1, split_iterations=6, joint_iterations=0, average=1), seed=seed)
        training.start()
        for iteration in range(1, 7):
            training.iterate(iteration)
        result.append(training.model())
    return result


@pytest.mark.parametrize("kind", ["rules", "trees"])
def test_a_model_agrees_with_itself(models, kind):
    objective = "max-rule" if kind == "rules" else "mpp"
    alone = Parser(models[1], objective=objective, threshold=RULES_THRESHOLD if kind == "rules" else None)
    together = ProductParser([models[1]] * 3, product=kind)
    for sentence in SENTENCES:
        one, many = alone.analyse(sentence.split()), together.analyse(sentence.split())
        if kind == "rules":
            assert many.tree == one.tree
        # What the first model prunes for the others has little of the probability.
        assert one.log_total - 0.05 < many.log_total < one.log_total + 1e-9
        best = max(alone.analyse(sentence.split(), k=N_BEST).trees, key=alone.tree_log_probability)
        if kind == "trees":
            assert alone.tree_log_probability(many.tree) >= alone.tree_log_probability(best) - 1e-9


@pytest.mark.parametrize("kind", ["rules", "trees"])
def test_probabilities_are_not_above_one(models, kind):
    """Those of the words are of pruned charts, in which the others look at what the first model leaves only."""
    parser = ProductParser(models, product=kind)
    for words in (Cleaning().apply(tree).leaves() for tree in load("village", "dev")[:30]):
        probabilities = [tree.prob() for tree in parser.parse(words, k=3)]
        assert 0 <= sum(probabilities) <= 1 + 1e-9
        parse = parser.analyse(words, k=3)
        if not parse.fallback:
            assert probabilities == pytest.approx(parse.probabilities)


def test_posteriors_of_rules_are_multiplied():
    one = Forest(2, 2, [(0, -1, 1, 0, -1, -1), (0, -1, 1, 1, -1, -1)], [0.9, 0.1])
    other = Forest(2, 3, [(0, -1, 1, 0, -1, -1), (1, -1, 2, 2, -1, -1), (0, 1, 2, 1, 0, 2)], [0.4, 1.0, 1e-7])
    # The labels of the second model have other numbers.
    label_maps = [np.array(numbers, dtype=np.int32) for numbers in ([0, 1], [1, 2, 0])]
    result = product_of(3, list(zip((one, other), label_maps, strict=True)), SMALLEST_POSTERIOR)
    found = dict(zip(map(tuple, result.rules.tolist()), result.posteriors.tolist(), strict=True))
    small = SMALLEST_POSTERIOR
    assert found == {
        (0, -1, 1, 0, -1, -1): pytest.approx(math.sqrt(0.9 * small)),
        (0, -1, 1, 1, -1, -1): pytest.approx(math.sqrt(0.1 * 0.4)),
        (1, -1, 2, 0, -1, -1): pytest.approx(math.sqrt(small)),
        (0, 1, 2, 2, 1, 0): pytest.approx(small),
    }
    for wrong in ([(one, label_maps[0]), (Forest(3, 2), label_maps[0])], [(other, label_maps[0])]):
        with pytest.raises(ValueError, match="not of one sentence"):
            product_of(3, wrong, SMALLEST_POSTERIOR)
    with pytest.raises(ValueError, match="does not fit"):
        product_of(2, [(other, label_maps[1])], SMALLEST_POSTERIOR)


def test_the_tree_with_the_largest_product_is_chosen(models):
    parsers = [Parser(model, objective="mpd") for model in models]
    together = ProductParser(models, product="trees")
    for sentence in map(str.split, SENTENCES):
        # A model without an analysis has no vote.
        voters = [parser for parser in parsers if not parser.analyse(sentence).fallback]
        trees = [tree for parser in voters for tree in parser.analyse(sentence, k=20).trees]
        best = max(sum(parser.tree_log_probability(tree) for parser in voters) for tree in trees)
        result = together.analyse(sentence)
        assert result.scores[0] >= best - 1e-9
        assert result.scores[0] == pytest.approx(sum(parser.tree_log_probability(result.tree) for parser in voters))
        assert result.log_probabilities[0] == pytest.approx(result.scores[0] / len(voters))


@pytest.mark.parametrize("kind", ["rules", "trees"])
def test_trees_are_different_and_ordered(models, kind):
    parser = ProductParser(models, product=kind)
    result = parser.analyse(SENTENCES[1].split(), k=5, confidence=True)
    assert 1 < len(result.trees) <= 5
    assert len(set(map(str, result.trees))) == len(result.trees)
    assert result.scores == sorted(result.scores, reverse=True)
    assert len(result.shares) == len(result.trees)
    assert result.shares == sorted(result.shares, reverse=True)
    assert (0.5 if kind == "rules" else 0.0) < sum(result.shares) <= 1 + 1e-9
    if kind == "trees":
        assert result.shares == pytest.approx(result.probabilities)
    assert all(tree.leaves() == SENTENCES[1].split() for tree in result.trees)
    assert all(0 <= value <= 1 for value in result.confidence.values())
    assert max(result.confidence.values()) > 0.9


def test_the_first_model_guides_the_others(models):
    parser = ProductParser([models[2], models[1], models[2]])
    assert [projection is not None for projection in parser._guided_from] == [False, True, True]
    n_pruned = 0
    for sentence in map(str.split, SENTENCES):
        entries = [member._entries(sentence) for member in parser._members]
        first = parser._vote(0, entries[0])
        # A model guided by another loses what that one holds for improbable; guided by itself, next to nothing.
        for place, most in ((1, 1.0), (2, 0.05)):
            free, guided = (parser._vote(place, entries[place], mask=mask) for mask in (None, first.mask))
            assert free.log_total - most < guided.log_total < free.log_total + most
            n_pruned += len(guided.forest.rules) < len(free.forest.rules)
    assert n_pruned
    assert ProductParser([models[2]] * 2, threshold=0.0)._guided_from == [None, None]


@pytest.mark.parametrize("kind", ["rules", "trees"])
def test_threads_change_nothing(models, kind):
    """Sentences side by side, and the models of one sentence side by side, as each sentence alone."""
    sample = [tree.leaves() for tree in map(Cleaning().apply, load("village", "dev")[:12])]
    parser = ProductParser(models, product=kind)

    def values(parses):
        return [
            (list(map(str, one.trees)), one.scores, one.log_probabilities, one.log_total, one.confidence)
            for one in parses
        ]

    alone = values(ProductParser(models, product=kind).analyse(words, k=3, confidence=True) for words in sample)
    pairs = [(words, None) for words in sample]
    for threads in (1, 3):
        assert values(parser.parse_batch(pairs, threads=threads, k=3, confidence=True)) == alone
    with ThreadPoolExecutor(2) as pool:
        assert values(parser.analyse(words, k=3, confidence=True, pool=pool) for words in sample) == alone


def test_idle_threads_take_models(models):
    """A sentence alone is worked at by several threads, unless they have something else to do."""
    parser = ProductParser([*models, *models])
    places = Counter()
    vote = parser._vote

    def watched(place, *arguments, **options):
        places[threading.current_thread().name] += 1
        return vote(place, *arguments, **options)

    parser._vote = watched
    is_done = threading.Event()
    with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
        busy = pool.submit(is_done.wait)
        parser.analyse(SENTENCES[1].split(), pool=pool)
        assert set(places) == {threading.current_thread().name}
        is_done.set()
        busy.result()
        for _ in range(50):
            parser.analyse(SENTENCES[1].split(), pool=pool)
            if len(places) == 2:
                break
    assert len(places) == 2
    assert places.total() % 6 == 0


def test_results_of_calls():
    assert results_of([lambda: 1, lambda: 2]) == [1, 2]
    with ThreadPoolExecutor(2) as pool:
        assert results_of([partial(int, text) for text in "3142"], pool) == [3, 1, 4, 2]
        with pytest.raises(ValueError, match="invalid literal"):
            results_of([partial(int, text) for text in "3x42"], pool)
    # A pool that closes takes nothing.
    assert results_of([partial(int, text) for text in "3142"], pool) == [3, 1, 4, 2]


@pytest.mark.parametrize("kind", ["rules", "trees"])
def test_search_errors(models, kind):
    """They are those of the votes: with and without pruning, the whole product is asked."""
    sample = [Cleaning().apply(tree).leaves() for tree in load("village", "dev")[:24]]
    # The labels of spans bring the pruned and the exact search together: without them, these differ more.
    exactly = partial(ProductParser, models[1:], product=kind, threshold=0.0, span_power=0.0)
    parser = ProductParser(models[1:], product=kind, threshold=0.4, span_power=0.0)
    pruned, exact = ([one.analyse(words) for words in sample] for one in (parser, exactly()))
    compared = [(one.tree, other.tree) for one, other in zip(pruned, exact, strict=True) if not other.fallback]
    changed = sum(one != other for one, other in compared)
    assert changed >= 1
    assert parser.search_errors(sample) == (changed, len(compared))
    assert exactly().search_errors(sample) == (0, len(compared))


def test_settings_reach_every_vote(models):
    parser = ProductParser(models, threshold=0.1, tags="hard")
    changed = parser.with_settings(threshold=0.0, tags="soft", max_length=5)
    assert {(one.settings.threshold, one.settings.tags) for one in changed._members} == {(0.0, "soft")}
    assert changed._guided_from == [None] * 3
    assert {(one.settings.threshold, one.settings.tags) for one in parser._members} == {(0.1, "hard")}
    # Grammars and tables are shared, charts are not.
    for one, other in zip(parser._members, changed._members, strict=True):
        assert one._cascade is other._cascade
        assert one._idle_engines is not other._idle_engines
    assert changed.analyse(SENTENCES[1].split()).fallback == "flat"
    assert not parser.analyse(SENTENCES[1].split()).fallback


def test_a_product_is_no_parser_of_one_model(models):
    parser = ProductParser(models)
    assert isinstance(parser, SentenceParser)
    assert not isinstance(parser, Parser)
    assert isinstance(parser_of(models), ProductParser)
    assert isinstance(parser_of(models[:1]), Parser)
    sentence = SENTENCES[0].split()
    assert list(parser.parse_one(sentence)) == list(parser.analyse(sentence).tree)
    assert parser.grammar() is models[0].grammar
    for wrong in ({"objective": "mpd"}, {"objective": "mer-sampled", "correct": True}):
        for make in (parser.with_settings, lambda **changes: ProductParser(models, **changes)):
            with pytest.raises(UsageError, match="objective of their own"):
                make(**wrong)


def test_threads_do_not_change_the_result(models):
    parser = ProductParser(models)
    sentences = [(sentence.split(), None) for sentence in SENTENCES * 3]
    one, two = ([str(parse.tree) for parse in parser.parse_batch(sentences, threads=n)] for n in (1, 2))
    assert one == two


def test_every_input_gets_a_tree(models):
    parser = ProductParser(models, max_length=5)
    assert parser.analyse([]).fallback == "empty"
    assert parser.analyse(["x"] * 6).fallback == "flat"
    assert parser.analyse(["."]).tree.leaves() == ["."]
    with pytest.raises(UsageError, match="2 tags for 1 words"):
        parser.analyse(["x"], ["A", "B"])


def test_models_of_other_trees_are_refused(models):
    corpus = prepare(load("village", "dev"), binarization=Binarization("right", 1), unknown=UnknownWords())
    with pytest.raises(UsageError, match="do not go together"):
        ProductParser([models[0], cfg_model(corpus)])
    with pytest.raises(UsageError, match="at least one model"):
        ProductParser([])
    with pytest.raises(UsageError, match="must be one of rules, trees"):
        ProductParser(models, product="words")
