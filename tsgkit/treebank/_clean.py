"""Cleaning: from trees as annotated to the trees that parsers are trained and scored on.

Preprocessing, before binarisation. Each step is a function from a tree to a new tree. `Cleaning` selects the steps and
applies them in this order: rules for labels, features, empty nodes, function tags, repeated labels, root, unary chains.
"""

import re
from collections.abc import Collection
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, cast

from nltk.tree import Tree

from tsgkit._plain import names_of, settings_of
from tsgkit._settings import Checked
from tsgkit.errors import TreebankError
from tsgkit.treebank._relabel import relabelling_of
from tsgkit.treebank._trees import CACHED_LABELS, Child, is_preterminal, rebuild

EMPTY_TAGS = frozenset({"-NONE-"})
ROOT_LABELS = frozenset({"", "TOP", "ROOT", "VROOT", "S1"})
FUNCTION = re.compile(r"(?<=.)[-=].*", re.DOTALL)
CHAIN = "+"
# Settings that are stored only if they are used.
OPTIONAL = {"feature_mark": "", "relabelling": ""}
ESCAPED_CHAIN_PART = re.compile(r"(?:[^\\+]|\\.)*", re.DOTALL)


def without_features(label: str, mark: str) -> str:
    """A label cut before a mark, unless it is the first character."""
    at = label.find(mark, 1)
    return label if at < 0 else label[:at]


def cut_labels(tree: Tree, mark: str) -> Tree:
    """Remove the features of all labels, preterminals included: cut before a mark, unless it is the first character.

    Examples
    --------
    >>> print(cut_labels(Tree.fromstring("(NP:pl (N:pl:nom cats) (: :))"), ":"))
    (NP (N cats) (: :))
    """

    def cut(node: Tree, children: list[Child]) -> Child:
        return Tree(without_features(node.label(), mark), children)

    return rebuild(tree, cut)


def simplified(
    tree: Tree, *, empty_tags: Collection[str] | None = None, functions: bool = False, repeats: bool = False
) -> Tree | None:
    """What `remove_empty`, `strip_functions` and `collapse_repeats` do, one after the other, in one pass."""

    def simplify(node: Tree, children: list[Child]) -> Child | None:
        label = node.label()
        if not children:
            return Tree(label, children) if empty_tags is None else None
        only = children[0]
        if not isinstance(only, Tree):
            return None if empty_tags is not None and label in empty_tags else Tree(label, children)
        if functions:
            label = strip_function(label)
        if repeats and len(children) == 1 and only.label() == label:
            return only
        return Tree(label, children)

    return rebuild(tree, simplify)


def remove_empty(tree: Tree, empty_tags: Collection[str] = EMPTY_TAGS) -> Tree | None:
    """Remove words with an empty tag (traces), and phrases without other words.

    Returns
    -------
    nltk.Tree or None
        ``None`` when no word is left.

    Examples
    --------
    >>> tree = Tree.fromstring("(S (NP-SBJ (-NONE- *)) (VP (VB Run) (NP (-NONE- *T*-1))))")
    >>> print(remove_empty(tree))
    (S (VP (VB Run)))
    """
    return simplified(tree, empty_tags=empty_tags)


@lru_cache(CACHED_LABELS)
def strip_function(label: str) -> str:
    """A phrase label without function tags and indices; labels like ``-LRB-`` are kept.

    Examples
    --------
    >>> [strip_function(label) for label in ("NP-SBJ-1", "NP=2", "ADVP|PRT", "-LRB-")]
    ['NP', 'NP', 'ADVP|PRT', '-LRB-']
    """
    return label if label.startswith("-") else FUNCTION.sub("", label)


def strip_functions(tree: Tree) -> Tree:
    """Remove function tags and indices from phrase labels; the labels of preterminals are kept.

    Examples
    --------
    >>> print(strip_functions(Tree.fromstring("(S (NP-SBJ-1 (PRP$ my) (N-X dog)) (VP=2 (VBD ran)))")))
    (S (NP (PRP$ my) (N-X dog)) (VP (VBD ran)))
    """
    return cast(Tree, simplified(tree, functions=True))


def collapse_repeats(tree: Tree) -> Tree:
    """Merge a node with its only child if both have the same label.

    Examples
    --------
    >>> print(collapse_repeats(Tree.fromstring("(NP (NP (NP (DT the) (NN cat))))")))
    (NP (DT the) (NN cat))
    """
    return cast(Tree, simplified(tree, repeats=True))


def collapse_unaries(tree: Tree) -> Tree:
    r"""Merge a unary chain of phrases into one node with a joined label.

    Preterminals and the root of the tree are not merged. A ``+`` or a backslash in a label is escaped with a backslash.
    `expand_unaries` is the inverse.

    Examples
    --------
    >>> print(collapse_unaries(Tree.fromstring("(TOP (S (VP (VB Run) (. .))))")))
    (TOP (S+VP (VB Run) (. .)))
    """

    def collapse(node: Tree, children: list[Child]) -> Child:
        if is_preterminal(node):
            return Tree(node.label(), children)
        label = re.sub(r"([\\+])", r"\\\1", node.label())
        only = children[0]
        if len(children) == 1 and node is not tree and isinstance(only, Tree) and not is_preterminal(only):
            return Tree(f"{label}{CHAIN}{only.label()}", list(only))
        return Tree(label, children)

    return rebuild(tree, collapse)


