"""What is fuzzed: every reader, with valid inputs to damage and what is done with an input that was accepted.

A target either does its work or raises a `TsgkitError`. Anything else is a fault: another exception, a crash, a hang,
memory beyond the limit, an answer that cannot be.
"""

import functools
import gzip
import lzma
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz.grammars import hostile_files, use_model
from fuzz.mutate import Archive, mutated
from fuzz.readers import other_targets, reader_inputs, target_of_reader
from nltk.tree import Tree

from tsgkit._resumable import PartialOutput
from tsgkit.errors import TreebankError
from tsgkit.evaluation import evaluate
from tsgkit.evaluation._parameters import load_parameters
from tsgkit.grammar import WeightedGrammar
from tsgkit.grammar.formats import read_bitpar, read_discodop
from tsgkit.inference._checkpoint import Checkpoint
from tsgkit.inference._insertion import InsertionSettings
from tsgkit.inference._settings import Settings
from tsgkit.inference._srtsg import SrSettings
from tsgkit.inference._training import Training
from tsgkit.inference._tsg import TsgSettings
from tsgkit.inference.entry import entry_of, fragments_of
from tsgkit.models._cfg import cfg_model
from tsgkit.models._model import Model
from tsgkit.parsing import Parser
from tsgkit.parsing._lines import ParsePlan
from tsgkit.parsing._settings import ParserSettings
from tsgkit.treebank import Binarization, Cleaning, FlatCorpus, UnknownWords, prepare, read_trees
from tsgkit.treebank._brackets import escape_symbol, format_tree, read_brackets
from tsgkit.treebank._export import format_export, read_export
from tsgkit.treebank._fragments import canonical, format_fragment, read_fragment
from tsgkit.treebank._heads import PENN, HeadRules
from tsgkit.treebank._prepare import preparation_of
from tsgkit.treebank._sources import decode_lines, validate_tree
from tsgkit.treebank._trees import preorder, same_tree, words
from tsgkit.treebank.formats import ReadOptions

TREES = [
    "(TOP (S (NP (DT the) (JJ old) (NN dog)) (VP (VBD saw) (NP (DT the) (NN cat))) (. .)))",
    "(TOP (S (NP (NP (DT the) (NN dog)) (PP (IN of) (NP (DT the) (NN man)))) (VP (VBD ran)) (. .)))",
    "( (S (NP-SBJ-1 (-NONE- *T*-1)) (VP (VBD saw) (NP=2 (NN 1\\/2) (NN -LRB-)))))",
    "(TOP (NP (NP (NN dog)) (CC and) (NP (NP (NN cat)) (PP (IN of) (NP (NN Rome)))) (. .)))",
    "(S (VP (VBZ läuft) (PP (IN nach) (NP (NN Köln)))))",
]
SENTENCE = ["the", "new", "dog", "saw", "."]
SEPARATOR = b"=====\n"  # between the two files of a target that reads two
SMALL_CHART = 1 << 22
LARGEST_FILE = 1 << 19
HTTP_OK = 200
PARTIAL_JOB = {"models": ["a"], "seed": 0}
PARTIAL_LINES = ["one\n", "two\n", "three\n", "four\n"]
NO_SITES = {"site_iterations": 0, "joint_iterations": 0}


@dataclass(frozen=True)
class Target:
    """A reader under test.

    Attributes
    ----------
    name : str
    read : function of the input's bytes and an empty folder
    seeds : list of bytes
        Valid inputs.
    tokens : list of bytes
        What the format is made of.
    weight : int
        The share of inputs that this target gets.
    """

    name: str
    read: Callable[[bytes, Path], None]
    seeds: list[bytes]
    tokens: list[bytes] = field(default_factory=lambda: [b"("])
    weight: int = 1
    archives: bool = False

    def inputs(self, seed: int) -> Any:
        """Endless damaged inputs; the same seed gives the same ones."""
        draw = random.Random(f"{self.name} {seed}")
        archives = [Archive(content) for content in self.seeds] if self.archives else []
        while True:
            if archives and draw.random() < 0.9:
                yield draw.choice(archives).damaged(draw)
            else:
                yield mutated(draw.choice(self.seeds), self.seeds, self.tokens, draw)


# ---- text --------------------------------------------------------------------------------------------------


def lines_of(data: bytes) -> list[str]:
    return data.decode("utf-8", errors="replace").splitlines(keepends=True)


