"""The parser: sentences in, trees out, one for every input whatever it is.

`Parser` is an `nltk.parse.api.ParserI`. What a sentence's tree rests on is never hidden: a `Parse` says
whether the grammar made it or a fallback did, and with what probability.
"""

import copy
import math
import os
import queue
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from nltk.parse.api import ParserI
from nltk.tree import ProbabilisticTree, Tree

from tsgkit._derivations import best_derivation
from tsgkit.errors import UsageError
from tsgkit.grammar import WeightedGrammar
from tsgkit.models.model import Model
from tsgkit.parsing.engine import Candidate, Cascade, Engine, EngineSettings
from tsgkit.parsing.fallback import flat_rows, glued_rows
from tsgkit.parsing.lexical import TAG_MODES, Entries, LexicalTable
from tsgkit.parsing.rows import project, rows_of_tree, tree_of_rows
from tsgkit.streams import until_failure
from tsgkit.treebank.binarize import undo_label
from tsgkit.treebank.clean import chain_parts
from tsgkit.treebank.trees import Bracket, brackets_of

FALLBACKS = ("empty", "coarse", "glued", "flat")
SMALLEST_ALTERNATIVE = 0.01
# Sentences given to each thread before results are waited for.
WINDOW = 8


@dataclass
class Parse:
    """The analysis of a sentence.

    Attributes
    ----------
    words : list of str
        The sentence, as given.
    trees : list of nltk.Tree
        Best first; at least one, over exactly these words.
    scores : list of float
        By the objective, one per tree.
    logs : list of float, or callable that returns it
        What `log_probabilities` are, or how to find them.
    total : float, or callable that returns it
        What `log_total` is, or how to find it.
    fallback : str
        ``''`` when the grammar made the tree; otherwise what it is instead: ``empty`` (no words),
        ``coarse`` (the best tree of the coarsest grammar, where the finest has none or needs too much
        memory), ``glued`` (parts under a root, where no grammar spans the words), ``flat`` (tags only:
        too long, or too much memory even for the coarsest grammar).
    confidence : dict
        The posterior probability of every bracket of the trees, by ``(label, start, end)``; empty unless
        asked for, and for a fallback.
    alternatives : dict
        The same of all brackets that have at least one percent, in the trees or not.
    """

    words: list[str]
    trees: list[Tree]
    scores: list[float]
    logs: list[float] | Callable[[], list[float]] = field(repr=False, compare=False)
    total: float | Callable[[], float] = field(repr=False, compare=False)
    fallback: str = ""
    confidence: dict[Bracket, float] = field(default_factory=dict)
    alternatives: dict[Bracket, float] = field(default_factory=dict)

    def take_posteriors(self, posteriors: dict[Bracket, float]) -> None:
        """Keep what is of interest of the posteriors of all brackets in the chart, if there are any."""
        if not posteriors:
            return
        brackets = (bracket for tree in self.trees for bracket in brackets_of(tree))
        self.confidence = {bracket: min(1.0, posteriors.get(bracket, 0.0)) for bracket in brackets}
        self.alternatives = {
            bracket: min(1.0, posterior)
            for bracket, posterior in posteriors.items()
            if posterior >= SMALLEST_ALTERNATIVE
        }

    @property
    def tree(self) -> Tree:
        """The best tree."""
        return self.trees[0]

    @property
    def log_probabilities(self) -> list[float]:
        """Of each tree with its words under the grammar, -inf for a fallback; found when first asked for."""
        if callable(self.logs):
            self.logs = self.logs()
        return self.logs

    @property
    def log_total(self) -> float:
        """The log probability of the words: summed over all trees that were looked at; found when first asked for."""
        if callable(self.total):
            self.total = self.total()
        return self.total

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "logs": self.log_probabilities, "total": self.log_total}

    def _repr_svg_(self) -> str:
        """The best tree as a picture, for notebooks; with the confidence of its phrases if there is one."""
        from tsgkit.drawing.trees import Drawing, confidences  # noqa: PLC0415 - most parses are not looked at

        return Drawing.of_tree(self.tree, values=confidences(self.tree, self.confidence)).svg()


