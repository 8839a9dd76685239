"""discbracket, the format of disco-dop: brackets whose words carry their positions, ``(S (VP (V 1=ran)) (NP 0=I))``.

First stage of the flow: the reader and the writer. The order of the words is that of their positions, so phrases may
have gaps: a discontinuous tree is an error, or is made continuous. Round brackets in words and labels are ``#LRB#`` and
``#RRB#``.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank._brackets import SPACE, SYMBOL, read_brackets
from tsgkit.treebank._continuous import ROOT, word_node
from tsgkit.treebank._formats import STRICT, Reader, ReadOptions
from tsgkit.treebank._graphs import SyntaxGraph, tree_of
from tsgkit.treebank._trees import is_preterminal, is_symbol, preorder, with_one_root

LEAF = re.compile(r"(\d{1,9})=(.+)", re.DOTALL)
TAGGED = re.compile(rf"\({SYMBOL}+{SPACE}+({SYMBOL}+){SPACE}*\)")
ESCAPES = {"#LRB#": "(", "#RRB#": ")"}


class NumberedLines:
    """Lines without the comments behind trees, and the number of the last one that was taken."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines, self.number = iter(lines), 0
        self.n_open = 0  # brackets

    def __iter__(self) -> "NumberedLines":
        return self

    def __next__(self) -> str:
        line = next(self.lines)
        self.number += 1
        if line.startswith("("):
            self.n_open = 0
        parts = line.split("\t")
        for n_parts, part in enumerate(parts, start=1):
            self.n_open += part.count("(") - part.count(")")
            if not self.n_open and part.strip():
                return "\t".join(parts[:n_parts])
        return line


def read_discbracket(lines: Iterable[str], path: str = "", options: ReadOptions = STRICT) -> Iterator[Tree]:
    """Read trees in discbracket format from lines of text.

    Parameters
    ----------
    lines : iterable of str
        With or without their line ends; a tree may have several. Behind a tree and a tab, there may be a comment.
    path : str
        The name of the file, for errors.
    options : ReadOptions

    Yields
    ------
    nltk.Tree
        With the root as in the file.

    Examples
    --------
    >>> print(*read_discbracket(["(S (VP (V 1=ran)) (NP (N 0=I)))"]))
    (S (NP (N I)) (VP (V ran)))
    """
    numbered = NumberedLines(lines)
    for number, tree in enumerate(read_brackets(numbered, path, replace(options, unescape=False)), start=1):
        try:
            graph = graph_of(tree, f"number {number}", numbered.number, path)
            ordered = tree_of(graph, path, options)
            if is_preterminal(tree):
                ordered = ordered[0]
        except TreebankError as error:
            options.skip(error)
            continue
        yield ordered


def graph_of(tree: Tree, name: str, line: int, path: str) -> SyntaxGraph:
    """The words of a tree by their positions, and its phrases."""
    graph = SyntaxGraph(name, line)
    words: dict[int, tuple[str, str]] = {}
    numbers = {id(tree): ROOT}
    for node in preorder(tree) if not is_preterminal(tree) else [Tree("", [tree])]:
        if is_preterminal(node):
            continue
        number = len(graph.labels) + 1
        graph.labels[number] = unescaped(node.label())
        graph.parents[number] = numbers.get(id(node), ROOT)
        for child in node:
            if not is_preterminal(child):
                numbers[id(child)] = number
                continue
            leaf = LEAF.match(child[0])
            if leaf is None:
                raise graph.error("word order", f"{child[0]!r} has no position: a word is POSITION=word", path)
            if int(leaf[1]) in words:
                raise graph.error("word order", f"two words at position {leaf[1]}", path)
            words[int(leaf[1])] = (unescaped(leaf[2]), unescaped(child.label()))
            graph.parents[word_node(int(leaf[1]))] = number
    if sorted(words) != list(range(len(words))):
        missing = next(position for position in range(len(words)) if position not in words)
        raise graph.error("word order", f"no word at position {missing}", path)
    graph.words = [words[position] for position in range(len(words))]
    return graph


def unescaped(symbol: str) -> str:
    for escape, bracket in ESCAPES.items():
        symbol = symbol.replace(escape, bracket)
    return symbol


def recognise(first_lines: Iterable[str]) -> bool:
    """Whether the first line with words is a tree whose words have positions."""
    for line in first_lines:
        if leaves := TAGGED.findall(line):
            found = [LEAF.fullmatch(leaf) for leaf in leaves]
            positions = sorted(int(leaf[1]) for leaf in found if leaf is not None)
            is_tree = line.startswith("(") and line.count("(") == line.count(")")
            return (
                line.lstrip().startswith("(")
                and len(set(positions)) == len(leaves)
                and (not is_tree or positions == list(range(len(leaves))))
            )
    return False


READER = Reader(read_discbracket, recognise)


def write_discbracket(trees: Iterable[Tree]) -> Iterator[str]:
    """One tree per line, each word with its position."""
    return (f"{format_discbracket(tree)}\n" for tree in trees)


def format_discbracket(tree: Tree) -> str:
    """The line of a tree.

    Examples
    --------
    >>> format_discbracket(Tree.fromstring("(S (NP (PRP I)) (VP (VBD ran)))"))
    '(S (NP (PRP 0=I)) (VP (VBD 1=ran)))'
    """
    parts: list[str] = []
    n_words = 0
    tree = with_one_root(tree)
    stack: list[Tree | str] = [tree]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
        elif is_preterminal(item):
            parts.append(f"({escaped(item.label(), 'label')} {n_words}={escaped(item[0], 'word')})")
            n_words += 1
        else:
            parts.append(f"({escaped(item.label(), 'label') if item.label() or item is not tree else ''}")
            stack.append(")")
            for child in reversed(item):
                stack += [child, " "]
    return "".join(parts)


def escaped(symbol: str, what: str) -> str:
    if not is_symbol(symbol):
        raise TreebankError(f"{what} {symbol!r} cannot be written in discbracket: it is empty or contains whitespace")
    for escape, bracket in ESCAPES.items():
        if escape in symbol:
            raise TreebankError(f"{what} {symbol!r} cannot be written in discbracket: {escape} is a bracket there")
        symbol = symbol.replace(bracket, escape)
    return symbol
