"""The weighted grammar: what it refuses, what it reports, and its files."""

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import grammars

from tsgkit._archive import write_archive
from tsgkit._chart import Chart
from tsgkit._derivations import best_derivation
from tsgkit._grammar_index import GrammarIndex
from tsgkit.errors import ArchiveError
from tsgkit.grammar import GrammarError, WeightedGrammar

ARRAYS = [
    "label", "binary", "binary_weight", "unary", "unary_weight", "bridge", "bridge_weight", "lexical",
    "lexical_weight",
]  # fmt: skip


def small(**changes):
    """S -> A A, A => A' , A' -> B, B and A' make words."""
    parts = {
        "labels": ["S", "A", "B"],
        "words": ["a", "b"],
        "label": [0, 1, 1, 2],
        "root": 0,
        "binary": [(0, 1, 1)],
        "binary_weight": [1.0],
        "bridge": [(1, 2)],
        "bridge_weight": [1.0],
        "unary": [(2, 3)],
        "unary_weight": [0.5],
        "lexical": [(2, 0), (3, 0), (3, 1)],
        "lexical_weight": [0.5, 0.25, 0.75],
    }
    return WeightedGrammar(**{**parts, **changes})


def test_a_good_one():
    grammar = small()
    assert (grammar.n_symbols, grammar.n_rules) == (4, 6)
    report = grammar.report()
    assert report.is_proper
    assert report.largest_excess == pytest.approx(0.0)
    assert (report.unreachable, report.unproductive, report.cycles) == ([], [], [])
    assert [grammar.name_of(symbol) for symbol in range(4)] == ["S", "A#0", "A#1", "B"]
    assert [small(names=["w", "x", "y", "z"]).name_of(symbol) for symbol in range(4)] == ["w", "x", "y", "z"]
    for name in ARRAYS:
        array = getattr(grammar, name)
        assert array.dtype == (np.float64 if name.endswith("weight") else np.int32)
        assert array.flags.c_contiguous


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"root": 4}, "the root 4 is not one of 4 symbols"),
        ({"root": -1}, "the root -1 is not"),
        ({"label": []}, "the root 0 is not one of 0 symbols"),
        ({"label": [0, 1, 1, 3]}, "projection points outside"),
        ({"label": [0, 1, 1, -2]}, "projection points outside"),
        ({"label": [0, 1, 1, -1]}, "without a label is more than"),
        ({"label": [0, 1, -1, 2]}, "different labels"),
        ({"label": [-1, 1, 1, 2]}, "without a label is more than"),
        ({"label": [0, -1, 1, 2]}, "without a label is more than"),
        ({"label": [0, -1, 1, 2], "binary": [(0, 1, 2)], "unary": [(1, 3)]}, "without a label is more than"),
        ({"label": [0, -1, 1, 2], "binary": [(0, 1, 2)], "lexical": [(1, 0), (3, 0), (3, 1)]}, "without a label"),
        ({"label": [0, -1, -1, 2], "binary": [(0, 1, 3)], "unary": [(0, 3)]}, "without a label is more than"),
        ({"label": [0.5, 1, 1, 2]}, "label holds what is not"),
        ({"label": [[0, 1], [1, 2]]}, "label has the shape"),
        ({"names": ["a"]}, "names of symbols"),
        ({"names": ["a", "b", "c", "c"]}, "names of symbols"),
        ({"binary_weight": []}, "1 binary rules but 0 weights"),
        ({"binary_weight": [1.0, 1.0]}, "1 binary rules but 2 weights"),
        ({"binary_weight": [0.0]}, "binary rule has a weight"),
        ({"unary_weight": [-1.0]}, "unary rule has a weight"),
        ({"bridge_weight": [float("nan")]}, "bridge rule has a weight"),
        ({"lexical_weight": [1.0, float("inf"), 1.0]}, "lexical rule has a weight"),
        ({"binary": [(0, 1, 4)]}, "binary rule names"),
        ({"binary": [(-1, 1, 1)]}, "binary rule names"),
        ({"unary": [(4, 3)]}, "unary rule names"),
        ({"bridge": [(1, 4)]}, "bridge rule names"),
        ({"lexical": [(2, 0), (3, 0), (3, 2)]}, "lexical rule names"),
        ({"lexical": [(2, 0), (4, 0), (3, 1)]}, "lexical rule names"),
        ({"bridge": [(1, 3)]}, "different labels"),
        # What a cast would have made something else of.
        ({"binary": np.array([(2**32, 1, 1)])}, "binary holds what is not"),
        ({"unary": [(2**40, 3)]}, "unary holds what is not"),
        ({"unary": [(2**80, 3)]}, "unary holds what is not"),
        ({"unary": [(2.5, 3.0)]}, "unary holds what is not"),
        ({"unary": [("2", "3")]}, "unary holds what is not"),
        ({"binary": [(0, 1), (0, 1), (0, 1)], "binary_weight": [1.0, 1.0]}, "binary has the shape"),
        ({"binary": [0, 1, 1]}, "binary has the shape"),
        ({"unary": [(2, 3), (2, 3)], "unary_weight": [2.0, -1.0]}, "unary rule has a weight"),
        ({"unary": [(2, 2)], "unary_weight": [1.0]}, "does not converge: A#1"),
        ({"unary": [(2, 3), (3, 1)], "unary_weight": [0.5, 2.0]}, "does not converge: A#0, A#1, B"),
        ({"unary": [(2, 3), (3, 1)], "unary_weight": [0.2, 5.0]}, "does not converge"),
    ],
)
def test_what_is_refused(changes, problem):
    with pytest.raises(GrammarError, match=problem):
        small(**changes)


