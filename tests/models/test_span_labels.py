"""Labels of spans: features and learning against definitions, what parses make of them, damaged files."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tree import Tree
from reference.closing import Sentence
from reference.span_labels import learned, log_odds, rows_of

from tsgkit._archive import write_archive
from tsgkit._forest import Forest
from tsgkit._span_labels import LabelScorer, learn_label_weights
from tsgkit.errors import ArchiveError, UsageError
from tsgkit.inference._srtsg import SrSettings
from tsgkit.inference._training import Training
from tsgkit.models import _span_labels
from tsgkit.models._cfg import cfg_model
from tsgkit.models._closing import UNKNOWN, learn_closing
from tsgkit.models._model import KIND, VERSION, Model
from tsgkit.models._span_labels import FEWEST_ROWS, MOST_OUTPUTS, MOST_ROWS, learn_span_labels, rows_for
from tsgkit.parsing import Parser
from tsgkit.parsing._product import ProductParser
from tsgkit.parsing._rows import rows_of_tree, rules_of_rows
from tsgkit.treebank import Binarization, UnknownWords, load, prepare
from tsgkit.treebank._trees import words as words_of

some = settings(max_examples=25, deadline=None, derandomize=True)
N_CLASSES, N_WORDS, N_OUTPUTS = 3, 6, 4


def numbers(values, size):
    return st.lists(values, min_size=size, max_size=size).map(lambda found: np.array(found, dtype=np.int32))


@st.composite
def annotated(draw):
    """Words with classes, and outputs of spans."""
    n_words = draw(st.integers(1, 7))
    outputs = draw(numbers(st.integers(-1, N_OUTPUTS - 1), (n_words + 1) ** 2))
    return (
        draw(numbers(st.integers(-1, N_WORDS - 1), n_words)),
        draw(numbers(st.integers(0, N_CLASSES), n_words)),
        outputs.astype(np.int8).reshape(n_words + 1, n_words + 1),
    )


@some
@given(st.lists(annotated(), min_size=1, max_size=3), st.sampled_from([1, 64, 1 << 15]), st.data())
def test_learning_and_scoring(sentences, n_rows, data):
    order = [data.draw(st.permutations(range(len(sentences)))) for _ in range(2)]
    weights = learn_label_weights(N_CLASSES, N_OUTPUTS, n_rows, sentences, order)
    np.testing.assert_allclose(weights, learned(N_CLASSES, N_OUTPUTS, n_rows, sentences, order), atol=2e-3)
    scorer = LabelScorer(N_CLASSES, weights)
    for words, classes, _ in sentences:
        found = scorer.log_odds(words, classes)
        sentence = Sentence(words.tolist(), classes.tolist(), N_CLASSES)
        for start in range(len(words) + 1):
            for end in range(len(words) + 1):
                if end < start + 2:
                    assert (found[start, end] == -math.inf).all()
                else:
                    expected = log_odds(weights, rows_of(sentence, start, end, n_rows))
                    np.testing.assert_allclose(found[start, end], expected, atol=1e-4)


def random_scorer(scale=1.0):
    random = np.random.Generator(np.random.PCG64(1))
    return LabelScorer(N_CLASSES, (scale * random.normal(size=(1 << 10, N_OUTPUTS))).astype(np.float32))


WORDS, CLASSES = np.array([0, -1, 2], dtype=np.int32), np.array([0, 3, 1], dtype=np.int32)
# Start, split, end, label, left label, right label; the last rule has a label in the second state of two.
RULES = [
    (0, -1, 1, 3, -1, -1),
    (0, 1, 2, 1, 3, 3),
    (0, -1, 2, 0, 1, -1),
    (0, 1, 3, 0, 3, 2),
    (0, 2, 3, 0, 1, 3),
    (0, 2, 3, 2, 1, 3),
    (0, 2, 3, 4 + 1, 1, 3),
]


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("scale", [0.3, 50.0])
def test_rules_are_multiplied_by_the_odds_of_their_labels(power, scale):
    scorer = random_scorer(scale)
    posteriors = [0.5, 0.4, 0.3, 0.2, 0.1, 0.9, 0.8]
    forest = Forest(3, 4, RULES, posteriors, n_states=2)
    before = dict(zip(map(tuple, forest.rules.tolist()), forest.posteriors, strict=True))
    assert sorted(before.values()) == sorted(posteriors)
    output_of_label = np.array([1, 3, 0, 2], dtype=np.int32)
    scorer.weigh(forest, WORDS, CLASSES, output_of_label, power)
    odds = scorer.log_odds(WORDS, CLASSES)
    for rule, posterior in zip(map(tuple, forest.rules.tolist()), forest.posteriors, strict=True):
        start, _, end, label, _, right = rule
        output = output_of_label[label % 4]
        factor = 1.0 if right < 0 or output == 0 else math.exp(power * np.clip(odds[start, end, output], -30, 30))
        assert math.isclose(posterior, before[rule] * factor)


def test_what_does_not_fit():
    scorer, forest = random_scorer(), Forest(3, 4, RULES[:1], [0.5])
    outputs = np.zeros(4, dtype=np.int32)
    with pytest.raises(ValueError, match="other words or labels"):
        scorer.weigh(forest, WORDS[:2], CLASSES[:2], outputs, 1.0)
    with pytest.raises(ValueError, match="other words or labels"):
        scorer.weigh(forest, WORDS, CLASSES, outputs[:3], 1.0)
    for output in (-1, N_OUTPUTS):
        with pytest.raises(ValueError, match=f"output {output} is out of range"):
            scorer.weigh(forest, WORDS, CLASSES, outputs + output, 1.0)
    with pytest.raises(ValueError, match="out of range"):
        scorer.weigh(forest, WORDS, CLASSES + N_CLASSES, outputs, 1.0)
    with pytest.raises(ValueError, match="do not fit together"):
        LabelScorer(1, np.zeros((3, 2), dtype=np.float32))
    square = np.zeros((4, 4), dtype=np.int8)
    with pytest.raises(ValueError, match="sentence 0: one output is needed"):
        learn_label_weights(N_CLASSES, 2, 16, [(WORDS, CLASSES, square[:3])], [[0]])
    with pytest.raises(ValueError, match="sentence 0: an output is out of range"):
        learn_label_weights(N_CLASSES, 2, 16, [(WORDS, CLASSES, square + 2)], [[0]])


# ---- learning from trees -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def corpus():
    return prepare(load("village", "train"), binarization=Binarization("right", 0), unknown=UnknownWords(threshold=0))


@pytest.fixture(scope="module")
def models(corpus):
    trained = []
    for seed in (1, 2):
        training = Training(corpus, SrSettings(splits=1, split_iterations=6, joint_iterations=0, average=1), seed=seed)
        training.start()
        for iteration in range(1, 7):
            training.iterate(iteration)
        trained.append(training.model())
    return trained


def test_labels_of_trees_that_were_not_trained_on(corpus):
    """Most nodes with two children have the label with the highest odds, of some twenty."""
    closing = learn_closing(corpus, corpus.words)
    model = learn_span_labels(corpus, corpus.words, corpus.labels, closing)
    number_of = {word: number for number, word in enumerate(corpus.words)}
    dev = prepare(load("village", "dev"), binarization=Binarization("right", 0), unknown=UnknownWords(threshold=0))
    n_nodes = n_right = 0
    for tree in dev.trees(original_words=False):
        words = np.array([number_of.get(word, UNKNOWN) for word in words_of(tree)], dtype=np.int32)
        best = model.log_odds(words).argmax(axis=2)
        for label, start, end in nodes_with_two_children(tree):
            n_nodes += 1
            n_right += label in corpus.labels and best[start, end] == model.output_of_label[corpus.labels.index(label)]
    assert n_right > 0.6 * n_nodes


def nodes_with_two_children(tree, start=0):
    found = [(tree.label(), start, start + len(words_of(tree)))] if len(tree) == 2 else []
    for child in tree:
        if not isinstance(child, str):
            found += nodes_with_two_children(child, start)
            start += len(words_of(child))
    return found


def test_rare_labels_share_an_output(corpus, monkeypatch):
    monkeypatch.setattr(_span_labels, "MOST_OUTPUTS", 4)
    model = learn_span_labels(corpus, corpus.words, [*corpus.labels, "new"], learn_closing(corpus, corpus.words))
    has_two = np.diff(corpus.child_start) == 2
    counts = np.bincount(corpus.label[has_two], minlength=len(corpus.labels))
    outputs = model.output_of_label
    assert outputs[-1] == 0
    assert ((outputs[:-1] == 0) == (counts == 0)).all()
    assert sorted(set(outputs.tolist())) == [0, 1, 2, 3]
    assert all(np.count_nonzero(outputs == output) == 1 for output in (1, 2))
    assert counts[outputs[:-1] == 1].max() == counts.max()
    assert counts[outputs[:-1] == 3].max() <= counts[outputs[:-1] == 2].min()


def test_learning_is_repeatable(models):
    one, other = (model.span_labels.to_parts() for model in models)
    assert all((one[name] == other[name]).all() for name in one)


def test_which_models_learn_them(corpus, models):
    assert cfg_model(corpus).span_labels is None
    assert models[0].span_labels is not None


def test_larger_treebanks_have_more_rows():
    assert [rows_for(n_tokens) for n_tokens in (0, 1 << 17, 1 << 18, 10**9)] == [1 << 15, 1 << 16, 1 << 17, MOST_ROWS]


def test_a_treebank_without_phrases_of_two():
    trees = [Tree.fromstring("(S (NN dogs))"), Tree.fromstring("(S (NP (NN cats)))")]
    corpus = prepare(trees, binarization=Binarization("right", 0), unknown=UnknownWords(threshold=0))
    model = learn_span_labels(corpus, corpus.words, corpus.labels, learn_closing(corpus, corpus.words))
    assert model.weights.shape == (FEWEST_ROWS, 1)
    assert not model.output_of_label.any()


# ---- parsing -----------------------------------------------------------------------------------------------

SENTENCE = ["the", "old", "man", "gave", "her", "a", "book", "in", "the", "garden", "."]


def log_odds_of_tree(model, rows, words):
    """The log odds of the labels of a tree's rules with two children."""
    parser = Parser(model)
    symbols = parser._entries(words).weigh.keywords["words"]
    odds = model.span_labels.log_odds(symbols)
    rules = rules_of_rows(rows)
    outputs = model.span_labels.output_of_label[rules[:, 3]]
    return sum(
        odds[start, end, output]
        for (start, _, end, _, _, right), output in zip(rules.tolist(), outputs.tolist(), strict=True)
        if right >= 0 and output > 0
    )


