"""The start of a training: the last sample of a model that was trained on other trees.

Trees that both treebanks have keep their derivations; the others are drawn from the grammar of the start. For that, the
trees of both are joined in one corpus: those of the start are seated with their derivations, and each new tree is drawn
given them and the new trees before it (`redraw` of the samplers). Rules and labels that only the new trees have come
from the base distribution of the joined corpus.
"""

import hashlib
import os
from collections import defaultdict, deque
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from tsgkit._archive import plain
from tsgkit.errors import UsageError
from tsgkit.inference._checkpoint import corpus_digest
from tsgkit.models._model import Model
from tsgkit.models._rules import number_rules
from tsgkit.treebank import FlatCorpus, Preparation
from tsgkit.treebank._prepare import preparation_of

# The records of the training and means over samples are no part of the last sample.
RECORDS = "history_"


@dataclass(frozen=True)
class Joined:
    """The trees of a training, and those of its start that it does not have.

    Attributes
    ----------
    corpus : FlatCorpus
        First the trees of the training, with the numbers of nodes and labels that they have there; then the others.
    source : ndarray of int, one per node
        The node of the start's corpus; -1 in new trees.
    label_of : ndarray of int, one per label of the start
        Its number in `corpus`.
    n_labels, n_trees : int
        Of the training.
    """

    corpus: FlatCorpus
    source: np.ndarray
    label_of: np.ndarray
    n_labels: int
    n_trees: int

    @property
    def new_trees(self) -> np.ndarray:
        """The numbers of the trees that the start does not have."""
        return np.flatnonzero(self.source[self.corpus.tree_start[:-1]] < 0)

    @property
    def n_nodes(self) -> int:
        """Nodes of the training."""
        return int(self.corpus.tree_start[self.n_trees])

    @property
    def has_counterpart(self) -> np.ndarray:
        """Whether the start has each label of `corpus`."""
        found = np.zeros(len(self.corpus.labels), dtype=bool)
        found[self.label_of] = True
        return found

    def of_nodes(self, values: np.ndarray, default: np.ndarray) -> np.ndarray:
        """Values of the start's nodes at the nodes of `corpus`; the defaults in new trees."""
        return np.where(self.source >= 0, values[self.source], default)

    def of_labels(self, values: np.ndarray, default: np.ndarray) -> np.ndarray:
        """Values of the start's labels, in the last dimension, for the labels of `corpus`."""
        result = default.copy()
        result[..., self.label_of] = values
        return result


