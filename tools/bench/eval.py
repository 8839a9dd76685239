"""Time the scorer: sentence pairs per second, of the command and of the library call.

Usage:
  tools.bench.eval [--pairs=N] [--repeat=N]
  tools.bench.eval -h | --help | --version

Run it as ``python -m tools.bench.eval``. The pairs are trees of the WSJ sample, if the environment
variable TSGKIT_TREEBANKS names its folder, else of the bundled treebank, each paired with a copy with
mistakes. If the variable EVALB names an EVALB binary, both score the same files in turn, and the outputs are
compared.

Options:
  --pairs=N   Number of sentence pairs. [default: 20000]
  --repeat=N  Number of runs of each; the fastest counts. [default: 5]
  -h --help   This text.
  --version   The version.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path

from nltk.tree import Tree

from tsgkit._cli import command, integer, parse_arguments
from tsgkit.evaluation import evaluate
from tsgkit.evaluation._parameters import FOLDER
from tsgkit.treebank import read_trees
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._trees import is_preterminal, rebuild

SEED = 1
P_MISTAKE = 0.1
LABELS = ("NP", "VP", "PP", "S", "SBAR", "ADVP", "ADJP")
NO_LIMIT = "1000000000"


@command
def main(argv: list[str]) -> int:
    arguments = parse_arguments(__doc__, argv)
    n_pairs = integer(arguments, "--pairs", minimum=1)
    n_runs = integer(arguments, "--repeat", minimum=1)
    with tempfile.TemporaryDirectory() as folder:
        gold, test = Path(folder, "gold"), Path(folder, "test")
        n_words = write_pairs(gold, test, n_pairs)
        print(f"{n_pairs} pairs of {n_words / n_pairs:.1f} words on average; the fastest of {n_runs} runs")
        measure(gold, test, n_pairs, n_runs)
    return 0


def measure(gold: Path, test: Path, n_pairs: int, n_runs: int) -> None:
    """Print the times; the programs run in turn, so that other load on the machine affects all of them."""
    ours = [sys.executable, "-m", "tsgkit", "eval", "--quiet", str(gold), str(test)]
    programs: dict[str, Callable[[], object]] = {
        "tsgkit eval, end to end": lambda: output(ours),
        "evaluate(), in a program": lambda: evaluate(gold, test),
    }
    theirs: list[str] = []
    if binary := os.environ.get("EVALB"):
        theirs = [binary, "-p", os.path.join(FOLDER, "collins.prm"), "-e", NO_LIMIT, str(gold), str(test)]
        programs["EVALB, end to end"] = lambda: output(theirs)
    best = dict.fromkeys(programs, float("inf"))
    for _ in range(n_runs):
        for name, run in programs.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    for name, seconds in best.items():
        print(f"{name:<26}{seconds:8.3f} s {n_pairs / seconds:10.0f} pairs/s")
    if theirs:
        ratio = best["EVALB, end to end"] / best["tsgkit eval, end to end"]
        same = "the same" if output(ours).startswith(output(theirs)) else "NOT the same"
        print(f"end to end {ratio:.2f} times as fast as EVALB; {same} bytes")


def output(program: list[str]) -> bytes:
    return subprocess.run(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout


def write_pairs(gold: Path, test: Path, n_pairs: int) -> int:
    """Write two files of trees, the second with mistakes; returns the number of words in one."""
    generator = random.Random(SEED)
    n_words = 0
    with open(gold, "w", encoding="utf-8") as gold_file, open(test, "w", encoding="utf-8") as test_file:
        for tree in islice(cycle(source()), n_pairs):
            n_words += len(tree.leaves())
            gold_file.write(f"{format_tree(tree)}\n")
            test_file.write(f"{format_tree(with_mistakes(tree, generator))}\n")
    return n_words


def source() -> Iterator[Tree]:
    folder = os.environ.get("TSGKIT_TREEBANKS")
    sample = Path(folder, "wsj-sample", "train.mrg") if folder else None
    return read_trees(sample if sample and sample.exists() else "village")


def with_mistakes(tree: Tree, generator: random.Random) -> Tree:
    """A copy in which some brackets have another label and some join their first two children."""

    def combine(node: Tree, children: list[Tree | str]) -> Tree:
        mistake = generator.random()
        if is_preterminal(node) or node is tree or mistake > 2 * P_MISTAKE:
            return Tree(node.label(), children)
        if mistake > P_MISTAKE and len(children) > 2:
            children = [Tree(generator.choice(LABELS), children[:2]), *children[2:]]
            return Tree(node.label(), children)
        return Tree(generator.choice(LABELS), children)

    return rebuild(tree, combine)


if __name__ == "__main__":
    sys.exit(main(None))