def candidates_of(parser, k):
    """The rows and scores of the k best trees, and their shares."""
    seen = []
    best_parse = parser._best_parse

    def watched(search, words, *, k, confidence):
        seen.extend(parser._objective.decode(search, k) if search.fill() else [])
        return best_parse(search, words, k=k, confidence=confidence)

    parser._best_parse = watched
    parser.analyse(SENTENCE, k=k, confidence=True)
    return seen


@pytest.mark.parametrize("power", [0.3, 1.0])
def test_the_objective(models, power):
    """The score of a tree is the sum of the logs of its rules' posteriors and odds; trees come best first."""
    model = models[0]
    plain, weighed = (candidates_of(Parser(model, span_power=each), 400) for each in (0.0, power))
    score_of = {candidate.rows.tobytes(): candidate.score for candidate in plain}
    common = [candidate for candidate in weighed if candidate.rows.tobytes() in score_of]
    assert len(common) > 20
    for candidate in common:
        odds = log_odds_of_tree(model, candidate.rows, SENTENCE)
        assert math.isclose(candidate.score, score_of[candidate.rows.tobytes()] + power * odds, abs_tol=1e-6)
    scores = [candidate.score for candidate in weighed]
    assert scores == sorted(scores, reverse=True)
    # The order is another one: the odds matter.
    assert [each.rows.tobytes() for each in weighed] != [each.rows.tobytes() for each in plain]


