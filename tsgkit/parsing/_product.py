"""Products of models: several grammars of the same treebank decide together.

Models that were trained from different seeds make different mistakes. A product asks a parser of every model, which it
has and is not, and counts their votes: argmax_t of a product over models, see `tsgkit.parsing.votes`.
"""

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Self, Unpack

import numpy as np
from nltk.tree import Tree

from tsgkit._forest import Forest
from tsgkit._pruning import Mask, Projection
from tsgkit._work_limit import WorkLimit
from tsgkit.errors import OutOfTimeError, UsageError
from tsgkit.grammar import WeightedGrammar
from tsgkit.models._model import AnyModel, Model
from tsgkit.parsing._base import SentenceParser, require_whole, require_words, results_of, sharing_copy
from tsgkit.parsing._engine import Guide
from tsgkit.parsing._lexical import SentenceEntries, SentenceWords
from tsgkit.parsing._objectives import PRODUCTS, Needs
from tsgkit.parsing._parse import Parse
from tsgkit.parsing._parser import Parser, larger_total, logs_of
from tsgkit.parsing._rows import tree_of_rows
from tsgkit.parsing._search import Search
from tsgkit.parsing._settings import ParserParameters, ParserSettings
from tsgkit.parsing._votes import Ballot, Product, Vote
from tsgkit.treebank import Preparation
from tsgkit.treebank._binarize import undo_label
from tsgkit.treebank._partial import GivenBracket, require_brackets
from tsgkit.treebank._trees import Bracket

# Models of one treebank share most labels, and many words even where their training trees are different ones.
SMALLEST_SHARE = {"root": 1.0, "labels": 0.5, "words": 0.1}
# The first model's finest chart prunes, label by label, the last grammar but one of every other model, in the place of
# that model's coarser ones. No less accurate, see docs/parsing.rst.
FINEST, GUIDED = -1, -2


