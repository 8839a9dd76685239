"""The flat corpus: all trees as integer arrays, the input of samplers and grammars.

Last stage of preprocessing. The nodes of all trees are numbered one tree after the other, in preorder. Node ``v`` has
the children ``child[child_start[v]:child_start[v + 1]]``, or none and a word.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from nltk.tree import Tree

from tsgkit._archive import archive_bytes, read_archive, require, take_array, write_archive
from tsgkit._messages import counted
from tsgkit.treebank._trees import is_preterminal

KIND = "corpus"
VERSION = 1
NO_WORD = -1


@dataclass(repr=False)
class FlatCorpus:
    """A treebank as int32 arrays.

    Attributes
    ----------
    labels, words, forms : list of str
        The tables that the arrays index: node labels; the closed vocabulary of a model; the words of the text.
    label : ndarray of int32, one per node
    word : ndarray of int32, one per node
        The word in the closed vocabulary (rare words replaced by their class), or -1 if the node is no preterminal.
    form : ndarray of int32, one per node
        The word in the text, or -1.
    child_start : ndarray of int32, one per node and one more
    child : ndarray of int32
    tree_start : ndarray of int32, one per tree and one more
        ``tree_start[t]`` is the root of tree ``t``.
    settings : dict
        How the trees were prepared, as plain JSON values; see `tsgkit.treebank.prepare`.

    Examples
    --------
    >>> corpus = FlatCorpus.from_trees([Tree.fromstring("(S (NP I) (VP ran))")])
    >>> [corpus.labels[label] for label in corpus.label]
    ['S', 'NP', 'VP']
    >>> corpus.word.tolist()
    [-1, 0, 1]
    >>> print(next(corpus.trees()))
    (S (NP I) (VP ran))
    """

    labels: list[str]
    words: list[str]
    forms: list[str]
    label: np.ndarray
    word: np.ndarray
    form: np.ndarray
    child_start: np.ndarray
    child: np.ndarray
    tree_start: np.ndarray
    settings: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<FlatCorpus of {counted(self.n_trees, 'tree')}, {self.n_tokens} tokens, {len(self.labels)} labels>"

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return len(self.tree_start) - 1

    @property
    def n_nodes(self) -> int:
        """The number of nodes, words not counted."""
        return len(self.label)

    @property
    def n_tokens(self) -> int:
        """The number of words."""
        return int(np.count_nonzero(self.form >= 0))

    @classmethod
    def from_trees(cls, trees: Iterable[Tree]) -> "FlatCorpus":
        """Number the nodes, labels and words of `trees`; the vocabulary is not closed: every word is its own symbol."""
        label_ids: dict[str, int] = {}
        form_ids: dict[str, int] = {}
        label: list[int] = []
        form: list[int] = []
        parent: list[int] = []
        tree_start = [0]
        for tree in trees:
            stack: list[tuple[Tree, int]] = [(tree, -1)]
            while stack:
                node, parent_node = stack.pop()
                number = len(label)
                name = node.label()
                label.append(label_ids.setdefault(name, len(label_ids)))
                parent.append(parent_node)
                if is_preterminal(node):
                    form.append(form_ids.setdefault(node[0], len(form_ids)))
                else:
                    form.append(NO_WORD)
                    stack.extend((child, number) for child in reversed(node))
            tree_start.append(len(label))
        forms = list(form_ids)
        form_array = np.array(form, dtype=np.int32)
        child_start, child = children_of(np.array(parent, dtype=np.int32))
        return cls(
            labels=list(label_ids),
            words=list(forms),
            forms=forms,
            label=np.array(label, dtype=np.int32),
            word=form_array.copy(),
            form=form_array,
            child_start=child_start,
            child=child,
            tree_start=np.array(tree_start, dtype=np.int32),
        )

    def sentences(self) -> Iterator[list[str]]:
        """The words of every tree, as in the text."""
        for start, end in zip(self.tree_start[:-1].tolist(), self.tree_start[1:].tolist(), strict=True):
            yield [self.forms[form] for form in self.form[start:end].tolist() if form >= 0]

    def trees(self, *, original_words: bool = True) -> Iterator[Tree]:
        """Every tree as an `nltk.Tree`, over the words of the text or those of the closed vocabulary."""
        leaf, table = (self.form, self.forms) if original_words else (self.word, self.words)
        for start, end in zip(self.tree_start[:-1].tolist(), self.tree_start[1:].tolist(), strict=True):
            built: list[Any] = [None] * (end - start)
            bounds = self.child_start[start : end + 1].tolist()
            children = self.child[bounds[0] : bounds[-1]].tolist()
            labels, leaves = self.label[start:end].tolist(), leaf[start:end].tolist()
            for node in range(end - start - 1, -1, -1):
                if leaves[node] >= 0:
                    below = [table[leaves[node]]]
                else:
                    below = [
                        built[child - start]
                        for child in children[bounds[node] - bounds[0] : bounds[node + 1] - bounds[0]]
                    ]
                built[node] = Tree(self.labels[labels[node]], below)
            yield built[0]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the corpus to a ``.npz`` file, whole or not at all."""
        write_archive(path, KIND, VERSION, *self.to_parts())

    def to_bytes(self) -> bytes:
        """The bytes that `save` writes."""
        return archive_bytes(KIND, VERSION, *self.to_parts())

    @classmethod
    def load(cls, path: str | os.PathLike[str], content: bytes | None = None) -> "FlatCorpus":
        """Read and check a corpus that `save` wrote; with `content`, from these bytes."""
        return cls.from_parts(*read_archive(path, KIND, VERSION, content), path)

    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The header and the arrays of an archive."""
        header: dict[str, Any] = {name: getattr(self, name) for name in (*TABLES, "settings")}
        return header, {name: getattr(self, name) for name in ARRAYS}

    @classmethod
    def from_parts(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray], path: str | os.PathLike[str]
    ) -> "FlatCorpus":
        """The inverse of `to_parts`; all arrays are checked."""
        for name in TABLES:
            table = header.get(name)
            is_table = isinstance(table, list) and all(isinstance(entry, str) for entry in table)
            require(is_table, path, f"{name} is not a list of names")
        require(isinstance(header.get("settings"), dict), path, "the settings are missing")
        n_nodes = len(arrays["label"]) if "label" in arrays and arrays["label"].ndim else 0
        taken: dict[str, Any] = {
            name: take_array(arrays, name, "int32", (n_nodes + extra if extra is not None else None,), path)
            for name, extra in ARRAYS.items()
        }
        corpus = cls(**{name: header[name] for name in (*TABLES, "settings")}, **taken)
        try:
            corpus.validate()
        except ValueError as problem:
            require(False, path, str(problem))
        return corpus

    def validate(self) -> None:
        """Raise a ValueError unless these arrays are trees; compiled code relies on it."""
        n_nodes = self.n_nodes
        for name, table, lowest in (
            ("label", self.labels, 0),
            ("word", self.words, -1),
            ("form", self.forms, -1),
        ):
            values = getattr(self, name)
            if n_nodes and (values.min() < lowest or values.max() >= len(table)):
                raise ValueError(f"{name} has an index out of range")
        for name, end in (("tree_start", n_nodes), ("child_start", len(self.child))):
            starts = getattr(self, name)
            if not len(starts) or starts[0] != 0 or starts[-1] != end or (np.diff(starts) < 0).any():
                raise ValueError(f"{name} is not a list of increasing offsets")
        if (np.diff(self.tree_start) <= 0).any():
            raise ValueError("a tree has no nodes")
        n_children = np.diff(self.child_start)
        if ((n_children == 0) != (self.form >= 0)).any() or ((self.form >= 0) != (self.word >= 0)).any():
            raise ValueError("a node has both children and a word, or neither")
        parent = np.repeat(np.arange(n_nodes), n_children)
        if len(self.child) and ((self.child <= parent) | (self.child >= n_nodes)).any():
            raise ValueError("a child does not come after its parent")
        tree_of = np.repeat(np.arange(self.n_trees), np.diff(self.tree_start))
        if (tree_of[self.child] != tree_of[parent]).any():
            raise ValueError("a child is in another tree than its parent")
        times_child = np.bincount(self.child, minlength=n_nodes)
        times_child[self.tree_start[:-1]] += 1
        if (times_child != 1).any():
            raise ValueError("a node has two parents or none")


TABLES = ("labels", "words", "forms")
# The arrays of an archive, and by how much each is longer than the number of nodes (None: any length).
ARRAYS: dict[str, int | None] = {
    "label": 0,
    "word": 0,
    "form": 0,
    "child_start": 1,
    "child": None,
    "tree_start": None,
}


def children_of(parent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`child_start` and `child` from the parent of every node (-1 for a root)."""
    n_roots = int(np.count_nonzero(parent < 0))
    child = np.argsort(parent, kind="stable")[n_roots:]
    child_start = np.zeros(len(parent) + 1, dtype=np.int32)
    np.cumsum(np.bincount(parent[parent >= 0], minlength=len(parent)), out=child_start[1:])
    return child_start, child.astype(np.int32)
