"""Binarisation: nodes with more than two children become binary nodes with intermediate symbols, and back.

Preprocessing, before the flat corpus, and undone in the output of a parser. Undoing needs the labels alone: an
intermediate symbol begins with ``@``, an annotation with ``^``, and these characters are escaped in the labels of the
treebank, so that undoing is exact for every tree and every label.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, cast

from nltk.tree import Tree

from tsgkit._guesses import one_of
from tsgkit._plain import settings_of
from tsgkit._settings import Checked
from tsgkit.errors import UsageError
from tsgkit.treebank._heads import BUILT_IN, HeadRules, read_rules
from tsgkit.treebank._trees import CACHED_LABELS, Child, is_preterminal, rebuild

METHODS = ("right", "left", "centre-head")
INTERMEDIATE, ANNOTATION, SIBLING = "@", "^", "|"
STRUCTURAL = re.compile(r"[\\@^|]")
ESCAPED = re.compile(r"\\(.)", re.DOTALL)
BEFORE_ANNOTATION = re.compile(r"(?:[^\\^]|\\.)*\\?", re.DOTALL)
BEFORE_MARKOVISATION = re.compile(r"(?:[^\\^|]|\\.)*\\?", re.DOTALL)
# A symbol names at most so many siblings and has a digest of the others: without that, the symbols of a node would grow
# with the square of the number of its children.
MAX_LISTED = 50


@dataclass(frozen=True)
class Binarization(Checked):
    """How trees are binarised.

    Parameters
    ----------
    method : {"right", "left", "centre-head"}
        From which side children are split off. ``right`` splits off the leftmost child first, so that the
        intermediate nodes branch to the right; ``left`` is its mirror image; ``centre-head`` splits off the left
        siblings of the head child, then its right siblings, so that the head is the deepest.
    horizontal : int, optional
        Horizontal markovisation: how many children an intermediate symbol names, in the order in which they are
        split off; all of them if not given, at most 50 otherwise.
    vertical : int
        Vertical markovisation: 1 for plain labels; 2 adds the label of the parent to those of phrases, 3 also that of
        the grandparent, and so on, at most 50.
    heads : str
        For ``centre-head``: ``penn``, ``leftmost``, ``rightmost``, or the path of a file with head rules, of which
        only the name of the file is kept.
    annotate_tags : bool
        Whether preterminals get the vertical annotation too.
    rules : str, optional
        The text of the head rules; read from the file `heads` if not given.

    Examples
    --------
    >>> tree = Tree.fromstring("(S (NP (DT the) (JJ old) (NN man)) (VP (VBD sat)))")
    >>> print(Binarization().apply(tree))
    (S (NP (DT the) (@NP|JJ|NN (JJ old) (NN man))) (VP (VBD sat)))
    >>> settings = Binarization("left", horizontal=0, vertical=2)
    >>> print(settings.apply(tree))
    (S (NP^S (@NP^S (DT the) (JJ old)) (NN man)) (VP^S (VBD sat)))
    >>> settings.undo(settings.apply(tree)) == tree
    True
    """

    method: str = "right"
    horizontal: int | None = None
    vertical: int = 1
    heads: str = "penn"
    annotate_tags: bool = False
    rules: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method not in METHODS:
            raise UsageError(f"binarisation {self.method!r}: must be {one_of(self.method, METHODS)}")
        if self.horizontal is not None and not 0 <= self.horizontal <= MAX_LISTED:
            raise UsageError(f"horizontal markovisation {self.horizontal}: 0 to {MAX_LISTED} siblings, or all")
        if not 1 <= self.vertical <= MAX_LISTED:
            raise UsageError(f"vertical markovisation {self.vertical}: 1 to {MAX_LISTED} levels")
        if self.method == "centre-head":
            if self.rules is None and self.heads not in BUILT_IN:
                # Settings are equal if the text of the rules is, wherever the file was.
                object.__setattr__(self, "rules", read_rules(self.heads))
                object.__setattr__(self, "heads", Path(self.heads).name)
            self.head_rules  # noqa: B018 - errors in the rules are reported now, not at the first tree

    @cached_property
    def head_rules(self) -> HeadRules:
        """The table that `heads` and `rules` name."""
        return HeadRules.load(self.heads) if self.rules is None else HeadRules.parse(self.rules, self.heads)

    def apply(self, tree: Tree) -> Tree:
        """A new tree in which no node has more than two children.

        Parameters
        ----------
        tree : nltk.Tree
            Clean; it is left as it is.
        """
        annotations = self._annotations(tree)

        def binarized(node: Tree, children: list[Child]) -> Tree:
            label = escape(node.label()) + (annotations.pop() if annotations else "")
            if len(children) <= 2:
                return Tree(label, children)
            order, head = self._order(node)
            return _binary_nodes(label, children, order, head, self._histories(node, order, head))

        return cast(Tree, rebuild(tree, binarized))

    def undo(self, tree: Tree) -> Tree:
        """The treebank tree of a binarised tree, with whatever settings it was binarised.

        Parameters
        ----------
        tree : nltk.Tree
            It is left as it is.

        Raises
        ------
        ValueError
            If an intermediate symbol is at the root, or is the tag of a word.
        """
        if undo_label(tree.label()) is None:
            raise ValueError(f"intermediate symbol {tree.label()!r} at the root: there is no node to splice it into")
        return cast(Tree, rebuild(tree, _restored))

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON values, with the text of the head rules if they came from a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Binarization":
        """The inverse of `to_dict`; a ValueError if these are not settings.

        Parameters
        ----------
        values : dict
            Plain values.

        They contain the text of the head rules: no file is read, so that untrusted settings cannot name one.
        """
        if values.get("rules") is None and values.get("heads") not in BUILT_IN:
            raise ValueError("head rules without their text")
        return settings_of(cls, values)

    def _annotations(self, tree: Tree) -> list[str]:
        """The annotation of every node, in the reverse of the order in which `rebuild` visits the nodes."""
        annotations: list[str] = []
        if self.vertical == 1:
            return annotations
        # Parents first and children from right to left is the exact reverse of `rebuild`'s order.
        stack: list[tuple[Tree, tuple[str, ...]]] = [(tree, ())]
        while stack:
            node, ancestors = stack.pop()
            plain = is_preterminal(node) and not self.annotate_tags
            annotations.append("" if plain else "".join(ANNOTATION + label for label in ancestors))
            below = (escape(node.label()), *ancestors)[: self.vertical - 1]
            stack.extend((child, below) for child in node if isinstance(child, Tree))
        return annotations

    def _order(self, node: Tree) -> tuple[list[int], int]:
        """The children in the order in which they are split off, and the head, which is the last of them."""
        last = len(node) - 1
        if self.method == "right":
            head = last
        elif self.method == "left":
            head = 0
        else:
            head = self.head_rules.head(node.label(), [child.label() for child in node])
        return [*range(head), *range(last, head, -1), head], head

    def _histories(self, node: Tree, order: Sequence[int], head: int) -> list[str]:
        """For each index in `order`, the siblings that the symbol over the children from there on names."""
        if self.horizontal == 0:
            return [""] * len(order)
        items = [SIBLING + self._side(child, head) + escape(node[child].label()) for child in order]
        if self.horizontal is not None:
            return ["".join(items[start : start + self.horizontal]) for start in range(len(items))]
        digests = _digests(items)
        return [
            "".join(items[start : start + MAX_LISTED]) + digests.get(start + MAX_LISTED, "")
            for start in range(len(items))
        ]

    def _side(self, child: int, head: int) -> str:
        """The mark of a child that a symbol names; the one-sided methods need none."""
        if self.method != "centre-head":
            return ""
        return "=" if child == head else "<" if child < head else ">"


@lru_cache(CACHED_LABELS)
def escape(label: str) -> str:
    r"""A treebank label as a part of symbols: a backslash before ``\``, ``@``, ``^`` and ``|``.

    Examples
    --------
    >>> escape("NP-SBJ"), escape("ADVP|PRT")
    ('NP-SBJ', 'ADVP\\|PRT')
    """
    return STRUCTURAL.sub(r"\\\g<0>", label)


@lru_cache(CACHED_LABELS)
def undo_label(label: str) -> str | None:
    r"""The treebank label of a symbol; None for an intermediate symbol.

    Parameters
    ----------
    label : str
        Of a binarised tree or of a grammar.

    Examples
    --------
    >>> undo_label("NP^S"), undo_label("ADVP\\|PRT"), undo_label("@NP^S|JJ")
    ('NP', 'ADVP|PRT', None)
    """
    if label.startswith(INTERMEDIATE):
        return None
    plain = BEFORE_ANNOTATION.match(label)
    return ESCAPED.sub(r"\1", plain.group()) if plain else ""


def coarse_label(label: str) -> str:
    r"""A symbol without markovisation: without the ancestors and siblings that it names.

    Examples
    --------
    >>> coarse_label("NP^S"), coarse_label("@NP^S|JJ"), coarse_label("ADVP\\|PRT")
    ('NP', '@NP', 'ADVP\\|PRT')
    """
    plain = BEFORE_MARKOVISATION.match(label)
    return plain.group() if plain else ""


class _Spliced(Tree):
    """An intermediate node that is to be spliced out; its class tells it from a treebank node with the same label."""


def _restored(node: Tree, children: list[Child]) -> Tree:
    """The treebank node of a node, with the children of the intermediate nodes below it."""
    label = undo_label(node.label())
    if label is None:
        if is_preterminal(node):
            raise ValueError(f"intermediate symbol {node.label()!r} is the tag of the word {node[0]!r}")
        # Spliced at the treebank node above: splicing at every intermediate node would take quadratic time.
        return _Spliced(node.label(), children)
    restored = []
    stack = children[::-1]
    while stack:
        child = stack.pop()
        if isinstance(child, _Spliced):
            stack.extend(reversed(child))
        else:
            restored.append(child)
    return Tree(label, restored)


def _binary_nodes(
    label: str, children: Sequence[Child], order: Sequence[int], head: int, histories: Sequence[str]
) -> Tree:
    """The binary nodes of one wide node, built from the deepest to the highest."""
    inner = children[order[-1]]
    for index in range(len(order) - 2, -1, -1):
        child = children[order[index]]
        pair = [child, inner] if order[index] < head else [inner, child]
        inner = Tree(INTERMEDIATE + label + histories[index] if index else label, pair)
    return cast(Tree, inner)


def _digests(items: Sequence[str]) -> dict[int, str]:
    """For every index where the items that a symbol names end, a digest of the items from there to the end."""
    digest = b""
    digests = {}
    for index in range(len(items) - 1, MAX_LISTED, -1):
        digest = hashlib.blake2b(items[index].encode("utf-8", "surrogatepass") + digest, digest_size=8).digest()
        # An unescaped ^ right after the bar cannot come from a label.
        digests[index] = SIBLING + ANNOTATION + digest.hex()
    return digests
