"""Treebanks in XML: a streaming parser that takes nothing from a file but its elements, and knows where it is.

First stage of the flow, below the readers of TIGER-XML, Alpino, GENIA and the French Treebank. It is Python's expat,
which here refuses what a treebank does not need: declarations in a document type, entities, external files. Depth,
length of a tag and size of a sentence are bounded, so memory does not depend on the size of the file.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO, Protocol
from xml.parsers import expat

from nltk.tree import Tree

from tsgkit.errors import TreebankError, UsageError
from tsgkit.treebank._formats import ReadOptions
from tsgkit.treebank._trees import WHITESPACE, is_symbol, map_symbols

CHUNK = 1 << 16
MOST_DEPTH = 1000
# Elements, and characters of text, of one sentence.
MOST_ELEMENTS = 1 << 20
MOST_CHARACTERS = 1 << 24
# Chunks without the end of any tag: expat keeps them all in memory.
MOST_CHUNKS_PER_TAG = 16
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Whitespace, and what a byte order mark of UTF-16 is in UTF-8.
BEFORE_XML = "\ufffd \t\r\n"
SEVERAL_DOCUMENTS = "a file with several documents must be split"
REMEDIES = {
    expat.errors.codes[expat.errors.XML_ERROR_MISPLACED_XML_PI]: (
        f"<?xml ...?> must be the very first of a file: remove what comes before it; {SEVERAL_DOCUMENTS}"
    ),
    expat.errors.codes[expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]: SEVERAL_DOCUMENTS,
}
Attributes = Mapping[str, str]


class Sentence(Protocol):
    """A sentence that is being read; a format has a class of these."""

    has_text: bool  # whether `text` is to be called

    def __init__(self, reader: "XmlReader", attributes: "Attributes") -> None: ...

    def start(self, name: str, attributes: Attributes) -> None:
        """An element begins."""

    def end(self, name: str) -> None:
        """The innermost element ends."""

    def text(self, data: str) -> None:
        """A part of the text of the innermost element."""

    def tree(self) -> Tree | None:
        """The tree, when the sentence has ended; None if there is none to be had."""


class XmlReader:
    """Trees from the bytes of an XML file.

    Parameters
    ----------
    tag : str
        The element that is a sentence.
    sentence : class
        ``sentence(reader, attributes)`` is the `Sentence` of such an element.
    path : str
        The name of the file, for errors.
    options : ReadOptions
    """

    def __init__(
        self,
        tag: str,
        sentence: type[Sentence],
        path: str,
        options: ReadOptions,
    ) -> None:
        self.tag, self.make_sentence, self.path, self.options = tag, sentence, path, options
        self.finished: list[Tree] = []
        self.sentence: Sentence | None = None
        self.is_inside = False  # a sentence, also a bad one
        self.depth = self.n_sentences = self.n_elements = self.n_characters = self.n_idle = 0
        self.parser = expat.ParserCreate("utf-8" if options.encoding else None)
        self.parser.buffer_text = True
        self.parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        if sentence.has_text:
            self.parser.CharacterDataHandler = self.text
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.EntityDeclHandler = self.entity
        self.parser.ExternalEntityRefHandler = self.entity
        self.parser.SkippedEntityHandler = self.entity

    def trees(self, file: BinaryIO) -> Iterator[Tree]:
        """The trees of a file, which is read piece by piece."""
        for piece in pieces(file, self.path, self.options.encoding):
            self.n_idle += 1
            try:
                self.parser.Parse(piece, not piece)
            except expat.ExpatError as error:
                remedy = REMEDIES.get(error.code, "the rest of the file cannot be read")
                problem = f"not well-formed XML: {expat.ErrorString(error.code)}; {remedy}"
                raise TreebankError(problem, self.path, error.lineno, error.offset + 1) from None
            except (LookupError, ValueError) as error:  # of Python's codecs
                problem = f"the encoding that the file declares cannot be read ({error}); --encoding names another"
                raise TreebankError(problem, self.path, 1) from None
            if self.n_idle > MOST_CHUNKS_PER_TAG:
                raise self.error(f"tag too long: no tag of a treebank has {MOST_CHUNKS_PER_TAG * CHUNK >> 20} MB")
            yield from self.finished
            self.finished.clear()
        if not self.n_sentences:
            raise TreebankError(f"no sentences: there is no element <{self.tag}>; is --format right?", self.path)

    # ---- what expat calls ------------------------------------------------------------------------------------

    def start(self, name: str, attributes: Attributes) -> None:
        self.depth += 1
        self.n_idle = 0
        if self.depth > MOST_DEPTH:
            self.refuse_size()
        try:
            if self.sentence is not None:
                self.n_elements += 1
                if self.n_elements > MOST_ELEMENTS:
                    self.refuse_size()
                self.sentence.start(name, attributes)
            elif name == self.tag and not self.is_inside:
                self.is_inside = True
                self.n_sentences += 1
                self.n_elements = self.n_characters = 0
                self.sentence = self.make_sentence(self, attributes)
        except TreebankError as error:
            self.leave(error)

    def end(self, name: str) -> None:
        self.depth -= 1
        try:
            if name != self.tag:
                if self.sentence is not None:
                    self.sentence.end(name)
                return
            self.is_inside = False
            if self.sentence is not None:
                sentence, self.sentence = self.sentence, None
                tree = sentence.tree()
                if tree is not None:
                    self.finished.append(map_symbols(tree, self.options.normalised) if self.options.nfc else tree)
        except TreebankError as error:
            self.leave(error)

    def text(self, data: str) -> None:
        self.n_idle = 0
        if self.sentence is None:
            return
        self.n_characters += len(data)
        if self.n_characters > MOST_CHARACTERS:
            self.refuse_size()
        try:
            self.sentence.text(data)
        except TreebankError as error:
            self.leave(error)

    def doctype(self, name: str, system: str | None, public: str | None, has_subset: bool) -> None:
        # An external one is named only; expat reads no file.
        if has_subset:
            raise self.error("document type refused: declarations inside <!DOCTYPE ...> are not read; remove them")

    def entity(self, name: str, *_: object) -> int:
        raise self.error(f"entity refused: {name!r}; only &amp; &lt; &gt; &quot; &apos; and numbers are read")

    # ---- errors ----------------------------------------------------------------------------------------------

    def leave(self, error: TreebankError) -> None:
        """After an error: skip the rest of the sentence, or raise the error."""
        self.sentence = None
        self.options.skip(error)

    def refuse_size(self) -> None:
        raise self.error(
            f"too large: at most {MOST_DEPTH} elements are nested; a sentence has at most {MOST_ELEMENTS} elements"
            f" and {MOST_CHARACTERS} characters"
        )

    @property
    def line(self) -> int:
        """Of what is being read, from 1."""
        return self.parser.CurrentLineNumber

    def error(self, problem: str) -> TreebankError:
        return TreebankError(problem, self.path, self.line, self.parser.CurrentColumnNumber + 1)


class NestedSentence:
    """A sentence whose elements nest as its phrases do, for formats to inherit from.

    Attributes
    ----------
    root : nltk.Tree
        Labelled ``VROOT``, with the phrases and words of the sentence.
    open_nodes : list of nltk.Tree
        From the root to the innermost phrase that has not ended.
    word : list of str or None
        The pieces of text of the word that is being read.
    """

    has_text = True

    def __init__(self, reader: XmlReader, attributes: Attributes) -> None:
        self.reader = reader
        self.name = attributes.get("id") or attributes.get("nb") or f"number {reader.n_sentences}"
        self.line = reader.line
        self.root = Tree("VROOT", [])
        self.open_nodes = [self.root]
        self.word: list[str] | None = None

    def open_phrase(self, label: str) -> None:
        node = Tree(symbol(label, "label", self.reader), [])
        self.open_nodes[-1].append(node)
        self.open_nodes.append(node)

    def close_phrase(self) -> None:
        node = self.open_nodes.pop()
        if not len(node):
            raise self.reader.error(f"empty node: {node.label()!r} has neither words nor children")

    def text(self, data: str) -> None:
        if self.word is not None:
            self.word.append(data)
        elif data.strip():
            raise self.reader.error(f"stray text: {data.strip()[:40]!r} is in no element for words")

    def tree(self) -> Tree:
        if not len(self.root):
            raise TreebankError(
                f"sentence {self.name}: empty sentence: it has no words",
                self.reader.path,
                self.line,
                1,
                reason="empty sentence",
            )
        only = self.root[0]
        return only if len(self.root) == 1 and isinstance(only[0], Tree) else self.root


def pieces(file: BinaryIO, path: str, encoding: str | None) -> Iterator[bytes]:
    """The bytes of a file, then ``b""``; in UTF-8 if the encoding is given, whatever the file says of itself."""
    if encoding is None:
        while piece := file.read(CHUNK):
            yield piece
        yield b""
        return
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except (LookupError, TypeError):
        raise UsageError(f"encoding {encoding!r}: not known") from None
    try:
        while piece := file.read(CHUNK):
            if decoded := decoder.decode(piece):
                yield decoded.encode("utf-8", errors="strict")
        decoder.decode(b"", final=True)  # raises if the file ends inside a character
        yield b""
    except UnicodeError as error:
        raise TreebankError(f"not valid {encoding}: {error}; is another encoding right?", path) from None


def required(attributes: Attributes, name: str, element: str, reader: XmlReader) -> str:
    """The value of an attribute that must not be missing or empty."""
    value = attributes.get(name)
    if not value:
        raise reader.error(f"missing attribute: <{element}> has no {name!r}")
    return value


def symbol(text: str, what: str, reader: XmlReader) -> str:
    """A word or a label, which must have no whitespace inside; that around it is cut off."""
    stripped = text.strip(WHITESPACE)
    if not is_symbol(stripped):
        raise reader.error(f"{what} with whitespace or empty: {text!r}")
    return stripped


def first_element(first_lines: Iterable[str]) -> str:
    """The beginning of an XML file without its declarations and comments, on one line; '' for another file."""
    text = ""
    for line in first_lines:
        text += line.replace("\0", "")[:CHUNK]
        beginning = text.lstrip(BEFORE_XML)
        if beginning and not beginning.startswith("<"):
            return ""
        if len(text) > CHUNK:
            break
    return re.sub(r"<\?.*?\?>|<!--.*?-->|<![^>]*>", "", text, flags=re.DOTALL).strip(BEFORE_XML)


def escape(text: str) -> str:
    """Text for an attribute in double quotes; an error for characters that XML cannot have."""
    if NOT_IN_XML.search(text):
        raise TreebankError(f"{text!r} cannot be written in XML: it has a control character")
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    return escaped.replace("\t", "&#9;").replace("\n", "&#10;").replace("\r", "&#13;")
