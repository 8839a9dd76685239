"""Train tree-substitution grammars by both samplers and from both starts, score them, and draw their log joints.

Usage:
  tsgkit.tools.bench.tsg [options]
  tsgkit.tools.bench.tsg -h | --help | --version

Run it as ``python -m tsgkit.tools.bench.tsg``. It trains on one treebank and parses another: of the WSJ sample if
the environment variable TSGKIT_TREEBANKS names the folder it is in, else of the bundled one. What was interrupted
goes on with the same command; what is done is not done again.

Options:
  --train=TREEBANK   What to train on, as for `tsgkit prepare`.
  --dev=TREEBANK     What to parse.
  --folder=PATH      Where models and figures of finished runs are kept [default: build/exp-tsg].
  --iterations=N     Of all runs but the long one [default: 300].
  --long=N           Iterations of the long run; 0: none [default: 5000].
  --seeds=N          Seeds for each sampler from the minimal start [default: 3].
  --figure=FILE      Draw the log joint by iteration (.svg, .png or .pdf); needs matplotlib, the extra `plot`.
  --quiet            No progress.
  -h --help          This text.
  --version          The version.
"""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tsgkit.cli import EXIT_FAILED, command, integer, parse_arguments
from tsgkit.errors import UsageError
from tsgkit.evaluation import evaluate
from tsgkit.evaluation.report import columns
from tsgkit.inference.checkpoint import checkpoint_path
from tsgkit.inference.loop import Run
from tsgkit.inference.tsg import TsgSettings, TsgTraining
from tsgkit.models.model import Model
from tsgkit.parsing import Parser
from tsgkit.treebank import Binarization, FlatCorpus, UnknownWords, prepare

from .markovisation import treebank_of
from .parse import Treebank

HEAD = ("sampler", "start", "seed", "iterations", "F1", "strict F1", "log joint", "accepted", "fragments", "CPU s")
N_LEFT = 2
MARKED = (1, 3, 10, 30, 100, 300, 1000, 3000)


@dataclass(frozen=True)
class Experiment:
    """One run: a row of the table, a curve of the figure."""

    sampler: str
    init: str
    seed: int
    iterations: int

    @property
    def name(self) -> str:
        return f"{self.sampler}-{self.init}-{self.iterations}-{self.seed}"


def experiments(iterations: int, n_seeds: int, long: int) -> Iterator[Experiment]:
    """All runs, the short ones first."""
    for seed in range(1, n_seeds + 1):
        for init in ("minimal", "maximal") if seed == 1 else ("minimal",):
            for sampler in ("blocked", "local"):
                yield Experiment(sampler, init, seed, iterations)
    if long:
        yield Experiment("blocked", "minimal", 1, long)


def result_of(
    experiment: Experiment, corpus: FlatCorpus, treebank: Treebank, folder: Path, quiet: bool
) -> dict[str, Any] | None:
    """The figures of a run, kept from before or made now; None if it was interrupted."""
    kept = folder / f"{experiment.name}.json"
    if kept.exists():
        return json.loads(kept.read_text(encoding="utf-8"))
    settings = TsgSettings(sampler=experiment.sampler, init=experiment.init, average=20, average_every=10)
    training = TsgTraining(corpus, settings, iterations=experiment.iterations, seed=experiment.seed)
    output = folder / f"{experiment.name}.model"
    is_whole = not checkpoint_path(output).exists()
    started = time.process_time()
    run = Run(training, output, experiment.iterations, resume=True, quiet=quiet)
    model = run.run()
    seconds = time.process_time() - started
    if run.interrupted:
        return None
    result = {
        "seconds": seconds if is_whole else None,
        **score_of(model, treebank),
        **{name: run.history[name] for name in ("log_joint", "acceptance", "fragments")},
    }
    kept.write_text(json.dumps(result), encoding="utf-8")
    checkpoint_path(output).unlink()
    return result


