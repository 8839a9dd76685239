"""Products of models: several grammars of the same treebank decide together.

Models that were trained from different seeds make different mistakes. Two ways to let them vote:

* ``rules``: the tree with the largest product, over models and its treebank rules, of the rules' posteriors; one
  max-rule chart of summed logs.
* ``trees``: of all models' best trees the one with the largest product of its exact probabilities under all models.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from nltk.tree import Tree

from tsgkit._chart import Mask, Projection
from tsgkit._forest import Forest
from tsgkit.errors import UsageError
from tsgkit.models.model import Model
from tsgkit.parsing.engine import SMALLEST_POSTERIOR, Candidate, Guide, rules_of_rows
from tsgkit.parsing.lexical import Entries
from tsgkit.parsing.parser import Parse, Parser, logs_of
from tsgkit.parsing.rows import tree_of_rows
from tsgkit.treebank.trees import Bracket

PRODUCTS = ("rules", "trees")
N_BEST = 100
RULES_THRESHOLD = 1e-4
# The first model's finest chart prunes, label by label, the first pruned grammar of every other model, in the place of
# that model's coarsest one: a third less work, and no less accurate.
FINEST, GUIDED = -1, 1
Rules = tuple[np.ndarray, np.ndarray]


class ProductParser(Parser):
    """Parses with the product of several models.

    Parameters
    ----------
    models : sequence of Model or path
        Trained on trees with the same binarised labels; of any kind.
    product : {"rules", "trees"}
        What is multiplied: posteriors of rules, or probabilities of trees.
    **options
        As for `Parser`; the objective is the product's own, and for ``rules`` the threshold is smaller unless given:
        what one model alone would prune may be what the others are sure of.

    Examples
    --------
    >>> from tsgkit.models.cfg import cfg_model
    >>> from tsgkit.treebank import Binarization, UnknownWords, load, prepare
    >>> steps = {"binarization": Binarization("right", 0), "unknown": UnknownWords()}
    >>> models = [cfg_model(prepare(load("village", part), **steps)) for part in ("train", "dev")]
    >>> print(ProductParser(models).analyse("the old man will smile .".split()).tree)
    (TOP
      (S
        (NP (DT the) (JJ old) (NN man))
        (VP (MD will) (VP (VB smile)))
        (. .)))
    """

    def __init__(self, models: Sequence[Any], *, product: str = "rules", **options: Any) -> None:
        if product not in PRODUCTS:
            raise UsageError(f"product {product!r}: must be one of {', '.join(PRODUCTS)}")
        if not models:
            raise UsageError("a product needs at least one model")
        if product == "rules":
            options.setdefault("threshold", RULES_THRESHOLD)
        self.product = product
        self.members = [Parser(model, **options) for model in models]
        super().__init__(self.members[0].model, **options)
        require_same_trees([member.model for member in self.members])
        # The labels of all models, numbered together; for each model the numbers of its own.
        names: dict[str, int] = {}
        self.label_maps = [
            np.array([names.setdefault(label, len(names)) for label in member.model.grammar.labels], dtype=np.int32)
            for member in self.members
        ]
        self.labels = list(names)
        self.own_labels = []
        for label_map in self.label_maps:
            own = np.full(len(names), -1, dtype=np.int32)
            own[label_map] = np.arange(len(label_map))
            self.own_labels.append(own)
        self.guided_from = self.guiding_projections()

    def guiding_projections(self) -> list[Projection | None]:
        """How the first model guides each of the others: from a grammar of theirs to its own one, label by label."""
        first = self.members[0]
        if self.settings.threshold == 0 or len(first.cascade.grammars) == 1:
            return [None] * len(self.members)
        result: list[Projection | None] = [None]
        for place, member in enumerate(self.members[1:], start=1):
            label_map = self.own_labels[0][self.label_maps[place]]
            fine = member.cascade.indices[self.guided_stage(member)]
            is_whole = fine.n_labels == len(label_map) and (label_map >= 0).all()
            result.append(Projection(fine, first.cascade.indices[FINEST], label_map) if is_whole else None)
        return result

    @staticmethod
    def guided_stage(member: Parser) -> int:
        return min(GUIDED, len(member.cascade.grammars) - 1)

    def analyse(
        self,
        words: Sequence[str],
        tags: Sequence[str | None] | None = None,
        *,
        k: int = 1,
        number: int = 0,
        confidence: bool = False,
    ) -> Parse:
        """Everything about one sentence; see `Parser.analyse`.

        Probabilities are geometric means over the models, confidences plain means. A model that has no analysis of the
        sentence has no vote; if none has one, the first model's fallback is the result.
        """
        first = self.members[0]
        words = list(words)
        is_long = self.max_length is not None and len(words) > self.max_length
        if len(self.members) == 1 or not words or k < 1 or is_long or (tags is not None and len(tags) != len(words)):
            return first.analyse(words, tags, k=k, number=number, confidence=confidence)
        entries = [self.entries_of(member, words, tags) for member in self.members]
        votes: list[Vote] = []
        for place, own in enumerate(entries):
            votes.append(self.vote(place, own, k, votes[0].mask if votes else None))
        is_valid = [vote.is_valid for vote in votes]
        if self.product == "rules":
            candidates = self.by_rules(votes, k)[:k]
            for candidate in candidates:
                candidate.log = partial(self.mean_log, candidate.rows, entries, is_valid)
        else:
            candidates = self.by_trees(votes, entries, is_valid)[:k]
        if not candidates:
            return first.analyse(words, tags, k=k, number=number, confidence=confidence)
        preparation = self.model.preparation
        trees = [preparation.decode(tree_of_rows(candidate.rows, self.labels, words)) for candidate in candidates]
        total = float(np.mean([vote.log_total for vote in votes if vote.is_valid]))
        result = Parse(
            words,
            trees,
            [candidate.score for candidate in candidates],
            partial(logs_of, candidates),
            total,
        )
        if confidence:
            result.take_posteriors(self.mean_posteriors(words, tags))
        return result

    def entries_of(self, member: Parser, words: list[str], tags: Sequence[str | None] | None) -> list[Entries]:
        symbols = member.model.preparation.vocabulary_words(words)
        return [table.entries(symbols, tags, self.tag_mode) for table in member.tables]

    def vote(self, place: int, entries: list[Entries], k: int, mask: Mask | None) -> "Vote":
        """What the model at this place thinks of a sentence, guided by what the first one has left of it."""
        member, label_map, projection = self.members[place], self.label_maps[place], self.guided_from[place]
        guide = None
        if mask is not None and projection is not None:
            guide = Guide(mask, projection, self.guided_stage(member))
        engine = member.take_engine()
        try:
            if not engine.search(entries, viterbi=False, guide=guide):
                return Vote()
            vote = Vote(float(engine.chart.log_total), True)
            if self.product == "rules":
                forest = engine.exact_forest()
                rules = forest.rules.copy()
                for column in (3, 4, 5):
                    rules[:, column] = np.where(rules[:, column] >= 0, label_map[rules[:, column]], -1)
                vote.rules, vote.posteriors = rules, np.array(forest.posteriors)
            if place == 0 and any(self.guided_from):
                vote.mask = engine.mask_of(FINEST, SMALLEST_POSTERIOR)
            n_best = N_BEST if self.product == "trees" else k if k > 1 else 0
            if n_best and engine.search(entries, viterbi=True):
                for candidate in engine.kbest_trees(entries, n_best, add_up=False):
                    rows = candidate.rows.copy()
                    rows[:, 0] = label_map[rows[:, 0]]
                    vote.trees.append(rows)
        except OverflowError:  # weights beyond the range of floats
            return Vote()
        finally:
            member.idle_engines.put(engine)
        return vote

    def by_rules(self, votes: list["Vote"], k: int) -> list[Candidate]:
        """The best tree by the product of rule posteriors, then others of the models' best by the same score."""
        valid = [vote for vote in votes if vote.is_valid]
        if not valid:
            return []
        rules, logs = product_of([(vote.rules, vote.posteriors) for vote in valid])
        forest = Forest(int(rules[:, 2].max()), len(self.labels), rules, np.exp(logs))
        root = self.label_maps[0][self.model.grammar.label[self.model.grammar.root]]
        rows, score = forest.best_tree(True, int(root))
        if rows is None:
            return []
        best = [Candidate(rows, float(score) * len(valid), 0.0)]
        if k == 1:
            return best
        log_of = dict(zip(map(bytes, np.ascontiguousarray(rules)), logs.tolist(), strict=True))
        smallest = math.log(SMALLEST_POSTERIOR)
        seen = {rows.tobytes()}
        others = []
        for other in (tree for vote in valid for tree in vote.trees):
            if other.tobytes() not in seen:
                seen.add(other.tobytes())
                total = sum(log_of.get(bytes(rule), smallest) for rule in rules_of_rows(other))
                others.append(Candidate(other, total * len(valid), 0.0))
        others.sort(key=lambda candidate: -candidate.score)
        return best + others

    def by_trees(self, votes: list["Vote"], entries: list[list[Entries]], is_valid: list[bool]) -> list[Candidate]:
        """All different trees of the models' best that every model can make, by their exact probabilities."""
        different = {rows.tobytes(): rows for vote in votes for rows in vote.trees}
        means = [(self.mean_log(rows, entries, is_valid), rows) for rows in different.values()]
        found = [Candidate(rows, mean * sum(is_valid), mean) for mean, rows in means if mean > -math.inf]
        return sorted(found, key=lambda candidate: -candidate.score)

    def mean_log(self, own_rows: np.ndarray, entries: list[list[Entries]], is_valid: list[bool]) -> float:
        """The log of a tree's exact probability: the mean over the models that have an analysis."""
        logs = []
        for member, own, each, has_vote in zip(self.members, self.own_labels, entries, is_valid, strict=True):
            if not has_vote:
                continue
            rows = own_rows.copy()
            rows[:, 0] = own[rows[:, 0]]
            if (rows[:, 0] < 0).any():
                logs.append(-math.inf)
                continue
            engine = member.take_engine()
            try:
                logs.append(engine.tree_log_probability(rows, each))
            finally:
                member.idle_engines.put(engine)
        return float(np.mean(logs)) if logs else -math.inf

    def tree_log_probability(self, tree: Tree) -> float:
        """The mean over models of the exact log probability of a tree (as annotated) with its words."""
        return float(np.mean([member.tree_log_probability(tree) for member in self.members]))

    def mean_posteriors(self, words: list[str], tags: Sequence[str | None] | None) -> dict[Bracket, float]:
        """The mean over models of every bracket's posterior."""
        sums: dict[Bracket, float] = {}
        for member in self.members:
            entries = self.entries_of(member, words, tags)
            engine = member.take_engine()
            try:
                if engine.search(entries, viterbi=False):
                    for bracket, value in member.bracket_posteriors(engine, entries).items():
                        sums[bracket] = sums.get(bracket, 0.0) + value
            finally:
                member.idle_engines.put(engine)
        return {bracket: value / len(self.members) for bracket, value in sums.items()}


