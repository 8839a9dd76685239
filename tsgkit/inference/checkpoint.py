"""Checkpoints: everything that a training run needs to continue as if it had never stopped."""

import hashlib
import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tsgkit.archive import plain, read_archive, require, write_archive
from tsgkit.errors import UsageError
from tsgkit.treebank import FlatCorpus

KIND = "checkpoint"
VERSION = 1
# A checkpoint grows while a model does, and the old one stays until the new one is complete.
ROOM = 4


@dataclass
class Checkpoint:
    """The state of a run after an iteration.

    Attributes
    ----------
    iteration : int
        Iterations done.
    identity : dict
        Model, settings, seed and a digest of the corpus: a run continues only if they are the same.
    state : dict of ndarray
        The state of the phase.
    history : dict of ndarray
        One entry per iteration and quantity.
    """

    iteration: int
    identity: dict[str, Any]
    state: dict[str, np.ndarray]
    history: dict[str, np.ndarray]

    def save(self, path: Path) -> None:
        """Write to a new file, sync it, and replace the old one."""
        arrays = {f"state.{name}": array for name, array in self.state.items()}
        arrays |= {f"history.{name}": array for name, array in self.history.items()}
        write_archive(path, KIND, VERSION, {"iteration": self.iteration, "identity": self.identity}, arrays)

    @classmethod
    def load(cls, path: Path, identity: dict[str, Any]) -> "Checkpoint":
        """Read a checkpoint of the run with this identity."""
        header, arrays = read_archive(path, KIND, VERSION)
        iteration: int = header.get("iteration", -1)
        require(isinstance(iteration, int) and iteration >= 0, path, "the number of iterations is missing")
        # Through JSON both ways, so that tuples and lists compare equal.
        if header.get("identity") != json.loads(json.dumps(identity)):
            raise UsageError(
                f"{path}: the checkpoint is of another run (treebank, options or seed differ); "
                f"give another --output, or remove the file to start again"
            )
        parts: dict[str, dict[str, np.ndarray]] = {"state": {}, "history": {}}
        for name, array in arrays.items():
            group, _, rest = name.partition(".")
            require(group in parts, path, f"array {name} is unknown")
            parts[group][rest] = array
        for name, values in parts["history"].items():
            is_fit = values.dtype == np.float64 and values.shape == (iteration,)
            require(is_fit, path, f"the record of {name} is not one number for every iteration")
        return cls(iteration, header["identity"], parts["state"], parts["history"])


def checkpoint_path(output: str | os.PathLike[str]) -> Path:
    """Where the checkpoint of a model lies: beside it."""
    return beside(output, "checkpoint")


def records_path(output: str | os.PathLike[str]) -> Path:
    """Where the table of all iterations lies."""
    return beside(output, "tsv")


def beside(output: str | os.PathLike[str], ending: str) -> Path:
    """The name of a file that belongs to a model.

    The number of a chain stays at the end, so that MODEL.chain* names models and nothing else.

    Examples
    --------
    >>> beside("wsj.model", "tsv").name, beside("wsj.model.chain02", "tsv").name
    ('wsj.model.tsv', 'wsj.model.tsv.chain02')
    """
    path = Path(output)
    stem, chain = re.fullmatch(r"(.*?)(\.chain\d+)?", path.name, re.DOTALL).groups(default="")  # type: ignore[union-attr]
    return path.with_name(f"{stem}.{ending}{chain}")


def require_room(path: Path) -> None:
    """Stop before the first iteration if the disk cannot hold the next checkpoints."""
    needed = ROOM * path.stat().st_size
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise OSError(
            28,
            f"not enough space for checkpoints ({needed >> 10} kB wanted, {free >> 10} kB free)",
            str(path),
        )


def corpus_digest(corpus: FlatCorpus) -> str:
    """A digest of all that a model sees of a corpus."""
    digest = hashlib.sha256()
    for array in (
        corpus.label,
        corpus.word,
        corpus.form,
        corpus.child_start,
        corpus.child,
        corpus.tree_start,
    ):
        digest.update(plain(array).tobytes())
    digest.update(json.dumps([corpus.labels, corpus.words, corpus.forms, corpus.settings]).encode())
    return digest.hexdigest()
