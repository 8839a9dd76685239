"""Speed of the parser, growth with length, memory, search errors, and comparison with other parsers.

Usage:
  tools.bench.parse [options]
  tools.bench.parse -h | --help | --version

Run it as ``python -m tools.bench.parse``. The treebanks are the bundled one, a generated one, and the WSJ sample if
the environment variable TSGKIT_TREEBANKS names its folder. Rates are sentences per second of processor time, with the
minimum over runs for every sentence; only the speed-up of threads is in wall-clock time, which is unreliable on a
busy machine.

NLTK's ViterbiParser parses a few short sentences with the same grammar. ``tools.bench.models`` compares trained models
with other parsers.

Options:
  --treebanks=NAMES  Some of village, generated and wsj-sample, separated by commas; all by default.
  --train=N          Maximum number of training trees.
  --sentences=N      Maximum number of sentences of each treebank.
  --repeat=N         Runs of each measurement. [default: 3]
  --errors=N         Sentences that are also parsed without pruning. [default: 60]
  --nltk=N           Sentences of 5 to 10 words for NLTK; 0: none. [default: 4]
  --longest=N        Growth is fitted over lengths from 10 to this; 0: do not fit it. [default: 100]
  -h --help          This text.
  --version          The version.
"""

import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from nltk.grammar import PCFG, Nonterminal, ProbabilisticProduction
from nltk.parse.viterbi import ViterbiParser
from nltk.tree import Tree

from tsgkit._cli import command, integer, parse_arguments
from tsgkit._options import optional_integer
from tsgkit._progress import progress
from tsgkit.errors import UsageError
from tsgkit.evaluation import evaluate
from tsgkit.evaluation._report import columns
from tsgkit.grammar import WeightedGrammar
from tsgkit.models._cfg import cfg_model
from tsgkit.models._model import Model
from tsgkit.parsing import Parser
from tsgkit.treebank import Binarization, Cleaning, UnknownWords, load, prepare, read_trees
from tsgkit.treebank.synthetic import generate

from .commands import Words, command_megabytes, write_sentences

N_GENERATED = (10000, 500)
GENERATED_VOCABULARY = 2000
PLAIN, DEFAULT = (0, 1), (1, 2)
SETTINGS = [(*markovisation, objective) for markovisation in (PLAIN, DEFAULT) for objective in ("mpd", "max-rule")]
NLTK_LENGTHS = range(5, 11)
# tsgkit is so much faster that it must repeat the sentences for NLTK to be measurable.
NLTK_REPEAT = 50
SENTENCES_PER_LENGTH = 5


@dataclass
class Treebank:
    """Trees to train on and trees to parse, clean."""

    name: str
    train: list[Tree]
    gold: list[Tree]

    @property
    def sentences(self) -> list[Words]:
        return [tree.leaves() for tree in self.gold]

    def model(self, horizontal: int | None, vertical: int) -> Model:
        binarization = Binarization("right", horizontal, vertical)
        return cfg_model(prepare(self.train, binarization=binarization, unknown=UnknownWords()))


@dataclass
class Timing:
    """The results of parsing a treebank sentence by sentence."""

    seconds: np.ndarray
    trees: list[Tree]
    n_fallbacks: int

    @property
    def rate(self) -> float:
        """Sentences per second of processor time."""
        return len(self.seconds) / float(self.seconds.sum())


@command
def main(argv: list[str]) -> int:
    arguments = parse_arguments(__doc__, argv)
    n_runs = integer(arguments, "--repeat", minimum=1)
    n_errors, n_nltk = integer(arguments, "--errors", minimum=0), integer(arguments, "--nltk", minimum=0)
    longest = integer(arguments, "--longest", minimum=0)
    treebanks = chosen_treebanks(arguments)
    for treebank in treebanks:
        write(speed_report(treebank, n_runs, n_errors))
    largest = treebanks[-1]
    if n_nltk:
        write(nltk_report(largest, n_nltk))
    if longest:
        write(growth_report(largest, range(10, longest + 1, 10), n_runs))
    return 0


