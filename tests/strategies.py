"""Hypothesis strategies that several tests share."""

from hypothesis import strategies as st
from nltk.tree import Tree

symbols = st.text(st.characters(exclude_characters=" \t\r\n\f\v()", exclude_categories=("Cs",)), min_size=1)
# Any tree that can be written in brackets.
trees = st.recursive(
    st.builds(lambda tag, word: Tree(tag, [word]), symbols, symbols),
    lambda children: st.builds(Tree, symbols, st.lists(children, min_size=1, max_size=4)),
    max_leaves=12,
)
