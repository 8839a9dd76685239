"""Binarisation: the shapes, the symbols, and that undoing gives the identical tree."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.tree import Tree
from reference import binarize as reference

from tsgkit.errors import TreebankError, UsageError
from tsgkit.treebank._binarize import MAX_LISTED, METHODS, Binarization, escape, undo_label
from tsgkit.treebank._trees import preorder, same_tree, words

LARGE = 100_000

labels = st.one_of(
    st.sampled_from(["S", "NP", "VP", "CC", ",", "ADVP|PRT", "@NP", "NP^S", "S+VP", "-LRB-", "NP-SBJ=1"]),
    st.text("NP|@+^-\\=<>*", max_size=6),
    st.text(max_size=4),
)
tags = st.builds(lambda label, word: Tree(label, [word]), labels, st.text(max_size=4))
trees = st.recursive(
    tags,
    lambda below: st.builds(Tree, labels, st.lists(below, min_size=1, max_size=7)),
    max_leaves=25,
)
all_settings = st.builds(
    Binarization,
    method=st.sampled_from(METHODS),
    horizontal=st.sampled_from([None, 0, 1, 2, 3]),
    vertical=st.sampled_from([1, 2, 3]),
    heads=st.sampled_from(["penn", "leftmost", "rightmost"]),
    annotate_tags=st.booleans(),
)


def phrase(label: str, *child_labels: str) -> Tree:
    return Tree(label, [Tree(child, [child.lower()]) for child in child_labels])


def skeleton(tree: Tree) -> str:
    """The tree in brackets, tags without their words."""
    if isinstance(tree[0], str):
        return tree.label()
    return f"({tree.label()} {' '.join(map(skeleton, tree))})"


@given(trees, all_settings)
def test_undo_gives_the_identical_tree(tree, settings):
    before = tree.copy(deep=True)
    binarized = settings.apply(tree)
    assert same_tree(tree, before)
    assert all(len(node) <= 2 for node in preorder(binarized))
    assert words(binarized) == words(tree)
    assert same_tree(settings.undo(binarized), tree)


@given(trees, all_settings)
def test_agrees_with_the_definition(tree, settings):
    def head_of(node):
        return settings.head_rules.head(node.label(), [child.label() for child in node])

    assert same_tree(settings.apply(tree), reference.binarized(tree, settings, head_of))


@given(trees, all_settings)
def test_any_settings_undo_what_others_did(tree, settings):
    assert same_tree(Binarization().undo(settings.apply(tree)), tree)


@given(labels, labels)
def test_escaping_keeps_labels_apart(one, other):
    assert undo_label(escape(one)) == one
    assert undo_label(f"{escape(one)}^{escape(other)}") == one
    assert undo_label(f"@{escape(one)}") is None


@pytest.mark.parametrize(
    ("method", "horizontal", "expected"),
    [
        ("right", None, "(NP DT (@NP|JJ|NN|PP JJ (@NP|NN|PP NN PP)))"),
        ("right", 2, "(NP DT (@NP|JJ|NN JJ (@NP|NN|PP NN PP)))"),
        ("right", 1, "(NP DT (@NP|JJ JJ (@NP|NN NN PP)))"),
        ("right", 0, "(NP DT (@NP JJ (@NP NN PP)))"),
        ("left", None, "(NP (@NP|NN|JJ|DT (@NP|JJ|DT DT JJ) NN) PP)"),
        ("left", 1, "(NP (@NP|NN (@NP|JJ DT JJ) NN) PP)"),
        ("left", 0, "(NP (@NP (@NP DT JJ) NN) PP)"),
        ("centre-head", None, "(NP DT (@NP|<JJ|>PP|=NN JJ (@NP|>PP|=NN NN PP)))"),
        ("centre-head", 1, "(NP DT (@NP|<JJ JJ (@NP|>PP NN PP)))"),
        ("centre-head", 0, "(NP DT (@NP JJ (@NP NN PP)))"),
    ],
)
def test_shapes_and_symbols(method, horizontal, expected):
    tree = phrase("NP", "DT", "JJ", "NN", "PP")
    assert skeleton(Binarization(method, horizontal).apply(tree)) == expected


def test_centre_head_goes_right_first_then_left():
    tree = phrase("VP", "L1", "L2", "VB", "R1", "R2")
    assert skeleton(Binarization("centre-head", 0).apply(tree)) == "(VP L1 (@VP L2 (@VP (@VP VB R1) R2)))"


@pytest.mark.parametrize(
    ("heads", "expected"),
    [("leftmost", "(X (@X (@X A B) C) D)"), ("rightmost", "(X A (@X B (@X C D)))")],
)
def test_generic_heads(heads, expected):
    tree = phrase("X", "A", "B", "C", "D")
    assert skeleton(Binarization("centre-head", 0, heads=heads).apply(tree)) == expected


def test_at_most_two_children_stay():
    tree = Tree.fromstring("(TOP (S (NP (PRP I)) (VP (VBD ran))))")
    assert all(same_tree(Binarization(method).apply(tree), tree) for method in METHODS)


def test_vertical_annotation_names_treebank_ancestors():
    tree = Tree.fromstring("(S (VP (VB a) (NP (DT b) (JJ c) (NN d)) (PP (IN e))))")
    settings = Binarization("right", 1, vertical=3)
    expected = """
        (S (VP^S (VB a) (@VP^S|NP
          (NP^VP^S (DT b) (@NP^VP^S|JJ (JJ c) (NN d)))
          (PP^VP^S (IN e)))))"""
    assert same_tree(settings.apply(tree), Tree.fromstring(expected))
    annotated = Binarization(vertical=2, annotate_tags=True).apply(Tree.fromstring("(NP (NN dog))"))
    assert same_tree(annotated, Tree.fromstring("(NP (NN^NP dog))"))


def test_common_labels_are_not_changed():
    for label in ("NP-SBJ", "S+VP", "-LRB-", "PRP$", "``", "NP=2"):
        assert escape(label) == label
    assert escape("ADVP|PRT") == "ADVP\\|PRT"


def test_undo_splices_whatever_a_grammar_makes():
    tree = Tree.fromstring("(S (@S (@S|X (A a))) (@VP (B b) (@NP (C c) (D d))) (E^S e))")
    assert same_tree(Binarization().undo(tree), Tree.fromstring("(S (A a) (B b) (C c) (D d) (E e))"))


def test_undo_refuses_what_has_no_place():
    with pytest.raises(ValueError, match="at the root"):
        Binarization().undo(Tree.fromstring("(@S (A a) (B b))"))
    with pytest.raises(ValueError, match="tag of the word 'a'"):
        Binarization().undo(Tree.fromstring("(S (@S a) (B b))"))


def test_wrong_settings():
    for wrong in ({"method": "middle"}, {"horizontal": -1}, {"horizontal": MAX_LISTED + 1}, {"vertical": 0}):
        with pytest.raises(UsageError):
            Binarization(**wrong)


def test_a_rule_file_travels_with_the_settings(tmp_path):
    path = tmp_path / "my.rules"
    path.write_text("NP right NN\n* leftmost\n", encoding="utf-8")
    settings = Binarization("centre-head", 0, heads=str(path))
    path.unlink()
    again = Binarization.from_dict(json.loads(json.dumps(settings.to_dict())))
    assert again == settings
    assert str(tmp_path) not in json.dumps(settings.to_dict())
    tree = phrase("NP", "DT", "NN", "PP")
    assert skeleton(again.apply(tree)) == "(NP DT (@NP NN PP))"


def test_a_wrong_rule_file_is_reported_at_once(tmp_path):
    path = tmp_path / "my.rules"
    path.write_text("NP middle NN\n", encoding="utf-8")
    with pytest.raises(TreebankError, match=r"my\.rules:1: "):
        Binarization("centre-head", heads=str(path))
    assert Binarization("right", heads=str(path)).heads == str(path)


@given(all_settings)
def test_settings_survive_json(settings):
    assert Binarization.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


@pytest.mark.slow
@pytest.mark.parametrize(("method", "horizontal"), [("right", None), ("left", 2), ("centre-head", None)])
def test_very_many_children(method, horizontal):
    tree = phrase("NP", *(["DT", "JJ"] * (LARGE // 4)), "NN", *(["PP", "X|Y"] * (LARGE // 4)))
    settings = Binarization(method, horizontal)
    binarized = settings.apply(tree)
    assert all(len(node) <= 2 for node in preorder(binarized))
    assert same_tree(settings.undo(binarized), tree)


@pytest.mark.slow
def test_very_deep():
    tree = Tree("N", ["word"])
    for _ in range(LARGE):
        tree = Tree("X", [Tree("A", ["a"]), tree, Tree("B", ["b"])])
    settings = Binarization("centre-head", vertical=3)
    assert same_tree(settings.undo(settings.apply(tree)), tree)


def test_digests_tell_long_rests_apart():
    def symbols(*child_labels: str) -> list[str]:
        tree = Binarization().apply(phrase("NP", *child_labels))
        return [node.label() for node in preorder(tree) if node.label().startswith("@")]

    rest = ["NN"] * (MAX_LISTED + 20)
    assert symbols("A", *rest)[1:] == symbols("A", "B", *rest)[2:]
    assert symbols("A", *rest)[0] != symbols("A", *rest[:-1], "B")[0]
    assert "|^" not in "".join(symbols("A", *rest[:MAX_LISTED]))
    assert len(set(symbols("A", *rest))) == len(rest) - 1


TREEBANK_SETTINGS = [
    Binarization("right"),
    Binarization("left", 1, vertical=2),
    Binarization("centre-head", 0, vertical=3),
    Binarization("centre-head", 2),
]


@pytest.mark.slow
@pytest.mark.parametrize("settings", TREEBANK_SETTINGS, ids=lambda settings: settings.method)
def test_every_tree_of_the_penn_sample(settings, penn_sample):
    for tree in penn_sample:
        assert same_tree(settings.undo(settings.apply(tree)), tree)
