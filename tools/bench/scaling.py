"""Cost of training and parsing at any size: measured points, a power law fitted to them and checked, a simulation.

Usage:
  tools.bench.scaling [options]
  tools.bench.scaling -h | --help | --version

Run it as ``python -m tools.bench.scaling``. With --measure it measures the time of sweeps and of parsing, and the
memory, on growing parts of a treebank, each in a separate process, and writes the points to a file. Then it fits a
power law to every quantity in the file, without the largest size, and compares its prediction for that size with the
measurement. Last, it predicts the cost of larger jobs, and simulates two: trainings of several chains with several
threads each on one machine, and parsing on a cluster that loses workers.

Options:
  --points=FILE      The measured points [default: docs/results/scaling.tsv].
  --measure          Measure first.
  --treebank=FILE    Training trees; by default those of CRAFT if the environment variable TSGKIT_TREEBANKS names its
                     folder, else generated trees.
  --dev=FILE         Trees whose sentences are parsed.
  --sizes=LIST       Numbers of sentences, separated by commas [default: 1000,2000,4000,8000,16000].
  --sweeps=N         Sweeps that are timed, after as many for warming up [default: 3].
  --parse=N          Number of sentences to parse [default: 200].
  --machines=N       Machines of the simulated cluster [default: 16].
  --cores=N          Cores of each machine [default: 16].
  --chunk=N          Sentences per chunk [default: 1000].
  --losses=P         Fraction of workers lost per hour [default: 0.01].
  --seed=N           Seed of the simulation [default: 1].
  --quiet            Do not report progress.
  -h --help          This text.
  --version          The version.
"""

import csv
import heapq
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from nltk.tree import Tree

from tsgkit._cli import command, integer, number, parse_arguments
from tsgkit._files import open_output
from tsgkit.errors import UsageError
from tsgkit.evaluation._report import columns
from tsgkit.inference._srtsg import SrSettings
from tsgkit.inference._training import Training
from tsgkit.inference._tsg import TsgSettings
from tsgkit.parsing import Parser
from tsgkit.treebank import Binarization, Cleaning, UnknownWords, prepare, read_trees
from tsgkit.treebank.synthetic import generate

from . import from_checkout

SPLITS = 4
# Tokens in sections 2 to 21 of the Penn Treebank, and words of an average sentence.
PENN_TOKENS, SENTENCE = 950_028, 24
# Trainings that are simulated: numbers of trees, and of chains and of threads of each.
TREES = (40_000, 1_000_000)
CHAINS = ((1, 1), (1, 2), (1, 4), (1, 16), (16, 1), (16, 4))
# The share of a sweep that one thread does alone (docs/results/srtsg.rst).
SERIAL = {"split sweep": 0.04, "joint sweep": 0.26}
MEMORY = "MB"
# The measured quantities.
QUANTITIES = {
    "tsg sweep": "a sweep of the blocked sampler of a TSG",
    "split sweep": f"a sweep over subcategories in the last of {SPLITS} splits",
    "joint sweep": "a sweep over fragments and subcategories together",
    "sentence": "parsing a sentence with the resulting grammar",
    MEMORY: "memory of the whole job, in MB",
}


@dataclass(frozen=True)
class Point:
    """A measured value: seconds of processor time, or megabytes."""

    quantity: str
    sentences: int
    tokens: int
    value: float
    spread: float = 0.0


@dataclass(frozen=True)
class Law:
    """``value = base + factor * tokens ** exponent``"""

    factor: float
    exponent: float
    base: float = 0.0

    @classmethod
    def fit(cls, points: list[Point]) -> "Law":
        """Times: by least squares of the logarithms, without a base. Memory: a straight line."""
        tokens, values = np.array([(one.tokens, one.value) for one in points]).T
        if points[0].quantity == MEMORY:
            slope, height = np.polyfit(tokens, values, 1)
            return cls(float(slope), 1.0, float(height))
        slope, height = np.polyfit(np.log(tokens), np.log(values), 1)
        return cls(float(np.exp(height)), float(slope))

    def at(self, tokens: float) -> float:
        return float(self.base + self.factor * tokens**self.exponent)


# ---- measuring -------------------------------------------------------------------------------------------


def treebank_file(given: str | None, part: str) -> Path | None:
    """A file of trees: the one given, or CRAFT's."""
    if given is not None:
        return Path(given)
    folder = os.environ.get("TSGKIT_TREEBANKS")
    path = Path(folder) / "craft" / f"{part}.mrg" if folder else None
    return path if path is not None and path.exists() else None


