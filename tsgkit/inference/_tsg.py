"""The entry of tree-substitution grammars: their settings, and the single phase of their training.

An iteration is a sweep over all trees by the blocked or the local sampler, and a draw of the hyperparameters (Cohn &
Blunsom 2010).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from tsgkit._tsg_sampler import TsgSampler
from tsgkit.errors import UsageError
from tsgkit.grammar import WeightedGrammar
from tsgkit.inference._entry import ModelEntry
from tsgkit.inference._phases import Averaging, Phase, Record, State, sampled_model
from tsgkit.inference._settings import SHARES, SamplingSettings
from tsgkit.inference._start import Joined, Start
from tsgkit.models._base_distributions import BASE_DISTRIBUTIONS, with_base
from tsgkit.models._cfg import train_cfg
from tsgkit.models._fragments import FragmentTable
from tsgkit.models._model import Model, Stage, parts_of
from tsgkit.models._open_trees import OpenPart, RuleTable, trees_of_corpus
from tsgkit.models._rules import TreeArrays, number_rules
from tsgkit.models._tsg import TsgAverage, TsgSample
from tsgkit.models._tsg_predictive import DerivationCorrection
from tsgkit.treebank import FlatCorpus

SAMPLERS = ("blocked", "local")
PROCESSES = ("pyp", "dp")
STARTS = ("minimal", "maximal", "random")
FIRST_DISCOUNT, FIRST_STRENGTH, FIRST_STOP = 0.5, 1.0, 0.5
AVERAGE_PREFIX = "average_"


@dataclass(frozen=True, kw_only=True)
class TsgSettings(SamplingSettings):
    """The settings of a tree-substitution grammar, in addition to those of all sampled models (`SamplingSettings`).

    Parameters
    ----------
    iterations : int
        Number of sweeps over the treebank.
    sampler : {"blocked", "local"}
        Blocked Metropolis-Hastings over whole trees, or Gibbs sampling of single sites.
    process : {"pyp", "dp"}
        Pitman-Yor process, or Dirichlet process, with discount 0.
    base : str
        The base distribution P0 of rules; see `tsgkit.models.base_distributions`.
    init : {"minimal", "maximal", "random"}
        The initial state: every node is a substitution site, no node is, or each is with probability 1/2.
    truncated : bool
        Export the truncated grammar instead of the transform.
    """

    kind = "tsg"

    iterations: int = 1000
    sampler: str = "blocked"
    process: str = "pyp"
    base: str = "frequency"
    init: str = "minimal"
    truncated: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_choice("sampler", SAMPLERS)
        self.require_choice("process", PROCESSES)
        self.require_choice("base", BASE_DISTRIBUTIONS.names)
        self.require_choice("init", STARTS)
        self.require_least(1, "iterations")

    def shorter(self) -> Iterator[Self]:
        for share in SHARES:
            iterations = max(round(share * self.iterations), 1)
            yield self.with_sweeps(iterations, iterations=iterations)

    @property
    def first_discount(self) -> float:
        """The initial discount; 0 stays 0."""
        return FIRST_DISCOUNT if self.process == "pyp" else 0.0


@dataclass(frozen=True)
class TsgFirst:
    """The state that sampling begins with, where a start gives one.

    Attributes
    ----------
    states : ndarray of uint8, one per node
    parameters : ndarray of float
        As `TsgSampler.parameters` gives them.
    """

    states: np.ndarray
    parameters: np.ndarray


@dataclass(frozen=True)
class OpenMaterial:
    """What the sampling of trees that are not known needs (`tsgkit.inference._open_trees`).

    Attributes
    ----------
    part : OpenPart
        Which trees they are, and what is known of them.
    table : RuleTable
        The rules that they may have.
    """

    part: OpenPart
    table: RuleTable


@dataclass(frozen=True)
class TsgMaterial:
    """The trees whose derivations are sampled.

    Attributes
    ----------
    corpus : FlatCorpus
    trees : TreeArrays
        The trees of the corpus, with the probabilities of the base distribution P0.
    seed : int
    threads : int
    first : TsgFirst, optional
        The first state; unless given, the settings say it.
    opened : OpenMaterial, optional
        If some trees are not known.
    """

    corpus: FlatCorpus
    trees: TreeArrays
    seed: int
    threads: int
    first: TsgFirst | None = None
    opened: OpenMaterial | None = None


class TsgSampling:
    """The sampling of derivations of all trees.

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
        """A mean without samples."""
        return TsgAverage(self.trees)

    def start(self, sites: np.ndarray) -> None:
        """Seat the fragments of all trees, with these substitution sites."""
        self.set_first_parameters()
        self.sampler.start(sites)

    def set_first_parameters(self) -> None:
        """The parameters before the first iteration."""
        self.sampler.set_parameters(discount=self.settings.first_discount, strength=FIRST_STRENGTH, stop=FIRST_STOP)

    def start_from(self, first: TsgFirst) -> None:
        """Seat the fragments of all trees as a start has them."""
        self.sampler.set_parameters(*first.parameters)
        self.sampler.start(first.states)

    def transferred(self, joined: Joined, parameters: np.ndarray) -> np.ndarray:
        """The parameters of a start for the labels of the joined trees; the first ones for labels it does not have."""
        self.set_first_parameters()
        result = joined.of_labels(parameters, self.sampler.parameters())
        if self.settings.process == "dp":
            result[0] = 0.0
        return result

    def iterate(self, step: int) -> Record:
        """One sweep over all trees, then a draw of the parameters."""
        settings, temperature = self.settings, self.settings.temperature(step)
        if settings.sampler == "blocked":
            counts = self.sampler.blocked_sweep(step, settings.batch, self.material.threads, temperature)
        else:
            counts = self.sampler.local_sweep(step, temperature)
        n_proposed, n_accepted, n_changed = counts
        of_trees = self.resample_trees(step)
        _, n_types_changed, _ = self.sampler.type_sweep(step, settings.type_moves, temperature)
        log_joint = self.resample_parameters(step)
        if self.averaging.takes(step):
            self.average.add(self.sample())
        return {
            "log_joint": log_joint,
            "acceptance": n_accepted / max(n_proposed, 1),
            "changed": float(n_changed),
            "types_changed": float(n_types_changed),
            **of_trees,
            **self.sizes(),
        }

    def resample_trees(self, step: int) -> Record:
        """Resample trees that are not known; returns the quantities to record. Here all are known."""
        return {}

    def present_corpus(self) -> FlatCorpus:
        """The corpus with its trees as they are now."""
        return self.corpus

    def resample_parameters(self, step: int) -> float:
        """Resample the parameters given all derivations; returns the log joint probability before."""
        return self.sampler.resample_parameters(step, dirichlet=self.settings.process == "dp")

    def sizes(self) -> Record:
        """The numbers of fragment types and of sites, and the mean size of fragments."""
        n_occurrences = int(self.sampler.restaurants()[0].sum())
        return {
            "fragments": float(self.sampler.n_fragments()[1]),
            "sites": float(n_occurrences),
            "mean_size": len(self.sampler.trees.label) / n_occurrences,
        }

    def describe(self, record: Record) -> dict[str, str]:
        """The figures of the progress bar."""
        return {
            "log joint": f"{record['log_joint']:.0f}",
            "accepted": f"{record['acceptance']:.1%}",
            "fragments": self.n_types(record),
            "nodes/s": f"{self.corpus.n_nodes / max(record['seconds'], 1e-9):.2g}",
        }

    def n_types(self, record: Record) -> str:
        """The number of fragment types, for the progress bar."""
        return f"{record['fragments']:.0f}"

    def sample(self) -> TsgSample:
        """The present state, as far as the grammar depends on it."""
        fragments, customers, tables, _, _ = self.sampler.seating()
        return TsgSample(fragments, customers, tables, *self.sampler.parameters())

    def state(self) -> dict[str, np.ndarray]:
        """Derivations, seating, parameters, and the present mean."""
        average = {f"{AVERAGE_PREFIX}{name}": value for name, value in self.average.state().items()}
        return self.last_sample() | average

    def last_sample(self) -> dict[str, np.ndarray]:
        """The state without the mean."""
        fragments, _, _, sizes, dishes = self.sampler.seating()
        return {
            "states": self.sampler.states(),
            "fragments": fragments,
            "sizes": sizes,
            "dishes": dishes,
            "parameters": self.sampler.parameters(),
        }

    def restore(self, state: State) -> None:
        """Restore a state."""
        self.sampler.set_parameters(*state["parameters"])
        self.sampler.restore(state["states"], state["fragments"], state["sizes"], state["dishes"])
        self.average = self.new_average()
        self.average.restore(parts_of(state, AVERAGE_PREFIX))

    def mean(self) -> TsgAverage:
        """The mean of the averaged samples; before there are any, of the present one."""
        if self.average.n_samples:
            return self.average
        average = self.new_average()
        average.add(self.sample())
        return average

    def stages(self, average: TsgAverage) -> list[Stage]:
        """The CFG of the treebank, and the grammar of the mean."""
        same = np.arange(len(self.corpus.labels), dtype=np.int32)
        return [Stage(train_cfg(self.present_corpus())), Stage(self.grammar(average), same)]

    def grammar(self, average: TsgAverage) -> WeightedGrammar:
        """The grammar of the mean: the transform, or the truncated grammar."""
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
    def title(self) -> str:
        return "sampling"

    @property
    def iterations(self) -> int:
        return self.settings.iterations

    @property
    def burn_in(self) -> int:
        """Iterations with a temperature other than 1."""
        return min(self.settings.anneal_iterations, self.iterations)

    def sampling(self, material: TsgMaterial) -> TsgSampling:
        """Sampling with empty restaurants."""
        if material.opened is None:
            return TsgSampling(material, self.settings)
        from tsgkit.inference._open_trees import OpenTsgSampling  # noqa: PLC0415 - built on this module

        return OpenTsgSampling(material, self.settings)

    def begin(self, before: TsgMaterial) -> TsgSampling:
        """Begin with the first state, or with the initial sites that the settings ask for."""
        sampling = self.sampling(before)
        if before.first is not None:
            sampling.start_from(before.first)
            return sampling
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
    takes_open_trees = True

    def phases(self, settings: TsgSettings) -> Sequence[Phase]:
        return [self.phase(settings)]

    def material(self, corpus: FlatCorpus, settings: TsgSettings, *, seed: int, threads: int) -> TsgMaterial:
        part = OpenPart.of_corpus(corpus)
        if part is None:
            return TsgMaterial(corpus, with_base(number_rules(corpus), settings.base), seed, threads)
        table = RuleTable.of_corpus(corpus, part)
        trees = with_base(table.trees(trees_of_corpus(corpus, table)), settings.base)
        return TsgMaterial(corpus, trees, seed, threads, opened=OpenMaterial(part, table))

    def begin_with(self, start: Start, material: TsgMaterial, settings: TsgSettings) -> TsgMaterial:
        """The trees with the start's derivations; those that it does not have are drawn from its grammar."""
        joined = start.joined(material.corpus)
        trees = with_base(number_rules(joined.corpus), settings.base)
        sampling = self.phase(settings).sampling(replace(material, corpus=joined.corpus, trees=trees))
        try:
            # For its checks.
            FragmentTable.of_sample(start.model)
            states = joined.of_nodes(start.model.state["states"], np.ones(joined.corpus.n_nodes, dtype=np.uint8))
            sampling.start_from(TsgFirst(states, sampling.transferred(joined, start.model.state["parameters"])))
        except (KeyError, ValueError, IndexError) as error:
            raise UsageError(f"{start.name}: its sample does not fit these settings: {error}") from None
        sampling.sampler.redraw(0, joined.new_trees, settings.batch, material.threads)
        parameters = sampling.sampler.parameters()[:, : joined.n_labels]
        return replace(material, first=TsgFirst(sampling.sampler.states()[: joined.n_nodes], parameters))

    def fragments(self, model: Model) -> FragmentTable:
        """The fragments of the last sample."""
        return FragmentTable.of_sample(model)

    def correction(self, model: Model) -> DerivationCorrection:
        if model.corpus is not None and OpenPart.of_corpus(model.corpus) is not None:
            raise UsageError("a model whose training had sentences without trees cannot correct its samples")
        return DerivationCorrection(model, base_of(model))


def base_of(model: Model) -> str:
    """The name of a trained model's base distribution."""
    settings = model.info.get("settings")
    name = settings.get("base", TsgSettings.base) if isinstance(settings, dict) else TsgSettings.base
    if not isinstance(name, str) or name not in BASE_DISTRIBUTIONS:
        raise UsageError(f"the model was trained with the base distribution {name!r}, which is not installed")
    return name


TSG = TsgEntry()