def test_shares_are_those_of_the_weighed_rules(models):
    found = candidates_of(Parser(models[0]), 3000)
    ratios = {round(candidate.score - math.log(candidate.share), 6) for candidate in found[:50]}
    assert len(ratios) == 1
    assert 0.9 < sum(candidate.share for candidate in found) < 1 + 1e-9


@pytest.fixture(scope="module")
def without_them():
    """A model of the same trees in another order, and so with other numbers of labels."""
    trees = list(load("village", "train"))[::-1]
    return cfg_model(prepare(trees, binarization=Binarization("right", 0), unknown=UnknownWords(threshold=0)))


@pytest.mark.parametrize("is_first", [True, False])
def test_products_take_them_once(models, without_them, is_first):
    """The score of a product is the sum over models of the logs of posteriors, and as many times the log odds."""
    members = models if is_first else [without_them, models[0]]
    plain, weighed = (ProductParser(members, span_power=power).analyse(SENTENCE, k=300) for power in (0.0, 1.0))
    score_of = {str(tree): score for tree, score in zip(plain.trees, plain.scores, strict=True)}
    common = [(tree, score) for tree, score in zip(weighed.trees, weighed.scores, strict=True) if str(tree) in score_of]
    assert len(common) > 20
    parser = Parser(models[0])
    for tree, score in common:
        rows = rows_of_tree(models[0].preparation.encode(tree), parser._number_of_label)
        odds = log_odds_of_tree(models[0], rows, SENTENCE)
        assert math.isclose(score, score_of[str(tree)] + 2 * odds, abs_tol=1e-6)


