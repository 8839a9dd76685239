"""TIGER-XML: words and phrases as lists of elements, with the edges between them.

First stage of the flow: the reader and the writer. The edge label of a phrase becomes its function tag; edge labels of
words, lemmas, morphology and secondary edges are dropped. Nodes that no edge leads to are children of the sentence. A
discontinuous graph is an error, or is made continuous.
"""

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank._continuous import ROOT
from tsgkit.treebank._formats import STRICT, Reader, ReadOptions
from tsgkit.treebank._graphs import (
    HEAD_EDGES,
    NO_EDGE,
    SENTENCE_LABELS,
    SyntaxGraph,
    split_function,
    tree_of,
    with_function,
)
from tsgkit.treebank._trees import SPACE, VIRTUAL_ROOT, is_preterminal, is_symbol, preorder, with_one_root
from tsgkit.treebank._xml import Attributes, XmlReader, escape, first_element

FIRST_PHRASE = 500


class TigerSentence:
    """The elements of one ``<s>``: several for every word, so they are checked together at the end."""

    has_text = False

    def __init__(self, reader: XmlReader, attributes: Attributes) -> None:
        self.reader = reader
        self.graph = SyntaxGraph(attributes.get("id", f"number {reader.n_sentences}"), reader.line)
        self.numbers: dict[str, int] = {}  # of words and phrases, by their identifiers
        self.edges: list[tuple[int, str, str]] = []
        self.phrase = ROOT
        self.root: str | None = None
        self.has_graph = False

    def start(self, name: str, attributes: Attributes) -> None:
        try:
            if name == "edge":
                self.edges.append((self.phrase, attributes["idref"], attributes.get("label", NO_EDGE)))
            elif name == "t":
                words = self.graph.words
                words.append((attributes["word"], attributes["pos"]))
                self.numbers[attributes["id"]] = -len(words)
            elif name == "nt":
                labels = self.graph.labels
                self.phrase = number = len(labels) + 1
                labels[number] = attributes["cat"]
                identifier = self.graph.phrase_names[number] = attributes["id"]
                self.numbers[identifier] = number
            elif name == "graph":
                self.root, self.has_graph = attributes.get("root"), True
        except KeyError as missing:
            raise self.reader.error(f"missing attribute: <{name}> has no {missing}") from None

    def end(self, name: str) -> None:
        if name == "nt":
            self.phrase = ROOT

    def text(self, data: str) -> None:
        """Text between elements has no meaning in this format."""

    def check(self) -> None:
        """Raise an error for symbols that are empty or have whitespace, and for identifiers that occur twice."""
        graph = self.graph
        symbols = [*graph.labels.values(), *(symbol for pair in graph.words for symbol in pair)]
        if "" in symbols or SPACE.search("".join(symbols)):
            bad = next(symbol for symbol in symbols if not is_symbol(symbol))
            raise graph.error("empty or whitespace", f"{bad!r} can be no word, tag or label", self.reader.path)
        if len(self.numbers) != len(graph.words) + len(graph.labels):
            raise graph.error("no tree", "the identifier of a node occurs twice", self.reader.path)

    def tree(self) -> Tree:
        graph = self.graph
        if not self.has_graph:
            raise graph.error("no tree", "it has no <graph>; is this TIGER-XML?", self.reader.path)
        self.check()
        for parent, child, label in self.edges:
            node = self.numbers.get(child)
            if node is None or parent == ROOT:
                raise graph.error("no tree", f"an edge leads to {child!r}, or from outside of <nt>", self.reader.path)
            if node in graph.parents:
                raise graph.error("no tree", f"{child!r} has two parents", self.reader.path)
            graph.parents[node] = parent
            if label != NO_EDGE:
                if label in HEAD_EDGES:
                    graph.heads.add(node)
                if node > ROOT:
                    graph.labels[node] = with_function(graph.labels[node], label)
        self.attach_roots()
        return tree_of(graph, self.reader.path, self.reader.options)

    def is_virtual(self, root: str) -> bool:
        """Whether a root stands for the sentence itself, and is none of its nodes."""
        return root.endswith(VIRTUAL_ROOT) and root not in self.numbers

    def attach_roots(self) -> None:
        """Make the nodes without a parent children of the sentence itself, as in export files.

        Many files have punctuation outside of all phrases. In others a phrase `VROOT` has the whole sentence.
        """
        graph = self.graph
        tops = {name: number for name, number in self.numbers.items() if number not in graph.parents}
        if self.root is not None and self.root not in tops and not self.is_virtual(self.root):
            problem = "has a parent" if self.root in self.numbers else "does not exist"
            raise graph.error("no tree", f"the root {self.root!r} {problem}", self.reader.path)
        if len(tops) > 1:
            whole = next((name for name, number in tops.items() if graph.labels.get(number) in SENTENCE_LABELS), None)
            if whole is not None:
                outside = ", ".join(repr(name) for name in [name for name in tops if name != whole][:5])
                raise graph.error("no tree", f"no edge leads to {outside}, but {whole!r} is the root", self.reader.path)
        graph.parents.update(dict.fromkeys(tops.values(), ROOT))


