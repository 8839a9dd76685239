"""The entry of symbol-refined grammars, with the sequence of their phases (Shindo et al. 2012).

Subcategories are split several times; then substitution sites, then sites and subcategories jointly, then all of it
with insertions is sampled. The phases are defined in `tsgkit.inference._srtsg_phases` and `srtsg_insertion`.
"""

from collections.abc import Callable, Sequence

from tsgkit.errors import UsageError
from tsgkit.inference._entry import ModelEntry
from tsgkit.inference._phases import Phase
from tsgkit.inference._srtsg_insertion import RefinedInsertionPhase
from tsgkit.inference._srtsg_phases import JointPhase, SitePhase, SplitPhase, Unsplit
from tsgkit.inference._srtsg_settings import SrSettings
from tsgkit.inference._srtsg_start import StartedSites, started_sites
from tsgkit.inference._start import Start
from tsgkit.models._fragments import FragmentTable
from tsgkit.models._model import Model
from tsgkit.models._subcategories import RefinedReader, SubcategoryTable, refined_fragments
from tsgkit.treebank import FlatCorpus, UnknownWords

__all__ = ["SRTSG", "SrSettings", "SrtsgEntry"]


class SrtsgEntry(ModelEntry):
    """A tree-substitution grammar with learned subcategories."""

    title = "Symbol-refined tree-substitution grammar"
    settings = SrSettings
    unknown = UnknownWords("unicode", 0)
    training_note = (
        "The log joint is that of the trees, their subcategories and their fragments together. When every subcategory"
        " is split in two, each node has one more variable, whose first value is random: the log joint falls, and"
        " rises while the sampler finds subcategories that predict the trees better. Merging the splits that are worth"
        " least removes variables again; phases with fragments add for every node whether it is a substitution site."
        " Values of different phases are those of different models and cannot be"
        " compared; convergence is judged by the last phase."
    )
    panels = ("training", "sizes", "fragments", "auxiliary", "subcategories", "derivations")
    learns_span_labels = True

    def phases(self, settings: SrSettings) -> Sequence[Phase]:
        """One phase for every split, and those of the later phases that have iterations."""
        schedule = settings.schedule
        planned: list[tuple[Callable[..., Phase], int]] = [(SplitPhase, schedule.split_iterations)] * schedule.splits
        planned += [(SitePhase, settings.site_iterations), (JointPhase, schedule.joint_iterations)]
        planned += [(RefinedInsertionPhase, settings.insertion_iterations)]
        planned = [(phase, iterations) for phase, iterations in planned if iterations]
        phases: list[Phase] = []
        n_before = 0
        for number, (phase, iterations) in enumerate(planned, start=1):
            averaging = settings.averaging(iterations, is_last=number == len(planned))
            phases.append(phase(settings, iterations, n_before, averaging))
            n_before += iterations
        return phases

    def material(self, corpus: FlatCorpus, settings: SrSettings, *, seed: int, threads: int) -> Unsplit:
        return Unsplit(corpus, settings, seed, threads)

    def skipped_phases(self, settings: SrSettings, start: Start) -> int:
        """The splits that the start has."""
        n_splits = len(SubcategoryTable.of_model(start.model).splits)
        if n_splits > settings.schedule.splits:
            raise UsageError(f"--splits={settings.splits}: {start.name} has {n_splits} splits already")
        if n_splits == len(self.phases(settings)):
            raise UsageError(
                f"{start.name} has all {n_splits} splits: no sweeps are left; give --joint-iterations,"
                " --site-iterations or more --splits"
            )
        return n_splits

    def begin_with(self, start: Start, material: Unsplit, settings: SrSettings) -> StartedSites:
        return started_sites(start, material)

    def fragments(self, model: Model) -> FragmentTable:
        """Fragments with subcategories at their roots and frontiers."""
        return refined_fragments(model)

    def derivations(self, model: Model) -> RefinedReader:
        return RefinedReader(model)

    def subcategories(self, model: Model) -> SubcategoryTable:
        return SubcategoryTable.of_model(model)


SRTSG = SrtsgEntry()
