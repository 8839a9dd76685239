"""The Negra export format, versions 3 and 4: one line per word and per phrase, with the parent's number.

The models here are context-free: discontinuous trees are refused, or made continuous. The edge label of a phrase
becomes its function tag (``NP`` with the edge ``SB`` is ``NP-SB``); edge labels of words, lemmas, morphology and
secondary edges are not kept.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank.continuous import ROOT, Outline, continuous_parents, word_node
from tsgkit.treebank.trees import is_preterminal, preorder

FIRST_PHRASE = 500
MOST_DIGITS = 9
HEAD_EDGE = "HD"
# Of words and phrases in a tree that is to be made continuous, which takes time in proportion to their square.
MOST_NODES = 5000
NO_EDGE = "--"
VIRTUAL_ROOT = "VROOT"


@dataclass
class Sentence:
    """The lines of one sentence, as far as they were read."""

    number: str
    line_number: int
    words: list[tuple[str, str]] = field(default_factory=list)  # word, tag
    labels: dict[int, str] = field(default_factory=dict)  # of phrases, with their functions
    parents: dict[int, int] = field(default_factory=dict)  # words first, see `tsgkit.treebank.continuous`
    heads: set[int] = field(default_factory=set)


class ExportReader:
    """Sentences from lines; see `read_export`."""

    def __init__(self, name: str, nfc: bool, reattached: list[str] | None) -> None:
        self.name, self.nfc, self.reattached = name, nfc, reattached
        self.line_number = 0
        self.has_lemmas = False
        self.in_table = False
        self.is_skipping = False
        self.sentence: Sentence | None = None

    def feed(self, line: str) -> Tree | None:
        """The tree that ends on `line`, the next line of the file."""
        self.line_number += 1
        if self.nfc:
            line = unicodedata.normalize("NFC", line)
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
        """After an error: pass over the rest of the sentence at work."""
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
                raise self.error("#BOS must be followed by the sentence's number")
            self.sentence = Sentence(columns[1], self.line_number)
        elif columns and not line.startswith("%%"):
            raise self.error(f"stray token: {columns[0]!r} stands outside of #BOS and #EOS")

    def add_row(self, line: str, sentence: Sentence) -> None:
        # Columns are separated by tabs, or by blanks in old files; neither occurs inside one.
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
                raise self.error(f"phrase {word} stands twice in sentence {sentence.number}")
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
        return TreebankError(problem, self.name, self.line_number, 1)


def number_of(text: str) -> int | None:
    """A node's number, or None where there is none; longer ones would take Python long to read."""
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None


def build(sentence: Sentence, reader: ExportReader) -> Tree:
    """The tree of a sentence's rows, its root labelled ``VROOT`` (or the only phrase below it)."""

    def wrong(problem: str) -> TreebankError:
        return TreebankError(f"sentence {sentence.number}: {problem}", reader.name, sentence.line_number, 1)

    if not sentence.words:
        raise wrong("empty: it has no words")
    require_tree(sentence, wrong)
    outline = Outline.of(sentence.parents)
    gap = outline.gap()
    if gap is not None:
        number, position = gap
        if reader.reattached is None:
            raise wrong(
                f"discontinuous tree: phrase #{number} ({sentence.labels[number]}) covers word {position + 1}"
                f" ({sentence.words[position][0]}) but not the word before it; only continuous trees can be read:"
                " --continuous makes it one"
            )
        if len(sentence.parents) > MOST_NODES:
            raise wrong(f"a discontinuous tree with more than {MOST_NODES} words and phrases cannot be made continuous")
        reader.reattached.append(f"{reader.name}:{sentence.line_number}: sentence {sentence.number}")
        outline = Outline.of(continuous_parents(sentence.parents, sentence.heads))
    nodes = {number: Tree(label, []) for number, label in sentence.labels.items()}
    nodes[ROOT] = Tree(VIRTUAL_ROOT, [])
    nodes.update({word_node(position): Tree(tag, [word]) for position, (word, tag) in enumerate(sentence.words)})
    for node in sorted(outline.parents, key=outline.first.__getitem__):
        nodes[outline.parents[node]].append(nodes[node])
    root = nodes[ROOT]
    return root[0] if len(root) == 1 and not is_preterminal(root[0]) else root


def require_tree(sentence: Sentence, wrong: Callable[[str], TreebankError]) -> None:
    """Refuse parents that are not there, phrases above themselves, and phrases without words."""
    reached = {ROOT}
    for position, (word, _) in enumerate(sentence.words):
        node, way = word_node(position), set()
        while node not in reached:
            if node in way:
                raise wrong(f"phrase #{node} is its own ancestor")
            if node not in sentence.parents:
                raise wrong(
                    f"word {position + 1} ({word}) or a phrase above it names a parent that is not there: {node}"
                )
            way.add(node)
            node = sentence.parents[node]
        reached |= way
    for number, label in sentence.labels.items():
        if number not in reached:
            raise wrong(f"empty node: phrase #{number} ({label}) has no words")


def read_export(
    lines: Iterable[str],
    name: str = "",
    *,
    skipped: list[TreebankError] | None = None,
    nfc: bool = False,
    reattached: list[str] | None = None,
) -> Iterator[Tree]:
    """Read trees in Negra export format from lines of text.

    Parameters
    ----------
    lines : iterable of str
        With or without their line ends.
    name : str
        What errors call the source.
    skipped : list, optional
        When given, a bad sentence is left out and its error is put here.
    nfc : bool
        Whether text is brought to Unicode's normal form C.
    reattached : list, optional
        When given, discontinuous trees are made continuous, and where they stood is put here; otherwise they are bad.

    Yields
    ------
    nltk.Tree
        The root is labelled ``VROOT`` where several nodes hang from the sentence itself.

    Examples
    --------
    >>> rows = ["Katzen NN -- -- 500", "schlafen VVFIN -- -- 501", "#500 NP -- SB 501", "#501 S -- -- 0"]
    >>> print(*read_export(["#BOS 1", *rows, "#EOS 1"]))
    (S (NP-SB (NN Katzen)) (VVFIN schlafen))
    """
    reader = ExportReader(name, nfc, reattached)
    for line in lines:
        try:
            tree = reader.feed(line)
        except TreebankError as error:
            if skipped is None:
                raise
            skipped.append(error)
            reader.leave_sentence(line)
            continue
        if tree is not None:
            yield tree
    if reader.sentence is not None:
        unfinished = reader.error(f"the file ends inside sentence {reader.sentence.number}: #EOS is missing")
        if skipped is None:
            raise unfinished
        skipped.append(unfinished)


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
        raise TreebankError(f"{value!r} cannot be written in export format: it is empty or contains a blank")
    return value


def split_function(label: str) -> tuple[str, str]:
    """``NP-SBJ-1`` as ``NP`` and ``SBJ-1``; a label without function tag gets the edge ``--``."""
    category, dash, function = label.partition("-")
    return (category, function) if category and dash and function else (label, NO_EDGE)
