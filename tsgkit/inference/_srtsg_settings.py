"""The settings of symbol-refined grammars: the lengths of the phases of their training, and their options."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Self

from tsgkit.errors import UsageError
from tsgkit.inference._insertion import require_insertion_probability
from tsgkit.inference._phases import Averaging, Record
from tsgkit.inference._settings import SHARES, SamplingSettings
from tsgkit.models._back_off import BACK_OFFS, BackOff
from tsgkit.models._base_distributions import BASE_DISTRIBUTIONS

LOSSES = ("marginal", "joint")
MODES = ("exact", "map")
SITE_SAMPLERS = ("blocked", "local")
LEXICONS = ("classes", "suffixes", "rules")
MOST_SPLITS = 10
# Fewer sweeps after a split than this are no use: with less time, there are fewer splits.
FEWEST_SWEEPS = 10


@dataclass(frozen=True)
class Schedule:
    """The phases of the training for treebanks of a size; see docs/results/size.rst and srtsg.rst for why.

    Attributes
    ----------
    splits, split_iterations, joint_iterations : int
        As in `SrSettings`.
    """

    splits: int
    split_iterations: int
    joint_iterations: int


# For treebanks with up to so many tokens; the last one for all that are larger.
SMALL, LARGE = 30_000, 150_000
SCHEDULES = ((SMALL, Schedule(4, 200, 300)), (LARGE, Schedule(4, 100, 200)), (math.inf, Schedule(5, 100, 200)))


def by_size() -> dict[str, str]:
    """The settings of a schedule, with all their values in words."""
    first = SCHEDULES[0][1]
    texts = {name: str(value) for name, value in asdict(first).items()}
    for (limit, before), (_, schedule) in pairwise(SCHEDULES):
        for name, value in asdict(schedule).items():
            if value != getattr(before, name):
                texts[name] += f"; over {limit:,} tokens {value}"
    return texts


@dataclass(frozen=True, kw_only=True)
class SrSettings(SamplingSettings):
    """The settings of a symbol-refined grammar, in addition to those of all sampled models (`SamplingSettings`).

    Parameters
    ----------
    splits : int, optional
        Number of times that every subcategory is split in two; by default, it depends on the size of the treebank, as
        do the next one and `joint_iterations`.
    split_iterations : int, optional
        Sweeps over the treebank after every split; annealing starts again with every split and later phase.
    back_off : str
        What refined rules back off to before the base distribution P0; see `tsgkit.models.back_off`. With
        ``unrefined``, these are rules whose root has no subcategory.
    levels : int, optional
        How many levels of the back-off are in use, P0 among them; unless given, all. With ``unrefined`` there are 3;
        with 2, refined rules back off to P0 directly, with 1, fragments do.
    base : str
        The base distribution P0 of rules; see `tsgkit.models.base_distributions`.
    lexicon : {"classes", "suffixes", "rules"}
        What a tag and a word back off to, in trees that keep all words: the class of the word, which has restaurants of
        its own at any number of `levels`; the same, with classes of shorter suffixes below; or what all other rules
        back off to. Where rare words are replaced by their classes, words are rules in any case.
    merge : float
        Fraction of the splits that are undone: those with the smallest loss.
    merge_at : float
        Fraction of the iterations of a split after which they are undone; the rest of the iterations follows.
    merge_loss : {"marginal", "joint"}
        The loss of a merge: in the marginal likelihood of the trees, or in the joint probability.
    type_mode : {"exact", "map"}
        Whether a type move may relabel a rule to one in use; ``map`` allows it and does not sample the posterior.
    site_iterations : int
        Number of sweeps after the splits that sample substitution sites, so that fragments are larger than rules.
    sites : {"blocked", "local"}
        How they are sampled: whole trees, or single sites.
    joint_iterations : int, optional
        Number of sweeps after these that sample sites and subcategories jointly.
    fragment_moves : int
        Number of proposals after every sweep over sites to cut or join all occurrences of a fragment at once.
    stop_prob : float, optional
        The stop probability in the base distribution of fragments; by default one per label is sampled.
    insertion_iterations : int
        Number of sweeps at the end that sample sites, subcategories and insertions jointly.
    stacked, insertion_probability
        Settings of insertions; see `tsgkit.inference._insertion.InsertionSettings`.
    """

    kind = "srtsg"
    by_size = by_size()

    batch: int = 4
    splits: int | None = None
    split_iterations: int | None = None
    back_off: str = "unrefined"
    levels: int | None = None
    base: str = "uniform"
    lexicon: str = "suffixes"
    merge: float = 0.5
    merge_at: float = 0.6
    merge_loss: str = "marginal"
    type_mode: str = "exact"
    average: int = 30
    average_every: int = 4
    site_iterations: int = 0
    sites: str = "blocked"
    joint_iterations: int | None = None
    fragment_moves: int = 0
    stop_prob: float | None = None
    insertion_iterations: int = 0
    stacked: bool = False
    insertion_probability: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_choice("base", BASE_DISTRIBUTIONS.names)
        self.require_choice("merge_loss", LOSSES)
        self.require_choice("lexicon", LEXICONS)
        self.require_choice("type_mode", MODES)
        self.require_choice("back_off", BACK_OFFS.names)
        if self.levels is not None:
            self.require_choice("levels", range(1, BACK_OFFS[self.back_off].n_levels + 1))
        self.require_choice("sites", SITE_SAMPLERS)
        given = {name for name in self.by_size if getattr(self, name) is not None}
        self.require_least(1, *given & {"splits", "split_iterations"})
        self.require_least(0, *given & {"joint_iterations"})
        few = self.splits is None or self.splits <= MOST_SPLITS
        self.require("splits", few, "more would make over a thousand of every label")
        self.require("merge", 0 <= self.merge < 1, "must be at least 0 and below 1")
        self.require("merge_at", 0 < self.merge_at <= 1, "must be above 0 and at most 1")
        within = self.split_iterations is None or self.anneal_iterations <= self.split_iterations
        self.require("anneal_iterations", within, "annealing must end within a split")
        self.require_least(0, "site_iterations", "insertion_iterations", "fragment_moves")
        stop = self.stop_prob
        self.require("stop_prob", stop is None or 0 < stop < 1, "must lie between 0 and 1")
        if not self.insertion_iterations and (self.stacked or self.insertion_probability is not None):
            raise UsageError("stacked insertions and their probability need insertion_iterations")
        require_insertion_probability(self, self.insertion_probability)

    def for_size(self, n_tokens: int) -> Self:
        """The settings for a treebank of this size: what is not given is that of `SCHEDULES`."""
        schedule = next(schedule for limit, schedule in SCHEDULES if n_tokens <= limit)
        return replace(self, **{name: value for name, value in asdict(schedule).items() if getattr(self, name) is None})

    def shorter(self) -> Iterator[Self]:
        """With shares of all sweeps; at last without fragments, and with fewer and fewer splits."""
        schedule = self.schedule
        for share in SHARES:
            numbers = {
                name: round(share * getattr(self, name))
                for name in ("split_iterations", "site_iterations", "joint_iterations", "insertion_iterations")
            }
            if numbers["split_iterations"] < FEWEST_SWEEPS:
                break
            last = [number for number in numbers.values() if number][-1]
            yield self.with_sweeps(last, **numbers)
        without = {"site_iterations": 0, "joint_iterations": 0, "insertion_iterations": 0}
        for n_splits in range(schedule.splits, 0, -1):
            yield self.with_sweeps(FEWEST_SWEEPS, splits=n_splits, split_iterations=FEWEST_SWEEPS, **without)

    @property
    def schedule(self) -> Schedule:
        """The numbers that depend on the size of the treebank, which `for_size` fills in."""
        if self.splits is None or self.split_iterations is None or self.joint_iterations is None:
            raise ValueError("the numbers of splits and sweeps depend on the treebank: use for_size")
        return Schedule(self.splits, self.split_iterations, self.joint_iterations)

    @property
    def rule_back_off(self) -> BackOff:
        """The back-off with the levels that are in use."""
        return BACK_OFFS[self.back_off].truncated(self.levels)

    @property
    def iterations(self) -> int:
        """The total number of sweeps."""
        schedule = self.schedule
        sites = self.site_iterations + schedule.joint_iterations + self.insertion_iterations
        return schedule.splits * schedule.split_iterations + sites

    @property
    def merge_step(self) -> int:
        """The iteration of a split after which subcategories are merged."""
        return max(1, round(self.merge_at * self.schedule.split_iterations))

    @property
    def not_yet(self) -> Record:
        """What phases without insertions record of them, if a later phase has some."""
        return {"auxiliary": 0.0, "insertions": 0.0} if self.insertion_iterations else {}

    def averaging(self, iterations: int, is_last: bool) -> Averaging:
        """The averaging of a phase: only the last one is averaged."""
        return Averaging(self.average if is_last else 0, self.average_every, iterations)
