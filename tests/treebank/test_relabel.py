"""Rules for labels: what each does, in which order, what is refused, and what can be taken back."""

import pytest
from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank import Binarization, Cleaning, UnknownWords, prepare
from tsgkit.treebank._brackets import format_tree, read_brackets
from tsgkit.treebank._prepare import Preparation, preparation_of
from tsgkit.treebank._relabel import Relabelling, labels_of, read_relabelling

TREE = Tree.fromstring("(S (NP-SB (DT the) (NN -Fpa-)) (VN (V ran)) (X (PU .)) (PU !))")


def applied(rules, tree=TREE):
    result = Relabelling.parse(rules).apply(tree)
    return None if result is None else format_tree(result)


@pytest.mark.parametrize(
    ("rules", "tree"),
    [
        ("", "(S (NP-SB (DT the) (NN -Fpa-)) (VN (V ran)) (X (PU .)) (PU !))"),
        ("tag NN DT -> N", "(S (NP-SB (N the) (N -Fpa-)) (VN (V ran)) (X (PU .)) (PU !))"),
        ("phrase NN -> N", "(S (NP-SB (DT the) (NN -Fpa-)) (VN (V ran)) (X (PU .)) (PU !))"),
        ("phrase *-* -> $1", "(S (NP (DT the) (NN -Fpa-)) (VN (V ran)) (X (PU .)) (PU !))"),
        ("phrase *-* -> $2:$1", "(S (SB:NP (DT the) (NN -Fpa-)) (VN (V ran)) (X (PU .)) (PU !))"),
        ("phrase VN splice", "(S (NP-SB (DT the) (NN -Fpa-)) (V ran) (X (PU .)) (PU !))"),
        ("tag PU drop", "(S (NP-SB (DT the) (NN -Fpa-)) (VN (V ran)))"),
        ("phrase NP* drop", "(S (VN (V ran)) (X (PU .)) (PU !))"),
        ("word -Fpa- -> -LRB-\nword ! drop", "(S (NP-SB (DT the) (NN -LRB-)) (VN (V ran)) (X (PU .)))"),
        ("# a comment\n\nphrase VN keep\nphrase * splice", "(VROOT (DT the) (NN -Fpa-) (VN (V ran)) (PU .) (PU !))"),
        ("phrase S NP* X splice\nphrase VN drop", "(VROOT (DT the) (NN -Fpa-) (PU .) (PU !))"),
        ("tag V -> W\ntag W -> V\ntag PU -> $.", "(S (NP-SB (DT the) (NN -Fpa-)) (VN (W ran)) (X ($. .)) ($. !))"),
        ("tag * drop", None),
    ],
)
def test_rules(rules, tree):
    assert applied(rules) == tree


def test_a_label_is_never_empty():
    assert applied("phrase *S -> $1", Tree.fromstring("(S (A b))")) == "(S (A b))"


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ("label A -> B", "1: 'label': a line begins with one of tag, phrase, word"),
        ("tag A", "1: after 'tag' come patterns"),
        ("\ntag A ->", "2: one new label follows ->"),
        ("tag A -> B C", "one new label follows ->"),
        ("tag -> B", "one new label follows ->"),
        ("tag A* -> $2", "$2: a pattern of this line has fewer stars"),
        ("tag A splice", "only phrases can be spliced out"),
        ("tag A\\ drop", "nothing follows the last backslash"),
        ("tag A remove", "or one of keep, drop, splice"),
    ],
)
def test_wrong_rules(rules, problem):
    with pytest.raises(TreebankError) as caught:
        Relabelling.parse(rules, "my.labels")
    assert problem in str(caught.value)
    assert str(caught.value).startswith("my.labels:")


def test_files(tmp_path):
    (tmp_path / "a").write_text("tag A -> B\n")
    assert read_relabelling(str(tmp_path / "a")) == "tag A -> B\n"
    (tmp_path / "a").write_bytes(b"tag A -> \xff\n")
    with pytest.raises(TreebankError, match="not UTF-8"):
        read_relabelling(str(tmp_path / "a"))


def test_trees_that_lose_all_words_are_counted(tsgkit, tmp_path):
    (tmp_path / "t.mrg").write_text("(S (NP (N a)))\n(X (Y (N b)))\n(X (N c))\n")
    (tmp_path / "x.labels").write_text("phrase X drop\n")
    done = tsgkit("prepare", "--quiet", "--labels=x.labels", "t.mrg")
    assert done.stdout == "(TOP (S (NP (N a))))\n"
    assert done.stderr == "tsgkit: 2 trees were left out: no words after cleaning\n"
    for command in (("prepare", "-o", "t.npz"), ("train", "--model=cfg", "-o", "m")):
        done = tsgkit(*command, "--quiet", "--labels=x.labels", "t.mrg")
        assert done.stderr == "tsgkit: 2 trees were left out: no words after cleaning\n"
    (tmp_path / "x.labels").write_text("phrase * drop\n")
    done = tsgkit("prepare", "--quiet", "--labels=x.labels", "t.mrg", "-o", "none.mrg", code=2)
    assert "cleaning leaves no words in any tree (3)" in done.stderr
    assert not (tmp_path / "none.mrg").exists()