@pytest.mark.parametrize("objective", ["mpd", "mpp", "mer", "max-rule-sampled"])
def test_other_objectives_have_no_odds(models, objective):
    one, other = (
        Parser(models[0], objective=objective, span_power=power, n_samples=50).analyse(SENTENCE, k=3)
        for power in (0.0, 1.0)
    )
    assert (one.trees, one.scores) == (other.trees, other.scores)


def test_without_odds_the_grammar_decides_alone(models):
    _, arrays = models[0].to_parts()
    assert {name for name in arrays if name.startswith("span_labels.")} == {
        "span_labels.output_of_label",
        "span_labels.weights",
    }
    one, other = (
        Parser(model, span_power=power).analyse(SENTENCE, k=5) for model, power in ((models[0], 0.0), (models[1], 0.0))
    )
    assert one.scores != other.scores
    models[0].span_labels, kept = None, models[0].span_labels
    try:
        without = Parser(models[0]).analyse(SENTENCE, k=5)
    finally:
        models[0].span_labels = kept
    assert (without.trees, without.scores) == (one.trees, one.scores)


@pytest.mark.parametrize("power", [-1.0, 101.0, math.nan, math.inf])
def test_powers_out_of_range(models, power):
    with pytest.raises(UsageError, match="span_power"):
        Parser(models[0], span_power=power)


# ---- files -------------------------------------------------------------------------------------------------


def test_a_model_keeps_them(models, tmp_path):
    models[0].save(tmp_path / "m.model")
    loaded = Model.load(tmp_path / "m.model")
    for name, array in models[0].span_labels.to_parts().items():
        assert (loaded.span_labels.to_parts()[name] == array).all()
    assert Parser(loaded).analyse(SENTENCE).scores == Parser(models[0]).analyse(SENTENCE).scores


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("span_labels.output_of_label", lambda array: array[1:], "output_of_label"),
        ("span_labels.output_of_label", lambda array: array - 1, "an output of labels is out of range"),
        ("span_labels.output_of_label", lambda array: array + 100, "an output of labels is out of range"),
        ("span_labels.output_of_label", lambda array: None, "output_of_label"),
        ("span_labels.weights", lambda array: array[1:], "weights"),
        ("span_labels.weights", lambda array: array[:, :0].copy(), "array weights has the wrong shape"),
        ("span_labels.weights", lambda array: array[:16384].copy(), "array weights has the wrong shape"),
        ("span_labels.weights", lambda array: np.repeat(array, 16, axis=0), "array weights has the wrong shape"),
        ("span_labels.weights", lambda array: np.concatenate([array, array[:1]]), "array weights has the wrong shape"),
        ("span_labels.weights", lambda array: np.repeat(array[:, :1], MOST_OUTPUTS + 1, axis=1), "wrong shape"),
        ("span_labels.weights", lambda array: array * np.float16(np.nan), "not a number"),
        ("span_labels.weights", lambda array: array.astype(np.float32), "weights"),
        ("closing.", lambda array: None, "labels of spans without classes of words"),
    ],
)
def test_damaged_files(models, tmp_path, name, change, problem):
    header, arrays = models[0].to_parts()
    arrays = {key: change(array) if key.startswith(name) else array for key, array in arrays.items()}
    arrays = {key: array for key, array in arrays.items() if array is not None}
    write_archive(tmp_path / "m.model", KIND, VERSION, header, arrays)
    with pytest.raises(ArchiveError, match=problem):
        Model.load(tmp_path / "m.model")
