"""A component for spaCy: ``nlp.add_pipe("tsgkit", config={"model": "m.model"})`` parses the sentences of documents.

Spans and tokens get the attributes that users of benepar know: ``sent._.parse_string``, ``span._.labels``,
``span._.constituents``, ``span._.children`` and ``span._.parent``. A document keeps the trees as strings in
``doc._.trees``, so that it can be sent to other processes and saved; everything else is computed from them.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from nltk.tree import Tree
from spacy.language import Language
from spacy.tokens import Doc, Span, Token
from spacy.util import minibatch

from tsgkit.errors import UsageError
from tsgkit.models._model import Model
from tsgkit.parsing._parser import Parser
from tsgkit.parsing._settings import ParserSettings
from tsgkit.treebank._brackets import escape_symbol
from tsgkit.treebank._sources import read_trees
from tsgkit.treebank._trees import SPACE, is_preterminal

MODEL_FILE = "model"
BATCH_SIZE = 100


class NonConstituentError(ValueError):
    """A span was asked for its labels, but is no constituent of the parse."""


class Constituent(NamedTuple):
    """A phrase or a tagged word: its place among the words, its labels from the top, and its brackets."""

    start: int
    end: int
    labels: tuple[str, ...]
    text: str


# ---- trees as strings --------------------------------------------------------------------------------------------


def bracketed(tree: Tree) -> str:
    """A tree on one line, without the root that the treebank adds; brackets among the words are escaped.

    Examples
    --------
    >>> bracketed(Tree.fromstring("(TOP (S (NP (PRP I)) (VP (VBD ran))))"))
    '(S (NP (PRP I)) (VP (VBD ran)))'
    """
    shown = tree[0] if len(tree) == 1 and isinstance(tree[0], Tree) else tree
    parts: list[str] = []
    stack: list[Tree | str] = [shown]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            parts.append(node)
        elif is_preterminal(node):
            parts.append(f" ({node.label()} {escape_symbol(node[0])})")
        else:
            parts.append(f" ({node.label()}")
            stack.append(")")
            stack.extend(reversed(node))
    return "".join(parts).strip()


@lru_cache(1 << 12)
def constituents_of(text: str) -> tuple[Constituent, ...]:
    """The constituents of a tree in preorder; a chain of unary phrases is one, with several labels.

    Examples
    --------
    >>> [(each.start, each.end, each.labels) for each in constituents_of("(S (NP (PRP I)) (VP (VBD ran)))")]
    [(0, 2, ('S',)), (0, 1, ('NP',)), (1, 2, ('VP',))]
    """
    (tree,) = read_trees(text)
    found: list[Constituent] = []
    n_words = 0
    # Each entry is a node to open, or the number of a constituent to close.
    stack: list[Tree | int] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, int):
            found[node] = found[node]._replace(end=n_words)
            continue
        labels, first = [], node
        while not is_preterminal(node):
            labels.append(node.label())
            if len(node) > 1:
                break
            node = node[0]
        found.append(Constituent(n_words, n_words + 1, tuple(labels), bracketed(Tree("", [first]))))
        if is_preterminal(node):
            n_words += 1
        else:
            stack.append(len(found) - 1)
            stack.extend(reversed(node))
    return tuple(found)


# ---- attributes --------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Where a span is: the first token of its sentence, the tokens of the words, the constituents, and its own."""

    tokens: list[int]
    constituents: tuple[Constituent, ...]
    number: int


def words_of(doc: Doc, start: int, end: int) -> list[int]:
    """The tokens that are words: all but white space."""
    return [token.i for token in doc[start:end] if not token.is_space]


def place_of(span: Span) -> Place:
    """The constituent that a span is."""
    trees = span.doc._.trees
    if trees is None:
        raise UsageError("the document is not parsed: the component 'tsgkit' is not in the pipeline")
    for start, end, text in trees:
        if start <= span.start < end and text:
            tokens = words_of(span.doc, start, end)
            wanted = [token.i for token in span if not token.is_space]
            for number, each in enumerate(constituents_of(text)):
                if tokens[each.start : each.end] == wanted:
                    return Place(tokens, constituents_of(text), number)
    raise NonConstituentError(f"{span.text!r} is not a constituent of the parse")


def span_at(span: Span, place: Place, number: int) -> Span:
    each = place.constituents[number]
    return span.doc[place.tokens[each.start] : place.tokens[each.end - 1] + 1]


def parse_string(span: Span) -> str:
    """The brackets of a constituent."""
    place = place_of(span)
    return place.constituents[place.number].text


def labels(span: Span) -> tuple[str, ...]:
    """The labels of a constituent, from the top; those of a word alone are empty."""
    place = place_of(span)
    return place.constituents[place.number].labels


def constituents(span: Span) -> Iterator[Span]:
    """A constituent and all below it, in preorder."""
    place = place_of(span)
    own = place.constituents[place.number]
    for number in range(place.number, len(place.constituents)):
        if place.constituents[number].start >= own.end:
            break
        yield span_at(span, place, number)


