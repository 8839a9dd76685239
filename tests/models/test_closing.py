"""Closing cells: features and learning against definitions, spans against trees, files against damage."""

from math import exp, isclose

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.closing import Sentence, learned, length_bucket, log_odds

from tsgkit._archive import read_archive, write_archive
from tsgkit._cell_closing import BOUNDARY_SIZE, EXTRA_CLASSES, LENGTH_SIZE, PAIR_KINDS, CellScorer, learn_weights
from tsgkit.errors import ArchiveError
from tsgkit.models._cfg import cfg_model
from tsgkit.models._closing import POWER, UNKNOWN, learn_closing, most_frequent, node_spans
from tsgkit.models._model import KIND, VERSION, Model
from tsgkit.treebank import Binarization, UnknownWords, load, prepare
from tsgkit.treebank._trees import words as words_of

some = settings(max_examples=60, deadline=None, derandomize=True)
N_CLASSES, N_WORDS = 3, 6


def numbers(values, size):
    return st.lists(values, min_size=size, max_size=size).map(lambda found: np.array(found, dtype=np.int32))


@st.composite
def annotated(draw):
    """Words with classes, and flags of spans."""
    n_words = draw(st.integers(1, 12))
    flags = draw(st.lists(st.integers(0, 1), min_size=(n_words + 1) ** 2, max_size=(n_words + 1) ** 2))
    return (
        draw(numbers(st.integers(-1, N_WORDS - 1), n_words)),
        draw(numbers(st.integers(0, N_CLASSES), n_words)),
        np.array(flags, dtype=np.uint8).reshape(n_words + 1, n_words + 1),
    )


@some
@given(st.lists(annotated(), min_size=1, max_size=4), st.data())
def test_learning_and_scoring(sentences, data):
    order = [data.draw(st.permutations(range(len(sentences)))) for _ in range(2)]
    tables = dict(zip(("boundary", "pairs", "lengths"), learn_weights(N_CLASSES, sentences, 2, order), strict=True))
    expected = learned(N_CLASSES, sentences, order)
    for name, table in tables.items():
        assert set(np.flatnonzero(table)) <= expected[name].keys()
        for place, weight in expected[name].items():
            assert isclose(table[place], weight, abs_tol=1e-4)
    scorer = CellScorer(N_CLASSES, *tables.values())
    for words, classes, _ in sentences:
        found = scorer.log_odds(words, classes)
        sentence = Sentence(words.tolist(), classes.tolist(), N_CLASSES)
        for start in range(len(words)):
            for end in range(start + 1, len(words) + 1):
                assert isclose(found[start, end], log_odds(tables, sentence.features(start, end)), abs_tol=1e-4)


@some
@given(annotated(), st.sampled_from([-2.0, 0.0, 0.5]), st.sampled_from([0.0, 0.3]))
def test_open_cells(sentence, smallest, power):
    words, classes, _ = sentence
    random = np.random.Generator(np.random.PCG64(1))
    sizes = (BOUNDARY_SIZE, PAIR_KINDS * (N_CLASSES + EXTRA_CLASSES) ** 2, LENGTH_SIZE)
    scorer = CellScorer(N_CLASSES, *(random.normal(size=size).astype(np.float32) for size in sizes))
    found, cells = scorer.log_odds(words, classes), scorer.open_cells(words, classes, smallest, power)
    n_words = len(words)
    expected = {
        (start, end): end == start + 1 or end - start == n_words or found[start, end] >= smallest
        for start in range(n_words)
        for end in range(start + 1, n_words + 1)
    }
    assert {span: cells.is_open(*span) for span in expected} == expected
    assert cells.count() == sum(expected.values())
    assert cells.has_weights == (power > 0)


def test_lengths_fall_into_ranges():
    assert [length_bucket(length) for length in (1, 8, 9, 16, 17, 32, 33, 2000)] == [0, 7, 8, 8, 9, 9, 10, 15]


@pytest.mark.parametrize(("words", "classes"), [([0], []), ([0], [N_CLASSES + 1]), ([0], [-1]), ([-2], [0])], ids=str)
def test_sentences_out_of_range(words, classes):
    sizes = (BOUNDARY_SIZE, PAIR_KINDS * (N_CLASSES + EXTRA_CLASSES) ** 2, LENGTH_SIZE)
    scorer = CellScorer(N_CLASSES, *(np.zeros(size, dtype=np.float32) for size in sizes))
    arguments = np.array(words, dtype=np.int32), np.array(classes, dtype=np.int32)
    with pytest.raises(ValueError, match=r"classes|out of range"):
        scorer.log_odds(*arguments)
    with pytest.raises(ValueError, match=r"classes|out of range"):
        scorer.open_cells(*arguments, 0.0)


