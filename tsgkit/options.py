"""Options that several commands share: from the arguments of the command line to checked settings."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from nltk.tree import Tree

from tsgkit.cli import choice, integer
from tsgkit.distributed import BACKENDS, Backend, make_backend
from tsgkit.errors import TreebankError, UsageError
from tsgkit.treebank import Binarization, Cleaning, UnknownWords, read_trees
from tsgkit.treebank.binarize import METHODS
from tsgkit.treebank.formats import AUTO, READERS, split_format
from tsgkit.treebank.unknown.model import UNKNOWN_WORDS


@dataclass(frozen=True)
class Reading:
    """How treebanks are read, and which trees were left out or changed.

    Attributes
    ----------
    options : dict
        Keyword arguments of `read_trees`.
    skipped, reattached : list, optional
        As for `read_trees`.
    """

    options: dict[str, Any]
    skipped: list[TreebankError] | None
    reattached: list[str] | None

    def trees(self, sources: str | Iterable[str]) -> Iterator[Tree]:
        return read_trees(sources, **self.options, skipped=self.skipped, reattached=self.reattached)

    def report(self) -> None:
        """Print to stderr which trees were left out or changed, if the options allow it."""
        if self.reattached is not None:
            n_trees = len(self.reattached)
            print(f"tsgkit: made {n_trees} tree{'s'[: n_trees != 1]} continuous", file=sys.stderr)
        if self.skipped is not None:
            for error in self.skipped:
                print(f"skipped: {error}", file=sys.stderr)
            n_trees = len(self.skipped)
            print(f"tsgkit: skipped {n_trees} bad tree{'s'[: n_trees != 1]}", file=sys.stderr)


def reading_of(arguments: dict[str, Any]) -> Reading:
    """How treebanks are read, according to the options."""
    name, _ = split_format(arguments["--format"])
    choice({"--format": name}, "--format", (AUTO, *READERS.names))
    options = {
        "format": arguments["--format"],
        "unescape": arguments.get("--unescape", False),
        "nfc": arguments["--nfc"],
        "encoding": arguments["--encoding"],
    }
    return Reading(options, [] if arguments["--skip-bad"] else None, [] if arguments["--continuous"] else None)


def cleaning_of(arguments: dict[str, Any]) -> Cleaning:
    """The cleaning steps that the options select."""
    root = arguments["--root"]
    empty_tags = tuple(tag for tag in arguments["--empty-tags"].split(",") if tag)
    return Cleaning(
        empty_tags=() if arguments["--keep-empty"] else empty_tags,
        functions=not arguments["--keep-functions"],
        repeats=not arguments["--keep-repeats"],
        unaries=arguments["--collapse-unaries"],
        root="" if root == "none" else root,
        feature_mark=arguments["--cut-labels"] or "",
    )


def binarization_of(arguments: dict[str, Any]) -> Binarization | None:
    """The binarisation that the options select, or None."""
    method = choice(arguments, "--binarize", ("none", *METHODS))
    if method == "none":
        return None
    horizontal = None if arguments["--horizontal"] == "all" else integer(arguments, "--horizontal", 0)
    return Binarization(method, horizontal, integer(arguments, "--vertical", 1), arguments["--heads"])


def unknown_of(arguments: dict[str, Any]) -> UnknownWords | None:
    """How rare words are classed, or None if all words are kept."""
    model = choice(arguments, "--unknown", ("none", *UNKNOWN_WORDS.names))
    return None if model == "none" else UnknownWords(model, integer(arguments, "--threshold", 0))


def optional_integer(arguments: dict[str, Any], option: str, minimum: int) -> int | None:
    """The value of an option that need not be given."""
    return None if arguments[option] is None else integer(arguments, option, minimum)


def backend_of(arguments: dict[str, Any]) -> Backend:
    """Where the jobs run."""
    name = choice(arguments, "--backend", BACKENDS)
    return make_backend(name, optional_integer(arguments, "--jobs", 1), arguments["--scheduler"])


def require_one(arguments: dict[str, Any], *options: str) -> None:
    """Refuse options that contradict each other."""
    if len(given := [option for option in options if arguments[option]]) > 1:
        raise UsageError(f"{' and '.join(given)} contradict each other: give one of them")


def seed_of(arguments: dict[str, Any]) -> int:
    """The seed: any whole number from 0 on."""
    seed = integer(arguments, "--seed", 0)
    if seed >= 1 << 63:
        raise UsageError(f"--seed={seed}: must be below 2^63")
    return seed
