"""French Treebank XML: phrases are elements with the name of their category, words are ``<w>``.

First stage of the flow: the reader. The function ``fct`` of a phrase becomes its function tag. A compound is a
``<w>`` with words inside: a phrase ``MWN``, ``MWP``, ..., or one word. A ``<w>`` without text, as the article in
*du*, is an empty word with the tag ``-NONE-``.
"""

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from nltk.tree import Tree

from tsgkit.errors import UsageError
from tsgkit.treebank._formats import STRICT, Reader, ReadOptions
from tsgkit.treebank._graphs import with_function
from tsgkit.treebank._trees import SPACE
from tsgkit.treebank._xml import Attributes, NestedSentence, XmlReader, first_element, symbol

EMPTY = ("-NONE-", "*")
COMPOUND = "MW"
JOINED = "_"
ROOT_LABEL = "SENT"
DEFAULTS = {"compounds": "phrases", "tag": "cat"}
CHOICES = {"compounds": ("phrases", "joined"), "tag": ("cat", "subcat")}


class FtbSentence(NestedSentence):
    """The elements of one ``<SENT>``."""

    def __init__(self, reader: XmlReader, attributes: Attributes) -> None:
        super().__init__(reader, attributes)
        named = {**DEFAULTS, **reader.options.named}
        self.joins, self.with_subcategory = named["compounds"] == "joined", named["tag"] == "subcat"
        self.compound: Tree | None = None  # the outer <w>, with the words inside it
        self.tag = self.compound_tag = ""

    def start(self, name: str, attributes: Attributes) -> None:
        if name != "w":
            if self.word is not None:
                raise self.reader.error(f"stray element: <{name}> inside <w>")
            self.open_phrase(with_function(name, attributes.get("fct", "")))
            return
        tag = self.tag_of(attributes)
        if self.word is None:
            self.word, self.tag = [], tag
            return
        if self.compound is not None and self.tag:
            raise self.reader.error("stray element: a <w> inside a <w> inside a <w>")
        self.require_no_text()
        if self.compound is None:
            self.compound, self.compound_tag = Tree("", []), self.tag
        self.word, self.tag = [], tag or self.compound_tag

    def tag_of(self, attributes: Attributes) -> str:
        tag = attributes.get("cat") or attributes.get("catint") or ""
        if self.with_subcategory and tag and attributes.get("subcat"):
            tag = f"{tag}-{attributes['subcat']}"
        if not tag and self.word is None:
            raise self.reader.error("missing attribute: <w> has no 'cat'")
        return symbol(tag, "tag", self.reader) if tag else ""

    def require_no_text(self) -> None:
        """Between the words of a compound there is whitespace only."""
        text = "".join(self.word or []).strip()
        if text:
            raise self.reader.error(f"stray text: {text[:40]!r} beside the words of a compound")

    def end(self, name: str) -> None:
        if name != "w":
            self.close_phrase()
        elif self.compound is not None and not self.tag:
            self.end_compound()
        else:
            parent = self.open_nodes[-1] if self.compound is None else self.compound
            parts = [part for part in SPACE.split("".join(self.word or [])) if part]
            parent.append(Tree(self.tag, [JOINED.join(parts)]) if parts else Tree(EMPTY[0], [EMPTY[1]]))
            self.tag = ""
            self.word = None if self.compound is None else []

    def tree(self) -> Tree:
        super().tree()
        self.root.set_label(ROOT_LABEL)
        return self.root

    def end_compound(self) -> None:
        self.require_no_text()
        compound, self.compound, self.word = self.compound, None, None
        assert compound is not None
        label = self.compound_tag
        words = [node[0] for node in compound if node.label() != EMPTY[0]]
        if not self.joins:
            self.open_nodes[-1].append(Tree(f"{COMPOUND}{label}", list(compound)))
        elif words:
            self.open_nodes[-1].append(Tree(label, [JOINED.join(words)]))
        else:
            self.open_nodes[-1].append(Tree(EMPTY[0], [EMPTY[1]]))


def read_ftb(file: BinaryIO, path: str = "", options: ReadOptions = STRICT) -> Iterator[Tree]:
    """Read trees in the XML of the French Treebank.

    Parameters
    ----------
    file : binary file
    path : str
        The name of the file, for errors.
    options : ReadOptions
        Named options: ``compounds`` (``phrases`` or ``joined``), and ``tag``: the category of a word (``cat``), or with
        its subcategory (``subcat``).

    Yields
    ------
    nltk.Tree

    Examples
    --------
    >>> import io
    >>> text = '<text><SENT nb="1"><NP fct="SUJ"><w cat="N">Paris</w></NP></SENT></text>'
    >>> print(*read_ftb(io.BytesIO(text.encode())))
    (SENT (NP-SUJ (N Paris)))
    """
    for name, choices in CHOICES.items():
        if options.named.get(name, choices[0]) not in choices:
            raise UsageError(f"format ftb: {name}={options.named[name]}: must be one of {', '.join(choices)}")
    return XmlReader("SENT", FtbSentence, path, options).trees(file)


def recognise(first_lines: Iterable[str]) -> bool:
    """Whether a file begins as a file of the French Treebank does."""
    return "<SENT" in first_element(first_lines)


READER = Reader(read_ftb, recognise, is_binary=True, named_options=DEFAULTS)
