"""The flat corpus: trees survive it, files of it survive nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.tree import Tree
from strategies import trees

from tsgkit._archive import write_archive
from tsgkit.errors import ArchiveError
from tsgkit.treebank import FlatCorpus
from tsgkit.treebank._trees import same_tree

SMALL = [Tree.fromstring("(S (NP (D the) (N cat)) (VP (V ran)))"), Tree.fromstring("(N cat)")]


@given(st.lists(trees, max_size=4))
def test_trees_come_back(some_trees):
    corpus = FlatCorpus.from_trees(some_trees)
    corpus.validate()
    assert corpus.label.dtype == corpus.child.dtype == corpus.tree_start.dtype == np.int32
    assert all(same_tree(one, other) for one, other in zip(some_trees, corpus.trees(), strict=True))


def test_arrays():
    corpus = FlatCorpus.from_trees(SMALL)
    assert corpus.labels == ["S", "NP", "D", "N", "VP", "V"]
    assert corpus.label.tolist() == [0, 1, 2, 3, 4, 5, 3]
    assert corpus.word.tolist() == [-1, -1, 0, 1, -1, 2, 1]
    assert corpus.tree_start.tolist() == [0, 6, 7]
    assert corpus.child_start.tolist() == [0, 2, 4, 4, 4, 5, 5, 5]
    assert corpus.child.tolist() == [1, 4, 2, 3, 5]
    assert (corpus.n_trees, corpus.n_nodes, corpus.n_tokens) == (2, 7, 4)


def test_file_round_trip(tmp_path):
    corpus = FlatCorpus.from_trees(SMALL)
    corpus.settings = {"a": [1, "ü"]}
    corpus.save(tmp_path / "a.npz")
    again = FlatCorpus.load(tmp_path / "a.npz")
    assert again.settings == corpus.settings
    assert all(same_tree(one, other) for one, other in zip(SMALL, again.trees(), strict=True))
    again.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize(
    ("array", "index", "value"),
    [
        ("label", 0, 99),
        ("label", 0, -1),
        ("word", 2, 99),
        ("word", 0, 1),
        ("form", 2, -1),
        ("child", 0, 99),
        ("child", 0, 0),
        ("child", 0, 6),
        ("child", 0, 4),
        ("child_start", 1, -5),
        ("child_start", -1, 9),
        ("tree_start", 1, 0),
        ("tree_start", 1, 3),
        ("tree_start", -1, 5),
    ],
)
def test_wrong_numbers_never_load(tmp_path, array, index, value):
    corpus = FlatCorpus.from_trees(SMALL)
    getattr(corpus, array)[index] = value
    corpus.save(tmp_path / "bad.npz")
    with pytest.raises(ArchiveError, match=r"bad\.npz: damaged"):
        FlatCorpus.load(tmp_path / "bad.npz")


def test_other_files_never_load(tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(b"not a zip")
    with pytest.raises(ArchiveError, match=r"not a (whole )?tsgkit file"):
        FlatCorpus.load(path)
    np.savez(path, header=np.array([{"pickled": 1}], dtype=object))
    with pytest.raises(ArchiveError):
        FlatCorpus.load(path)
    write_archive(path, "grammar", 1, {}, {})
    with pytest.raises(ArchiveError, match="a corpus is needed here, this file holds: grammar"):
        FlatCorpus.load(path)
    write_archive(path, "corpus", 99, {}, {})
    with pytest.raises(ArchiveError, match="version 99 of the corpus format"):
        FlatCorpus.load(path)
    write_archive(path, "corpus", 1, {"labels": [], "words": [], "forms": [], "settings": {}}, {})
    with pytest.raises(ArchiveError, match="array label is missing"):
        FlatCorpus.load(path)


def test_every_cut_of_a_file_is_refused(tmp_path):
    path = tmp_path / "cut.npz"
    FlatCorpus.from_trees(SMALL).save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(ArchiveError):
            FlatCorpus.load(path)
