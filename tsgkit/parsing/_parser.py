"""The parser of one model: sentences in, trees out, one for every input whatever it is.

Words become lexical entries, the engine fills charts with them, the objective chooses among trees, and what the grammar
cannot analyse gets a fallback tree: argmax by the objective of all trees t over the words, or a tree all the same.
"""

import math
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, Self, Unpack

import numpy as np
from nltk.tree import Tree

from tsgkit._cell_closing import OpenCells
from tsgkit._derivations import best_derivation
from tsgkit._forest import Forest
from tsgkit._threads import prepare_thread
from tsgkit._work_limit import WorkLimit
from tsgkit.errors import OutOfTimeError, UsageError
from tsgkit.grammar import WeightedGrammar
from tsgkit.models._constraints import LabelAutomata
from tsgkit.models._model import AnyModel, Model, model_of
from tsgkit.parsing._base import SentenceParser, require_whole, require_words, sharing_copy
from tsgkit.parsing._constraints import StateCodes, with_brackets
from tsgkit.parsing._engine import Cascade, Engine
from tsgkit.parsing._fallback import flat_rows, glued_rows, unmet_spans
from tsgkit.parsing._lexical import LexicalTable, SentenceEntries, SentenceWords
from tsgkit.parsing._objectives import OBJECTIVES, Needs, Objective
from tsgkit.parsing._parse import Parse, fallback
from tsgkit.parsing._rows import project, rows_of_tree, tree_of_rows
from tsgkit.parsing._search import Candidate, LogCorrection, Search
from tsgkit.parsing._settings import ParserParameters, ParserSettings
from tsgkit.treebank._binarize import undo_label
from tsgkit.treebank._clean import chain_parts
from tsgkit.treebank._partial import GivenBracket, Span, by_span, require_brackets
from tsgkit.treebank._trees import Bracket
from tsgkit.treebank._trees import words as words_of

# The log of the true over the sampled probability of a derivation with these words.
Correction = Callable[[np.ndarray, Sequence[int], np.random.Generator], float]