class ProductParser(SentenceParser):
    """Parses with the product of several models.

    Parameters
    ----------
    models : sequence of Model, estimator or path
        Trained on trees with the same binarised labels; of any kind.
    settings : ParserSettings, optional
        The defaults unless given; `product` stands in the place of an objective.
    **changes
        Single settings, such as ``product="trees"``; all others are those of `settings`.

    Attributes
    ----------
    members : list of Parser
        One for every model.

    Examples
    --------
    >>> import tsgkit
    >>> models = [tsgkit.train(f"village:{part}", model="cfg") for part in ("train", "dev")]
    >>> print(ProductParser(models).analyse("the old man will smile .".split()).tree)
    (TOP
      (S
        (NP (DT the) (JJ old) (NN man))
        (VP (MD will) (VP (VB smile)))
        (. .)))
    """

    def __init__(
        self,
        models: Sequence[AnyModel],
        settings: ParserSettings | None = None,
        **changes: Unpack[ParserParameters],
    ) -> None:
        self.settings = (settings or ParserSettings()).with_changes(**changes)
        if not models:
            raise UsageError("a product needs at least one model")
        self._members = [Parser(model, member_settings(self.settings)) for model in models]
        require_same_trees([member.model for member in self._members])
        for member in self._members[1:]:
            member._share_words(self._members[0])
        # The labels of all models, numbered together; for each model the numbers of its own.
        names: dict[str, int] = {}
        self._label_maps = [
            np.array([names.setdefault(label, len(names)) for label in member.model.grammar.labels], dtype=np.int32)
            for member in self._members
        ]
        self._labels = list(names)
        self._own_labels = []
        for label_map in self._label_maps:
            own = np.full(len(names), -1, dtype=np.int32)
            own[label_map] = np.arange(len(label_map))
            self._own_labels.append(own)
        self._guided_from = self._guiding_projections()
        self._set_guided_thresholds()
        # For every model the first one with the same vocabulary.
        lexicons = [member.model.preparation.lexicon for member in self._members]
        self._same_vocabulary = [lexicons.index(lexicon) for lexicon in lexicons]

    def with_settings(self, settings: ParserSettings | None = None, **changes: Unpack[ParserParameters]) -> Self:
        """A product of the same models, which are shared, with other settings."""
        changed = sharing_copy(self)
        changed.settings = (settings or self.settings).with_changes(**changes)
        changed._members = [member.with_settings(member_settings(changed.settings)) for member in self._members]
        changed._guided_from = changed._guiding_projections()
        changed._set_guided_thresholds()
        return changed

    def _set_guided_thresholds(self) -> None:
        """Let guided models prune more, unless the settings say how much all prune."""
        if self.settings.threshold is None:
            self._members = [
                member.with_settings(threshold=self._product.guided_threshold) if projection is not None else member
                for member, projection in zip(self._members, self._guided_from, strict=True)
            ]

    @property
    def _product(self) -> Product:
        """How votes are counted."""
        return PRODUCTS[self.settings.product]

    def models(self) -> list[Model]:
        return [member.model for member in self._members]

    def grammar(self) -> WeightedGrammar:
        """The finest grammar of the first model."""
        return self._members[0].grammar()

    def _guiding_projections(self) -> list[Projection | None]:
        """How the first model guides each of the others: from a grammar of theirs to its own one, label by label."""
        first = self._members[0]
        if not first.settings.prunes or len(first._cascade.grammars) == 1:
            return [None] * len(self._members)
        result: list[Projection | None] = [None]
        for place, member in enumerate(self._members[1:], start=1):
            label_map = self._own_labels[0][self._label_maps[place]]
            fine = member._cascade.indices[self._guided_stage(member)]
            is_whole = fine.n_labels == len(label_map) and (label_map >= 0).all()
            result.append(Projection(fine, first._cascade.indices[FINEST], label_map) if is_whole else None)
        return result

    @staticmethod
    def _guided_stage(member: Parser) -> int:
        """The number of the grammar that the first model prunes: not the coarsest one, if there are others."""
        n_grammars = len(member._cascade.grammars)
        return min(max(n_grammars + GUIDED, 1), n_grammars - 1)

    # ---- one sentence --------------------------------------------------------------------------------

    def analyse(
        self,
        words: Sequence[str],
        tags: Sequence[str | None] | None = None,
        *,
        k: int = 1,
        number: int = 0,
        confidence: bool = False,
        limit: WorkLimit | None = None,
        brackets: Sequence[GivenBracket] = (),
        pool: Executor | None = None,
    ) -> Parse:
        """Everything about one sentence; see `SentenceParser.analyse`.

        Probabilities are geometric means over the models, confidences plain means. A model that has no analysis of the
        sentence has no vote; if none has one, the first model's fallback is the result.
        """
        first, max_length = self._members[0], self.settings.max_length
        words = require_words(words)
        require_whole("k", k, 1)
        is_long = max_length is not None and len(words) > max_length
        if len(self._members) == 1 or not words or is_long or (tags is not None and len(tags) != len(words)):
            return first.analyse(words, tags, k=k, number=number, confidence=confidence, limit=limit, brackets=brackets)
        limit = WorkLimit(self.settings.max_seconds) if limit is None else limit
        given = require_brackets(brackets, len(words))
        entries = self._entries(words, tags, given)
        try:
            votes = self._votes(entries, k=k, confidence=confidence, limit=limit, pool=pool)
            result = self._decided(words, entries, votes, k=k, shares=confidence, limit=limit)
        except OutOfTimeError:
            return first._flat(words, entries[0], "timeout")
        if result is not None:
            return result
        return first.analyse(words, tags, k=k, number=number, confidence=confidence, limit=limit, brackets=given)

    def _entries(
        self, words: Sequence[str], tags: Sequence[str | None] | None = None, brackets: Sequence[GivenBracket] = ()
    ) -> list[SentenceEntries]:
        """The lexical entries of a sentence for every model; models with the same vocabulary look words up once."""
        symbols = [
            SentenceWords(self._members[place].model.preparation.vocabulary_words(words) if place == number else [])
            for number, place in enumerate(self._same_vocabulary)
        ]
        return [
            member._entries_of(symbols[place], tags, brackets)
            for member, place in zip(self._members, self._same_vocabulary, strict=True)
        ]

    def _decided(
        self,
        words: list[str],
        entries: list[SentenceEntries],
        votes: list[Vote | None],
        *,
        k: int,
        shares: bool,
        limit: WorkLimit,
    ) -> Parse | None:
        """What the models decide together, if any of them has an analysis."""
        first = self._members[0]
        valid = [vote for vote in votes if vote is not None]
        if not valid:
            return None
        mean_log = partial(self._mean_log, entries=entries, has_vote=[vote is not None for vote in votes])
        root_label = self._label_maps[0][first.model.grammar.label[first.model.grammar.root]]
        weigh = partial(self._weigh, entries)
        ballot = Ballot(valid, len(self._labels), int(root_label), mean_log, limit, shares, weigh)
        candidates = self._product.decide(ballot, k)[:k]
        if not candidates:
            return None
        decode = first.model.preparation.decode
        result = Parse(
            words,
            [decode(tree_of_rows(candidate.rows, self._labels, words)) for candidate in candidates],
            [candidate.score for candidate in candidates],
            partial(logs_of, candidates),
            partial(larger_total, ballot.log_total, candidates),
            shares=[candidate.share for candidate in candidates],
        )
        result.take_posteriors(self._mean_posteriors(valid))
        return result

    def _votes(
        self, entries: list[SentenceEntries], *, k: int, confidence: bool, limit: WorkLimit, pool: Executor | None
    ) -> list[Vote | None]:
        """The vote of every model on a sentence; none of those that have no analysis of it."""
        vote = partial(self._vote, k=k, confidence=confidence)
        first = vote(0, entries[0], limit=limit)
        mask = first.mask if first is not None else None
        others = [
            partial(vote, place, own, mask=mask, limit=limit.part()) for place, own in enumerate(entries[1:], start=1)
        ]
        return [first, *results_of(others, pool)]

    def _vote(
        self,
        place: int,
        entries: SentenceEntries,
        *,
        k: int = 1,
        confidence: bool = False,
        mask: Mask | None = None,
        limit: WorkLimit | None = None,
    ) -> Vote | None:
        """What the model at this place thinks of a sentence, guided by what the first one has left of it."""
        member, label_map, projection = self._members[place], self._label_maps[place], self._guided_from[place]
        guide = None
        if mask is not None and projection is not None:
            guide = Guide(mask, projection, self._guided_stage(member))
        with member._engine(limit) as engine:
            search = Search(engine, entries, Needs.POSTERIORS)
            try:
                if not search.fill(guide):
                    return None
                vote = Vote(float(engine.chart.log_total), label_map)
                if self._product.needs_rules:
                    vote.forest = search.forest()
                if confidence:
                    vote.brackets = member._bracket_posteriors(engine, entries, vote.forest)
                if place == 0 and any(self._guided_from):
                    vote.mask = engine.mask_of(FINEST, self._product.guided_threshold, symbols=False)
                n_best = self._product.n_best(k)
                found = search.kbest_trees(n_best) if n_best else []
            except OverflowError:  # weights beyond the range of floats
                return None
        for candidate in found:
            rows = candidate.rows.copy()
            rows[:, 0] = label_map[rows[:, 0]]
            vote.trees.append(rows)
        return vote

    def _mean_log(self, rows: np.ndarray, entries: list[SentenceEntries], has_vote: list[bool]) -> float:
        """The log of a tree's exact probability: the mean over the models that have an analysis."""
        logs = []
        for member, own_labels, own_entries, counts in zip(
            self._members, self._own_labels, entries, has_vote, strict=True
        ):
            if not counts:
                continue
            own_rows = rows.copy()
            own_rows[:, 0] = own_labels[rows[:, 0]]
            if (own_rows[:, 0] < 0).any():
                logs.append(-math.inf)
                continue
            with member._engine() as engine:
                logs.append(engine.tree_log_probability(own_rows, own_entries))
        return float(np.mean(logs)) if logs else -math.inf

    def _weigh(self, entries: list[SentenceEntries], forest: Forest) -> None:
        """Multiply posteriors by the odds of labels, as the first model sees them that has a model of these."""
        for own_labels, own_entries in zip(self._own_labels, entries, strict=True):
            if own_entries.weigh is not None:
                own_entries.weigh(forest, own_labels)
                return

    def _mean_posteriors(self, votes: Sequence[Vote]) -> dict[Bracket, float]:
        """The mean over models of every bracket's posterior; a model without a vote counts with 0."""
        sums: dict[Bracket, float] = {}
        for vote in votes:
            for bracket, value in vote.brackets.items():
                sums[bracket] = sums.get(bracket, 0.0) + value
        return {bracket: value / len(self._members) for bracket, value in sums.items()}

    def tree_log_probability(self, tree: Tree) -> float:
        """The mean over models of the exact log probability of a tree (as annotated) with its words."""
        return float(np.mean([member.tree_log_probability(tree) for member in self._members]))