@dataclass(frozen=True)
class Start:
    """The last sample of a trained model, to begin another training with.

    Parameters
    ----------
    model : Model
        It must have been sampled, and keep its training trees.
    name : str
        Of its file, for messages.
    """

    model: Model
    name: str = "the start"

    @classmethod
    def load(cls, path: str | os.PathLike[str], content: bytes | None = None) -> "Start":
        """Read a model file (or its `content`)."""
        return cls(Model.load(path, content), os.fspath(path))

    @property
    def corpus(self) -> FlatCorpus:
        if self.model.corpus is None:
            raise UsageError(
                f"{self.name}: a {self.model.kind} model without a sample cannot be the start of a training"
            )
        return self.model.corpus

    @cached_property
    def digest(self) -> str:
        """A digest of trees and sample."""
        digest = hashlib.sha256(corpus_digest(self.corpus).encode())
        for name, values in sorted(self.model.state.items()):
            if not name.startswith(RECORDS):
                digest.update(name.encode())
                digest.update(plain(values).tobytes())
        return digest.hexdigest()

    def require_fit(self, kind: str, corpus: FlatCorpus) -> None:
        """Refuse a start of another model, or whose trees were prepared in another way.

        Raises
        ------
        UsageError
            Says what differs.
        """
        if self.model.kind != kind:
            raise UsageError(f"{self.name}: a {self.model.kind} model cannot be the start of a model {kind}")
        own, others = describe(self.model.preparation), describe(preparation_of(corpus))
        pairs = {name: (own.get(name), others.get(name)) for name in own | others}
        differences = [
            f"{name} {mine!r} instead of {wanted!r}" for name, (mine, wanted) in pairs.items() if mine != wanted
        ]
        if differences:
            raise UsageError(f"{self.name}: its trees were prepared with {', '.join(differences)}")

    def setting(self, name: str) -> Any:
        """A setting that the start was trained with."""
        settings = self.model.info.get("settings")
        return settings.get(name) if isinstance(settings, dict) else None

    def joined(self, corpus: FlatCorpus) -> Joined:
        """The trees of a training together with those of the start.

        Trees are the same if they have the same labels and words in the text, whether or not a word is rare.
        """
        start = self.corpus
        labels, label_of = merged(corpus.labels, start.labels)
        words, word_of = merged(corpus.words, start.words)
        forms, form_of = merged(corpus.forms, start.forms)
        renumbered = replace(
            start,
            label=label_of[start.label],
            word=np.where(start.word >= 0, word_of[start.word], -1).astype(np.int32),
            form=np.where(start.form >= 0, form_of[start.form], -1).astype(np.int32),
        )
        left: dict[bytes, deque[int]] = defaultdict(deque)
        for number, key in enumerate(keys_of(renumbered)):
            left[key].append(number)
        source = np.full(corpus.n_nodes, -1, dtype=np.int64)
        is_common = np.zeros(start.n_trees, dtype=bool)
        for number, key in enumerate(keys_of(corpus)):
            if left.get(key):
                same = left[key].popleft()
                is_common[same] = True
                nodes = np.arange(start.tree_start[same], start.tree_start[same + 1])
                source[corpus.tree_start[number] : corpus.tree_start[number + 1]] = nodes
        others = np.repeat(~is_common, np.diff(start.tree_start))
        both = with_trees(corpus, renumbered, others)
        joined = replace(both, labels=labels, words=words, forms=forms)
        source = np.concatenate([source, np.flatnonzero(others)])
        return Joined(joined, source, label_of, len(corpus.labels), corpus.n_trees)

    def overlap(self, corpus: FlatCorpus) -> dict[str, int]:
        """How many trees, labels and rules of a corpus have a counterpart in the start, and how many have none."""
        joined = self.joined(corpus)
        known = ~np.isin(np.arange(corpus.n_trees), joined.new_trees)
        trees = number_rules(joined.corpus)
        is_own = np.arange(joined.corpus.n_nodes) < corpus.n_nodes
        of_start = np.unique(trees.rule[joined.source >= 0])
        return {
            "trees_kept": int(known.sum()),
            "trees_drawn": int((~known).sum()),
            "trees_left": joined.corpus.n_trees - corpus.n_trees,
            "labels_new": int((~joined.has_counterpart[: joined.n_labels]).sum()),
            "labels_left": len(joined.corpus.labels) - joined.n_labels,
            "rules_new": len(np.setdiff1d(trees.rule[is_own], of_start)),
            "rules_left": len(np.setdiff1d(of_start, trees.rule[is_own])),
        }


def describe(preparation: Preparation) -> dict[str, Any]:
    """All settings of a preparation, without the vocabulary that it found."""
    values = preparation.to_dict()
    lexicon = values["lexicon"] or {"settings": {}}
    groups = (values["cleaning"] or {}, values["binarization"] or {}, lexicon["settings"])
    return {name: value for group in groups for name, value in group.items()}


def merged(table: list[str], other: list[str]) -> tuple[list[str], np.ndarray]:
    """A table with the missing entries of another one at its end, and where those of the other are.

    Examples
    --------
    >>> merged(["TOP", "NP"], ["TOP", "S", "NP"])
    (['TOP', 'NP', 'S'], array([0, 2, 1], dtype=int32))
    """
    numbers = {name: number for number, name in enumerate(table)}
    places = [numbers.setdefault(name, len(numbers)) for name in other]
    return list(numbers), np.array(places, dtype=np.int32)


def keys_of(corpus: FlatCorpus) -> list[bytes]:
    """For every tree, bytes that are the same for the same labels, shape and words."""
    columns = np.stack([corpus.label, corpus.form, np.diff(corpus.child_start)], axis=1).astype(np.int32)
    starts = corpus.tree_start.tolist()
    return [columns[begin:end].tobytes() for begin, end in pairwise(starts)]


def with_trees(corpus: FlatCorpus, other: FlatCorpus, chosen: np.ndarray) -> FlatCorpus:
    """The trees of a corpus, then the chosen nodes of another one, which are whole trees with the same tables."""
    n_nodes = corpus.n_nodes
    number = n_nodes + np.cumsum(chosen) - 1
    parents = np.repeat(np.arange(other.n_nodes), np.diff(other.child_start))
    n_children = np.concatenate([np.diff(corpus.child_start), np.diff(other.child_start)[chosen]])
    roots = other.tree_start[:-1]
    ends = number[other.tree_start[1:][chosen[roots]] - 1] + 1
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(corpus, name), getattr(other, name)[chosen]]).astype(np.int32)
        for name in ("label", "word", "form")
    }
    return replace(
        corpus,
        **columns,
        child_start=np.concatenate([[0], np.cumsum(n_children)]).astype(np.int32),
        child=np.concatenate([corpus.child, number[other.child[chosen[parents]]]]).astype(np.int32),
        tree_start=np.concatenate([corpus.tree_start, ends]).astype(np.int32),
    )
