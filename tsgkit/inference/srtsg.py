"""Training of symbol-refined grammars: splits, what happens in an iteration, and what is kept."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tsgkit._sr import KINDS, SrSampler
from tsgkit.errors import UsageError
from tsgkit.inference.checkpoint import corpus_digest
from tsgkit.inference.loop import Record
from tsgkit.models.model import Level, Model
from tsgkit.models.rules import number_rules
from tsgkit.models.srtsg import (
    BASES,
    RefinedGrammar,
    RuleMeans,
    Subcategories,
    Words,
    make_sampler,
    raw_probabilities,
)
from tsgkit.models.subcategories import read_splits
from tsgkit.treebank import FlatCorpus
from tsgkit.treebank.prepare import preparation_of

LOSSES = ("marginal", "joint")
MODES = ("exact", "map")
# The share of a split's iterations after which subcategories are merged; the rest goes on with what is left.
MERGE_AT = 0.6


@dataclass(frozen=True)
class SrSettings:
    """How a symbol-refined grammar is trained.

    Parameters
    ----------
    splits : int
        How often every subcategory is split in two.
    split_iterations : int
        Sweeps over the treebank after every split.
    levels : {1, 2, 3}
        3: refined rules back off to rules whose root has no subcategory, and these to the last base; 1 and 2: to the
        last base directly.
    base : {"uniform", "frequency"}
        The last base: every refinement of every rule of a label alike, or by the rule's frequency.
    merge : float
        The share of the splits that are undone, those with the smallest loss.
    merge_loss : {"marginal", "joint"}
        How the loss is measured: on the marginal likelihood of the trees, or on the joint probability.
    type_moves : int
        After every sweep, so many proposals to relabel all occurrences of a refined rule at once; 0 for none.
    type_mode : {"exact", "map"}
        Whether a rule in use may be the goal of such a move; ``map`` allows it, and no longer samples the posterior.
    average : int
        The grammar is the mean over so many samples, the last of those taken every `average_every` iterations.
    average_every : int
    anneal_from : float
        The temperature at the start of every split; it falls to 1 along a straight line.
    anneal_iterations : int
        Iterations of every split until the temperature is 1; 0 for no annealing.
    """

    splits: int = 4
    split_iterations: int = 100
    levels: int = 3
    base: str = "uniform"
    merge: float = 0.5
    merge_loss: str = "marginal"
    type_moves: int = 0
    type_mode: str = "exact"
    average: int = 20
    average_every: int = 2
    anneal_from: float = 1.0
    anneal_iterations: int = 0

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("base", self.base, BASES),
            ("merge-loss", self.merge_loss, LOSSES),
            ("type-mode", self.type_mode, MODES),
            ("levels", self.levels, (1, 2, 3)),
        ):
            if value not in allowed:
                raise UsageError(f"{name} {value!r}: must be one of {', '.join(map(str, allowed))}")
        for name in ("splits", "split_iterations", "average", "average_every"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} {getattr(self, name)}: must be at least 1")
        if self.splits > 10:
            raise UsageError(f"splits {self.splits}: more than 10 would make over a thousand of every label")
        if not 0 <= self.merge < 1:
            raise UsageError(f"merge {self.merge}: must be at least 0 and below 1")
        if self.anneal_from < 1 or not 0 <= self.anneal_iterations <= self.split_iterations:
            raise UsageError("annealing starts from a temperature of at least 1 and ends within a split")

    @property
    def iterations(self) -> int:
        """Sweeps in all."""
        return self.splits * self.split_iterations

    def temperature(self, step: int) -> float:
        """The temperature in an iteration of a split, counted from 1."""
        if step > self.anneal_iterations:
            return 1.0
        return self.anneal_from + (1.0 - self.anneal_from) * (step - 1) / self.anneal_iterations


class SrTraining:
    """A symbol-refined grammar in training; see `tsgkit.inference.loop.Training`.

    Parameters
    ----------
    corpus : FlatCorpus
        Binarised, with closed vocabulary. Where rare words were not replaced by their classes, classes are part of the
        lexical restaurants.
    settings : SrSettings
    seed : int
    """

    def __init__(self, corpus: FlatCorpus, settings: SrSettings, *, seed: int = 0) -> None:
        self.corpus, self.settings, self.seed = corpus, settings, seed
        self.trees = number_rules(corpus)
        self.words = Words.of(corpus, self.trees, preparation_of(corpus).lexicon)
        self.digest = corpus_digest(corpus)
        self.root = int(corpus.label[0])
        # One entry per split begun; the nodes' symbols when the last of them began.
        self.splits: list[Subcategories] = []
        self.groups = corpus.label.astype(np.int32)
        self.sampler: SrSampler
        self.means = RuleMeans()

    def identity(self) -> dict[str, Any]:
        """Everything that the course of the training depends on."""
        return {"model": "srtsg", "settings": asdict(self.settings), "seed": self.seed, "corpus": self.digest}

    def start(self) -> None:
        """Split every label."""
        self.begin_split(Subcategories.whole(self.trees.n_labels), self.groups, None)

    def begin_split(self, before: Subcategories, groups: np.ndarray, parameters: np.ndarray | None) -> None:
        """Split the symbols that the nodes have now, and let every node choose at random."""
        self.splits.append(before.split(self.root))
        self.groups = groups
        random = np.random.Generator(np.random.PCG64([self.seed, len(self.splits)]))
        bits = (random.random(len(groups)) < 0.5) & (self.splits[-1].n_options[groups] > 1)
        self.sampler = self.new_sampler()
        if parameters is not None:
            self.sampler.set_parameters(parameters)
        self.sampler.start(bits.astype(np.uint8))

    def new_sampler(self) -> SrSampler:
        return make_sampler(
            self.trees,
            self.words,
            self.groups,
            self.splits[-1],
            base=self.settings.base,
            levels=self.settings.levels,
            seed=self.seed,
        )

    def symbols(self) -> np.ndarray:
        """The refined symbol of every node."""
        number = self.splits[-1].number
        return number[2 * self.groups + self.sampler.bits()]

    def iterate(self, iteration: int) -> Record:
        """One sweep over all trees, then new parameters; splits and merges when their time has come."""
        settings = self.settings
        split, step = divmod(iteration - 1, settings.split_iterations)
        step += 1
        if split == len(self.splits):
            self.begin_split(self.splits[-1], self.symbols(), self.sampler.parameters())
        temperature = settings.temperature(step)
        n_proposed, n_accepted, n_changed = self.sampler.tree_sweep(iteration, temperature)
        _, n_types_changed, _ = self.sampler.type_sweep(
            iteration, settings.type_moves, temperature, onto_used=settings.type_mode == "map"
        )
        log_joint = self.sampler.resample_parameters(iteration)
        if settings.merge and step == self.merge_step:
            self.merge(iteration)
        n_left = settings.iterations - iteration
        is_last = split == settings.splits - 1 and step >= self.merge_step
        if is_last and n_left < settings.average * settings.average_every and n_left % settings.average_every == 0:
            self.means.add(self.sampler, self.words)
        return {
            "log_joint": log_joint,
            "acceptance": n_accepted / n_proposed,
            "changed": float(n_changed),
            "types_changed": float(n_types_changed),
            "symbols": float(self.splits[-1].exists.sum()),
            "rules": float((self.sampler.cells("rule")[0] > 0).sum()),
        }

    @property
    def merge_step(self) -> int:
        """After which iteration of a split subcategories are merged."""
        return max(1, round(MERGE_AT * self.settings.split_iterations))

    def merge(self, iteration: int) -> None:
        """Undo the splits with the smallest loss."""
        losses = self.sampler.merge_losses(iteration, marginal=self.settings.merge_loss == "marginal")
        candidates = np.flatnonzero(self.splits[-1].n_options > 1)
        order = candidates[np.argsort(losses[candidates], kind="stable")]
        is_merged = np.zeros(len(losses), dtype=np.uint8)
        is_merged[order[: int(len(order) * self.settings.merge)]] = 1
        self.sampler.merge(is_merged, iteration)
        last = self.splits[-1]
        self.splits[-1] = Subcategories(last.group_label, self.sampler.n_options(), last.n_labels)

    def describe(self, record: Record) -> dict[str, str]:
        """The progress bar's figures."""
        return {
            "split": str(len(self.splits)),
            "log joint": f"{record['log_joint']:.0f}",
            "accepted": f"{record['acceptance']:.1%}",
            "symbols": f"{record['symbols']:.0f}",
            "nodes/s": f"{self.corpus.n_nodes / max(record['seconds'], 1e-9):.2g}",
        }

    def state(self) -> dict[str, np.ndarray]:
        """Splits, choices, seating, parameters, and the mean so far."""
        state = {f"options_{number}": split.n_options for number, split in enumerate(self.splits)}
        state |= {"groups": self.groups, "bits": self.sampler.bits(), "parameters": self.sampler.parameters()}
        state |= {f"seating_{kind}": rows for kind, rows in self.sampler.seating().items()}
        state["mean_samples"] = np.array([self.means.n_samples], dtype=np.int64)
        return state | {f"mean_{name}": value for name, value in self.means.values.items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go back to a state."""
        try:
            self.splits = read_splits(state, self.corpus)
            if len(self.splits) > self.settings.splits:
                raise ValueError("the number of splits is another")
            self.groups = np.asarray(state["groups"], dtype=np.int32)
            self.sampler = self.new_sampler()
            self.sampler.set_parameters(state["parameters"])
            self.sampler.restore(state["bits"], {kind: state[f"seating_{kind}"] for kind in KINDS})
            values = {
                name.removeprefix("mean_"): value
                for name, value in state.items()
                if name.startswith("mean_") and name != "mean_samples"
            }
            self.means = RuleMeans(int(state["mean_samples"][0]), values)
        except (KeyError, ValueError, IndexError) as error:
            raise UsageError(f"the checkpoint does not fit the treebank: {error}") from None

    def model(self) -> Model:
        """The mean of the averaged samples, or of the present one if the run is not so far."""
        means = self.means
        if not means.n_samples:
            means = RuleMeans()
            means.add(self.sampler, self.words)
        subcategories = self.splits[-1]
        refined = RefinedGrammar(
            self.corpus,
            self.trees,
            self.words,
            subcategories,
            self.sampler.blocks(),
            means.mean(),
            self.sampler.houses("rule")[0],
            raw_probabilities(self.trees, self.settings.base, subcategories, bool(self.words.classes)),
            self.settings.levels,
        )
        info = {"settings": asdict(self.settings), "seed": self.seed, "samples": means.n_samples}
        info |= {"trees": self.corpus.n_trees, "tokens": self.corpus.n_tokens}
        state = {name: value for name, value in self.state().items() if not name.startswith("mean_")}
        return Model("srtsg", preparation_of(self.corpus), self.chain(refined), info, state, self.corpus)

    def chain(self, refined: RefinedGrammar) -> list[Level]:
        """The treebank's own grammar, the split in the middle, and all splits."""
        fine = refined.grammar()
        same = np.arange(len(self.corpus.labels), dtype=np.int32)
        levels = [Level(refined.raw_grammar(fine))]
        middle = (len(self.splits) + 1) // 2
        if middle == len(self.splits):
            return [*levels, Level(fine, same, fine.label.astype(np.int32))]
        ancestor = np.arange(int(self.splits[-1].exists.sum()))
        for split in self.splits[: middle - 1 : -1]:
            ancestor = split.parent[ancestor]
        coarse, symbol_map = refined.projected(fine, ancestor)
        return [*levels, Level(coarse, same, coarse.label.astype(np.int32)), Level(fine, same, symbol_map)]