def brackets(data: bytes, folder: Path) -> None:
    lines = lines_of(data)
    skipped: list[TreebankError] = []
    for tree in read_brackets(lines, "fuzz", ReadOptions(skipped=skipped)):
        assert list(read_brackets(format_tree(tree, pretty=True).split("\n"))) == [tree]
    assert all(error.line is not None and 1 <= error.line <= len(lines) for error in skipped)
    for tree in read_brackets(lines, "fuzz", ReadOptions(unescape=True)):
        (again,) = read_brackets([format_tree(tree)], options=ReadOptions(unescape=True))
        assert [node.label() for node in preorder(again)] == [escape_symbol(node.label()) for node in preorder(tree)]


def export(data: bytes, folder: Path) -> None:
    lines = lines_of(data)
    found = list(read_export(lines, "fuzz", ReadOptions(skipped=[])))
    assert list(read_export(lines, "fuzz")) == found
    for tree in found:
        back = read_export(format_export(tree, 1).split("\n"))
        assert words(next(back)) == words(tree)


def discontinuous(data: bytes, folder: Path) -> None:
    lines = lines_of(data)
    reattached: list[str] = []
    found = list(read_export(lines, "fuzz", ReadOptions(skipped=[], reattached=reattached)))
    assert len(found) == len(list(read_export(lines, "fuzz", ReadOptions(skipped=[])))) + len(reattached)
    for tree in read_export(lines, "fuzz", ReadOptions(reattached=[])):
        back = read_export(format_export(tree, 1).split("\n"))
        assert words(next(back)) == words(tree)


def fragment(data: bytes, folder: Path) -> None:
    found = read_fragment(data.decode("utf-8", errors="replace"), "fuzz")
    written = format_fragment(found)
    assert read_fragment(written) == found
    assert canonical(written) == written


def parameters(data: bytes, folder: Path) -> None:
    load_parameters(saved(folder, data))


def heads(data: bytes, folder: Path) -> None:
    rules = HeadRules.load(saved(folder, data))
    for label in ("NP", "*", "X-1", *list(rules.searches)[:3]):
        assert 0 <= rules.head(label, ["DT", "CC", "NN", ","]) < 4


def bitpar(data: bytes, folder: Path) -> None:
    use_grammar(read_bitpar(*two_files(folder, data), normalize=len(data) % 2 == 0))


def discodop(data: bytes, folder: Path) -> None:
    use_grammar(read_discodop(*two_files(folder, data), normalize=len(data) % 2 == 0))


def use_grammar(grammar: WeightedGrammar) -> None:
    preparation = preparation_of(FlatCorpus.from_trees([Tree("S", ["a"])]))
    some_words = list(grammar.words[:3]) or ["a"]
    parse = Parser(Model("cfg", preparation, grammar_levels(grammar)), max_bytes=SMALL_CHART).analyse(some_words)
    assert parse.tree.leaves() == some_words


def grammar_levels(grammar: WeightedGrammar) -> list[Any]:
    from tsgkit.models._model import Stage  # noqa: PLC0415 - only here

    return [Stage(grammar)]


def scores(data: bytes, folder: Path) -> None:
    gold, test = two_files(folder, data)
    result = evaluate(gold, test, "new")
    rows = result.sentences
    for name, most in (("matched", "gold"), ("matched", "test"), ("crossing", "test"), ("tags", "words")):
        assert ((rows[name] >= 0) & (rows[name] <= rows[most])).all()
    scored = rows[rows["status"] == 0]
    for name in ("matched", "gold", "test", "crossing", "words", "tags"):
        assert getattr(result.all, name) == scored[name].sum()
    statuses = [(rows["status"] == status).sum() for status in (1, 2)]
    assert [result.all.errors, result.all.skips, result.all.valid] == [*statuses, len(scored)]
    assert 0 <= result.f1 <= 100


def treebank(data: bytes, folder: Path) -> None:
    path = saved(folder, data)
    skipped: list[TreebankError] = []
    for tree in read_trees(path, skipped=skipped, max_bad=1, nfc=True, encoding="latin-1"):
        validate_tree(tree)
    assert all(error.path == str(path) and error.line for error in skipped)
    found = list(read_trees(path))
    corpus = prepare(found, binarization=Binarization("centre-head", 1, 2), unknown=UnknownWords())
    corpus.validate()
    clean = [tree for tree in map(Cleaning().apply, found) if tree is not None]
    for tree, back in zip(clean, map(preparation_of(corpus).decode, corpus.trees()), strict=True):
        assert same_tree(back, tree)


@functools.cache
def small_parser(plan: ParsePlan) -> Parser:
    return Parser(small_model("cfg"), plan.settings)


