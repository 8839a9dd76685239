"""Penn brackets: the reader and the writers of ``(S (NP (PRP I)) (VP (VBD ran)))``.

First stage of the flow. A tree is on one line or on several, with or without the empty outer bracket of the Penn
Treebank. The reader is strict: except for lines of markup between trees, whatever is not a tree is an error with its
place. Only ASCII whitespace separates tokens, so that a word may contain a no-break space.
"""

import re
from collections.abc import Iterable, Iterator

from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank._formats import STRICT, Reader, ReadOptions
from tsgkit.treebank._trees import WHITESPACE, is_preterminal, is_symbol, with_one_root, words

SPACE = f"[{WHITESPACE}]"
SYMBOL = f"[^{WHITESPACE}()]"
# Most brackets are preterminals: they are one token, which halves the work.
TOKEN = re.compile(
    rf"\(({SYMBOL}+){SPACE}+({SYMBOL}+){SPACE}*\)"  # 1, 2: tag and word
    rf"|\({SPACE}*({SYMBOL}*)"  # 3: the label after an opening bracket
    r"|(\))"  # 4
    rf"|({SYMBOL}+)"  # 5: a word without a tag
)
TAGGED_WORD, OPEN, CLOSE, WORD = 2, 3, 4, 5

# Lines between trees: SGML as in the Chinese Treebank, and the frames around notices in the Penn Treebank.
MARKUP = re.compile(r"(<[^()]*>|\*x\*.*)\Z")

# Deviations from Penn brackets, see `tsgkit.treebank._bracket_variants`; these values allow none.
VARIANT_OPTIONS = {
    "lemma": "none",
    "several": "error",
    "bare": "error",
    "comments": "",
    "skip": "",
    "empty": "",
    "empty-beside": "",
    "escapes": "none",
    "roots": "one",
    "layer": "",
}
TAG_NEEDED = "every word needs a bracket of its own: (TAG word); --treebank reads what some treebanks have instead"
TWO_ROOTS = (
    "two roots: the outer bracket holds more than one tree; --format=brackets:roots=several reads them as one,"
    " brackets:skip=LABEL leaves out brackets with a label, such as ID (--treebank=historical: ID, CODE and METADATA)"
)
ESCAPES = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
UNESCAPE = re.compile("|".join([*map(re.escape, ESCAPES), r"\\(?=[/*])"]))


def unescape_word(word: str) -> str:
    r"""Undo the escapes of the Penn Treebank: names of brackets, and backslashes before ``/`` and ``*``.

    Examples
    --------
    >>> unescape_word("-LRB-"), unescape_word(":-RRB-"), unescape_word(r"1\/2")
    ('(', ':)', '1/2')
    """
    return UNESCAPE.sub(lambda match: ESCAPES.get(match.group(), ""), word)


def escape_symbol(symbol: str) -> str:
    """Escape round brackets, which would end a node, as ``-LRB-`` and ``-RRB-``."""
    return symbol.replace("(", "-LRB-").replace(")", "-RRB-")


class BracketReader:
    """Trees from lines: keeps the nodes that are still open from one line to the next.

    Parameters
    ----------
    path : str
        The name of the file, for errors.
    unescape : bool
        Whether words like ``-LRB-`` become the brackets they stand for.
    """

    def __init__(self, path: str = "", *, unescape: bool = False) -> None:
        self.path, self.unescape = path, unescape
        self.line_number = 0
        self.start = (0, 0)  # line and column where the open tree begins
        self.labels: dict[str, str] = {}  # one string object per label
        self.open_nodes: list[Tree] = []

    def feed(self, line: str) -> list[Tree]:
        """The trees that end on `line`, the next line of the file."""
        self.line_number += 1
        finished: list[Tree] = []
        open_nodes = self.open_nodes
        if not open_nodes and self.is_between_trees(line):
            return finished
        intern = self.labels.setdefault
        for token in TOKEN.finditer(line):
            kind = token.lastindex
            if kind == TAGGED_WORD:
                tag, word = token.group(1, 2)
                node = Tree(intern(tag, tag), [unescape_word(word) if self.unescape else word])
                if open_nodes:
                    self.require_room(open_nodes[-1], token)
                    open_nodes[-1].append(node)
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
                else:
                    self.require_room(open_nodes[-1], token)
                open_nodes.append(Tree(intern(label, label), []))
            else:
                self.add_word(token)
        return finished

    def is_between_trees(self, line: str) -> bool:
        """Whether a line is markup, and no part of a tree."""
        return line.startswith(("<", "*")) and MARKUP.match(line.rstrip()) is not None

    def is_end_of_tree(self, line: str) -> bool:
        """Whether a line closes all open brackets, and no more."""
        return bool(self.open_nodes) and len(self.open_nodes) + line.count("(") == line.count(")")

    def begin(self, token: re.Match[str], finished: list[Tree]) -> None:
        if finished:
            raise self.error("two roots: a second tree begins on the line where the last one ended", token)
        self.start = (self.line_number, token.start() + 1)

    def require_room(self, parent: Tree, token: re.Match[str]) -> None:
        """Refuse a bracket beside a word, and a second tree in the outer bracket, where it begins."""
        # A node without children takes any child; the first one shows whether it takes another.
        if parent and (parent[-1].__class__ is str or not parent.label()):
            if parent.label():
                raise self.error(f"stray token: {parent[0]!r} is beside a bracket; {TAG_NEEDED}", token)
            raise self.error(TWO_ROOTS, token)

    def close(self, token: re.Match[str]) -> Tree:
        if not self.open_nodes:
            raise self.error("unbalanced brackets: this ')' closes nothing", token)
        node = self.open_nodes.pop()
        if not node:
            raise self.error(f"empty node: ({node.label()} ) has neither words nor children", token)
        if self.open_nodes:
            self.open_nodes[-1].append(node)
        return node

    def add_word(self, token: re.Match[str]) -> None:
        word = token[WORD]
        if not self.open_nodes:
            raise self.outside(word, token)
        parent = self.open_nodes[-1]
        if parent or not parent.label():
            raise self.error(f"stray token: {word!r} is not alone under {parent.label()!r}; {TAG_NEEDED}", token)
        parent.append(unescape_word(word) if self.unescape else word)

    def outside(self, word: str, token: re.Match[str]) -> TreebankError:
        """The error of a word between trees."""
        if word[0].isalnum() and "(" in token.string[token.end() :]:
            hint = "a tree must come first on its line: cut off what is before it"
        elif word[0].isalnum() or word[0] in "[{<":
            hint = "is this a treebank in round brackets? --format names another format"
        else:
            hint = f"--format=brackets:comments={word[0]} skips lines that begin with it"
        return self.error(f"stray token: {word!r} is outside of all brackets; {hint}", token)

    def error(self, problem: str, token: re.Match[str], column: int = 0) -> TreebankError:
        column = column or token.start() + 1
        if self.open_nodes and self.start[0] < self.line_number and column == 1:
            problem += f"; is a ')' missing in the tree that begins at line {self.start[0]}?"
        return TreebankError(problem, self.path, self.line_number, column)

    def unbalanced(self) -> TreebankError:
        """The error of the tree that is still open."""
        missing = len(self.open_nodes)
        return TreebankError(
            f"unbalanced brackets: the tree that begins here lacks {missing} closing bracket{'s'[: missing > 1]}",
            self.path,
            *self.start,
        )

    def unfinished(self) -> TreebankError | None:
        """What is wrong at the end of the file: it ends inside a tree."""
        return self.unbalanced() if self.open_nodes else None

    def finish(self) -> None:
        """Raise what `unfinished` finds."""
        if (error := self.unfinished()) is not None:
            raise error


