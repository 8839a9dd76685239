"""Brackets as treebanks have them: every option, alone and together; everything else stays an error with its place."""

import pytest

from tsgkit.errors import TreebankError, UsageError
from tsgkit.treebank._brackets import format_tree, read_brackets
from tsgkit.treebank._presets import load_preset
from tsgkit.treebank._sources import read_trees
from tsgkit.treebank.formats import ReadOptions


def read(text, skipped=None, **named):
    named = {name.replace("_", "-"): value for name, value in named.items()}
    lines = text.splitlines(keepends=True)
    return [format_tree(tree) for tree in read_brackets(lines, "t", ReadOptions(named=named, skipped=skipped))]


@pytest.mark.parametrize(
    ("options", "text", "tree"),
    [
        ({"lemma": "column"}, "(S (da El el) (nc gato gato))", "(S (da El) (nc gato))"),
        ({"lemma": "column", "empty": r"\*0\*"}, "(S (sn *0*) (v es ser))", "(S (sn (-NONE- *0*)) (v es))"),
        ({"lemma": "dash"}, "(IP (N-A orð-orð) (, ---) (X ex-mann-ex-maður) (FW Amen))", None),
        ({"bare": "tag"}, "(S (n a) (.))", "(S (n a) (. .))"),
        ({"bare": "word"}, "(S (NN\t (Kera)) (Z (.)))", "(S (NN Kera) (Z .))"),
        ({"bare": "word", "several": "split"}, "(S (NN (pesta olah raga)))", "(S (NN pesta) (NN olah) (NN raga))"),
        ({"bare": "word", "empty_beside": "0"}, "(S (0) (CD (0)))", "(S (-NONE- 0) (CD 0))"),
        ({"several": "join"}, "(S (t klukkan 14:00))", "(S (t klukkan_14:00))"),
        ({"several": "last"}, "(S (H+prop' M S} Rua))", "(S (H+prop' Rua))"),
        ({"skip": "ID CODE"}, "( (S (CODE <x>) (A b)) (ID 1,2))", "( (S (A b)))"),
        ({"skip": "META lemma"}, "( (META (URL http://x()) (COMMENT )) (S (A b (lemma c))))", "( (S (A b)))"),
        ({"skip": "CODE"}, "(S (X (CODE a)) (A b))", "(S (A b))"),
        ({"empty": r"0 \**"}, "(S (WNP-1 0) (NP *T*-1) (-NONE- 0) (A b))", None),
        ({"escapes": "backslash"}, r"(S (A \() (B a\&b) (C c\)))", "(S (A -LRB-) (B a&b) (C c-RRB-))"),
        ({"comments": "#"}, "#1 (a comment\n(S (A b))", "(S (A b))"),
        ({"layer": "tr"}, "(S (NP {en=cat}{tr=kedi}{x=}) (. {tr=.}))", "(S (NP kedi) (. .))"),
    ],
)
def test_options(options, text, tree):
    expected = {
        "lemma": "(IP (N-A orð) (, -) (X ex-mann) (FW Amen))",
        "empty": "(S (WNP-1 (-NONE- 0)) (NP (-NONE- *T*-1)) (-NONE- 0) (A b))",
    }
    assert read(text, **options) == [tree or expected[next(iter(options))]]


def test_what_has_no_tree_is_none():
    assert read("( (CODE <x>))\n(S (A b))\n", skip="CODE") == ["(S (A b))"]


