"""Speed of the sweeps of symbol-refined grammars, by treebank size and threads, and of whole trainings of two versions.

Usage:
  tools.bench.sweeps [options] [TREEBANK]
  tools.bench.sweeps -h | --help | --version

TREEBANK is a file of trees; without it they are generated. For every size, trainings with different numbers of threads
run side by side, iteration by iteration, so that they share whatever else the machine does. Prints, for every kind of
sweep, wall-clock and processor time, processor time per token, acceptance, and the speed-up in wall-clock time.

With --against, two versions of tsgkit train small models by the command line, in turns: this one and that of another
environment, of any commit that has `tsgkit train`. Prints the processor and wall-clock times and their ratios.

Options:
  --sizes=LIST      numbers of sentences, separated by commas [default: 1000,2000]
  --threads=LIST    numbers of threads, separated by commas [default: 1,2]
  --batch=N         trees whose proposals are made together [default: 8]
  --splits=N        splits of the subcategories [default: 4]
  --sweeps=N        iterations of every split and of each later phase; the second half is timed [default: 10]
  --against=PYTHON  the interpreter of another environment; compares trainings instead
  --rounds=N        trainings of each version, for --against [default: 3]
  --options=TEXT    further options of these trainings [default: ]
  --seed=N          seed [default: 1]
  -q, --quiet       do not report progress
  -h, --help        this text
  --version         the version
"""

import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from nltk.tree import Tree

from tsgkit._cli import command, integer, parse_arguments
from tsgkit._progress import progress
from tsgkit.errors import UsageError
from tsgkit.evaluation._report import columns
from tsgkit.inference._srtsg import SRTSG, SrSettings
from tsgkit.inference._srtsg_phases import JointPhase, SplitPhase
from tsgkit.inference._training import Training
from tsgkit.treebank import Cleaning, FlatCorpus, prepare, read_trees, write_trees
from tsgkit.treebank.synthetic import generate


class Times(NamedTuple):
    wall: float
    processor: float


def now() -> Times:
    return Times(time.perf_counter(), time.process_time())


def kind_of(phase: Any) -> str:
    """The name of a phase's sweeps."""
    if isinstance(phase, SplitPhase):
        return f"split {phase.number}"
    return "joint" if isinstance(phase, JointPhase) else "sites"


def trees_of(path: str | None, n_sentences: int, seed: int) -> list[Tree]:
    if path is None:
        return list(generate(n_sentences, seed=seed))
    trees = list(islice(read_trees(path), n_sentences))
    if len(trees) < n_sentences:
        raise UsageError(f"{path}: has only {len(trees)} trees: give smaller --sizes")
    return trees


class Timed:
    """A training whose sweeps are timed by kind, the second half of every phase."""

    def __init__(self, corpus: FlatCorpus, settings: SrSettings, seed: int, threads: int) -> None:
        self.training = Training(corpus, settings, seed=seed, threads=threads)
        self.training.start()
        self.threads = threads
        self.times: dict[str, list[Times]] = {}
        self.acceptance: dict[str, list[float]] = {}

    def iterate(self, iteration: int) -> None:
        number, step = self.training.phase_of(iteration)
        phase = self.training.phases[number]
        before = now()
        record = self.training.iterate(iteration)
        after = now()
        if 2 * step > phase.iterations:
            kind = kind_of(phase)
            self.times.setdefault(kind, []).append(Times(*(b - a for a, b in zip(before, after, strict=True))))
            self.acceptance.setdefault(kind, []).append(record["acceptance"])

    def mean(self, kind: str) -> Times:
        return Times(*map(statistics.mean, zip(*self.times[kind], strict=True)))