def test_weights_that_do_not_fit():
    with pytest.raises(ValueError, match="do not fit together"):
        CellScorer(1, np.zeros(3, dtype=np.float32), np.zeros(64, dtype=np.float32), np.zeros(16, dtype=np.float32))
    flags = np.zeros((2, 2), dtype=np.uint8)
    with pytest.raises(ValueError, match="sentence 0: one flag is needed"):
        learn_weights(1, [(np.zeros(2, dtype=np.int32), np.zeros(2, dtype=np.int32), flags)], 1, [[0]])


# ---- learning from trees -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def corpus():
    return prepare(load("village", "train"), binarization=Binarization("right", 1), unknown=UnknownWords())


def spans_of(tree, start=0):
    """Start and end of each node of a tree in preorder."""
    spans = [(start, start + len(words_of(tree)))]
    for child in tree:
        if not isinstance(child, str):
            spans += spans_of(child, start)
            start += len(words_of(child))
    return spans


def test_spans_of_trees(corpus):
    expected, n_words_before = [], 0
    for tree in corpus.trees():
        expected += [(n_words_before + start, n_words_before + end) for start, end in spans_of(tree)]
        n_words_before += len(tree.leaves())
    starts, ends = node_spans(corpus)
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == expected


def test_the_most_frequent_tag():
    words, tags = np.array([0, 0, 0, 1, 1, UNKNOWN]), np.array([1, 0, 1, 1, 0, 0])
    assert most_frequent(words, tags, 3, 2).tolist() == [1, 0, 2]


def test_closed_cells_have_few_nodes(corpus):
    """Trees that were not trained on: almost all nodes are in open cells, and most cells are closed."""
    closing = learn_closing(corpus, corpus.words)
    number_of = {word: number for number, word in enumerate(corpus.words)}
    dev = prepare(load("village", "dev"), binarization=Binarization("right", 1), unknown=UnknownWords())
    n_nodes = n_found = n_open = n_cells = 0
    for tree in dev.trees(original_words=False):
        words = np.array([number_of.get(word, UNKNOWN) for word in words_of(tree)], dtype=np.int32)
        cells = closing.open_cells(words, 1e-2)
        spans = set(spans_of(tree))
        n_nodes, n_found = n_nodes + len(spans), n_found + sum(cells.is_open(*span) for span in spans)
        n_cells, n_open = n_cells + len(words) * (len(words) + 1) // 2, n_open + cells.count()
    assert n_found > 0.98 * n_nodes
    assert n_open < 0.6 * n_cells


def test_the_threshold_is_a_probability(corpus):
    closing = learn_closing(corpus, corpus.words)
    words = np.arange(12, dtype=np.int32)
    odds = closing.log_odds(words)
    cells = closing.open_cells(words, 0.05)
    for start in range(12):
        for end in range(start + 2, 13 if start else 12):
            assert cells.is_open(start, end) == (1 / (1 + exp(-odds[start, end])) >= 0.05)
    assert POWER > 0
    assert cells.has_weights


def test_learning_is_repeatable(corpus):
    one, other = (learn_closing(corpus, corpus.words).to_parts() for _ in range(2))
    assert all((one[name] == other[name]).all() for name in one)


# ---- files -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(corpus):
    return cfg_model(corpus)


def test_a_model_keeps_it(model, tmp_path):
    model.save(tmp_path / "m.model")
    loaded = Model.load(tmp_path / "m.model").closing
    assert loaded.n_classes == model.closing.n_classes
    for name, array in model.closing.to_parts().items():
        assert (loaded.to_parts()[name] == array).all()


def test_a_model_of_an_earlier_version_has_none(model, tmp_path):
    header, arrays = model.to_parts()
    write_archive(tmp_path / "m.model", KIND, VERSION, header, {k: v for k, v in arrays.items() if "closing." not in k})
    assert Model.load(tmp_path / "m.model").closing is None


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("word_class", lambda array: array[1:], "word_class"),
        ("word_class", lambda array: array - 1000, "a class of words is out of range"),
        ("word_class", lambda array: array + 1000, "a class of words is out of range"),
        ("pairs", lambda array: array[1:], "array pairs has the wrong shape"),
        ("pairs", lambda array: array[:0], "array pairs has the wrong shape"),
        ("boundary", lambda array: array[1:], "boundary"),
        ("lengths", lambda array: array * np.float32(np.nan), "not a number"),
        ("boundary", lambda array: None, "boundary"),
    ],
)
def test_damaged_files(model, tmp_path, name, change, problem):
    header, arrays = model.to_parts()
    arrays[f"closing.{name}"] = change(arrays[f"closing.{name}"])
    arrays = {key: array for key, array in arrays.items() if array is not None}
    write_archive(tmp_path / "m.model", KIND, VERSION, header, arrays)
    assert read_archive(tmp_path / "m.model", KIND, VERSION)
    with pytest.raises(ArchiveError, match=problem):
        Model.load(tmp_path / "m.model")