def read_tigerxml(file: BinaryIO, path: str = "", options: ReadOptions = STRICT) -> Iterator[Tree]:
    """Read trees in TIGER-XML.

    Parameters
    ----------
    file : binary file
    path : str
        The name of the file, for errors.
    options : ReadOptions
        A bad sentence can be skipped. XML that is not well-formed cannot: the rest of the file is unknown.

    Yields
    ------
    nltk.Tree

    Examples
    --------
    >>> import io
    >>> tree = Tree.fromstring("(S (NP-SB (NN Katzen)) (VVFIN schlafen))")
    >>> print(*read_tigerxml(io.BytesIO("".join(write_tigerxml([tree])).encode())))
    (S (NP-SB (NN Katzen)) (VVFIN schlafen))
    """
    return XmlReader("s", TigerSentence, path, options).trees(file)


def recognise(first_lines: Iterable[str]) -> bool:
    """Whether a file begins as TIGER-XML does; one sentence can be a file."""
    beginning = first_element(first_lines)
    return beginning.startswith(("<corpus", "<subcorpus")) or (beginning.startswith("<s ") and "<graph" in beginning)


READER = Reader(read_tigerxml, recognise, is_binary=True)


def write_tigerxml(trees: Iterable[Tree]) -> Iterator[str]:
    """A file in TIGER-XML: its sentences are ``s1``, ``s2``, ..."""
    yield '<?xml version="1.0" encoding="utf-8"?>\n<corpus id="tsgkit">\n<body>\n'
    for number, tree in enumerate(trees, start=1):
        yield format_tigerxml(tree, f"s{number}")
    yield "</body>\n</corpus>\n"


def format_tigerxml(tree: Tree, name: str) -> str:
    """The element ``<s>`` of a tree."""
    if not tree.label() and not is_preterminal(tree):  # the empty outer bracket of the Penn Treebank
        tree = tree[0] if len(tree) == 1 else with_one_root(tree)
    terminals: list[str] = []
    nonterminals: list[str] = []
    identifiers: dict[int, str] = {}
    nodes = list(preorder(tree))
    for node in nodes:
        label = attribute(node.label(), "label")
        if is_preterminal(node):
            identifiers[id(node)] = f"{name}_{len(terminals) + 1}"
            word = attribute(node[0], "word")
            terminals.append(f'<t id="{identifiers[id(node)]}" word="{word}" pos="{label}"/>\n')
        else:
            identifiers[id(node)] = f"{name}_{FIRST_PHRASE + len(nonterminals)}"
            nonterminals.append("")
    phrases = (node for node in nodes if not is_preterminal(node))
    for index, node in enumerate(phrases):
        # The root has no edge, so its whole label is its category.
        category = node.label() if node is tree else split_function(node.label())[0]
        edges = "".join(f'<edge label="{edge_of(child)}" idref="{identifiers[id(child)]}"/>\n' for child in node)
        nonterminals[index] = f'<nt id="{identifiers[id(node)]}" cat="{escape(category)}">\n{edges}</nt>\n'
    return (
        f'<s id="{name}">\n<graph root="{identifiers[id(tree)]}">\n<terminals>\n{"".join(terminals)}</terminals>\n'
        f"<nonterminals>\n{''.join(nonterminals)}</nonterminals>\n</graph>\n</s>\n"
    )


def edge_of(node: Tree) -> str:
    return NO_EDGE if is_preterminal(node) else escape(split_function(node.label())[1])


def attribute(value: object, what: str) -> str:
    if not isinstance(value, str) or not is_symbol(value):
        raise TreebankError(f"{what} {value!r} cannot be written in TIGER-XML: it is empty or contains whitespace")
    return escape(value)
