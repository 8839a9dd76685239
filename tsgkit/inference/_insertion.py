"""The entry of tree-substitution grammars with insertion: initial and auxiliary trees.

The phase is that of tree-substitution grammars, with additional restaurants for auxiliary trees and with insertion
probabilities (Shindo, Fujino & Nagata 2011).
"""

from dataclasses import dataclass

import numpy as np

from tsgkit.inference._phases import Record
from tsgkit.inference._settings import SamplingSettings
from tsgkit.inference._start import Joined
from tsgkit.inference._tsg import (
    FIRST_STRENGTH,
    TsgEntry,
    TsgMaterial,
    TsgPhase,
    TsgSampling,
    TsgSettings,
    base_of,
)
from tsgkit.models._model import Model, Stage
from tsgkit.models._tsg import TsgAverage, coarser_symbols
from tsgkit.models._tsg_predictive import DerivationCorrection
from tsgkit.treebank import Binarization, UnknownWords

FIRST_INSERTION = 0.5


@dataclass(frozen=True, kw_only=True)
class InsertionSettings(TsgSettings):
    """The settings of a grammar with insertion, in addition to those of a tree-substitution grammar (`TsgSettings`).

    Parameters
    ----------
    stacked : bool
        Allow several insertions at one node, each at the foot of the one before.
    insertion_probability : float, optional
        A fixed insertion probability for all labels; by default each label has its own, which is sampled.
    insertion_cutoff : float
        Minimum expected number of insertions; the grammar omits insertions into parts of fragments with fewer. See
        `tsgkit.models._tsg.TsgAverage`.
    """

    kind = "insertion"

    stacked: bool = False
    insertion_probability: float | None = None
    insertion_cutoff: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_insertion_probability(self, self.insertion_probability)
        self.require_least(0, "insertion_cutoff")


def require_insertion_probability(settings: SamplingSettings, fixed: float | None) -> None:
    """Raise an error unless insertions can have this fixed probability, if any."""
    settings.require("insertion_probability", fixed is None or 0 <= fixed < 1, "must be at least 0 and below 1")


class InsertionSampling(TsgSampling):
    """The sampling of derivations with substitution and insertion."""

    settings: InsertionSettings

    def __init__(self, material: TsgMaterial, settings: InsertionSettings) -> None:
        super().__init__(material, settings)
        self.sampler.allow_insertions(self.trees.foot_probability(), settings.stacked)

    def new_average(self) -> TsgAverage:
        return TsgAverage(self.trees, 0, self.settings.stacked, self.settings.insertion_cutoff)

    def set_first_parameters(self) -> None:
        fixed = self.settings.insertion_probability
        self.sampler.set_parameters(
            auxiliary_discount=self.settings.first_discount,
            auxiliary_strength=FIRST_STRENGTH,
            insertion=FIRST_INSERTION if fixed is None else fixed,
        )
        super().set_first_parameters()

    def transferred(self, joined: Joined, parameters: np.ndarray) -> np.ndarray:
        """The same; labels that could have no insertions in the start get the first probability."""
        result = super().transferred(joined, parameters)
        first = self.sampler.parameters()
        if self.settings.process == "dp":
            result[3] = 0.0
        keeps = (result[5] > 0) & (self.settings.insertion_probability is None)
        result[5] = np.where(keeps, result[5], first[5])
        return result

    def resample_parameters(self, step: int) -> float:
        return self.sampler.resample_parameters(
            step, dirichlet=self.settings.process == "dp", insertions=self.settings.insertion_probability is None
        )

    def sizes(self) -> Record:
        """The same, with auxiliary trees among the fragments, and the numbers of auxiliary trees and insertions."""
        n_auxiliary, n_insertions = self.sampler.n_auxiliary()
        sizes = super().sizes()
        sizes["sites"] -= n_insertions
        return sizes | {"auxiliary": float(n_auxiliary), "insertions": float(n_insertions)}

    def n_types(self, record: Record) -> str:
        """The numbers of types of initial and auxiliary trees, for the progress bar."""
        return f"{record['fragments'] - record['auxiliary']:.0f} + {record['auxiliary']:.0f}"

    def stages(self, average: TsgAverage) -> list[Stage]:
        """A grammar of labels and of symbols for insertions, for pruning, and the grammar of the mean."""
        same = np.arange(len(self.corpus.labels), dtype=np.int32)
        grammar = self.grammar(average)
        parts = self.corpus.labels, self.corpus.words, int(self.corpus.label[0])
        coarse = average.coarse_grammar(self.sampler.states(), *parts)
        return [Stage(coarse), Stage(grammar, same, coarser_symbols(grammar))]


@dataclass(frozen=True)
class InsertionPhase(TsgPhase):
    """Sampling of derivations with insertions."""

    settings: InsertionSettings

    def sampling(self, material: TsgMaterial) -> InsertionSampling:
        return InsertionSampling(material, self.settings)


class InsertionEntry(TsgEntry):
    """A tree-substitution grammar with auxiliary trees."""

    title = "Tree-substitution grammar with insertion"
    settings = InsertionSettings
    binarization = Binarization("centre-head", 0, 1)
    unknown = UnknownWords("three", 1)
    panels = ("training", "sizes", "fragments", "auxiliary", "derivations")
    phase = InsertionPhase
    takes_open_trees = False

    def correction(self, model: Model) -> DerivationCorrection:
        return DerivationCorrection(model, base_of(model), with_insertion=True)


INSERTION = InsertionEntry()
