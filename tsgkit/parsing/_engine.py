"""The engine: charts of a coarse-to-fine cascade of grammars for one sentence, each pruning the next.

One engine belongs to one thread. It knows ranks, labels and weights; words and trees are its caller's. A stage is
filled where the one before it leaves at least the threshold of the probability, p(label, span | words) >= threshold.
The coarsest chart may be filled in some of its cells only, which a model of words chooses (`tsgkit.models._closing`).
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from tsgkit._cell_closing import OpenCells
from tsgkit._chart import Chart
from tsgkit._forest import Forest
from tsgkit._grammar_index import GrammarIndex
from tsgkit._posteriors import forest_of
from tsgkit._pruning import Mask, Projection
from tsgkit._tree_score import TreeScorer
from tsgkit._work_limit import WorkLimit
from tsgkit.models._model import Stage
from tsgkit.parsing._lexical import Entries, SentenceEntries
from tsgkit.parsing._settings import ParserSettings

# When pruning leaves no derivation, the sentence is tried again with thresholds that are multiplied by these.
RELAXATIONS = (1.0, 1e-3, 1e-6)
# Rules with less posterior probability are not considered by the objectives that add or multiply posteriors.
SMALLEST_POSTERIOR = 1e-5
# What has less than this part of the smallest share that is asked for is left out on the way there: for pruning, and
# for posteriors that are compared with each other.
NEGLIGIBLE_FOR_PRUNING, NEGLIGIBLE = 0.3, 1e-3


class Cascade:
    """Indexed grammars from coarse to fine with the projections between them; shared by all threads."""

    def __init__(self, stages: list[Stage]) -> None:
        self.grammars = [stage.grammar for stage in stages]
        self.indices = [GrammarIndex(grammar) for grammar in self.grammars]
        self.projections: list[Projection | None] = [None]
        for number, stage in enumerate(stages[1:], start=1):
            if stage.label_map is None:
                raise ValueError(f"stage {number} has no map to the labels of the coarser grammar before it")
            fine, coarse = self.indices[number], self.indices[number - 1]
            self.projections.append(Projection(fine, coarse, stage.label_map, stage.symbol_map))


@dataclass
class Guide:
    """What another model has left of a sentence, in the place of the coarser grammars of a cascade.

    Attributes
    ----------
    mask : Mask
        From a chart of the other model.
    projection : Projection
        From the grammar at `stage` of the cascade to that of the other chart.
    stage : int
    """

    mask: Mask
    projection: Projection
    stage: int


class Engine:
    """Charts for one thread.

    Parameters
    ----------
    cascade : Cascade
        Shared by the engines of all threads.
    settings : ParserSettings
        Of them, the engine reads how to prune and how much memory there is.
    """

    def __init__(self, cascade: Cascade, settings: ParserSettings) -> None:
        self.cascade, self.settings = cascade, settings
        self.charts = [Chart(index, settings.max_bytes) for index in cascade.indices]
        self.scorer = TreeScorer(cascade.indices[-1])
        self.label = cascade.grammars[-1].label
        self.root_label = int(self.label[cascade.grammars[-1].root])

    def obey(self, limit: WorkLimit) -> None:
        """Stop working at a sentence when a limit says so."""
        for chart in self.charts:
            chart.limit = limit
        self.scorer.limit = limit

    @property
    def chart(self) -> Chart:
        """The chart of the finest grammar."""
        return self.charts[-1]

    def fill(self, entries: SentenceEntries, *, viterbi: bool, guide: Guide | None = None) -> bool:
        """Fill the finest chart, pruned by the coarser ones or a guide; whether the sentence has a derivation."""
        by_best = self.settings.pruning == "max-marginal"
        refine = partial(self.refine, entries, viterbi=viterbi, by_best=by_best)
        if guide is not None and refine(guide=guide):
            return True
        if not self.settings.prunes or len(self.charts) == 1:
            return self.fill_finest(entries, viterbi=viterbi)
        if entries.open_cells is not None and self.fill_coarsest(entries, by_best, entries.open_cells) and refine():
            return True
        if not self.fill_coarsest(entries, by_best):
            return self.fill_finest(entries, viterbi=viterbi)
        return any(refine(factor) for factor in RELAXATIONS) or self.fill_finest(entries, viterbi=viterbi)

    def fill_coarsest(self, entries: SentenceEntries, by_best: bool, open_cells: OpenCells | None = None) -> bool:
        """Fill the coarsest chart, or its open cells alone; whether it has a derivation."""
        constraints = entries.constraints_of(0)
        found = self.charts[0].fill(*entries[0], viterbi=by_best, open_cells=open_cells, constraints=constraints)
        return found > -math.inf

    def fill_finest(self, entries: SentenceEntries, *, viterbi: bool) -> bool:
        """Fill the finest chart without pruning; whether it has a derivation."""
        return self.chart.fill(*entries[-1], viterbi=viterbi, constraints=entries.constraints_of(-1)) > -math.inf

    def refine(
        self,
        entries: SentenceEntries,
        factor: float = 1.0,
        *,
        viterbi: bool,
        by_best: bool,
        guide: Guide | None = None,
    ) -> bool:
        """One pass down the cascade from a filled coarsest chart, or from a guide; thresholds times a factor."""
        last = len(self.charts) - 1
        first = 1 if guide is None else guide.stage
        for number in range(first, len(self.charts)):
            projection = self.cascade.projections[number]
            if guide is not None and number == first:
                mask, projection = guide.mask, guide.projection
            elif self.charts[number - 1].mask_bytes > self.settings.max_bytes:
                return False
            else:
                mask = self.mask_of(number - 1, factor * self.settings.threshold_of(number - 1))
            found = self.charts[number].fill(
                *entries[number],
                viterbi=viterbi if number == last else by_best,
                mask=mask,
                projection=projection,
                constraints=entries.constraints_of(number),
            )
            if not found > -math.inf:
                return False
        return True

    def mask_of(self, number: int, threshold: float, *, symbols: bool = True) -> Mask:
        """What the filled chart of a grammar leaves for a finer one, or, without symbols, for that of another model."""
        self.charts[number].fill_outside(threshold * NEGLIGIBLE_FOR_PRUNING)
        return self.charts[number].make_mask(threshold, symbols=symbols)

    def exact_forest(self) -> Forest:
        """Treebank rules with exact posteriors, of a chart with inside values."""
        self.chart.fill_outside(SMALLEST_POSTERIOR * NEGLIGIBLE)
        return forest_of(self.chart, SMALLEST_POSTERIOR)

    def tree_log_probability(self, rows: np.ndarray, entries: SentenceEntries) -> float:
        """The log of the exact probability of a tree with its words."""
        return tree_log_probability(self.scorer, rows, entries[-1])


def tree_log_probability(scorer: TreeScorer | GrammarIndex, rows: np.ndarray, entries: Entries) -> float:
    """The log of the exact probability of a tree with its words, by a scorer or a new one."""
    if isinstance(scorer, GrammarIndex):
        scorer = TreeScorer(scorer)
    return float(scorer.log_weight(np.ascontiguousarray(rows), *entries))
