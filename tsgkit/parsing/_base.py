"""What all parsers have in common: NLTK's interface, batches on several threads, search errors.

A parser is given by what it does with one sentence, `SentenceParser.analyse`. One model makes a
`tsgkit.parsing.Parser`, several make a `tsgkit.parsing._product.ProductParser`.
"""

import math
import numbers
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Self, TypeVar, Unpack

from nltk.parse.api import ParserI
from nltk.tree import ProbabilisticTree, Tree

from tsgkit._messages import kind_of
from tsgkit._streams import until_failure
from tsgkit._threads import thread_pool
from tsgkit._work_limit import WorkLimit
from tsgkit.errors import UsageError
from tsgkit.grammar import WeightedGrammar
from tsgkit.models._model import Model
from tsgkit.parsing._parse import Parse
from tsgkit.parsing._settings import ParserParameters, ParserSettings
from tsgkit.treebank._partial import GivenBracket
from tsgkit.treebank._trees import SPACE, same_tree

P = TypeVar("P", bound="SentenceParser")
R = TypeVar("R")
Tags = Sequence[str | None] | None
Sentence = tuple[Sequence[str], Tags] | tuple[Sequence[str], Tags, Sequence[GivenBracket]]
# Sentences given to each thread before results are waited for.
WINDOW = 8


def require_words(words: Sequence[str]) -> list[str]:
    """The words of a sentence as a list; a TypeError if it is a string, whose letters would be parsed as words.

    A sentence of one word that has spaces is probably a text that is not split; there is a warning.

    Examples
    --------
    >>> require_words("El grupo")
    Traceback (most recent call last):
        ...
    TypeError: a sentence is a sequence of words, not the string 'El grupo'; split it into words
    """
    if isinstance(words, str | bytes):
        raise TypeError(f"a sentence is a sequence of words, not the string {words!r}; split it into words")
    if isinstance(words, Tree):
        raise TypeError("a sentence is a sequence of words, not a tree; tree.leaves() are the words of a tree")
    if not isinstance(words, Iterable):
        raise TypeError(f"a sentence is a sequence of words, not {kind_of(words)}")
    found = list(words)
    for word in found:
        if not isinstance(word, str):
            raise TypeError(f"a sentence is a sequence of words, and {word!r} is not a string")
    if len(found) == 1 and SPACE.search(found[0].strip()):
        text = f"the only word of the sentence is {found[0]!r}: if it is a text, split it, as in {found[0]!r}.split()"
        warnings.warn(text, stacklevel=2)
    return found


def require_whole(name: str, value: object, least: int) -> None:
    """Refuse what is no whole number, or too small."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise UsageError(f"{name}={value!r}: must be a whole number")
    if value < least:
        raise UsageError(f"{name}={value}: must be at least {least}")


def require_sentences(sentences: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """The words of sentences; a TypeError if they are one string.

    Examples
    --------
    >>> list(require_sentences("El grupo"))
    Traceback (most recent call last):
        ...
    TypeError: sentences are sequences of words, not the string 'El grupo'; split it, as in ['El grupo'.split()]
    """
    if isinstance(sentences, str | bytes):
        raise TypeError(
            f"sentences are sequences of words, not the string {sentences!r}; split it, as in [{sentences!r}.split()]"
        )
    if not isinstance(sentences, Iterable):
        raise TypeError(f"sentences are sequences of words, not {kind_of(sentences)}")
    yield from map(require_words, sentences)


class SentenceParser(ParserI, ABC):
    """A parser of tokenised sentences; an `nltk.parse.api.ParserI`.

    Attributes
    ----------
    settings : ParserSettings
        How it parses; `with_settings` makes a parser that does it in another way.
    """

    settings: ParserSettings

    # ---- what a parser is ----------------------------------------------------------------------------

    @abstractmethod
    def grammar(self) -> WeightedGrammar:
        """The finest grammar; of several models, that of the first."""

    @abstractmethod
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
        """Everything about one sentence.

        Parameters
        ----------
        words : sequence of str
        tags : sequence of str or None, optional
            One per word; used as the setting `tags` says.
        k : int
            How many trees at most.
        number : int
            The sentence's number, which the samples of sampled objectives depend on.
        confidence : bool
            Whether to compute posterior probabilities of brackets.
        limit : WorkLimit, optional
            In the place of the setting `max_seconds`: when to stop. Its `cancel`, called from any thread, ends the
            work within a fraction of a second.
        brackets : sequence of (label, start, end)
            What all trees must have: a node with this label, or with any if it is ``None``, over exactly the words
            from `start` to before `end`. Probabilities and confidences are conditional on them. Of brackets over the
            same words, the first is the outer one.
        pool : Executor, optional
            Threads that may work at the sentence, too, while they have nothing else to do. The result does not depend
            on them.

        Raises
        ------
        CancelledError
            If the limit was cancelled.
        """

    @abstractmethod
    def tree_log_probability(self, tree: Tree) -> float:
        """The exact log probability of a tree (as annotated) with its words; -inf if no grammar makes it.

        Parameters
        ----------
        tree : nltk.Tree
            As annotated.
        """

    @abstractmethod
    def with_settings(self, settings: ParserSettings | None = None, **changes: Unpack[ParserParameters]) -> Self:
        """A parser with the same models, which are shared, and other settings: these, or its own but for changes.

        Parameters
        ----------
        settings : ParserSettings, optional
        **changes
            Fields of the settings.
        """

    @abstractmethod
    def models(self) -> list[Model]:
        """The models that it parses with."""

    def __reduce__(self) -> tuple[Any, ...]:
        """For processes of others: the bytes of the models, whose indices are built again there."""
        return rebuilt, ([model.to_bytes() for model in self.models()], self.settings)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(map(repr, self.models()))}>"

    # ---- NLTK's interface ----------------------------------------------------------------------------

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

    def parse_sents(self, sents: Iterable[Sequence[str]]) -> Iterator[Iterator[ProbabilisticTree]]:
        """For every sentence what `parse` yields."""
        return (self.parse(sent) for sent in sents)

    # ---- many sentences ------------------------------------------------------------------------------

    def parse_batch(
        self,
        sentences: Iterable[Sentence],
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
        sentences : iterable of (words, tags) or (words, tags, brackets)
            The tags are ``None``, or one for every word; brackets as for `analyse`.
        threads : int
        k, confidence
            As for `analyse`.
        first_number : int
            The number of the first sentence.
        """
        require_whole("threads", threads, 1)
        numbered = enumerate(sentences, start=first_number)
        if threads == 1:
            for number, (words, tags, *given) in numbered:
                brackets = given[0] if given else ()
                yield self.analyse(words, tags, k=k, number=number, confidence=confidence, brackets=brackets)
            return
        with thread_pool(threads) as pool:
            pending: deque[Job] = deque()
            failures: list[Exception] = []
            try:
                for number, (words, tags, *given) in until_failure(numbered, failures):
                    options = {"k": k, "number": number, "confidence": confidence}
                    pending.append(Job(self, pool, words, tags, **options, brackets=given[0] if given else ()))
                    if len(pending) >= WINDOW * threads:
                        yield pending[0].result()
                        pending.popleft()
                while pending:
                    yield pending[0].result()
                    pending.popleft()
            finally:
                for job in pending:
                    job.cancel()
        if failures:
            raise failures[0]

    def search_errors(self, sentences: Iterable[Sequence[str]]) -> tuple[int, int]:
        """How often pruning changes the answer.

        Returns
        -------
        changed, total : int
            Sentences whose best tree differs from the one found without pruning, and all sentences for
            which the grammar makes one without pruning, within the bound of memory.
        """
        exact = self.with_settings(threshold=0.0)
        changed = total = 0
        for number, words in enumerate(sentences):
            unpruned = exact.analyse(words, number=number)
            if not unpruned.fallback:
                changed += not same_tree(self.analyse(words, number=number).tree, unpruned.tree)
                total += 1
        return changed, total