def sentences(data: bytes, folder: Path) -> None:
    tags = ("none", "hard", "soft")[len(data) % 3]
    tokenize = tags == "none" and len(data) % 2 == 0
    settings = ParserSettings(max_bytes=SMALL_CHART, max_length=12, tags=tags)
    plan = ParsePlan(settings, tokenize=tokenize, scores=True, confidence=True)
    lines = list(decode_lines(str(saved(folder, data)), "utf-8"))[:2]
    parsed = list(plan.parse_lines(small_parser(plan), lines))
    for line, one in zip(lines, parsed, strict=True):
        own_words, _ = plan.sentence_reader()(line)
        *_, brackets_of_tree = one.text.rstrip("\n").split("\t")
        assert brackets_of_tree.startswith("(")
        assert (one.fallback == "empty") == (not own_words)


def partial_output(data: bytes, folder: Path) -> None:
    """The partial output of a killed job, which is resumed."""
    journal, _, records = data.partition(SEPARATOR)
    path = folder / "out"
    path.unlink(missing_ok=True)
    (folder / "out.partial.json").write_bytes(journal)
    (folder / "out.partial").write_bytes(records)
    try:
        with PartialOutput(path, PARTIAL_JOB, resume=True) as output:
            for line in output.skip(iter(PARTIAL_LINES)):
                output.write(f"({line.strip()})\n", line)
        assert path.read_bytes().count(b"\n") == len(PARTIAL_LINES)
    finally:
        for left in (path, folder / "out.partial", folder / "out.partial.json"):
            left.unlink(missing_ok=True)


def left_by_a_killed_job(folder: Path) -> bytes:
    path = folder / "killed"
    output = PartialOutput(path, PARTIAL_JOB, resume=False)
    for line in list(output.skip(iter(PARTIAL_LINES)))[:2]:
        output.write(f"({line.strip()})\n", line)
    output.commit()
    output.file.close()
    parts = [(folder / f"killed.partial{ending}").read_bytes() for ending in (".json", "")]
    return SEPARATOR.join(parts)


@functools.cache
def web_client() -> Any:
    from tsgkit.report._service import Limits, ParseService  # noqa: PLC0415 - needs optional packages
    from tsgkit.report._web import create_app  # noqa: PLC0415

    limits = Limits(max_length=8, max_body=2000, timeout=30.0, threads=1)
    service = ParseService([small_model("tsg")], ["small"], limits, ParserSettings(max_bytes=SMALL_CHART))
    return create_app(service).test_client()


def web_request(data: bytes, folder: Path) -> None:
    """The body of a request to the JSON interface; its errors are answers."""
    response = web_client().post("/api/parse", data=data, content_type="application/json")
    value = response.get_json()
    if response.status_code == HTTP_OK:
        assert value["trees"]
    else:
        assert response.status_code in (400, 413)
        assert value["error"]["message"]


# ---- archives ----------------------------------------------------------------------------------------------


def corpus_file(data: bytes, folder: Path) -> None:
    corpus = FlatCorpus.load(saved(folder, data))
    sentences_of_trees = [words(tree) for tree in corpus.trees()]
    assert sentences_of_trees == list(corpus.sentences())
    assert (len(sentences_of_trees), sum(map(len, sentences_of_trees))) == (corpus.n_trees, corpus.n_tokens)
    if preparation_of(corpus).lexicon is not None:
        assert Parser(cfg_model(corpus), max_bytes=SMALL_CHART).parse_one(SENTENCE).leaves() == SENTENCE


def grammar_file(data: bytes, folder: Path) -> None:
    use_grammar(WeightedGrammar.load(saved(folder, data)))


def model_file(data: bytes, folder: Path) -> None:
    model = Model.load(saved(folder, data))
    assert Parser(model, max_bytes=SMALL_CHART).parse_one(SENTENCE).leaves() == SENTENCE
    fragments = fragments_of(model)
    if "subcategories" in entry_of(model).panels:
        table = entry_of(model).subcategories(model)
        for label in table.labels():
            list(table.hierarchy(label))
    elif model.state:
        correction = entry_of(model).correction(model)
        Parser(model, objective="mer-sampled", n_samples=3, correction=correction).parse_one(SENTENCE)
    for number in fragments.select()[:5]:
        format_fragment(fragments.fragment(number).tree)


def checkpoint_file(make: Callable[[], Training]) -> Callable[[bytes, Path], None]:
    def read(data: bytes, folder: Path) -> None:
        training = make()
        saved_run = Checkpoint.load(saved(folder, data), training.identity())
        training.restore(saved_run.state, saved_run.iteration)
        if saved_run.iteration < training.iterations:  # as the loop does
            training.iterate(saved_run.iteration + 1)
        training.model()

    return read


