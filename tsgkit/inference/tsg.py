"""Training of tree-substitution grammars, with or without insertion: what an iteration does, and what is kept."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tsgkit._tsg import TsgSampler
from tsgkit.errors import UsageError
from tsgkit.inference.checkpoint import corpus_digest
from tsgkit.inference.loop import Record
from tsgkit.models.cfg import train_cfg
from tsgkit.models.model import Model, Stage
from tsgkit.models.rules import TreeArrays, number_rules
from tsgkit.models.tsg import TsgAverage, TsgSample, coarser_symbols
from tsgkit.treebank import FlatCorpus
from tsgkit.treebank.prepare import preparation_of

SAMPLERS = ("blocked", "local")
PROCESSES = ("pyp", "dp")
STARTS = ("minimal", "maximal", "random")
FIRST_DISCOUNT, FIRST_STRENGTH, FIRST_STOP, FIRST_INSERTION = 0.5, 1.0, 0.5, 0.5


@dataclass(frozen=True)
class TsgSettings:
    """How a tree-substitution grammar is trained.

    Parameters
    ----------
    sampler : {"blocked", "local"}
        Whole trees by Metropolis-Hastings, or single sites by Gibbs.
    process : {"pyp", "dp"}
        Pitman-Yor, or Dirichlet: a discount of 0.
    init : {"minimal", "maximal", "random"}
        Every node a substitution site, none, or each by the toss of a coin.
    batch : int
        Trees whose proposals are made together, against the counts without them; the result depends on it.
    type_moves : int
        After every sweep, so many proposals to cut or join a fragment in all its places at once (new dishes for
        whole tables); 0 for none.
    average : int
        The grammar is the mean over so many samples, the last of those taken every `average_every` iterations.
    average_every : int
    anneal_from : float
        The temperature of the first iteration; it falls to 1 along a straight line.
    anneal_iterations : int
        Iterations until the temperature is 1; 0 for no annealing.
    truncated : bool
        Export the truncated grammar instead of the transform.
    insertion : bool
        Whether there are auxiliary trees.
    stacked : bool
        With insertion: whether several may be inserted at one node, each into the foot of the one before.
    insertion_probability : float, optional
        With insertion: fix the probability for all labels instead of learning one for each.
    insertion_cutoff : float
        With insertion: leave out of the grammar what is expected to be inserted somewhere less often than this; see
        `tsgkit.models.tsg.TsgAverage`.
    """

    sampler: str = "blocked"
    process: str = "pyp"
    init: str = "minimal"
    batch: int = 8
    type_moves: int = 0
    average: int = 1
    average_every: int = 10
    anneal_from: float = 1.0
    anneal_iterations: int = 0
    truncated: bool = False
    insertion: bool = False
    stacked: bool = False
    insertion_probability: float | None = None
    insertion_cutoff: float = 0.0

    def __post_init__(self) -> None:
        for name, allowed in (("sampler", SAMPLERS), ("process", PROCESSES), ("init", STARTS)):
            if getattr(self, name) not in allowed:
                raise UsageError(f"{name} {getattr(self, name)!r}: must be one of {', '.join(allowed)}")
        for name in ("batch", "average", "average_every"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} {getattr(self, name)}: must be at least 1")
        if self.anneal_from < 1 or self.anneal_iterations < 0:
            raise UsageError("annealing starts from a temperature of at least 1 and takes 0 or more iterations")
        if not self.insertion and (self.stacked or self.insertion_probability is not None):
            raise UsageError("stacked insertions and their probability need a model with insertion")
        if self.insertion_probability is not None and not 0 <= self.insertion_probability < 1:
            raise UsageError(f"insertion probability {self.insertion_probability}: must be at least 0 and below 1")
        if not self.insertion_cutoff >= 0:
            raise UsageError(f"insertion cutoff {self.insertion_cutoff}: must be at least 0")

    @property
    def model(self) -> str:
        """The kind of model."""
        return "insertion" if self.insertion else "tsg"

    def settled_after(self, iterations: int) -> int:
        """The iteration after which all of `iterations` sample the same distribution."""
        return min(self.anneal_iterations, iterations)

    def temperature(self, iteration: int) -> float:
        """The temperature in an iteration, counted from 1."""
        if iteration > self.anneal_iterations:
            return 1.0
        return self.anneal_from + (1.0 - self.anneal_from) * (iteration - 1) / self.anneal_iterations


class TsgTraining:
    """A tree-substitution grammar in training; see `tsgkit.inference.loop.Training`.

    Parameters
    ----------
    corpus : FlatCorpus
        Binarised, with closed vocabulary.
    settings : TsgSettings
    iterations : int
        In all: which samples are averaged depends on it.
    seed : int
    threads : int
        The result does not depend on it.
    trees : TreeArrays, optional
        Those of the corpus; given only where the base has other probabilities than relative frequencies.

    Examples
    --------
    >>> from tsgkit.treebank import Binarization, UnknownWords, load, prepare
    >>> corpus = prepare(load("village", "dev"), binarization=Binarization("right", 0), unknown=UnknownWords())
    >>> training = TsgTraining(corpus, TsgSettings(type_moves=100), iterations=5, seed=1)
    >>> training.start()
    >>> log_joints = [training.iterate(iteration)["log_joint"] for iteration in range(1, 6)]
    >>> log_joints[-1] > log_joints[0]
    True
    >>> training.model().kind
    'tsg'
    """

    def __init__(
        self,
        corpus: FlatCorpus,
        settings: TsgSettings,
        *,
        iterations: int,
        seed: int = 0,
        threads: int = 1,
        trees: TreeArrays | None = None,
    ) -> None:
        self.corpus, self.settings = corpus, settings
        self.iterations, self.seed, self.threads = iterations, seed, threads
        self.trees = number_rules(corpus) if trees is None else trees
        self.sampler = TsgSampler(self.trees, seed)
        if settings.insertion:
            self.sampler.allow_insertions(self.trees.foot_probability(), settings.stacked)
        self.average = self.new_average()
        self.digest = corpus_digest(corpus)

    def new_average(self) -> TsgAverage:
        return TsgAverage(self.trees, 0, self.settings.stacked, self.settings.insertion_cutoff)

    def identity(self) -> dict[str, Any]:
        """Everything that the course of the training depends on."""
        return {
            "model": self.settings.model,
            "settings": asdict(self.settings),
            "iterations": self.iterations,
            "seed": self.seed,
            "corpus": self.digest,
        }

    def start(self) -> None:
        """Seat all trees."""
        n_nodes = self.corpus.n_nodes
        if self.settings.init == "random":
            sites = np.random.Generator(np.random.PCG64([self.seed, n_nodes])).random(n_nodes) < 0.5
        else:
            sites = np.full(n_nodes, self.settings.init == "minimal")
        self.start_with(sites)

    def start_with(self, sites: np.ndarray) -> None:
        """Seat all trees, cut at these nodes."""
        discount = FIRST_DISCOUNT if self.settings.process == "pyp" else 0.0
        self.sampler.set_parameters(discount=discount, strength=FIRST_STRENGTH, stop=FIRST_STOP)
        if self.settings.insertion:
            fixed = self.settings.insertion_probability
            self.sampler.set_parameters(
                auxiliary_discount=discount,
                auxiliary_strength=FIRST_STRENGTH,
                insertion=FIRST_INSERTION if fixed is None else fixed,
            )
        self.sampler.start(sites)

    def iterate(self, iteration: int) -> Record:
        """One sweep over all trees, then new parameters."""
        temperature = self.settings.temperature(iteration)
        if self.settings.sampler == "blocked":
            counts = self.sampler.blocked_sweep(iteration, self.settings.batch, self.threads, temperature)
        else:
            counts = self.sampler.local_sweep(iteration, temperature)
        n_proposed, n_accepted, n_changed = counts
        _, n_types_changed, _ = self.sampler.type_sweep(iteration, self.settings.type_moves, temperature)
        log_joint = self.sampler.resample_parameters(
            iteration,
            dirichlet=self.settings.process == "dp",
            insertions=self.settings.insertion_probability is None,
        )
        first_averaged = self.iterations - self.settings.average_every * (self.settings.average - 1)
        if iteration >= first_averaged and (self.iterations - iteration) % self.settings.average_every == 0:
            self.average.add(self.sample())
        n_auxiliary, n_insertions = self.sampler.n_auxiliary()
        n_places = int(self.sampler.houses()[0].sum())
        record = {
            "log_joint": log_joint,
            "acceptance": n_accepted / max(n_proposed, 1),
            "changed": float(n_changed),
            "types_changed": float(n_types_changed),
            "fragments": float(self.sampler.n_fragments()[1]),
            "sites": float(n_places - n_insertions),
            "mean_size": self.corpus.n_nodes / n_places,
        }
        if self.settings.insertion:
            record |= {"auxiliary": float(n_auxiliary), "insertions": float(n_insertions)}
        return record

    def describe(self, record: Record) -> dict[str, str]:
        """The progress bar's figures."""
        return {
            "log joint": f"{record['log_joint']:.0f}",
            "accepted": f"{record['acceptance']:.1%}",
            "fragments": " + ".join(f"{number:.0f}" for number in type_numbers(record)),
            "nodes/s": f"{self.corpus.n_nodes / max(record['seconds'], 1e-9):.2g}",
        }

    def sample(self) -> TsgSample:
        """The present state as a grammar needs it."""
        fragments, customers, tables, _, _ = self.sampler.seating()
        return TsgSample(fragments, customers, tables, *self.sampler.parameters())

    def state(self) -> dict[str, np.ndarray]:
        """Derivations, seating, parameters, and the mean so far."""
        fragments, _, _, sizes, dishes = self.sampler.seating()
        return {
            "states": self.sampler.states(),
            "fragments": fragments,
            "sizes": sizes,
            "dishes": dishes,
            "parameters": self.sampler.parameters(),
            **{f"average_{name}": value for name, value in self.average.state().items()},
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go back to a state."""
        try:
            self.sampler.set_parameters(*state["parameters"])
            self.sampler.restore(state["states"], state["fragments"], state["sizes"], state["dishes"])
            self.average = self.new_average()
            self.average.restore(
                {name.removeprefix("average_"): value for name, value in state.items() if name.startswith("average_")}
            )
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise UsageError(f"the checkpoint does not fit the treebank: {error}") from None

    def mean(self) -> TsgAverage:
        """The mean of the averaged samples, or of the present one if the run is not so far."""
        if self.average.n_samples:
            return self.average
        average = self.new_average()
        average.add(self.sample())
        return average

    def model(self) -> Model:
        """The model of the mean."""
        average = self.mean()
        root = int(self.corpus.label[0])
        parts = self.corpus.labels, self.corpus.words, root
        grammar = (average.truncated_grammar if self.settings.truncated else average.grammar)(*parts)
        same = np.arange(len(self.corpus.labels), dtype=np.int32)
        if self.settings.insertion:
            coarse = average.coarse_grammar(self.sampler.states(), *parts)
            stages = [Stage(coarse), Stage(grammar, same, coarser_symbols(grammar))]
        else:
            stages = [Stage(train_cfg(self.corpus)), Stage(grammar, same)]
        info = {"settings": asdict(self.settings), "seed": self.seed, "samples": average.n_samples}
        info |= {"trees": self.corpus.n_trees, "tokens": self.corpus.n_tokens}
        state = {name: value for name, value in self.state().items() if not name.startswith("average_")}
        return Model(self.settings.model, preparation_of(self.corpus), stages, info, state, self.corpus)


def type_numbers(record: Record) -> list[float]:
    """How many initial and, with insertion, auxiliary trees are in use."""
    if "auxiliary" not in record:
        return [record["fragments"]]
    return [record["fragments"] - record["auxiliary"], record["auxiliary"]]