def score_of(model: Model, treebank: Treebank) -> dict[str, float]:
    parses = Parser(model).parse_batch([(sentence, None) for sentence in treebank.sentences])
    score = evaluate(treebank.gold, [parse.tree for parse in parses])
    return {"f1": score.f1, "strict": score.strict.f1}


def row_of(experiment: Experiment, result: dict[str, Any]) -> tuple[str, ...]:
    """A line of the table; shares and numbers are means over the last tenth of the iterations."""
    last = -max(experiment.iterations // 10, 1)
    blocked = experiment.sampler == "blocked"
    return (
        *(experiment.sampler, experiment.init, str(experiment.seed), str(experiment.iterations)),
        *(f"{result['f1']:.2f}", f"{result['strict']:.2f}", f"{np.mean(result['log_joint'][last:]):.0f}"),
        f"{np.mean(result['acceptance'][last:]):.1%}" if blocked else "-",
        f"{np.mean(result['fragments'][last:]):.0f}",
        "-" if result["seconds"] is None else f"{result['seconds']:.0f}",
    )


def curves(results: dict[Experiment, dict[str, Any]], iterations: int) -> dict[str, list[float]]:
    """The log joints of the first seed, by sampler and start."""
    return {
        f"{run.sampler}, {run.init}": result["log_joint"]
        for run, result in results.items()
        if run.seed == 1 and run.iterations == iterations
    }


def figure_class() -> Any:
    """Matplotlib's figure, if it is there."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an optional extra
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise UsageError("--figure needs matplotlib: pip install 'tsgkit[plot]'") from None
    # The same figure gives the same file.
    mpl.rcParams["svg.hashsalt"] = "tsgkit"
    return Figure


def draw(series: dict[str, list[float]], path: str) -> None:
    """Log joint over iterations, both starts of both samplers."""
    figure = figure_class()(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    for name, values in series.items():
        sampler, start = name.split(", ")
        color = {"blocked": "tab:blue", "local": "tab:red"}[sampler]
        style = {"minimal": "-", "maximal": "--"}[start]
        axes.plot(range(1, len(values) + 1), np.array(values) / 1000, style, color=color, linewidth=1.2, label=name)
    axes.set_xlabel("iteration")
    axes.set_ylabel("log joint / 1000")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


@command
def main(argv: list[str]) -> int:
    """Train what is missing; print the table and draw the figure of all."""
    arguments = parse_arguments(__doc__, argv)
    iterations, long = integer(arguments, "--iterations", 1), integer(arguments, "--long", 0)
    if arguments["--figure"]:
        figure_class()  # before hours of training
    treebank = treebank_of(arguments["--train"], arguments["--dev"])
    unknown = UnknownWords("signature", 1)
    corpus = prepare(treebank.train, binarization=Binarization("right", 0), unknown=unknown)
    folder = Path(arguments["--folder"])
    folder.mkdir(parents=True, exist_ok=True)
    results: dict[Experiment, dict[str, Any]] = {}
    for experiment in experiments(iterations, integer(arguments, "--seeds", 1), long):
        result = result_of(experiment, corpus, treebank, folder, arguments["--quiet"])
        if result is None:
            print("tsgkit: interrupted; the same command goes on from there", file=sys.stderr)
            return EXIT_FAILED
        results[experiment] = result
    print(f"trained on {len(treebank.train)} trees ({treebank.name}), {len(treebank.gold)} sentences parsed")
    print(columns(HEAD, [row_of(*item) for item in results.items()], N_LEFT), end="")
    series = curves(results, iterations)
    marked = [number for number in MARKED if number <= iterations]
    print("\nlog joint by iteration, seed 1")
    head = ("iteration", *series)
    lines = [(str(number), *(f"{values[number - 1]:.0f}" for values in series.values())) for number in marked]
    print(columns(head, lines, 1), end="")
    if arguments["--figure"]:
        draw(series, arguments["--figure"])
    return 0


if __name__ == "__main__":
    sys.exit(main(None))
