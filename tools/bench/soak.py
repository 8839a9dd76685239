"""Resident memory over many parses and many iterations of every sampler; it must not grow.

Usage:
  tools.bench.soak [options] [JOB...]
  tools.bench.soak -h | --help | --version

Jobs: parse, and the samplers tsg, local, insertion, srtsg and sites; all by default. Each runs in a separate process
and prints a curve. In the second half of a job, memory may grow by no more than the tolerance. The samplers are
checked, too: ten times per run all customers of all trees are unseated, which must leave every restaurant empty, and
seated again.

Options:
  --parses=N        sentences to parse [default: 100000]
  --iterations=N    iterations of every sampler [default: 1000]
  --treebank=NAME   training trees [default: village:train]
  --tolerance=MB    allowed growth over the second half [default: 2]
  -h, --help        this text
  --version         the version
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tsgkit._cli import command, integer, number, parse_arguments
from tsgkit._exit_codes import EXIT_FAILED
from tsgkit.errors import JobError, UsageError
from tsgkit.inference._insertion import InsertionSettings
from tsgkit.inference._settings import Settings
from tsgkit.inference._srtsg import SrSettings
from tsgkit.inference._srtsg_phases import SiteSampling
from tsgkit.inference._training import Training
from tsgkit.inference._tsg import TsgSampling, TsgSettings
from tsgkit.models._cfg import cfg_model
from tsgkit.parsing import Parser
from tsgkit.parsing._objectives import OBJECTIVES, PRODUCTS
from tsgkit.parsing._product import ProductParser
from tsgkit.treebank import Binarization, FlatCorpus, UnknownWords, prepare, read_trees

from . import from_checkout

JOBS = ("parse", "tsg", "local", "insertion", "srtsg", "sites")
SR_KINDS = ("rule", "base", "class", "label_class", "word")
N_POINTS = 20
N_CHECKS = 10
LONGEST_SENTENCE = 12
WORKER = "TSGKIT_SOAK_JOB"


def resident_megabytes() -> float:
    """The resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def corpus_of(job: str, treebank: str) -> FlatCorpus:
    """The training trees with the preparation for a job."""
    method = "centre-head" if job == "insertion" else "right"
    unknown = UnknownWords("unicode", threshold=0 if job in ("srtsg", "sites") else 1)
    return prepare(read_trees(treebank), binarization=Binarization(method, 0), unknown=unknown)


def training_of(job: str, corpus: FlatCorpus, iterations: int) -> Training:
    """The sampler of a job with empty restaurants.

    The model is its last sample alone: the mean of several grows with every one of them, as it should.
    """
    settings: Settings
    if job in ("srtsg", "sites"):
        # Two splits; then one phase for sites and one for sites and subcategories jointly.
        split = max(1, iterations // (20 if job == "sites" else 2))
        rest = max(0, iterations - 2 * split) // 2 if job == "sites" else 0
        settings = SrSettings(splits=2, split_iterations=split, site_iterations=rest, joint_iterations=rest, average=1)
    else:
        sampler = "local" if job == "local" else "blocked"
        make = InsertionSettings if job == "insertion" else TsgSettings
        settings = make(iterations=iterations, sampler=sampler, type_moves=50, average=1)
    return Training(corpus, settings, seed=1)


def require_empty(training: Training) -> None:
    """Unseat all trees: every restaurant must be empty then."""
    active: Any = training.active
    counts: list[np.ndarray]
    if isinstance(active, TsgSampling):
        active.sampler.empty()
        counts = [active.sampler.restaurants()]
    elif isinstance(active, SiteSampling):
        active.sites.sampler.empty()
        counts = [active.sites.sampler.restaurants(kind)[:2] for kind in (*SR_KINDS, "dish")]
    else:
        active.sampler.empty()
        counts = [active.sampler.restaurants(kind)[:2] for kind in SR_KINDS]
    if any(np.any(each) for each in counts):
        raise JobError("customers are left after all trees were unseated")


def sampling(job: str, treebank: str, iterations: int) -> Iterator[None]:
    """One step for every iteration of a sampler."""
    corpus = corpus_of(job, treebank)
    training = training_of(job, corpus, iterations)
    training.start()
    for iteration in range(1, iterations + 1):
        training.iterate(iteration)
        if iteration % max(1, iterations // N_CHECKS) == 0:
            state = training.state()
            require_empty(training)
            training = training_of(job, corpus, iterations)
            training.restore(state, iteration)
        yield


def parsing(treebank: str, n_sentences: int) -> Iterator[None]:
    """One step for every sentence parsed; with every objective, every product and with scores, in turn."""
    corpus = corpus_of("parse", treebank)
    model = cfg_model(corpus)
    parsers = [Parser(model, objective=name, n_samples=20) for name in OBJECTIVES.names]
    parsers += [ProductParser([model, model], product=name) for name in PRODUCTS.names]
    sentences = [sentence for sentence in corpus.sentences() if len(sentence) <= LONGEST_SENTENCE]
    for place in range(n_sentences):
        parse = parsers[place % len(parsers)].analyse(sentences[place % len(sentences)], k=1 + place % 3)
        parse.log_probabilities, parse.log_total  # noqa: B018 - computed on first access
        yield


def measured(steps: Iterator[None], n_steps: int, show: Callable[[str], None]) -> list[float]:
    """Resident memory at `N_POINTS` points of a job."""
    curve: list[float] = []
    started = time.perf_counter()
    for number_done, _ in enumerate(steps, start=1):
        if number_done * N_POINTS // n_steps > len(curve):
            curve.append(resident_megabytes())
            show(f"{number_done:>9}{curve[-1]:>10.2f} MB{time.perf_counter() - started:>9.1f} s")
    return curve


def growth(curve: list[float]) -> float:
    """The maximum of the second half minus that of the first: a peak in both is no growth."""
    half = len(curve) // 2
    return max(curve[half:]) - max(curve[:half])


def run_job(job: str, arguments: dict[str, Any]) -> float:
    """In this process: the growth of a job."""
    treebank = arguments["--treebank"]
    n_steps = integer(arguments, "--parses" if job == "parse" else "--iterations", N_POINTS)
    steps = parsing(treebank, n_steps) if job == "parse" else sampling(job, treebank, n_steps)
    return growth(measured(steps, n_steps, lambda line: print(line, flush=True)))


@command
def main(argv: list[str]) -> int:
    arguments = parse_arguments(__doc__, argv)
    jobs = arguments["JOB"] or list(JOBS)
    unknown = sorted(set(jobs) - set(JOBS))
    if unknown:
        raise UsageError(f"no job {unknown[0]!r}; there are {', '.join(JOBS)}")
    tolerance = number(arguments, "--tolerance", 0)
    if os.environ.get(WORKER):
        grown = run_job(jobs[0], arguments)
        print(f"{jobs[0]}: grows by {grown:+.2f} MB over its second half")
        return EXIT_FAILED if grown > tolerance else 0
    codes = []
    for job in jobs:
        print(f"{job}:", flush=True)
        options = [f"{name}={arguments[name]}" for name in ("--parses", "--iterations", "--treebank", "--tolerance")]
        worker = [sys.executable, "-m", "tools.bench.soak", *options, job]
        codes.append(subprocess.run(worker, env={**from_checkout(), WORKER: "1"}, check=False).returncode)
    return EXIT_FAILED if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
