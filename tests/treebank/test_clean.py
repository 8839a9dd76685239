"""Cleaning, step by step, and the whole of it against a treebank that was cleaned by others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.tree import Tree
from strategies import trees

from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._clean import (
    Cleaning,
    add_root,
    chain_parts,
    collapse_repeats,
    collapse_unaries,
    cut_labels,
    expand_unaries,
    remove_empty,
    strip_function,
    strip_functions,
)
from tsgkit.treebank._trees import preorder, same_tree, words


def tree(text):
    return Tree.fromstring(text)


@pytest.mark.parametrize(
    ("label", "stripped"),
    [
        ("NP-SBJ-1", "NP"),
        ("NP=2", "NP"),
        ("NP-SBJ=1-2", "NP"),
        ("-LRB-", "-LRB-"),
        ("-NONE-", "-NONE-"),
        ("-", "-"),
        ("=", "="),
        ("ADVP|PRT", "ADVP|PRT"),
        ("NP", "NP"),
        ("X-", "X"),
        ("", ""),
    ],
)
def test_function_tags(label, stripped):
    assert strip_function(label) == stripped


def test_tags_of_words_are_never_cut():
    assert format_tree(strip_functions(tree("(NP-SBJ (-LRB- -LRB-) (V-PAST x))"))) == "(NP (-LRB- -LRB-) (V-PAST x))"


def test_empty_nodes_and_what_they_leave_empty():
    text = "(S (NP (-NONE- *)) (VP (V go) (SBAR (WH (-NONE- 0)) (S (NP (-NONE- *T*-1))))))"
    assert format_tree(remove_empty(tree(text))) == "(S (VP (V go)))"
    assert remove_empty(tree("(S (NP (-NONE- *)))")) is None
    assert format_tree(remove_empty(tree("(S (E e) (V go))"), {"E"})) == "(S (V go))"


def test_repeats():
    assert format_tree(collapse_repeats(tree("(NP (NP (X (X (N a)) )))"))) == "(NP (X (N a)))"
    assert format_tree(collapse_repeats(tree("(NP (NP (N a)) (NP (N b)))"))) == "(NP (NP (N a)) (NP (N b)))"
    # The labels meet only once the function tags are gone.
    assert format_tree(Cleaning().apply(tree("(S (NP-SBJ (NP (N a))))"))) == "(TOP (S (NP (N a))))"


def test_unary_chains():
    joined = collapse_unaries(tree("(TOP (S (VP (V go) (NP (NX (N home))))))"))
    assert format_tree(joined) == "(TOP (S+VP (V go) (NP+NX (N home))))"
    assert chain_parts(r"A\++B+\\") == ["A+", "B", "\\"]


@given(trees)
def test_unary_chains_come_back(any_tree):
    assert same_tree(expand_unaries(collapse_unaries(any_tree)), any_tree)


@pytest.mark.parametrize("text", ["(S (V go))", "(TOP (S (V go)))", "(ROOT (S (V go)))", "(TOP (ROOT (S (V go))))"])
def test_root_is_added_once(text):
    rooted = add_root(tree(text))
    assert format_tree(rooted) == "(TOP (S (V go)))"
    assert same_tree(add_root(rooted), rooted)


def test_root_over_several_trees_and_over_a_word():
    assert format_tree(add_root(tree("(VROOT (S (V go)) (P .))"))) == "(TOP (S (V go)) (P .))"
    assert format_tree(add_root(tree("(UH oh)"))) == "(TOP (UH oh))"
    assert format_tree(add_root(Tree("", [tree("(S (V go))")]), "S1")) == "(S1 (S (V go)))"


@given(trees)
def test_cleaning_keeps_the_words(any_tree):
    clean = Cleaning(empty_tags=()).apply(any_tree)
    assert words(clean) == words(any_tree)


def test_cleaning_twice_changes_nothing(penn_sample):
    for sample in penn_sample[:500]:
        once = Cleaning().apply(sample)
        assert same_tree(Cleaning().apply(once), once)


def test_features_are_cut_from_all_labels():
    marked = tree("(S##x=1## (NP##g=f##-SBJ (N##g=f|n=s## dog)) (V-NONE-##t## ran) (-NONE-##y## *) (## ##))")
    assert format_tree(Cleaning(feature_mark="##").apply(marked)) == "(TOP (S (NP (N dog)) (V-NONE- ran) (## ##)))"


@given(trees, st.sampled_from(["-", ":", "##", "a"]))
def test_cutting_labels(any_tree, mark):
    once = cut_labels(any_tree, mark)
    assert words(once) == words(any_tree)
    assert same_tree(cut_labels(once, mark), once)
    for node, before in zip(preorder(once), preorder(any_tree), strict=True):
        assert before.label().startswith(node.label())
        assert mark not in node.label()[1:]
        assert node.label() == before.label() or before.label()[len(node.label()) :].startswith(mark)


def test_settings_from_before_feature_marks():
    """They are written only where there are some, so that files stay as they were."""
    assert "feature_mark" not in Cleaning().to_dict()
    for cleaning in (Cleaning(), Cleaning(feature_mark="##")):
        assert Cleaning.from_dict(cleaning.to_dict()) == cleaning


@pytest.mark.slow
def test_a_very_deep_tree():
    deep = Tree("N", ["x"])
    for level in range(100_000):
        deep = Tree(f"A{level % 3}-SBJ", [deep])
    clean = Cleaning(unaries=True).apply(deep)
    assert len(clean) == 1
    assert sum(1 for _ in preorder(expand_unaries(clean))) == 100_002


def test_penn_sample_equals_the_cleaned_files(penn_sample, treebanks):
    expected = [
        line
        for part in ("train", "dev", "test")
        for line in (treebanks / "wsj-sample" / f"{part}.mrg").read_text("utf-8").split("\n")
        if line
    ]
    ours = [format_tree(Cleaning().apply(sample)) for sample in penn_sample]
    # Those files have cut the one label with an alternative.
    assert [line.replace("ADVP|PRT", "ADVP") for line in ours] == expected
