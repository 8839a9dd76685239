"""Subcategories as people read them: names, what they have in common, and the tree of their splits."""

import numpy as np
import pytest
from nltk.tree import Tree

from tsgkit.errors import UsageError
from tsgkit.inference.entry import entry_of
from tsgkit.models._cfg import cfg_model
from tsgkit.models._model import Model
from tsgkit.models._srtsg import Subcategories
from tsgkit.models._subcategories import SubcategoryTable, refined_fragments, symbol_names
from tsgkit.treebank import FlatCorpus

TREES = ["(TOP (S (NP (D the) (N dog)) (VP (V ran))))", "(TOP (S (NP (D a) (N dog)) (VP (V sat) (NP (N tea)))))"]


def options(values):
    return np.array(values, dtype=np.uint8)


@pytest.fixture
def model():
    """Two splits: NP in two, of which the second in two again; all else whole."""
    corpus = FlatCorpus.from_trees([Tree.fromstring(tree) for tree in TREES])
    place = corpus.labels.index("NP")
    first = options([2 if number == place else 1 for number in range(len(corpus.labels))])
    second = options([2 if number == place + 1 else 1 for number in range(len(corpus.labels) + 1)])
    # In the order of nodes, NPs are NP-0, NP-10, NP-11.
    is_np = corpus.label == place
    groups = corpus.label + (corpus.label > place)
    groups[is_np] = place + np.array([0, 1, 1])
    bits = np.zeros(corpus.n_nodes, dtype=np.uint8)
    bits[is_np] = [0, 0, 1]
    state = {"options_0": first, "options_1": second, "groups": groups.astype(np.int32), "bits": bits}
    plain = cfg_model(corpus)
    return Model("srtsg", plain.preparation, plain.stages, state=state, corpus=corpus)


def test_names_have_a_digit_for_every_split_that_was_kept(model):
    table = SubcategoryTable.of_model(model)
    assert [each.name for each in table.subcategories("NP")] == ["NP-0", "NP-10", "NP-11"]
    assert [each.name for each in table.subcategories("VP")] == ["VP"]
    assert table.labels() == ["NP"]


def test_a_label_that_ends_in_a_digit_is_not_taken_for_a_split():
    whole = Subcategories(np.array([0, 1]), options([1, 2]), 2)
    again = Subcategories(whole.label, options([1, 1, 2]), 2)
    assert symbol_names(["TOP", "X-1"], [whole, again]) == ["TOP", "X-1-0", "X-1-10", "X-1-11"]


def test_what_the_nodes_of_a_subcategory_have_in_common(model):
    table = SubcategoryTable.of_model(model)
    first, second, third = table.subcategories("NP")
    assert (first.count, first.rules, first.parents) == (1, [("D N", 1)], [("S", 1)])
    assert (second.rules, second.parents) == ([("D N", 1)], [("S", 1)])
    assert (third.rules, third.parents) == ([("N", 1)], [("VP", 1)])
    noun = table.subcategories("N", 1)[0]
    assert (noun.count, noun.words) == (3, [("dog", 2)])
    assert noun.parents == [("NP-0", 1)]


def test_the_tree_of_splits(model):
    rows = list(SubcategoryTable.of_model(model).hierarchy("NP"))
    assert rows == [(0, "NP", 3), (1, "NP-0", 1), (1, "NP-1", 2), (2, "NP-10", 1), (2, "NP-11", 1)]


def test_what_is_not_there_is_said(model):
    with pytest.raises(UsageError, match="no such label"):
        SubcategoryTable.of_model(model).subcategories("XP")
    plain = cfg_model(model.corpus)
    with pytest.raises(UsageError, match="a cfg model has no subcategories"):
        entry_of(plain).subcategories(plain)
    model.corpus = None
    with pytest.raises(UsageError, match="does not keep its training trees"):
        SubcategoryTable.of_model(model)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("options_0", options([2])),
        ("bits", options([1] * 3)),
        ("groups", np.full(20, 99, dtype=np.int32)),
        ("options_1", options([2] * 50)),
    ],
)
def test_damaged_subcategories_are_refused(model, name, value):
    model.state[name] = value
    with pytest.raises(UsageError, match="damaged"):
        SubcategoryTable.of_model(model)


def test_fragments_have_subcategories_at_their_edges(model):
    corpus = model.corpus
    sites = np.ones(corpus.n_nodes, dtype=np.uint8)
    verbs = np.flatnonzero(corpus.label == corpus.labels.index("VP"))
    sites[verbs] = 0
    model.state["sites"] = sites
    table = refined_fragments(model)
    found = {table.fragment(number).brackets: table.counts[number] for number in table.select()}
    assert found["(S (NP-0 ) (VP (V )))"] == 1
    assert found["(S (NP-10 ) (VP (V ) (NP-11 )))"] == 1
    assert found["(NP-11 (N ))"] == 1
    assert sum(found.values()) == sites.sum()
    assert table.sizes[table.counts > 0].sum() <= corpus.n_nodes
    sites[0] = 0
    with pytest.raises(UsageError, match="sites are damaged"):
        refined_fragments(model)
