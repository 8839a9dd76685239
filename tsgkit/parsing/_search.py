"""The search for one sentence's trees: what an objective can ask once the charts are filled.

Between the engine, which fills charts, and the objectives, which choose among trees. Trees are rows
``(label, start, end, kind)``, see `tsgkit.parsing._rows`; a tree's probability is the sum over its derivations.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tsgkit._derivations import best_derivation, sample_derivations
from tsgkit._forest import Forest
from tsgkit._tree_ranking import TreeRanking
from tsgkit.parsing._constraints import StateCodes
from tsgkit.parsing._engine import Engine, Guide, tree_log_probability
from tsgkit.parsing._lexical import SentenceEntries
from tsgkit.parsing._objectives import Needs
from tsgkit.parsing._rows import project, rules_of_rows

# The log of the true over the sampled probability of a derivation.
LogCorrection = Callable[[np.ndarray, np.random.Generator], float]


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
    share : float, optional
        What part of the objective the tree has, of all trees; see `tsgkit.parsing.objectives.Objective`.
    """

    rows: np.ndarray
    score: float
    log: float | Callable[[], float]
    share: float | None = None

    @property
    def log_probability(self) -> float:
        """Of the tree with its words, summed over all derivations; found when it is first asked for."""
        if callable(self.log):
            self.log = self.log()
        return self.log


class Search:
    """One sentence in the charts of an engine.

    Parameters
    ----------
    engine : Engine
    entries : SentenceEntries
        The lexical entries of the sentence.
    needs : Needs
        What the finest chart is filled with.
    random : numpy.random.Generator, optional
        For samples.
    log_correction : callable, optional
        By which samples are accepted or rejected.
    codes : StateCodes, optional
        Of the brackets that the trees must have, if there are any.
    shares : bool
        Whether candidates are to have their shares, too.
    """

    def __init__(
        self,
        engine: Engine,
        entries: SentenceEntries,
        needs: Needs,
        random: np.random.Generator | None = None,
        log_correction: LogCorrection | None = None,
        *,
        codes: StateCodes | None = None,
        shares: bool = False,
    ) -> None:
        self.engine, self.entries, self.needs = engine, entries, needs
        self.random, self.log_correction, self.codes, self.shares = random, log_correction, codes, shares

    def fill(self, guide: Guide | None = None) -> bool:
        """Fill the charts; whether the sentence has a derivation."""
        return self.engine.fill(self.entries, viterbi=self.needs is Needs.VITERBI, guide=guide)

    # ---- what objectives ask -------------------------------------------------------------------------

    @property
    def n_words(self) -> int:
        return self.engine.chart.n_words

    @property
    def labels(self) -> Sequence[str]:
        """The names of labels, by number, as binarisation left them."""
        return self.engine.cascade.grammars[-1].labels

    @property
    def root_label(self) -> int:
        """The number of the label that all trees have at their root."""
        return self.engine.root_label

    def candidate(self, rows: np.ndarray, score: float, share: float | None = None) -> Candidate:
        """A tree with its score, as `tsgkit.parsing.objectives.Objective.decode` returns it."""
        # The probability is asked for later, perhaps on another thread, when the engine is at work on another sentence.
        index = self.engine.cascade.indices[-1]
        return Candidate(rows, score, partial(tree_log_probability, index, rows, self.entries[-1]), share)

    def forest(self) -> Forest:
        """Treebank rules with their posteriors: exact ones, or shares of the samples if these are needed."""
        if self.needs is not Needs.SAMPLES:
            return self.engine.exact_forest()
        trees = self.sampled_trees()
        rules = [rules_of_rows(rows if self.codes is None else self.codes.rows(rows)) for _, rows in trees]
        shares = np.repeat([share for share, _ in trees], [len(rows) for rows in rules])
        forest = Forest(
            self.n_words,
            self.engine.cascade.indices[-1].n_labels,
            np.concatenate([np.empty((0, 6), np.int32), *rules]),
            shares,
            n_states=1 if self.codes is None else self.codes.n_states,
        )
        forest.limit = self.engine.chart.limit
        return forest

    def weigh(self, forest: Forest) -> None:
        """Multiply the posteriors of a forest by the odds of labels, if there is a model of these."""
        if self.entries.weigh is not None:
            self.entries.weigh(forest)

    def sampled_trees(self) -> list[tuple[float, np.ndarray]]:
        """The different trees of sampled derivations, each with its share of the samples.

        None where derivations are too long to draw: a cycle of unary rules with nearly all of the weight.
        """
        if self.random is None:
            raise ValueError("samples need a random generator")
        n_samples = self.engine.settings.n_samples
        try:
            samples = sample_derivations(self.engine.chart, n_samples, self.random.bit_generator)
        except OverflowError:
            return []
        if self.log_correction is not None:
            samples = corrected(samples, self.log_correction, self.random)
        trees: dict[bytes, np.ndarray] = {}
        counts: Counter[bytes] = Counter()
        for derivation, _ in samples:
            rows = project(derivation, self.engine.label)
            key = rows.tobytes()
            trees.setdefault(key, rows)
            counts[key] += 1
        return [(counts[key] / n_samples, rows) for key, rows in trees.items()]

    def best_derivation(self) -> tuple[np.ndarray, float]:
        """The tree of the best derivation, and the log of its weight."""
        rows, log_weight = best_derivation(self.engine.chart)
        return project(rows, self.engine.label), log_weight

    def kbest_trees(self, k: int) -> list[Candidate]:
        """The `k` trees with the best derivations, all different; fewer only if there are no more.

        A chart that was filled with other values is filled again with those of the best derivations.
        """
        if not self.engine.chart.is_viterbi and not self.engine.fill(self.entries, viterbi=True):
            return []
        return [self.candidate(rows, score) for rows, score in first_trees(TreeRanking(self.engine.chart), k)]

    def most_probable_trees(self, k: int, n_candidates: int) -> list[Candidate]:
        """The `k` most probable trees, summed over all derivations, among those with the best derivations."""
        found = []
        for candidate in self.kbest_trees(max(k, n_candidates)):
            log_probability = self.engine.tree_log_probability(candidate.rows, self.entries)
            found.append(Candidate(candidate.rows, log_probability, log_probability))
        return sorted(found, key=lambda candidate: -candidate.score)[:k]


def first_trees(ranking: TreeRanking, k: int) -> Iterator[tuple[np.ndarray, float]]:
    """The rows and scores of the first `k` trees of a ranking, or of all that it has."""
    for number in range(k):
        found = ranking.tree(number)
        if found is None:
            return
        yield found


def corrected(samples: list, log_correction: LogCorrection, random: np.random.Generator) -> list:
    """Samples of the model itself: Metropolis-Hastings with the drawn derivations as proposals."""
    kept: list = []
    log_ratio = -math.inf
    for sample in samples:
        proposed = log_correction(sample[0], random)
        if not kept or math.log(1.0 - random.random()) < proposed - log_ratio:
            kept.append(sample)
            log_ratio = proposed
        else:
            kept.append(kept[-1])
    return kept