# ---- valid inputs ------------------------------------------------------------------------------------------


def saved(folder: Path, data: bytes) -> Path:
    path = folder / "input"
    path.write_bytes(data)
    return path


def two_files(folder: Path, data: bytes) -> tuple[Path, Path]:
    first, _, second = data.partition(SEPARATOR)
    (folder / "second").write_bytes(second)
    return saved(folder, first), folder / "second"


@functools.cache
def small_corpus(kind: str) -> FlatCorpus:
    method = "centre-head" if kind == "insertion" else "right"
    trees = read_brackets(TREES)
    threshold = 0 if kind == "srtsg" else 1
    unknown = UnknownWords("three", threshold=threshold)
    return prepare(trees, binarization=Binarization(method, 1, 1), unknown=unknown)


def small_training(kind: str, sites: bool = False) -> Training:
    settings: Settings
    if kind == "srtsg":
        phases = {"site_iterations": 3, "joint_iterations": 1, "insertion_iterations": 3} if sites else NO_SITES
        settings = SrSettings(splits=2, split_iterations=3, average=2, average_every=1, **phases)
    else:
        settings = (InsertionSettings if kind == "insertion" else TsgSettings)(iterations=3, average=1)
    return Training(small_corpus(kind), settings, seed=1)


def trained(kind: str, iterations: int, sites: bool = False) -> Training:
    training = small_training(kind, sites)
    training.start()
    for iteration in range(1, iterations + 1):
        training.iterate(iteration)
    return training


@functools.cache
def small_model(kind: str) -> Model:
    if kind == "cfg":
        return cfg_model(small_corpus("cfg"))
    return trained(kind, 6 if kind == "srtsg" else 3).model()


def file_of(value: Any, folder: Path) -> bytes:
    value.save(folder / "seed")
    return (folder / "seed").read_bytes()


def checkpoint_of(kind: str, iterations: int, folder: Path, sites: bool = False) -> bytes:
    training = trained(kind, iterations, sites)
    return file_of(Checkpoint(iterations, training.identity(), training.state(), {}), folder)


def text_targets() -> list[Target]:
    trees = "\n".join(TREES).encode()
    marks = [b"(NP ", b"(TOP ", b"( (", b"-NONE-", b"@", b"|", b"^", b"\\", b"+", b"-LRB-"]
    rows = [
        b"#BOS 1\n",
        b"#EOS 1\n",
        b"#500\tNP\t--\tSB\t0\n",
        b"#FORMAT 4\n",
        b"\t",
        b"500",
        b"%% x\n",
        b"#BOT\n",
        b"#EOT\n",
    ]
    exported = b"#FORMAT 3\n" + b"".join(
        format_export(tree, number).encode() + b"\n" for number, tree in enumerate(read_brackets(TREES), 1)
    )
    moved = (
        b"#BOS 1\ndas PDS -- OA 500\n, $, -- -- 0\nhat VAFIN -- HD 501\ner PPER -- SB 501\ngesagt VVPP -- HD 500\n"
        b". $. -- -- 0\n#500 VP -- OC 501\n#501 S -- -- 0\n#EOS 1\n"
    )
    keys = [b"DELETE_LABEL X\n", b"EQ_LABEL A B\n", b"CUTOFF_LEN 40\n", b"LABELED 0\n", b"MAX_ERROR 10\n", b"DEBUG 1\n"]
    keys += [b"EQ_WORD a b\n", b"QUOTE_LABEL X\n", b"DELETE_LABEL_FOR_LENGTH Y\n"]
    rules = b"1 S NP VP\n2.5e-1 S VP\n+1 VP VP#1\n0.5 VP#1 VP\n"
    lexicon = b"we\tNP 4\nlaugh\tNP 1\tVP 5\ncry\tVP#1 0x1.0p-2\n"
    disco = b"S\tNP\tVP\t01\t1/4\nS\tVP\t0\t0.5\nVP\tVP#1\t0\t0.25\n"
    numbers = [b"0x1p4", b"1/0", b"1e-400", b"#1", b"&#32;", b"&#;", b"NP", b"S", b"01", b"+"]
    bodies = [b'{"text": "the old dog saw the cat .", "k": 3}', b'{"words": ["the", "dog", "ran", "."], "model": 0}']
    json_parts = [
        b"{",
        b"}",
        b"[",
        b'"',
        b'"k": ',
        b'"text": ',
        b'"words": ',
        b"\\ud800",
        b"null",
        b"1e400",
        b"NaN",
        b"true",
    ]
    text = b"the old dog saw the cat .\nthe/DT dog/NN ran/VBD ./.\n\xc2\xa0 x/ /y //: a\\/b/CD\n"
    return [
        Target("brackets", brackets, [trees, *(tree.encode() for tree in TREES)], marks, 20),
        Target("export", export, [exported], rows, 15),
        Target("discontinuous export", discontinuous, [moved, exported + moved], rows, 10),
        Target("fragment", fragment, [b"(S (NP ) (VP (VBD said) (SBAR )))", b"(NP (DT the) (NN ))"], marks, 20),
        Target("parameters", parameters, [b"".join(keys), gzip.compress(b"".join(keys), mtime=0)], keys, 14),
        Target(
            "heads", heads, [PENN.encode(), b"%punctuation , .\nVP left VBD VB\n* rightmost\n"], [b"* left", b"%x"], 4
        ),
        Target("bitpar", bitpar, [rules + SEPARATOR + lexicon], numbers, 4),
        Target("discodop", discodop, [disco + SEPARATOR + lexicon], numbers, 4),
        Target("scores", scores, [trees + b"\n" + SEPARATOR + trees, TREES[0].encode() + SEPARATOR], marks, 10),
        Target(
            "treebank",
            treebank,
            [trees, exported, gzip.compress(trees, mtime=0), lzma.compress(trees)],
            marks + rows,
            2,
        ),
        *(Target(name, target_of_reader(name), seeds, tokens, 4) for name, (seeds, tokens) in reader_inputs().items()),
        *(Target(name, read, seeds, tokens, 2) for name, (read, seeds, tokens) in other_targets().items()),
        Target("sentences", sentences, [text], [b"/", b"/NN", b"\\/", b"the ", b"dog/NN "], 3),
        Target("web request", web_request, bodies, json_parts, 2),
    ]