def test_the_index_looks_again():
    grammar = small()
    grammar.binary[0, 2] = 77
    with pytest.raises(GrammarError, match="binary rule names"):
        GrammarIndex(grammar)


def test_orders_are_made_when_they_are_needed():
    """Pruned charts read rules by treebank rule only; the other orders are made once, of the index itself."""
    grammar = small()
    index = GrammarIndex(grammar)
    assert not index.has_left
    assert not index.has_parent
    grammar.binary[:] = 77  # what comes later is not looked at
    chart = Chart(index)
    entries = np.array([0, 1, 2]), index.rank_of_symbol[[2, 3]], np.array([0.5, 0.25])
    assert chart.fill(*entries, viterbi=True) > -np.inf
    assert index.has_left
    assert not index.has_parent
    assert best_derivation(chart)[0][0].tolist()[1:3] == [0, 2]
    assert index.has_parent


def test_equal_rules_are_added_up():
    grammar = small(unary=[(2, 3), (0, 1), (2, 3)], unary_weight=[0.125, 0.5, 0.25])
    assert grammar.unary.tolist() == [[0, 1], [2, 3]]
    assert grammar.unary_weight.tolist() == [0.5, 0.375]
    assert grammar.n_rules == 7
    # The weights still belong to their rules when the order changes.
    shuffled = small(lexical=[(3, 1), (2, 0), (3, 0)], lexical_weight=[0.75, 0.5, 0.25])
    assert shuffled.lexical.tolist() == small().lexical.tolist()
    assert shuffled.lexical_weight.tolist() == small().lexical_weight.tolist()


def test_the_report():
    grammar = WeightedGrammar(
        ["S", "A"], ["a"], [0, 0, 1, 1, 0, 1], 0,
        # 4 is never reached, 3 makes no words and so neither does 5.
        binary=[(0, 2, 2), (4, 2, 2), (5, 3, 2)], binary_weight=[0.5, 7.0, 1.0],
        unary=[(1, 2), (2, 1), (0, 5)], unary_weight=[0.25, 0.5, 0.25],
        lexical=[(2, 0)], lexical_weight=[0.5],
    )  # fmt: skip
    report = grammar.report()
    assert not report.is_proper
    assert report.largest_excess == pytest.approx(1.0)  # symbol 3 has no rules at all
    assert report.unreachable == [4]
    assert report.unproductive == [3, 5]
    assert report.cycles == [[1, 2]]


def test_proper_up_to_rounding():
    assert small(lexical_weight=[0.5, 0.25 + 1e-12, 0.75]).report().is_proper
    report = small(lexical_weight=[0.5, 0.25, 0.625]).report()
    assert not report.is_proper
    assert report.largest_excess == pytest.approx(0.125)


def test_ranks_go_up():
    """Children before parents, whatever the numbers of symbols; members of a cycle beside each other."""
    grammar = WeightedGrammar(
        ["S"], ["a"], [0] * 5, 0, unary=[(0, 3), (3, 1), (1, 3), (1, 4), (2, 0)], unary_weight=[0.1] * 5
    )
    index = GrammarIndex(grammar)
    rank = index.rank_of_symbol.tolist()
    assert rank[4] < min(rank[1], rank[3])
    assert abs(rank[1] - rank[3]) == 1
    assert max(rank[1], rank[3]) < rank[0] < rank[2]
    assert [index.symbol_of_rank[number] for number in rank] == list(range(5))


