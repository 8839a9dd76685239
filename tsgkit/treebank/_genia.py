"""GENIA treebank XML: phrases are ``<cons cat=...>``, words ``<tok cat=...>``, as in Penn brackets otherwise.

First stage of the flow: the reader. Roles and functions become function tags (``NP-SBJ``), null elements empty words
with the tag ``-NONE-``, as in the Penn Treebank.
"""

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from nltk.tree import Tree

from tsgkit.treebank._formats import STRICT, Reader, ReadOptions
from tsgkit.treebank._xml import Attributes, NestedSentence, XmlReader, first_element, required, symbol

EMPTY_TAG = "-NONE-"
# Null elements, and their words in the Penn Treebank; others get their name between stars.
NULL_WORDS = {"NONE": "*", "ZERO": "0", "QSTN": "*?*"}
FUNCTIONS = ("role", "func")


class GeniaSentence(NestedSentence):
    """The elements of one ``<sentence>``."""

    def start(self, name: str, attributes: Attributes) -> None:
        if self.word is not None:
            raise self.reader.error(f"stray element: <{name}> inside <tok>")
        if name == "cons":
            functions = [attributes[which] for which in FUNCTIONS if attributes.get(which)]
            self.open_phrase("-".join([required(attributes, "cat", name, self.reader), *functions]))
            if null := attributes.get("null"):
                word = NULL_WORDS.get(null, f"*{symbol(null, 'null', self.reader)}*")
                self.open_nodes[-1].append(Tree(EMPTY_TAG, [word]))
        elif name == "tok":
            self.tag = symbol(required(attributes, "cat", name, self.reader), "cat", self.reader)
            self.word = []

    def end(self, name: str) -> None:
        if name == "cons":
            self.close_phrase()
        elif name == "tok" and self.word is not None:
            word, self.word = "".join(self.word), None
            self.open_nodes[-1].append(Tree(self.tag, [symbol(word, "word", self.reader)]))


def read_genia(file: BinaryIO, path: str = "", options: ReadOptions = STRICT) -> Iterator[Tree]:
    """Read trees in the XML of the GENIA treebank.

    Parameters
    ----------
    file : binary file
    path : str
        The name of the file, for errors.
    options : ReadOptions

    Yields
    ------
    nltk.Tree

    Examples
    --------
    >>> import io
    >>> text = '<a><sentence><cons cat="NP" role="SBJ"><tok cat="NN">GR</tok></cons></sentence></a>'
    >>> print(*read_genia(io.BytesIO(text.encode())))
    (NP-SBJ (NN GR))
    """
    return XmlReader("sentence", GeniaSentence, path, options).trees(file)


def recognise(first_lines: Iterable[str]) -> bool:
    """Whether a file begins as a file of the GENIA treebank does."""
    beginning = first_element(first_lines)
    return beginning.startswith(("<Annotation", "<annotation", "<set")) and "<cons" in beginning


READER = Reader(read_genia, recognise, is_binary=True)
