"""The table and the plot at the top of the results: every model, with its defaults, on growing numbers of trees.

Usage:
  tools.experiments.headline [options]
  tools.experiments.headline -h | --help | --version

Run it as ``python -m tools.experiments.headline``, or ``make exp-headline``. All models are trained with the settings
of ``tsgkit train`` without options, and scored on the test part. If BERKELEY_JAR names the Berkeley parser, it is
trained on the same trees. After an interruption the same command continues; finished runs are not repeated.

Options:
  --scale=NAME       smoke (a minute), small, or full [default: small].
  --treebank=NAME    nltk (its sample of the Penn Treebank), village (the bundled treebank), a folder with the sections
                     of the Penn Treebank, or a folder with train.mrg, dev.mrg and test.mrg [default: nltk].
  --folder=PATH      Folder for the models and scores of finished runs; build/experiments/... by default.
  --page=PATH        Folder for the tables and the plot; the same as --folder by default.
  --seeds=N          Number of runs of each sampled model, and of the Berkeley parser [default: 3].
  --size-seeds=N     Number of runs on each sample of the trees; the same as --seeds by default.
  --jobs=N           Number of runs in parallel [default: 1].
  --quiet            Do not report progress.
  -h --help          This text.
  --version          The version.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from nltk.tree import Tree

from tsgkit._cli import command, integer, parse_arguments
from tsgkit.inference._entry import MODELS
from tsgkit.parsing import ParserSettings

from .berkeley import berkeley_jar, berkeley_run
from .lab import Figures, Job, Lab, chosen_trees, score_key
from .page import Table, record_of, require_matplotlib, save_figure, save_record, spread

SMOKE: dict[str, Figures] = {
    "cfg": {},
    "tsg": {"iterations": 3, "average": 1},
    "srtsg": {"splits": 1, "split_iterations": 3, "joint_iterations": 2, "average": 1},
}
NAMES = {"cfg": "PCFG", "tsg": "TSG", "srtsg": "SR-TSG"}
PRODUCT, BERKELEY = "product of {} SR-TSGs", "Berkeley parser 1.7"
SIZES = (250, 500, 1000)
PART = "test"
COLOURS = {"PCFG": "#6b7280", "TSG": "#c2410c", "SR-TSG": "#1d4ed8", BERKELEY: "#15803d"}


def job_of(kind: str, size: int | None, seed: int, scale: str) -> Job:
    """The training of a model with the defaults of the command."""
    entry = MODELS[kind]
    settings = SMOKE[kind] if scale == "smoke" else {}
    name = f"{kind}-{size or 'all'}"
    return Job(
        name,
        kind,
        settings,
        seed,
        entry.binarization,
        entry.unknown,
        parts=(PART,),
        n_trees=size,
        span_power=ParserSettings.span_power,
    )


class Results:
    """The runs of every model at every size.

    Parameters
    ----------
    lab : Lab
    n_seeds : int
        Number of runs of each sampled model on all trees.
    n_size_seeds : int
        Number of runs on each sample of the trees.
    """

    def __init__(self, lab: Lab, n_seeds: int, n_size_seeds: int) -> None:
        self.lab = lab
        self.n_seeds = n_seeds
        self.n_size_seeds = n_size_seeds
        self.sizes = [size for size in SIZES if size < len(lab.parts().train)]
        self.runs: dict[str, Figures] = {}
        self.scores: dict[tuple[str, int | None], list[Figures]] = {}

    @property
    def columns(self) -> list[int | None]:
        """The sizes; ``None`` is the whole treebank."""
        return [*self.sizes, None]

    def seeds_at(self, size: int | None) -> range:
        """The seeds of the runs on a number of trees."""
        return range(1, 1 + (self.n_seeds if size is None else self.n_size_seeds))

    def train(self) -> None:
        """Train and score what is missing."""
        jobs = {
            (NAMES[kind], size): [
                job_of(kind, size, seed, self.lab.scale)
                for seed in (self.seeds_at(size) if kind != "cfg" else range(1, 2))
            ]
            for size in self.columns
            for kind in NAMES
        }
        self.runs |= self.lab.run(job for own in jobs.values() for job in own)
        for key, own in jobs.items():
            self.scores[key] = [self.runs[job.stem][score_key(PART)] for job in own]
        for size in [size for size in self.columns if len(self.seeds_at(size)) > 1]:
            stems = [job.stem for job in jobs[NAMES["srtsg"], size]]
            name = f"product-{size or 'all'}"
            self.runs[name] = self.lab.product(name, stems, (PART,), span_power=ParserSettings.span_power)
            self.scores[PRODUCT.format(len(stems)), size] = [self.runs[name][PART]]

    def train_berkeley(self, jar: str) -> None:
        """The same for the Berkeley parser."""
        parts = self.lab.parts()
        for size in self.columns:
            trees: list[Tree] = chosen_trees(parts.train, size)
            found = []
            for seed in self.seeds_at(size):
                stem = f"berkeley-{size or 'all'}-{seed}"
                self.runs[stem] = berkeley_run(jar, self.lab.path(stem), trees, parts, seed=seed)
                found.append(self.runs[stem][PART])
            self.scores[BERKELEY, size] = found

    # ---- as tables and a plot ------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(name for name, _ in self.scores))

    def seconds(self, name: str) -> str:
        """The mean processor time of the trainings on all trees."""
        kinds = {NAMES[kind]: kind for kind in NAMES} | {BERKELEY: "berkeley"}
        if name not in kinds:
            return "-"
        own = [run["seconds"] for stem, run in self.runs.items() if stem.startswith(f"{kinds[name]}-all-")]
        known = [seconds for seconds in own if seconds is not None]
        return f"{np.mean(known):.0f}" if known else "-"

    def tables(self) -> list[Table]:
        head = ["grammar", "runs", "F1", "lowest", "highest", "tags right, %", "training, CPU s"]
        rows = []
        for name in self.names:
            own = self.scores[name, None]
            f1 = spread([each["f1"] for each in own])
            tags = f"{np.mean([each['tags'] for each in own]):.2f}"
            rows.append([name, str(len(own)), *f1, tags, self.seconds(name)])
        sizes = [f"{size or len(self.lab.parts().train):,} trees" for size in self.columns]
        means = [[name, *(self.shown(name, size) for size in self.columns)] for name in self.names]
        return [Table("models", head, rows, 1), Table("sizes", ["grammar", *sizes], means, 1)]

    def mean(self, name: str, size: int | None) -> float | None:
        """F1, the mean of the runs; None if there are none."""
        found = self.scores.get((name, size))
        return None if found is None else float(np.mean([each["f1"] for each in found]))

    def shown(self, name: str, size: int | None) -> str:
        mean = self.mean(name, size)
        return "-" if mean is None else f"{mean:.2f}"

    def draw(self, axes: Any) -> None:
        """F1 by the number of training trees: means, and bars from the lowest to the highest of several runs."""
        numbers = [size or len(self.lab.parts().train) for size in self.columns]
        for name in self.names:
            style = {"color": COLOURS.get(name, COLOURS["SR-TSG"]), "marker": "o"}
            if name not in COLOURS:
                style["linestyle"] = "--"
            means = [np.nan if (mean := self.mean(name, size)) is None else mean for size in self.columns]
            axes.plot(numbers, means, label=name, **style)
            for number, size in zip(numbers, self.columns, strict=True):
                own = [each["f1"] for each in self.scores.get((name, size), [])]
                if len(own) > 1:
                    axes.vlines(number, min(own), max(own), color=style["color"], linewidth=3, alpha=0.5)
        axes.set_xscale("log")
        axes.set_xticks(numbers, [f"{number:,}" for number in numbers])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("training trees")
        axes.set_ylabel("F1 on test")
        axes.grid(alpha=0.3)
        axes.legend()


@command
def main(argv: list[str]) -> int:
    """Train and score the runs that are missing; write the tables and the plot."""
    arguments = parse_arguments(__doc__, argv)
    require_matplotlib()
    jar = berkeley_jar()
    lab = Lab.of(arguments, "headline")
    n_seeds = integer(arguments, "--seeds", 1)
    n_size_seeds = n_seeds if arguments["--size-seeds"] is None else integer(arguments, "--size-seeds", 1)
    results = Results(lab, n_seeds, n_size_seeds)
    results.train()
    if jar is not None:
        results.train_berkeley(jar)
    folder = Path(arguments["--page"]) if arguments["--page"] is not None else lab.folder
    folder.mkdir(parents=True, exist_ok=True)
    options = "" if lab.treebank == "nltk" else f" TREEBANK={lab.treebank}"
    options += f" SEEDS={n_seeds}" + (f" SIZE_SEEDS={n_size_seeds}" if n_size_seeds != n_seeds else "")
    tables = results.tables()
    save_record(
        folder / "headline.json", record_of(f"make exp-headline SCALE={lab.scale}{options}", results.runs), tables
    )
    save_figure(results.draw, folder / "headline-sizes.svg")
    print("\n".join(table.text() for table in tables), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(None))
