"""Models that are well-formed and hostile: whoever can write a file can also compute its checksum.

A shape is a function that draws a grammar: chains, cycles, rings that a coarser grammar masks in part, weights at the
borders of floats, many symbols or next to none. `hostile_model` draws a shape, its size, and what stands beside it.
"""

import contextlib
import io
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from nltk.tree import Tree

from tsgkit._cell_closing import BOUNDARY_SIZE, EXTRA_CLASSES, LENGTH_SIZE, PAIR_KINDS
from tsgkit.errors import UsageError
from tsgkit.grammar import GrammarError, WeightedGrammar
from tsgkit.grammar._weighted import RULE_KINDS
from tsgkit.models._closing import CellClosing
from tsgkit.models._model import Model, Stage
from tsgkit.parsing import Parser
from tsgkit.parsing._base import SentenceParser
from tsgkit.parsing._product import ProductParser
from tsgkit.parsing.objectives import OBJECTIVES, PRODUCTS
from tsgkit.report._service import Limits, ParseService, RequestError
from tsgkit.treebank import Cleaning, Preparation
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._partial import GivenBracket, require_brackets
from tsgkit.treebank._trees import brackets_of, preorder, words

WORDS = ["a", "b", "c"]
MAX_BYTES = 64 << 20
SECONDS_TO_ANSWER = 60.0
EXTREMES = [5e-324, 1e-308, 1e-200, 1e-100, 1e-10, 0.5, 1 - 2e-12, 1.0, 1 + 1e-12, 3.0, 1e10, 1e100, 1e200, 1.7e308]
Rules = dict[str, list[tuple]]


def grammar_of(n_symbols: int, label: list[int], rules: Rules) -> WeightedGrammar:
    """A grammar of rules whose last number is the weight."""
    parts: dict[str, np.ndarray] = {}
    for kind, n_columns in RULE_KINDS.items():
        rows = rules.get(kind, [])
        parts[kind] = np.array([row[:-1] for row in rows], dtype=np.int32).reshape(-1, n_columns)
        parts[f"{kind}_weight"] = np.array([row[-1] for row in rows], dtype=np.float64)
    labels = [f"L{number}" for number in range(max(label) + 1)]
    return WeightedGrammar(labels, WORDS, label, 0, **parts)


def model_of(*grammars: WeightedGrammar, maps: tuple = (), info: dict | None = None) -> Model:
    stages = [Stage(grammar, label_map) for grammar, label_map in zip(grammars, (None, *maps), strict=True)]
    return Model("cfg", Preparation(Cleaning()), stages, info or {})


# ---- shapes ----------------------------------------------------------------------------------------------


def chain(n: int, weight: float = 1.0, kind: str = "unary") -> tuple[int, list[int], Rules]:
    """x0 -> x1 -> ... -> word."""
    rules = {kind: [(x, x + 1, weight) for x in range(n - 1)], "lexical": [(n - 1, word, 0.5) for word in range(3)]}
    return n, list(range(n)) if kind == "unary" else [0] * n, rules


def ring(n: int, weight: float = 0.9, kind: str = "unary") -> tuple[int, list[int], Rules]:
    """The same with a way back to the beginning, and a word at every symbol."""
    _, label, rules = chain(n, 1.0, kind)
    rules[kind].append((n - 1, 0, weight))
    rules["lexical"] = [(x, x % 3, 1e-3) for x in range(n)]
    return n, label, rules


def dense(n: int, weight: float = 0.9) -> tuple[int, list[int], Rules]:
    """Every symbol has a unary rule to every other one."""
    rules: Rules = {"unary": [(x, y, weight / n) for x in range(n) for y in range(n)]}
    rules["lexical"] = [(x, x % 3, 0.1) for x in range(n)]
    return n, list(range(n)), rules


def ambiguous(n: int, weight: float = 0.1) -> tuple[int, list[int], Rules]:
    """All symbols have one label, and every pair of them makes some."""
    rules: Rules = {"binary": [(x, y, (x + y) % n, weight) for x in range(n) for y in range(n)]}
    rules["lexical"] = [(x, word, weight) for x in range(n) for word in range(3)]
    return n, [0] * n, rules


