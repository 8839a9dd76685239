"""The last phase of a symbol-refined grammar with insertion: sites, subcategories and insertions, sampled jointly.

It begins with the sites and symbols of the phase before, and no insertions. The model is that of
`tsgkit.models._srtsg_auxiliary` and `tsgkit.models._srtsg_insertion`.
"""

from dataclasses import dataclass

import numpy as np

from tsgkit._checks import require_amounts
from tsgkit.inference._insertion import FIRST_INSERTION
from tsgkit.inference._phases import Record, State
from tsgkit.inference._srtsg_phases import (
    MEAN_PREFIX,
    SEATING_PREFIX,
    HasSites,
    RefinedSites,
    SrPhase,
    Unsplit,
    read_symbols,
    symbols_as_state,
)
from tsgkit.models._model import Model, parts_of
from tsgkit.models._srtsg import Subcategories
from tsgkit.models._srtsg_auxiliary import WithAuxiliary
from tsgkit.models._srtsg_cascade import site_cascade
from tsgkit.models._srtsg_insertion import InsertionGrammar
from tsgkit.models._srtsg_means import SiteMeans
from tsgkit.models._srtsg_sites import site_levels
from tsgkit.models._subcategories import FEET


@dataclass(frozen=True)
class RefinedInsertionPhase(SrPhase):
    """Sites, subcategories and insertions are sampled jointly, one tree at a time."""

    burn_in: int = 0
    title: str = "insertion"

    def begin(self, before: HasSites) -> "RefinedInsertionSampling":
        """Continue with the present sites and symbols."""
        sites = before.refined_sites()
        sampling = RefinedInsertionSampling(self, sites.material, sites.splits)
        sampling.start(sites)
        return sampling

    def restore(self, state: State, material: Unsplit) -> "RefinedInsertionSampling":
        splits, symbols = read_symbols(state, material)
        sampling = RefinedInsertionSampling(self, material, splits)
        sampling.restore(state, symbols)
        return sampling