def write(lines: Iterator[str]) -> None:
    """Print each line at once: everything together takes minutes."""
    for line in lines:
        print(line, flush=True)
    print(flush=True)


# ---- treebanks -------------------------------------------------------------------------------------------


def chosen_treebanks(arguments: dict[str, Any]) -> list[Treebank]:
    """The treebanks of the options, with the numbers of trees of the options."""
    n_train, n_gold = (optional_integer(arguments, option, 1) for option in ("--train", "--sentences"))
    sources: dict[str, Callable[[], Treebank]] = {
        "village": village,
        "generated": partial(generated, n_train, n_gold),
    }
    if sample := wsj_sample():
        sources["wsj-sample"] = partial(read_treebank, "wsj-sample", *sample)
    names = arguments["--treebanks"].split(",") if arguments["--treebanks"] else list(sources)
    if unknown := [name for name in names if name not in sources]:
        raise UsageError(f"--treebanks={unknown[0]}: there are {', '.join(sources)}")
    treebanks = [sources[name]() for name in names]
    return [Treebank(each.name, each.train[:n_train], each.gold[:n_gold]) for each in treebanks]


def wsj_sample() -> tuple[Path, Path] | None:
    """The files of the WSJ sample to train and to evaluate on, if they exist."""
    folder = os.environ.get("TSGKIT_TREEBANKS")
    if not folder:
        return None
    train, dev = (Path(folder, "wsj-sample", f"{split}.mrg") for split in ("train", "dev"))
    return (train, dev) if train.exists() and dev.exists() else None


def train_file(arguments: dict[str, Any]) -> str:
    """The file of --train, or that of the WSJ sample."""
    if arguments["--train"] is not None:
        return str(arguments["--train"])
    found = wsj_sample()
    if found is None:
        raise UsageError("--train=TREEBANK is needed: TSGKIT_TREEBANKS names no folder with the WSJ sample")
    return str(found[0])


def read_treebank(name: str, train: str | Path, dev: str | Path) -> Treebank:
    return Treebank(name, list(read_trees(train)), cleaned(read_trees(dev)))


def village() -> Treebank:
    return Treebank("village", load(split="train"), cleaned(load(split="dev")))


def generated(n_train: int | None, n_gold: int | None) -> Treebank:
    sizes = [min(most, wanted or most) for most, wanted in zip(N_GENERATED, (n_train, n_gold), strict=True)]
    trees = list(generate(sum(sizes), vocabulary=GENERATED_VOCABULARY))
    return Treebank("generated", trees[: sizes[0]], cleaned(trees[sizes[0] :]))


def cleaned(trees: Any) -> list[Tree]:
    return [tree for tree in map(Cleaning().apply, trees) if tree is not None]


# ---- speed, memory, search errors ------------------------------------------------------------------------


def timed(parser: Parser, sentences: Sequence[Words], n_runs: int = 1) -> Timing:
    """Parse sentences one by one on one thread; the minimum over runs counts for each sentence."""
    seconds = np.full(len(sentences), np.inf)
    for _ in range(n_runs):
        trees, n_fallbacks = [], 0
        for number, words in enumerate(progress(sentences, "parsing", "sentences")):
            start = time.process_time()
            parse = parser.analyse(words, number=number)
            seconds[number] = min(seconds[number], time.process_time() - start)
            trees.append(parse.tree)
            n_fallbacks += bool(parse.fallback)
    return Timing(seconds, trees, n_fallbacks)