def read_brackets(lines: Iterable[str], path: str = "", options: ReadOptions = STRICT) -> Iterator[Tree]:
    """Read bracketed trees from lines of text.

    Parameters
    ----------
    lines : iterable of str
        With or without their line ends.
    path : str
        The name of the file, for errors.
    options : ReadOptions
        If bad trees are skipped, reading continues at the next line that begins with an opening bracket, which then
        begins a tree unless it closes exactly the brackets that are open.

    Yields
    ------
    nltk.Tree
        With the label ``''`` at the root where the file has the empty outer bracket.

    Raises
    ------
    TreebankError
        At the first thing that is not a tree, unless bad trees are skipped.

    Examples
    --------
    >>> [tree.label() for tree in read_brackets(["(S (NP I)", "   (VP ran))"])]
    ['S']
    >>> list(read_brackets(["(S (NP I)"], "my.mrg"))
    Traceback (most recent call last):
        ...
    tsgkit.errors.TreebankError: my.mrg:1:1: unbalanced brackets: the tree that begins here lacks 1 ...
    """
    reader = reader_of(path, options)
    if options.skipped is None:
        for line in lines:
            yield from reader.feed(line)
        reader.finish()
        return
    is_skipping = False
    for line in lines:
        if line.startswith("(") and not reader.is_end_of_tree(line):
            if reader.open_nodes and not is_skipping:
                options.skip(reader.unbalanced())
                reader.open_nodes.clear()
            is_skipping = False
        if is_skipping:
            reader.line_number += 1
            continue
        try:
            yield from reader.feed(line)
        except TreebankError as error:
            options.skip(error)
            reader.open_nodes.clear()
            is_skipping = not reader.is_between_trees(line)
    if (unfinished := reader.unfinished()) is not None:
        options.skip(unfinished)


def reader_of(path: str, options: ReadOptions) -> BracketReader:
    """The reader of Penn brackets, or of the variant that named options select."""
    if all(options.named.get(name, value) == value for name, value in VARIANT_OPTIONS.items()):
        return BracketReader(path, unescape=options.unescape)
    from tsgkit.treebank._bracket_variants import Variant, VariantReader  # noqa: PLC0415 - inherits from `BracketReader`

    return VariantReader(Variant.of(options.named), path, unescape=options.unescape)


# Not recognised by anything: `tsgkit.treebank.formats.FALLBACK` reads what no other reader recognises.
READER = Reader(read_brackets, named_options=VARIANT_OPTIONS)


def checked_symbol(symbol: str, what: str) -> str:
    """`symbol` escaped for a bracketed tree."""
    if not is_symbol(symbol):
        raise TreebankError(f"{what} {symbol!r} cannot be written in brackets: it is empty or contains whitespace")
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
    # The stack holds what is still to be written: strings, and nodes with their depth.
    stack: list[tuple[Tree | str, int]] = [(with_one_root(tree), 0)]
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
    """Whether all children of a phrase are preterminals, so that it stays on one line."""
    return all(isinstance(child, Tree) and is_preterminal(child) for child in node)


def write_lines(trees: Iterable[Tree]) -> Iterator[str]:
    """One tree per line."""
    return (f"{format_tree(tree)}\n" for tree in trees)


def write_pretty(trees: Iterable[Tree]) -> Iterator[str]:
    """Trees over several lines, indented as in the Penn Treebank."""
    return (f"{format_tree(tree, pretty=True)}\n" for tree in trees)


def write_words(trees: Iterable[Tree]) -> Iterator[str]:
    """The words of every tree on a line, as `tsgkit parse` reads them."""
    return (f"{' '.join(words(tree))}\n" for tree in trees)
