"""Fragments in bracket notation: trees with frontier nodes, ``(S (NP ) (VP (VBD said) (SBAR )))``.

Wherever fragments are read or written. A fragment is an `nltk.Tree` of at least one rule; a frontier node is a tree
without children. The reader takes any spaces between brackets; the writer puts one between siblings, and one into
``(NP )``.
"""

import re

from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank._brackets import BracketReader, checked_symbol


class FragmentReader(BracketReader):
    """Brackets in which every node but the root may be a frontier node."""

    def close(self, token: re.Match[str]) -> Tree:
        if len(self.open_nodes) > 1 and not self.open_nodes[-1]:
            frontier = self.open_nodes.pop()
            self.open_nodes[-1].append(frontier)
            return frontier
        return super().close(token)


def read_fragment(text: str, path: str = "") -> Tree:
    """Read a fragment from its brackets.

    Parameters
    ----------
    text : str
        One fragment, on one line or on several.
    path : str
        The name of the source, for errors.

    Returns
    -------
    nltk.Tree
        Frontier nodes have no children.

    Raises
    ------
    TreebankError
        ``line:column: problem`` if the text is not one fragment.

    Examples
    --------
    >>> read_fragment("(NP (DT the) (NN ))")
    Tree('NP', [Tree('DT', ['the']), Tree('NN', [])])
    >>> read_fragment("(NP (DT the) (NN )")
    Traceback (most recent call last):
        ...
    tsgkit.errors.TreebankError: 1:1: unbalanced brackets: the tree that begins here lacks 1 closing bracket
    """
    reader = FragmentReader(path)
    fragments = [fragment for line in text.split("\n") for fragment in reader.feed(line)]
    reader.finish()
    if len(fragments) != 1:
        raise TreebankError(f"one fragment is wanted, here are {len(fragments)}", path)
    if not fragments[0].label():
        raise TreebankError("missing label: a label must follow '('", path, *reader.start)
    return fragments[0]


def format_fragment(fragment: Tree) -> str:
    """The brackets of a fragment, on one line.

    Parameters
    ----------
    fragment : nltk.Tree
        Frontier nodes are trees without children.

    Examples
    --------
    >>> format_fragment(Tree("NP", [Tree("DT", ["the"]), Tree("NN", [])]))
    '(NP (DT the) (NN ))'
    """
    if not len(fragment):
        raise TreebankError(f"({fragment.label()} ) is no fragment: that has at least one rule")
    parts: list[str] = []
    # The stack holds what is still to be written: strings and nodes.
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
    """The brackets of a fragment as `format_fragment` writes them.

    Examples
    --------
    >>> canonical("(NP  (DT the)(NN))")
    '(NP (DT the) (NN ))'
    """
    return format_fragment(read_fragment(brackets))


def n_rules(brackets: str) -> int:
    """The size of a fragment in canonical notation: the number of its rules, one for each node with children.

    Examples
    --------
    >>> n_rules("(NP (DT the) (NN ))")
    2
    """
    return brackets.count("(") - brackets.count(" )")
