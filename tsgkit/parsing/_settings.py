"""The settings of a parser: the one place for their defaults and for what they may be.

Between the command line, a job on a cluster or Python on one side and the engine on the other stands this one value.
"""

from dataclasses import dataclass, fields, replace
from typing import Literal, TypedDict, Unpack

from tsgkit._chart import DEFAULT_MAX_BYTES
from tsgkit._guesses import did_you_mean
from tsgkit._settings import Checked
from tsgkit.parsing._objectives import OBJECTIVES, PRODUCTS, Needs

PRUNING = ("posterior", "max-marginal")
TAG_MODES = ("none", "hard", "soft")
THRESHOLD = 1e-3
# The coarsest grammar knows least: what it prunes is a smaller share.
COARSE_THRESHOLD = 3e-5
CLOSING = 1e-3
# More would let the grammar choose among equally good trees only.
MOST_SPAN_POWER = 100.0


class ParserParameters(TypedDict, total=False):
    """The fields of `ParserSettings`: what type checkers see where they are given by name."""

    objective: str
    product: str
    threshold: float | None
    coarse_threshold: float | None
    closing: float
    pruning: Literal["posterior", "max-marginal"]
    span_power: float
    n_samples: int
    n_candidates: int
    correct: bool
    max_bytes: int
    max_length: int | None
    max_seconds: float | None
    tags: Literal["none", "hard", "soft"]
    seed: int


@dataclass(frozen=True, repr=False)
class ParserSettings(Checked):
    """How sentences are parsed.

    Parameters
    ----------
    objective : str
        What the best tree is, by its name in `tsgkit.parsing.objectives.OBJECTIVES`.
    product : str
        What several models multiply, in the place of an objective: ``rules`` (posteriors of treebank rules) or
        ``trees`` (probabilities of trees); see `tsgkit.parsing._product`.
    threshold : float, optional
        What has less than this share of the probability in the chart of one stage is pruned in the next; 0 turns
        pruning off. Unless given, 1e-3; for a product of rules 3e-4 in the first model, which guides the others, and
        1e-3 in those.
    coarse_threshold : float, optional
        The same for the chart of the coarsest grammar, which knows least; unless given, 3e-5, or the threshold if that
        is smaller.
    closing : float
        Before any grammar is looked at, spans are closed that have a node with less than this probability, as a model
        of the words around their ends sees it (`tsgkit.models._closing`); 0 leaves all open. Without pruning, and where
        a model has one grammar only, no span is closed.
    pruning : {"posterior", "max-marginal"}
        By which share.
    span_power : float
        With the objective ``max-rule``, and with a product of rules, the posterior of a rule is multiplied by the odds
        of its label to this power, as a model of the words around the ends of its span sees them
        (`tsgkit.models._span_labels`), if the model has one; 0 for the grammar alone.
    n_samples : int
        Derivations to draw for an objective that needs samples.
    n_candidates : int
        Trees with the best derivations, among which ``mpp`` looks for the most probable ones.
    correct : bool
        Accept or reject every sample by the model itself instead of its frozen grammar; for an objective that needs
        samples, with a TSG of one sample (`tsgkit.models._tsg_predictive.DerivationCorrection`).
    max_bytes : int
        The most memory of one sentence's chart.
    max_length : int, optional
        Longer sentences get a flat fallback tree.
    max_seconds : float, optional
        A sentence that takes longer, by the clock, gets a flat fallback tree, marked as ``timeout``. Which ones do
        depends on the speed of the machine.
    tags : {"none", "hard", "soft"}
        What to do with tags when sentences come with them: ignore them, allow no other, prefer them.
    seed : int
        Of the samples; those of a sentence depend on it and on the sentence's number alone.

    Examples
    --------
    >>> ParserSettings().objective
    'max-rule'
    >>> ParserSettings(objective="mpd").with_changes(seed=1)
    ParserSettings(objective='mpd', seed=1)
    >>> ParserSettings(threshold=2)
    Traceback (most recent call last):
        ...
    tsgkit.errors.SettingError: threshold 2: must be at least 0 and below 1
    """

    objective: str = "max-rule"
    product: str = "rules"
    threshold: float | None = None
    coarse_threshold: float | None = None
    closing: float = CLOSING
    pruning: str = "posterior"
    span_power: float = 1.0
    n_samples: int = 1000
    n_candidates: int = 100
    correct: bool = False
    max_bytes: int = DEFAULT_MAX_BYTES
    max_length: int | None = None
    max_seconds: float | None = None
    tags: str = "none"
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_choice("objective", OBJECTIVES.names)
        self.require_choice("product", PRODUCTS.names)
        self.require_choice("pruning", PRUNING)
        self.require_choice("tags", TAG_MODES)
        self.require_least(1, "n_samples", "n_candidates", "max_bytes")
        self.require("threshold", 0 <= self.pruning_threshold < 1, "must be at least 0 and below 1")
        self.require("coarse_threshold", 0 <= self.threshold_of(0) < 1, "must be at least 0 and below 1")
        self.require("closing", 0 <= self.closing < 1, "must be at least 0 and below 1")
        most = MOST_SPAN_POWER
        self.require("span_power", 0 <= self.span_power <= most, f"must be at least 0 and at most {most:g}")
        self.require("max_length", self.max_length is None or self.max_length >= 0, "must be at least 0")
        self.require("max_seconds", self.max_seconds is None or self.max_seconds > 0, "must be above 0")
        self.require_least(0, "seed")
        self.require("seed", self.seed < 1 << 63, "must be below 2^63")
        has_samples = OBJECTIVES[self.objective].needs is Needs.SAMPLES
        self.require("correct", has_samples or not self.correct, "goes with an objective over samples, as mer-sampled")

    def with_changes(self, **changes: Unpack[ParserParameters]) -> "ParserSettings":
        """The same settings but for these, checked again.

        Parameters
        ----------
        **changes
            Fields by name.

        Examples
        --------
        >>> ParserSettings().with_changes(treshold=0.0)
        Traceback (most recent call last):
            ...
        TypeError: parsers have no setting 'treshold'; did you mean threshold?
        """
        known = [each.name for each in fields(self)]
        if strays := [name for name in changes if name not in known]:
            raise TypeError(f"parsers have no setting {strays[0]!r}{did_you_mean(strays[0], known)}")
        return replace(self, **changes)

    def __repr__(self) -> str:
        """The settings that are not the defaults."""
        values = ((each, getattr(self, each.name)) for each in fields(self))
        changed = (f"{each.name}={value!r}" for each, value in values if value != each.default)
        return f"{type(self).__name__}({', '.join(changed)})"

    @property
    def pruning_threshold(self) -> float:
        """The threshold of all grammars but the coarsest, or its default for one model."""
        return THRESHOLD if self.threshold is None else self.threshold

    def threshold_of(self, stage: int) -> float:
        """Below which share the chart of a grammar prunes the next.

        Parameters
        ----------
        stage : int
            The number of the grammar; the coarsest is number 0.
        """
        if stage > 0:
            return self.pruning_threshold
        if self.coarse_threshold is None:
            return min(COARSE_THRESHOLD, self.pruning_threshold)
        return self.coarse_threshold

    @property
    def prunes(self) -> bool:
        """Whether coarser grammars are used at all."""
        return self.pruning_threshold > 0

    @property
    def closes_cells(self) -> bool:
        """Whether spans are closed before any grammar is looked at."""
        return self.prunes and self.closing > 0
