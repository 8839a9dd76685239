"""The parameters of estimators: what editors complete and type checkers check in ``SRTSG(splits=3)``, and `help` shows.

Defaults and checks of settings are in the settings of the models (`tsgkit.inference`), those of all other parameters
here. The names and types are for static analysis only; a test compares them with those of the settings. Descriptions
come from the docstrings of the settings.
"""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from tsgkit._settings import Checked
from tsgkit.errors import SettingError
from tsgkit.parsing._settings import ParserSettings
from tsgkit.treebank import Binarization, Cleaning, UnknownWords

# Parameters of all estimators besides the settings of their models, with their defaults.
COMMON: dict[str, Any] = {
    "seed": 0,
    "threads": 1,
    "treebank": None,
    "cleaning": None,
    "binarization": None,
    "unknown": None,
    "parsing": None,
}
# Parameters that are settings themselves, with an example of each.
PARTS = {
    "cleaning": (Cleaning, 'Cleaning(root="S")'),
    "binarization": (Binarization, 'Binarization("right", horizontal=1)'),
    "unknown": (UnknownWords, 'UnknownWords("unicode", threshold=5)'),
    "parsing": (ParserSettings, 'ParserSettings(objective="mpd")'),
}


@dataclass(frozen=True)
class RunOptions(Checked):
    """What a training needs besides the settings of its model."""

    seed: int = COMMON["seed"]
    threads: int = COMMON["threads"]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("seed", 0 <= self.seed < 1 << 63, "must be at least 0 and below 2^63")
        self.require_least(1, "threads")


def require_parts(given: Mapping[str, object]) -> None:
    """Refuse a value that stands where settings of a kind of their own are needed."""
    for name, value in given.items():
        kind, example = PARTS[name]
        if value is not None and not isinstance(value, kind):
            raise SettingError(name, value, f"must be a tsgkit.{kind.__name__}, as in {name}={example}")


class CommonParameters(TypedDict, total=False):
    """Parameters of all estimators, and all that `tsgkit.CFG` has."""

    seed: int
    threads: int
    treebank: str | None
    cleaning: Cleaning | None
    binarization: Binarization | None
    unknown: UnknownWords | None
    parsing: ParserSettings | None


class SamplingParameters(CommonParameters, total=False):
    """Parameters of all sampled models; see `tsgkit.inference._settings.SamplingSettings`."""

    recipe: str | None
    batch: int
    type_moves: int
    average: int
    average_every: int
    anneal_from: float
    anneal_iterations: int


class TsgParameters(SamplingParameters, total=False):
    """Parameters of `tsgkit.TSG`; see `tsgkit.inference._tsg.TsgSettings`."""

    iterations: int
    sampler: Literal["blocked", "local"]
    process: Literal["pyp", "dp"]
    base: str
    init: Literal["minimal", "maximal", "random"]
    truncated: bool


class InsertionParameters(TsgParameters, total=False):
    """Parameters of `tsgkit.InsertionTSG`; see `tsgkit.inference._insertion.InsertionSettings`."""

    stacked: bool
    insertion_probability: float | None
    insertion_cutoff: float


class SrtsgParameters(SamplingParameters, total=False):
    """Parameters of `tsgkit.SRTSG`; see `tsgkit.inference._srtsg_settings.SrSettings`."""

    splits: int | None
    split_iterations: int | None
    back_off: str
    levels: int | None
    base: str
    lexicon: Literal["classes", "suffixes", "rules"]
    merge: float
    merge_at: float
    merge_loss: Literal["marginal", "joint"]
    type_mode: Literal["exact", "map"]
    site_iterations: int
    sites: Literal["blocked", "local"]
    joint_iterations: int | None
    fragment_moves: int
    stop_prob: float | None
    insertion_iterations: int
    stacked: bool
    insertion_probability: float | None


def with_parameters(text: str, classes: Sequence[type], names: Sequence[str]) -> str:
    """A docstring with a section on these parameters, as the docstrings of classes describe them; later ones count.

    Examples
    --------
    >>> print(with_parameters("A grammar.", [CommonParameters], ["seed"]))
    A grammar.
    """
    entries: dict[str, str] = {}
    for each in classes:
        for head, description in parameter_entries(inspect.getdoc(each) or ""):
            listed, colon, kind = head.partition(" :")
            entries |= {name: f"{name}{colon}{kind}\n{description.rstrip()}\n" for name in listed.split(", ")}
    shown = "".join(entries[name] for name in names if name in entries)
    summary, heading, examples = inspect.cleandoc(text).partition("\nExamples\n--------\n")
    if not shown:
        return inspect.cleandoc(text)
    return f"{summary.rstrip()}\n\nParameters\n----------\n{shown}{heading}{examples}\n"


def parameter_entries(text: str) -> list[tuple[str, str]]:
    """The entries of the section on parameters in a docstring: the line with the names, and the lines below it."""
    _, _, section = text.partition("Parameters\n----------\n")
    section = re.split(r"^\S.*\n-+$", section, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^(\S.*)\n((?:[ \t]+\S.*\n?)+)", section, flags=re.MULTILINE)
