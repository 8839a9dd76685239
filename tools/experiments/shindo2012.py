"""Symbol-refined tree-substitution grammars: the tables and the figure of Shindo et al. (2012).

Usage:
  tools.experiments.shindo2012 [options]
  tools.experiments.shindo2012 -h | --help | --version

Run it as ``python -m tools.experiments.shindo2012``, or ``make exp-shindo2012``. After an interruption the same
command continues; finished runs are not repeated.

Options:
  --scale=NAME       smoke (a minute), small, or full [default: small].
  --treebank=NAME    nltk (its sample of the Penn Treebank), village (the bundled treebank), a folder with the sections
                     of the Penn Treebank, or a folder with train.mrg, dev.mrg and test.mrg [default: nltk].
  --only=NAMES       Run only these settings, separated by commas.
  --ablations        Run further settings that the paper's tables do not contain.
  --folder=PATH      Folder for the models and scores of finished runs; build/experiments/... by default.
  --page=PATH        Folder for the page of results and its figures; the same as --folder by default.
  --jobs=N           Number of runs in parallel [default: 1].
  --quiet            Do not report progress.
  -h --help          This text.
  --version          The version.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tsgkit.cli import command, parse_arguments
from tsgkit.errors import UsageError
from tsgkit.inference.entry import fragments_of
from tsgkit.models.model import Model
from tsgkit.treebank import UnknownWords

from .lab import Figures, Job, Lab, score_key
from .page import Page, require_matplotlib, spread

PARTS = ("dev", "test")
HEAD = ("grammar", "runs", "dev F1", "lowest", "highest", "test F1", "lowest", "highest", "rules", "CPU s")
# F1 on section 23 after training on section 2, and on sections 2 to 21, as published; (?) is from memory.
PUBLISHED = (
    ("CFG", "61.9 (?)", "63.6 (?)"),
    ("TSG", "77.1 (?)", "85.0 (?)"),
    ("SR-TSG, one level", "73.0 (?)", "86.4 (?)"),
    ("SR-TSG, two levels", "79.4 (?)", "89.7 (?)"),
    ("SR-TSG, three levels", "81.7 (?)", "91.1"),
    ("SR-TSG, product of 16", "-", "92.4"),
)
LARGEST_SIZE = 12


@dataclass(frozen=True)
class Scale:
    """Numbers of iterations, seeds and models."""

    splits: int
    split_iterations: int
    site_iterations: int
    tsg_iterations: int
    average: int
    seeds: int
    models: int


SCALES = {
    "smoke": Scale(1, 4, 4, 5, 2, 1, 2),
    "small": Scale(4, 200, 300, 1000, 30, 3, 8),
    "full": Scale(6, 200, 300, 5000, 30, 3, 16),
}


def settings_of(scale: Scale, ablations: bool) -> dict[str, dict[str, Any]]:
    """The settings of symbol-refined grammars by name; ``joint`` is the default of `tsgkit train`."""
    stage1: dict[str, Any] = {
        "splits": scale.splits,
        "split_iterations": scale.split_iterations,
        "average": scale.average,
        "joint_iterations": 0,
    }
    joint = stage1 | {"joint_iterations": scale.site_iterations}
    settings = {
        "joint": joint,
        "joint-levels=2": joint | {"levels": 2},
        "joint-levels=1": joint | {"levels": 1},
        "subcategories": stage1,
        "subcategories-levels=2": stage1 | {"levels": 2},
        "sites": stage1 | {"site_iterations": scale.site_iterations},
        "count<=5": joint,
    }
    if ablations:
        settings |= {
            "no-merge": joint | {"merge": 0.0},
            "joint-loss": joint | {"merge_loss": "joint"},
            "tree-level": joint | {"type_moves": 500},
            "frequency-base": joint | {"base": "frequency"},
        }
    return settings


DESCRIPTIONS = {
    "cfg": "CFG",
    "tsg": "TSG",
    "joint": "SR-TSG, three levels",
    "joint-levels=2": "SR-TSG, two levels",
    "joint-levels=1": "SR-TSG, one level",
    "subcategories": "subcategories only, three levels",
    "subcategories-levels=2": "subcategories only, two levels",
    "sites": "sites after subcategories",
    "count<=5": "SR-TSG, words of count <= 5 replaced",
    "no-merge": "SR-TSG without merging",
    "joint-loss": "SR-TSG, merged by the joint loss",
    "tree-level": "SR-TSG with the tree-level sampler",
    "frequency-base": "SR-TSG, base distribution P0 by frequency",
}


def jobs_of(scale: Scale, ablations: bool, only: set[str] | None) -> dict[str, list[Job]]:
    """All runs, by setting; the default setting has as many as the product needs."""
    tsg = {
        "iterations": scale.tsg_iterations,
        "average": scale.average,
        "average_every": 10 if scale.tsg_iterations > 100 else 1,
    }
    jobs = {
        "cfg": [Job("cfg", "cfg", parts=PARTS)],
        "tsg": [Job("tsg", "tsg", tsg, seed, parts=PARTS) for seed in range(1, scale.seeds + 1)],
    }
    for name, settings in settings_of(scale, ablations).items():
        n_seeds = max(scale.seeds, scale.models) if name == "joint" else scale.seeds
        unknown = UnknownWords("unicode", 5 if name == "count<=5" else 0)
        file_name = name.replace("<=", "")
        jobs[name] = [
            Job(file_name, "srtsg", settings, seed, unknown=unknown, parts=PARTS) for seed in range(1, n_seeds + 1)
        ]
    if only is not None:
        if only - set(jobs):
            raise UsageError(f"--only: no setting {', '.join(sorted(only - set(jobs)))}; there are {', '.join(jobs)}")
        jobs = {name: own for name, own in jobs.items() if name in only}
    return jobs


def row_of(name: str, figures: list[Figures]) -> tuple[str, ...]:
    """A line of the table: means over seeds; minimum and maximum of F1."""
    scores = {part: [one[score_key(part)]["f1"] for one in figures] for part in PARTS}
    seconds = [one["seconds"] for one in figures if one["seconds"] is not None]
    return (
        *(DESCRIPTIONS[name], str(len(figures)), *spread(scores["dev"]), *spread(scores["test"])),
        *(f"{np.mean([one['rules'] for one in figures]):.0f}", f"{np.mean(seconds):.0f}" if seconds else "-"),
    )


def best_on_dev(figures: list[Figures]) -> Figures:
    """The run that the paper's procedure would select: the best of ten on dev."""
    return max(figures, key=lambda one: one[score_key("dev")]["f1"])


