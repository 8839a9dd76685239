"""Lines of text in, lines of trees out: what ``tsgkit parse`` does with a sentence, here or on a worker.

A `ParsePlan` holds all that the output depends on beside the models and the input, as plain values; a chunk of lines
with the number of its first sentence gives the same output wherever it is parsed.
"""

import hashlib
import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from nltk.tokenize import TreebankWordTokenizer
from nltk.tree import Tree

from tsgkit import __version__
from tsgkit.distributed import require_same_version, worker_name
from tsgkit.distributed._base import Shared
from tsgkit.errors import UsageError
from tsgkit.models._model import Model
from tsgkit.parsing._base import Sentence, SentenceParser
from tsgkit.parsing._parse import Parse
from tsgkit.parsing._product import parser_of
from tsgkit.parsing._settings import ParserSettings
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._dependencies import conllu_block, dependencies_of
from tsgkit.treebank._heads import HeadRules
from tsgkit.treebank._partial import bracketed_sentence
from tsgkit.treebank._trees import Bracket, Child, brackets_of, is_preterminal, preorder, rebuild

WORD = re.compile(r"[^ \t\r\n\f\v]+")
TAGGED_WORD = re.compile(r"(.+)(?<!\\)/([^/]+)", re.DOTALL)


class ParsedLine(NamedTuple):
    """The output for a line of input, the kind of fallback (``''`` if there was none), and a problem to report."""

    text: str
    fallback: str
    problem: str = ""


@dataclass(frozen=True)
class ParsePlan:
    """How sentences are read, parsed and written.

    Parameters
    ----------
    settings : ParserSettings
    tokenize : bool
        Whether lines are raw text.
    kbest : int
        Trees for every sentence; more than one end with an empty line.
    scores : bool
        Whether figures stand before each tree.
    confidence : bool
        Whether phrases get their posterior probabilities.
    constraints : bool
        Whether lines have brackets that the trees must have, see `tsgkit.parsing._constraints`.
    head_rules : str
        The text of head rules (`tsgkit.treebank._heads`): the best tree is written as dependencies, in CoNLL-U. If it
        is empty, trees are written as brackets.
    """

    settings: ParserSettings = field(default_factory=ParserSettings)
    tokenize: bool = False
    kbest: int = 1
    scores: bool = False
    confidence: bool = False
    constraints: bool = False
    head_rules: str = ""

    def __post_init__(self) -> None:
        if self.tokenize and self.settings.tags != "none":
            raise UsageError("--tokenize and --tags do not go together: tags come with words")
        if self.tokenize and self.constraints:
            raise UsageError("--tokenize and --constraints do not go together: brackets stand around words")
        if self.head_rules and (self.kbest > 1 or self.scores or self.confidence):
            raise UsageError("--format=conllu: --kbest, --scores and --confidence are for trees")

    @cached_property
    def rules(self) -> HeadRules | None:
        """The head rules, if dependencies are written."""
        return HeadRules.parse(self.head_rules) if self.head_rules else None

    @property
    def blank_line_ends(self) -> bool:
        """Whether the output for a sentence ends with a blank line; otherwise it is one line."""
        return self.kbest > 1 or bool(self.head_rules)

    def identity(self) -> dict[str, Any]:
        """All of it as plain values by name, to tell one job from another."""
        values = asdict(self)
        return {**values.pop("settings"), **values}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "ParsePlan":
        """The plan of which `dataclasses.asdict` made plain values."""
        return cls(**{**values, "settings": ParserSettings(**values["settings"])})

    def sentence_reader(self, first_number: int = 0) -> Callable[[str], Sentence]:
        """How a line of input becomes words and tags, and brackets; the first is line number `first_number` + 1."""
        if self.constraints:
            numbers = count(first_number + 1)
            return lambda line: constrained_sentence(line, next(numbers), has_tags=self.settings.tags != "none")
        if self.tokenize:
            tokenizer = TreebankWordTokenizer()
            return lambda line: (tokenizer.tokenize(line, convert_parentheses=True), None)
        if self.settings.tags == "none":
            return lambda line: (WORD.findall(line), None)
        return tagged_sentence

    def parse_lines(
        self, parser: SentenceParser, lines: Iterable[str], *, first_number: int = 0, threads: int = 1
    ) -> Iterator[ParsedLine]:
        """Parse lines as they come; the first one is sentence number `first_number`, counted from 0."""
        parses = parser.parse_batch(
            map(self.sentence_reader(first_number), lines),
            threads=threads,
            k=self.kbest,
            confidence=self.confidence or self.scores,
            first_number=first_number,
        )
        for number, parse in zip(count(first_number + 1), parses, strict=False):
            yield ParsedLine("".join(self.format_parse(parse, number)), parse.fallback, unmet_of(parse, number))

    def format_parse(self, parse: Parse, sentence_number: int) -> Iterator[str]:
        """The lines of output for a sentence."""
        if self.rules is not None:
            yield conllu_block(dependencies_of(parse.tree, self.rules))
            return
        for rank, tree in enumerate(parse.trees, start=1):
            shown = with_confidence(tree, parse.confidence) if self.confidence else tree
            text = format_tree(shown) if len(shown) else f"({shown.label()})"
            if self.scores:
                text = "\t".join([str(sentence_number), str(rank), *figures(parse, rank - 1), text])
            yield f"{text}\n"
        if self.kbest > 1:
            yield "\n"


