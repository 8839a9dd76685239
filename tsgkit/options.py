"""Options that several commands share: from the words of the command line to checked settings."""

from typing import Any

from tsgkit.cli import choice, integer, number
from tsgkit.distributed import BACKENDS, Backend, make_backend
from tsgkit.errors import UsageError
from tsgkit.treebank import Binarization, Cleaning, UnknownWords
from tsgkit.treebank.binarize import METHODS
from tsgkit.treebank.unknown import MODELS


def cleaning_of(arguments: dict[str, Any]) -> Cleaning:
    """The cleaning steps that the options ask for."""
    root = arguments["--root"]
    empty_tags = tuple(tag for tag in arguments["--empty-tags"].split(",") if tag)
    return Cleaning(
        empty_tags=() if arguments["--keep-empty"] else empty_tags,
        functions=not arguments["--keep-functions"],
        repeats=not arguments["--keep-repeats"],
        unaries=arguments["--collapse-unaries"],
        root="" if root == "none" else root,
    )


def binarization_of(arguments: dict[str, Any]) -> Binarization | None:
    """The binarisation that the options ask for, if any."""
    method = choice(arguments, "--binarize", ("none", *METHODS))
    if method == "none":
        return None
    horizontal = None if arguments["--horizontal"] == "all" else integer(arguments, "--horizontal", 0)
    return Binarization(method, horizontal, integer(arguments, "--vertical", 1), arguments["--heads"])


def unknown_of(arguments: dict[str, Any]) -> UnknownWords | None:
    """How rare words are classed, if they are."""
    model = choice(arguments, "--unknown", ("none", *MODELS))
    return None if model == "none" else UnknownWords(model, integer(arguments, "--threshold", 0))


def optional_integer(arguments: dict[str, Any], option: str, minimum: int) -> int | None:
    """The value of an option that need not be given."""
    return None if arguments[option] is None else integer(arguments, option, minimum)


def optional_number(arguments: dict[str, Any], option: str) -> float | None:
    """The same for any number from 0 on."""
    return None if arguments[option] is None else number(arguments, option, 0)


def backend_of(arguments: dict[str, Any]) -> Backend:
    """Where the jobs run."""
    name = choice(arguments, "--backend", BACKENDS)
    return make_backend(name, optional_integer(arguments, "--jobs", 1), arguments["--scheduler"])


def seed_of(arguments: dict[str, Any]) -> int:
    """The seed: any whole number from 0 on."""
    seed = integer(arguments, "--seed", 0)
    if seed >= 1 << 63:
        raise UsageError(f"--seed={seed}: must be below 2^63")
    return seed