class RefinedInsertionSampling:
    """The sampling of sites, subcategories and insertions of refined trees.

    Parameters
    ----------
    phase : RefinedInsertionPhase
    material : Unsplit
    splits : list of Subcategories
    """

    def __init__(self, phase: RefinedInsertionPhase, material: Unsplit, splits: list[Subcategories]) -> None:
        self.phase, self.material, self.splits = phase, material, splits
        settings = material.settings
        self.extended = WithAuxiliary.of(material.trees, material.words, splits[-1])
        self.levels = self.extended.levels(settings.rule_back_off)
        self.sampler = self.extended.sampler(self.levels, settings.base, stacked=settings.stacked, seed=material.seed)
        fixed = settings.insertion_probability
        self.sampler.set_insertion_probabilities(FIRST_INSERTION if fixed is None else fixed)
        self.means = SiteMeans()

    def start(self, sites: RefinedSites) -> None:
        """Begin with these sites, their symbols and parameters."""
        before = sites.sampler
        self.sampler.set_parameters(self.extended.all_parameters(before.parameters(), self.sampler.parameters()))
        stops = self.sampler.stops()
        stops[: self.extended.n_labels] = before.stops()
        self.sampler.set_stops(stops)
        self.sampler.start(before.symbols(), before.sites())

    def iterate(self, step: int) -> Record:
        """One sweep over all trees, then a draw of the parameters."""
        settings, iteration = self.phase.settings, self.phase.n_before + step
        sampler, material, words = self.sampler, self.material, self.extended.words
        temperature = settings.temperature(step)
        n_proposed, n_accepted, n_changed = sampler.insertion_sweep(
            iteration, batch=settings.batch, threads=material.threads, temperature=temperature
        )
        _, n_types_changed, _ = sampler.type_sweep(
            iteration, settings.fragment_moves, joint=True, temperature=temperature
        )
        log_joint = sampler.log_insertions()
        log_joint += sampler.resample_parameters(iteration, stops=settings.stop_prob is None)
        if settings.insertion_probability is None:
            sampler.resample_insertions(iteration)
        if self.phase.averaging.takes(step):
            self.means.add(sampler, words, self.levels)
        n_sites, n_dishes, n_rules = sampler.counts()
        n_insertions = int((sampler.insertions_of_nodes() > 0).sum())
        return {
            "log_joint": log_joint,
            "acceptance": n_accepted / max(n_proposed, 1),
            "changed": float(n_changed),
            "types_changed": float(n_types_changed),
            "symbols": float(self.splits[-1].exists.sum()),
            "rules": float(n_rules),
            "sites": (n_sites - n_insertions) / material.corpus.n_nodes,
            "fragments": float(n_dishes),
            "auxiliary": float((sampler.dishes()[:, [1, 2]] >= [self.extended.n_symbols, 1]).all(axis=1).sum()),
            "insertions": float(n_insertions),
        }

    def node_symbols(self) -> np.ndarray:
        """The refined symbol of every node; where something is inserted, that of the foot."""
        symbols, feet, trees = self.sampler.symbols(), self.sampler.insertions_of_nodes(), self.material.trees
        for node in reversed(np.flatnonzero(feet).tolist()):
            symbols[node] = symbols[(trees.left, trees.right)[feet[node] - 1][node]]
        return symbols

    def state(self) -> dict[str, np.ndarray]:
        """Splits, subcategories, sites, insertions, parameters, seating, and the present mean.

        As phases without insertion have them: splits, subcategories, the sites where initial trees begin, and the
        parameters of the treebank's labels and symbols.
        """
        sampler, feet = self.sampler, self.sampler.insertions_of_nodes()
        state = symbols_as_state(self.splits, self.node_symbols())
        state |= {"sites": np.where(feet > 0, 0, sampler.sites()).astype(np.uint8), FEET: feet}
        state["parameters"] = self.extended.treebank_parameters(sampler.parameters())
        state["stops"] = sampler.stops()[: self.extended.n_labels]
        state |= {"all_parameters": sampler.parameters(), "all_stops": sampler.stops()}
        state["insertion_probabilities"] = sampler.insertion_probabilities()
        state |= {f"{SEATING_PREFIX}{kind}": rows for kind, rows in sampler.seating().items()}
        return state | {f"{MEAN_PREFIX}{name}": value for name, value in self.means.state().items()}

    def restore(self, state: State, symbols: np.ndarray) -> None:
        """Put back what `state` gave; the symbols are those of the nodes."""
        sampler, n_nodes = self.sampler, self.material.corpus.n_nodes
        require_amounts(state["sites"], "uint8", (n_nodes,))
        sampler.set_parameters(state["all_parameters"])
        sampler.set_stops(state["all_stops"])
        sampler.set_insertion_probabilities(state["insertion_probabilities"])
        sampler.set_insertions(state[FEET])
        inserted = state[FEET] > 0
        symbols, sites = symbols.copy(), np.where(inserted, 1, state["sites"])
        labels = self.extended.label[self.material.trees.label[inserted]]
        symbols[inserted] = np.searchsorted(self.extended.subcategories.label, labels)
        sampler.restore(symbols, sites, parts_of(state, SEATING_PREFIX))
        means = parts_of(state, MEAN_PREFIX)
        self.means = SiteMeans.restored(means, sampler, self.extended.words, self.levels)

    def export(self) -> Model:
        """The model of the mean of the averaged samples; before there are any, of the present one."""
        material, settings, means = self.material, self.material.settings, self.means
        if not means.n_samples:
            means = SiteMeans()
            means.add(self.sampler, self.extended.words, self.levels)
        grammar = InsertionGrammar(
            material.corpus,
            material.trees,
            material.words,
            self.splits[-1],
            means,
            settings.base,
            site_levels(settings.rule_back_off, self.splits[-1]),
            extended=self.extended,
            all_levels=self.levels,
            stacked=settings.stacked,
        )
        stages = site_cascade(grammar, self.splits, self.node_symbols())
        return material.exported(stages, means.n_samples, self.state())

    def describe(self, record: Record) -> dict[str, str]:
        others = {"sites": f"{record['sites']:.1%}", "insertions": f"{record['insertions']:.0f}"}
        return self.material.describe(len(self.splits), record, **others)
