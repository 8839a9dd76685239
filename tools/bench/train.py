"""Speed of the samplers of tree-substitution grammars, and recovery of the fragments of a synthetic treebank.

Usage:
  tools.bench.train [options]
  tools.bench.train -h | --help | --version

Prints, for generated treebanks of several sizes, node visits per second of the local and the blocked sampler (one
and two threads), the time of a blocked iteration relative to a local one, the acceptance rate and the memory; then
precision and recall of the fragments of the generating grammar after training, by frequency, without insertions; and
of initial and auxiliary trees after training with insertion.

Options:
  --sizes=LIST         numbers of sentences, separated by commas [default: 2000,6000,20000]
  --sweeps=N           iterations that are timed [default: 5]
  --warm-up=N          iterations before that [default: 10]
  --recovery=N         sentences of the treebank for measuring recovery; 0: do not measure it [default: 2000]
  --iterations=N       iterations of that training [default: 200]
  --type-moves=N       type moves per iteration of that training [default: 2000]
  --init=NAME          its initialisation: minimal, maximal or random [default: maximal]
  --seed=N             seed [default: 1]
  -q, --quiet          do not report progress
  -h, --help           this text
  --version            the version
"""

import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from nltk.tree import Tree

from tsgkit._cli import command, integer, parse_arguments
from tsgkit._progress import progress
from tsgkit.inference._entry import fragments_of
from tsgkit.inference._insertion import InsertionSettings
from tsgkit.inference._training import Training
from tsgkit.inference._tsg import TsgSettings
from tsgkit.models._rules import number_rules
from tsgkit.treebank import Binarization, FlatCorpus, UnknownWords, prepare
from tsgkit.treebank._fragments import canonical, format_fragment, n_rules, read_fragment
from tsgkit.treebank.synthetic import generate, generate_derivations, synthetic_grammar, without_marks

FREQUENCIES = (0, 3, 10, 30, 100, 2**62)
KEPT = 3  # a fragment is found if its count is at least this


def corpus_of(n_sentences: int, seed: int, insertions: bool = False) -> FlatCorpus:
    """A prepared treebank of generated sentences."""
    trees = generate(n_sentences, seed=seed, insertions=insertions)
    return prepare(trees, binarization=binarization(insertions), unknown=UnknownWords(threshold=0))


def binarization(insertions: bool) -> Binarization:
    """The default binarisation of models with insertion, or without."""
    return Binarization("centre-head" if insertions else "right", 0)


def visits_per_second(sweep: Callable[[int], Any], first: int, n_sweeps: int, n_nodes: int, wall: bool) -> float:
    """Nodes visited per second of processor time or, for several threads, of wall-clock time."""
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
        training = Training(corpus, TsgSettings(sampler=sampler, iterations=10**6), seed=seed, threads=threads)
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


def only_expansions(corpus: FlatCorpus) -> dict[str, list[Tree | str]]:
    """The expansion of every label with a single rule in the treebank; frontier nodes are trees without children."""
    trees = number_rules(corpus)
    n_expansions = Counter(trees.rule_label.tolist())
    result: dict[str, list[Tree | str]] = {}
    columns = (trees.rule_label, trees.rule_left_label, trees.rule_right_label, trees.rule_word)
    for label, left, right, word in zip(*(column.tolist() for column in columns), strict=True):
        if n_expansions[label] == 1:
            children: list[Tree | str] = [Tree(corpus.labels[child], []) for child in (left, right) if child >= 0]
            result[corpus.labels[label]] = children or [corpus.words[word]]
    return result


def expanded(fragment: str, only: dict[str, list[Tree | str]]) -> str:
    """A fragment with every frontier node expanded that has a single expansion."""

    def expand(node: Tree | str) -> Tree | str:
        if not isinstance(node, Tree):
            return node
        children = list(node) or only.get(node.label(), [])
        return Tree(node.label(), [expand(child) for child in children])

    return format_fragment(expand(read_fragment(fragment)))


