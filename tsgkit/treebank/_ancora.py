"""AnCora XML: phrases are elements with the name of their category, words are elements with an attribute ``wd``.

First stage of the flow: the reader. The function ``func`` of a phrase becomes its function tag, the attribute ``pos``
the tag of a word. An element that is marked as elliptic or missing is an empty word with the tag ``-NONE-``.
"""

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from nltk.tree import Tree

from tsgkit.treebank._formats import STRICT, Reader, ReadOptions
from tsgkit.treebank._graphs import with_function
from tsgkit.treebank._trees import SPACE
from tsgkit.treebank._xml import Attributes, NestedSentence, XmlReader, first_element, symbol

EMPTY = ("-NONE-", "*0*")
JOINED = "_"
ROOT_LABEL = "sentence"


class AncoraSentence(NestedSentence):
    """The elements of one ``<sentence>``."""

    def __init__(self, reader: XmlReader, attributes: Attributes) -> None:
        super().__init__(reader, attributes)
        self.open_word = ""

    def start(self, name: str, attributes: Attributes) -> None:
        if self.open_word:
            raise self.reader.error(f"stray element: <{name}> inside the word {self.open_word!r}")
        if "wd" in attributes:
            tag = symbol(attributes.get("pos") or name, "pos", self.reader)
            self.open_word = JOINED.join(part for part in SPACE.split(attributes["wd"]) if part)
            if not self.open_word:
                raise self.reader.error(f"missing word: 'wd' of <{name}> is empty")
            self.open_nodes[-1].append(Tree(tag, [self.open_word]))
            return
        self.open_phrase(with_function(name, attributes.get("func", "")))
        if "yes" in (attributes.get("elliptic"), attributes.get("missing")):
            self.open_nodes[-1].append(Tree(EMPTY[0], [EMPTY[1]]))

    def end(self, name: str) -> None:
        if self.open_word:
            self.open_word = ""
        else:
            self.close_phrase()

    def tree(self) -> Tree:
        super().tree()
        self.root.set_label(ROOT_LABEL)
        return self.root


def read_ancora(file: BinaryIO, path: str = "", options: ReadOptions = STRICT) -> Iterator[Tree]:
    """Read trees in the XML of AnCora.

    Parameters
    ----------
    file : binary file
    path : str
        The name of the file, for errors.
    options : ReadOptions

    Yields
    ------
    nltk.Tree
        The root is labelled ``sentence``.

    Examples
    --------
    >>> import io
    >>> text = '<article><sentence><sn func="suj"><n pos="np" wd="Ana"/></sn></sentence></article>'
    >>> print(*read_ancora(io.BytesIO(text.encode())))
    (sentence (sn-suj (np Ana)))
    """
    return XmlReader("sentence", AncoraSentence, path, options).trees(file)


def recognise(first_lines: Iterable[str]) -> bool:
    """Whether a file begins as a file of AnCora does."""
    beginning = first_element(first_lines)
    return beginning.startswith("<article") and "<sentence" in beginning and " wd=" in beginning


READER = Reader(read_ancora, recognise, is_binary=True)
