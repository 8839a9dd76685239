"""Alpino XML: nested ``<node>`` elements, each with the positions of its words.

First stage of the flow: the reader. The order of the words is that of ``begin``, not that of the elements, and
phrases may have gaps. The relation ``rel`` of a phrase becomes its function tag. A node with an index and nothing else
is a secondary edge: it is left out, or becomes a trace.
"""

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from nltk.tree import Tree

from tsgkit.errors import UsageError
from tsgkit.treebank._continuous import ROOT, word_node
from tsgkit.treebank._formats import STRICT, Reader, ReadOptions
from tsgkit.treebank._graphs import HEAD_EDGES, SyntaxGraph, tree_of, with_function
from tsgkit.treebank._trees import SPACE
from tsgkit.treebank._xml import Attributes, XmlReader, first_element, required, symbol

TOP = "top"  # both a category and a relation
EMPTY_TAG = "-NONE-"
MOST_DIGITS = 9
DEFAULTS = {"secondary": "drop", "tag": "pos"}
SECONDARY = ("drop", "trace")


class AlpinoSentence:
    """The elements of one ``<alpino_ds>``."""

    has_text = True

    def __init__(self, reader: XmlReader, attributes: Attributes) -> None:
        self.reader = reader
        named = {**DEFAULTS, **reader.options.named}
        self.tag, self.keeps_traces = named["tag"], named["secondary"] == "trace"
        self.graph = SyntaxGraph(attributes.get("id", f"number {reader.n_sentences}"), reader.line)
        self.words: list[tuple[int, str, str, int, bool]] = []  # position, word, tag, parent, whether it is a head
        # The open nodes: the number of a phrase, or None, and how many words and secondary edges there were before it.
        self.open: list[tuple[int | None, int, int]] = []
        self.n_secondary = 0
        self.n_phrases = 0
        self.empty: dict[int, list[Tree]] = {}
        self.traces: list[tuple[Tree, str]] = []  # with the index of each
        self.categories: dict[str, str] = {}  # of nodes with an index
        self.sentence: list[str] = []
        self.in_sentence = False

    def start(self, name: str, attributes: Attributes) -> None:
        self.in_sentence = name == "sentence"
        if name != "node":
            return
        parent = self.open[-1][0] if self.open else ROOT
        if parent is None:
            raise self.reader.error("no tree: a word has a <node> inside")
        edge = attributes.get("rel", "")
        edge = "" if edge == TOP else edge
        if "index" in attributes:
            category = attributes.get("cat") or (attributes.get(self.tag) if "word" in attributes else None)
            if category:
                self.categories[attributes["index"]] = category
        if "cat" in attributes:
            self.open_phrase(symbol(attributes["cat"], "cat", self.reader), edge, parent)
            return
        if "word" in attributes:
            tag = symbol(required(attributes, self.tag, name, self.reader), self.tag, self.reader)
            word = symbol(attributes["word"], "word", self.reader)
            begin, end = (self.position(attributes, which) for which in ("begin", "end"))
            if end != begin + 1:
                raise self.reader.error(
                    f"word order: {word!r} goes from {begin} to {end}, and not to the next position"
                )
            self.words.append((begin, word, tag, parent, edge in HEAD_EDGES))
        elif "index" not in attributes:
            raise self.reader.error("no tree: a <node> has neither 'cat' nor 'word' nor 'index'")
        else:
            self.n_secondary += 1
            self.add_trace(attributes, edge, parent)
        self.open.append((None, len(self.words), self.n_secondary))

    def add_trace(self, attributes: Attributes, edge: str, parent: int) -> None:
        if self.keeps_traces:
            index = symbol(attributes["index"], "index", self.reader)
            trace = Tree(edge, [Tree(EMPTY_TAG, [f"*{index}*"])])
            self.traces.append((trace, index))
            self.empty.setdefault(parent, []).append(trace)

    def open_phrase(self, category: str, edge: str, parent: int) -> None:
        self.n_phrases += 1
        number = self.n_phrases
        self.graph.labels[number] = with_function(category, edge)
        self.graph.parents[number] = parent
        if edge in HEAD_EDGES:
            self.graph.heads.add(number)
        self.open.append((number, len(self.words), self.n_secondary))

    def position(self, attributes: Attributes, which: str) -> int:
        text = required(attributes, which, "node", self.reader)
        if not text.isdecimal() or len(text) > MOST_DIGITS:
            raise self.reader.error(f"word order: {which}={text!r} is no position")
        return int(text)

    def end(self, name: str) -> None:
        self.in_sentence = False
        if name != "node":
            return
        number, n_words, n_secondary = self.open.pop()
        if number is not None and len(self.words) == n_words:
            if n_secondary == self.n_secondary:
                raise self.reader.error(f"empty node: {self.graph.labels[number]!r} has no words")
            # Only secondary edges below: the phrase is empty as well.
            label = self.graph.labels.pop(number)
            parent = self.graph.parents.pop(number)
            self.graph.heads.discard(number)
            if number in self.empty:
                self.empty.setdefault(parent, []).append(Tree(label, self.empty.pop(number)))

    def text(self, data: str) -> None:
        if self.in_sentence:
            self.sentence.append(data)

    def tree(self) -> Tree:
        graph = self.graph
        self.words.sort()
        begins = [begin for begin, *_ in self.words]
        if begins != list(range(len(begins))):
            wrong = next(index for index, begin in enumerate(begins) if begin != index)
            found = "two words" if wrong and begins[wrong] == begins[wrong - 1] else "no word"
            position = begins[wrong] if found == "two words" else wrong
            raise graph.error("word order", f"{found} at position {position}", self.reader.path)
        for position, (_, word, tag, parent, is_head) in enumerate(self.words):
            graph.words.append((word, tag))
            graph.parents[word_node(position)] = parent
            if is_head:
                graph.heads.add(word_node(position))
        self.check_sentence()
        for trace, index in self.traces:
            trace.set_label(with_function(self.categories.get(index, EMPTY_TAG), trace.label()))
        graph.empty_children = self.empty
        return tree_of(graph, self.reader.path, self.reader.options)

    def check_sentence(self) -> None:
        """Compare the words with those of ``<sentence>``, if there is one."""
        said = [word for word in SPACE.split("".join(self.sentence)) if word]
        words = [word for word, _ in self.graph.words]
        if said and said != words:
            at = next((at for at, pair in enumerate(zip(said, words, strict=False)) if pair[0] != pair[1]), None)
            details = (
                f"{len(words)} words, but <sentence> has {len(said)}"
                if at is None
                else f"word {at + 1} is {words[at]!r} by its position, {said[at]!r} in <sentence>"
            )
            raise self.graph.error("word order", details, self.reader.path)


def read_alpino(file: BinaryIO, path: str = "", options: ReadOptions = STRICT) -> Iterator[Tree]:
    """Read trees in Alpino XML.

    Parameters
    ----------
    file : binary file
    path : str
        The name of the file, for errors.
    options : ReadOptions
        Named options: ``secondary`` (``drop`` or ``trace``) and ``tag``, the attribute that is the tag of a word.

    Yields
    ------
    nltk.Tree
    """
    secondary = options.named.get("secondary", DEFAULTS["secondary"])
    if secondary not in SECONDARY:
        raise UsageError(f"format alpino: secondary={secondary}: must be one of {', '.join(SECONDARY)}")
    return XmlReader("alpino_ds", AlpinoSentence, path, options).trees(file)


def recognise(first_lines: Iterable[str]) -> bool:
    """Whether a file begins as Alpino XML does."""
    return first_element(first_lines).startswith(("<alpino", "<treebank"))


READER = Reader(read_alpino, recognise, is_binary=True, named_options=DEFAULTS)