def scattered(n: int, draw: random.Random) -> tuple[int, list[int], Rules]:
    """Rules anywhere, with weights at the borders of floats."""
    label = [draw.randrange(max(1, n // 2)) for _ in range(n)]
    label[0] = 0

    def symbol() -> int:
        return draw.randrange(n)

    rules: Rules = {kind: [] for kind in RULE_KINDS}
    for _ in range(draw.randrange(1, 4 * n + 2)):
        weight = draw.choice(EXTREMES)
        kind = draw.choice(list(RULE_KINDS))
        x, y = symbol(), symbol()
        if kind == "lexical":
            rules[kind].append((x, draw.randrange(3), weight))
        elif kind == "binary":
            rules[kind].append((x, y, symbol(), weight))
        elif kind == "unary" or label[x] == label[y]:
            rules[kind].append((x, y, weight))
    rules["lexical"].append((symbol(), draw.randrange(3), draw.choice(EXTREMES)))
    return n, label, rules


def one_symbol(n: int, weight: float = 0.5) -> tuple[int, list[int], Rules]:
    return 1, [0], {"lexical": [(0, 0, weight)], "binary": [(0, 0, 0, weight)]}


def wordless(n: int, weight: float = 0.5) -> tuple[int, list[int], Rules]:
    return 2, [0, 1], {"unary": [(0, 1, weight)]}


def size(draw: random.Random) -> int:
    """Mostly small, sometimes in the ten thousands."""
    return draw.choice([1, 2, 3, 5, 8, 13, 30, 60]) if draw.random() < 0.97 else draw.choice([300, 1000, 5000, 20_000])


def drawn_shape(draw: random.Random) -> tuple[int, list[int], Rules]:
    n, weight = size(draw), draw.choice(EXTREMES)
    kind = draw.choice(["unary", "bridge"])
    shapes: list[Callable[[], tuple[int, list[int], Rules]]] = [
        lambda: chain(n, weight, kind),
        lambda: ring(max(n, 2), weight, kind),
        lambda: dense(min(n, 40), min(weight, 0.999)),
        lambda: ambiguous(min(n, 30), weight),
        lambda: one_symbol(n, weight),
        lambda: wordless(n, weight),
        lambda: scattered(min(n, 60), draw),
        lambda: scattered(min(n, 8), draw),
    ]
    return draw.choice(shapes)()


def with_extra_rules(shape: tuple[int, list[int], Rules], draw: random.Random) -> tuple[int, list[int], Rules]:
    """Binary rules and words beside what a shape has, so that longer sentences have derivations."""
    n, label, rules = shape
    for _ in range(draw.randrange(4)):
        rules.setdefault("binary", []).append(
            (draw.randrange(n), draw.randrange(n), draw.randrange(n), draw.choice(EXTREMES))
        )
        rules.setdefault("lexical", []).append((draw.randrange(n), draw.randrange(3), draw.choice(EXTREMES)))
    return n, label, rules


def coarser(grammar: WeightedGrammar, draw: random.Random) -> tuple[WeightedGrammar, np.ndarray]:
    """A grammar with fewer labels to prune by, which masks some of the symbols of cycles, and the map to it."""
    n_labels = draw.randrange(1, len(grammar.labels) + 1)
    label_map = np.array([draw.randrange(n_labels) for _ in grammar.labels], dtype=np.int32)
    label_map[grammar.label[grammar.root]] = 0
    rules: Rules = {"lexical": [(x, word, 0.1) for x in range(n_labels) for word in range(3)]}
    rules["binary"] = [(x, draw.randrange(n_labels), draw.randrange(n_labels), 0.3) for x in range(n_labels)]
    rules["unary"] = [(x, x + 1, draw.choice([1e-9, 0.5])) for x in range(n_labels - 1)]
    return grammar_of(n_labels, list(range(n_labels)), rules), label_map


def hostile_closing(draw: random.Random) -> CellClosing:
    """Weights of cells of any size, by which all cells are closed, or none, or some."""
    random_numbers = np.random.default_rng(draw.getrandbits(32))
    scale = draw.choice([0.0, 1.0, 1e3, 3e38])
    n_all = 1 + EXTRA_CLASSES
    sizes = (BOUNDARY_SIZE, PAIR_KINDS * n_all**2, LENGTH_SIZE)
    weights = [(scale * random_numbers.uniform(-1.0, 1.0, size)).astype(np.float32) for size in sizes]
    return CellClosing(np.zeros(len(WORDS), np.int32), 1, *weights)


def hostile_model(draw: random.Random) -> Model | None:
    """A model that can be written; none where the drawn grammar is refused before that."""
    try:
        grammar = grammar_of(*with_extra_rules(drawn_shape(draw), draw))
        infos = [{}, {"seed": "x"}, {"settings": [1]}, {"settings": {"iterations": None}}, {"f1": {"a": []}}]
        info = draw.choice(infos)
        if draw.random() < 0.4:
            below, label_map = coarser(grammar, draw)
            model = model_of(below, grammar, maps=(label_map,), info=info)
            model.closing = hostile_closing(draw) if draw.random() < 0.1 else None
            return model
        return model_of(grammar, info=info)
    except GrammarError:
        return None


def hostile_files(draw: random.Random, folder: Path) -> Iterator[bytes]:
    """Endless model files."""
    path = folder / "hostile.model"
    while True:
        model = hostile_model(draw)
        if model is not None:
            model.save(path)
            yield path.read_bytes()


# ---- what is done with them ------------------------------------------------------------------------------


def use_model(data: bytes, folder: Path) -> None:
    """Parse, score, and run the commands that read models; which ones depends on the file alone."""
    draw = random.Random(data)
    path = folder / "hostile.model"
    path.write_bytes(data)
    model = Model.load(path)
    settings = {
        "n_samples": draw.choice([1, 50]),
        "n_candidates": 20,
        "max_bytes": MAX_BYTES,
        "threshold": draw.choice([None, 0.0, 0.1]),
        "closing": draw.choice([0.0, 1e-3, 0.5]),
        "pruning": draw.choice(["posterior", "max-marginal"]),
        "max_seconds": draw.choice([None] * 9 + [1e-3]),
        "tags": draw.choice(["none", "none", "hard", "soft"]),
    }
    if draw.random() < 0.2:
        models = [model, *(reweighted(model, draw) for _ in range(draw.choice([1, 1, 2])))]
        parser: SentenceParser = ProductParser(models, product=draw.choice(PRODUCTS.names), **settings)
    else:
        parser = Parser(model, objective=draw.choice(OBJECTIVES.names), **settings)
    sentence = [draw.choice([*WORDS, "new"]) for _ in range(draw.choice([1, 1, 2, 3, 6]))]
    tree = parse_sentence(parser, sentence, draw)
    parser.tree_log_probability(tree)
    if draw.random() < 0.2:
        serve_model(model, sentence)
    else:
        run_command(draw, path, tree, folder)


def reweighted(model: Model, draw: random.Random) -> Model:
    """A model with the same rules and other weights, to parse together with."""
    stages = []
    for stage in model.stages:
        weights = {}
        for name in (f"{kind}_weight" for kind in RULE_KINDS):
            weights[name] = [draw.choice([weight, 0.3]) for weight in getattr(stage.grammar, name).tolist()]
        try:
            stages.append(Stage(replace(stage.grammar, **weights), stage.label_map))
        except GrammarError:  # cycles that are never left
            return model
    return Model(model.kind, model.preparation, stages, {})


def drawn_brackets(parser: SentenceParser, n_words: int, draw: random.Random) -> list[GivenBracket]:
    """Brackets that do not cross, with labels of the grammar or others, some of them twice."""
    labels = [None, "other", *draw.choices(parser.models()[0].grammar.labels, k=3)]
    found: list[GivenBracket] = []
    for _ in range(draw.choice([1, 2, 5])):
        start = draw.randrange(n_words)
        bracket = (draw.choice(labels), start, draw.randrange(start, n_words) + 1)
        with contextlib.suppress(UsageError):
            found = require_brackets([*found, bracket], n_words)
    return found


def parse_sentence(parser: SentenceParser, sentence: list[str], draw: random.Random) -> Tree:
    """The best tree of a sentence, after everything that must hold for any grammar."""
    tags = [draw.choice([None, "L0", "L1", "other"]) for _ in sentence] if draw.random() < 0.2 else None
    brackets = drawn_brackets(parser, len(sentence), draw) if draw.random() < 0.3 else []
    k, confidence = draw.choice([1, 1, 2, 10]), draw.random() < 0.5
    parse = parser.analyse(sentence, tags, k=k, confidence=confidence, brackets=brackets)
    assert 1 <= len(parse.trees) <= k
    assert all(words(tree) == sentence for tree in parse.trees)
    assert len({format_tree(tree) for tree in parse.trees}) == len(parse.trees)
    for tree in parse.trees:
        found = brackets_of(tree)
        spans = {each[1:] for each in found}
        assert all(each in found if each[0] else each[1:] in spans for each in brackets), (format_tree(tree), brackets)
    assert not any(np.isnan(parse.scores))
    assert not any(np.isnan(parse.log_probabilities))
    assert all(0 <= value <= 1 for value in parse.confidence.values())
    return parse.tree


def serve_model(model: Model, sentence: list[str]) -> None:
    """The answers of a server: JSON without NaN, with trees over the words of the request."""
    service = ParseService([model], ["hostile"], Limits(timeout=SECONDS_TO_ANSWER, threads=1))
    try:
        for describe in (service.about, service.examples):
            json.dumps(describe(), allow_nan=False)
        found = service.answer({"text": " ".join(sentence), "k": 3})
        json.dumps(found, allow_nan=False)
        assert found["words"] == sentence
        assert found["trees"]
    except RequestError as error:
        if error.code != "timeout":
            raise
    finally:
        service.pool.shutdown()


def run_command(draw: random.Random, path: Path, tree: Tree, folder: Path) -> None:
    """One of the commands that read models: it succeeds, or it ends with a message."""
    from tsgkit._tools import draw as draw_command  # noqa: PLC0415 - not for every use of this module
    from tsgkit._tools import inspect, report  # noqa: PLC0415

    trees = folder / "trees.mrg"
    trees.write_text(f"{format_tree(tree)}\n" if len(list(preorder(tree))) < 5000 else "(S (A a))\n")
    commands = {
        "inspect": lambda: inspect.main([str(path), "--top=3"]),
        "derivation": lambda: inspect.main([str(path), f"--derivation={trees}"]),
        "draw": lambda: draw_command.main([f"--model={path}", "--format=svg", str(trees), "-o", str(folder / "out")]),
    }
    if draw.random() < 0.05:
        commands["report"] = lambda: report.main(["--quiet", str(path), f"--dev={trees}", "-o", str(folder / "out")])
    name = draw.choice(list(commands))
    with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.redirect_stderr(io.StringIO()) as errors:
        code = commands[name]()
    assert code in (0, 2), errors.getvalue()
    assert code == 0 or errors.getvalue().startswith("tsgkit: "), errors.getvalue()
    assert output is not None