@pytest.mark.parametrize(
    ("options", "text", "problem"),
    [
        ({"lemma": "column"}, "(S (a b c d))", "1:12: stray token: 'c' is not alone under 'a'"),
        ({"lemma": "column"}, "(S (a b) c)", "stray token: 'c' is beside a bracket"),
        ({"bare": "tag"}, "(S (a b)) (.)", "two roots: a second tree"),
        ({"bare": "word"}, "(Kera)", "stray token: 'Kera' is a word without a tag"),
        ({"bare": "word"}, "(S (0) (CD (1)))", "stray token: '0' is beside a bracket"),
        ({"several": "split"}, "(S (a b (c d)))", "stray token: 'b' is beside a bracket"),
        ({"skip": "ID"}, "( (S (A b)) (T (C d)) (ID x))", "two roots: the outer bracket"),
        ({"skip": "ID"}, "( (S (A b)) x (ID x))", "stray token"),
        ({"skip": "ID"}, "(S ((A b)))", "missing label"),
        ({"skip": "ID"}, "(S )", "empty node"),
        ({"skip": "ID"}, "( )", "empty node"),
        ({"skip": "ID"}, "x (S (A b))", "'x' is outside of all brackets; a tree must come first on its line: cut off"),
        ({"skip": "ID"}, "x_N y_V", "'x_N' is outside of all brackets; is this a treebank in round brackets? --format"),
        ({}, "[S [A b]]", "'[S' is outside of all brackets; is this a treebank in round brackets? --format names"),
        ({"skip": "ID"}, "# 2", "'#' is outside of all brackets; --format=brackets:comments=# skips lines"),
        ({}, "#2 (S (A b))", "'#2' is outside of all brackets; --format=brackets:comments=# skips lines"),
        ({"skip": "ID"}, "(S (A b)))", "unbalanced brackets: this ')' closes nothing"),
        ({"comments": "#"}, "(S (A b)\n#2\n(S (A b))", "1:1: unbalanced brackets: the tree that begins here lacks 1"),
        ({"comments": "#"}, "(S (A b)", "1:1: unbalanced brackets"),
        ({"layer": "tr"}, "(S (A {en=cat}))", "1:15: empty word: 'A' has no 'tr' in '{en=cat}'"),
        ({"layer": "tr"}, "(S (A {tr=}))", "empty word: 'A' has no 'tr' in '{tr=}'"),
    ],
)
def test_damage(options, text, problem):
    with pytest.raises(TreebankError) as caught:
        read(text, **options)
    assert str(caught.value).startswith("t:1:")
    assert problem in str(caught.value)


def test_a_comment_ends_a_bad_tree():
    skipped = []
    assert read("(S (A b)\n#2\n  (S (C d))\n", comments="#", skipped=skipped) == ["(S (C d))"]
    assert [error.reason for error in skipped] == ["unbalanced brackets"]


def test_comments_that_are_all_of_a_file():
    """As where a wrong option skips every line: an error, and not a treebank without trees."""
    with pytest.raises(
        TreebankError, match=r"^t:2: no trees: all lines begin with '#'; is the option comments right\?"
    ):
        read("#ID=1 cp-[sp-[part-negli]]\n#ID=2 f-[]\n", comments="#")
    skipped = []
    assert read("#1\n\n", comments="#", skipped=skipped) == []
    assert [error.reason for error in skipped] == ["no trees"]
    assert read("\n", comments="#") == []
    assert read("# a comment\n( (ID 1))\n", comments="#", skip="ID") == []


def test_a_bracket_in_the_first_column_may_end_a_tree():
    """As in CESS: only if it closes exactly what is open."""
    for options in ({}, {"lemma": "column"}):
        skipped = []
        text = "( (S (A b)\n(Fp .)))\n( (S (C d)\n( (S (E f)))\n"
        assert read(text, skipped=skipped, **options) == ["( (S (A b) (Fp .)))", "( (S (E f)))"]
        assert len(skipped) == 1


def test_options_are_checked():
    with pytest.raises(UsageError, match="lemma=third: must be one of none, column, dash"):
        read("(S (A b))", lemma="third")


def test_several_roots():
    """As German treebanks in brackets have them: punctuation beside the sentence."""
    text = "( (S (PPER Er) (VVFIN lief)) ($. .))"
    with pytest.raises(TreebankError, match=r"t:1:30: two roots: .*:roots=several reads.* brackets:skip=LABEL"):
        read(text)
    with pytest.raises(TreebankError, match="two roots"):
        read(text, bare="tag")
    assert read(text, roots="several") == ["(VROOT (S (PPER Er) (VVFIN lief)) ($. .))"]
    assert read("( (S (A b)))", roots="several") == ["( (S (A b)))"]
    (tree,) = read_trees(text, format="brackets:roots=several", treebank="tiger")
    assert format_tree(load_preset("tiger").cleaning.apply(tree)) == "(TOP (S (PPER Er) (VVFIN lief)) ($. .))"


def test_words_that_have_no_lemmas():
    """In a file that was prepared the part behind a dash would be lost."""
    prepared = "(TOP (IP (N-N ex-kóngur) (VBDI reið) (ADV heim) (. .)))\n" * 3
    with pytest.raises(TreebankError, match=r"t:1:55: no lemmas: .*; --format=brackets:lemma=none,empty= reads a"):
        read(prepared, lemma="dash")
    skipped = []
    assert read(prepared, skipped, lemma="dash") == []
    assert [error.reason for error in skipped] == ["no lemmas"] * 3
    as_they_are = read(prepared, lemma="none", empty="")
    assert as_they_are == prepared.splitlines()
    # The first tree that is long enough shows it, and some words may have none.
    short, tree = "(IP (VBDI reið) (. .))\n", "(IP (N-N kóngur-kóngur) (VBDI reið-ríða) (ADV heim) (. .))\n"
    assert len(read(short + short + tree + prepared, lemma="dash")) == 6
