"""Discontinuous trees made continuous: always, with nothing lost, and as a linguist would."""

import random
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsgkit.errors import TreebankError
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._continuous import ROOT, Outline, continuous_parents, inside_phrases
from tsgkit.treebank._export import read_export
from tsgkit.treebank._graphs import MOST_NODES
from tsgkit.treebank._trees import preorder, words
from tsgkit.treebank.formats import ReadOptions

# ---- any tree ------------------------------------------------------------------------------------------------------


def ancestors(parents, node):
    found = []
    while node != ROOT:
        node = parents[node]
        found.append(node)
    return found


def positions(parents):
    """The positions of the words of every node, the slow and obvious way."""
    found = defaultdict(set)
    for word in (node for node in parents if node < ROOT):
        for node in [word, *ancestors(parents, word)]:
            found[node].add(-1 - word)
    return found


def is_continuous(parents):
    return all(max(span) - min(span) + 1 == len(span) for span in positions(parents).values())


@st.composite
def any_parents(draw):
    """Trees whose phrases have words anywhere, the words in order before the phrases."""
    n_words, n_phrases = draw(st.integers(1, 9)), draw(st.integers(0, 6))
    above = {500 + number: draw(st.sampled_from([ROOT, *range(500, 500 + number)])) for number in range(n_phrases)}
    parents = {-1 - position: draw(st.sampled_from([ROOT, *above])) for position in range(n_words)}
    used = {node for word in parents for node in ancestors({**above, **parents}, word)}
    return parents | {number: parent for number, parent in above.items() if number in used}


@given(any_parents(), st.integers(0, 1 << 32))
def test_all_phrases_become_continuous(parents, seed):
    heads = {node for node in parents if random.Random(seed ^ node).random() < 0.3}
    after = continuous_parents(parents, heads)
    assert is_continuous(after)
    assert list(after) == list(parents)
    inside = inside_phrases(Outline.of(parents))
    assert all(parents[node] == ROOT for node in inside)
    # After that, what moves, moves up.
    between = {**parents, **inside}
    assert all(after[node] in ancestors(between, node) for node in parents)
    if is_continuous(parents):
        assert after == parents
    assert continuous_parents(after, heads) == after


@given(any_parents())
def test_the_outline(parents):
    outline, expected = Outline.of(parents), positions(parents)
    assert outline.depth == {ROOT: 0} | {node: len(ancestors(parents, node)) for node in parents}
    for node, span in expected.items():
        assert (outline.first[node], outline.last[node], outline.n_words[node]) == (min(span), max(span), len(span))
    gap = outline.gap()
    assert (gap is None) == is_continuous(parents)
    if gap is not None:
        phrase, position = gap
        assert position in expected[phrase]
        assert position - 1 not in expected[phrase]
        assert min(expected[phrase]) < position
        deeper = [node for node in parents if outline.depth[node] > outline.depth[phrase]]
        assert all(max(expected[node]) - min(expected[node]) + 1 == len(expected[node]) for node in deeper)


# ---- trees of people -----------------------------------------------------------------------------------------------


def rows(*lines):
    """A sentence of Negra: ``word tag edge parent`` and ``#number label edge parent``."""
    return [
        "#BOS 1",
        *("\t".join((word, tag, "--", edge, parent)) for word, tag, edge, parent in map(str.split, lines)),
        "#EOS 1",
    ]


def continuous(*lines):
    reattached = []
    (tree,) = read_export(rows(*lines), "t.export", ReadOptions(reattached=reattached))
    assert reattached == ["t.export:1: sentence 1"]
    return format_tree(tree)


def test_the_part_with_the_head_stays():
    assert (
        continuous(
            "das PDS OA 500",
            "hat VAFIN HD 501",
            "er PPER SB 501",
            "gesagt VVPP HD 500",
            "#500 VP OC 501",
            "#501 S -- 0",
        )
        == "(S (PDS das) (VAFIN hat) (PPER er) (VP-OC (VVPP gesagt)))"
    )


