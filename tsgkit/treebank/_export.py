"""The Negra export format, versions 3 and 4: one line per word and per phrase, with the number of the parent.

First stage of the flow: the reader and the writer. All models are context-free, so a discontinuous tree is an error, or
is made continuous. The edge label of a phrase becomes its function tag (``NP`` with the edge ``SB`` is ``NP-SB``); edge
labels of words, lemmas, morphology and secondary edges are dropped.
"""

import re
from collections.abc import Iterable, Iterator

from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank._continuous import ROOT, word_node
from tsgkit.treebank._formats import STRICT, Reader, ReadOptions
from tsgkit.treebank._graphs import (
    HEAD_EDGES,
    NO_EDGE,
    SyntaxGraph,
    split_function,
    tree_of,
    with_function,
)
from tsgkit.treebank._trees import VIRTUAL_ROOT, WHITESPACE, is_preterminal, is_symbol, preorder

FIRST_PHRASE = 500
MOST_DIGITS = 9
COLUMN = re.compile(f"[^{WHITESPACE}]+")
# A row with one of these in its place is no word; numbers are those of phrases.
COMMENT = "%%"
BEGIN, END = "#BOS", "#EOS"
# With one of these, the first line of an export file begins that is no comment.
FIRST_WORDS = ("#FORMAT", BEGIN, "#BOT")


class ExportReader:
    """Sentences from lines; see `read_export`."""

    def __init__(self, path: str, options: ReadOptions) -> None:
        self.path, self.options = path, options
        self.line_number = 0
        self.has_lemmas: bool | None = None  # the first row shows it unless the file says it
        self.table = 0  # the line where the table begins that is being skipped
        self.is_skipping = False
        self.sentence: SyntaxGraph | None = None

    def feed(self, line: str) -> Tree | None:
        """The tree that ends on `line`, the next line of the file."""
        self.line_number += 1
        line = line.rstrip("\r\n")
        if self.is_skipping and not line.startswith(BEGIN):
            self.is_skipping = not line.startswith(END)
            return None
        self.is_skipping = False
        if self.table and not BEGINNING.match(line):
            self.table = 0 if line.startswith("#EOT") else self.table
        elif self.table:
            table, self.table = self.table, 0
            self.between_sentences(line)
            self.options.skip(self.error(f"missing end: the table of line {table} has no #EOT"))
        elif self.sentence is None:
            self.between_sentences(line)
        elif line.startswith(END):
            sentence, self.sentence = self.sentence, None
            if COLUMN.findall(line)[1:] != [sentence.name]:
                raise self.error(f"wrong end: #EOS does not end sentence {sentence.name} of line {sentence.line}")
            return tree_of(sentence, self.path, self.options)
        elif BEGINNING.match(line):
            missing, self.sentence = self.sentence, None
            self.between_sentences(line)
            self.options.skip(self.error(f"missing end: sentence {missing.name} of line {missing.line} has no #EOS"))
        elif columns := COLUMN.findall(line):
            self.add_row(columns, self.sentence)
        return None

    def leave_sentence(self, line: str) -> None:
        """After an error: skip the rest of the sentence."""
        self.is_skipping = self.sentence is not None and not line.startswith(END)
        self.sentence = None
        self.table = 0

    def between_sentences(self, line: str) -> None:
        columns = COLUMN.findall(line)
        if line.startswith("#FORMAT"):
            if columns[1:] not in (["3"], ["4"]):
                raise self.error(f"unknown version: {line!r}; only 3 and 4 of the export format are known")
            self.has_lemmas = columns[1] == "4"
        elif line.startswith("#BOT"):
            self.table = self.line_number
        elif line.startswith(BEGIN):
            if len(columns) < 2:
                raise self.error("#BOS must be followed by the number of the sentence")
            self.sentence = SyntaxGraph(columns[1], self.line_number)
        elif line.startswith(COMMENT):
            self.read_comment(line)
        elif columns:
            raise self.error(f"stray token: {columns[0]!r} is outside of #BOS and #EOS")

    def read_comment(self, line: str) -> None:
        """Skip a comment, unless it names the columns: then it says whether there are lemmas."""
        columns = COLUMN.findall(line.removeprefix(COMMENT))
        if columns[:1] == ["word"] and "parent" in columns:
            self.has_lemmas = "lemma" in columns

    def add_row(self, columns: list[str], sentence: SyntaxGraph) -> None:
        """Add a word or a phrase; what is behind its parent, such as secondary edges and comments, is dropped."""
        if self.has_lemmas is None:
            self.has_lemmas = shows_lemmas(columns)
        n_columns = 6 if self.has_lemmas else 5
        is_row = len(columns) >= n_columns and number_of(columns[n_columns - 1]) is not None
        if columns[0].startswith(COMMENT):
            if is_row:
                raise self.error(f"bad row: is {columns[0]!r} a word? What begins with {COMMENT} is a comment")
            return
        if len(columns) < n_columns:
            raise self.error(f"bad row: it has at least {n_columns} columns; here {len(columns)}")
        if not is_row:
            raise self.error(f"bad row: the parent must be a number, not {columns[n_columns - 1]!r}")
        if self.has_lemmas:
            del columns[1]
        word, tag, _, edge, parent = columns[:5]
        parent_number = int(parent)
        if word.startswith("#") and is_phrase_number(word[1:]):
            node = int(word[1:])
            if node in sentence.labels:
                raise self.error(f"bad row: phrase {word} occurs twice in sentence {sentence.name}")
            sentence.labels[node] = with_function(tag, edge)
        elif sentence.labels:
            raise self.error(f"bad row: word {word!r} after the phrases of sentence {sentence.name}")
        else:
            node = word_node(len(sentence.words))
            sentence.words.append((word, tag))
        sentence.parents[node] = parent_number
        if edge in HEAD_EDGES:
            sentence.heads.add(node)

    def error(self, problem: str) -> TreebankError:
        return TreebankError(problem, self.path, self.line_number, 1)