def results_of(calls: Sequence[Callable[[], R]], pool: Executor | None = None) -> list[R]:
    """What calls return, in their order; idle threads of a pool take some of them.

    Calls that no thread has begun are made here, the last one first, so that nothing waits for a busy pool.

    Examples
    --------
    >>> with ThreadPoolExecutor(2) as pool:
    ...     results_of([lambda: 1, lambda: 2, lambda: 3], pool)
    [1, 2, 3]
    """
    if pool is None:
        return [call() for call in calls]
    futures: list[Future[R]] = []
    results: dict[int, R] = {}
    try:
        with suppress(RuntimeError):  # the pool closes
            for call in calls:
                futures.append(pool.submit(call))
        for place in reversed(range(len(calls))):
            if place >= len(futures) or futures[place].cancel():
                results[place] = calls[place]()
        return [results[place] if place in results else futures[place].result() for place in range(len(calls))]
    finally:
        wait([future for future in futures if not future.cancel()])


def sharing_copy(parser: P) -> P:
    """Another parser that shares all parts with this one; `copy.copy` would rebuild them, as for another process."""
    twin = object.__new__(type(parser))
    twin.__dict__.update(parser.__dict__)
    return twin


class Job:
    """A sentence that a thread of a pool parses, with a limit that is its own: its time begins when its turn comes."""

    def __init__(self, parser: SentenceParser, pool: ThreadPoolExecutor, *arguments: Any, **options: Any) -> None:
        self.parser, self.pool, self.arguments, self.options = parser, pool, arguments, options
        self.limit: WorkLimit | None = None
        self.is_cancelled = False
        self.future: Future[Parse] = pool.submit(self.run)

    def run(self) -> Parse:
        self.limit = WorkLimit(self.parser.settings.max_seconds)
        if self.is_cancelled:
            self.limit.cancel()
        return self.parser.analyse(*self.arguments, **self.options, limit=self.limit, pool=self.pool)

    def result(self) -> Parse:
        """The parse, when it is done."""
        return self.future.result()

    def cancel(self) -> None:
        """Give it up, even in the middle."""
        self.is_cancelled = True
        if not self.future.cancel() and self.limit is not None:
            self.limit.cancel()


def probabilistic(tree: Tree, log_probability: float) -> ProbabilisticTree:
    """The same tree with a probability at its root, as NLTK's probabilistic parsers return it."""
    return ProbabilisticTree(tree.label(), list(tree), logprob=log_probability / math.log(2))


def rebuilt(contents: Sequence[bytes], settings: ParserSettings) -> SentenceParser:
    """A parser from the bytes of its models."""
    from tsgkit.parsing._product import parser_of  # noqa: PLC0415 - parsers are built on this module

    return parser_of([Model.load("model", content) for content in contents], settings)
