"""The parsing service behind the web page, without HTTP: a sentence in, parses and derivations out as JSON values.

A service keeps no state between requests: models are read-only, and every response depends on its request only.
"""

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from typing import Any

from nltk.tokenize import TreebankWordTokenizer
from nltk.tree import Tree

from tsgkit.drawing.trees import Drawing, confidences
from tsgkit.models.model import Model
from tsgkit.parsing import Parse, ParserSettings
from tsgkit.parsing.known_tree import NoDerivationError
from tsgkit.parsing.product import parser_of
from tsgkit.report.derivation import Derivation, Deriver
from tsgkit.report.limits import Limits
from tsgkit.report.turns import POLL_SECONDS, BusyError, GoneError, Turns
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


def client_gone() -> RequestError:
    return RequestError(499, "gone", "the client has closed its connection")


class GivenUpError(Exception):
    """Work on a sentence was given up: its time is up, or nobody waits for it."""


@dataclass(frozen=True)
class Allowance:
    """How long a sentence may be worked on: until a time by the monotonic clock, or until an event is set."""

    deadline: float
    stop: threading.Event

    def require(self) -> None:
        """Give the sentence up if it has taken too long."""
        if self.stop.is_set() or time.monotonic() > self.deadline:
            raise GivenUpError


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
        self.turns = Turns(limits.threads, limits.queue)

    def about(self) -> dict[str, Any]:
        """The models and limits of this service."""
        models = [{"name": name, "kind": kind} for name, kind in zip(self.names, self.kinds, strict=True)]
        limits = {"words": self.limits.max_length, "bytes": self.limits.max_body, "seconds": self.limits.timeout}
        return {"models": models, "limits": {**limits, "trees": MAX_TREES}}

    # ---- requests ----------------------------------------------------------------------------------------

    def answer(self, value: object, client: str = "", is_gone: Callable[[], bool] = lambda: False) -> dict[str, Any]:
        """The response to the JSON value of a request, within the timeout.

        Parameters
        ----------
        value : object
        client : str
            Who asks. Clients take turns.
        is_gone : callable
            Whether nobody waits for the answer any more: then the sentence is given up.

        Raises
        ------
        RequestError
        """
        request = self.checked(value)
        deadline = time.monotonic() + self.limits.timeout
        try:
            self.turns.take(client, deadline, is_gone)
        except BusyError:
            raise RequestError(503, "busy", "too many requests are waiting; try again later") from None
        except GoneError:
            raise client_gone() from None
        stop = threading.Event()
        # The turn ends when its worker is done with the sentence, not when the client has given up.
        job = self.pool.submit(self.work, request, client, Allowance(deadline, stop))
        try:
            return self.result(job, deadline, is_gone)
        finally:
            stop.set()

    def result(self, job: Future[dict[str, Any]], deadline: float, is_gone: Callable[[], bool]) -> dict[str, Any]:
        """What a worker answers, unless the time is up or the client gone before that."""
        try:
            while True:
                try:
                    return job.result(timeout=min(POLL_SECONDS, max(deadline - time.monotonic(), 0.0)))
                except FutureTimeoutError:
                    if time.monotonic() >= deadline:
                        raise GivenUpError from None
                    if is_gone():
                        raise client_gone() from None
        except GivenUpError:
            seconds = f"{self.limits.timeout:g} s"
            raise RequestError(503, "timeout", f"not done within {seconds}; try a shorter sentence") from None

    def work(self, request: Request, client: str, allowance: Allowance) -> dict[str, Any]:
        try:
            return self.explain(request, allowance)
        finally:
            self.turns.give_back(client)

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

    def explain(self, request: Request, allowance: Allowance) -> dict[str, Any]:
        """Parse, and find the derivations."""
        started = time.monotonic()
        allowance.require()
        parse = self.parser.analyse(request.words, k=request.n_trees, confidence=True)
        trees = []
        for rank in range(len(parse.trees)):
            allowance.require()
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