def children(span: Span) -> Iterator[Span]:
    """The constituents right below one."""
    place = place_of(span)
    own, number = place.constituents[place.number], place.number + 1
    if own.end - own.start == 1:
        return
    while number < len(place.constituents) and place.constituents[number].start < own.end:
        yield span_at(span, place, number)
        end = place.constituents[number].end
        while number < len(place.constituents) and place.constituents[number].start < end:
            number += 1


def parent(span: Span) -> Span | None:
    """The constituent right above one; None at the root."""
    place = place_of(span)
    own = place.constituents[place.number]
    for number in range(place.number - 1, -1, -1):
        if place.constituents[number].start <= own.start and place.constituents[number].end >= own.end:
            return span_at(span, place, number)
    return None


GETTERS: dict[str, Callable[[Span], Any]] = {
    "parse_string": parse_string,
    "labels": labels,
    "constituents": constituents,
    "children": children,
    "parent": parent,
}


def of_token(getter: Callable[[Span], Any]) -> Callable[[Token], Any]:
    return lambda token: getter(token.doc[token.i : token.i + 1])


def register_extensions() -> None:
    """Add the attributes; other components may have set attributes of the same names, which are replaced."""
    Doc.set_extension("trees", default=None, force=True)
    for name, getter in GETTERS.items():
        Span.set_extension(name, getter=getter, force=True)
        Token.set_extension(name, getter=of_token(getter), force=True)


# ---- the component -----------------------------------------------------------------------------------------------


class TsgkitComponent:
    """Parses the sentences of documents.

    Parameters
    ----------
    parser : Parser, optional
        None before `from_disk` or `from_bytes`.
    threads : int
    """

    def __init__(self, parser: Parser | None, settings: ParserSettings, threads: int = 1) -> None:
        self.parser, self.settings, self.threads = parser, settings, threads
        register_extensions()

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, docs: Iterable[Doc], *, batch_size: int = BATCH_SIZE) -> Iterator[Doc]:
        """Parse documents in batches: the sentences of one are parsed together, on several threads."""
        if self.parser is None:
            raise UsageError("the component 'tsgkit' has no model: add it with config={'model': 'FILE'}")
        for batch in minibatch(docs, batch_size):
            found = [sentences_of(doc) for doc in batch]
            pairs = (words_and_tags(doc, place) for doc, places in zip(batch, found, strict=True) for place in places)
            parses = self.parser.parse_batch(pairs, threads=self.threads)
            for doc, places in zip(batch, found, strict=True):
                trees = [(start, end, next(parses).tree) for start, end in places]
                doc._.trees = [[start, end, bracketed(tree) if len(tree) else ""] for start, end, tree in trees]
                yield doc

    # spaCy saves components in these ways.

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The content of the model file."""
        return b"" if self.parser is None else self.parser.model.to_bytes()

    def from_bytes(self, content: bytes, *, exclude: Iterable[str] = ()) -> "TsgkitComponent":
        """The inverse of `to_bytes`."""
        self.parser = Parser(Model.load(MODEL_FILE, content), self.settings) if content else None
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the model to a folder."""
        Path(path).mkdir(parents=True, exist_ok=True)
        if self.parser is not None:
            self.parser.model.save(Path(path) / MODEL_FILE)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "TsgkitComponent":
        """The inverse of `to_disk`."""
        self.parser = Parser(Path(path) / MODEL_FILE, self.settings)
        return self


def sentences_of(doc: Doc) -> list[tuple[int, int]]:
    """The first and last tokens of the sentences; a document without boundaries is one sentence."""
    if not len(doc):
        return []
    if not doc.has_annotation("SENT_START"):
        return [(0, len(doc))]
    return [(sent.start, sent.end) for sent in doc.sents]


def words_and_tags(doc: Doc, place: tuple[int, int]) -> tuple[list[str], list[str | None]]:
    """The words of a sentence, and the tags that a tagger before this component gave them.

    Spaces in a token, as of merged names, are underscores in its word: those of a treebank have none.
    """
    tokens = words_of(doc, *place)
    return ["_".join(SPACE.split(doc[i].text)) for i in tokens], [doc[i].tag_ or None for i in tokens]


@Language.factory(
    "tsgkit",
    assigns=["doc._.trees", "span._.parse_string", "span._.labels", "span._.constituents"],
    default_config={
        "model": None,
        "tags": ParserSettings.tags,
        "objective": ParserSettings.objective,
        "settings": {},
        "threads": 1,
    },
)
def make_component(
    nlp: Language,
    name: str,
    *,
    model: str | None,
    tags: str,
    objective: str,
    settings: dict[str, Any],
    threads: int,
) -> TsgkitComponent:
    """The component, as spaCy makes it from its configuration.

    Parameters
    ----------
    nlp : Language
    name : str
        Of the component in the pipeline.
    model : path, optional
        A model file; it may be missing if the pipeline is read from disk, which has the model.
    tags : {"none", "hard", "soft"}
        Whether to use the tags of a tagger before this component; those of the model's treebank are needed.
    objective : str
        Which tree is best, see `ParserSettings`.
    settings : dict
        Other fields of `ParserSettings`, by name.
    threads : int
        Threads for every batch; the result does not depend on it.
    """
    chosen = ParserSettings(tags=tags, objective=objective).with_changes(**settings)
    return TsgkitComponent(Parser(model, chosen) if model is not None else None, chosen, threads)