class Parser(SentenceParser):
    """Parses with a trained model.

    Parameters
    ----------
    model : Model, estimator or path
    settings : ParserSettings, optional
        The defaults unless given.
    correction : callable, optional
        For objectives that need samples, in the place of the one that the setting `correct` asks for.
    **changes
        Single settings, such as ``objective="mpd"``; all others are those of `settings`.

    Examples
    --------
    >>> import tsgkit
    >>> parser = Parser(tsgkit.train("village:train", model="cfg"))
    >>> parser.parse_one("the old man smiled .".split()).label()
    'TOP'
    """

    def __init__(
        self,
        model: AnyModel,
        settings: ParserSettings | None = None,
        *,
        correction: Correction | None = None,
        **changes: Unpack[ParserParameters],
    ) -> None:
        self.settings = (settings or ParserSettings()).with_changes(**changes)
        self.model = model_of(model)
        self._correction = self._model_correction() if correction is None else correction
        self._number_of_label = {label: number for number, label in enumerate(self.model.grammar.labels)}
        self._cascade = Cascade(self.model.stages)
        self._number_of_word: dict[str, int] = {}
        self._tables = [
            LexicalTable(grammar, index, self._number_of_word)
            for grammar, index in zip(self._cascade.grammars, self._cascade.indices, strict=True)
        ]
        self._root = self._wrapped(self.model.grammar, []).label()
        self._idle_engines: queue.SimpleQueue[Engine] = queue.SimpleQueue()

    def with_settings(self, settings: ParserSettings | None = None, **changes: Unpack[ParserParameters]) -> Self:
        """A parser with the same model, which is shared, and other settings."""
        changed = sharing_copy(self)
        changed.settings = (settings or self.settings).with_changes(**changes)
        changed._idle_engines = queue.SimpleQueue()
        if changed.settings.correct != self.settings.correct:
            changed._correction = changed._model_correction()
        return changed

    def _model_correction(self) -> Correction | None:
        """How the model itself corrects samples, if the settings ask for it."""
        if not self.settings.correct:
            return None
        from tsgkit.inference._entry import entry_of  # noqa: PLC0415 - brings the samplers along

        return entry_of(self.model).correction(self.model)

    def _share_words(self, other: "Parser") -> None:
        """Look words up in the dictionary of another parser; before the first sentence."""
        self._number_of_word = other._number_of_word
        for table in self._tables:
            table.number_by(self._number_of_word)

    @property
    def _objective(self) -> Objective:
        """What the best tree is."""
        return OBJECTIVES[self.settings.objective]

    def models(self) -> list[Model]:
        return [self.model]

    def __reduce__(self) -> tuple[Any, ...]:
        if self._correction is not None and not self.settings.correct:
            raise TypeError("a parser with a correction of its own cannot be sent to another process")
        return super().__reduce__()

    def grammar(self) -> WeightedGrammar:
        """The finest grammar."""
        return self.model.grammar

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
        """Everything about one sentence; see `SentenceParser.analyse`."""
        words = require_words(words)
        require_whole("k", k, 1)
        if isinstance(tags, str):
            raise TypeError(f"tags are a sequence with one for every word, not the string {tags!r}")
        if tags is not None and len(tags) != len(words):
            raise UsageError(f"{len(tags)} tags for {len(words)} words")
        given = require_brackets(brackets, len(words))
        if not words:
            return fallback(words, Tree(self._root, []), "empty")
        entries = self._entries(words, tags, given)
        if self.settings.max_length is not None and len(words) > self.settings.max_length:
            return self._flat(words, entries)
        with self._engine(limit) as engine:
            codes = StateCodes(self._automata[-1], given) if given else None
            random = self._random(number) if self._objective.needs is Needs.SAMPLES else None
            correction = self._log_correction(words)
            search = Search(engine, entries, self._objective.needs, random, correction, codes=codes, shares=confidence)
            return self._best_parse(search, words, k=k, confidence=confidence)

    @contextmanager
    def _engine(self, limit: WorkLimit | None = None) -> Iterator[Engine]:
        """An engine that no other thread uses meanwhile, with a limit; with that of the settings unless given."""
        prepare_thread()
        try:
            engine = self._idle_engines.get_nowait()
        except queue.Empty:
            engine = Engine(self._cascade, self.settings)
        engine.obey(WorkLimit(self.settings.max_seconds) if limit is None else limit)
        try:
            yield engine
        finally:
            self._idle_engines.put(engine)

    def _entries(
        self, words: Sequence[str], tags: Sequence[str | None] | None = None, brackets: Sequence[GivenBracket] = ()
    ) -> SentenceEntries:
        """The lexical entries of a sentence in every grammar, the spans worth looking at, the brackets of all trees."""
        return self._entries_of(self.model.preparation.vocabulary_words(words), tags, brackets)

    def _entries_of(
        self, symbols: Sequence[str], tags: Sequence[str | None] | None = None, brackets: Sequence[GivenBracket] = ()
    ) -> SentenceEntries:
        """The same for words of the closed vocabulary."""
        symbols = symbols if isinstance(symbols, SentenceWords) else SentenceWords(symbols)
        given_tags = [(start, label) for label, start, end in brackets if label is not None and end == start + 1]
        by_grammar = [partial(table.entries, symbols, tags, self.settings.tags, given_tags) for table in self._tables]
        constraints = [each.constraints(brackets, len(symbols)) for each in self._automata] if brackets else []
        return SentenceEntries(
            by_grammar, partial(self._open_cells, symbols), constraints, brackets, self._weighing(symbols)
        )

    @cached_property
    def _automata(self) -> list[LabelAutomata]:
        """What the labels of every grammar do to brackets that trees must have."""
        joins_chains = self.model.preparation.cleaning.unaries
        return [
            LabelAutomata(index, grammar.labels, joins_chains)
            for grammar, index in zip(self._cascade.grammars, self._cascade.indices, strict=True)
        ]

    def _open_cells(self, symbols: SentenceWords) -> OpenCells | None:
        """The spans that probably have a node, if the model knows and the settings ask."""
        closing = self.model.closing
        if closing is None or not self.settings.closes_cells or len(self._tables) == 1:
            return None
        return closing.open_cells(self._tables[-1].grammar_numbers(symbols), self.settings.closing)

    def _weighing(self, symbols: SentenceWords) -> Callable[..., None] | None:
        """What multiplies posteriors by the odds of labels, if the model knows these and the settings ask."""
        labels, power = self.model.span_labels, self.settings.span_power
        if labels is None or power == 0.0:
            return None
        return partial(labels.weigh, words=self._tables[-1].grammar_numbers(symbols), power=power)

    def _random(self, number: int) -> np.random.Generator:
        """The random numbers of a sentence."""
        return np.random.Generator(np.random.PCG64([self.settings.seed, number]))

    def _log_correction(self, words: Sequence[str]) -> LogCorrection | None:
        """How the samples of a sentence are corrected, if they are."""
        correction = self._correction
        if correction is None:
            return None
        symbols = SentenceWords(self.model.preparation.vocabulary_words(words))
        numbers = self._tables[-1].grammar_numbers(symbols).tolist()
        return lambda rows, random: correction(rows, numbers, random)

    def _best_parse(self, search: Search, words: list[str], *, k: int, confidence: bool) -> Parse:
        """The best trees by the objective, or a fallback."""
        try:
            candidates = self._objective.decode(search, k) if search.fill() else []
            if not candidates:
                return self._without_analysis(search.engine, words, search.entries)
            result = self._result(words, candidates, self._log_total(search.engine, search.entries, candidates))
            if confidence:
                result.take_posteriors(self._bracket_posteriors(search.engine, search.entries))
                # Now the chart has sums, whatever the objective needed.
                result.total = self._log_total(search.engine, search.entries, candidates)
                result.shares = self._shares(candidates, result)
        except OverflowError:  # weights beyond the range of floats
            return self._flat(words, search.entries)
        except OutOfTimeError:
            return self._flat(words, search.entries, "timeout")
        return result

    def _log_total(self, engine: Engine, entries: SentenceEntries, candidates: list[Candidate]) -> Callable[[], float]:
        """How to find the log probability of the words: of all trees in the chart, or of those at hand if more."""
        if engine.chart.is_viterbi:
            return partial(self._searched_total, entries, candidates)
        return partial(larger_total, float(engine.chart.log_total), candidates)

    def _searched_total(self, entries: SentenceEntries, candidates: list[Candidate]) -> float:
        """The same after a search of its own, because the chart had the best derivations only."""
        known = larger_total(-math.inf, candidates)
        try:
            with self._engine() as engine:
                return max(engine.chart.log_total, known) if engine.fill(entries, viterbi=False) else known
        except (OverflowError, OutOfTimeError):
            return known

    def _result(self, words: list[str], candidates: list[Candidate], log_total: Callable[[], float]) -> Parse:
        return Parse(
            words,
            [self._decoded(candidate.rows, self.model.grammar, words) for candidate in candidates],
            [candidate.score for candidate in candidates],
            partial(logs_of, candidates),
            log_total,
        )

    def _shares(self, candidates: Sequence[Candidate], result: Parse) -> list[float | None]:
        """The part of the objective that each tree has."""
        if not self._objective.has_log_weights:
            return [candidate.share for candidate in candidates]
        return [math.exp(min(candidate.score - result.log_total, 0.0)) for candidate in candidates]

    def _decoded(self, rows: np.ndarray, grammar: WeightedGrammar, words: list[str]) -> Tree:
        """The tree of a grammar's rows as an annotator would write it."""
        return self.model.preparation.decode(tree_of_rows(rows, grammar.labels, words))

    def _wrapped(self, grammar: WeightedGrammar, parts: list[Tree]) -> Tree:
        """Trees as the grammar makes them, side by side under the root, as an annotator would write them."""
        return self.model.preparation.decode(Tree(grammar.labels[grammar.label[grammar.root]], parts))

    def _without_analysis(self, engine: Engine, words: list[str], entries: SentenceEntries) -> Parse:
        """A tree all the same: by the coarsest grammar, or of parts, or of tags alone."""
        chart, grammar = engine.charts[0], self._cascade.grammars[0]
        found = chart.fill(*entries[0], viterbi=True, constraints=entries.constraints_of(0)) > -math.inf
        if chart.is_over_budget:
            return self._flat(words, entries)
        if found:
            rows = project(best_derivation(chart)[0], grammar.label)
            return fallback(words, self._decoded(rows, grammar, words), "coarse")
        unmet = unmet_spans(chart, by_span(entries.brackets))
        if unmet:
            relaxed = self._automata[0].constraints(entries.brackets, len(words), unmet)
            chart.fill(*entries[0], viterbi=True, constraints=relaxed)
        is_part = [name is not None for name in self._tables[0].tag_names]
        parts = [] if chart.is_over_budget else glued_rows(chart, grammar, is_part, unmet)
        if not parts:
            return self._flat(words, entries)
        missing = [bracket for bracket in entries.brackets if bracket[1:] in unmet or not is_inside(bracket, parts)]
        kind = "brackets" if unmet else "glued"
        return fallback(
            words, self._glued(parts, words, missing), kind, [each for each in missing if each[1:] in unmet]
        )

    def _glued(self, parts: Sequence[np.ndarray], words: list[str], brackets: Sequence[GivenBracket]) -> Tree:
        """Rows of the coarsest grammar's parts, side by side under the root, inside of brackets."""
        grammar = self._cascade.grammars[0]
        trees = [tree_of_rows(rows, grammar.labels, words) for rows in parts]
        if not brackets:
            return self._wrapped(grammar, trees)
        spans: list[Span] = [(int(rows[0, 1]), int(rows[0, 2])) for rows in parts]
        decoded = [list(self._wrapped(grammar, [tree])) for tree in trees]
        return with_brackets(list(zip(spans, decoded, strict=True)), brackets, self._root)

    def _flat(self, words: list[str], entries: SentenceEntries, kind: str = "flat") -> Parse:
        """A tree of tags alone, inside of the given brackets."""
        grammar, index = self._cascade.grammars[0], self._cascade.indices[0]
        tags = {start: label for label, start, end in entries.brackets if end == start + 1}
        wanted = [tags.get(place) for place in range(len(words))]
        rows_of_tags = flat_rows(entries[0], index.symbol_of_rank, grammar, wanted)
        chosen = [undo_label(grammar.labels[rows[0, 0]]) for rows in rows_of_tags]
        # A bracket around one word that is the word's tag is there already; without a label, any tag is.
        missing = [
            (label, start, end)
            for label, start, end in entries.brackets
            if end > start + 1 or label not in (None, chosen[start])
        ]
        return fallback(words, self._glued(rows_of_tags, words, missing), kind)

    def _bracket_posteriors(
        self, engine: Engine, entries: SentenceEntries, forest: Forest | None = None
    ) -> dict[Bracket, float]:
        """The posterior of every bracket in the chart, or in a forest that was made of it; tags included."""
        if forest is None and engine.chart.is_viterbi and not engine.fill(entries, viterbi=False):
            return {}
        by_bracket: dict[Bracket, float] = {}
        labels = self.model.grammar.labels
        joins_chains = self.model.preparation.cleaning.unaries
        nodes = (engine.exact_forest() if forest is None else forest).node_posteriors()
        for (label, start, end), posterior in nodes.items():
            plain = undo_label(labels[label])
            if plain is not None:
                for part in chain_parts(plain) if joins_chains else [plain]:
                    key = (part, start, end)
                    by_bracket[key] = by_bracket.get(key, 0.0) + posterior
        return by_bracket

    def tree_log_probability(self, tree: Tree) -> float:
        """The exact log probability of a tree (as annotated) with its words; -inf if the grammar has none."""
        encoded = self.model.preparation.encode(tree)
        if encoded is None:
            return -math.inf
        rows = rows_of_tree(encoded, self._number_of_label)
        if rows is None:
            return -math.inf
        with self._engine() as engine:
            return engine.tree_log_probability(rows, self._entries(words_of(encoded)))


def is_inside(bracket: GivenBracket, parts: Sequence[np.ndarray]) -> bool:
    """Whether one of the parts of a sentence has all words of a bracket, and so the bracket, too."""
    _, start, end = bracket
    return any(rows[0, 1] <= start and end <= rows[0, 2] for rows in parts)


def logs_of(candidates: Sequence[Candidate]) -> list[float]:
    return [candidate.log_probability for candidate in candidates]


def larger_total(log_total: float, candidates: Sequence[Candidate]) -> float:
    """A total, or that of these trees if it is more."""
    return max(log_total, float(np.logaddexp.reduce(logs_of(candidates))))
