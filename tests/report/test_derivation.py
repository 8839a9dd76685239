"""Derivations of given trees with models of all kinds: they make the tree, and the counts are the models' own."""

import re

import numpy as np
import pytest
from nltk.tree import Tree
from report.conftest import KINDS

from tsgkit.drawing._trees import BEGINS, INSERTED
from tsgkit.inference.entry import fragments_of
from tsgkit.models._subcategories import SubcategoryTable
from tsgkit.parsing import Parser
from tsgkit.parsing._known_tree import NoDerivationError
from tsgkit.report import Deriver, derivation_of
from tsgkit.treebank import load
from tsgkit.treebank._fragments import n_rules
from tsgkit.treebank._trees import preorder, words

pytestmark = pytest.mark.xdist_group("pictures")

TRAIN = load("village", "train")[:60:6]


@pytest.fixture(scope="session")
def derivers(models):
    return {kind: Deriver(model) for kind, model in models.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_node_belongs_to_one_fragment(derivers, kind):
    deriver = derivers[kind]
    for tree in TRAIN:
        derivation = deriver.derive(tree)
        encoded = deriver.model.preparation.encode(tree)
        assert derivation.words == words(encoded)
        assert derivation.labels == [node.label() for node in preorder(encoded)]
        owned = sorted(node for step in derivation.steps for node in step.nodes)
        assert owned == list(range(len(derivation.nodes)))
        assert -1 not in derivation.step_of_node
        # A fragment's own nodes are those with a rule: its root and what is inside.
        for step in derivation.steps:
            assert len(step.nodes) == n_rules(step.brackets)
            assert derivation.nodes[step.nodes[0], 1:3].tolist() == [step.start, step.end]


@pytest.mark.parametrize("kind", KINDS)
def test_weight_is_part_of_the_probability_of_the_tree(derivers, models, kind):
    parser = Parser(models[kind])
    for tree in TRAIN[:3]:
        total = parser.tree_log_probability(tree)
        assert total - 40 < derivers[kind].derive(tree).log_weight < total + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_those_of_the_table(derivers, models, kind):
    table = fragments_of(models[kind])
    seen = 0
    for tree in TRAIN:
        derivation = derivers[kind].derive(tree)
        assert derivation.measure == table.measure
        for step, count in zip(derivation.steps, derivation.counts, strict=True):
            assert count == table.count_of.get(step.brackets, 0)
            seen += count > 0
    assert seen > 0.8 * sum(len(derivers[kind].derive(tree).steps) for tree in TRAIN)


@pytest.mark.parametrize("kind", ["srtsg", "srtsg-rules"])
def test_subcategories_stand_where_fragments_begin(derivers, models, kind):
    names = set(SubcategoryTable.of_model(models[kind]).names)
    derivation = derivers[kind].derive(TRAIN[0])
    for label, digits, state in zip(derivation.labels, derivation.subcategories, derivation.states, strict=True):
        assert (f"{label}-{digits}" if digits else label) in names or state == 0
        assert not digits or (state == 1 and set(digits) <= {"0", "1"})
    assert any(derivation.subcategories)
    if kind == "srtsg-rules":
        assert (derivation.states == 1).all()
    else:
        assert any((derivers[kind].derive(tree).states == 0).any() for tree in TRAIN[:20])


def test_insertions_are_found_and_have_a_foot(derivers):
    found = 0
    for tree in load("village", "train")[:80]:
        derivation = derivers["insertion"].derive(tree)
        for step in derivation.steps:
            root = step.nodes[0]
            assert step.is_auxiliary == (derivation.states[root] >= 2)
            found += step.is_auxiliary
    assert found


@pytest.mark.parametrize("kind", ["tsg", "insertion", "srtsg"])
def test_examples_have_the_fragment(derivers, kind):
    deriver = derivers[kind]
    derivation = deriver.derive(TRAIN[0])
    counts = []
    for step, count in zip(derivation.steps, derivation.counts, strict=True):
        examples = deriver.examples(step, 3)
        assert (len(examples) > 0) == (count > 0)
        assert len(examples) <= min(3, max(count, 0))
        assert len({example.tree for example in examples}) == len(examples)
        own_words = [word for node in preorder(step.tree) for word in node if not isinstance(word, Tree)]
        lexicon = deriver.model.preparation
        for example in examples:
            known = lexicon.vocabulary_words(example.words)[example.start : example.end]
            assert set(own_words) <= set(known)
        counts.append(len(examples))
    assert max(counts) == 3


def test_a_cfg_keeps_no_trees_and_so_has_no_examples(derivers):
    derivation = derivers["cfg"].derive(TRAIN[0])
    assert derivers["cfg"].examples(derivation.steps[0]) == []


def test_what_cannot_be_derived(models):
    with pytest.raises(NoDerivationError, match="no label NOPE"):
        derivation_of(models["tsg"], Tree.fromstring("(S (NOPE x))"))
    with pytest.raises(NoDerivationError, match="no words"):
        derivation_of(models["tsg"], Tree.fromstring("(S (-NONE- *))"))
    assert np.isfinite(derivation_of(models["srtsg"], TRAIN[0]).log_weight)


@pytest.mark.parametrize("kind", KINDS)
def test_derivations_are_drawn_with_their_fragments(derivers, kind):
    for tree in TRAIN:
        derivation = derivers[kind].derive(tree)
        drawing = derivation.drawing()
        nodes = drawing.nodes
        assert [node.text for node in nodes if node.is_word] == derivation.words
        labels = [node for node in nodes if not node.is_word]
        assert [node.step for node in labels] == derivation.step_of_node
        # Where the fragment changes on the way down, a new one begins, is inserted, or goes on below its insertion.
        for node in nodes[1:]:
            changes = node.step != nodes[node.parent].step
            assert changes == (node.role in (BEGINS, INSERTED) or node.is_dashed)
            assert node.edge_hue == nodes[node.parent].hue
            assert not changes or node.hue != nodes[node.parent].hue or node.is_dashed
        assert sum(node.role == INSERTED for node in nodes) == sum(step.is_auxiliary for step in derivation.steps)
        assert sum(node.is_dashed for node in nodes) == sum(step.is_auxiliary for step in derivation.steps)
        svg = drawing.svg()
        assert len(set(re.findall(r'class="halo[^"]*" data-step="(\d+)"', svg))) == len(derivation.steps)
        assert svg.count('class="badge"') == sum(step.is_auxiliary for step in derivation.steps)
        assert derivation._repr_svg_() == svg