def parser_of(models: Sequence[AnyModel], settings: ParserSettings | None = None) -> SentenceParser:
    """The parser of a model, or of the product of several."""
    return Parser(models[0], settings) if len(models) == 1 else ProductParser(models, settings)


def member_settings(settings: ParserSettings) -> ParserSettings:
    """The settings of every model of a product."""
    if settings.objective != ParserSettings.objective or settings.correct:
        raise UsageError("several models have an objective of their own: --product, without --objective and --correct")
    if settings.threshold is not None:
        return settings
    return settings.with_changes(threshold=PRODUCTS[settings.product].threshold)


def require_same_trees(models: Sequence[Model]) -> None:
    """Refuse models whose trees are not of one kind: their rules would not meet."""
    first = models[0]
    for number, model in enumerate(models[1:], start=2):
        differences = preparation_differences(first.preparation, model.preparation)
        if differences:
            raise UsageError(
                f"the models do not go together: their trees were cleaned or binarised in different ways"
                f" (model {number}: {', '.join(differences)}); train them with the same options for that"
            )
        for what, own, other in (
            ("root", {root_of(first)}, {root_of(model)}),
            ("labels", treebank_labels(first), treebank_labels(model)),
            ("words", vocabulary_of(first), vocabulary_of(model)),
        ):
            n_shared = len(own & other)
            if n_shared < SMALLEST_SHARE[what] * min(len(own), len(other)):
                alone = ", ".join(sorted(other - own)[:5])
                raise UsageError(
                    f"the models do not go together: models 1 and {number} share {n_shared} of {len(own)} and"
                    f" {len(other)} {what} (model {number} alone has {alone}, ...); they must be of one treebank"
                )


def preparation_differences(one: Preparation, other: Preparation) -> list[str]:
    """The names of the settings by which the trees of two preparations differ."""
    names = []
    for part in ("cleaning", "binarization"):
        plain = [getattr(each, part).to_dict() if getattr(each, part) else {} for each in (one, other)]
        keys = plain[0].keys() | plain[1].keys()
        names += [f"{part} {key}" for key in keys if plain[0].get(key) != plain[1].get(key)]
    return sorted(names)


def root_of(model: Model) -> str:
    return model.grammar.labels[model.grammar.label[model.grammar.root]]


def treebank_labels(model: Model) -> set[str]:
    """The labels of a model that are none of intermediate symbols."""
    return {plain for plain in map(undo_label, model.grammar.labels) if plain is not None}


def vocabulary_of(model: Model) -> set[str]:
    """The words with a letter that are no classes of rare words; many languages share punctuation and numbers."""
    lexicon = model.preparation.lexicon
    words = model.grammar.words if lexicon is None else lexicon.words
    return {word for word in words if any(map(str.isalpha, word))}