def recovery_report(arguments: dict[str, Any], insertions: bool) -> Iterator[str]:
    """Train on a generated treebank and compare the elementary trees with those of the generating grammar."""
    iterations, seed = integer(arguments, "--iterations", 1), integer(arguments, "--seed", 0)
    n_sentences = integer(arguments, "--recovery", 0)
    corpus = corpus_of(n_sentences, seed, insertions)
    settings = (InsertionSettings if insertions else TsgSettings)(
        iterations=iterations, type_moves=integer(arguments, "--type-moves", 0), init=arguments["--init"], average=1
    )
    training = Training(corpus, settings, seed=seed)
    training.start()
    for iteration in progress(range(1, iterations + 1), "training", "iterations", quiet=arguments["--quiet"]):
        training.iterate(iteration)
    table = fragments_of(training.model())
    derivations = generate_derivations(n_sentences, seed, insertions)
    steps = Counter(without_marks(step) for derivation in derivations for step in derivation.steps)
    only = only_expansions(corpus)
    start = f"{iterations} iterations from the {settings.init} initialisation"
    grammar = synthetic_grammar(insertions)
    for kind, trees in (("initial", grammar.initial), ("auxiliary", grammar.auxiliary)):
        if not trees:
            continue
        # A rule with three children is two rules after binarisation, so it is included here as well.
        known: Counter[str] = Counter()
        for tree in trees:
            known[format_fragment(binarization(insertions).apply(read_fragment(tree.brackets)))] += steps[tree.brackets]
        found: Counter[str] = Counter()
        for fragment in map(table.fragment, table.select(kind=kind)):
            found[fragment.brackets] += int(fragment.count)
        name = f"{kind} trees, with insertion," if insertions else "fragments"
        yield f"recovery of known {name} after {start}; found: count of at least {KEPT}"
        for title, same in (
            ("exact match", canonical),
            ("up to nodes with a single expansion", lambda fragment: expanded(fragment, only)),
        ):
            yield title
            yield from recovery_lines(merged(found, same), merged(known, same))


def merged(counts: Counter[str], same: Callable[[str], str]) -> Counter[str]:
    """Counts of the fragments of at least two rules, with equivalent fragments merged."""
    result: Counter[str] = Counter()
    for fragment, count in counts.items():
        if n_rules(same(fragment)) > 1:
            result[same(fragment)] += count
    return result


def recovery_lines(found: Counter[str], known: Counter[str]) -> Iterator[str]:
    """Recall by the number of uses of a known fragment in the treebank, precision by the count of a found one."""
    kept = {fragment for fragment, count in found.items() if count >= KEPT}
    yield f"{'uses':>10}  {'known':>8}  {'of them found':>13}  {'found':>8}  {'of them known':>15}"
    for first, last in (*pairwise(FREQUENCIES), (0, None)):
        name = "all" if last is None else f"{first}-{last - 1}" if last < FREQUENCIES[-1] else f"{first}-"

        def is_in(count: int, first: int = first, last: int | None = last) -> bool:
            return last is None or first <= count < last

        wanted = [fragment for fragment, count in known.items() if is_in(count)]
        had = [fragment for fragment in kept if is_in(found[fragment])]
        n_recalled, n_right = sum(fragment in kept for fragment in wanted), sum(fragment in known for fragment in had)
        recall, precision = share(n_recalled, len(wanted)), share(n_right, len(had))
        yield f"{name:>10}  {len(wanted):>8}  {n_recalled:>5} {recall:>7}  {len(had):>8}  {n_right:>7} {precision:>7}"


def share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


@command
def main(argv: list[str]) -> int:
    """Measure and print."""
    arguments = parse_arguments(__doc__, argv)
    sizes = [int(size) for size in arguments["--sizes"].split(",")]
    rows = [measure(size, arguments) for size in progress(sizes, "sizes", "sizes", quiet=arguments["--quiet"])]
    print("node visits per second, by treebank size (blocked 2: wall-clock time)")
    print("  ".join(f"{name:>15}" for name in rows[0]))
    for row in rows:
        print("  ".join(f"{value:>15.3g}" if value < 100 else f"{value:>15.0f}" for value in row.values()))
    if integer(arguments, "--recovery", 0):
        for insertions in (False, True):
            print(*recovery_report(arguments, insertions), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