# ---- files -----------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, derandomize=True)
@given(grammar=grammars())
def test_file_round_trip(tmp_path_factory, grammar):
    folder = tmp_path_factory.mktemp("grammar")
    grammar.save(folder / "a.npz")
    again = WeightedGrammar.load(folder / "a.npz")
    assert (again.labels, again.words, again.root, again.names) == (
        grammar.labels, grammar.words, grammar.root, grammar.names,
    )  # fmt: skip
    for name in ARRAYS:
        assert np.array_equal(getattr(again, name), getattr(grammar, name))
    again.save(folder / "b.npz")
    assert (folder / "a.npz").read_bytes() == (folder / "b.npz").read_bytes()


def test_names_come_back(tmp_path):
    small(names=["S", "A", "A'", "Ä"], words=["a", "日本"]).save(tmp_path / "a.npz")
    again = WeightedGrammar.load(tmp_path / "a.npz")
    assert again.names == ["S", "A", "A'", "Ä"]
    assert again.words == ["a", "日本"]


@pytest.mark.parametrize(
    ("array", "index", "value"),
    [
        ("label", 0, 99),
        ("label", 0, -1),
        ("label", 2, 2),
        ("binary", (0, 2), 99),
        ("binary", (0, 0), -1),
        ("unary", (0, 1), 4),
        ("bridge", (0, 0), 4),
        ("lexical", (0, 1), 2),
        ("binary_weight", 0, 0.0),
        ("unary_weight", 0, -0.5),
        ("bridge_weight", 0, float("nan")),
        ("lexical_weight", 0, float("inf")),
    ],
)
def test_wrong_numbers_never_load(tmp_path, array, index, value):
    grammar = small()
    getattr(grammar, array)[index] = value
    grammar.save(tmp_path / "bad.npz")
    with pytest.raises(GrammarError, match=r"bad\.npz: damaged"):
        WeightedGrammar.load(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ({"labels": None}, "labels is not a list"),
        ({"labels": ["S", "A", 3]}, "labels is not a list"),
        ({"words": "ab"}, "words is not a list"),
        ({"names": "abcd"}, "names is not a list"),
        ({"names": [1, 2, 3, 4]}, "names is not a list"),
        ({"names": ["a"]}, "names of symbols"),
        ({"root": None}, "root is missing"),
        ({"root": "0"}, "root is missing"),
        ({"root": 10**30}, "the root"),
        ({"labels": []}, "projection"),
        ({"words": []}, "lexical rule names"),
    ],
)
def test_wrong_headers_never_load(tmp_path, header, problem):
    path = tmp_path / "bad.npz"
    good_header, arrays = small().to_parts()
    write_archive(path, "grammar", 1, {**good_header, **header}, arrays)
    with pytest.raises((GrammarError, ArchiveError), match=rf"bad\.npz: damaged: .*{problem}"):
        WeightedGrammar.load(path)


@pytest.mark.parametrize("array", ARRAYS)
def test_wrong_arrays_never_load(tmp_path, array):
    path = tmp_path / "bad.npz"
    header, arrays = small().to_parts()
    wrong = {
        "has the wrong type or shape": [arrays[array].astype(np.int64), arrays[array][..., np.newaxis]],
        "is missing": [None],
    }
    if array.endswith("weight"):
        wrong["has the wrong type or shape"].append(np.ones(9))
    for problem, values in wrong.items():
        for value in values:
            others = {name: old for name, old in arrays.items() if name != array}
            write_archive(path, "grammar", 1, header, others if value is None else {**others, array: value})
            with pytest.raises(ArchiveError, match=f"array {array} {problem}"):
                WeightedGrammar.load(path)


def test_other_files_never_load(tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(b"not a zip")
    with pytest.raises(ArchiveError, match=r"not a (whole )?tsgkit file"):
        WeightedGrammar.load(path)
    write_archive(path, "corpus", 1, {}, {})
    with pytest.raises(ArchiveError, match="a grammar is needed here, this file holds: corpus"):
        WeightedGrammar.load(path)
    write_archive(path, "grammar", 99, {}, {})
    with pytest.raises(ArchiveError, match="version 99 of the grammar format"):
        WeightedGrammar.load(path)


def test_every_cut_of_a_file_is_refused(tmp_path):
    path = tmp_path / "cut.npz"
    small().save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 29):
        path.write_bytes(whole[:length])
        with pytest.raises(ArchiveError):
            WeightedGrammar.load(path)


def test_names_made_from_labels_are_all_different():
    grammar = WeightedGrammar(["A#0", "A"], ["a"], [0, 1, 1], 0, binary=[(0, 1, 2)], binary_weight=[1.0])
    assert [grammar.name_of(symbol) for symbol in range(3)] == ["A#0", "A#1", "A#2"]