def expand_unaries(tree: Tree) -> Tree:
    """Undo `collapse_unaries`.

    Examples
    --------
    >>> print(expand_unaries(Tree.fromstring("(TOP (S+VP (VB Run) (. .)))")))
    (TOP (S (VP (VB Run) (. .))))
    """

    def expand(node: Tree, children: list[Child]) -> Child:
        if is_preterminal(node):
            return Tree(node.label(), children)
        for part in reversed(chain_parts(node.label())):
            children = [Tree(part, children)]
        return children[0]

    return rebuild(tree, expand)


def chain_parts(label: str) -> list[str]:
    r"""The labels of the nodes that `collapse_unaries` merged: ``S+VP`` is ``S`` over ``VP``."""
    parts, position = [], 0
    while position <= len(label):
        match = ESCAPED_CHAIN_PART.match(label, position)
        assert match is not None  # the pattern also matches the empty string
        parts.append(re.sub(r"\\(.)", r"\1", match.group(), flags=re.DOTALL))
        position = match.end() + 1
    return parts


def add_root(tree: Tree, label: str = "TOP") -> Tree:
    """Add a root labelled `label`; it replaces the outer bracket or root of the treebank, if there is one.

    Examples
    --------
    >>> print(add_root(Tree.fromstring("(ROOT (S (VB Run)))")))
    (TOP (S (VB Run)))
    """
    inner = tree
    while not is_preterminal(inner) and inner.label() in ROOT_LABELS | {label} and len(inner) == 1:
        inner = inner[0]
    if not is_preterminal(inner) and inner.label() in ROOT_LABELS | {label}:
        return Tree(label, list(inner))
    return Tree(label, [inner])


@dataclass(frozen=True)
class Cleaning(Checked):
    """Which cleaning steps are applied.

    Parameters
    ----------
    empty_tags : tuple of str
        Tags of empty words, which are removed with the phrases that have no other words; ``()`` keeps all.
    functions : bool
        Whether function tags and indices are removed.
    repeats : bool
        Whether ``X`` over ``X`` becomes one ``X``.
    unaries : bool
        Whether unary chains are merged into nodes with joined labels.
    root : str
        The label of the root that every tree gets; ``''`` adds none.
    feature_mark : str
        What separates features from a label; ``''`` keeps all features.
    relabelling : str
        The text of rules for labels, see `tsgkit.treebank._relabel`; ``''`` has none.

    Examples
    --------
    >>> tree = Tree.fromstring("(S (NP-SBJ (-NONE- *)) (VP (VB Run) (. .)))")
    >>> print(Cleaning().apply(tree))
    (TOP (S (VP (VB Run) (. .))))
    """

    empty_tags: tuple[str, ...] = tuple(EMPTY_TAGS)
    functions: bool = True
    repeats: bool = True
    unaries: bool = False
    root: str = "TOP"
    feature_mark: str = ""
    relabelling: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        is_one = isinstance(self.empty_tags, str)
        self.require("empty_tags", not is_one, f"must be a sequence of tags, as in ({self.empty_tags!r},)")

    def apply(self, tree: Tree) -> Tree | None:
        """The clean tree, or ``None`` when no word is left.

        Parameters
        ----------
        tree : nltk.Tree
            As annotated; it is left as it is.
        """
        result: Tree | None = relabelling_of(self.relabelling).apply(tree) if self.relabelling else tree
        if result is not None and self.feature_mark:
            result = cut_labels(result, self.feature_mark)
        if result is not None:
            result = simplified(
                result, empty_tags=self.empty_tags or None, functions=self.functions, repeats=self.repeats
            )
        if result is None:
            return None
        if self.root:
            result = add_root(result, self.root)
        return collapse_unaries(result) if self.unaries else result

    def after_rules(self, kind: str, label: str) -> str:
        """What the steps after the rules for labels make of a label.

        Parameters
        ----------
        kind : {"tag", "phrase"}
        label : str

        Examples
        --------
        >>> Cleaning(feature_mark=":").after_rules("phrase", "NP:pl-SBJ")
        'NP'
        """
        label = without_features(label, self.feature_mark) if self.feature_mark else label
        return strip_function(label) if self.functions and kind == "phrase" else label

    def undo(self, tree: Tree) -> Tree:
        """Undo what the output of a parser must not show: merged unary chains.

        Parameters
        ----------
        tree : nltk.Tree
            Clean.
        """
        return expand_unaries(tree) if self.unaries else tree

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {name: value for name, value in asdict(self).items() if name not in OPTIONAL or value}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Cleaning":
        """The inverse of `to_dict`; a ValueError if these are not settings.

        Parameters
        ----------
        values : dict
            Plain values.
        """
        names_of(list(values["empty_tags"]), "empty_tags")
        cleaning = settings_of(cls, {**OPTIONAL, **values, "empty_tags": tuple(values["empty_tags"])})
        try:
            relabelling_of(cleaning.relabelling)
        except TreebankError as error:
            raise ValueError(f"relabelling: {error}") from None
        return cleaning