@dataclass
class Vote:
    """What one model thinks of a sentence: its total, rule posteriors and best trees, in common labels."""

    log_total: float = -math.inf
    is_valid: bool = False
    rules: np.ndarray = field(default_factory=lambda: np.empty((0, 6), dtype=np.int32))
    posteriors: np.ndarray = field(default_factory=lambda: np.empty(0))
    trees: list[np.ndarray] = field(default_factory=list)
    mask: Mask | None = None


def product_of(forests: Sequence[Rules]) -> Rules:
    """The rules of all forests, and the mean over forests of the logs of each one's posteriors.

    A rule that a forest does not have counts there with the smallest posterior that forests keep.

    Examples
    --------
    >>> rule = np.array([[0, -1, 1, 0, -1, -1]], dtype=np.int32)
    >>> _, logs = product_of([(rule, np.array([0.5])), (rule, np.array([0.125]))])
    >>> round(float(np.exp(logs[0])), 9)
    0.25
    """
    rows = np.concatenate([np.ascontiguousarray(rules, dtype=np.int32) for rules, _ in forests])
    logs = np.log(np.concatenate([posteriors for _, posteriors in forests]))
    smallest = math.log(SMALLEST_POSTERIOR)
    keys = np.ascontiguousarray(rows).view([("", np.int32)] * 6).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    sums = np.bincount(inverse, weights=np.maximum(logs, smallest) - smallest, minlength=len(first))
    # Rounding may leave a posterior a little above one.
    return rows[first], np.minimum(smallest + sums / len(forests), 0.0)


def require_same_trees(models: Sequence[Model]) -> None:
    """Refuse models whose trees are not of one kind: their rules would not meet."""
    first = models[0].preparation
    for model in models[1:]:
        own = model.preparation
        if own.binarization != first.binarization or own.cleaning != first.cleaning:
            raise UsageError(
                "the models do not go together: their trees were cleaned or binarised in different ways;"
                " train them with the same options for that"
            )