class Parser(ParserI):
    """Parses with a trained model.

    Parameters
    ----------
    model : Model or path
    objective : str
        What the best tree is; see `tsgkit.parsing.engine.EngineSettings`.
    threshold, pruning, n_samples, n_derivations, max_bytes
        As in `EngineSettings`.
    max_length : int, optional
        Longer sentences get a flat fallback tree.
    tags : {"none", "hard", "soft"}
        What to do with tags when sentences come with them.
    seed : int
        Of the sampled objectives; a sentence's samples depend on it and on the sentence's number alone.

    correction : callable, optional
        For the sampled objectives: log of the true over the sampled probability of a derivation, by which samples
        are accepted or rejected; see `tsgkit.models.tsg_predictive.DerivationCorrection`.

    Examples
    --------
    >>> from tsgkit.models.cfg import cfg_model
    >>> from tsgkit.treebank import Binarization, UnknownWords, load, prepare
    >>> corpus = prepare(load(split="train"), binarization=Binarization("right", 1), unknown=UnknownWords())
    >>> parser = Parser(cfg_model(corpus))
    >>> parser.parse_one("the old man smiled .".split()).label()
    'TOP'
    """

    def __init__(
        self,
        model: Model | str | os.PathLike[str],
        *,
        objective: str = "max-rule",
        threshold: float = 3e-4,
        pruning: str = "posterior",
        n_samples: int = 1000,
        n_derivations: int = 100,
        max_bytes: int = EngineSettings.max_bytes,
        max_length: int | None = None,
        tags: str = "none",
        seed: int = 0,
        correction: Callable[[np.ndarray, Sequence[int], np.random.Generator], float] | None = None,
    ) -> None:
        self.model = model if isinstance(model, Model) else Model.load(model)
        self.settings = EngineSettings(objective, threshold, pruning, n_samples, n_derivations, max_bytes)
        if tags not in TAG_MODES:
            raise UsageError(f"tags {tags!r}: must be one of {', '.join(TAG_MODES)}")
        self.max_length, self.tag_mode, self.seed = max_length, tags, seed
        self.correction = correction
        self.number_of_word = {word: number for number, word in enumerate(self.model.grammar.words)}
        self.cascade = Cascade(self.model.stages)
        self.tables = [
            LexicalTable(grammar, index)
            for grammar, index in zip(self.cascade.grammars, self.cascade.indices, strict=True)
        ]
        self.idle_engines: queue.SimpleQueue[Engine] = queue.SimpleQueue()
        self.number_of_label = {label: number for number, label in enumerate(self.model.grammar.labels)}
        self.root = self.wrapped(self.model.grammar, []).label()

    # ---- NLTK's interface ----------------------------------------------------------------------------

    def grammar(self) -> WeightedGrammar:
        """The finest grammar."""
        return self.model.grammar

    def parse(self, sent: Sequence[str], k: int = 10) -> Iterator[ProbabilisticTree]:
        """Trees for a sentence, best first, each with its probability given the words.

        Parameters
        ----------
        sent : sequence of str
            The words.
        k : int
            The most trees to yield; there is always at least one.
        """
        result = self.analyse(sent, k=k)
        for tree, log_probability in zip(result.trees, result.log_probabilities, strict=True):
            yield probabilistic(tree, log_probability - result.log_total if not result.fallback else -math.inf)

    def parse_one(self, sent: Sequence[str]) -> ProbabilisticTree:
        """The best tree for a sentence."""
        return next(self.parse(sent, k=1))

    # ---- ours ----------------------------------------------------------------------------------------

    def parse_sents(self, sents: Iterable[Sequence[str]]) -> Iterator[Iterator[ProbabilisticTree]]:
        """For every sentence what `parse` yields."""
        return (self.parse(sent) for sent in sents)

    def analyse(
        self,
        words: Sequence[str],
        tags: Sequence[str | None] | None = None,
        *,
        k: int = 1,
        number: int = 0,
        confidence: bool = False,
    ) -> Parse:
        """Everything about one sentence.

        Parameters
        ----------
        words : sequence of str
        tags : sequence of str or None, optional
            One per word; used as the parser's `tags` says.
        k : int
            How many trees at most.
        number : int
            The sentence's number, which the samples of sampled objectives depend on.
        confidence : bool
            Whether to compute posterior probabilities of brackets.
        """
        words = list(words)
        if k < 1:
            raise UsageError(f"k={k}: must be at least 1")
        if tags is not None and len(tags) != len(words):
            raise UsageError(f"{len(tags)} tags for {len(words)} words")
        if not words:
            return fallback(words, Tree(self.root, []), "empty")
        engine = self.take_engine()
        try:
            return self.analyse_with(engine, words, tags, k=k, number=number, confidence=confidence)
        finally:
            self.idle_engines.put(engine)

    def take_engine(self) -> Engine:
        try:
            return self.idle_engines.get_nowait()
        except queue.Empty:
            return Engine(self.cascade, self.settings)

    def analyse_with(
        self,
        engine: Engine,
        words: list[str],
        tags: Sequence[str | None] | None,
        *,
        k: int,
        number: int,
        confidence: bool,
    ) -> Parse:
        symbols = self.model.preparation.vocabulary_words(words)
        entries = [table.entries(symbols, tags, self.tag_mode) for table in self.tables]
        if self.max_length is not None and len(words) > self.max_length:
            return self.flat(words, entries[0])
        random = np.random.Generator(np.random.PCG64([self.seed, number]))
        if self.correction is not None:
            numbers = [self.number_of_word.get(symbol, -1) for symbol in symbols]
            engine.log_correction = partial(correct, self.correction, numbers)
        try:
            candidates = engine.candidates(entries, k, random)
            if not candidates:
                return self.without_analysis(engine, words, entries)
            result = self.result(words, candidates, self.log_total(engine, entries, candidates))
            if confidence:
                result.take_posteriors(self.bracket_posteriors(engine, entries))
        except OverflowError:  # weights beyond the range of floats
            return self.flat(words, entries[0])
        return result

    def log_total(self, engine: Engine, entries: list[Entries], candidates: list[Candidate]) -> Callable[[], float]:
        """How to find the log probability of the words: of all trees in the chart, or of those at hand if more."""
        if engine.chart.is_viterbi:
            return partial(self.searched_total, entries, candidates)
        return partial(larger_total, float(engine.chart.log_total), candidates)

    def searched_total(self, entries: list[Entries], candidates: list[Candidate]) -> float:
        """The same after a search of its own, because the chart had the best derivations only."""
        known = larger_total(-math.inf, candidates)
        engine = self.take_engine()
        try:
            return max(engine.chart.log_total, known) if engine.search(entries, viterbi=False) else known
        except OverflowError:
            return known
        finally:
            self.idle_engines.put(engine)

    def result(self, words: list[str], candidates: list[Candidate], log_total: Callable[[], float]) -> Parse:
        return Parse(
            words,
            [self.decoded(candidate.rows, self.model.grammar, words) for candidate in candidates],
            [candidate.score for candidate in candidates],
            partial(logs_of, candidates),
            log_total,
        )

    def decoded(self, rows: np.ndarray, grammar: WeightedGrammar, words: list[str]) -> Tree:
        """The tree of a grammar's rows as an annotator would write it."""
        return self.model.preparation.decode(tree_of_rows(rows, grammar.labels, words))

    def wrapped(self, grammar: WeightedGrammar, parts: list[Tree]) -> Tree:
        """Trees as the grammar makes them, side by side under the root, as an annotator would write them."""
        return self.model.preparation.decode(Tree(grammar.labels[grammar.label[grammar.root]], parts))

    def without_analysis(self, engine: Engine, words: list[str], entries: list[Entries]) -> Parse:
        """A tree all the same: by the coarsest grammar, or of parts, or of tags alone."""
        chart, grammar = engine.charts[0], self.cascade.grammars[0]
        found = chart.fill(*entries[0], viterbi=True) > -math.inf
        if chart.is_over_budget:
            return self.flat(words, entries[0])
        if found:
            rows = project(best_derivation(chart)[0], grammar.label)
            return fallback(words, self.decoded(rows, grammar, words), "coarse")
        parts = [tree_of_rows(rows, grammar.labels, words) for rows in glued_rows(chart, grammar)]
        return fallback(words, self.wrapped(grammar, parts), "glued") if parts else self.flat(words, entries[0])

    def flat(self, words: list[str], entries: Entries) -> Parse:
        grammar, index = self.cascade.grammars[0], self.cascade.indices[0]
        rows_of_tags = flat_rows(entries, index.symbol_of_rank, grammar)
        tags = [tree_of_rows(rows, grammar.labels, words) for rows in rows_of_tags]
        return fallback(words, self.wrapped(grammar, tags), "flat")

    def bracket_posteriors(self, engine: Engine, entries: list[Entries]) -> dict[Bracket, float]:
        """The posterior of every bracket in the chart, tags included."""
        if engine.chart.is_viterbi and not engine.search(entries, viterbi=False):
            return {}
        by_bracket: dict[Bracket, float] = {}
        labels = self.model.grammar.labels
        joins_chains = self.model.preparation.cleaning.unaries
        for (label, start, end), posterior in engine.exact_forest().node_posteriors().items():
            plain = undo_label(labels[label])
            if plain is not None:
                for part in chain_parts(plain) if joins_chains else [plain]:
                    key = (part, start, end)
                    by_bracket[key] = by_bracket.get(key, 0.0) + posterior
        return by_bracket

    def parse_batch(
        self,
        sentences: Iterable[tuple[Sequence[str], Sequence[str | None] | None]],
        *,
        threads: int = 1,
        k: int = 1,
        confidence: bool = False,
        first_number: int = 0,
    ) -> Iterator[Parse]:
        """Parse sentences as they come, on several threads; results stream in the order of the input.

        The output is the same whatever the number of threads. When the input fails in the middle, what
        came before is parsed all the same.

        Parameters
        ----------
        sentences : iterable of (words, tags)
            The tags are ``None``, or one for every word.
        threads : int
        k, confidence
            As for `analyse`.
        first_number : int
            The number of the first sentence.
        """
        numbered = enumerate(sentences, start=first_number)
        if threads <= 1:
            for number, (words, tags) in numbered:
                yield self.analyse(words, tags, k=k, number=number, confidence=confidence)
            return
        with ThreadPoolExecutor(threads) as pool:
            pending: deque[Future[Parse]] = deque()
            failures: list[Exception] = []
            try:
                for number, (words, tags) in until_failure(numbered, failures):
                    job = pool.submit(self.analyse, words, tags, k=k, number=number, confidence=confidence)
                    pending.append(job)
                    if len(pending) >= WINDOW * threads:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                for job in pending:
                    job.cancel()
        if failures:
            raise failures[0]

    def tree_log_probability(self, tree: Tree) -> float:
        """The exact log probability of a tree (as annotated) with its words; -inf if the grammar has none."""
        encoded = self.model.preparation.encode(tree)
        if encoded is None:
            return -math.inf
        rows = rows_of_tree(encoded, self.number_of_label)
        if rows is None:
            return -math.inf
        engine = self.take_engine()
        try:
            symbols = self.model.preparation.vocabulary_words(encoded.leaves())
            return engine.tree_log_probability(rows, [table.entries(symbols) for table in self.tables])
        finally:
            self.idle_engines.put(engine)

    def search_errors(self, sentences: Iterable[Sequence[str]]) -> tuple[int, int]:
        """How often pruning changes the answer.

        Returns
        -------
        changed, total : int
            Sentences whose best tree differs from the one found without pruning, and all sentences for
            which the grammar makes one without pruning, within the bound of memory.
        """
        exact = copy.copy(self)
        exact.settings = replace(self.settings, threshold=0.0)
        exact.idle_engines = queue.SimpleQueue()
        changed = total = 0
        for number, words in enumerate(sentences):
            unpruned = exact.analyse(words, number=number)
            if not unpruned.fallback:
                changed += self.analyse(words, number=number).tree != unpruned.tree
                total += 1
        return changed, total


def correct(
    correction: Callable[[np.ndarray, Sequence[int], np.random.Generator], float],
    words: Sequence[int],
    rows: np.ndarray,
    random: np.random.Generator,
) -> float:
    """A correction with the words of its sentence in place."""
    return correction(rows, words, random)


def probabilistic(tree: Tree, log_probability: float) -> ProbabilisticTree:
    """The same tree with a probability at its root, as NLTK's probabilistic parsers return it."""
    return ProbabilisticTree(tree.label(), list(tree), logprob=log_probability / math.log(2))


def logs_of(candidates: Sequence[Candidate]) -> list[float]:
    return [candidate.log_probability for candidate in candidates]


def larger_total(log_total: float, candidates: Sequence[Candidate]) -> float:
    """A total, or that of these trees if it is more."""
    return max(log_total, float(np.logaddexp.reduce(logs_of(candidates))))


def fallback(words: list[str], tree: Tree, kind: str) -> Parse:
    """A parse that the grammar did not make."""
    return Parse(words, [tree], [-math.inf], [-math.inf], -math.inf, kind)