# A sentence begins, where no word can be meant.
BEGINNING = re.compile(rf"{BEGIN}[{WHITESPACE}]+\d+(?:[{WHITESPACE}]|\Z)")


def shows_lemmas(columns: list[str]) -> bool | None:
    """Whether the parent, a number, is not the fifth column but the sixth; None if neither is one."""
    found = [index for index, column in enumerate(columns[4:6]) if number_of(column) is not None]
    return found[0] == 1 if found else None


def is_phrase_number(text: str) -> bool:
    number = number_of(text)
    return number is not None and number >= FIRST_PHRASE


def number_of(text: str) -> int | None:
    """The number of a node, or None if this is none; Python would take long to read one of many digits."""
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None


def read_export(lines: Iterable[str], path: str = "", options: ReadOptions = STRICT) -> Iterator[Tree]:
    """Read trees in Negra export format from lines of text.

    Parameters
    ----------
    lines : iterable of str
        With or without their line ends.
    path : str
        The name of the file, for errors.
    options : ReadOptions
        If bad sentences are skipped, reading continues behind ``#EOS``, or at the next ``#BOS``.

    Yields
    ------
    nltk.Tree
        The root is labelled ``VROOT`` where several nodes are children of the sentence itself.

    Examples
    --------
    >>> rows = ["Katzen NN -- -- 500", "schlafen VVFIN -- -- 501", "#500 NP -- SB 501", "#501 S -- -- 0"]
    >>> print(*read_export(["#BOS 1", *rows, "#EOS 1"]))
    (S (NP-SB (NN Katzen)) (VVFIN schlafen))
    """
    reader = ExportReader(path, options)
    for line in lines:
        try:
            tree = reader.feed(line)
        except TreebankError as error:
            options.skip(error)
            reader.leave_sentence(line)
            continue
        if tree is not None:
            yield tree
    if reader.sentence is not None:
        inside, mark = f"sentence {reader.sentence.name}", END
    elif reader.table:
        inside, mark = f"the table of line {reader.table}", "#EOT"
    else:
        return
    options.skip(reader.error(f"missing end: the file ends inside {inside}; {mark} is missing"))


def recognise(first_lines: Iterable[str]) -> bool:
    """Whether a file begins as an export file does."""
    has_comments = False
    for line in first_lines:
        if line.startswith(COMMENT):
            has_comments = True
        elif line.strip():
            return line.startswith(FIRST_WORDS)
    return has_comments


READER = Reader(read_export, recognise)


def write_export(trees: Iterable[Tree]) -> Iterator[str]:
    """A file in export format 3: its sentences are numbered from 1."""
    yield "#FORMAT 3\n"
    for number, tree in enumerate(trees, start=1):
        yield f"{format_export(tree, number)}\n"


def format_export(tree: Tree, number: int) -> str:
    """The rows of `tree` in export format 3, as sentence `number`."""
    phrases = [node for node in preorder(tree) if not is_preterminal(node)]
    if not phrases:
        phrases = [Tree(VIRTUAL_ROOT, [tree])]
    if phrases[0].label() in ("", VIRTUAL_ROOT):
        phrases = phrases[1:] if len(phrases) > 1 else []
    # Parents have higher numbers than their children, as in the Negra corpus.
    numbers = {id(node): FIRST_PHRASE + len(phrases) - 1 - index for index, node in enumerate(phrases)}
    parents = {id(child): numbers[id(node)] for node in phrases for child in node}
    word_rows, phrase_rows = [], []
    for node in preorder(tree):
        parent = parents.get(id(node), ROOT)
        if is_preterminal(node):
            word_rows.append(f"{word_column(node[0])}\t{column(node.label())}\t{NO_EDGE}\t{NO_EDGE}\t{parent}")
        elif id(node) in numbers:
            category, edge = split_function(node.label())
            phrase_rows.append(f"#{numbers[id(node)]}\t{column(category)}\t{NO_EDGE}\t{column(edge)}\t{parent}")
    rows = [f"#BOS {number}", *word_rows, *reversed(phrase_rows), f"#EOS {number}"]
    return "\n".join(rows)


def column(value: str) -> str:
    if not is_symbol(value):
        raise TreebankError(f"{value!r} cannot be written in export format: it is empty or contains whitespace")
    return value


def word_column(word: str) -> str:
    if word.startswith((COMMENT, END)) or word == BEGIN or (word[:1] == "#" and is_phrase_number(word[1:])):
        problem = "it would be read as a comment, as the end of the sentence or as a phrase"
        raise TreebankError(f"{word!r} cannot be written in export format: {problem}; --write=tigerxml can write it")
    return column(word)
