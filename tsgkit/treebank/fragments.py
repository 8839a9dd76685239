"""Fragments in bracket notation: trees with open frontier nodes, ``(S (NP ) (VP (VBD said) (SBAR )))``.

A fragment is an `nltk.Tree` of at least one rule; a frontier node is a tree without children. Blanks between
brackets do not matter to the reader; the writer puts one between siblings, and one into ``(NP )``.
"""

import re

from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank.brackets import BracketReader, checked_symbol


class FragmentReader(BracketReader):
    """Brackets in which every node but the root may be open."""

    def close(self, token: re.Match[str]) -> Tree:
        if len(self.open_nodes) > 1 and not self.open_nodes[-1]:
            frontier = self.open_nodes.pop()
            self.attach(self.open_nodes[-1], frontier, token)
            return frontier
        return super().close(token)


def read_fragment(text: str, name: str = "") -> Tree:
    """Read a fragment from its brackets.

    Parameters
    ----------
    text : str
        One fragment, on one line or on many.
    name : str
        What errors call the source.

    Returns
    -------
    nltk.Tree
        Frontier nodes have no children.

    Raises
    ------
    TreebankError
        ``line:column: problem`` if the text is anything else.

    Examples
    --------
    >>> read_fragment("(NP (DT the) (NN ))")
    Tree('NP', [Tree('DT', ['the']), Tree('NN', [])])
    >>> read_fragment("(NP (DT the) (NN )")
    Traceback (most recent call last):
        ...
    tsgkit.errors.TreebankError: 1:1: unbalanced brackets: the tree that begins here lacks 1 closing bracket
    """
    reader = FragmentReader(name)
    fragments = [fragment for line in text.split("\n") for fragment in reader.feed(line)]
    reader.finish()
    if len(fragments) != 1:
        raise TreebankError(f"one fragment is wanted, here are {len(fragments)}", name)
    if not fragments[0].label():
        raise TreebankError("missing label: a label must follow '('", name, *reader.start)
    return fragments[0]


def format_fragment(fragment: Tree) -> str:
    """The brackets of a fragment, on one line.

    Examples
    --------
    >>> format_fragment(Tree("NP", [Tree("DT", ["the"]), Tree("NN", [])]))
    '(NP (DT the) (NN ))'
    """
    if not len(fragment):
        raise TreebankError(f"({fragment.label()} ) is no fragment: that has at least one rule")
    parts: list[str] = []
    # Strings wait on the stack to be written, nodes to be opened.
    stack: list[Tree | str] = [fragment]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
            continue
        parts.append(f"({checked_symbol(item.label(), 'label')} ")
        stack.append(")")
        for position in range(len(item) - 1, -1, -1):
            child = item[position]
            if not isinstance(child, Tree):
                if len(item) > 1:
                    raise TreebankError(f"word {child!r} is not alone under {item.label()!r}")
                child = checked_symbol(child, "word")
            stack.append(child)
            if position:
                stack.append(" ")
    return "".join(parts)


def canonical(brackets: str) -> str:
    """A fragment's brackets as `format_fragment` writes them.

    Examples
    --------
    >>> canonical("(NP  (DT the)(NN))")
    '(NP (DT the) (NN ))'
    """
    return format_fragment(read_fragment(brackets))


def n_rules(brackets: str) -> int:
    """The size of a fragment in canonical notation: its nodes that have children.

    Examples
    --------
    >>> n_rules("(NP (DT the) (NN ))")
    2
    """
    return brackets.count("(") - brackets.count(" )")