def speed_report(treebank: Treebank, n_runs: int, n_errors: int) -> Iterator[str]:
    sentences = treebank.sentences
    n_words = sum(map(len, sentences))
    yield (
        f"=== {treebank.name}: trained on {len(treebank.train)} trees, {len(sentences)} sentences of"
        f" {n_words / len(sentences):.1f} words on average ==="
    )
    head = (
        "grammar and objective",
        "rules",
        "sent/CPU s",
        "2 threads",
        "peak MB",
        "errors",
        "fallbacks",
        "F1",
    )
    rows, timings = [], {}
    for horizontal, vertical, objective in SETTINGS:
        model = treebank.model(horizontal, vertical)
        parser = Parser(model, objective=objective)
        timing = timed(parser, sentences, n_runs)
        name = f"h={horizontal} v={vertical} {objective}"
        timings[name] = timing.seconds
        rows.append(
            (
                name,
                str(model.grammar.n_rules),
                f"{timing.rate:.1f}",
                f"x {gain_by_threads(parser, sentences, n_runs):.2f}",
                peak_megabytes(model, objective, sentences),
                search_errors(parser, sentences, n_errors),
                str(timing.n_fallbacks),
                f"{evaluate(treebank.gold, timing.trees).f1:.2f}",
            )
        )
    yield columns(head, rows)
    yield "seconds of processor time per sentence, by length\n"
    yield length_table(timings, [len(words) for words in sentences]).rstrip()


def gain_by_threads(parser: Parser, sentences: Sequence[Words], n_runs: int) -> float:
    """The speed-up of two threads over one in wall-clock time, by the minimum over runs."""
    one = two = float("inf")
    for _ in range(n_runs):
        one = min(one, clock_seconds(parser, sentences, 1))
        two = min(two, clock_seconds(parser, sentences, 2))
    return one / two


def clock_seconds(parser: Parser, sentences: Sequence[Words], threads: int) -> float:
    start = time.perf_counter()
    for _ in parser.parse_batch([(words, None) for words in sentences], threads=threads):
        pass
    return time.perf_counter() - start


