"""The parsing service behind the web page, without HTTP: a sentence in, parses and derivations out as JSON values.

A service keeps no state between requests: models are read-only, and every response depends on its request only.
"""

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from typing import Any

from nltk.tree import Tree

from tsgkit._threads import thread_pool
from tsgkit._work_limit import WorkLimit
from tsgkit.drawing._arcs import ArcDrawing
from tsgkit.drawing._trees import Drawing, confidences
from tsgkit.errors import OutOfTimeError, TreebankError
from tsgkit.evaluation import Parameters
from tsgkit.evaluation._differences import mark_brackets
from tsgkit.evaluation._parameters import DEFAULT_PARAMETERS, parameters_named
from tsgkit.evaluation._scores import BracketCounts
from tsgkit.models._model import Model
from tsgkit.parsing import Parse, ParserSettings
from tsgkit.parsing._known_tree import NoDerivationError
from tsgkit.parsing._product import parser_of
from tsgkit.report._derivation import Derivation, Deriver
from tsgkit.report._examples import Examples
from tsgkit.report._limits import Limits
from tsgkit.report._tokens import tokenizer_of
from tsgkit.report._turns import POLL_SECONDS, BusyError, GoneError, Turns
from tsgkit.treebank._brackets import format_tree, read_brackets
from tsgkit.treebank._dependencies import conllu_block, dependencies_of
from tsgkit.treebank._heads import HeadRules
from tsgkit.treebank._sources import is_tree
from tsgkit.treebank._trees import brackets_of, preorder, words

MAX_TREES = 20
LEAST_SECONDS = 0.001
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


