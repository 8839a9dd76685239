"""Which symbols can make each word: known words, unseen ones, tags from outside."""

from itertools import pairwise

import numpy as np
import pytest

from tsgkit._grammar_index import GrammarIndex
from tsgkit.grammar import WeightedGrammar
from tsgkit.parsing._lexical import SOFT_FACTOR, UNSEEN_FACTOR, LexicalTable

# Two symbols of N, one of V, one of D, and the root; the last label is no tag.
GRAMMAR = WeightedGrammar(
    labels=["TOP", "N", "V", "D", "@X"],
    words=["dog", "walk", "the", "none"],
    label=[0, 1, 1, 2, 3],
    root=0,
    binary=[(0, 4, 1), (0, 4, 2)],
    binary_weight=[0.5, 0.25],
    unary=[(0, 3)],
    unary_weight=[0.25],
    lexical=[(1, 0), (2, 0), (1, 1), (3, 1), (4, 2)],
    lexical_weight=[0.75, 0.5, 0.25, 1.0, 1.0],
)
INDEX = GrammarIndex(GRAMMAR)
TABLE = LexicalTable(GRAMMAR, INDEX)


def found(words, tags=None, mode="none"):
    """For every word ``{symbol: weight}``."""
    starts, ranks, weights = TABLE.entries(words, tags, mode)
    assert (starts.dtype, ranks.dtype, weights.dtype) == (np.int64, np.int32, np.float64)
    symbols = INDEX.symbol_of_rank[ranks].tolist()
    assert len(set(zip(np.repeat(range(len(words)), np.diff(starts)), symbols, strict=True))) == len(symbols)
    return [dict(zip(symbols[start:end], weights[start:end].tolist(), strict=True)) for start, end in pairwise(starts)]


def test_known_words():
    assert found(["dog", "the", "walk"]) == [{1: 0.75, 2: 0.5}, {4: 1.0}, {1: 0.25, 3: 1.0}]


def test_unseen_words_can_have_any_tag():
    # Also a word of the vocabulary without rules.
    for word in ("cat", "none", "", "x" * 100_000):
        (entry,) = found([word])
        assert set(entry) == {1, 2, 3, 4}
        assert sum(entry.values()) == pytest.approx(UNSEEN_FACTOR)
        assert entry[1] == 2 * entry[2] == 2 * entry[3]  # two words against one


def test_hard_tags():
    assert found(["walk", "walk"], ["N", "V"], "hard") == [{1: 0.25}, {3: 1.0}]
    assert found(["dog"], ["N"], "hard") == [{1: 0.75, 2: 0.5}]
    # A known word with a tag that it never had, and an unseen one.
    unseen = found(["cat"])[0]
    assert found(["the"], ["V"], "hard") == [{3: unseen[3]}]
    assert found(["cat"], ["V"], "hard") == [{3: unseen[3]}]


def test_soft_tags():
    assert found(["walk"], ["N"], "soft") == [{1: 0.25, 3: SOFT_FACTOR}]
    unseen = found(["cat"])[0]
    assert found(["the"], ["V"], "soft") == [{4: SOFT_FACTOR, 3: unseen[3]}]


def test_soft_tags_leave_the_smallest_weights_above_zero():
    grammar = WeightedGrammar(["N", "V"], ["a"], [0, 1], 0, lexical=[(0, 0), (1, 0)], lexical_weight=[5e-324, 0.5])
    _, _, weights = LexicalTable(grammar, GrammarIndex(grammar)).entries(["a"], ["V"], "soft")
    assert sorted(weights.tolist()) == [5e-324, 0.5]


@pytest.mark.parametrize("mode", ["hard", "soft"])
@pytest.mark.parametrize("tag", [None, "UNKNOWN", "", "TOP", "@X"])
def test_tags_that_tell_nothing(mode, tag):
    assert found(["walk", "cat"], [tag, tag], mode) == found(["walk", "cat"])


def test_tags_are_only_for_those_who_want_them():
    assert found(["walk"], ["N"]) == found(["walk"])


def test_annotated_tags_count_as_the_tag():
    grammar = WeightedGrammar(
        ["TOP", "N^NP", "N^VP"], ["dog"], [0, 1, 2], 0,
        unary=[(0, 1), (0, 2)], unary_weight=[0.5, 0.5],
        lexical=[(1, 0), (2, 0)], lexical_weight=[1.0, 1.0],
    )  # fmt: skip
    table = LexicalTable(grammar, GrammarIndex(grammar))
    assert len(table.entries(["dog"], ["N"], "hard")[1]) == 2