def sweep_rows(arguments: dict[str, Any]) -> Iterator[list[str]]:
    """One row for every size, kind of sweep and number of threads."""
    seed, sweeps = integer(arguments, "--seed", 0), integer(arguments, "--sweeps", 2)
    settings = SrSettings(
        splits=integer(arguments, "--splits", 1), split_iterations=sweeps, site_iterations=sweeps,
        joint_iterations=sweeps, batch=integer(arguments, "--batch", 1), average=1,
    )  # fmt: skip
    yield ["sentences", "sweep", "threads", "wall s", "CPU s", "CPU us/token", "accepted", "speed-up"]
    for size in numbers_of(arguments, "--sizes"):
        corpus = prepare(trees_of(arguments["TREEBANK"], size, seed), Cleaning(), SRTSG.binarization, SRTSG.unknown)
        trainings = [Timed(corpus, settings, seed, threads) for threads in numbers_of(arguments, "--threads")]
        iterations = range(1, trainings[0].training.iterations + 1)
        for iteration in progress(iterations, f"{size} sentences", "iterations", quiet=arguments["--quiet"]):
            for training in trainings:
                training.iterate(iteration)
        for kind in trainings[0].times:
            first = trainings[0].mean(kind)
            for training in trainings:
                mean, accepted = training.mean(kind), statistics.mean(training.acceptance[kind])
                yield [
                    str(size), kind, str(training.threads), f"{mean.wall:.4f}", f"{mean.processor:.4f}",
                    f"{1e6 * mean.processor / corpus.n_tokens:.2f}", f"{accepted:.4f}",
                    f"{first.wall / mean.wall:.2f}",
                ]  # fmt: skip


def numbers_of(arguments: dict[str, Any], name: str) -> list[int]:
    try:
        numbers = [int(text) for text in arguments[name].split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise UsageError(f"{name}={arguments[name]}: must be positive numbers, separated by commas")
    return numbers


# ---- two versions ---------------------------------------------------------------------------------------------


def train(python: str, treebank: Path, arguments: dict[str, Any], folder: Path) -> Times:
    """The time of one training by the command line of an environment."""
    # Each in a folder of its own, without the model or the checkpoint of another.
    output = Path(tempfile.mkdtemp(dir=folder)) / "model"
    sweeps = arguments["--sweeps"]
    options = [
        "--model=srtsg", "--quiet", f"--output={output}", f"--seed={arguments['--seed']}", "--average=1",
        f"--splits={arguments['--splits']}", f"--split-iterations={sweeps}", f"--joint-iterations={sweeps}",
        *shlex.split(arguments["--options"]), str(treebank),
    ]  # fmt: skip
    used, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    # In its own folder, so that the interpreter finds the package of its environment and not of this checkout.
    done = subprocess.run(
        [python, "-m", "tsgkit", "train", *options], cwd=folder, capture_output=True, text=True, check=False
    )
    wall, spent = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise UsageError(f"{python}: tsgkit train failed: {done.stderr.strip()[-500:]}")
    return Times(wall, spent.ru_utime + spent.ru_stime - used.ru_utime - used.ru_stime)


def comparison_rows(arguments: dict[str, Any]) -> Iterator[list[str]]:
    """Trainings of both versions in turns: the least time of each, and the ratio of the other's to ours."""
    rounds = range(integer(arguments, "--rounds", 1))
    yield ["sentences", "CPU s, other", "CPU s, this", "ratio", "wall s, other", "wall s, this", "ratio"]
    for size in numbers_of(arguments, "--sizes"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            treebank = folder / "trees.mrg"
            write_trees(trees_of(arguments["TREEBANK"], size, integer(arguments, "--seed", 0)), treebank)
            times: dict[str, list[Times]] = {arguments["--against"]: [], sys.executable: []}
            for _ in progress(rounds, f"{size} sentences", "rounds", quiet=arguments["--quiet"]):
                for python, of_python in times.items():
                    of_python.append(train(python, treebank, arguments, folder))
            other, ours = (Times(*map(min, zip(*values, strict=True))) for values in times.values())
            yield [
                str(size), f"{other.processor:.2f}", f"{ours.processor:.2f}", f"{other.processor / ours.processor:.2f}",
                f"{other.wall:.2f}", f"{ours.wall:.2f}", f"{other.wall / ours.wall:.2f}",
            ]  # fmt: skip


@command
def main(argv: list[str]) -> int:
    """Measure and print."""
    arguments = parse_arguments(__doc__, argv)
    head, *rows = comparison_rows(arguments) if arguments["--against"] else sweep_rows(arguments)
    print(columns(head, rows, n_left=0), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