@dataclass(frozen=True)
class Request:
    """A checked request."""

    words: list[str]
    n_trees: int
    model: int
    gold: Tree | None = None


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
    examples : Examples
        Sentences with gold trees; unless given, training sentences.
    head_rules : str
        The text of head rules, for dependencies; unless given, those of the treebank of the first model.
    """

    def __init__(
        self,
        models: Sequence[Model],
        names: Sequence[str],
        limits: Limits,
        settings: ParserSettings | None = None,
        examples: Examples | None = None,
        *,
        head_rules: str = "",
    ) -> None:
        self.names, self.limits = list(names), limits
        self.parser = parser_of(models, settings or ParserSettings(**SERVICE_CHANGES))
        self.derivers = [Deriver(model) for model in models]
        self.kinds = [model.kind for model in models]
        self.has_span_labels = any(model.span_labels is not None for model in models)
        self.tokenizer = tokenizer_of(models[0])
        preparation = models[0].preparation
        self.cleaning = preparation.cleaning
        self.parameters = parameters_named(preparation.parameters or DEFAULT_PARAMETERS)
        self.heads = HeadRules.parse(head_rules, "head rules") if head_rules else preparation.heads
        self.given_examples = examples or Examples.of_training(models[0])
        self.pool = thread_pool(limits.threads, "parse")
        self.turns = Turns(limits.threads, limits.queue)

    def about(self) -> dict[str, Any]:
        """The models and limits of this service."""
        models = [{"name": name, "kind": kind} for name, kind in zip(self.names, self.kinds, strict=True)]
        limits = {"words": self.limits.max_length, "bytes": self.limits.max_body, "seconds": self.limits.timeout}
        return {
            "models": models,
            "limits": {**limits, "trees": MAX_TREES},
            "tokenization": self.tokenizer.name,
            "span_labels": self.has_span_labels and self.parser.settings.span_power > 0,
        }

    def examples(self) -> dict[str, Any]:
        """Sentences to begin with, and their gold trees."""
        found = [{"words": words(tree), "gold": format_tree(tree)} for tree in self.given_examples.trees]
        return {"source": self.given_examples.source, "examples": found}

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
        limit = WorkLimit(max(deadline - time.monotonic(), LEAST_SECONDS))
        job = self.pool.submit(self.work, request, client, limit)
        try:
            return self.result(job, deadline, is_gone)
        finally:
            limit.cancel()  # if it is still at work, its worker is free soon

    def result(self, job: Future[dict[str, Any]], deadline: float, is_gone: Callable[[], bool]) -> dict[str, Any]:
        """What a worker answers, unless the time is up or the client gone before that."""
        try:
            while True:
                try:
                    return job.result(timeout=min(POLL_SECONDS, max(deadline - time.monotonic(), 0.0)))
                except FutureTimeoutError:
                    if time.monotonic() >= deadline:
                        raise OutOfTimeError from None
                    if is_gone():
                        raise client_gone() from None
        except OutOfTimeError:
            seconds = f"{self.limits.timeout:g} s"
            raise RequestError(503, "timeout", f"not done within {seconds}; try a shorter sentence") from None

    def work(self, request: Request, client: str, limit: WorkLimit) -> dict[str, Any]:
        try:
            return self.explain(request, limit)
        finally:
            self.turns.give_back(client)

    def checked(self, value: object) -> Request:
        """A valid request; otherwise an error that says what is wrong."""
        if not isinstance(value, dict):
            raise RequestError(400, "form", "the request must be a JSON object")
        unknown = sorted(set(value) - {"text", "words", "gold", "k", "model"})
        if unknown:
            raise RequestError(400, "form", f"unknown key {unknown[0]!r}; there are text, words, gold, k and model")
        found = self.words_of(value)
        if not found:
            raise RequestError(400, "empty", "there are no words to parse")
        if len(found) > self.limits.max_length:
            most = self.limits.max_length
            raise RequestError(413, "length", f"{len(found)} words; at most {most} are parsed")
        k = self.whole_number(value, "k", 1, 1, MAX_TREES)
        model = self.whole_number(value, "model", 0, 0, len(self.derivers) - 1)
        return Request(found, k, model, self.gold_of(value, found))

    def words_of(self, value: dict[str, Any]) -> list[str]:
        """The words of a request: as given, or its text tokenised as in the treebank."""
        if ("text" in value) == ("words" in value):
            raise RequestError(400, "form", "give either text (a sentence) or words (a list), not both")
        if "text" in value:
            if not isinstance(value["text"], str):
                raise RequestError(400, "form", "text must be a string")
            if is_tree(value["text"]):
                raise RequestError(400, "tree", "this is a tree, not a sentence; trees are compared with as gold trees")
            return self.tokenizer.tokenize(value["text"])
        given = value["words"]
        if not isinstance(given, list) or not all(isinstance(word, str) and word for word in given):
            raise RequestError(400, "form", "words must be a list of non-empty strings")
        for number, word in enumerate(given, start=1):
            if SPACES & set(word):
                raise RequestError(400, "form", f"word {number} contains a space; give one word per item")
        return given

    def gold_of(self, value: dict[str, Any], found: list[str]) -> Tree | None:
        """The gold tree of a request, cleaned as the training trees; None without one, or if it has other words."""
        gold = value.get("gold")
        if gold is None:
            return None
        if not isinstance(gold, str):
            raise RequestError(400, "gold", "gold must be a string: a tree in brackets")
        try:
            trees = list(read_brackets(gold.splitlines(), "gold tree"))
        except TreebankError as error:
            raise RequestError(400, "gold", str(error)) from None
        if len(trees) != 1:
            raise RequestError(400, "gold", f"gold must be one tree in brackets, not {len(trees)}")
        clean = self.cleaning.apply(trees[0])
        if clean is None:
            raise RequestError(400, "gold", "the gold tree has no words")
        tree = self.cleaning.undo(clean)
        return tree if words(tree) == found else None

    @staticmethod
    def whole_number(value: dict[str, Any], name: str, default: int, least: int, most: int) -> int:
        number = value.get(name, default)
        if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
            raise RequestError(400, "form", f"{name} must be a whole number from {least} to {most}")
        return number

    # ---- answers -----------------------------------------------------------------------------------------

    def explain(self, request: Request, limit: WorkLimit) -> dict[str, Any]:
        """Parse, and find the derivations; a sentence is given up when its time is up or nobody waits for it."""
        started = time.monotonic()
        limit.check()
        parse = self.parser.analyse(request.words, k=request.n_trees, confidence=True, limit=limit)
        trees = []
        for rank in range(len(parse.trees)):
            limit.check()
            trees.append(self.tree_value(parse, rank, self.derivers[request.model], request.gold))
        return {
            "gold": self.gold_value(request.gold, parse.tree) if request.gold is not None else None,
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

    def tree_value(self, parse: Parse, rank: int, deriver: Deriver, gold: Tree | None) -> dict[str, Any]:
        """One of the best trees, compared with a gold tree if there is one."""
        tree = parse.trees[rank]
        marks, score = compared(gold, tree, self.parameters) if gold is not None else (None, {})
        drawing = Drawing.of_tree(tree, values=confidences(tree, parse.confidence), marks=marks)
        log_probability = parse.log_probabilities[rank]
        value = {
            "brackets": format_tree(tree),
            "svg": drawing.svg(standalone=False, clickable=True),
            "latex": drawing.latex(),
            "nodes": node_values(drawing, tree, parse),
            "probability": parse.probabilities[rank],
            "log_probability": finite(log_probability),
            "score": finite(parse.scores[rank]),
            "share": parse.shares[rank] if parse.shares else None,
            "dependencies": self.dependencies_value(tree),
            **score,
        }
        try:
            derivation = deriver.derive(tree)
        except NoDerivationError as error:
            return value | {"derivation": None, "why_not": str(error)}
        assert derivation is not None
        return value | {"derivation": derivation_value(derivation, deriver), "why_not": ""}

    def dependencies_value(self, tree: Tree) -> dict[str, Any]:
        """The dependencies of a tree, and their drawing as arcs."""
        found = dependencies_of(tree, self.heads)
        drawing = ArcDrawing(found)
        return {
            "words": [each._asdict() for each in found],
            "svg": drawing.svg(standalone=False),
            "latex": drawing.latex(),
            "conllu": conllu_block(found),
        }

    def gold_value(self, gold: Tree, best: Tree) -> dict[str, Any]:
        """A gold tree, with the brackets marked that the best tree misses."""
        marks = mark_brackets(gold, best, self.parameters).of_gold(sum(1 for _ in preorder(gold)))
        drawing = Drawing.of_tree(gold, marks=marks)
        return {"brackets": format_tree(gold), "svg": drawing.svg(standalone=False), "latex": drawing.latex()}


def compared(gold: Tree, tree: Tree, parameters: Parameters) -> tuple[list[str], dict[str, float]]:
    """The marks of a tree's brackets, and its scores, as in EVALB."""
    marks = mark_brackets(gold, tree, parameters)
    n_right = len(marks.right)
    counts = BracketCounts(n_right + len(marks.missed), n_right + len(marks.wrong), n_right)
    is_empty = not (counts.gold or counts.test)
    scores = {name: 100.0 if is_empty else getattr(counts, name) for name in ("f1", "recall", "precision")}
    return marks.of_test(sum(1 for _ in preorder(tree))), {name: round(value, 2) for name, value in scores.items()}


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
