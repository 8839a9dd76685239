"""By how much insertion can make a grammar smaller: fragments of a TSG with and without what could be inserted.

Usage:
  tools.bench.insertion_bound [options]
  tools.bench.insertion_bound -h | --help | --version

Run it as ``python -m tools.bench.insertion_bound`` with TSGKIT_TREEBANKS set. It trains a TSG with each binarisation
and looks at the fragments of the last sample. At an internal node with an internal child of the same label, what stands
beside that child could be an insertion. If all of it were, fragments that differ in nothing else would be one, and the
material would be auxiliary trees. With --auxiliary, it trains a grammar with insertion by the recipe of Shindo et al.
(2011) instead, and lists what stands beside the feet of its auxiliary trees.

Options:
  --train=TREEBANK   Training trees; the WSJ sample by default.
  --name=NAME        Its name in the table [default: WSJ sample].
  --iterations=N     Sweeps [default: 200].
  --auxiliary        What is inserted, instead of what could be.
  --record=FILE      Write the table to this file of recorded runs (JSON).
  -h --help          This text.
  --version          The version.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from nltk.tree import Tree

from tsgkit._cli import command, integer, parse_arguments
from tsgkit._codes import FOOT
from tsgkit.evaluation._report import columns
from tsgkit.inference._entry import fragments_of
from tsgkit.inference._recipes import RECIPES
from tsgkit.inference._training import Training
from tsgkit.inference._tsg import TsgSettings
from tsgkit.models._fragments import FragmentTable
from tsgkit.treebank import Binarization, UnknownWords, prepare, read_trees

from ..experiments.page import Table, write_record
from .parse import train_file

HEAD = ("treebank", "binarised", "counted", "types", "could change", "types left", "auxiliary types", "change")
N_LABELS = 16
METHODS = ("right", "centre-head")
COUNTED = {"all": 1, "count >= 2": 2}


def bound(table: FragmentTable, least: int) -> dict[str, int]:
    """Types with a count of at least `least`: in all, with something that could be inserted, and what would be left."""
    rules, used = table.rules.tolist(), np.flatnonzero(table.counts >= least)
    # Of every part: what is left of it if everything is inserted that can be, and whether that is something else.
    number_of: dict[tuple[int, int, int], int] = {}
    left_of: list[int] = []
    changes: list[bool] = []
    auxiliary_of: list[frozenset[tuple[int, int, int]]] = []
    for rule, *parts in table.fragments.tolist():
        label, *labels = rules[rule][:3]
        kept = [left_of[part] if part >= 0 else -1 for part in parts]
        below: frozenset[tuple[int, int, int]] = frozenset().union(*(auxiliary_of[part] for part in parts if part >= 0))
        feet = [side for side in range(2) if parts[side] >= 0 and labels[side] == label]
        number = number_of.setdefault((rule, *kept), len(number_of))
        if feet:
            # As the inside of another fragment, this node would be the root of an auxiliary tree.
            foot = feet[0]
            left_of.append(kept[foot])
            auxiliary_of.append(below | {(rule, foot, kept[1 - foot])})
        else:
            left_of.append(number)
            auxiliary_of.append(below)
        changes.append(bool(feet) or any(changes[part] for part in parts if part >= 0))
    whole: set[tuple[int, int, int]] = set()
    auxiliary: set[tuple[int, int, int]] = set()
    n_changed = 0
    for number in used.tolist():
        rule, *parts = table.fragments[number].tolist()
        # A root is no insertion.
        whole.add((rule, *(left_of[part] if part >= 0 else -1 for part in parts)))
        inside = [part for part in parts if part >= 0]
        auxiliary |= frozenset().union(*(auxiliary_of[part] for part in inside))
        n_changed += any(changes[part] for part in inside)
    return {"types": len(used), "changed": n_changed, "left": len(whole), "auxiliary": len(auxiliary)}


def measure(trees: Sequence[Tree], method: str, iterations: int) -> dict[str, dict[str, int]]:
    """The bounds for a TSG, by which types are counted."""
    corpus = prepare(trees, binarization=Binarization(method, 0), unknown=UnknownWords("three", 1))
    training = Training(corpus, TsgSettings(iterations=iterations, average=1), seed=1)
    training.start()
    for iteration in range(1, iterations + 1):
        training.iterate(iteration)
    table = fragments_of(training.model())
    return {name: bound(table, least) for name, least in COUNTED.items()}


def beside_feet(table: FragmentTable) -> list[list[str]]:
    """The labels beside the feet of auxiliary trees: types, and insertions, most frequent first."""
    types: Counter[str] = Counter()
    uses: Counter[str] = Counter()
    for number in table.select(kind="auxiliary"):
        rule, left, _ = table.fragments[number].tolist()
        sibling = int(table.rules[rule, 2 if left == FOOT else 1])
        name = table.labels[sibling] if sibling >= 0 else "(nothing)"
        types[name] += 1
        uses[name] += int(table.counts[number])
    return [[name, str(types[name]), str(count)] for name, count in uses.most_common(N_LABELS)]


def auxiliary_trees(trees: Sequence[Tree], iterations: int) -> tuple[dict[str, Any], Table]:
    """Train with insertion; its sizes, and the table of `beside_feet`."""
    recipe = RECIPES["shindo2011"]
    corpus = prepare(trees, binarization=recipe.binarization, unknown=recipe.unknown)
    training = Training(corpus, replace(recipe.settings, iterations=iterations), seed=1)  # type: ignore[call-arg]
    training.start()
    for iteration in range(1, iterations + 1):
        record = training.iterate(iteration)
    rows = beside_feet(fragments_of(training.model()))
    sizes = {name: int(record[name]) for name in ("fragments", "auxiliary", "insertions")}
    return sizes, Table("auxiliary", ["beside the foot", "auxiliary trees", "insertions"], rows, 1)


def row_of(name: str, method: str, counted: str, run: dict[str, int]) -> list[str]:
    """A line of the table."""
    change = (run["left"] + run["auxiliary"]) / run["types"] - 1
    return [
        name,
        method,
        counted,
        *(str(run[key]) for key in ("types", "changed", "left", "auxiliary")),
        f"{change:+.1%}",
    ]


@command
def main(argv: list[str]) -> int:
    """Measure both binarisations; print the table and record it."""
    arguments = parse_arguments(__doc__, argv)
    iterations, name = integer(arguments, "--iterations", 1), arguments["--name"]
    trees = list(read_trees(train_file(arguments)))
    if arguments["--auxiliary"]:
        sizes, table = auxiliary_trees(trees, iterations)
        return show(arguments, f"--auxiliary --iterations={iterations}", {"insertion": sizes}, table)
    runs: dict[str, Any] = {method: measure(trees, method, iterations) for method in METHODS}
    rows = [row_of(name, method, counted, run) for method in METHODS for counted, run in runs[method].items()]
    return show(arguments, f"--iterations={iterations}", runs, Table("bound", list(HEAD), rows, 3))


def show(arguments: dict[str, Any], options: str, runs: dict[str, Any], table: Table) -> int:
    """Print a table and record it."""
    print(columns(table.head, table.rows, table.n_left), end="")
    if arguments["--record"] is not None:
        write_record(Path(arguments["--record"]), f"python -m tools.bench.insertion_bound {options}", runs, [table])
    return 0


if __name__ == "__main__":
    sys.exit(main(None))