def trees_of(path: Path | None, skip: int, count: int) -> list[Tree]:
    """The first trees of a file, cleaned; or generated ones from `skip` on."""
    if path is None:
        return list(generate(skip + count))[skip:]
    trees = (tree for tree in map(Cleaning().apply, read_trees(path)) if tree is not None)
    return [tree for tree, _ in zip(trees, range(count), strict=False)]


def timed_sweeps(training: Training, first: int, n_sweeps: int) -> float:
    """Seconds of processor time per sweep from iteration `first` on, after as many sweeps for warming up."""
    for iteration in range(first, first + n_sweeps):
        training.iterate(iteration)
    started = time.process_time()
    for iteration in range(first + n_sweeps, first + 2 * n_sweeps):
        training.iterate(iteration)
    return (time.process_time() - started) / n_sweeps


def measure_size(train: list[Tree], dev: list[Tree], n_sweeps: int) -> Iterator[Point]:
    """All points of one size; the memory is that of this process."""
    corpus = prepare(train, binarization=Binarization("right", 0), unknown=UnknownWords("unicode", 0))
    size = (corpus.n_trees, corpus.n_tokens)
    tsg = Training(corpus, TsgSettings(iterations=10**6))
    tsg.start()
    yield Point("tsg sweep", *size, timed_sweeps(tsg, 1, n_sweeps))
    del tsg
    each = 2 * n_sweeps
    settings = SrSettings(
        splits=SPLITS, split_iterations=each, joint_iterations=each, average=n_sweeps, average_every=1
    )
    training = Training(corpus, settings)
    training.start()
    last_split = (SPLITS - 1) * each
    for iteration in range(1, last_split + 1):
        training.iterate(iteration)
    yield Point("split sweep", *size, timed_sweeps(training, last_split + 1, n_sweeps))
    yield Point("joint sweep", *size, timed_sweeps(training, last_split + each + 1, n_sweeps))
    parser = Parser(training.model())
    seconds = []
    for tree in dev:
        started = time.process_time()
        parser.analyse(tree.leaves())
        seconds.append(time.process_time() - started)
    # Per word, so that treebanks with sentences of other lengths compare.
    per_sentence = SENTENCE * np.array(seconds).sum() / sum(len(tree.leaves()) for tree in dev)
    yield Point("sentence", *size, float(per_sentence), float(np.std(seconds)))
    yield Point(MEMORY, *size, peak_megabytes())


