"""Checkpoints: everything that a training run needs to continue as if it had never stopped."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tsgkit._archive import file_content, plain, read_archive, require, write_archive
from tsgkit.errors import ArchiveError, OverwriteError, UsageError
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
        header, arrays = read_archive(path, KIND, VERSION, file_content(path, is_own=True))
        iteration: int = header.get("iteration", -1)
        require(isinstance(iteration, int) and iteration >= 0, path, "the number of iterations is missing")
        # Through JSON both ways, so that tuples and lists compare equal.
        wanted = json.loads(json.dumps(identity))
        if header.get("identity") != wanted:
            raise UsageError(
                f"{path}: of another run, {description_of(header)}; {differences(header.get('identity'), wanted)}."
                f" Its options continue it; --force discards it; another --output keeps it"
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


def description_of(header: dict[str, Any]) -> str:
    """The run of a checkpoint and how far it is, from the header of the file."""
    identity = header.get("identity")
    if not isinstance(identity, dict) or not isinstance(identity.get("settings"), dict):
        return "which cannot be identified"
    iterations = [
        f"{name.replace('_', '-')}={value}"
        for name, value in identity["settings"].items()
        if name.endswith("iterations") and value and not name.startswith("anneal")
    ]
    shown = ", ".join([*iterations, f"seed={identity.get('seed')}"])
    return f"model {identity.get('model')} after iteration {header.get('iteration')} ({shown})"


def differences(found: Any, wanted: dict[str, Any]) -> str:
    """What distinguishes two runs, for a message."""
    if not isinstance(found, dict) or not isinstance(found.get("settings"), dict):
        return "the run differs"
    flat = [{**one, **one["settings"]} for one in (found, wanted)]
    names = [
        name
        for name in dict.fromkeys([*flat[0], *flat[1]])
        if name != "settings" and flat[0].get(name) != flat[1].get(name)
    ]
    parts = [
        "the treebank or its preparation differs"
        if name == "corpus"
        else f"{name.replace('_', '-')} is {flat[0].get(name)} there and {flat[1].get(name)} here"
        for name in names
    ]
    return ", ".join(parts) or "the run differs"


def describe_checkpoint(path: Path) -> str:
    """What a checkpoint holds, for a message."""
    try:
        header, _ = read_archive(path, KIND, VERSION, file_content(path, is_own=True))
    except (ArchiveError, OSError) as error:
        return f"it cannot be read ({error})"
    return description_of(header)


def saved_settings(path: Path) -> dict[str, Any] | None:
    """The settings of the run that a checkpoint holds; None if there is no checkpoint."""
    if not path.exists():
        return None
    header, _ = read_archive(path, KIND, VERSION, file_content(path, is_own=True))
    identity = header.get("identity")
    settings = identity.get("settings") if isinstance(identity, dict) else None
    require(isinstance(settings, dict), path, "the settings are missing")
    return settings


def require_new(paths: Sequence[Path], *, resume: bool = False) -> None:
    """Refuse to begin a run whose files exist already.

    Parameters
    ----------
    paths : sequence of path
        The files that the run would write, models first.
    resume : bool
        Whether to continue from checkpoints: then those may exist, and all files of a run that has one.

    Raises
    ------
    OverwriteError
        Which names the checkpoint, what run it is of and how far it is, or else the first of the files.
    """
    existing = [path for path in paths if path.exists()]
    checkpoints = [path for path in existing if is_checkpoint_name(path)]
    if not existing or (resume and checkpoints):
        return
    if checkpoints:
        raise OverwriteError(
            f"{checkpoints[0]}: holds a run that can be continued, {describe_checkpoint(checkpoints[0])};"
            " --resume continues it, --force discards it, another --output keeps it"
        )
    raise OverwriteError(f"{existing[0]}: exists already; --force replaces it, another --output keeps it")


def is_checkpoint_name(path: Path) -> bool:
    """Whether a file is a checkpoint by its name."""
    return re.search(r"\.checkpoint(\.chain\d+)?$", path.name) is not None


def files_of_run(output: str | os.PathLike[str]) -> list[Path]:
    """All files of a run: the model, the checkpoint and the table of iterations."""
    return [Path(output), checkpoint_path(output), records_path(output)]


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