@dataclass(frozen=True)
class HostileModels(Target):
    """Models of the grammar fuzzer, whole but hostile, in the place of damaged files."""

    folder: Path = Path()

    def inputs(self, seed: int) -> Any:
        small = (data for data in hostile_files(random.Random(f"{self.name} {seed}"), self.folder))
        return (data for data in small if len(data) < LARGEST_FILE)


def file_target(name: str, folder: Path) -> Target:
    """A target of files that have to be made first, in `folder`."""
    if name == "hostile model":
        first = next(hostile_files(random.Random(name), folder))
        return HostileModels(name, use_model, [first], folder=folder)
    kind, _, what = name.rpartition(" ")
    if what == "checkpoint":
        sites = kind == "sites"
        own = "srtsg" if sites else kind
        read = checkpoint_file(functools.partial(small_training, own, sites))
        seeds = [checkpoint_of(own, iterations, folder, sites) for iterations in CHECKPOINTS[kind]]
    elif what == "model":
        models = [small_model(kind)] if kind != "srtsg" else [small_model(kind), trained(kind, 13, sites=True).model()]
        read, seeds = model_file, [file_of(model, folder) for model in models]
    elif what == "output":
        tokens = [b'"n_done": ', b'"n_bytes": ', b"null", b"[]", b"-1", b"true", b"(x)\n", b"\n\n"]
        return Target(name, partial_output, [left_by_a_killed_job(folder)], tokens, weight_of(name))
    elif kind == "corpus":
        read, seeds = corpus_file, [file_of(small_corpus("cfg"), folder)]
    else:
        read, seeds = grammar_file, [file_of(small_model("cfg").grammar, folder)]
    tokens = [b"PK\x01\x02", b"PK\x05\x06", b"sha256:"]
    return Target(name, read, seeds, tokens, weight_of(name), archives=True)


# After which iterations the checkpoints are taken: of sites, one of them with insertions.
CHECKPOINTS = {"tsg": (2,), "insertion": (3,), "srtsg": (5,), "sites": (9, 12)}
FILES = ("corpus file", "grammar file", "cfg model", "tsg model", "insertion model", "srtsg model")
FILES += ("partial output", "hostile model")
FILES += tuple(f"{kind} checkpoint" for kind in CHECKPOINTS)
TEXTS = {target.name: target for target in text_targets()}
TARGET_NAMES = (*TEXTS, *FILES)


def weight_of(name: str) -> int:
    """The share of inputs that a target gets."""
    return TEXTS[name].weight if name in TEXTS else 1


def target_of(name: str, folder: Path) -> Target:
    return TEXTS[name] if name in TEXTS else file_target(name, folder)
