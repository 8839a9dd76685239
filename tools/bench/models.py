"""Trained models beside other parsers: complete commands, growth with length, memory, pruning, and k-best lists.

Usage:
  tools.bench.models [options] MODEL...
  tools.bench.models -h | --help | --version

Run it as ``python -m tools.bench.models``. The first model parses alone, and all of them as a product. If BERKELEY_JAR
names the Berkeley parser and BERKELEY_GRAMMAR a grammar trained with it on the same trees, it parses the same file, and
so do the commands of --others. All commands run alternately; the smallest processor time counts. The time to start is
that of the same command with an empty file.

Options:
  --trees=FILE       Trees whose words are parsed; the dev part of the WSJ sample unless given.
  --sentences=N      Maximum number of sentences.
  --repeat=N         Runs of each command. [default: 3]
  --others=COMMANDS  Other parsers, separated by semicolons: commands of the shell with {input} and {output}, files with
                     one sentence and one tree per line.
  --unpruned=N       Sentences that are also parsed without pruning. [default: 100]
  --longest=N        Growth is fitted over lengths from 10 to this; 0: do not fit it. [default: 100]
  --kbest=NUMBERS    Lengths of k-best lists, separated by commas, for the F1 of the best tree in them (oracle).
                     0: none. [default: 1,10,50,100]
  -h --help          This text.
  --version          The version.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from nltk.tree import Tree

from tsgkit._cli import command, integer, parse_arguments
from tsgkit._options import optional_integer
from tsgkit.errors import UsageError
from tsgkit.evaluation import evaluate
from tsgkit.evaluation._report import columns
from tsgkit.parsing import Parser
from tsgkit.treebank import read_trees

from .commands import berkeley_command, command_megabytes, processor_seconds, read_lists, read_output, write_sentences
from .parse import SENTENCES_PER_LENGTH, cleaned, exponent, sentences_of_length, timed, write, wsj_sample

BERKELEY = "Berkeley"


@command
def main(argv: list[str]) -> int:
    arguments = parse_arguments(__doc__, argv)
    n_runs = integer(arguments, "--repeat", minimum=1)
    n_unpruned, longest = (integer(arguments, option, minimum=0) for option in ("--unpruned", "--longest"))
    lengths = sorted(list_lengths(arguments["--kbest"]))
    berkeley, gold = berkeley_command(), gold_trees(arguments)
    others = [text.strip() for text in (arguments["--others"] or "").split(";") if text.strip()]
    with tempfile.TemporaryDirectory() as name:
        parsers = Parsers(Path(name), arguments["MODEL"], berkeley, others, gold)
        write(speed_report(parsers, n_runs))
        if lengths:
            write(kbest_report(parsers, lengths))
    parser = Parser(arguments["MODEL"][0])
    if n_unpruned:
        write(pruning_report(parser, gold[:n_unpruned]))
    if longest:
        write(growth_report(parser, gold, range(10, longest + 1, 10), n_runs))
    return 0


def list_lengths(text: str) -> list[int]:
    """The numbers of --kbest; none for 0.

    Examples
    --------
    >>> list_lengths("1,10"), list_lengths("0")
    ([1, 10], [])
    """
    if not all(part.isdecimal() for part in text.split(",")):
        raise UsageError(f"--kbest={text}: not whole numbers, separated by commas")
    return [int(part) for part in text.split(",") if int(part)]


def gold_trees(arguments: dict[str, Any]) -> list[Tree]:
    """The trees of --trees, or of the WSJ sample, clean."""
    path = arguments["--trees"] or (wsj_sample() or (None, None))[1]
    if path is None:
        raise UsageError("--trees=FILE is needed: TSGKIT_TREEBANKS names no folder with the WSJ sample")
    return cleaned(read_trees(path))[: optional_integer(arguments, "--sentences", 1)]


class Parsers:
    """Commands that parse the same sentences, by name, and the files that they write."""

    def __init__(
        self, folder: Path, models: Sequence[str], berkeley: list[str], others: Sequence[str], gold: list[Tree]
    ) -> None:
        self.folder, self.berkeley, self.gold = folder, berkeley, gold
        self.models = {os.path.basename(models[0]): [models[0]]}
        if len(models) > 1:
            self.models[f"product of {len(models)}"] = list(models)
        self.others = {text.split()[0]: text for text in others}
        write_sentences(folder / "sentences", [tree.leaves() for tree in gold])
        write_sentences(folder / "empty", [])

    def output(self, name: str) -> Path:
        return self.folder / f"{name}.trees"

    def own_arguments(self, name: str, sentences: str, *options: str) -> list[str]:
        """The arguments of ``tsgkit parse``."""
        files = [f"--input={self.folder / sentences}", f"--output={self.output(name)}", "--force"]
        return ["--quiet", *options, *files, *self.models[name]]

    def programs(self, sentences: str) -> dict[str, list[str]]:
        """The command of every parser for a file of sentences."""
        own = {name: [*tsgkit_parse(), *self.own_arguments(name, sentences)] for name in self.models}
        theirs = {BERKELEY: self.berkeley_program(sentences)} if self.berkeley else {}
        for name, text in self.others.items():
            filled = text.replace("{input}", str(self.folder / sentences)).replace("{output}", str(self.output(name)))
            theirs[name] = ["/bin/sh", "-c", filled]
        return own | theirs

    def berkeley_program(self, sentences: str, *options: str) -> list[str]:
        files = ["-inputFile", str(self.folder / sentences), "-outputFile", str(self.output(BERKELEY))]
        return [*self.berkeley, *files, *options]


def tsgkit_parse() -> list[str]:
    return [sys.executable, "-m", "tsgkit", "parse"]


# ---- speed and memory ------------------------------------------------------------------------------------


def speed_report(parsers: Parsers, n_runs: int) -> Iterator[str]:
    """All commands on the same file, alternately."""
    n_sentences = len(parsers.gold)
    yield f"=== complete commands, {n_sentences} sentences, processor time ==="
    seconds, starts = ({name: float("inf") for name in parsers.programs("sentences")} for _ in range(2))
    for _ in range(n_runs):
        for found, sentences in ((starts, "empty"), (seconds, "sentences")):
            for name, program in parsers.programs(sentences).items():
                found[name] = min(found[name], processor_seconds(program))
    rows = [
        (
            name,
            f"{seconds[name]:.2f}",
            f"{starts[name]:.2f}",
            f"{1000 * (seconds[name] - starts[name]) / n_sentences:.2f}",
            f"{n_sentences / seconds[name]:.1f}",
            f"x {seconds[BERKELEY] / seconds[name]:.2f}" if BERKELEY in seconds else "-",
            f"{evaluate(parsers.gold, read_output(parsers.output(name))).f1:.2f}",
            command_megabytes(parsers.own_arguments(name, "sentences")) if name in parsers.models else "-",
        )
        for name in seconds
    ]
    head = ("parser", "CPU s", "start", "ms/sentence", "sent/CPU s", "rate", "F1", "peak MB")
    yield columns(head, rows).rstrip()


def growth_report(parser: Parser, gold: list[Tree], lengths: Sequence[int], n_runs: int) -> Iterator[str]:
    """Seconds per sentence by length with the first model, and the exponent of the fitted power law."""
    yield f"=== growth with length, {SENTENCES_PER_LENGTH} sentences of each length ==="
    words = [tree.leaves() for tree in gold]
    sentences = [one for length in lengths for one in sentences_of_length(words, length)]
    means = timed(parser, sentences, n_runs).seconds.reshape(len(lengths), -1).mean(axis=1)
    rows = [(str(length), f"{mean:.5f}") for length, mean in zip(lengths, means, strict=True)]
    rows.append(("exponent", f"{exponent(lengths, means):.2f}"))
    yield columns(("words", "CPU s"), rows).rstrip()


# ---- pruning, and k-best lists ---------------------------------------------------------------------------


def pruning_report(parser: Parser, gold: list[Tree]) -> Iterator[str]:
    """F1 and trees of the first model with and without pruning."""
    exact = parser.with_settings(threshold=0.0)
    trees = [[one.analyse(tree.leaves()).tree for tree in gold] for one in (parser, exact)]
    scores = [evaluate(gold, found).f1 for found in trees]
    changed = sum(one != other for one, other in zip(*trees, strict=True))
    yield f"=== pruning, {len(gold)} sentences ==="
    yield columns(("F1", "not pruned", "other trees"), [(*(f"{score:.2f}" for score in scores), str(changed))]).rstrip()


def kbest_report(parsers: Parsers, lengths: Sequence[int]) -> Iterator[str]:
    """The F1 of the best tree in the first k, and how many trees there are, for all parsers that list them."""
    yield "=== oracle F1 of k-best lists ==="
    programs = {
        name: [*tsgkit_parse(), *parsers.own_arguments(name, "sentences", f"--kbest={lengths[-1]}")]
        for name in parsers.models
    }
    if parsers.berkeley:
        programs[BERKELEY] = parsers.berkeley_program("sentences", "-kbest", str(lengths[-1]))
    rows = []
    for name, program in programs.items():
        seconds = processor_seconds(program)
        lists = read_lists(parsers.output(name))
        scores = [f"{score:.2f}" for score in oracle_scores(parsers.gold, lists, lengths)]
        rows.append((name, *scores, f"{np.mean([*map(len, lists)]):.1f}", f"{seconds:.2f}"))
    yield columns(("parser", *(f"k={length}" for length in lengths), "trees", "CPU s"), rows).rstrip()


def oracle_scores(gold: Sequence[Tree], lists: Sequence[Sequence[str]], lengths: Sequence[int]) -> list[float]:
    """The aligned F1 of the best tree among the first k of each list, for each k.

    Examples
    --------
    >>> gold = [Tree.fromstring("(TOP (S (NP (PRP I)) (VP (VBD ran))))")]
    >>> lists = [["(TOP (S (NP (PRP I)) (NP (VBD ran))))", "(TOP (S (NP (PRP I)) (VP (VBD ran))))"]]
    >>> [round(score, 1) for score in oracle_scores(gold, lists, [1, 2])]
    [66.7, 100.0]
    """
    # Only a line with a tree can be scored; a sentence without trees has no brackets.
    counts = [len(trees) for trees in lists]
    repeated = [tree for tree, count in zip(gold, counts, strict=True) for _ in range(count)]
    sentences = evaluate(repeated, [tree for trees in lists for tree in trees]).sentences
    n_gold, n_test, n_matched = (sentences[f"aligned_{name}"].astype(float) for name in ("gold", "test", "matched"))
    by_tree = 2 * n_matched / np.maximum(n_gold + n_test, 1)
    ends = np.cumsum(counts)
    scores = []
    for length in lengths:
        chosen = [
            start + int(by_tree[start : min(start + length, end)].argmax())
            for start, end in zip(ends - counts, ends, strict=True)
            if end > start
        ]
        scores.append(float(200 * n_matched[chosen].sum() / (n_gold[chosen] + n_test[chosen]).sum()))
    return scores


if __name__ == "__main__":
    sys.exit(main(None))
