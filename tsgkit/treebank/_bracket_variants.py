"""Brackets as treebanks have them: lemmas, comments, metadata, tags without words, several words in a leaf.

First stage of the flow: a part of the reader of brackets. Each deviation from Penn brackets is an option with a name,
and what no option allows is an error, as in Penn brackets. Presets choose the options of known treebanks.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from nltk.tree import Tree

from tsgkit.errors import TreebankError, UsageError
from tsgkit.treebank._brackets import SPACE, TAG_NEEDED, TWO_ROOTS, VARIANT_OPTIONS, BracketReader, unescape_word
from tsgkit.treebank._patterns import Pattern
from tsgkit.treebank._trees import VIRTUAL_ROOT, Child

CHOICES = {
    "lemma": ("none", "column", "dash"),
    "several": ("error", "split", "join", "last"),
    "bare": ("error", "tag", "word"),
    "escapes": ("none", "backslash"),
    "roots": ("one", "several"),
}
EMPTY_TAG = "-NONE-"
JOINED = "_"
SYMBOLS = {"none": r"[^ \t\r\n\f\v()]", "backslash": r"(?:\\.|[^ \t\r\n\f\v()\\]|\\(?=\s|\Z))"}
# Most brackets have a label and one or two symbols: they are one token (1, 2, 3).
TOKENS = {
    name: re.compile(
        rf"\(({symbol}+){SPACE}+({symbol}+)(?:{SPACE}+({symbol}+))?{SPACE}*\)|\({SPACE}*({symbol}*)|(\))|({symbol}+)",
        re.DOTALL,
    )
    for name, symbol in SYMBOLS.items()
}
LEAF, OPEN, CLOSE = 3, 4, 5
MOST_REMEMBERED = 1 << 16
# The first tree of so many words shows whether there are lemmas behind dashes.
WORDS_THAT_SHOW_LEMMAS = 4
NO_LEMMAS = (
    "no lemmas: most words of this tree are no word-lemma, and the lemma would be cut off;"
    " --format=brackets:lemma=none,empty= reads a file that was prepared, --treebank=historical a corpus without lemmas"
)


@dataclass(frozen=True)
class Variant:
    """The options of a kind of brackets; the strings are those of `VARIANT_OPTIONS`."""

    lemma: str
    several: str
    bare: str
    comments: str
    skip: frozenset[str]
    empty: tuple[Pattern, ...]
    empty_beside: tuple[Pattern, ...]
    escapes: str
    roots: str
    layer: str

    @classmethod
    def of(cls, named: Mapping[str, str]) -> "Variant":
        """The variant that options select; a `UsageError` if one has a value that it cannot have."""
        values = {**VARIANT_OPTIONS, **named}
        for name, choices in CHOICES.items():
            if values[name] not in choices:
                raise UsageError(f"format brackets: {name}={values[name]}: must be one of {', '.join(choices)}")
        return cls(
            values["lemma"],
            values["several"],
            values["bare"],
            values["comments"],
            frozenset(values["skip"].split()),
            tuple(map(Pattern.parse, values["empty"].split())),
            tuple(map(Pattern.parse, values["empty-beside"].split())),
            values["escapes"],
            values["roots"],
            values["layer"],
        )

    def is_empty(self, symbol: str, *, is_beside: bool) -> bool:
        """Whether a symbol is an empty word; some are only beside brackets."""
        patterns = self.empty + self.empty_beside if is_beside else self.empty
        return any(pattern.match(symbol) is not None for pattern in patterns)

    def words(self, symbols: list[str]) -> list[str]:
        """The words of a leaf: without lemmas, joined if several are to be one. More than one may be left."""
        if self.layer:
            symbols = [value_of(symbol, self.layer) for symbol in symbols]
        if self.lemma == "column":
            symbols = symbols[:-1] if len(symbols) == 2 else symbols
        elif self.lemma == "dash":
            symbols = [without_lemma(symbol) for symbol in symbols]
        if self.several == "last":
            return symbols[-1:]
        return [JOINED.join(symbols)] if self.several == "join" else symbols


def value_of(symbol: str, layer: str) -> str:
    """The value of a layer in ``{name=value}{name=value}``, or '' if there is none.

    Examples
    --------
    >>> value_of("{turkish=kedi}{english=cat}", "english")
    'cat'
    """
    found = re.search(rf"\{{{re.escape(layer)}=([^{{}}]*)\}}", symbol)
    return found[1] if found else ""


def without_lemma(symbol: str) -> str:
    """The word of ``word-lemma``: what is before the middle dash, or before the last one of an even number.

    Examples
    --------
    >>> [without_lemma(symbol) for symbol in ("lands-land", "---", "ex-king-ex-king", "x")]
    ['lands', '-', 'ex-king', 'x']
    """
    parts = symbol.split("-")
    n_word = len(parts) // 2 if len(parts) % 2 == 0 else len(parts) - 1
    return "-".join(parts[:n_word]) or symbol


@dataclass(slots=True)
class OpenNode:
    """A bracket that is not closed yet."""

    label: str
    is_skipped: bool
    children: list[Child] = field(default_factory=list)
    has_brackets: bool = False

    def __len__(self) -> int:
        return len(self.children)


class VariantReader(BracketReader):
    """Trees from lines in a variant of Penn brackets; see `Variant`."""

    def __init__(self, variant: Variant, path: str = "", *, unescape: bool = False) -> None:
        super().__init__(path, unescape=unescape)
        self.variant = variant
        self.token = TOKENS[variant.escapes]
        self.open_nodes: list[OpenNode] = []
        self.has_comments = self.has_brackets = False
        self.emptiness: dict[tuple[str, bool], bool] = {}
        # Words of the open tree, and those with a dash, as long as it is not known whether there are lemmas.
        self.shows_lemmas = variant.lemma != "dash"
        self.n_words = self.n_dashes = 0

    def feed(self, line: str) -> list[Tree]:
        """The trees that end on `line`, the next line of the file."""
        self.line_number += 1
        finished: list[Tree] = []
        if self.open_nodes and self.is_comment(line):
            raise self.unbalanced()
        if not self.open_nodes and self.is_between_trees(line):
            return finished
        for token in self.token.finditer(line):
            self.has_brackets = True
            kind = token.lastindex or 0
            if kind <= LEAF:
                finished += self.leaf(token, finished)
            elif kind == OPEN:
                self.open(token, finished)
            elif kind == CLOSE:
                finished += self.closed(token)
            elif not self.open_nodes:
                raise self.outside(token[0], token)
            else:
                self.open_nodes[-1].children.append(self.plain(token[0]))
        return finished

    def is_comment(self, line: str) -> bool:
        return bool(self.variant.comments) and line.startswith(self.variant.comments)

    def is_between_trees(self, line: str) -> bool:
        if self.is_comment(line):
            self.has_comments = True
            return True
        return super().is_between_trees(line)

    def unfinished(self) -> TreebankError | None:
        if self.has_comments and not self.has_brackets:
            problem = f"no trees: all lines begin with {self.variant.comments!r}; is the option comments right?"
            return TreebankError(problem, self.path, self.line_number)
        return super().unfinished()

    def plain(self, symbol: str) -> str:
        return re.sub(r"\\(.)", r"\1", symbol, flags=re.DOTALL) if self.variant.escapes == "backslash" else symbol

    def open(self, token: re.Match[str], finished: list[Tree]) -> None:
        node = self.opened(token, token[OPEN], finished)
        if not node.label and self.open_nodes and not node.is_skipped:
            raise self.error("missing label: a label must follow '('", token)
        self.open_nodes.append(node)

    def opened(self, token: re.Match[str], label: str, finished: list[Tree]) -> OpenNode:
        """The node of a bracket that begins."""
        label = self.plain(label)
        is_skipped = label in self.variant.skip
        if not self.open_nodes:
            self.begin(token, finished)
            self.n_words = self.n_dashes = 0
        else:
            parent = self.open_nodes[-1]
            parent.has_brackets = True
            is_skipped |= parent.is_skipped
        return OpenNode(self.labels.setdefault(label, label), is_skipped)

    def leaf(self, token: re.Match[str], finished: list[Tree]) -> list[Tree]:
        """Open and close a bracket with a label and one or two symbols."""
        label, *symbols = token.group(1, 2) if token[LEAF] is None else token.group(1, 2, LEAF)
        node = self.opened(token, label, finished)
        node.children += map(self.plain, symbols)
        return self.contributed(node, token)

    def closed(self, token: re.Match[str]) -> list[Tree]:
        """Close a bracket; the tree that ends with it, if it is the outermost one."""
        if not self.open_nodes:
            raise self.error("unbalanced brackets: this ')' closes nothing", token)
        return self.contributed(self.open_nodes.pop(), token)

    def contributed(self, node: OpenNode, token: re.Match[str]) -> list[Tree]:
        """Give what is in a bracket to the one around it; the tree, if there is none."""
        parts = [] if node.is_skipped else self.parts_of(node, token)
        if self.open_nodes:
            self.open_nodes[-1].children += parts
            return []
        if not self.shows_lemmas and self.n_words >= WORDS_THAT_SHOW_LEMMAS:
            if 2 * self.n_dashes < self.n_words:
                raise self.error_at_end(NO_LEMMAS, token)
            self.shows_lemmas = True
        trees = [part for part in parts if isinstance(part, Tree)]
        if len(trees) != len(parts) or len(trees) > 1:
            raise self.error_at_end(f"stray token: {node.label!r} is a word without a tag; {TAG_NEEDED}", token)
        return trees

    def error_at_end(self, problem: str, token: re.Match[str]) -> TreebankError:
        """The error of a bracket, where it is closed."""
        return self.error(problem, token, token.end())

    def parts_of(self, node: OpenNode, token: re.Match[str]) -> list[Child]:
        """What a bracket contributes to the one around it: nodes, or words that are to be tagged there."""
        label, variant = node.label, self.variant
        symbols = [child for child in node.children if child.__class__ is str]
        if label and not symbols and node.children:
            return [Tree(label, node.children)]
        if symbols and label != EMPTY_TAG:
            node.children = self.with_empty_words(node.children)
            symbols = [child for child in node.children if child.__class__ is str]
        children = node.children
        if not children and node.has_brackets:  # all of them were skipped
            return []
        if not label:
            return self.outermost(node, token)
        if variant.bare == "word" and not node.has_brackets and len(symbols) == len(children):
            return [label, *symbols]
        if not children:
            if variant.bare == "tag":
                return [Tree(label, [label])]
            raise self.error_at_end(f"empty node: ({label} ) has neither words nor children", token)
        if not symbols:
            return [Tree(label, children)]
        if len(symbols) < len(children):
            raise self.error_at_end(f"stray token: {symbols[0]!r} is beside a bracket; {TAG_NEEDED}", token)
        words = variant.words(symbols)
        if not self.shows_lemmas:
            self.n_words += len(symbols)
            self.n_dashes += sum("-" in symbol for symbol in symbols)
        if not all(words):
            raise self.error_at_end(f"empty word: {label!r} has no {variant.layer!r} in {symbols[0][:40]!r}", token)
        if len(words) > 1 and variant.several != "split":
            raise self.error_at_end(f"stray token: {words[1]!r} is not alone under {label!r}; {TAG_NEEDED}", token)
        return [Tree(label, [unescape_word(word) if self.unescape else word]) for word in words]

    def with_empty_words(self, children: list[Child]) -> list[Child]:
        is_beside = any(child.__class__ is not str for child in children)
        return [
            Tree(EMPTY_TAG, [child]) if isinstance(child, str) and self.is_empty(child, is_beside=is_beside) else child
            for child in children
        ]

    def is_empty(self, symbol: str, *, is_beside: bool) -> bool:
        """`Variant.is_empty`, remembered."""
        key = (symbol, is_beside)
        found = self.emptiness.get(key)
        if found is None:
            if len(self.emptiness) >= MOST_REMEMBERED:
                self.emptiness.clear()
            found = self.emptiness[key] = self.variant.is_empty(symbol, is_beside=is_beside)
        return found

    def outermost(self, node: OpenNode, token: re.Match[str]) -> list[Child]:
        """The empty outer bracket, around one tree or several."""
        if not node.children:
            raise self.error_at_end("empty node: ( ) has neither words nor children", token)
        if any(isinstance(child, str) for child in node.children):
            raise self.error_at_end(f"stray token: {node.children[0]!r} has no tag; {TAG_NEEDED}", token)
        if len(node.children) == 1:
            return [Tree("", node.children)]
        if self.variant.roots == "one":
            raise self.error_at_end(TWO_ROOTS, token)
        return [Tree(VIRTUAL_ROOT, node.children)]