def figures(parse: Parse, place: int) -> tuple[str, str, str, str]:
    """What is said of a tree: its log probability given the words, its score and share by the objective, its kind."""
    own = parse.log_probabilities[place]
    log_probability = own - parse.log_total if not parse.fallback else -math.inf
    share = parse.shares[place] if parse.shares else None
    shown = "-" if share is None else f"{share:.6g}"
    return f"{log_probability:.6f}", f"{parse.scores[place]:.6f}", shown, parse.fallback or "ok"


def unmet_of(parse: Parse, sentence_number: int) -> str:
    """Which of the given brackets the grammar cannot make, as a message; empty if there are none."""
    if not parse.unmet:
        return ""
    texts = [f"({label or ''} {' '.join(parse.words[start:end])})" for label, start, end in parse.unmet]
    return f"sentence {sentence_number}: the grammar has no tree with {', '.join(texts)}; it has a fallback tree"


def constrained_sentence(line: str, number: int, *, has_tags: bool) -> Sentence:
    """Words, tags if there are any, and the brackets around some of the words."""
    words, brackets = bracketed_sentence(line, "the input", number)
    if not has_tags:
        return words, None, brackets
    words, tags = tagged_words(words)
    return words, tags, brackets


def tagged_sentence(line: str) -> Sentence:
    r"""Words and tags of ``word/TAG word/TAG``; what has not this form is a word without a tag.

    Examples
    --------
    >>> tagged_sentence(r"a/DT 1/2/CD either\/or / //:")
    (['a', '1/2', 'either\\/or', '/', '/'], ['DT', 'CD', None, None, ':'])
    """
    return tagged_words(WORD.findall(line))


def tagged_words(tokens: Iterable[str]) -> tuple[list[str], list[str | None]]:
    """Words and tags of tokens, each ``word/TAG`` or a word."""
    pairs = [(TAGGED_WORD.fullmatch(token), token) for token in tokens]
    words = [match[1] if match else token for match, token in pairs]
    return words, [match[2] if match else None for match, _ in pairs]


def with_confidence(tree: Tree, confidence: dict[Bracket, float]) -> Tree:
    """A tree with the posterior of every phrase at its label."""
    # By identity, because equal nodes may stand at different places.
    labels = {id(node): bracket for node, bracket in zip(preorder(tree), brackets_of(tree), strict=True)}

    def marked(node: Tree, children: list[Child]) -> Tree:
        is_phrase = len(node) and not is_preterminal(node)
        value = f"={confidence.get(labels[id(node)], 0.0):.3f}" if is_phrase else ""
        return Tree(f"{node.label()}{value}", children)

    result = rebuild(tree, marked)
    return result if isinstance(result, Tree) else tree


# ---- elsewhere -----------------------------------------------------------------------------------------------


def shared_models(plan: ParsePlan, names: Sequence[str], contents: Sequence[bytes], threads: int = 1) -> Shared:
    """What every worker needs: the plan and the bytes of the model files."""
    digest = hashlib.sha256(repr((asdict(plan), list(names))).encode())
    for content in contents:
        digest.update(hashlib.sha256(content).digest())
    return {
        "version": __version__,
        "plan": asdict(plan),
        "names": list(names),
        # As arrays: joblib sends large ones to its processes once, and by way of a file.
        "contents": [np.frombuffer(content, dtype=np.uint8) for content in contents],
        "threads": threads,
        "digest": digest.hexdigest(),
    }


def parse_chunk(shared: Shared, chunk: tuple[int, list[str]]) -> tuple[str, list[ParsedLine]]:
    """The task of a chunk: the number of its first sentence and its lines; returns who did it and the output."""
    require_same_version(shared["version"])
    first_number, lines = chunk
    plan = ParsePlan.from_dict(shared["plan"])
    parsed = plan.parse_lines(PARSERS.get(shared), lines, first_number=first_number, threads=shared["threads"])
    return worker_name(), list(parsed)


class ChunkRescue:
    """For a chunk that kills its workers: it is parsed line by line, and a deadly sentence gets a flat tree."""

    def pieces(self, chunk: tuple[int, list[str]]) -> list[tuple[int, list[str]]]:
        """A chunk for every line."""
        first_number, lines = chunk
        return [(number, [line]) for number, line in enumerate(lines, start=first_number)]

    def give_up(self, shared: Shared, chunk: tuple[int, list[str]], problem: str) -> tuple[str, list[ParsedLine]]:
        """The flat trees of a chunk of one line, which need no chart."""
        number, lines = chunk
        plan = ParsePlan.from_dict(shared["plan"])
        (parsed,) = plan.parse_lines(PARSERS.get(shared).with_settings(max_length=0), lines, first_number=number)
        text = f"sentence {number + 1}: the process that parsed it {problem}; it has a flat tree"
        return worker_name(), [parsed._replace(problem=text)]

    def join(self, results: list[tuple[str, list[ParsedLine]]]) -> tuple[str, list[ParsedLine]]:
        """The output of a chunk from those of its lines."""
        return worker_name(), [line for _, lines in results for line in lines]


class ParserCache:
    """The parser of the job that a worker works for: chunks come one by one, and models take long to load."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.digest = ""
        self.parser: SentenceParser

    def get(self, shared: Shared) -> SentenceParser:
        """The parser that `shared` describes."""
        with self.lock:
            if self.digest != shared["digest"]:
                named = zip(shared["names"], shared["contents"], strict=True)
                models = [Model.load(name, content.tobytes()) for name, content in named]
                self.parser = parser_of(models, ParsePlan.from_dict(shared["plan"]).settings)
                self.digest = shared["digest"]
            return self.parser


PARSERS = ParserCache()
