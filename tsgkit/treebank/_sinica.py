"""Sinica treebank: one tree per line, ``#3:1.[17] S(agent:NP(Head:Nhaa:word)|Head:VA4:word)#.(PERIODCATEGORY)``.

First stage of the flow: the reader. The role of a phrase becomes its function tag (``agent:NP`` is ``NP-agent``); roles
of words are dropped. The punctuation mark behind the tree becomes the last child of its root.
"""

import re
from collections.abc import Iterable, Iterator

from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank._formats import STRICT, Reader, ReadOptions, first_of
from tsgkit.treebank._graphs import with_function
from tsgkit.treebank._trees import is_symbol

LINE = re.compile(r"#[^\[\]]*\[\d+\][ \t]*")
PUNCTUATION = re.compile(r"#\s*(?:([^\s()#]+)\(([^\s()]+)\))?\s*\Z")
TOKEN = re.compile(r"([^()|]+)(\()?|[()|]")  # a node, which is a phrase if a bracket follows; or what separates nodes


class SinicaReader:
    """The tree of one line."""

    def __init__(self, line: str, path: str, number: int) -> None:
        self.line, self.path, self.number = line, path, number

    def tree(self) -> Tree:
        beginning = LINE.match(self.line)
        if beginning is None:
            raise self.error("stray token: a line begins with #, numbers, and a number in square brackets", 0)
        end = self.line.rfind("#")
        mark = PUNCTUATION.match(self.line, end) if end >= beginning.end() else None
        if mark is None:
            raise self.error("stray token: a tree ends with # and a punctuation mark with its category", max(end, 0))
        root = self.phrase(beginning.end(), end)
        if mark[1]:
            root.append(Tree(mark[2], [mark[1]]))
        return root

    def phrase(self, start: int, end: int) -> Tree:
        """The tree between two columns of the line."""
        top = Tree("", [])
        open_nodes, expects_node = [top], True
        for token in TOKEN.finditer(self.line, start, end):
            text = token[1] or token[0]
            if text == "(":
                raise self.error("missing label: a label must come before '('", token.start())
            if text in ")|":
                if expects_node:
                    raise self.error(f"empty node: there is nothing before {text!r}", token.start())
                expects_node = text == "|"
                if text == ")":
                    open_nodes.pop()
                if not open_nodes or (text == "|" and len(open_nodes) == 1):
                    raise self.error(f"unbalanced brackets: {text!r} is outside of all brackets", token.start())
                continue
            if not expects_node:
                raise self.error(f"stray token: {text!r}; '|' separates nodes", token.start())
            is_phrase = token[2] is not None
            node = self.node(text, token.start(), is_phrase=is_phrase)
            open_nodes[-1].append(node)
            expects_node = is_phrase
            if is_phrase:
                open_nodes.append(node)
        if len(open_nodes) > 1 or expects_node:
            raise self.error("unbalanced brackets: the tree is not closed", start)
        if len(top) != 1 or not isinstance(top[0][0], Tree):
            raise self.error("no tree: a line has one tree, with brackets", start)
        return top[0]

    def node(self, text: str, column: int, *, is_phrase: bool) -> Tree:
        """``role:label`` before a bracket, ``role:tag:word`` elsewhere; only the root has no role."""
        parts = text.split(":", 1 if is_phrase else 2)
        if not is_phrase and len(parts) < 3:
            raise self.error(f"missing word: {text!r} is not role:tag:word", column)
        if not all(map(is_symbol, parts)):
            raise self.error(f"empty or whitespace: {text!r}", column)
        if not is_phrase:
            return Tree(parts[1], [parts[2]])
        return Tree(with_function(parts[-1], parts[0] if len(parts) > 1 else ""), [])

    def error(self, problem: str, column: int) -> TreebankError:
        return TreebankError(problem, self.path, self.number, column + 1)


def read_sinica(lines: Iterable[str], path: str = "", options: ReadOptions = STRICT) -> Iterator[Tree]:
    """Read trees of the Sinica treebank from lines of text.

    Parameters
    ----------
    lines : iterable of str
        With or without their line ends. Empty lines are skipped.
    path : str
        The name of the file, for errors.
    options : ReadOptions

    Yields
    ------
    nltk.Tree

    Examples
    --------
    >>> print(*read_sinica(["#1:1.[7] S(agent:NP(Head:Nhaa:he)|Head:VA4:ran)#.(PERIODCATEGORY)"]))
    (S (NP-agent (Nhaa he)) (VA4 ran) (PERIODCATEGORY .))
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            tree = SinicaReader(line.rstrip("\r\n"), path, number).tree()
        except TreebankError as error:
            options.skip(error)
            continue
        yield tree


def recognise(first_lines: Iterable[str]) -> bool:
    """Whether a file begins as a file of the Sinica treebank does."""
    return LINE.match(first_of(first_lines)) is not None


READER = Reader(read_sinica, recognise)
