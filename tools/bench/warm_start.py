"""What a start saves: training on a small treebank, then on a larger one with and without the first model as start.

Usage:
  tools.bench.warm_start [options]
  tools.bench.warm_start -h | --help | --version

Run it as ``python -m tools.bench.warm_start``. With TSGKIT_TREEBANKS set, the trees are the first ones of CRAFT,
otherwise those of the bundled treebank; F1 is on the first trees of its dev part. Seconds are processor time of the
training.

Options:
  --small=N          Trees of the small treebank [default: 500].
  --large=N          Trees of the large one, with those of the small one [default: 2000].
  --dev=N            Trees to score [default: 200].
  --scale=N          Number of sweeps: N percent of the default ones [default: 100].
  --record=FILE      Write the table to this file of recorded runs (JSON).
  -h --help          This text.
  --version          The version.
"""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nltk.tree import Tree

from tsgkit._cli import command, integer, parse_arguments
from tsgkit.evaluation._report import columns
from tsgkit.inference._entry import MODELS
from tsgkit.inference._settings import Settings
from tsgkit.inference._srtsg import SrSettings
from tsgkit.inference._start import Start
from tsgkit.inference._training import Training
from tsgkit.inference._tsg import TsgSettings
from tsgkit.models._model import Model
from tsgkit.parsing._held_out import held_out_score
from tsgkit.treebank import load, prepare, read_trees

from ..experiments.page import Table, write_record

HEAD = ("model", "trees", "start", "sweeps", "CPU s", "log joint", "F1")


@dataclass
class Bank:
    """A small and a large training treebank, and trees to score."""

    small: Sequence[Tree]
    large: Sequence[Tree]
    dev: Sequence[Tree]


def bank_of(n_small: int, n_large: int, n_dev: int) -> Bank:
    """The first trees of CRAFT, or of the bundled treebank."""
    folder = os.environ.get("TSGKIT_TREEBANKS")
    if folder:
        train, dev = (list(read_trees(Path(folder, "craft", f"{part}.mrg"))) for part in ("train", "dev"))
    else:
        train, dev = load("village", "train"), load("village", "dev")
    return Bank(train[:n_small], train[:n_large], dev[:n_dev])


def plans(percent: int) -> dict[str, tuple[Settings, Settings]]:
    """For every model, the settings from nothing, and after a start."""

    def share(number: int) -> int:
        return max(number * percent // 100, 1)

    refined = SrSettings(splits=3, split_iterations=share(100), joint_iterations=share(100))
    return {
        "tsg": (TsgSettings(iterations=share(300)), TsgSettings(iterations=share(100), average=10)),
        "srtsg": (refined, refined),
    }


def measure(
    trees: Sequence[Tree], settings: Settings, dev: Sequence[Tree], start: Model | None
) -> tuple[Model, dict[str, Any]]:
    """Train and score."""
    entry = MODELS[settings.kind]
    corpus = prepare(trees, binarization=entry.binarization, unknown=entry.unknown)
    started = time.process_time()
    training = Training(corpus, settings, seed=1, begin=None if start is None else Start(start))
    training.start()
    for iteration in range(1, training.iterations + 1):
        record = training.iterate(iteration)
    seconds = time.process_time() - started
    model = training.model()
    score = held_out_score(model, list(dev), threads=1, quiet=True)
    figures = {"seconds": seconds, "log_joint": record["log_joint"], "f1": score.f1, "sweeps": training.iterations}
    return model, {"trees": corpus.n_trees, **figures}


def row_of(kind: str, start: str, run: dict[str, Any]) -> list[str]:
    """A line of the table."""
    numbers = f"{run['seconds']:.1f}", f"{run['log_joint']:.0f}", f"{run['f1']:.2f}"
    return [kind, str(run["trees"]), start, str(run["sweeps"]), *numbers]


@command
def main(argv: list[str]) -> int:
    """Measure both models; print the table and record it."""
    arguments = parse_arguments(__doc__, argv)
    sizes = [integer(arguments, f"--{name}", 1) for name in ("small", "large", "dev")]
    bank = bank_of(*sizes)
    runs: dict[str, dict[str, Any]] = {}
    rows = []
    for kind, (cold, warm) in plans(integer(arguments, "--scale", 1)).items():
        small, runs[f"{kind} small"] = measure(bank.small, cold, bank.dev, None)
        _, runs[f"{kind} large"] = measure(bank.large, cold, bank.dev, None)
        _, runs[f"{kind} large, started"] = measure(bank.large, warm, bank.dev, small)
        named = (("-", "small"), ("-", "large"), ("small", "large, started"))
        rows += [row_of(kind, start, runs[f"{kind} {name}"]) for start, name in named]
    table = Table("start", list(HEAD), rows, 1)
    print(columns(table.head, table.rows, table.n_left), end="")
    if arguments["--record"] is not None:
        used = f"python -m tools.bench.warm_start --small={sizes[0]} --large={sizes[1]} --dev={sizes[2]}"
        write_record(Path(arguments["--record"]), used, runs, [table])
    return 0


if __name__ == "__main__":
    sys.exit(main(None))
