"""How fast samplers of tree-substitution grammars go, and whether they find what was planted.

Usage:
  tsgkit.tools.bench.train [options]
  tsgkit.tools.bench.train -h | --help | --version

Prints, for generated treebanks of several sizes, node visits per second of the local and the blocked sampler (one
and two threads), the cost of a blocked iteration relative to a local one, the acceptance rate and the memory; then
precision and recall of the planted fragments after training, and of the planted auxiliary trees after training with
insertion on trees with insertions.

Options:
  --sizes=LIST         numbers of sentences, separated by commas [default: 2000,6000,20000]
  --sweeps=N           iterations that are timed [default: 5]
  --warm-up=N          iterations before that [default: 10]
  --recovery=N         sentences of the treebank in which planted fragments are looked for; 0: none [default: 2000]
  --iterations=N       of the training for that [default: 200]
  --type-moves=N       likewise [default: 2000]
  --seed=N             [default: 1]
  -q, --quiet          no progress
  -h, --help           this text
  --version            the version
"""

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from tsgkit.cli import command, integer, parse_arguments
from tsgkit.inference.tsg import TsgSettings, TsgTraining
from tsgkit.models.fragments import FragmentTable
from tsgkit.progress import progress
from tsgkit.treebank import Binarization, FlatCorpus, UnknownWords, prepare
from tsgkit.treebank.planted import (
    KINDS_OF_AUXILIARY_TREES,
    KINDS_OF_INITIAL_TREES,
    generate,
    planted_fragments,
    recovery,
)

KEPT = 3  # a fragment counts as found when it is used at least so often
BINARIZATION = {
    False: Binarization("right", 0),
    True: Binarization("centre-head", 0),
}  # by whether there are insertions


def corpus_of(n_sentences: int, seed: int, insertions: bool = False) -> FlatCorpus:
    """A prepared treebank of generated sentences."""
    trees = generate(n_sentences, seed=seed, insertions=insertions)
    return prepare(trees, binarization=BINARIZATION[insertions], unknown=UnknownWords(threshold=0))


def visits_per_second(sweep: Callable[[int], Any], first: int, n_sweeps: int, n_nodes: int, wall: bool) -> float:
    """Nodes visited per second, of processor time or, for several threads, of the clock."""
    clock = time.perf_counter if wall else time.process_time
    started = clock()
    for iteration in range(first, first + n_sweeps):
        sweep(iteration)
    return n_sweeps * n_nodes / (clock() - started)


def measure(n_sentences: int, arguments: dict[str, Any]) -> dict[str, float]:
    """The rates of one treebank size."""
    warm_up, n_sweeps, seed = (integer(arguments, name, 0) for name in ("--warm-up", "--sweeps", "--seed"))
    corpus = corpus_of(n_sentences, seed)
    n_nodes = corpus.n_nodes
    row: dict[str, float] = {"sentences": n_sentences, "nodes": n_nodes}
    for sampler, threads in (("local", 1), ("blocked", 1), ("blocked", 2)):
        training = TsgTraining(corpus, TsgSettings(sampler=sampler), iterations=10**6, seed=seed, threads=threads)
        training.start()
        for iteration in range(1, warm_up + 1):
            record = training.iterate(iteration)
        rate = visits_per_second(training.iterate, warm_up + 1, n_sweeps, n_nodes, wall=threads > 1)
        row[f"{sampler} {threads}"] = rate
        if sampler == "blocked":
            row["accepted"] = record["acceptance"]
    row["blocked / local"] = row["local 1"] / row["blocked 1"]
    row["MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return row


def find_planted(arguments: dict[str, Any], insertions: bool) -> list[str]:
    """Train on a generated treebank and compare fragments with those of its grammar."""
    iterations, seed = integer(arguments, "--iterations", 1), integer(arguments, "--seed", 0)
    corpus = corpus_of(integer(arguments, "--recovery", 0), seed, insertions)
    settings = TsgSettings(type_moves=integer(arguments, "--type-moves", 0), insertion=insertions)
    training = TsgTraining(corpus, settings, iterations=iterations, seed=seed)
    training.start()
    for iteration in progress(range(1, iterations + 1), "training", "iterations", quiet=arguments["--quiet"]):
        training.iterate(iteration)
    table = FragmentTable.of_model(training.model())
    kinds = {"initial": KINDS_OF_INITIAL_TREES, "auxiliary": KINDS_OF_AUXILIARY_TREES}
    lines = []
    for kind in ("initial", "auxiliary") if insertions else ("initial",):
        found = [table.fragment(number).brackets for number in table.select(kind=kind, min_count=KEPT)]
        result = recovery(found, planted_fragments(BINARIZATION[insertions].apply, kinds[kind]))
        name = f"{kind} trees, of a treebank with insertions," if insertions else "fragments"
        lines.append(
            f"planted {name} after {iterations} iterations: {result.n_both} of {result.n_planted} found"
            f" (recall {result.recall:.3f}) among {result.n_found} (precision {result.precision:.3f})"
        )
    return lines


@command
def main(argv: list[str]) -> int:
    """Measure and print."""
    arguments = parse_arguments(__doc__, argv)
    sizes = [int(size) for size in arguments["--sizes"].split(",")]
    rows = [measure(size, arguments) for size in progress(sizes, "sizes", "sizes", quiet=arguments["--quiet"])]
    print("node visits per second, by treebank size (blocked 2: by the clock)")
    print("  ".join(f"{name:>15}" for name in rows[0]))
    for row in rows:
        print("  ".join(f"{value:>15.3g}" if value < 100 else f"{value:>15.0f}" for value in row.values()))
    if integer(arguments, "--recovery", 0):
        for insertions in (False, True):
            print(*find_planted(arguments, insertions), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