def test_punctuation_goes_to_the_words_around_it():
    """As in TIGER, where all punctuation is attached to the root: most trees with a comma would be refused."""
    assert (
        continuous(
            "er PPER SB 501",
            "weiß VVFIN HD 501",
            ", $, -- 0",
            "dass KOUS CP 500",
            "es PPER SB 500",
            ", $, -- 0",
            "leider ADV MO 500",
            ", $, -- 0",
            "regnet VVFIN HD 500",
            ". $. -- 0",
            "#500 S OC 501",
            "#501 S -- 0",
        )
        == "(VROOT (S (PPER er) (VVFIN weiß) ($, ,)"
        " (S-OC (KOUS dass) (PPER es) ($, ,) (ADV leider) ($, ,) (VVFIN regnet))) ($. .))"
    )


def test_what_is_put_in_goes_inside_with_its_commas():
    assert (
        continuous(
            "das PDS SB 500",
            ", $, -- 0",
            "so ADV MO 501",
            "er PPER SB 501",
            ", $, -- 0",
            "stimmt VVFIN HD 500",
            "#500 S -- 0",
            "#501 S -- 0",
        )
        == "(S (PDS das) ($, ,) (S (ADV so) (PPER er)) ($, ,) (VVFIN stimmt))"
    )


def test_a_clause_leaves_its_noun():
    """Not the longest part stays, but the one with the words of the noun phrase itself."""
    assert (
        continuous(
            "Leute NN NK 501",
            "kamen VVFIN HD 502",
            ", $, -- 0",
            "die PRELS SB 500",
            "Hunde NN OA 500",
            "haben VAFIN HD 500",
            "#500 S RC 501",
            "#501 NP SB 502",
            "#502 S -- 0",
        )
        == "(S (NP-SB (NN Leute)) (VVFIN kamen) ($, ,) (S-RC (PRELS die) (NN Hunde) (VAFIN haben)))"
    )


def test_what_moves_can_move_far():
    """Through two verb phrases."""
    assert (
        continuous(
            "das PDS OA 500",
            "wird VAFIN HD 502",
            "er PPER SB 502",
            "gesagt VVPP HD 500",
            "haben VAINF HD 501",
            "#500 VP OC 501",
            "#501 VP OC 502",
            "#502 S -- 0",
        )
        == "(S (PDS das) (VAFIN wird) (PPER er) (VP-OC (VP-OC (VVPP gesagt)) (VAINF haben)))"
    )


def test_a_movement_in_english_without_heads():
    assert (
        continuous(
            "What WP -- 500",
            "did VBD -- 503",
            "he PRP -- 501",
            "eat VB -- 502",
            "#500 WHNP -- 502",
            "#501 NP SBJ 503",
            "#502 VP -- 503",
            "#503 SQ -- 0",
        )
        == "(SQ (WHNP (WP What)) (VBD did) (NP-SBJ (PRP he)) (VP (VB eat)))"
    )


@given(any_parents())
def test_words_and_labels_of_files_survive(parents):
    n_words = sum(node < ROOT for node in parents)
    lines = [f"w{position} T -- {parents[-1 - position]}" for position in range(n_words)]
    lines += [f"#{node} L{node} -- {parent}" for node, parent in parents.items() if node > ROOT]
    reattached = []
    (tree,) = read_export(rows(*lines), "t.export", ReadOptions(reattached=reattached))
    assert words(tree) == [f"w{position}" for position in range(n_words)]
    labels = sorted(node.label() for node in preorder(tree) if node.label() not in ("T", "VROOT"))
    assert labels == sorted(f"L{node}" for node in parents if node > ROOT)
    assert len(reattached) == (not is_continuous(parents))


def test_there_is_a_limit():
    """What is made continuous takes time in proportion to the square of the nodes."""
    lines = ["a N -- 500", *["b N -- 0"] * MOST_NODES, "c N -- 500", "#500 X -- 0"]
    with pytest.raises(TreebankError, match=f"more than {MOST_NODES} words and phrases"):
        list(read_export(rows(*lines), "t.export", ReadOptions(reattached=[])))


def test_deep_trees_are_read_in_time():
    """Once every word walked up to the root: minutes for this one."""
    depth = 20_000
    lines = [f"w N -- {499 + depth}"] * depth
    lines += [f"#{500 + level} X -- {499 + level if level else ROOT}" for level in range(depth)]
    (tree,) = read_export(rows(*lines), "t.export")
    assert len(words(tree)) == depth
