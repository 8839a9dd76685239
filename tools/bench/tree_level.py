"""Does the tree-level sampler of Shindo et al. (2012) gain anything for its time? Grammars of subcategories alone.

Usage:
  tools.bench.tree_level [options]
  tools.bench.tree_level -h | --help | --version

Run it as ``python -m tools.bench.tree_level`` with NLTK_DATA set. After an interruption the same command continues.
Every setting is trained without tree-level moves, and with them for as many sweeps.

Options:
  --treebank=NAME    As of the experiments [default: nltk].
  --scale=NAME       smoke, small or full [default: small].
  --longer           Train without tree-level moves for as many more sweeps as take the same processor time, too.
  --folder=PATH      Folder for the models and scores of finished runs; build/experiments/... by default.
  --jobs=N           Number of runs in parallel [default: 1].
  --record=FILE      Write the table to this file of recorded runs (JSON).
  --quiet            Do not report progress.
  -h --help          This text.
  --version          The version.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tsgkit._cli import command, parse_arguments
from tsgkit.evaluation._report import columns
from tsgkit.treebank import UnknownWords

from ..experiments.lab import Figures, Job, Lab, score_key
from ..experiments.page import Table, spread, write_record

HEAD = ("tree-level moves", "sweeps", "dev F1", "lowest", "highest", "log joint", "changed per sweep", "CPU s")


@dataclass(frozen=True)
class Scale:
    """Splits, sweeps of each, moves after each sweep, their modes, and seeds."""

    splits: int
    sweeps: int
    moves: tuple[int, ...]
    modes: tuple[str, ...]
    seeds: int


SCALES = {
    "smoke": Scale(1, 4, (20,), ("exact", "map"), 1),
    "small": Scale(4, 200, (500,), ("exact",), 3),
    "full": Scale(6, 1000, (500, 2000), ("exact", "map"), 3),
}


def jobs_of(scale: Scale, name: str, sweeps: int, moves: int = 0, mode: str = "exact") -> list[Job]:
    """The runs of one line, by seed."""
    settings = {
        "splits": scale.splits,
        "split_iterations": sweeps,
        "joint_iterations": 0,
        "average": min(30, sweeps // 4),
        "type_moves": moves,
        "type_mode": mode,
    }
    unknown = UnknownWords("unicode", 0)
    return [Job(name, "srtsg", settings, seed, unknown=unknown) for seed in range(1, scale.seeds + 1)]


def seconds_of(figures: list[Figures]) -> float:
    """Processor time of one training, the mean over the runs that were not interrupted."""
    return float(np.mean([one["seconds"] for one in figures if one["seconds"] is not None]))


def row_of(name: str, sweeps: int, figures: list[Figures]) -> list[str]:
    """A line of the table: means over seeds; of log joint and changes, over the last tenth of the sweeps, too."""

    def last(quantity: str) -> float:
        n_last = max(len(figures[0]["history"][quantity]) // 10, 1)
        return float(np.mean([one["history"][quantity][-n_last:] for one in figures]))

    f1 = spread([one[score_key("dev")]["f1"] for one in figures])
    numbers = f"{last('log_joint'):.0f}", f"{last('types_changed'):.1f}", f"{seconds_of(figures):.0f}"
    return [name, str(sweeps), *f1, *numbers]


@command
def main(argv: list[str]) -> int:
    """Train and score the runs that are missing; print the table and record it."""
    arguments = parse_arguments(__doc__, argv)
    lab = Lab.of(arguments, "tree-level")
    scale = SCALES[lab.scale]
    runs: dict[str, Figures] = {}
    rows: list[list[str]] = []

    def add(name: str, stem: str, sweeps: int, moves: int = 0, mode: str = "exact") -> float:
        jobs = jobs_of(scale, stem, sweeps, moves, mode)
        found = lab.run(jobs)
        runs.update(found)
        rows.append(row_of(name, sweeps, [found[job.stem] for job in jobs]))
        return seconds_of(list(found.values()))

    plain = add("none", "none", scale.sweeps)
    for moves in scale.moves:
        times = [add(f"{moves}, {mode}", f"{mode}-{moves}", scale.sweeps, moves, mode) for mode in scale.modes]
        if arguments["--longer"]:
            longer = max(round(scale.sweeps * float(np.mean(times)) / plain), scale.sweeps)
            add("none", f"none-{longer}", longer)
    table = Table("tree-level", list(HEAD), rows, 1)
    print(columns(table.head, table.rows, table.n_left), end="")
    if arguments["--record"] is not None:
        more = " --longer" if arguments["--longer"] else ""
        used = f"python -m tools.bench.tree_level --scale={lab.scale} --treebank={lab.treebank}{more}"
        write_record(Path(arguments["--record"]), used, runs, [table])
    return 0


if __name__ == "__main__":
    sys.exit(main(None))