def test_the_inverse():
    rules = Relabelling.parse("tag PU -> .\ntag N* -> N\nphrase VN -> VP\nphrase X drop")
    inverse = rules.inverse(labels_of([TREE]))
    assert inverse == {"tag": {".": "PU", "N": "NN"}, "phrase": {"VP": "VN"}}
    assert rules.inverse({"tag": ["NN", "NP", "PU", "."], "phrase": []}) == {"tag": {}, "phrase": {}}


def test_rules_are_stored_and_taken_back():
    cleaning = Cleaning(relabelling="tag PU -> .\nphrase VN splice")
    corpus = prepare([TREE], cleaning, Binarization("right", 0), UnknownWords("one", 0), parameters="new")
    preparation = preparation_of(corpus)
    assert preparation == Preparation.from_dict(preparation.to_dict())
    assert preparation.cleaning == cleaning
    assert preparation.parameters == "new"
    decoded = preparation.decode(next(corpus.trees()))
    assert format_tree(decoded) == "(TOP (S (NP (DT the) (NN -Fpa-)) (V ran) (X (. .)) (. !)))"
    restored = preparation.with_original_labels(decoded)
    assert format_tree(restored) == "(TOP (S (NP (DT the) (NN -Fpa-)) (V ran) (X (PU .)) (PU !)))"


@pytest.mark.parametrize(
    ("rules", "trees", "tables"),
    [
        # Functions and features are cut after the rules: NP and NP-SBJ are the same in the end.
        ("phrase X -> NP", ["(S (X (A a)) (NP-SBJ (A b)))"], {"tag": {}, "phrase": {}}),
        ("phrase X* -> NP$1", ["(S (X-SBJ (A a)) (X-OBJ (A b)))"], {"tag": {}, "phrase": {"NP": "X"}}),
        ("tag N:* -> M:$1", ["(S (N:pl a) (N:sg b) (V c))"], {"tag": {"M": "N"}, "phrase": {}}),
        ("tag N:pl -> M", ["(S (N:pl a) (N:sg b) (V c))"], {"tag": {"M": "N"}, "phrase": {}}),
        # The root: only if all trees had the same one.
        ("phrase S0 -> TOP", ["(S0 (NP (A a)))", "(S0 (X (A a)))"], {"tag": {}, "phrase": {"TOP": "S0"}}),
        ("phrase S0 -> TOP", ["(S0 (NP (A a)))", "(NP (A a))"], {"tag": {}, "phrase": {}}),
        ("phrase S0 -> TOP", ["(S0 (NP (A a)))", "(ROOT (A a))"], {"tag": {}, "phrase": {}}),
        ("phrase Y -> TOP", ["(S (Y (A a)) (B b))"], {"tag": {}, "phrase": {}}),
    ],
)
def test_the_inverse_after_all_steps(rules, trees, tables):
    corpus = prepare(map(Tree.fromstring, trees), Cleaning(relabelling=rules, feature_mark=":"))
    assert preparation_of(corpus).original_labels == tables


def test_labels_with_brackets_are_restored_from_files(tmp_path):
    corpus = prepare([Tree.fromstring("(S (A a) (PAR b))")], Cleaning(relabelling="tag PAR -> $("))
    tree = next(corpus.trees())
    preparation = preparation_of(corpus)
    assert format_tree(preparation.with_original_labels(tree)) == "(TOP (S (A a) (PAR b)))"
    (written,) = read_brackets([format_tree(tree)])
    assert written[0][1].label() == "$-LRB-"
    assert format_tree(preparation.with_original_labels(written)) == "(TOP (S (A a) (PAR b)))"


@pytest.mark.parametrize(
    "damage",
    [
        {"original_labels": {"word": {"a": "b"}}},
        {"original_labels": {"tag": {"a": 1}}},
        {"original_labels": {"tag": {"a": ""}}},
        {"original_labels": 7},
        {"parameters": 7},
        {"cleaning": {**Cleaning().to_dict(), "relabelling": "nonsense"}},
        {"cleaning": {**Cleaning().to_dict(), "relabelling": 7}},
    ],
)
def test_damaged_preparations_are_refused(damage):
    values = {**Preparation(Cleaning()).to_dict(), **damage}
    with pytest.raises(ValueError, match="the preparation is not one"):
        Preparation.from_dict(values)
