"""A trained model as a file: how its corpus was prepared, and a coarse-to-fine cascade of grammars.

Parsers need nothing else. A model that was sampled also keeps the state of its last sample.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tsgkit import __version__
from tsgkit._archive import archive_bytes, read_archive, require, take_array, write_archive
from tsgkit._messages import counted
from tsgkit.errors import ArchiveError
from tsgkit.grammar import WeightedGrammar
from tsgkit.models._closing import CellClosing
from tsgkit.models._span_labels import SpanLabels
from tsgkit.treebank import FlatCorpus, Preparation
from tsgkit.treebank._binarize import undo_label

KIND = "model"
VERSION = 1
MAX_STAGES = 64
# What the names of the arrays of cell closing begin with.
CLOSING = "closing."
# ... and those of the labels of spans.
SPAN_LABELS = "span_labels."


@dataclass(repr=False)
class Stage:
    """One grammar of a coarse-to-fine cascade.

    Attributes
    ----------
    grammar : WeightedGrammar
    label_map : ndarray of int32, optional
        For every label of this grammar, that of the next coarser one; none at the coarsest.
    symbol_map : ndarray of int32, optional
        For every symbol, the symbol of the next coarser grammar that prunes it, or -1; unless given, only
        whole labels are pruned.
    """

    grammar: WeightedGrammar
    label_map: np.ndarray | None = None
    symbol_map: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"<Stage: {self.grammar!r}>"


@dataclass(repr=False)
class Model:
    """What training leaves and parsing needs.

    Attributes
    ----------
    kind : str
        ``cfg``, ``tsg``, ...
    preparation : Preparation
        How trees and words were made ready, and how to undo it.
    stages : list of Stage
        From the coarsest grammar to the one that decides.
    info : dict
        Settings, seed and figures of the training, as plain JSON values.
    state : dict of ndarray
        The state of the last sample, and what was recorded in every iteration; empty for models that are not sampled.
    corpus : FlatCorpus, optional
        The training trees, where the model keeps them to show what it found where.
    closing : CellClosing, optional
        Which spans of a sentence hardly ever have a node. Files of earlier versions have none: all spans are looked at.
    span_labels : SpanLabels, optional
        Which labels the words around its ends give a span, if the model learns that.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import tsgkit
    >>> trained = tsgkit.train("village:dev", model="cfg")
    >>> with TemporaryDirectory() as folder:
    ...     trained.save(f"{folder}/cfg.model")
    ...     Model.load(f"{folder}/cfg.model").kind
    'cfg'
    """

    kind: str
    preparation: Preparation
    stages: list[Stage]
    info: dict[str, Any] = field(default_factory=dict)
    state: dict[str, np.ndarray] = field(default_factory=dict)
    corpus: FlatCorpus | None = None
    closing: CellClosing | None = None
    span_labels: SpanLabels | None = None

    @property
    def grammar(self) -> WeightedGrammar:
        """The finest grammar."""
        return self.stages[-1].grammar

    def __repr__(self) -> str:
        n_trees = self.info.get("trees")
        trained = f" trained on {counted(n_trees, 'tree')}" if isinstance(n_trees, int) else ""
        return f"<Model {self.kind}{trained}: {self.grammar.n_rules} rules, {len(self.grammar.labels)} labels>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, whole or not at all."""
        write_archive(path, KIND, VERSION, *self.to_parts())

    def to_bytes(self) -> bytes:
        """The bytes that `save` writes."""
        return archive_bytes(KIND, VERSION, *self.to_parts())

    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The header and the arrays of an archive."""
        header: dict[str, Any] = {
            "model": self.kind,
            "preparation": self.preparation.to_dict(),
            "info": {"tsgkit": __version__, **self.info},
            "levels": [],
        }
        arrays = {f"state.{name}": array for name, array in self.state.items()}
        for number, stage in enumerate(self.stages):
            stage_header, stage_arrays = stage.grammar.to_parts()
            header["levels"].append(stage_header)
            arrays.update({f"level{number}.{name}": array for name, array in stage_arrays.items()})
            for name in ("label_map", "symbol_map"):
                if getattr(stage, name) is not None:
                    arrays[f"level{number}.{name}"] = np.asarray(getattr(stage, name), dtype=np.int32)
        if self.corpus is not None:
            header["corpus"], corpus_arrays = self.corpus.to_parts()
            # The preparation is in the header already; a treebank has no other settings as a rule.
            settings = header["corpus"].pop("settings")
            if others := {name: value for name, value in settings.items() if name != "preparation"}:
                header["corpus"]["settings"] = others
            arrays.update({f"corpus.{name}": array for name, array in corpus_arrays.items()})
        if self.closing is not None:
            arrays.update({f"{CLOSING}{name}": array for name, array in self.closing.to_parts().items()})
        if self.span_labels is not None:
            arrays.update({f"{SPAN_LABELS}{name}": array for name, array in self.span_labels.to_parts().items()})
        return header, arrays

    @classmethod
    def load(cls, path: str | os.PathLike[str], content: bytes | None = None) -> "Model":
        """Read a model that `save` wrote (or its `content`); every number in it is checked."""
        header, arrays = read_archive(path, KIND, VERSION, content)
        require(isinstance(header.get("model"), str), path, "the kind of model is missing")
        require(isinstance(header.get("info"), dict), path, "the settings are missing")
        headers: list[dict[str, Any]] = header.get("levels")  # type: ignore[assignment]
        is_list = isinstance(headers, list) and 0 < len(headers) <= MAX_STAGES
        require(is_list and all(isinstance(one, dict) for one in headers), path, "the grammars are missing")
        stages: list[Stage] = []
        for number, stage_header in enumerate(headers):
            of_stage = parts_of(arrays, f"level{number}.")
            grammar = WeightedGrammar.from_parts(stage_header, of_stage, path)
            coarser = stages[-1].grammar if stages else None
            stages.append(Stage(grammar, *read_maps(of_stage, grammar, coarser, path)))
            check_labels(grammar, path)
        try:
            preparation = Preparation.from_dict(header.get("preparation", {}))
        except ValueError as error:
            raise ArchiveError(f"{os.fspath(path)}: damaged: {error}") from None
        corpus = read_corpus(header.get("corpus"), parts_of(arrays, "corpus."), preparation, path)
        of_closing = parts_of(arrays, CLOSING)
        closing = CellClosing.from_parts(of_closing, len(stages[-1].grammar.words), path) if of_closing else None
        of_labels, n_labels = parts_of(arrays, SPAN_LABELS), len(stages[-1].grammar.labels)
        labels = SpanLabels.from_parts(of_labels, n_labels, closing, path) if of_labels else None
        state = parts_of(arrays, "state.")
        return cls(header["model"], preparation, stages, header["info"], state, corpus, closing, labels)


class Trained(Protocol):
    """What has a trained model, as every estimator."""

    @property
    def model(self) -> Model:
        """The trained model."""


# A trained model wherever one is asked for: itself, an estimator, or the path of a file.
AnyModel = Model | Trained | str | os.PathLike[str]


def model_of(given: AnyModel) -> Model:
    """The model itself.

    Parameters
    ----------
    given : Model, estimator, or path
        Of a path, the model that `Model.save` wrote there.

    Examples
    --------
    >>> model_of(["a.model", "b.model"])
    Traceback (most recent call last):
        ...
    TypeError: a model is an estimator, a Model or the path of a model file, not list; several are a ProductParser
    """
    if isinstance(given, Model):
        return given
    if isinstance(given, str | os.PathLike):
        return Model.load(given)
    if hasattr(type(given), "model"):  # of the class: an estimator that is not trained has an error of its own
        return given.model
    several = "; several are a ProductParser" if isinstance(given, list | tuple) else ""
    kinds = "an estimator, a Model or the path of a model file"
    raise TypeError(f"a model is {kinds}, not {type(given).__name__}{several}")


def parts_of(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def read_corpus(
    tables: object, arrays: dict[str, np.ndarray], preparation: Preparation, path: str | os.PathLike[str]
) -> FlatCorpus | None:
    """The checked training trees, if the file has them."""
    if tables is None:
        require(not arrays, path, "the tables of the training trees are missing")
        return None
    if not isinstance(tables, dict):
        raise ArchiveError(f"{os.fspath(path)}: damaged: the training trees are not tables")
    others = tables.get("settings", {})
    require(isinstance(others, dict), path, "the settings of the training trees are missing")
    settings = {**others, "preparation": preparation.to_dict()}
    return FlatCorpus.from_parts({**tables, "settings": settings}, arrays, path)


def check_labels(grammar: WeightedGrammar, path: str | os.PathLike[str]) -> None:
    """Refuse intermediate symbols where binarisation never puts them and cannot undo them."""
    is_intermediate = np.array([undo_label(label) is None for label in grammar.labels])
    alone = grammar.label[np.append(grammar.lexical[:, 0], grammar.root)]
    require(not is_intermediate[alone].any(), path, "an intermediate symbol is the root or a tag")


def read_maps(
    arrays: dict[str, np.ndarray],
    grammar: WeightedGrammar,
    coarser: WeightedGrammar | None,
    path: str | os.PathLike[str],
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The checked maps of a stage to the next coarser one."""
    if coarser is None:
        return None, None
    label_map = take_array(arrays, "label_map", "int32", (len(grammar.labels),), path)
    in_range = ((label_map >= 0) & (label_map < len(coarser.labels))).all()
    require(bool(in_range), path, "a label map points outside of its grammar")
    if "symbol_map" not in arrays:
        return label_map, None
    symbol_map = take_array(arrays, "symbol_map", "int32", (grammar.n_symbols,), path)
    in_range = ((symbol_map >= -1) & (symbol_map < coarser.n_symbols)).all()
    require(bool(in_range), path, "a symbol map points outside of its grammar")
    return label_map, symbol_map
