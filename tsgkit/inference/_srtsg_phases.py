"""The phases of training a symbol-refined grammar: splits, substitution sites, sites and subcategories.

Every phase begins with the refined symbols of the one before, whose sampler is then released. The models are those of
`tsgkit.models._srtsg` and `srtsg_sites`; insertions are in `tsgkit.inference._srtsg_insertion`.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from tsgkit._checks import require_amounts
from tsgkit._refined_sampler import RefinedSampler
from tsgkit._subcategories import SplitSampler
from tsgkit.inference._phases import Averaging, Record, State, sampled_model
from tsgkit.inference._srtsg_settings import SrSettings
from tsgkit.models._back_off import Levels
from tsgkit.models._model import Model, Stage, parts_of
from tsgkit.models._rules import TreeArrays, number_rules
from tsgkit.models._srtsg import (
    RefinedGrammar,
    RuleMeans,
    Subcategories,
    Words,
    make_sampler,
    raw_probabilities,
    refined_probabilities,
    split_levels,
)
from tsgkit.models._srtsg_cascade import rule_cascade, site_cascade
from tsgkit.models._srtsg_means import SiteMeans
from tsgkit.models._srtsg_sites import SiteGrammar, make_site_sampler, site_levels
from tsgkit.models._subcategories import read_splits
from tsgkit.treebank import FlatCorpus
from tsgkit.treebank._prepare import preparation_of

MEAN_PREFIX = "mean_"
SEATING_PREFIX = "seating_"


class Unsplit:
    """The treebank with unsplit labels: what the first phase begins with, and the data of all phases.

    Parameters
    ----------
    corpus : FlatCorpus
        Binarised, with closed vocabulary.
    settings : SrSettings
    seed : int
    threads : int
        The result does not depend on it.
    """

    def __init__(self, corpus: FlatCorpus, settings: SrSettings, seed: int, threads: int = 1) -> None:
        self.corpus, self.settings, self.seed, self.threads = corpus, settings, seed, threads
        self.trees = number_rules(corpus)
        lexicon = None if settings.lexicon == "rules" else preparation_of(corpus).lexicon
        self.words = Words.of(corpus, self.trees, lexicon, suffixes=settings.lexicon == "suffixes")

    @property
    def material(self) -> "Unsplit":
        return self

    @property
    def splits(self) -> list[Subcategories]:
        return []

    @property
    def subcategories(self) -> Subcategories:
        return Subcategories.whole(self.trees.n_labels)

    def symbols(self) -> np.ndarray:
        return self.corpus.label.astype(np.int32)

    def pass_parameters(self, sampler: SplitSampler) -> None:
        """A new sampler has the first parameters already."""

    def exported(self, stages: list[Stage], n_samples: int, state: State) -> Model:
        """The model of these grammars, with a state without its means."""
        kept = {name: value for name, value in state.items() if not name.startswith(MEAN_PREFIX)}
        return sampled_model(self.settings, self.corpus, self.seed, stages=stages, n_samples=n_samples, state=kept)

    def describe(self, n_splits: int, record: Record, **others: str) -> dict[str, str]:
        """The figures of the progress bar."""
        return {
            "split": str(n_splits),
            **others,
            "log joint": f"{record['log_joint']:.0f}",
            "accepted": f"{record['acceptance']:.1%}",
            "symbols": f"{record['symbols']:.0f}",
            "nodes/s": f"{self.corpus.n_nodes / max(record['seconds'], 1e-9):.2g}",
        }


class Refined(Protocol):
    """What a split begins with: the unsplit treebank, or the split before."""

    @property
    def material(self) -> Unsplit: ...

    @property
    def splits(self) -> list[Subcategories]:
        """The splits that have begun."""
        ...

    @property
    def subcategories(self) -> Subcategories:
        """The present symbols."""
        ...

    def symbols(self) -> np.ndarray:
        """The symbol of every node."""
        ...

    def pass_parameters(self, sampler: SplitSampler) -> None:
        """Give a sampler the present parameters."""
        ...


@dataclass(frozen=True)
class SrPhase:
    """The fields of phases without insertions.

    Attributes
    ----------
    settings : SrSettings
    iterations : int
    n_before : int
        Iterations of all phases before: streams of random numbers are numbered by iterations of the training.
    averaging : Averaging
    """

    settings: SrSettings
    iterations: int
    n_before: int
    averaging: Averaging


# ---- subcategories ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SplitPhase(SrPhase):
    """Every subcategory is split in two, the subcategories of nodes are sampled, and some splits are merged."""

    @property
    def title(self) -> str:
        return f"split {self.number}"

    @property
    def number(self) -> int:
        """Which split it is, counted from 1."""
        return self.n_before // self.settings.schedule.split_iterations + 1

    @property
    def burn_in(self) -> int:
        """Iterations until subcategories are merged and the temperature is 1."""
        merging = self.settings.merge_step if self.settings.merge else 0
        return min(self.iterations, max(merging, self.settings.anneal_iterations))

    def begin(self, before: Refined) -> "SplitSampling":
        """Split the present symbols; every node gets one of its two options at random."""
        material, groups = before.material, before.symbols()
        splits = [*before.splits, before.subcategories.split(int(material.corpus.label[0]))]
        random = np.random.Generator(np.random.PCG64([material.seed, len(splits)]))
        bits = (random.random(len(groups)) < 0.5) & (splits[-1].n_options[groups] > 1)
        sampling = SplitSampling(self, material, splits, groups)
        before.pass_parameters(sampling.sampler)
        sampling.sampler.start(bits.astype(np.uint8))
        return sampling

    def restore(self, state: State, material: Unsplit) -> "SplitSampling":
        splits = read_splits(dict(state), material.corpus)
        if len(splits) != self.number:
            raise ValueError("the number of splits is another")
        require_amounts(state["groups"], "int32", (material.corpus.n_nodes,))
        require_amounts(state["bits"], "uint8", (material.corpus.n_nodes,))
        sampling = SplitSampling(self, material, splits, state["groups"])
        sampling.sampler.set_parameters(state["parameters"])
        sampling.sampler.restore(state["bits"], state["seats"], parts_of(state, SEATING_PREFIX))
        sampling.means = RuleMeans.restored(parts_of(state, MEAN_PREFIX), sampling.sampler, material.words)
        return sampling


class SplitSampling:
    """The sampling of subcategories after a split.

    Parameters
    ----------
    phase : SplitPhase
    material : Unsplit
    splits : list of Subcategories
        This split and those before.
    groups : ndarray, one per node
        The symbols of the nodes before the split.
    """

    def __init__(self, phase: SplitPhase, material: Unsplit, splits: list[Subcategories], groups: np.ndarray) -> None:
        self.phase, self.material, self.splits, self.groups = phase, material, splits, groups
        settings = material.settings
        self.sampler = make_sampler(
            material.trees,
            material.words,
            groups,
            splits[-1],
            base=settings.base,
            back_off=settings.rule_back_off,
            seed=material.seed,
        )
        self.means = RuleMeans()

    @property
    def subcategories(self) -> Subcategories:
        return self.splits[-1]

    def symbols(self) -> np.ndarray:
        """The refined symbol of every node."""
        return self.subcategories.number[2 * self.groups + self.sampler.bits()]

    def pass_parameters(self, sampler: SplitSampler) -> None:
        sampler.set_parameters(self.sampler.parameters())

    def refined_sites(self) -> "RefinedSites":
        """The refined trees, with every node a substitution site."""
        sites = RefinedSites(self.material, self.splits)
        sites.sampler.take_parameters(self.sampler.parameters())
        sites.sampler.start(self.symbols())
        return sites

    def iterate(self, step: int) -> Record:
        """One sweep over the subcategories of all trees, a draw of the parameters, and in one iteration the merge."""
        settings, iteration = self.material.settings, self.phase.n_before + step
        temperature = settings.temperature(step)
        n_proposed, n_accepted, n_changed = self.sampler.tree_sweep(
            iteration, temperature, batch=settings.batch, threads=self.material.threads
        )
        _, n_types_changed, _ = self.sampler.type_sweep(
            iteration, settings.type_moves, temperature, onto_used=settings.type_mode == "map"
        )
        log_joint = self.sampler.resample_parameters(iteration)
        if settings.merge and step == settings.merge_step:
            self.merge(iteration)
        if step >= settings.merge_step and self.phase.averaging.takes(step):
            self.means.add(self.sampler, self.material.words)
        n_rules = float((self.sampler.cells(self.sampler.kinds[0])[0] > 0).sum())
        return {
            "log_joint": log_joint,
            "acceptance": n_accepted / max(n_proposed, 1),
            "changed": float(n_changed),
            "types_changed": float(n_types_changed),
            "symbols": float(self.subcategories.exists.sum()),
            "rules": n_rules,
            "sites": 1.0,
            "fragments": n_rules,
            **settings.not_yet,
        }

    def merge(self, iteration: int) -> None:
        """Undo the splits with the smallest loss."""
        material, last = self.material, self.subcategories
        is_marginal = material.settings.merge_loss == "marginal"
        losses = self.sampler.merge_losses(iteration, marginal=is_marginal, threads=material.threads)
        candidates = np.flatnonzero(last.n_options > 1)
        order = candidates[np.argsort(losses[candidates], kind="stable")]
        is_merged = np.zeros(len(losses), dtype=np.uint8)
        is_merged[order[: int(len(order) * material.settings.merge)]] = 1
        self.sampler.merge(is_merged, iteration)
        self.splits[-1] = Subcategories(last.group_label, self.sampler.n_options(), last.n_labels)
        base = refined_probabilities(material.trees, material.words, material.settings.base, self.splits[-1])
        self.sampler.set_rule_base(base)

    def state(self) -> dict[str, np.ndarray]:
        """Splits, subcategories, parameters, seating, and the present mean."""
        state = split_options(self.splits)
        state |= {"groups": self.groups, "bits": self.sampler.bits(), "seats": self.sampler.seats()}
        state["parameters"] = self.sampler.parameters()
        state |= {f"{SEATING_PREFIX}{kind}": rows for kind, rows in self.sampler.seating().items()}
        return state | {f"{MEAN_PREFIX}{name}": value for name, value in self.means.state().items()}

    def export(self) -> Model:
        """The model of the mean of the averaged samples; before there are any, of the present one."""
        material, means = self.material, self.means
        if not means.n_samples:
            means = RuleMeans()
            means.add(self.sampler, material.words)
        with_classes = bool(material.words.classes)
        refined = RefinedGrammar(
            material.corpus,
            material.trees,
            material.words,
            self.subcategories,
            self.sampler.blocks(),
            means.mean(),
            self.sampler.restaurants(self.sampler.kinds[0])[0],
            raw_probabilities(material.trees, material.settings.base, self.subcategories, with_classes),
            split_levels(material.settings.rule_back_off, self.subcategories),
        )
        return material.exported(rule_cascade(refined, self.splits), means.n_samples, self.state())

    def describe(self, record: Record) -> dict[str, str]:
        return self.material.describe(len(self.splits), record)


def split_options(splits: list[Subcategories]) -> dict[str, np.ndarray]:
    """The splits as arrays for `tsgkit.models._subcategories.read_splits`."""
    return {f"options_{number}": split.n_options for number, split in enumerate(splits)}


def symbols_as_state(splits: list[Subcategories], symbols: np.ndarray) -> dict[str, np.ndarray]:
    """Splits, and the symbols of nodes as groups and bits, as the phases of splits have them."""
    groups = splits[-1].parent[symbols]
    bits = (splits[-1].number[2 * groups] != symbols).astype(np.uint8)
    return split_options(splits) | {"groups": groups, "bits": bits}


def read_symbols(state: State, material: Unsplit) -> tuple[list[Subcategories], np.ndarray]:
    """What `symbols_as_state` gave, checked."""
    splits = read_splits(dict(state), material.corpus)
    if len(splits) != material.settings.schedule.splits:
        raise ValueError("the number of splits is another")
    groups, bits = state["groups"], state["bits"]
    require_amounts(groups, "int32", (material.corpus.n_nodes,))
    require_amounts(bits, "uint8", (material.corpus.n_nodes,))
    if (groups >= len(splits[-1].n_options)).any() or (bits > 1).any():
        raise ValueError("a node's subcategory is out of range")
    return splits, splits[-1].number[2 * groups + bits]


# ---- sites --------------------------------------------------------------------------------------------------


class RefinedSites:
    """The substitution sites of refined trees: what all phases after the splits share.

    Parameters
    ----------
    material : Unsplit
    splits : list of Subcategories
    """

    def __init__(self, material: Unsplit, splits: list[Subcategories]) -> None:
        self.material, self.splits = material, splits
        settings = material.settings
        self.levels = site_levels(settings.rule_back_off, splits[-1])
        self.sampler: RefinedSampler = make_site_sampler(
            material.trees, material.words, splits[-1], self.levels, base=settings.base, seed=material.seed
        )
        if settings.stop_prob is not None:
            self.sampler.set_stops(settings.stop_prob)
        self.means = SiteMeans()

    @classmethod
    def restored(cls, state: State, material: Unsplit) -> "RefinedSites":
        """The sites of a saved state."""
        splits, symbols = read_symbols(state, material)
        sites = cls(material, splits)
        sites.sampler.set_parameters(state["parameters"])
        sites.sampler.set_stops(state["stops"])
        sites.sampler.restore(symbols, state["sites"], parts_of(state, SEATING_PREFIX))
        means = parts_of(state, MEAN_PREFIX)
        sites.means = SiteMeans.restored(means, sites.sampler, material.words, sites.levels)
        return sites

    def state(self) -> dict[str, np.ndarray]:
        """Splits, subcategories, sites, parameters and seating."""
        state = symbols_as_state(self.splits, self.sampler.symbols())
        state |= {"sites": self.sampler.sites(), "stops": self.sampler.stops(), "parameters": self.sampler.parameters()}
        return state | {f"{SEATING_PREFIX}{kind}": rows for kind, rows in self.sampler.seating().items()}

    def mean_state(self) -> dict[str, np.ndarray]:
        """The present mean."""
        return {f"{MEAN_PREFIX}{name}": value for name, value in self.means.state().items()}

    def add_to_mean(self) -> None:
        self.means.add(self.sampler, self.material.words, self.levels)

    def parts(self) -> "SiteParts":
        """The parts of the grammar of the mean; before there are samples in it, of the present one."""
        material, settings, means = self.material, self.material.settings, self.means
        if not means.n_samples:
            means = SiteMeans()
            means.add(self.sampler, material.words, self.levels)
        subcategories = self.splits[-1]
        return SiteParts(
            material.corpus, material.trees, material.words, subcategories, means, settings.base, self.levels
        )

    def cascade(self, grammar: SiteGrammar) -> list[Stage]:
        return site_cascade(grammar, self.splits, self.sampler.symbols())


class SiteParts(NamedTuple):
    """The arguments of `SiteGrammar`."""

    corpus: FlatCorpus
    trees: TreeArrays
    words: Words
    subcategories: Subcategories
    means: SiteMeans
    base: str
    levels: Levels


class HasSites(Protocol):
    """What a phase after the splits begins with: the last split, or a phase with sites."""

    def refined_sites(self) -> RefinedSites:
        """The sites to continue with."""
        ...


@dataclass(frozen=True)
class SitePhase(SrPhase):
    """Substitution sites are sampled; subcategories do not change."""

    title = "sites"
    joint: ClassVar[bool] = False

    @property
    def burn_in(self) -> int:
        """Iterations with a temperature other than 1."""
        return min(self.settings.anneal_iterations, self.iterations)

    def begin(self, before: HasSites) -> "SiteSampling":
        """Continue with the present sites."""
        return SiteSampling(self, before.refined_sites())

    def restore(self, state: State, material: Unsplit) -> "SiteSampling":
        return SiteSampling(self, RefinedSites.restored(state, material))

    def sweep(self, sampler: RefinedSampler, step: int, threads: int) -> tuple[int, int, int]:
        """One sweep over all trees; returns the numbers of proposals, of accepted ones, and of changes."""
        settings, iteration = self.settings, self.n_before + step
        temperature = settings.temperature(step)
        if settings.sites == "local" and not self.joint:
            return sampler.local_sweep(iteration, temperature=temperature)
        return sampler.blocked_sweep(
            iteration, joint=self.joint, batch=settings.batch, threads=threads, temperature=temperature
        )


@dataclass(frozen=True)
class JointPhase(SitePhase):
    """Sites and subcategories are sampled jointly."""

    title = "joint"
    joint: ClassVar[bool] = True


class SiteSampling:
    """The sampling of sites of refined trees.

    Parameters
    ----------
    phase : SitePhase
    sites : RefinedSites
    """

    def __init__(self, phase: SitePhase, sites: RefinedSites) -> None:
        self.phase, self.sites = phase, sites

    def refined_sites(self) -> RefinedSites:
        return self.sites

    def iterate(self, step: int) -> Record:
        """One sweep over all trees, then a draw of the parameters."""
        settings, iteration = self.phase.settings, self.phase.n_before + step
        sampler, material = self.sites.sampler, self.sites.material
        n_proposed, n_accepted, n_changed = self.phase.sweep(sampler, step, material.threads)
        _, n_types_changed, _ = sampler.type_sweep(
            iteration, settings.fragment_moves, joint=self.phase.joint, temperature=settings.temperature(step)
        )
        log_joint = sampler.resample_parameters(iteration, stops=settings.stop_prob is None)
        if self.phase.averaging.takes(step):
            self.sites.add_to_mean()
        n_sites, n_dishes, n_rules = sampler.counts()
        return {
            "log_joint": log_joint,
            "acceptance": n_accepted / max(n_proposed, 1),
            "changed": float(n_changed),
            "types_changed": float(n_types_changed),
            "symbols": float(self.sites.splits[-1].exists.sum()),
            "rules": float(n_rules),
            "sites": n_sites / material.corpus.n_nodes,
            "fragments": float(n_dishes),
            **settings.not_yet,
        }

    def state(self) -> dict[str, np.ndarray]:
        """Sites, and the present mean."""
        return self.sites.state() | self.sites.mean_state()

    def export(self) -> Model:
        """The model of the mean of the averaged samples; before there are any, of the present one."""
        parts = self.sites.parts()
        stages = self.sites.cascade(SiteGrammar(*parts))
        return self.sites.material.exported(stages, parts.means.n_samples, self.state())

    def describe(self, record: Record) -> dict[str, str]:
        return self.sites.material.describe(len(self.sites.splits), record, sites=f"{record['sites']:.1%}")