def search_errors(parser: Parser, sentences: Sequence[Words], n_sentences: int) -> str:
    """In how many sentences, evenly spaced over the treebank, pruning changes the tree."""
    if len(parser.model.stages) == 1 or not n_sentences:
        return "-"
    step = max(1, len(sentences) // n_sentences)
    changed, total = parser.search_errors(itertools.islice(sentences, 0, step * n_sentences, step))
    return f"{changed}/{total}"


def length_table(timings: dict[str, np.ndarray], lengths: Sequence[int]) -> str:
    """Mean seconds of each setting in steps of ten words."""
    bucket = (np.array(lengths) - 1) // 10
    rows = []
    for number in np.unique(bucket):
        inside = bucket == number
        means = [f"{seconds[inside].mean():.5f}" for seconds in timings.values()]
        rows.append((f"{10 * number + 1}-{10 * number + 10}", str(inside.sum()), *means))
    return columns(("words", "sentences", *timings), rows)


# ---- memory ----------------------------------------------------------------------------------------------


def peak_megabytes(model: Model, objective: str, sentences: Sequence[Words]) -> str:
    """The peak memory of ``tsgkit parse`` for these sentences, in a separate process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save(folder / "model")
        write_sentences(folder / "sentences", sentences)
        files = (f"--input={folder / 'sentences'}", f"--output={folder / 'trees'}", str(folder / "model"))
        return command_megabytes(["--quiet", f"--objective={objective}", *files])


# ---- compared with NLTK--------------------------------------------------------------------------------------


def nltk_report(treebank: Treebank, n_sentences: int) -> Iterator[str]:
    """NLTK's Viterbi parser and tsgkit, with the same grammar on the same sentences."""
    model = treebank.model(*PLAIN)
    parser = Parser(model, objective="mpd")
    known = set(model.grammar.words)
    short = (words for words in treebank.sentences if len(words) in NLTK_LENGTHS)
    usable = (words for words in short if known.issuperset(model.preparation.vocabulary_words(words)))
    sentences = list(itertools.islice(usable, n_sentences))
    yield (
        f"=== compared with NLTK's ViterbiParser: {treebank.name}, h={PLAIN[0]} v={PLAIN[1]} mpd,"
        f" {len(sentences)} sentences of {min(NLTK_LENGTHS)} to {max(NLTK_LENGTHS)} words ==="
    )
    start = time.process_time()
    for words in sentences * NLTK_REPEAT:
        parser.analyse(words)
    own_seconds = (time.process_time() - start) / NLTK_REPEAT
    # Newer versions of NLTK stop after five seconds by default.
    no_limit = {"max_time": None} if "max_time" in signature(ViterbiParser).parameters else {}
    theirs = ViterbiParser(nltk_grammar(model.grammar), **no_limit)
    start = time.process_time()
    trees = [
        next(theirs.parse(model.preparation.vocabulary_words(words)), None)
        for words in progress(sentences, "NLTK", "sentences")
    ]
    their_seconds = time.process_time() - start
    n_equal = sum(
        tree is not None and np.isclose(tree.logprob() * np.log(2), parser.analyse(words).log_probabilities[0])
        for tree, words in zip(trees, sentences, strict=True)
    )
    mean = own_seconds / len(sentences), their_seconds / len(sentences)
    yield f"tsgkit {mean[0]:.6f} s per sentence, NLTK {mean[1]:.2f} s"
    yield (
        f"{their_seconds / own_seconds:.0f} times as fast;"
        f" the best trees are equally probable in {n_equal} of {len(sentences)}"
    )


def nltk_grammar(grammar: WeightedGrammar) -> PCFG:
    """The same grammar in NLTK's format."""
    symbols = [Nonterminal(grammar.name_of(symbol)) for symbol in range(grammar.n_symbols)]
    productions = [
        ProbabilisticProduction(symbols[parent], [symbols[child] for child in children], prob=weight)
        for rules, weights in (
            (grammar.binary, grammar.binary_weight),
            (grammar.unary, grammar.unary_weight),
        )
        for (parent, *children), weight in zip(rules.tolist(), weights.tolist(), strict=True)
    ]
    productions += [
        ProbabilisticProduction(symbols[parent], [grammar.words[word]], prob=weight)
        for (parent, word), weight in zip(grammar.lexical.tolist(), grammar.lexical_weight.tolist(), strict=True)
    ]
    return PCFG(symbols[grammar.root], productions)


# ---- growth with length ----------------------------------------------------------------------------------


def growth_report(treebank: Treebank, lengths: Sequence[int], n_runs: int) -> Iterator[str]:
    """Seconds per sentence by length, and the exponent of the fitted power law."""
    yield f"=== growth with length: {treebank.name}, {SENTENCES_PER_LENGTH} sentences of each length ==="
    sentences = [words for length in lengths for words in sentences_of_length(treebank.sentences, length)]
    means, exponents = {}, {}
    for name, markovisation, objective, threshold in (
        ("h=0 v=1 mpd, not pruned", PLAIN, "mpd", 0.0),
        ("h=1 v=2 max-rule, pruned", DEFAULT, "max-rule", 1e-4),
    ):
        parser = Parser(treebank.model(*markovisation), objective=objective, threshold=threshold)
        seconds = timed(parser, sentences, n_runs).seconds
        means[name] = seconds.reshape(len(lengths), -1).mean(axis=1)
        exponents[name] = exponent(lengths, means[name])
    rows = [(str(length), *(f"{values[row]:.5f}" for values in means.values())) for row, length in enumerate(lengths)]
    rows.append(("exponent", *(f"{value:.2f}" for value in exponents.values())))
    yield columns(("words", *means), rows).rstrip()


def sentences_of_length(sentences: Sequence[Words], length: int) -> list[Words]:
    """Sentences of exactly this length: the treebank concatenated and cut."""
    stream = itertools.chain.from_iterable(itertools.cycle(sentences))
    return [list(itertools.islice(stream, length)) for _ in range(SENTENCES_PER_LENGTH)]


def exponent(lengths: Sequence[int], seconds: np.ndarray) -> float:
    """The slope of log seconds against log length, by least squares.

    Examples
    --------
    >>> round(exponent([10, 20, 40], np.array([1.0, 4.0, 16.0])), 6)
    2.0
    """
    return float(np.polyfit(np.log(lengths), np.log(seconds), 1)[0])


if __name__ == "__main__":
    sys.exit(main(None))
