"""Penn brackets: the reader and the writer of ``(S (NP (PRP I)) (VP (VBD ran)))``.

A tree may stand on one line or on many, with or without the empty outer bracket of the Penn Treebank.
The reader is strict: whatever is not a tree is an error with its place, but for lines of markup between trees.
Only the blanks of ASCII separate tokens, so that a word may contain a no-break space.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank.trees import is_preterminal

BLANK = r"[ \t\r\n\f\v]"
SYMBOL = r"[^ \t\r\n\f\v()]"
# Most brackets are preterminals: they are one token, which halves the work.
TOKEN = re.compile(
    rf"\(({SYMBOL}+){BLANK}+({SYMBOL}+){BLANK}*\)"  # 1, 2: tag and word
    rf"|\({BLANK}*({SYMBOL}*)"  # 3: the label after an opening bracket
    r"|(\))"  # 4
    rf"|({SYMBOL}+)"  # 5: a word on its own
)
TAGGED_WORD, OPEN, CLOSE, WORD = 2, 3, 4, 5

# Lines between trees: SGML as in the Chinese Treebank, and the frames around notices in the Penn Treebank.
MARKUP = re.compile(r"(<[^()]*>|\*x\*.*)\Z")

OWN_BRACKET = "every word needs a bracket of its own: (TAG word)"
ESCAPES = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
UNESCAPE = re.compile("|".join([*map(re.escape, ESCAPES), r"\\(?=[/*])"]))


def unescape_word(word: str) -> str:
    r"""Put the brackets back for which the Penn Treebank writes names, and take out its backslashes.

    Examples
    --------
    >>> unescape_word("-LRB-"), unescape_word(":-RRB-"), unescape_word(r"1\/2")
    ('(', ':)', '1/2')
    """
    return UNESCAPE.sub(lambda match: ESCAPES.get(match.group(), ""), word)


def escape_symbol(symbol: str) -> str:
    """Write round brackets, which would end the tree, as ``-LRB-`` and ``-RRB-``."""
    return symbol.replace("(", "-LRB-").replace(")", "-RRB-")


class BracketReader:
    """Trees from lines: keeps the nodes that are still open from one line to the next.

    Parameters
    ----------
    name : str
        The file's name, for errors.
    unescape : bool
        Whether words like ``-LRB-`` become the brackets they stand for.
    nfc : bool
        Whether text is brought to Unicode's normal form C.
    """

    def __init__(self, name: str = "", *, unescape: bool = False, nfc: bool = False) -> None:
        self.name, self.unescape, self.nfc = name, unescape, nfc
        self.line_number = 0
        self.start = (0, 0)  # line and column where the open tree began
        self.labels: dict[str, str] = {}  # one string object per label
        self.open_nodes: list[Tree] = []

    def feed(self, line: str) -> list[Tree]:
        """The trees that end on `line`, the next line of the file."""
        self.line_number += 1
        if self.nfc:
            line = unicodedata.normalize("NFC", line)
        finished: list[Tree] = []
        open_nodes = self.open_nodes
        if not open_nodes and line.startswith(("<", "*")) and MARKUP.match(line.rstrip()):
            return finished
        intern = self.labels.setdefault
        for token in TOKEN.finditer(line):
            kind = token.lastindex
            if kind == TAGGED_WORD:
                tag, word = token.group(1, 2)
                node = Tree(intern(tag, tag), [unescape_word(word) if self.unescape else word])
                if open_nodes:
                    self.attach(open_nodes[-1], node, token)
                else:
                    self.begin(token, finished)
                    finished.append(node)
            elif kind == CLOSE:
                node = self.close(token)
                if not open_nodes:
                    finished.append(node)
            elif kind == OPEN:
                label = token[OPEN]
                if not open_nodes:
                    self.begin(token, finished)
                elif not label:
                    raise self.error("missing label: a label must follow '('", token)
                open_nodes.append(Tree(intern(label, label), []))
            else:
                self.add_word(token)
        return finished

    def begin(self, token: re.Match[str], finished: list[Tree]) -> None:
        if finished:
            raise self.error("two roots: a second tree begins on the line where the last one ended", token)
        self.start = (self.line_number, token.start() + 1)

    def attach(self, parent: Tree, node: Tree, token: re.Match[str]) -> None:
        # An empty `parent` takes any node; the first child shows whether it can take another.
        if parent and (parent[-1].__class__ is str or not parent.label()):
            if parent.label():
                raise self.error(f"stray token: {parent[0]!r} stands beside a bracket; {OWN_BRACKET}", token)
            raise self.error("two roots: the outer bracket holds more than one tree", token)
        parent.append(node)

    def close(self, token: re.Match[str]) -> Tree:
        if not self.open_nodes:
            raise self.error("unbalanced brackets: this ')' closes nothing", token)
        node = self.open_nodes.pop()
        if not node:
            raise self.error(f"empty node: ({node.label()} ) has neither words nor children", token)
        if self.open_nodes:
            self.attach(self.open_nodes[-1], node, token)
        return node

    def add_word(self, token: re.Match[str]) -> None:
        word = token[WORD]
        if not self.open_nodes:
            raise self.error(f"stray token: {word!r} stands outside of any bracket", token)
        parent = self.open_nodes[-1]
        if parent or not parent.label():
            raise self.error(f"stray token: {word!r} is not alone under {parent.label()!r}; {OWN_BRACKET}", token)
        parent.append(unescape_word(word) if self.unescape else word)

    def error(self, problem: str, token: re.Match[str]) -> TreebankError:
        column = token.start() + 1
        if self.open_nodes and self.start[0] < self.line_number and column == 1:
            problem += f"; is a ')' missing in the tree that begins at line {self.start[0]}?"
        return TreebankError(problem, self.name, self.line_number, column)

    def unbalanced(self) -> TreebankError:
        """What is wrong with the tree that is still open."""
        missing = len(self.open_nodes)
        return TreebankError(
            f"unbalanced brackets: the tree that begins here lacks {missing} closing bracket{'s'[: missing > 1]}",
            self.name,
            *self.start,
        )

    def finish(self) -> None:
        """Check that the file did not end inside a tree."""
        if self.open_nodes:
            raise self.unbalanced()


def read_brackets(
    lines: Iterable[str],
    name: str = "",
    *,
    skipped: list[TreebankError] | None = None,
    unescape: bool = False,
    nfc: bool = False,
) -> Iterator[Tree]:
    """Read bracketed trees from lines of text.

    Parameters
    ----------
    lines : iterable of str
        With or without their line ends.
    name : str
        What errors call the source.
    skipped : list, optional
        When given, a bad tree is left out and its error is put here. Reading goes on at the next line
        that begins with an opening bracket, which then always begins a tree.
    unescape, nfc : bool
        As for `BracketReader`.

    Yields
    ------
    nltk.Tree
        With the label ``''`` at the root where the file has the empty outer bracket.

    Raises
    ------
    TreebankError
        At the first thing that is not a tree, unless `skipped` is given.

    Examples
    --------
    >>> [tree.label() for tree in read_brackets(["(S (NP I)", "   (VP ran))"])]
    ['S']
    >>> list(read_brackets(["(S (NP I)"], "my.mrg"))
    Traceback (most recent call last):
        ...
    tsgkit.errors.TreebankError: my.mrg:1:1: unbalanced brackets: the tree that begins here lacks 1 ...
    """
    reader = BracketReader(name, unescape=unescape, nfc=nfc)
    if skipped is None:
        for line in lines:
            yield from reader.feed(line)
        reader.finish()
        return
    skipping = False
    for line in lines:
        if line.startswith("("):
            if reader.open_nodes and not skipping:
                skipped.append(reader.unbalanced())
                reader.open_nodes.clear()
            skipping = False
        if skipping:
            reader.line_number += 1
            continue
        try:
            yield from reader.feed(line)
        except TreebankError as error:
            skipped.append(error)
            reader.open_nodes.clear()
            skipping = True
    if reader.open_nodes:
        skipped.append(reader.unbalanced())


def checked_symbol(symbol: str, what: str) -> str:
    """`symbol` as it can stand in a bracketed tree."""
    if not symbol or re.search(BLANK, symbol):
        raise TreebankError(f"{what} {symbol!r} cannot be written in brackets: it is empty or contains a blank")
    return escape_symbol(symbol)


def format_tree(tree: Tree, *, pretty: bool = False) -> str:
    """The brackets of `tree`, on one line or indented as in the Penn Treebank.

    Examples
    --------
    >>> tree = Tree("S", [Tree("NP", [Tree("PRP", ["I"])]), Tree("VP", [Tree("VBD", ["ran"])])])
    >>> format_tree(tree)
    '(S (NP (PRP I)) (VP (VBD ran)))'
    >>> print(format_tree(tree, pretty=True))
    (S
      (NP (PRP I))
      (VP (VBD ran)))
    """
    parts: list[str] = []
    # Strings wait on the stack to be written, nodes to be opened at their depth.
    stack: list[tuple[Tree | str, int]] = [(tree, 0)]
    while stack:
        item, depth = stack.pop()
        if isinstance(item, str):
            parts.append(item)
            continue
        label = checked_symbol(item.label(), "label") if item.label() or depth else ""
        if not len(item):
            raise TreebankError(f"empty node ({label} ) cannot be written")
        if is_preterminal(item):
            parts.append(f"({label} {checked_symbol(item[0], 'word')})")
            continue
        parts.append(f"({label}")
        separator = f"\n{'  ' * (depth + 1)}" if pretty and not flat_enough(item) else " "
        stack.append((")", 0))
        for child in reversed(item):
            if not isinstance(child, Tree):
                raise TreebankError(f"word {child!r} beside phrases under {label!r} cannot be written")
            stack.append((child, depth + 1))
            stack.append((separator, 0))
    return "".join(parts)


def flat_enough(node: Tree) -> bool:
    """Whether a phrase holds tagged words only, and so stays on one line."""
    return all(isinstance(child, Tree) and is_preterminal(child) for child in node)
