"""Patterns: the whole text must match, stars take as little as they can, and no pattern takes long."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsgkit.errors import TreebankError
from tsgkit.treebank._patterns import Pattern


@pytest.mark.parametrize(
    ("pattern", "text", "captured"),
    [
        ("NP", "NP", ()),
        ("NP", "NPX", None),
        ("*", "", ("",)),
        ("*-*", "NP-SBJ-1", ("NP", "SBJ-1")),
        ("*-", "NP-SBJ-", ("NP-SBJ",)),
        ("??*", "da0ms0", ("d", "a", "0ms0")),
        ("?", "", None),
        (r"\*0\*", "*0*", ()),
        (r"\*0\*", "x0x", None),
        (r"*\?", "a?", ("a",)),
        ("a*b?c*", "aXbYcZ", ("X", "Y", "Z")),
        ("*ab*ab", "ab", None),
        ("*ab*ab", "abab", ("", "")),
    ],
)
def test_matches(pattern, text, captured):
    parsed = Pattern.parse(pattern)
    assert parsed.match(text) == captured
    assert captured is None or parsed.n_captured == len(captured)


@given(st.text("ab*?", min_size=1, max_size=8), st.text("ab", max_size=12))
def test_as_a_regular_expression_would(pattern, text):
    regular = "".join({"*": "(.*?)", "?": "(.)"}.get(character, character) for character in pattern)
    found = re.fullmatch(regular, text)
    assert Pattern.parse(pattern).match(text) == (found.groups() if found else None)


def test_a_pattern_that_would_take_a_regular_expression_for_ever():
    assert Pattern.parse("*a" * 30 + "b").match("a" * 5000) is None


@pytest.mark.parametrize("pattern", ["", "a\\"])
def test_wrong_patterns(pattern):
    with pytest.raises(TreebankError, match="pattern"):
        Pattern.parse(pattern)
