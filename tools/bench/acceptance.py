"""How many blocked proposals are accepted, by process, treebank size, sentence length and preparation.

Usage:
  tools.bench.acceptance [options]
  tools.bench.acceptance -h | --help | --version

Run it as ``python -m tools.bench.acceptance`` with TSGKIT_TREEBANKS set. One sweep proposes a derivation for every
tree, in batches of one; rates are means over the last sixth of the iterations.

Options:
  --train=TREEBANK   Training trees; the WSJ sample by default.
  --larger=TREEBANK  A larger treebank: its first 2,000 and 6,000 trees and all of them, with a fifth of the sweeps.
  --iterations=N     Sweeps of every line [default: 300].
  --record=FILE      Write the table to this file of recorded runs (JSON).
  -h --help          This text.
  --version          The version.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from nltk.tree import Tree

from tsgkit._cli import command, integer, parse_arguments
from tsgkit._tsg_sampler import TsgSampler
from tsgkit.evaluation._report import columns
from tsgkit.models._rules import number_rules
from tsgkit.treebank import Binarization, UnknownWords, prepare, read_trees

from ..experiments.page import Table, write_record
from .parse import train_file

HEAD = ("setting", "trees", "nodes per tree", "accepted", "changed", "rules per fragment", "fragments")
LENGTHS = ((1, 10), (11, 20), (21, 30), (31, 1000))
LARGER = (2000, 6000)
STRENGTHS = (1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class Setting:
    """One line: the recipe of Cohn & Blunsom (2010) with English signatures, but for these."""

    name: str
    trees: Sequence[Tree]
    unknown: UnknownWords = field(default_factory=lambda: UnknownWords("signature", 1))
    binarization: Binarization = field(default_factory=lambda: Binarization("right", 0))
    discount: float = 0.0
    strength: float | None = None  # fixed, instead of sampled
    batch: int = 1
    minimal: bool = True


def settings(trees: Sequence[Tree]) -> Iterator[Setting]:
    """All lines."""
    yield Setting("Dirichlet process", trees)
    yield Setting("Pitman-Yor process", trees, discount=0.5)
    yield Setting("batches of 8", trees, batch=8)
    yield Setting("maximal initialisation", trees, minimal=False)
    for share in (4, 2):
        yield Setting(f"the first {len(trees) // share} trees", trees[: len(trees) // share])
    for lowest, highest in LENGTHS:
        chosen = [tree for tree in trees if lowest <= len(tree.leaves()) <= highest]
        if chosen:
            yield Setting(f"{lowest} to {highest} words" if highest < 1000 else f"from {lowest} words on", chosen)
    for strength in STRENGTHS:
        yield Setting(f"alpha fixed at {strength:g}", trees, strength=strength)
    yield Setting("three classes of unknown words", trees, UnknownWords("three", 1))
    yield Setting("words of count <= 5 replaced", trees, UnknownWords("signature", 5))
    yield Setting("h = all", trees, binarization=Binarization("right", None))
    yield Setting("h = 1", trees, binarization=Binarization("right", 1))
    yield Setting("centre-head binarisation", trees, binarization=Binarization("centre-head", 0))


def larger(source: str) -> Iterator[Setting]:
    """Lines for growing parts of a larger treebank."""
    trees, name = list(read_trees(source)), Path(source).parent.name
    for size in (*(size for size in LARGER if size < len(trees)), len(trees)):
        yield Setting(f"{name}, {size:,} trees", trees[:size])


def measure(setting: Setting, iterations: int) -> dict[str, Any]:
    """Rates of acceptance and of change of a setting, and the state at the end."""
    corpus = prepare(setting.trees, binarization=setting.binarization, unknown=setting.unknown)
    sampler = TsgSampler(number_rules(corpus), 1)
    sampler.set_parameters(discount=setting.discount, strength=setting.strength or 1.0, stop=0.5)
    sampler.start(np.full(corpus.n_nodes, setting.minimal))
    rates = []
    for iteration in range(1, iterations + 1):
        n_proposed, n_accepted, n_changed = sampler.blocked_sweep(iteration, setting.batch)
        sampler.resample_parameters(iteration, hyper=setting.strength is None, dirichlet=setting.discount == 0)
        rates.append((n_accepted / n_proposed, n_changed / n_proposed))
    accepted, changed = np.mean(rates[-max(iterations // 6, 1) :], axis=0).tolist()
    return {
        "trees": corpus.n_trees,
        "nodes_per_tree": corpus.n_nodes / corpus.n_trees,
        "accepted": accepted,
        "changed": changed,
        "rules_per_fragment": corpus.n_nodes / int(sampler.restaurants()[0].sum()),
        "fragments": sampler.n_fragments()[1],
    }


def row_of(name: str, run: dict[str, Any]) -> list[str]:
    """A line of the table."""
    rates = (f"{run[rate]:.1%}" for rate in ("accepted", "changed"))
    sizes = f"{run['rules_per_fragment']:.2f}", str(run["fragments"])
    return [name, str(run["trees"]), f"{run['nodes_per_tree']:.1f}", *rates, *sizes]


@command
def main(argv: list[str]) -> int:
    """Measure all settings; print the table and record it."""
    arguments = parse_arguments(__doc__, argv)
    iterations = integer(arguments, "--iterations", 1)
    planned = [(setting, iterations) for setting in settings(list(read_trees(train_file(arguments))))]
    if arguments["--larger"] is not None:
        planned += [(setting, max(iterations // 5, 1)) for setting in larger(arguments["--larger"])]
    runs: dict[str, dict[str, Any]] = {}
    for setting, sweeps in planned:
        runs[setting.name] = measure(setting, sweeps)
    table = Table("acceptance", list(HEAD), [row_of(name, run) for name, run in runs.items()], 1)
    print(columns(table.head, table.rows, table.n_left), end="")
    if arguments["--record"] is not None:
        more = "" if arguments["--larger"] is None else f" --larger={Path(arguments['--larger']).parent.name}/train.mrg"
        used = f"python -m tools.bench.acceptance --iterations={iterations}{more}"
        write_record(Path(arguments["--record"]), used, runs, [table])
    return 0


if __name__ == "__main__":
    sys.exit(main(None))
