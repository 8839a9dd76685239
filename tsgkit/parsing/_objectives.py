"""Objectives: which of a sentence's trees is the best one. Each is a value in a table, `OBJECTIVES`.

With ``q(r)`` the posterior probability that the treebank rule ``r`` is in the tree, at its place:

* ``mpd``: the tree of the most probable derivation;
* ``mpp``: the most probable tree, argmax_t sum_{d of t} P(d), among those with the best derivations;
* ``mer``: the most expected rules, argmax_t sum_{r in t} q(r);
* ``max-rule``: argmax_t prod_{r in t} q(r) o(r), where ``o(r)`` is the odds of the label of a rule with two children to
  the power of `span_power`, if the model knows the labels of spans (`tsgkit.models._span_labels`), and 1 otherwise;
* ``mpp-sampled``, ``mer-sampled``, ``max-rule-sampled``: the same with shares of sampled derivations, and without o.

A tree's *share* of its objective is its part of the sum over all trees: of P(d) or P(t), which makes it a probability
given the words, or of prod q(r) o(r). With ``mer`` it is its part of all expected rules, that is
sum_{r in t} q(r) / sum_r q(r).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tsgkit import _plugins
from tsgkit._forest import Forest
from tsgkit._forest_sum import log_sum
from tsgkit._registry import Registry
from tsgkit._tree_ranking import TreeRanking

if TYPE_CHECKING:
    from tsgkit.parsing._search import Candidate, Search
    from tsgkit.parsing._votes import Product


class Needs(Enum):
    """What an objective asks of the chart of a sentence."""

    VITERBI = "the best derivations"
    POSTERIORS = "inside and outside values: exact posteriors of rules"
    SAMPLES = "inside values, from which derivations are drawn"


@dataclass(frozen=True)
class Objective:
    """A way to choose trees.

    Attributes
    ----------
    name : str
    needs : Needs
        With what the finest chart is filled before `decode` is called.
    decode : callable
        ``decode(search, k)`` returns up to `k` different trees of a sentence, best first; `search` is a
        `tsgkit.parsing.search.Search`, whose `candidate` makes a result of a tree and its score. With `search.shares`,
        it should give the tree's share of the objective, too, unless `has_log_weights`: a number that falls with the
        score, 1 for all trees together.
    has_log_weights : bool
        Whether scores are logs of weights of trees, or of derivations, with the words. A tree's share is then its part
        of the weight of all derivations.

    Examples
    --------
    >>> OBJECTIVES["mer-sampled"].needs
    <Needs.SAMPLES: 'inside values, from which derivations are drawn'>
    """

    name: str
    needs: Needs
    decode: Callable[["Search", int], list["Candidate"]]
    has_log_weights: bool = False


def most_probable_derivation(search: "Search", k: int) -> list["Candidate"]:
    """The trees of the best derivations; the score of a tree is the log weight of its best one."""
    if k == 1:
        return [search.candidate(*search.best_derivation())]
    return search.kbest_trees(k)


def most_probable_tree(search: "Search", k: int) -> list["Candidate"]:
    """Of the trees with the best derivations, those with the largest probability, the sum over all derivations."""
    return search.most_probable_trees(k, search.engine.settings.n_candidates)


def most_frequent_tree(search: "Search", k: int) -> list["Candidate"]:
    """Trees by how often they were sampled; where none could be, those of the best derivations."""
    best = sorted(search.sampled_trees(), key=lambda entry: -entry[0])[:k]
    return [search.candidate(rows, share, share) for share, rows in best] or search.kbest_trees(k)


def best_by_rules(
    search: "Search",
    k: int,
    *,
    product: bool,
    by_spans: bool = False,
    worth: Callable[[Forest], ArrayLike] | None = None,
) -> list["Candidate"]:
    """The trees whose rules have the largest sum or product.

    Parameters
    ----------
    search : Search
    k : int
    product : bool
        Whether to multiply; otherwise to add.
    by_spans : bool
        Whether posteriors are multiplied by the odds of labels first, if there is a model of these.
    worth : callable, optional
        What every rule of a `tsgkit._forest.Forest` is worth, above 0; unless given, its posterior, which is exact or
        sampled as the objective needs.
    """
    forest = search.forest()
    if by_spans:
        search.weigh(forest)
    if worth is not None and not forest.is_over_budget:
        limit = forest.limit
        forest = Forest(forest.n_words, forest.n_labels, forest.rules, worth(forest), n_states=forest.n_states)
        forest.limit = limit
    best = best_of_forest(forest, k, product=product, root=search.root_label)
    # If there is none, every tree has a rule that is too improbable to be in the forest, or that was not sampled.
    if not best:
        return search.kbest_trees(k)
    found = [search.candidate(rows, score) for rows, score in best]
    if search.shares:
        take_shares(found, forest, product=product, root=search.root_label)
    return found


def take_shares(
    candidates: Sequence["Candidate"], forest: Forest, *, product: bool, root: int, power: float = 1.0
) -> None:
    """Give trees of a forest their shares: of the sum over its trees of the products of rules, or of its rules.

    Parameters
    ----------
    candidates : sequence of Candidate
    forest : Forest
    product : bool
    root : int
        The label of the root.
    power : float
        What the scores of candidates are multiplied by, over those of the forest.
    """
    whole = log_sum(forest, root) if product else float(forest.posteriors.sum())
    for each in candidates:
        score = each.score / power
        each.share = math.exp(min(score - whole, 0.0)) if product else score / whole


def best_of_forest(forest: Forest, k: int, *, product: bool, root: int) -> list[tuple[np.ndarray, float]]:
    """The rows and scores of the `k` best trees of a forest, best first; fewer only if it has no more."""
    rows, score = forest.best_tree(product, root)
    if rows is None:
        return []
    found = [(rows, score)]
    if k > 1:
        # Of equally good trees, the first is the same whatever k is.
        ranking, number = TreeRanking(forest, product=product, root=root), 0
        while len(found) < k and (other := ranking.tree(number)) is not None:
            number += 1
            if not np.array_equal(other[0], rows):
                found.append(other)
    return found


most_expected_rules = partial(best_by_rules, product=False)
largest_product = partial(best_by_rules, product=True)

MPD = Objective("mpd", Needs.VITERBI, most_probable_derivation, has_log_weights=True)
MPP = Objective("mpp", Needs.VITERBI, most_probable_tree, has_log_weights=True)
MPP_SAMPLED = Objective("mpp-sampled", Needs.SAMPLES, most_frequent_tree)
MER = Objective("mer", Needs.POSTERIORS, most_expected_rules)
MER_SAMPLED = Objective("mer-sampled", Needs.SAMPLES, most_expected_rules)
MAX_RULE = Objective("max-rule", Needs.POSTERIORS, partial(largest_product, by_spans=True))
MAX_RULE_SAMPLED = Objective("max-rule-sampled", Needs.SAMPLES, largest_product)

OBJECTIVES: Registry[Objective] = _plugins.OBJECTIVES
PRODUCTS: Registry["Product"] = _plugins.PRODUCTS
