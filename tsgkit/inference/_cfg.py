"""The entry of the PCFG. It is counted and not sampled, so that its training is one phase without iterations."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tsgkit.inference._entry import ModelEntry
from tsgkit.inference._phases import Phase, Record, State
from tsgkit.inference._settings import Settings
from tsgkit.models._cfg import cfg_model
from tsgkit.models._fragments import FragmentTable
from tsgkit.models._model import Model
from tsgkit.treebank import Binarization, FlatCorpus


@dataclass(frozen=True, kw_only=True)
class CfgSettings(Settings):
    """The settings of a PCFG: there are none."""

    kind = "cfg"


@dataclass(frozen=True)
class Counted:
    """The rules of a corpus, counted."""

    corpus: FlatCorpus

    def iterate(self, step: int) -> Record:
        raise ValueError("relative frequencies do not change")

    def state(self) -> dict[str, np.ndarray]:
        return {}

    def export(self) -> Model:
        model = cfg_model(self.corpus)
        model.info = {"trees": self.corpus.n_trees, "tokens": self.corpus.n_tokens}
        return model

    def describe(self, record: Record) -> dict[str, str]:
        return {}


@dataclass(frozen=True)
class CountPhase:
    """Counting."""

    iterations: int = 0
    burn_in: int = 0
    title: str = "counting"

    def begin(self, before: FlatCorpus) -> Counted:
        return Counted(before)

    def restore(self, state: State, material: FlatCorpus) -> Counted:
        return Counted(material)


class CfgEntry(ModelEntry):
    """Relative frequencies of the rules of the binarised trees."""

    title = "Probabilistic context-free grammar"
    settings = CfgSettings
    binarization = Binarization("right", 1, 2)
    panels = ("derivations",)

    def phases(self, settings: CfgSettings) -> Sequence[Phase]:
        return [CountPhase()]

    def material(self, corpus: FlatCorpus, settings: CfgSettings, *, seed: int, threads: int) -> FlatCorpus:
        return corpus

    def fragments(self, model: Model) -> FragmentTable:
        """The rules with their weights."""
        return FragmentTable.of_rules(model.grammar)


CFG = CfgEntry()