def size_histogram(path: Path) -> Counter[int]:
    """Counts of fragments by size in the training trees, ignoring subcategories."""
    table = fragments_of(Model.load(path))
    sizes: Counter[int] = Counter()
    for size, _, count in table.size_histogram(range(len(table.counts))):
        sizes[min(size, LARGEST_SIZE)] += round(count)
    return sizes


def product_rows(lab: Lab, stems: list[str], sizes: Sequence[int]) -> list[tuple[str, ...]]:
    """Lines for products of the first models, of rule posteriors; for the smallest product also of trees."""
    kinds = [("trees", min(sizes)), *(("rules", size) for size in sizes)]
    rows = []
    for kind, size in kinds:
        figures = lab.product(f"product-{kind}-{size}", stems[:size], PARTS, kind)
        numbers = (f"{figures[part][key]:.{digits}f}" for part in PARTS for key, digits in (("f1", 2), ("rate", 1)))
        rows.append((str(size), kind, *numbers))
    return rows


def write_page(lab: Lab, results: dict[str, list[Figures]], jobs: dict[str, list[Job]], scale: Scale) -> Page:
    """All tables and figures of the runs."""
    page = Page("Symbol-refined grammars: Shindo et al. (2012)", "shindo2012")
    seconds = sum(one["seconds"] or 0.0 for own in results.values() for one in own)
    options = "" if lab.treebank == "nltk" else f" TREEBANK={lab.treebank}"
    page.made_with(f"make exp-shindo2012 SCALE={lab.scale}{options}", seconds)
    page.text(f"Treebank: {lab.parts().sizes()}. F1 is EVALB's (``collins.prm``, all lengths); max-rule parsing.")
    page.section("One grammar")
    page.text(
        f"{scale.splits} splits with {scale.split_iterations} sweeps each, then {scale.site_iterations} joint sweeps"
        f" over fragments and subcategories; {scale.tsg_iterations} iterations of the TSG. Runs with seeds from 1 on;"
        " mean, minimum and maximum F1. Levels are levels of back-off."
    )
    page.table(HEAD, [row_of(name, own) for name, own in results.items()])
    if "joint" in results:
        best = best_on_dev(results["joint"])
        page.text(
            f"The paper selects the best of ten runs on dev; of the {len(results['joint'])} runs here, the best on dev"
            f" has {best[score_key('dev')]['f1']:.2f} on dev and {best[score_key('test')]['f1']:.2f} on test."
        )
        stems = [job.stem for job in jobs["joint"]]
        sizes = [size for size in (2, 4, 8, 16) if size <= len(stems)]
        if sizes:
            page.section("Products")
            page.text(
                "Products of the first runs above, either of the rule posteriors or of the probabilities of the trees"
                " in all 100-best lists. Rates are in sentences per second of processor time."
            )
            page.table(
                ("models", "product of", "dev F1", "dev rate", "test F1", "test rate"),
                product_rows(lab, stems, sizes),
                2,
            )
    if "joint" in results and "tsg" in results:
        histograms = {DESCRIPTIONS[name]: size_histogram(lab.model(jobs[name][0].stem)) for name in ("tsg", "joint")}
        page.section("Fragment sizes")
        page.text(
            "Number of fragment occurrences in the training trees by size (in rules); seed 1; the last line counts size"
            f" {LARGEST_SIZE} and all larger sizes."
        )
        largest = max(max(sizes) for sizes in histograms.values())
        page.table(
            ("size", *histograms),
            [(str(size), *(str(own[size]) for own in histograms.values())) for size in range(1, largest + 1)],
        )
        page.figure("sizes", "Uses of fragments by size", lambda axes: draw_sizes(axes, histograms, largest))
    page.section("Results of the paper")
    page.text(
        "F1 on section 23 of the Penn Treebank after training on section 2, and on sections 2 to 21. Numbers with (?)"
        " are quoted from memory."
    )
    page.table(("grammar", "section 2", "sections 2-21"), PUBLISHED)
    page.text(
        "Differences: the treebank; the paper reports the best of ten runs on the development set, we report the mean;"
        " the paper replaces words of count <= 5 by 50 classes, we keep all words and let them back off to classes (the"
        " line ``words of count <= 5 replaced`` follows the paper); the paper trains subcategories first and then"
        " samples substitution sites one by one, ignoring the subcategories inside fragments (our line ``sites after"
        " subcategories`` samples whole trees), while our default samples both jointly; the paper chooses the stop"
        " probabilities on the development set, we sample them; the paper's product multiplies the probabilities of"
        " trees in 100-best lists, ours multiplies rule posteriors."
    )
    return page


def draw_sizes(axes: Any, histograms: dict[str, Counter[int]], largest: int) -> None:
    sizes = np.arange(1, largest + 1)
    width = 0.8 / len(histograms)
    for place, (name, own) in enumerate(histograms.items()):
        axes.bar(sizes + (place - 0.5) * width, [own[size] for size in sizes.tolist()], width, label=name)
    axes.set_yscale("log")
    axes.set_xlabel("rules in a fragment")
    axes.set_ylabel("uses in the training trees")
    axes.set_xticks(sizes)
    axes.legend()


@command
def main(argv: list[str]) -> int:
    """Train and score the runs that are missing; write the page."""
    arguments = parse_arguments(__doc__, argv)
    require_matplotlib()
    lab = Lab.of(arguments, "shindo2012")
    scale = SCALES[lab.scale]
    only = set(arguments["--only"].split(",")) if arguments["--only"] is not None else None
    jobs = jobs_of(scale, arguments["--ablations"], only)
    figures = lab.run(job for own in jobs.values() for job in own)
    results = {name: [figures[job.stem] for job in own] for name, own in jobs.items()}
    page = write_page(lab, results, jobs, scale)
    print(page.write(Path(arguments["--page"]) if arguments["--page"] is not None else lab.folder), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(None))