def peak_megabytes() -> float:
    """The peak resident memory of this process."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    import resource  # noqa: PLC0415 - not on every system

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


MEASURE = "import sys; from tools.bench.scaling import print_points; print_points(sys.argv[1])"


def print_points(task: str) -> None:
    """In a separate process: the points of one size, one JSON object per line."""
    given = json.loads(task)
    train, dev = (None if given[part] is None else Path(given[part]) for part in ("train", "dev"))
    trees = trees_of(train, 0, given["sentences"])
    parsed = trees_of(dev, given["sentences"], given["parse"])
    for point in measure_size(trees, parsed, given["sweeps"]):
        print(json.dumps(asdict(point)), flush=True)


def measure(arguments: dict[str, Any], sizes: list[int]) -> list[Point]:
    """The points of all sizes, each in a separate process, so that the memory of each can be measured."""
    points: list[Point] = []
    train, dev = (treebank_file(arguments[f"--{key}"], part) for key, part in (("treebank", "train"), ("dev", "dev")))
    for size in sizes:
        task = {
            "train": None if train is None else str(train),
            "dev": None if dev is None else str(dev),
            "sentences": size,
            "sweeps": integer(arguments, "--sweeps", 1),
            "parse": integer(arguments, "--parse", 1),
        }
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, json.dumps(task)],
            env=from_checkout(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise UsageError(f"{size} sentences: {done.stderr.strip().splitlines()[-1]}")
        own = [Point(**json.loads(line)) for line in done.stdout.splitlines()]
        if own[0].sentences < size and points and points[-1].sentences == own[0].sentences:
            break  # the treebank has no more
        points += own
        if not arguments["--quiet"]:
            print(f"{own[0].sentences} sentences measured", file=sys.stderr)
    return points


# ---- the points' file ------------------------------------------------------------------------------------


def write_points(points: list[Point], path: Path) -> None:
    with open_output(path) as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow([one.name for one in fields(Point)])
        writer.writerows([*asdict(one).values()] for one in points)


def read_points(path: Path) -> list[Point]:
    """The points of a file, checked."""
    points = []
    with open(path, encoding="utf-8", newline="") as file:
        for line, row in enumerate(csv.DictReader(file, delimiter="\t"), start=2):
            try:
                sizes = int(row["sentences"]), int(row["tokens"])
                point = Point(row["quantity"], *sizes, float(row["value"]), float(row["spread"]))
            except (KeyError, TypeError, ValueError):
                raise UsageError(f"{path}:{line}: not a measured point; --measure writes the file") from None
            if point.quantity not in QUANTITIES or min(*sizes, point.value) <= 0:
                raise UsageError(f"{path}:{line}: not a measured point; --measure writes the file")
            points.append(point)
    return points


# ---- from points to costs --------------------------------------------------------------------------------


def check_rows(points: dict[str, list[Point]]) -> Iterator[tuple[str, ...]]:
    """How well the smaller sizes predict the largest one."""
    for quantity, own in points.items():
        *others, largest = own
        law = Law.fit(others)
        predicted = law.at(largest.tokens)
        yield (
            *(quantity, f"{law.exponent:.2f}", str(largest.tokens), f"{predicted:.4g}", f"{largest.value:.4g}"),
            f"{predicted / largest.value:.2f}",
        )


@dataclass(frozen=True)
class Costs:
    """Costs of jobs, by the laws fitted to all points."""

    laws: dict[str, Law]

    def tsg_hours(self, tokens: int, iterations: int) -> float:
        return iterations * self.laws["tsg sweep"].at(tokens) / 3600

    def srtsg_hours(self, tokens: int, splits: int, each: int, joint: int) -> float:
        sweeps = splits * each * self.laws["split sweep"].at(tokens) + joint * self.laws["joint sweep"].at(tokens)
        return sweeps / 3600

    def parse_hours(self, tokens: int, words: float, n_models: int = 1) -> float:
        return n_models * words / SENTENCE * self.laws["sentence"].at(tokens) / 3600


def cost_rows(costs: Costs, largest: int) -> Iterator[tuple[str, ...]]:
    """Jobs and their core-hours and memory."""
    memory = costs.laws[MEMORY]
    for name, tokens in (("the largest treebank measured", largest), ("Penn, sections 2-21", PENN_TOKENS)):
        train = costs.srtsg_hours(tokens, 6, 200, 300)
        megabytes = f"{memory.at(tokens):.0f}"
        yield (f"TSG, 5000 iterations, {name}", f"{costs.tsg_hours(tokens, 5000):.1f}", megabytes)
        yield (f"SR-TSG, 6 splits of 200 + 300, {name}", f"{train:.1f}", megabytes)
        yield (f"16 of these, {name}", f"{16 * train:.1f}", f"16 times {megabytes}")
        yield (f"a billion words, one grammar of {name}", f"{costs.parse_hours(tokens, 1e9):.0f}", megabytes)
        product = costs.parse_hours(tokens, 1e9, 16)
        yield (f"a billion words, product of 16 of {name}", f"{product:.0f}", f"16 times {megabytes}")


def with_threads(quantity: str, n_threads: int) -> float:
    """The wall-clock time of a sweep with several threads, as a share of that with one (Amdahl's law)."""
    return SERIAL[quantity] + (1 - SERIAL[quantity]) / n_threads


def training_rows(laws: dict[str, Law], tokens_per_tree: float, cores: int) -> Iterator[tuple[str, ...]]:
    """Trainings by the default schedule on one machine: chains wait until there are cores for all their threads."""
    for n_trees in TREES:
        tokens = round(n_trees * tokens_per_tree)
        schedule = SrSettings().for_size(tokens).schedule
        n_sweeps = {
            "split sweep": schedule.splits * schedule.split_iterations,
            "joint sweep": schedule.joint_iterations,
        }
        for n_chains, n_threads in CHAINS:
            if n_threads > cores:
                continue
            seconds = sum(
                number * laws[name].at(tokens) * with_threads(name, n_threads) for name, number in n_sweeps.items()
            )
            at_a_time = min(n_chains, cores // n_threads)
            rounds = -(-n_chains // at_a_time)
            yield (
                *(f"{n_trees:,}", str(n_chains), str(n_threads), f"{rounds * seconds / 3600:.2f}"),
                f"{at_a_time * laws[MEMORY].at(tokens):.0f}",
            )


@dataclass(frozen=True)
class Cluster:
    """Workers that take chunks of sentences; the chunk of a lost worker is parsed again by another."""

    machines: int
    cores: int
    chunk: int
    losses: float
    seed: int

    def hours(self, n_sentences: int, mean: float, spread: float) -> tuple[float, int]:
        """When the last chunk is done, and how many chunks were lost.

        A chunk's seconds are normal, by the central limit theorem, with the mean and spread of its sentences.
        """
        random = np.random.Generator(np.random.PCG64(self.seed))
        n_chunks = -(-n_sentences // self.chunk)
        chunk_mean, chunk_spread = self.chunk * mean, np.sqrt(self.chunk) * spread
        free = [0.0] * (self.machines * self.cores)
        waiting, lost, end = n_chunks, 0, 0.0
        while waiting:
            start = heapq.heappop(free)
            seconds = max(random.normal(chunk_mean, chunk_spread), chunk_mean / 10)
            dies_after = random.exponential(3600 / self.losses) if self.losses else np.inf
            if dies_after < seconds:
                lost += 1
                heapq.heappush(free, start + dies_after)  # another worker takes its place
                continue
            waiting -= 1
            end = max(end, start + seconds)
            heapq.heappush(free, start + seconds)
        return end / 3600, lost


def report(points: list[Point], arguments: dict[str, Any]) -> Iterator[str]:
    """All tables."""
    by_quantity: dict[str, list[Point]] = defaultdict(list)
    for point in sorted(points, key=lambda one: one.tokens):
        by_quantity[point.quantity].append(point)
    missing = [name for name in QUANTITIES if len(by_quantity[name]) < 3]
    if missing:
        raise UsageError(
            f"too few points for {', '.join(missing)}: three sizes are needed; --measure with more --sizes"
        )
    yield "measured: seconds of processor time (of a sentence of 24 words), and megabytes\n"
    sizes = [(one.sentences, one.tokens) for one in by_quantity["tsg sweep"]]
    rows = [
        (str(sentences), str(tokens), *(f"{by_quantity[name][place].value:.4g}" for name in QUANTITIES))
        for place, (sentences, tokens) in enumerate(sizes)
    ]
    yield columns(("sentences", "tokens", *QUANTITIES), rows, 0)
    yield "\nvalue = factor * tokens ** exponent (memory: linear), fitted without the largest size, compared with it\n"
    yield columns(("quantity", "exponent", "tokens", "predicted", "measured", "ratio"), list(check_rows(by_quantity)))
    laws = {name: Law.fit(own) for name, own in by_quantity.items()}
    yield "\npredicted costs\n"
    yield columns(("job", "core-hours", "MB"), list(cost_rows(Costs(laws), sizes[-1][1])))
    cores = integer(arguments, "--cores", 1)
    yield f"\ntrainings by the default schedule on {cores} cores\n"
    per_tree = sizes[-1][1] / sizes[-1][0]
    yield columns(("trees", "chains", "threads", "hours", "MB"), list(training_rows(laws, per_tree, cores)), 0)
    cluster = Cluster(
        machines=integer(arguments, "--machines", 1),
        cores=cores,
        chunk=integer(arguments, "--chunk", 1),
        losses=number(arguments, "--losses", 0, 1),
        seed=integer(arguments, "--seed", 0),
    )
    mean, spread = laws["sentence"].at(PENN_TOKENS), by_quantity["sentence"][-1].spread
    n_sentences = 10**9 // SENTENCE
    hours, lost = cluster.hours(n_sentences, mean, spread)
    ideal = n_sentences * mean / 3600 / (cluster.machines * cluster.cores)
    yield (
        f"\na billion words on {cluster.machines} machines of {cluster.cores} cores, in chunks of {cluster.chunk}"
        f" sentences, one worker in {1 / cluster.losses if cluster.losses else float('inf'):.0f} lost per hour:"
        f" {hours:.1f} hours ({ideal / hours:.1%} of the cores' time is useful), {lost} chunks parsed again\n"
    )


@command
def main(argv: list[str]) -> int:
    """Measure if --measure is given; then fit, check and predict."""
    arguments = parse_arguments(__doc__, argv)
    path = Path(arguments["--points"])
    try:
        sizes = sorted({int(size) for size in arguments["--sizes"].split(",")})
    except ValueError:
        raise UsageError(f"--sizes={arguments['--sizes']}: not whole numbers separated by commas") from None
    if arguments["--measure"]:
        write_points(measure(arguments, sizes), path)
    sys.stdout.writelines(report(read_points(path), arguments))
    return 0


if __name__ == "__main__":
    sys.exit(main(None))
