"""The entry of tree-substitution grammars: settings, and the one phase of their training.

A sweep over all trees by the blocked or the local sampler, then new hyperparameters; Cohn & Blunsom (2010).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tsgkit._tsg_sampler import TsgSampler
from tsgkit.errors import UsageError
from tsgkit.grammar import WeightedGrammar
from tsgkit.inference.entry import ModelEntry
from tsgkit.inference.phases import Averaging, Phase, Record, State, sampled_model
from tsgkit.inference.settings import SamplingSettings
from tsgkit.models.base_distributions import BASE_DISTRIBUTIONS, with_base
from tsgkit.models.cfg import train_cfg
from tsgkit.models.fragments import FragmentTable
from tsgkit.models.model import Model, Stage, parts_of
from tsgkit.models.rules import TreeArrays, number_rules
from tsgkit.models.tsg import TsgAverage, TsgSample
from tsgkit.models.tsg_predictive import DerivationCorrection
from tsgkit.treebank import FlatCorpus

SAMPLERS = ("blocked", "local")
PROCESSES = ("pyp", "dp")
STARTS = ("minimal", "maximal", "random")
FIRST_DISCOUNT, FIRST_STRENGTH, FIRST_STOP = 0.5, 1.0, 0.5
AVERAGE_PREFIX = "average_"


@dataclass(frozen=True, kw_only=True)
class TsgSettings(SamplingSettings):
    """How a tree-substitution grammar is trained; beside what all sampled models have (`SamplingSettings`):

    Parameters
    ----------
    iterations : int
        Sweeps over the treebank.
    sampler : {"blocked", "local"}
        Whole trees by Metropolis-Hastings, or single sites by Gibbs.
    process : {"pyp", "dp"}
        Pitman-Yor, or Dirichlet: a discount of 0.
    base : str
        The base distribution P0 of rules; see `tsgkit.models.base_distributions`.
    init : {"minimal", "maximal", "random"}
        Every node a substitution site, none, or each by the toss of a coin.
    batch : int
        Trees whose proposals are made together, against the counts without them; the result depends on it.
    truncated : bool
        Export the truncated grammar instead of the transform.
    """

    kind = "tsg"

    iterations: int = 1000
    sampler: str = "blocked"
    process: str = "pyp"
    base: str = "frequency"
    init: str = "minimal"
    batch: int = 8
    truncated: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_choice("sampler", SAMPLERS)
        self.require_choice("process", PROCESSES)
        self.require_choice("base", BASE_DISTRIBUTIONS.names)
        self.require_choice("init", STARTS)
        self.require_least(1, "iterations", "batch")

    @property
    def first_discount(self) -> float:
        """The discount of the first iteration; it stays 0 where it is."""
        return FIRST_DISCOUNT if self.process == "pyp" else 0.0


@dataclass(frozen=True)
class TsgMaterial:
    """What derivations are sampled over.

    Attributes
    ----------
    corpus : FlatCorpus
    trees : TreeArrays
        Those of the corpus, with the probabilities of the base distribution P0.
    seed : int
    threads : int
    """

    corpus: FlatCorpus
    trees: TreeArrays
    seed: int
    threads: int


class TsgSampling:
    """Derivations of all trees, sampled.

    Parameters
    ----------
    material : TsgMaterial
    settings : TsgSettings
    """

    settings: TsgSettings

    def __init__(self, material: TsgMaterial, settings: TsgSettings) -> None:
        self.material, self.settings = material, settings
        self.corpus, self.trees = material.corpus, material.trees
        self.sampler = TsgSampler(self.trees, material.seed)
        self.averaging = Averaging(settings.average, settings.average_every, settings.iterations)
        self.average = self.new_average()

    def new_average(self) -> TsgAverage:
        """The mean of no samples."""
        return TsgAverage(self.trees)

    def start(self, sites: np.ndarray) -> None:
        """Seat all trees, cut at these nodes."""
        self.sampler.set_parameters(discount=self.settings.first_discount, strength=FIRST_STRENGTH, stop=FIRST_STOP)
        self.sampler.start(sites)

    def iterate(self, step: int) -> Record:
        """One sweep over all trees, then new parameters."""
        settings, temperature = self.settings, self.settings.temperature(step)
        if settings.sampler == "blocked":
            counts = self.sampler.blocked_sweep(step, settings.batch, self.material.threads, temperature)
        else:
            counts = self.sampler.local_sweep(step, temperature)
        n_proposed, n_accepted, n_changed = counts
        _, n_types_changed, _ = self.sampler.type_sweep(step, settings.type_moves, temperature)
        log_joint = self.resample_parameters(step)
        if self.averaging.takes(step):
            self.average.add(self.sample())
        return {
            "log_joint": log_joint,
            "acceptance": n_accepted / max(n_proposed, 1),
            "changed": float(n_changed),
            "types_changed": float(n_types_changed),
            **self.sizes(),
        }

    def resample_parameters(self, step: int) -> float:
        """Draw the parameters given all derivations; returns the log joint probability."""
        return self.sampler.resample_parameters(step, dirichlet=self.settings.process == "dp")

    def sizes(self) -> Record:
        """How many different fragments there are, how many sites, and how large the mean fragment is."""
        n_occurrences = int(self.sampler.restaurants()[0].sum())
        return {
            "fragments": float(self.sampler.n_fragments()[1]),
            "sites": float(n_occurrences),
            "mean_size": self.corpus.n_nodes / n_occurrences,
        }

    def describe(self, record: Record) -> dict[str, str]:
        """The progress bar's figures."""
        return {
            "log joint": f"{record['log_joint']:.0f}",
            "accepted": f"{record['acceptance']:.1%}",
            "fragments": self.n_types(record),
            "nodes/s": f"{self.corpus.n_nodes / max(record['seconds'], 1e-9):.2g}",
        }

    def n_types(self, record: Record) -> str:
        """How many different fragments are in use."""
        return f"{record['fragments']:.0f}"

    def sample(self) -> TsgSample:
        """The present state as a grammar needs it."""
        fragments, customers, tables, _, _ = self.sampler.seating()
        return TsgSample(fragments, customers, tables, *self.sampler.parameters())

    def state(self) -> dict[str, np.ndarray]:
        """Derivations, seating, parameters, and the mean so far."""
        average = {f"{AVERAGE_PREFIX}{name}": value for name, value in self.average.state().items()}
        return self.last_sample() | average

    def last_sample(self) -> dict[str, np.ndarray]:
        """The same without the mean."""
        fragments, _, _, sizes, dishes = self.sampler.seating()
        return {
            "states": self.sampler.states(),
            "fragments": fragments,
            "sizes": sizes,
            "dishes": dishes,
            "parameters": self.sampler.parameters(),
        }

    def restore(self, state: State) -> None:
        """Go back to a state."""
        self.sampler.set_parameters(*state["parameters"])
        self.sampler.restore(state["states"], state["fragments"], state["sizes"], state["dishes"])
        self.average = self.new_average()
        self.average.restore(parts_of(state, AVERAGE_PREFIX))

    def mean(self) -> TsgAverage:
        """The mean of the averaged samples, or of the present one if the run is not so far."""
        if self.average.n_samples:
            return self.average
        average = self.new_average()
        average.add(self.sample())
        return average

    def stages(self, average: TsgAverage) -> list[Stage]:
        """The treebank's own grammar, and that of the mean."""
        same = np.arange(len(self.corpus.labels), dtype=np.int32)
        return [Stage(train_cfg(self.corpus)), Stage(self.grammar(average), same)]

    def grammar(self, average: TsgAverage) -> WeightedGrammar:
        """The grammar of the mean, whole or truncated."""
        make = average.truncated_grammar if self.settings.truncated else average.grammar
        return make(self.corpus.labels, self.corpus.words, int(self.corpus.label[0]))

    def export(self) -> Model:
        """The model of the mean."""
        average = self.mean()
        return sampled_model(
            self.settings,
            self.corpus,
            self.material.seed,
            stages=self.stages(average),
            n_samples=average.n_samples,
            state=self.last_sample(),
        )


