"""How several models vote on a sentence: what each is asked, and which tree has the most votes.

With ``q_m(r)`` the posterior of the treebank rule ``r`` under model ``m``, and ``o(r)`` the odds of its label
(`tsgkit.parsing._objectives`), a product of rules is argmax_t prod_{r in t} o(r) [prod_m q_m(r)]^(1/M), a product of
trees argmax_t prod_m P_m(t), over the best trees of all models.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from tsgkit._forest import Forest, product_of
from tsgkit._pruning import Mask
from tsgkit._work_limit import WorkLimit
from tsgkit.parsing._engine import SMALLEST_POSTERIOR
from tsgkit.parsing._objectives import best_of_forest, take_shares
from tsgkit.parsing._search import Candidate
from tsgkit.treebank._trees import Bracket

# Trees that each model names for a product of trees.
N_BEST = 100
# What the first model prunes, which guides the others, may be what these are sure of; not so what one of these does.
RULES_THRESHOLD = 3e-4
GUIDED_THRESHOLD = 1e-3


@dataclass
class Vote:
    """What one model thinks of a sentence.

    Attributes
    ----------
    log_total : float
        The log probability of the words.
    label_map : ndarray of int32
        For every label of the model, its number among those of all models.
    forest : Forest, optional
        The model's rules with their posteriors, if the product needs them.
    trees : list of ndarray
        The best trees, as many as the product needs, in the labels of all models.
    mask : Mask, optional
        What the first model leaves for the others.
    brackets : dict
        The posterior of every bracket, if it is asked for.
    """

    log_total: float
    label_map: np.ndarray
    forest: Forest | None = None
    trees: list[np.ndarray] = field(default_factory=list)
    mask: Mask | None = None
    brackets: dict[Bracket, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Ballot:
    """The votes of the models that have an analysis of a sentence.

    Attributes
    ----------
    votes : list of Vote
        At least one.
    n_labels, root_label : int
        Of the labels that all models share.
    mean_log : callable
        The mean over these models of the log of a tree's exact probability.
    limit : WorkLimit
        When to stop working at the sentence.
    shares : bool
        Whether candidates are to have their shares of the objective, too.
    weigh : callable
        ``weigh(forest)`` multiplies posteriors by the odds of labels, if there is a model of these.
    """

    votes: list[Vote]
    n_labels: int
    root_label: int
    mean_log: Callable[[np.ndarray], float]
    limit: WorkLimit
    shares: bool
    weigh: Callable[[Forest], None]

    @property
    def log_total(self) -> float:
        """The mean over the models of the log probability of the words."""
        return float(np.mean([vote.log_total for vote in self.votes]))


@dataclass(frozen=True)
class Product:
    """A way to count votes.

    Attributes
    ----------
    name : str
    threshold : float, optional
        Of pruning, unless the settings give one; that of a single model if this does not either.
    guided_threshold : float
        Labels over spans with less than this posterior under the first model are pruned in the others, which prune at
        the same threshold unless the settings give one.
    needs_rules : bool
        Whether every model is asked for the posteriors of treebank rules.
    n_best : callable
        ``n_best(k)`` is how many trees every model is asked for when `k` are wanted.
    decide : callable
        ``decide(ballot, k)`` returns trees, best first.
    """

    name: str
    threshold: float | None
    guided_threshold: float
    needs_rules: bool
    n_best: Callable[[int], int]
    decide: Callable[[Ballot, int], list[Candidate]]


def by_rules(ballot: Ballot, k: int) -> list[Candidate]:
    """The best trees by the product of rule posteriors.

    A rule that a model does not have counts there with the smallest posterior that forests keep. A tree's share is
    that of the geometric mean over models of its product of posteriors, with the odds of labels.
    """
    n_votes = len(ballot.votes)
    forests = [(vote.forest, vote.label_map) for vote in ballot.votes if vote.forest is not None]
    forest = product_of(ballot.n_labels, forests, SMALLEST_POSTERIOR)
    forest.limit = ballot.limit
    ballot.weigh(forest)
    found = [
        Candidate(rows, score * n_votes, partial(ballot.mean_log, rows))
        for rows, score in best_of_forest(forest, k, product=True, root=ballot.root_label)
    ]
    if ballot.shares and found:
        take_shares(found, forest, product=True, root=ballot.root_label, power=n_votes)
    return found


def by_trees(ballot: Ballot, k: int) -> list[Candidate]:
    """All different trees of the models' best that every model can make, by their exact probabilities."""
    different = {rows.tobytes(): rows for vote in ballot.votes for rows in vote.trees}
    means = [(ballot.mean_log(rows), rows) for rows in different.values()]
    found = [
        Candidate(rows, mean * len(ballot.votes), mean, math.exp(min(mean - ballot.log_total, 0.0)))
        for mean, rows in means
        if mean > -math.inf
    ]
    return sorted(found, key=lambda candidate: -candidate.score)


RULES = Product("rules", RULES_THRESHOLD, GUIDED_THRESHOLD, True, lambda k: 0, by_rules)
TREES = Product("trees", None, GUIDED_THRESHOLD, False, lambda k: max(k, N_BEST), by_trees)
