"""The bracket reader and writer: every layout in, every mistake named with its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.tree import Tree
from strategies import trees

from tsgkit.errors import TreebankError
from tsgkit.treebank._brackets import escape_symbol, format_tree, read_brackets, unescape_word
from tsgkit.treebank._sources import validate_tree
from tsgkit.treebank._trees import same_tree, words
from tsgkit.treebank.formats import ReadOptions


def read(text, **options):
    return list(read_brackets(text.split("\n"), "t.mrg", ReadOptions(**options)))


@given(trees, st.booleans())
def test_what_is_written_reads_back(tree, pretty):
    (again,) = read(format_tree(tree, pretty=pretty))
    assert same_tree(tree, again)


@pytest.mark.parametrize(
    "layout",
    [
        "(S (NP (D the) (N cat)) (V ran))",
        "( (S (NP (D the) (N cat)) (V ran)) )",
        "((S (NP (D the) (N cat)) (V ran)))",
        "(\n(S\n(NP (D the)\n(N cat))\n(V\nran)\n))",
        "(S(NP(D the)(N cat))(V ran))",
        "( S ( NP ( D the ) ( N cat ) ) ( V ran ) )",
        "(S\t(NP (D  the)\r\n  (N cat))\n\n(V ran))\n\n",
    ],
)
def test_layouts(layout):
    (tree,) = read(layout)
    if not tree.label():
        (tree,) = tree
    assert format_tree(tree) == "(S (NP (D the) (N cat)) (V ran))"


def test_only_ascii_whitespace_separates():
    (tree,) = read("(NP (CD 10\u00a0000) (N\u3000x y))")
    assert tree[0][0] == "10\u00a0000"
    assert tree[1].label() == "N\u3000x"


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("(S (NP a)", "1:1", "unbalanced brackets"),
        ("(S (A a))\n(S (NP (B b))\n", "2:1", "lacks 1 closing bracket"),
        ("(S (NP (B b)\n", "1:1", "lacks 2 closing brackets"),
        ("(S (NP a)))", "1:11", "unbalanced brackets: this ')' closes nothing"),
        ("(S (NP a) ((B b)))", "1:11", "missing label"),
        ("(S (NP a) ( ))", "1:11", "missing label"),
        ("(S (NP a)\n   (VP ))", "2:8", "empty node: (VP )"),
        ("()", "1:2", "empty node"),
        ("(TOP)", "1:5", "empty node"),
        ("( (S (A a)) (S (B b)) )", "1:13", "two roots: the outer bracket"),
        ("( (A a) (B b) )", "1:9", "two roots: the outer bracket"),
        ("(S (A a)) (S (B b))", "1:11", "two roots: a second tree"),
        ("(A a) (B b)", "1:7", "two roots: a second tree"),
        ("word (S (A a))", "1:1", "stray token: 'word' is outside"),
        ("(S (A a)) word", "1:11", "stray token: 'word' is outside"),
        ("(S (A a) word)", "1:10", "stray token: 'word' is not alone"),
        ("(S word (A a))", "1:9", "stray token: 'word' is beside"),
        ("(S word\n(A (B a)))", "2:1", "stray token: 'word' is beside"),
        ("(S (A a\n  (B (C c)\n    (D d))))", "2:3", "stray token: 'a' is beside"),
        ("(NN New York)", "1:9", "stray token: 'York' is not alone"),
        ("( (S (A a)) word)", "1:13", "stray token"),
        ("( (S (A a))\n( (S (B b)) )", "2:1", "begins at line 1?"),
    ],
)
def test_mistakes_have_their_place(text, place, problem):
    with pytest.raises(TreebankError) as caught:
        read(text)
    assert str(caught.value).startswith(f"t.mrg:{place}: ")
    assert problem in str(caught.value)


def test_markup_between_trees_is_passed_over():
    notice = ["*x*x*x*x*", "*x*   Copyright (C) 1992   *x*", "*x*x*x*x*"]
    lines = [
        *notice,
        "<DOC>",
        "<DATE> 1994 </DATE>",
        "<S ID=1>",
        "( (IP (NP (NR 中国))",
        "   (VP (VV 发展))))",
        "</S>\r\n",
    ]
    (tree,) = read_brackets(lines, "t")
    assert words(tree) == ["中国", "发展"]
    # Not inside of trees, nor with anything else on the line.
    for bad in (["(S (A a)", "<S>", "(B b))"], ["<S> (S (A a)) </S>"], [" <S>"], ["<S> x"], ["* x"]):
        with pytest.raises(TreebankError):
            list(read_brackets(bad, "t"))


def test_skipping_loses_only_the_bad_trees():
    text = "(S (A a))\n(S (B b)\n(S (C c))\n(S (D d)))\n(S (E e))\nword\n  (S (F f))\n(S\n  (G g))\n(S (H"
    skipped = []
    good = [format_tree(tree) for tree in read(text, skipped=skipped)]
    assert good == ["(S (A a))", "(S (C c))", "(S (E e))", "(S (G g))"]
    assert [error.line for error in skipped] == [2, 4, 6, 10]


@given(st.text(alphabet="()ab \n", max_size=60))
def test_any_text_gives_trees_or_an_error_with_a_place(text):
    trees, error = [], None
    try:
        trees = read(text)
    except TreebankError as raised:
        error = raised
    for tree in trees:
        validate_tree(tree)
    if error is not None:
        lines = text.split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1


def test_escaped_brackets_both_ways():
    (kept,) = read("(X (-LRB- -LRB-) (NN :-RRB-) (CD 1\\/2))")
    assert kept.leaves() == ["-LRB-", ":-RRB-", "1\\/2"]
    (plain,) = read("(X (-LRB- -LRB-) (NN :-RRB-) (CD 1\\/2))", unescape=True)
    assert plain.leaves() == ["(", ":)", "1/2"]
    assert plain[0].label() == "-LRB-"
    assert format_tree(plain) == "(X (-LRB- -LRB-) (NN :-RRB-) (CD 1/2))"
    assert unescape_word(escape_symbol("f(x)")) == "f(x)"


@pytest.mark.parametrize("tree", [Tree("S", []), Tree("N", ["New York"]), Tree("A B", ["x"]), Tree("N", [""])])
def test_what_cannot_be_written_is_an_error(tree):
    with pytest.raises(TreebankError):
        format_tree(tree)


def test_very_deep_and_very_wide_trees():
    depth = 100_000
    text = "(A " * depth + "(B b)" + ")" * depth
    (tree,) = read(text)
    assert format_tree(tree) == text
    wide = "(A " + " ".join(["(B b)"] * depth) + ")"
    assert format_tree(read(wide)[0]) == wide
