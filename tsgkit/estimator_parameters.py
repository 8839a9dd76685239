"""The parameters of estimators by name and type: what editors complete and type checkers check in ``SRTSG(splits=3)``.

For static analysis only. Defaults and checks are in the settings of the models (`tsgkit.inference`); a test compares
the names and types with theirs.
"""

from typing import Literal, TypedDict

from tsgkit.parsing.settings import ParserSettings
from tsgkit.treebank import Binarization, Cleaning, UnknownWords


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
    """Parameters of all sampled models; see `tsgkit.inference.settings.SamplingSettings`."""

    recipe: str | None
    batch: int
    type_moves: int
    average: int
    average_every: int
    anneal_from: float
    anneal_iterations: int


class TsgParameters(SamplingParameters, total=False):
    """Parameters of `tsgkit.TSG`; see `tsgkit.inference.tsg.TsgSettings`."""

    iterations: int
    sampler: Literal["blocked", "local"]
    process: Literal["pyp", "dp"]
    base: str
    init: Literal["minimal", "maximal", "random"]
    truncated: bool


class InsertionParameters(TsgParameters, total=False):
    """Parameters of `tsgkit.InsertionTSG`; see `tsgkit.inference.insertion.InsertionSettings`."""

    stacked: bool
    insertion_probability: float | None
    insertion_cutoff: float


class SrtsgParameters(SamplingParameters, total=False):
    """Parameters of `tsgkit.SRTSG`; see `tsgkit.inference.srtsg_settings.SrSettings`."""

    splits: int
    split_iterations: int
    back_off: str
    levels: int | None
    base: str
    lexicon: Literal["classes", "rules"]
    merge: float
    merge_at: float
    merge_loss: Literal["marginal", "joint"]
    type_mode: Literal["exact", "map"]
    site_iterations: int
    sites: Literal["blocked", "local"]
    joint_iterations: int
    stop_prob: float | None
    insertion_iterations: int
    stacked: bool
    insertion_probability: float | None
    insertion_cutoff: float
