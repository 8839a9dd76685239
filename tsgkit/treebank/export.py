"""The Negra export format, versions 3 and 4: one line per word and per phrase, with the number of the parent.

First stage of the flow: the reader and the writer. All models are context-free, so a discontinuous tree is an error, or
is made continuous. The edge label of a phrase becomes its function tag (``NP`` with the edge ``SB`` is ``NP-SB``); edge
labels of words, lemmas, morphology and secondary edges are dropped.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank.continuous import ROOT, Outline, continuous_parents, word_node
from tsgkit.treebank.formats import STRICT, Reader, ReadOptions
from tsgkit.treebank.trees import is_preterminal, preorder

FIRST_PHRASE = 500
MOST_DIGITS = 9
HEAD_EDGE = "HD"
# Making a tree continuous takes time in proportion to the square of its number of words and phrases.
MOST_NODES = 5000
NO_EDGE = "--"
VIRTUAL_ROOT = "VROOT"
# With one of these, the first line of an export file begins.
FIRST_WORDS = ("#FORMAT", "#BOS", "#BOT", "%%")


@dataclass
class Sentence:
    """The rows of one sentence that are read so far."""

    number: str
    line_number: int
    words: list[tuple[str, str]] = field(default_factory=list)  # word, tag
    labels: dict[int, str] = field(default_factory=dict)  # of phrases, with their functions
    parents: dict[int, int] = field(default_factory=dict)  # words first, see `tsgkit.treebank.continuous`
    heads: set[int] = field(default_factory=set)


class ExportReader:
    """Sentences from lines; see `read_export`."""

    def __init__(self, path: str, reattached: list[str] | None) -> None:
        self.path, self.reattached = path, reattached
        self.line_number = 0
        self.has_lemmas = False
        self.in_table = False
        self.is_skipping = False
        self.sentence: Sentence | None = None

    def feed(self, line: str) -> Tree | None:
        """The tree that ends on `line`, the next line of the file."""
        self.line_number += 1
        line = line.rstrip("\r\n")
        if self.is_skipping and not line.startswith("#BOS"):
            self.is_skipping = not line.startswith("#EOS")
            return None
        self.is_skipping = False
        if self.in_table:
            self.in_table = not line.startswith("#EOT")
        elif self.sentence is None:
            self.between_sentences(line)
        elif line.startswith("#EOS"):
            sentence, self.sentence = self.sentence, None
            if line.split()[1:] != [sentence.number]:
                raise self.error(
                    f"#EOS does not end sentence {sentence.number}, which began at line {sentence.line_number}"
                )
            return build(sentence, self)
        elif line and not line.startswith("%%"):
            self.add_row(line, self.sentence)
        return None

    def leave_sentence(self, line: str) -> None:
        """After an error: skip the rest of the sentence."""
        self.is_skipping = self.sentence is not None and not line.startswith("#EOS")
        self.sentence = None
        self.in_table = False

    def between_sentences(self, line: str) -> None:
        columns = line.split()
        if line.startswith("#FORMAT"):
            if columns[1:] not in (["3"], ["4"]):
                raise self.error(f"{line!r}: only versions 3 and 4 of the export format are known")
            self.has_lemmas = columns[1] == "4"
        elif line.startswith("#BOT"):
            self.in_table = True
        elif line.startswith("#BOS"):
            if len(columns) < 2:
                raise self.error("#BOS must be followed by the number of the sentence")
            self.sentence = Sentence(columns[1], self.line_number)
        elif columns and not line.startswith("%%"):
            raise self.error(f"stray token: {columns[0]!r} is outside of #BOS and #EOS")

    def add_row(self, line: str, sentence: Sentence) -> None:
        # Tabs separate columns, or spaces in old files; no column contains either.
        columns = [column.strip() for column in line.split("\t") if column.strip()] if "\t" in line else line.split()
        n_columns = 5 + self.has_lemmas
        if len(columns) < n_columns:
            raise self.error(f"a row has at least {n_columns} columns, this one {len(columns)}")
        if self.has_lemmas:
            del columns[1]
        word, tag, _, edge, parent = columns[:5]
        parent_number, number = number_of(parent), number_of(word[1:])
        if parent_number is None:
            raise self.error(f"{parent!r}: the parent must be a number")
        if word.startswith("#") and number is not None and number >= FIRST_PHRASE:
            node = number
            if node in sentence.labels:
                raise self.error(f"phrase {word} occurs twice in sentence {sentence.number}")
            sentence.labels[node] = tag if edge == NO_EDGE else f"{tag}-{edge}"
        elif sentence.labels:
            raise self.error(f"word {word!r} after the phrases of sentence {sentence.number}")
        else:
            node = word_node(len(sentence.words))
            sentence.words.append((word, tag))
        sentence.parents[node] = parent_number
        if edge == HEAD_EDGE:
            sentence.heads.add(node)

    def error(self, problem: str) -> TreebankError:
        return TreebankError(problem, self.path, self.line_number, 1)


def number_of(text: str) -> int | None:
    """The number of a node, or None if this is none; Python would take long to read one of many digits."""
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None


def build(sentence: Sentence, reader: ExportReader) -> Tree:
    """The tree of the rows of a sentence; its root is labelled ``VROOT``, or is the only phrase below that."""

    def error(problem: str) -> TreebankError:
        return TreebankError(f"sentence {sentence.number}: {problem}", reader.path, sentence.line_number, 1)

    if not sentence.words:
        raise error("empty: it has no words")
    require_tree(sentence, error)
    outline = Outline.of(sentence.parents)
    gap = outline.gap()
    if gap is not None:
        number, position = gap
        if reader.reattached is None:
            raise error(
                f"discontinuous tree: phrase #{number} ({sentence.labels[number]}) covers word {position + 1}"
                f" ({sentence.words[position][0]}) but not the word before it; only continuous trees can be read:"
                " --continuous makes it one"
            )
        if len(sentence.parents) > MOST_NODES:
            raise error(f"a discontinuous tree with more than {MOST_NODES} words and phrases cannot be made continuous")
        reader.reattached.append(f"{reader.path}:{sentence.line_number}: sentence {sentence.number}")
        outline = Outline.of(continuous_parents(sentence.parents, sentence.heads))
    nodes = {number: Tree(label, []) for number, label in sentence.labels.items()}
    nodes[ROOT] = Tree(VIRTUAL_ROOT, [])
    nodes.update({word_node(position): Tree(tag, [word]) for position, (word, tag) in enumerate(sentence.words)})
    for node in sorted(outline.parents, key=outline.first.__getitem__):
        nodes[outline.parents[node]].append(nodes[node])
    root = nodes[ROOT]
    return root[0] if len(root) == 1 and not is_preterminal(root[0]) else root


def require_tree(sentence: Sentence, error: Callable[[str], TreebankError]) -> None:
    """Raise an error for parents that do not exist, for cycles, and for phrases without words."""
    reached = {ROOT}
    for position, (word, _) in enumerate(sentence.words):
        node, path = word_node(position), set()
        while node not in reached:
            if node in path:
                raise error(f"phrase #{node} is its own ancestor")
            if node not in sentence.parents:
                raise error(
                    f"word {position + 1} ({word}) or a phrase above it has a parent that does not exist: {node}"
                )
            path.add(node)
            node = sentence.parents[node]
        reached |= path
    for number, label in sentence.labels.items():
        if number not in reached:
            raise error(f"empty node: phrase #{number} ({label}) has no words")


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
    reader = ExportReader(path, options.reattached)
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
        options.skip(reader.error(f"the file ends inside sentence {reader.sentence.number}: #EOS is missing"))


def recognise(first_lines: Iterable[str]) -> bool:
    """Whether a file begins as an export file does."""
    return next(iter(first_lines), "").startswith(FIRST_WORDS)


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
            word_rows.append(f"{column(node[0])}\t{column(node.label())}\t{NO_EDGE}\t{NO_EDGE}\t{parent}")
        elif id(node) in numbers:
            category, edge = split_function(node.label())
            phrase_rows.append(f"#{numbers[id(node)]}\t{column(category)}\t{NO_EDGE}\t{column(edge)}\t{parent}")
    rows = [f"#BOS {number}", *word_rows, *reversed(phrase_rows), f"#EOS {number}"]
    return "\n".join(rows)


def column(value: str) -> str:
    if not value or value.split() != [value]:
        raise TreebankError(f"{value!r} cannot be written in export format: it is empty or contains whitespace")
    return value


def split_function(label: str) -> tuple[str, str]:
    """Category and edge label: ``NP-SBJ-1`` is ``NP`` and ``SBJ-1``; a label without function tag has ``--``."""
    category, dash, function = label.partition("-")
    return (category, function) if category and dash and function else (label, NO_EDGE)
