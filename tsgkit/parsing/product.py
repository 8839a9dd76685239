"""Products of models: several grammars of the same treebank decide together.

Models that were trained from different seeds make different mistakes. Two ways to let them vote:

* ``rules``: the tree with the largest product, over models and its treebank rules, of the rules' posteriors; one
  max-rule chart of summed logs.
* ``trees``: of all models' best trees the one with the largest product of its exact probabilities under all models.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from nltk.tree import Tree

from tsgkit._forest import Forest
from tsgkit.errors import UsageError
from tsgkit.models.model import Model
from tsgkit.parsing.engine import SMALLEST_POSTERIOR, Candidate, rules_of_rows
from tsgkit.parsing.lexical import Entries
from tsgkit.parsing.parser import Bracket, Parse, Parser
from tsgkit.parsing.rows import tree_of_rows

PRODUCTS = ("rules", "trees")
N_BEST = 100
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
        As for `Parser`; the objective is the product's own.
    """

    def __init__(self, models: Sequence[Any], *, product: str = "rules", **options: Any) -> None:
        if product not in PRODUCTS:
            raise UsageError(f"product {product!r}: must be one of {', '.join(PRODUCTS)}")
        if not models:
            raise UsageError("a product needs at least one model")
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
        votes = [self.vote(member, own, k) for member, own in zip(self.members, entries, strict=True)]
        candidates = self.by_rules(votes, k) if self.product == "rules" else self.by_trees(votes)
        candidates = [self.measured(candidate, entries, votes) for candidate in candidates]
        if self.product == "trees":
            candidates.sort(key=lambda candidate: -candidate.score)
        candidates = [candidate for candidate in candidates if candidate.log_probability > -math.inf][:k]
        if not candidates:
            return first.analyse(words, tags, k=k, number=number, confidence=confidence)
        preparation = self.model.preparation
        trees = [preparation.decode(tree_of_rows(candidate.rows, self.labels, words)) for candidate in candidates]
        total = float(np.mean([vote.log_total for vote in votes if vote.is_valid]))
        result = Parse(
            words,
            trees,
            [candidate.score for candidate in candidates],
            [candidate.log_probability for candidate in candidates],
            total,
        )
        if confidence:
            result.take_posteriors(self.mean_posteriors(words, tags))
        return result

    def entries_of(self, member: Parser, words: list[str], tags: Sequence[str | None] | None) -> list[Entries]:
        symbols = member.model.preparation.vocabulary_words(words)
        return [table.entries(symbols, tags, self.tag_mode) for table in member.tables]

    def vote(self, member: Parser, entries: list[Entries], k: int) -> "Vote":
        """What one model thinks of a sentence."""
        label_map = self.label_maps[self.members.index(member)]
        engine = member.take_engine()
        try:
            if not engine.search(entries, viterbi=False):
                return Vote()
            vote = Vote(float(engine.chart.log_total), True)
            if self.product == "rules":
                forest = engine.exact_forest()
                rules = forest.rules.copy()
                for column in (3, 4, 5):
                    rules[:, column] = np.where(rules[:, column] >= 0, label_map[rules[:, column]], -1)
                vote.rules, vote.posteriors = rules, np.array(forest.posteriors)
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

    @staticmethod
    def by_trees(votes: list["Vote"]) -> list[Candidate]:
        """All different trees of the models' best."""
        different = {rows.tobytes(): rows for vote in votes for rows in vote.trees}
        return [Candidate(rows, 0.0, 0.0) for rows in different.values()]

    def measured(self, candidate: Candidate, entries: list[list[Entries]], votes: list["Vote"]) -> Candidate:
        """A candidate with its exact probability: the geometric mean over the models that have an analysis."""
        logs = []
        for member, own, each, vote in zip(self.members, self.own_labels, entries, votes, strict=True):
            if not vote.is_valid:
                continue
            rows = candidate.rows.copy()
            rows[:, 0] = own[rows[:, 0]]
            if (rows[:, 0] < 0).any():
                logs.append(-math.inf)
                continue
            engine = member.take_engine()
            try:
                logs.append(engine.tree_log_probability(rows, each))
            finally:
                member.idle_engines.put(engine)
        mean = float(np.mean(logs)) if logs else -math.inf
        return Candidate(candidate.rows, candidate.score if self.product == "rules" else mean * len(logs), mean)

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


class Vote:
    """What one model thinks of a sentence: its total, rule posteriors and best trees, in common labels."""

    def __init__(self, log_total: float = -math.inf, is_valid: bool = False) -> None:
        self.log_total, self.is_valid = log_total, is_valid
        self.rules = np.empty((0, 6), dtype=np.int32)
        self.posteriors = np.empty(0)
        self.trees: list[np.ndarray] = []


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
