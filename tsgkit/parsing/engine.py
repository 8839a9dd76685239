"""The engine: charts of a cascade of grammars for one sentence, each pruning the next, and the objectives.

One engine belongs to one thread. It knows ranks, labels and weights; words and trees are its caller's.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tsgkit._chart import DEFAULT_MAX_BYTES, Chart, Mask, Projection
from tsgkit._derivations import KBest, best_derivation, sample_derivations
from tsgkit._forest import Forest, forest_of
from tsgkit._grammar_index import GrammarIndex
from tsgkit._tree_score import TreeScorer
from tsgkit.errors import UsageError
from tsgkit.models.model import Stage
from tsgkit.parsing.lexical import Entries
from tsgkit.parsing.rows import project

OBJECTIVES = ("mpd", "mpp", "mpp-sampled", "mer", "mer-sampled", "max-rule", "max-rule-sampled")
PRUNING = ("posterior", "max-marginal")
# When pruning leaves no derivation, thresholds shrink by this and the sentence is tried again.
RELAXATION = 1e-3
# Of so many derivations, those of the same tree are added up.
MAX_DERIVATIONS_PER_TREE = 20
# Rules with less posterior probability are not considered by the objectives that add or multiply posteriors.
SMALLEST_POSTERIOR = 1e-5
# What has less than this part of the smallest share that is asked for is left out on the way there: for pruning, and
# for posteriors that are compared with each other.
NEGLIGIBLE_FOR_PRUNING, NEGLIGIBLE = 0.1, 1e-3


@dataclass(frozen=True)
class EngineSettings:
    """How sentences are searched.

    Parameters
    ----------
    objective : str
        One of `OBJECTIVES`: most probable derivation; most probable tree, from the k best derivations or
        from samples; most expected rules; largest product of rule posteriors, the last two with exact or
        sampled posteriors.
    threshold : float
        What has less than this share of the probability in a coarse chart is not looked at in the next;
        0 turns pruning off.
    pruning : {"posterior", "max-marginal"}
        By which share.
    n_samples : int
        Derivations to draw for the sampled objectives.
    n_derivations : int
        Derivations to add up for ``mpp``.
    max_bytes : int
        The most memory of one sentence's chart.
    """

    objective: str = "max-rule"
    threshold: float = 3e-4
    pruning: str = "posterior"
    n_samples: int = 1000
    n_derivations: int = 100
    max_bytes: int = DEFAULT_MAX_BYTES

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("objective", self.objective, OBJECTIVES),
            ("pruning", self.pruning, PRUNING),
        ):
            if value not in allowed:
                raise UsageError(f"{name} {value!r}: must be one of {', '.join(allowed)}")
        if not 0 <= self.threshold < 1:
            raise UsageError(f"threshold {self.threshold}: must be at least 0 and below 1")
        for name in ("n_samples", "n_derivations"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} {getattr(self, name)}: must be at least 1")


@dataclass
class Candidate:
    """A tree for a sentence.

    Attributes
    ----------
    rows : ndarray
        ``(label, start, end, kind)``.
    score : float
        By the objective; comparable between candidates of the same sentence only.
    log : float, or callable that returns it
        What `log_probability` is, or how to find it.
    """

    rows: np.ndarray
    score: float
    log: float | Callable[[], float]

    @property
    def log_probability(self) -> float:
        """Of the tree with its words, summed over all derivations; found when it is first asked for."""
        if callable(self.log):
            self.log = self.log()
        return self.log


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
    """Charts for one thread."""

    def __init__(self, cascade: Cascade, settings: EngineSettings) -> None:
        self.cascade, self.settings = cascade, settings
        self.charts = [Chart(index, settings.max_bytes) for index in cascade.indices]
        self.scorer = TreeScorer(cascade.indices[-1])
        self.label = cascade.grammars[-1].label
        self.root_label = int(self.label[cascade.grammars[-1].root])
        # For the sentence at work: log of true over sampled probability of a derivation, where they differ.
        self.log_correction: Callable[[np.ndarray, np.random.Generator], float] | None = None

    @property
    def chart(self) -> Chart:
        """The chart of the finest grammar."""
        return self.charts[-1]

    def search(self, entries: list[Entries], *, viterbi: bool, guide: Guide | None = None) -> bool:
        """Fill the finest chart, pruned by the coarser ones or a guide; whether the sentence has a derivation."""
        threshold = self.settings.threshold
        by_best = self.settings.pruning == "max-marginal"
        if guide is not None and self.refine(entries, threshold, viterbi=viterbi, by_best=by_best, guide=guide):
            return True
        if threshold == 0 or len(self.charts) == 1:
            return self.charts[-1].fill(*entries[-1], viterbi=viterbi) > -math.inf
        if not self.charts[0].fill(*entries[0], viterbi=by_best) > -math.inf:
            return self.charts[-1].fill(*entries[-1], viterbi=viterbi) > -math.inf
        for _ in range(3):
            if self.refine(entries, threshold, viterbi=viterbi, by_best=by_best):
                return True
            threshold *= RELAXATION
        return self.charts[-1].fill(*entries[-1], viterbi=viterbi) > -math.inf

    def refine(
        self, entries: list[Entries], threshold: float, *, viterbi: bool, by_best: bool, guide: Guide | None = None
    ) -> bool:
        """One pass down the cascade from a coarsest chart that is filled, or from a guide."""
        last = len(self.charts) - 1
        first = 1 if guide is None else guide.stage
        for number in range(first, len(self.charts)):
            projection = self.cascade.projections[number]
            if guide is not None and number == first:
                mask, projection = guide.mask, guide.projection
            else:
                mask = self.mask_of(number - 1, threshold)
            found = self.charts[number].fill(
                *entries[number], viterbi=viterbi if number == last else by_best, mask=mask, projection=projection
            )
            if not found > -math.inf:
                return False
        return True

    def mask_of(self, number: int, threshold: float) -> Mask:
        """What the filled chart of a grammar leaves for a finer one."""
        self.charts[number].fill_outside(threshold * NEGLIGIBLE_FOR_PRUNING)
        return self.charts[number].make_mask(threshold)

    def best(self, entries: list[Entries], random: np.random.Generator) -> Candidate | None:
        """The best tree by the objective; ``None`` when the sentence has no derivation."""
        candidates = self.candidates(entries, 1, random)
        return candidates[0] if candidates else None

    def candidates(self, entries: list[Entries], k: int, random: np.random.Generator) -> list[Candidate]:
        """Up to `k` different trees, best first by the objective."""
        objective = self.settings.objective
        if objective in ("mpd", "mpp"):
            if not self.search(entries, viterbi=True):
                return []
            if objective == "mpd" and k == 1:
                rows, log_weight = best_derivation(self.chart)
                return [self.candidate(project(rows, self.label), log_weight, entries)]
            return self.kbest_trees(entries, k, add_up=objective == "mpp")
        if not self.search(entries, viterbi=False):
            return []
        if objective == "mpp-sampled":
            return self.sampled_trees(entries, k, random)
        forest = self.sampled_forest(random) if objective.endswith("-sampled") else self.exact_forest()
        product = objective.startswith("max-rule")
        found, score = forest.best_tree(product, self.root_label)
        if found is None:
            # Every tree has a rule that is too improbable to be in the forest, or that was not sampled.
            self.search(entries, viterbi=True)
            return self.kbest_trees(entries, k, add_up=False)
        best = [self.candidate(found, score, entries)]
        if k == 1:
            return best
        return self.rescored(best, entries, k, forest, product)

    def candidate(self, rows: np.ndarray, score: float, entries: list[Entries]) -> Candidate:
        # Asked for later, perhaps on another thread, when this engine is at work on another sentence.
        return Candidate(rows, score, partial(tree_log_probability, self.cascade.indices[-1], rows, entries[-1]))

    def tree_log_probability(self, rows: np.ndarray, entries: list[Entries]) -> float:
        """The log of the exact probability of a tree with its words."""
        return tree_log_probability(self.scorer, rows, entries[-1])

    def exact_forest(self) -> Forest:
        """Treebank rules with exact posteriors, of a chart with inside values."""
        self.chart.fill_outside(SMALLEST_POSTERIOR * NEGLIGIBLE)
        return forest_of(self.chart, SMALLEST_POSTERIOR)

    def corrected(self, samples: list, random: np.random.Generator) -> list:
        """Samples of the model itself: Metropolis-Hastings with the drawn derivations as proposals."""
        assert self.log_correction is not None
        kept: list = []
        log_ratio = -math.inf
        for sample in samples:
            proposed = self.log_correction(sample[0], random)
            if not kept or math.log(1.0 - random.random()) < proposed - log_ratio:
                kept.append(sample)
                log_ratio = proposed
            else:
                kept.append(kept[-1])
        return kept

    def sampled_forest(self, random: np.random.Generator) -> Forest:
        """Treebank rules with the share of sampled derivations that contain them."""
        trees = self.drawn_trees(random)
        rules = [rules_of_rows(rows) for _, rows in trees]
        shares = np.repeat([share for share, _ in trees], [len(rows) for rows in rules])
        return Forest(self.chart.n_words, self.cascade.indices[-1].n_labels, np.concatenate(rules), shares)

    def sampled_trees(self, entries: list[Entries], k: int, random: np.random.Generator) -> list[Candidate]:
        """Trees by how often they were sampled."""
        best = sorted(self.drawn_trees(random), key=lambda entry: -entry[0])[:k]
        return [self.candidate(rows, share, entries) for share, rows in best]

    def drawn_trees(self, random: np.random.Generator) -> list[tuple[float, np.ndarray]]:
        """The different trees of sampled derivations, each with its share of the samples."""
        samples = sample_derivations(self.chart, self.settings.n_samples, random.bit_generator)
        if self.log_correction is not None:
            samples = self.corrected(samples, random)
        trees: dict[bytes, np.ndarray] = {}
        counts: Counter[bytes] = Counter()
        for derivation, _ in samples:
            rows = project(derivation, self.label)
            key = rows.tobytes()
            trees.setdefault(key, rows)
            counts[key] += 1
        return [(counts[key] / self.settings.n_samples, rows) for key, rows in trees.items()]

    def kbest_trees(self, entries: list[Entries], k: int, *, add_up: bool) -> list[Candidate]:
        """Different trees from the best derivations, by their best one or by the sum of those found."""
        derivations = KBest(self.chart)
        limit = max(self.settings.n_derivations if add_up else 0, k * MAX_DERIVATIONS_PER_TREE)
        trees: dict[bytes, list] = {}
        for number in range(limit):
            found = derivations.derivation(number)
            if found is None or (len(trees) >= k and not add_up):
                break
            rows = project(found[0], self.label)
            entry = trees.setdefault(rows.tobytes(), [-math.inf, rows])
            entry[0] = np.logaddexp(entry[0], found[1]) if add_up else max(entry[0], found[1])
        best = sorted(trees.values(), key=lambda entry: -entry[0])[:k]
        return [self.candidate(rows, float(score), entries) for score, rows in best]

    def rescored(
        self, best: list[Candidate], entries: list[Entries], k: int, forest: Forest, product: bool
    ) -> list[Candidate]:
        """The best tree by rule posteriors and, after it, trees of the best derivations by the same score."""
        if not self.search(entries, viterbi=True):
            return best
        posterior = dict(zip(map(bytes, np.ascontiguousarray(forest.rules)), forest.posteriors, strict=True))
        seen = {best[0].rows.tobytes()}
        others = []
        for other in self.kbest_trees(entries, k, add_up=False):
            if other.rows.tobytes() not in seen:
                values = [posterior.get(bytes(rule), 0.0) for rule in rules_of_rows(other.rows)]
                score = sum(math.log(value) if value else -math.inf for value in values) if product else sum(values)
                others.append(Candidate(other.rows, float(score), other.log))
        others.sort(key=lambda candidate: -candidate.score)
        return (best + others)[:k]


def tree_log_probability(scorer: TreeScorer | GrammarIndex, rows: np.ndarray, entries: Entries) -> float:
    """The log of the exact probability of a tree with its words, by a scorer or one of its own."""
    if isinstance(scorer, GrammarIndex):
        scorer = TreeScorer(scorer)
    return float(scorer.log_weight(np.ascontiguousarray(rows), *entries))


def rules_of_rows(rows: np.ndarray) -> np.ndarray:
    """The treebank rules of a tree at their places, as `Forest` takes them."""
    rules = []
    waiting: list[tuple[int, int]] = []  # label and start of subtrees that wait for their parent
    for label, start, end, n_children in reversed(rows.tolist()):
        left = waiting.pop() if n_children else (-1, -1)
        right = waiting.pop() if n_children == 2 else (-1, -1)
        rules.append((start, right[1], end, label, left[0], right[0]))
        waiting.append((label, start))
    return np.array(rules[::-1], dtype=np.int32)
