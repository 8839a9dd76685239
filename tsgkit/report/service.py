"""The parsing service behind the web page, without HTTP: a sentence in, parses and derivations out as JSON values.

A service keeps no state between requests: models are read-only, and every response depends on its request only.
"""

import math
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from typing import Any

from nltk.tokenize import TreebankWordTokenizer
from nltk.tree import Tree

from tsgkit.drawing.trees import Drawing, confidences
from tsgkit.errors import UsageError
from tsgkit.models.model import Model
from tsgkit.parsing import Parse, ParserSettings
from tsgkit.parsing.known_tree import NoDerivationError
from tsgkit.parsing.product import parser_of
from tsgkit.report.derivation import Derivation, Deriver
from tsgkit.treebank.brackets import format_tree
from tsgkit.treebank.trees import brackets_of

MAX_TREES = 20
# Settings of the parser whose defaults are others here: every thread of a server has charts of its own.
SERVICE_CHANGES: dict[str, Any] = {"max_bytes": 1 << 29}
N_EXAMPLES = 3
SPACES = frozenset(" \t\r\n\f\v")


class RequestError(Exception):
    """A request that cannot be answered.

    Parameters
    ----------
    status : int
        The HTTP status: 4xx if the request is invalid, 503 if the service cannot answer it now.
    code : str
        An error code for programs.
    message : str
        What is wrong and what to do, for people.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


@dataclass(frozen=True)
class Limits:
    """Limits of requests.

    Parameters
    ----------
    max_length : int
        Words per sentence.
    max_body : int
        Bytes per request.
    timeout : float
        Seconds until a response.
    threads : int
        Sentences parsed at the same time.
    queue : int
        Requests that may wait for a free thread; further requests are refused immediately.
    """

    max_length: int = 100
    max_body: int = 64 * 1024
    timeout: float = 20.0
    threads: int = 4
    queue: int = 32

    def __post_init__(self) -> None:
        for name in ("max_length", "max_body", "threads"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} {getattr(self, name)}: must be at least 1")
        if not self.timeout > 0:
            raise UsageError(f"timeout {self.timeout}: must be more than 0")
        if self.queue < 0:
            raise UsageError(f"queue {self.queue}: must not be negative")


@dataclass(frozen=True)
class Request:
    """A checked request."""

    words: list[str]
    n_trees: int
    model: int


class ParseService:
    """Parses and explains sentences with one model, or with the product of several.

    Parameters
    ----------
    models : sequence of Model
    names : sequence of str
        Names of the models.
    limits : Limits
    settings : ParserSettings
        How sentences are parsed; unless given, by the defaults, with less memory.
    """

    def __init__(
        self, models: Sequence[Model], names: Sequence[str], limits: Limits, settings: ParserSettings | None = None
    ) -> None:
        self.names, self.limits = list(names), limits
        self.parser = parser_of(models, settings or ParserSettings(**SERVICE_CHANGES))
        self.derivers = [Deriver(model) for model in models]
        self.kinds = [model.kind for model in models]
        self.tokenizer = TreebankWordTokenizer()
        self.pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="parse")
        self.free_workers = threading.BoundedSemaphore(limits.threads)
        self.free_places = threading.BoundedSemaphore(limits.threads + limits.queue)

    def about(self) -> dict[str, Any]:
        """The models and limits of this service."""
        models = [{"name": name, "kind": kind} for name, kind in zip(self.names, self.kinds, strict=True)]
        limits = {"words": self.limits.max_length, "bytes": self.limits.max_body, "seconds": self.limits.timeout}
        return {"models": models, "limits": {**limits, "trees": MAX_TREES}}

    # ---- requests ----------------------------------------------------------------------------------------

    def answer(self, value: object) -> dict[str, Any]:
        """The response to the JSON value of a request, within the timeout.

        Raises
        ------
        RequestError
        """
        request = self.checked(value)
        if not self.free_places.acquire(blocking=False):
            raise RequestError(503, "busy", "too many requests are waiting; try again later")
        try:
            return self.answer_in_time(request)
        finally:
            self.free_places.release()

    def answer_in_time(self, request: Request) -> dict[str, Any]:
        deadline = time.monotonic() + self.limits.timeout
        if not self.free_workers.acquire(timeout=self.limits.timeout):
            raise RequestError(503, "busy", "all workers are busy; try again later")
        # A worker is free again when its sentence is done, not when the client has given up.
        job = self.pool.submit(self.work, request, deadline)
        try:
            return job.result(timeout=max(deadline - time.monotonic(), 0.0))
        except (FutureTimeoutError, DeadlineError):
            seconds = f"{self.limits.timeout:g} s"
            raise RequestError(503, "timeout", f"not done within {seconds}; try a shorter sentence") from None

    def work(self, request: Request, deadline: float) -> dict[str, Any]:
        try:
            return self.explain(request, deadline)
        finally:
            self.free_workers.release()

    def checked(self, value: object) -> Request:
        """A valid request; otherwise an error that says what is wrong."""
        if not isinstance(value, dict):
            raise RequestError(400, "form", "the request must be a JSON object")
        unknown = sorted(set(value) - {"text", "words", "k", "model"})
        if unknown:
            raise RequestError(400, "form", f"unknown key {unknown[0]!r}; there are text, words, k and model")
        words = self.words_of(value)
        if not words:
            raise RequestError(400, "empty", "there are no words to parse")
        if len(words) > self.limits.max_length:
            most = self.limits.max_length
            raise RequestError(413, "length", f"{len(words)} words; at most {most} are parsed")
        k = self.whole_number(value, "k", 1, 1, MAX_TREES)
        model = self.whole_number(value, "model", 0, 0, len(self.derivers) - 1)
        return Request(words, k, model)

    def words_of(self, value: dict[str, Any]) -> list[str]:
        """The words of a request: as given, or its text tokenised as in the Penn Treebank."""
        if ("text" in value) == ("words" in value):
            raise RequestError(400, "form", "give either text (a sentence) or words (a list), not both")
        if "text" in value:
            if not isinstance(value["text"], str):
                raise RequestError(400, "form", "text must be a string")
            return [word for word in self.tokenizer.tokenize(value["text"], convert_parentheses=True) if word.strip()]
        words = value["words"]
        if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
            raise RequestError(400, "form", "words must be a list of non-empty strings")
        for number, word in enumerate(words, start=1):
            if SPACES & set(word):
                raise RequestError(400, "form", f"word {number} contains a space; give one word per item")
        return words

    @staticmethod
    def whole_number(value: dict[str, Any], name: str, default: int, least: int, most: int) -> int:
        number = value.get(name, default)
        if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
            raise RequestError(400, "form", f"{name} must be a whole number from {least} to {most}")
        return number

    # ---- answers -----------------------------------------------------------------------------------------

    def explain(self, request: Request, deadline: float) -> dict[str, Any]:
        """Parse, and find the derivations."""
        started = time.monotonic()
        require_time(deadline)
        parse = self.parser.analyse(request.words, k=request.n_trees, confidence=True)
        trees = []
        for rank in range(len(parse.trees)):
            require_time(deadline)
            trees.append(self.tree_value(parse, rank, self.derivers[request.model]))
        return {
            "words": parse.words,
            "fallback": parse.fallback,
            "log_probability": finite(parse.log_total),
            "trees": trees,
            "alternatives": [
                {"label": label, "start": start, "end": end, "posterior": round(posterior, 4)}
                for (label, start, end), posterior in sorted(parse.alternatives.items(), key=lambda pair: -pair[1])
            ],
            "model": self.names[request.model],
            "seconds": round(time.monotonic() - started, 4),
        }

    def tree_value(self, parse: Parse, rank: int, deriver: Deriver) -> dict[str, Any]:
        """One of the best trees."""
        tree = parse.trees[rank]
        drawing = Drawing.of_tree(tree, values=confidences(tree, parse.confidence))
        log_probability = parse.log_probabilities[rank]
        share = math.exp(min(log_probability - parse.log_total, 0.0)) if not parse.fallback else None
        value = {
            "brackets": format_tree(tree),
            "svg": drawing.svg(standalone=False, clickable=True),
            "latex": drawing.latex(),
            "nodes": node_values(drawing, tree, parse),
            "probability": share,
            "log_probability": finite(log_probability),
            "score": finite(parse.scores[rank]),
        }
        try:
            derivation = deriver.derive(tree)
        except NoDerivationError as error:
            return value | {"derivation": None, "why_not": str(error)}
        assert derivation is not None
        return value | {"derivation": derivation_value(derivation, deriver), "why_not": ""}


def node_values(drawing: Drawing, tree: Tree, parse: Parse) -> list[dict[str, Any] | None]:
    """Label, span and posterior probability of every drawn node; None for words."""
    brackets = iter(brackets_of(tree))
    values: list[dict[str, Any] | None] = []
    for node in drawing.nodes:
        if node.is_word:
            values.append(None)
            continue
        label, start, end = next(brackets)
        posterior = parse.confidence.get((label, start, end))
        rounded = None if posterior is None else round(posterior, 4)
        values.append({"label": label, "start": start, "end": end, "posterior": rounded})
    return values


def derivation_value(derivation: Derivation, deriver: Deriver) -> dict[str, Any]:
    """A derivation, its drawing, and the occurrences of its fragments."""
    drawing = derivation.drawing()
    hues = {node.step: node.hue for node in drawing.nodes}
    fragments = []
    for number, (step, count) in enumerate(zip(derivation.steps, derivation.counts, strict=True)):
        examples = deriver.examples(step, N_EXAMPLES)
        fragments.append(
            {
                "fragment": step.brackets,
                derivation.measure: count,
                "size": len(step.nodes),
                "start": step.start,
                "end": step.end,
                "depth": step.depth,
                "inserted": step.is_auxiliary,
                "hue": hues[number],
                "examples": [{"words": each.words, "start": each.start, "end": each.end} for each in examples],
            }
        )
    return {
        "svg": drawing.svg(standalone=False, clickable=True),
        "latex": drawing.latex(),
        "steps": [node.step for node in drawing.nodes],
        "log_probability": finite(derivation.log_weight),
        "measure": derivation.measure,
        "fragments": fragments,
    }


def finite(value: float) -> float | None:
    """A number as JSON allows it: None if it is not finite."""
    return value if math.isfinite(value) else None


class DeadlineError(Exception):
    """The timeout of a request has passed."""


def require_time(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise DeadlineError