@dataclass(frozen=True)
class TsgPhase:
    """Sampling of derivations."""

    settings: TsgSettings

    @property
    def iterations(self) -> int:
        return self.settings.iterations

    @property
    def burn_in(self) -> int:
        """Until the temperature is 1."""
        return min(self.settings.anneal_iterations, self.iterations)

    def sampling(self, material: TsgMaterial) -> TsgSampling:
        """A sampler with nobody seated."""
        return TsgSampling(material, self.settings)

    def begin(self, before: TsgMaterial) -> TsgSampling:
        """Seat all trees."""
        sampling = self.sampling(before)
        n_nodes = before.corpus.n_nodes
        if self.settings.init == "random":
            sites = np.random.Generator(np.random.PCG64([before.seed, n_nodes])).random(n_nodes) < 0.5
        else:
            sites = np.full(n_nodes, self.settings.init == "minimal")
        sampling.start(sites)
        return sampling

    def restore(self, state: State, material: TsgMaterial) -> TsgSampling:
        sampling = self.sampling(material)
        sampling.restore(state)
        return sampling


class TsgEntry(ModelEntry):
    """A Bayesian tree-substitution grammar."""

    title = "Tree-substitution grammar"
    settings = TsgSettings
    panels: ClassVar[tuple[str, ...]] = ("training", "sizes", "fragments", "derivations")
    phase: ClassVar[type[TsgPhase]] = TsgPhase

    def phases(self, settings: TsgSettings) -> Sequence[Phase]:
        return [self.phase(settings)]

    def material(self, corpus: FlatCorpus, settings: TsgSettings, *, seed: int, threads: int) -> TsgMaterial:
        return TsgMaterial(corpus, with_base(number_rules(corpus), settings.base), seed, threads)

    def fragments(self, model: Model) -> FragmentTable:
        """The fragments that the training trees of the last sample are cut into."""
        return FragmentTable.of_sample(model)

    def correction(self, model: Model) -> DerivationCorrection:
        return DerivationCorrection(model, base_of(model))


def base_of(model: Model) -> str:
    """The name of a trained model's base distribution."""
    settings = model.info.get("settings")
    name = settings.get("base", TsgSettings.base) if isinstance(settings, dict) else TsgSettings.base
    if not isinstance(name, str) or name not in BASE_DISTRIBUTIONS:
        raise UsageError(f"the model was trained with the base distribution {name!r}, which is not installed")
    return name


TSG = TsgEntry()
