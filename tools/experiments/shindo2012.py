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

from tsgkit._cli import command, parse_arguments
from tsgkit.errors import UsageError
from tsgkit.inference._entry import fragments_of
from tsgkit.inference._recipes import RECIPES
from tsgkit.inference._srtsg import SrSettings
from tsgkit.models._model import Model
from tsgkit.models._subcategories import unrefined_fragments
from tsgkit.treebank import UnknownWords

from .lab import Figures, Job, Lab, recipe_job, score_key
from .page import Page, require_matplotlib, spread

PARTS = ("dev", "test")
HEAD = ("grammar", "runs", "dev F1", "lowest", "highest", "test F1", "lowest", "highest", "rules", "CPU s", "paper")
# F1 on section 23 after training on section 2, and on sections 2 to 21, as published; (?) is from memory.
PUBLISHED = (
    ("CFG", "61.9 (?)", "63.6 (?)"),
    ("TSG", "77.1 (?)", "85.0 (?)"),
    ("SR-TSG, one level", "73.0 (?)", "86.4 (?)"),
    ("SR-TSG, two levels", "79.4 (?)", "89.7 (?)"),
    ("SR-TSG, three levels", "81.7 (?)", "91.1"),
    ("SR-TSG, product of 16", "-", "92.4"),
)
# Which of these lines a setting reproduces.
REPRODUCED = {"cfg": 0, "tsg": 1, "recipe-levels=1": 2, "recipe-levels=2": 3, "recipe": 4}
LARGEST_SIZE = 12
RECIPE = "shindo2012"
NAMES = {"tsg": "TSG", "joint": "SR-TSG", "recipe": "recipe"}  # in the table of sizes


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
    recipe_splits: int
    recipe_runs: int


SCALES = {
    "smoke": Scale(1, 4, 4, 5, 2, 1, 2, 1, 1),
    "small": Scale(4, 200, 300, 1000, 30, 3, 8, 3, 3),
    "full": Scale(6, 1000, 2000, 5000, 30, 3, 16, 6, 10),
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
    }
    if ablations:
        settings |= {
            "no-merge": joint | {"merge": 0.0},
            "joint-loss": joint | {"merge_loss": "joint"},
            "tree-level": joint | {"type_moves": 500},
            "frequency-base": joint | {"base": "frequency"},
            "insertion": stage1 | {"insertion_iterations": scale.site_iterations},
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
    "recipe": "recipe: P_sr-tsg, P_sr-cfg, P_ru-cfg",
    "recipe-levels=2": "recipe: P_sr-tsg, P_sr-cfg",
    "recipe-levels=1": "recipe: P_sr-tsg",
    "no-merge": "SR-TSG without merging",
    "joint-loss": "SR-TSG, merged by the joint loss",
    "tree-level": "SR-TSG with the tree-level sampler",
    "frequency-base": "SR-TSG, base distribution P0 by frequency",
    "insertion": "SR-TSG with insertion",
}


def recipe_settings(scale: Scale, levels: int) -> dict[str, Any]:
    """What is not as in the recipe: the lengths of the phases, and for the ablations the levels."""
    lengths = {"split_iterations": scale.split_iterations, "site_iterations": scale.site_iterations}
    return {"splits": scale.recipe_splits, **lengths, "levels": None if levels == 3 else levels}


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
        unknown = UnknownWords("unicode", 0)
        jobs[name] = [
            Job(name, "srtsg", settings, seed, unknown=unknown, parts=PARTS) for seed in range(1, n_seeds + 1)
        ]
    for levels in (3, 2, 1):
        name = "recipe" if levels == 3 else f"recipe-levels={levels}"
        n_seeds = scale.recipe_runs if levels == 3 else scale.seeds
        jobs[name] = [
            recipe_job(name, RECIPE, seed, recipe_settings(scale, levels), parts=PARTS)
            for seed in range(1, n_seeds + 1)
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
        PUBLISHED[REPRODUCED[name]][1] if name in REPRODUCED else "-",
    )


def best_on_dev(figures: list[Figures]) -> Figures:
    """The run that the paper's procedure selects."""
    return max(figures, key=lambda one: one[score_key("dev")]["f1"])


def size_histograms(path: Path) -> tuple[Counter[int], Counter[int]]:
    """Numbers of fragment types by size, subcategories ignored, and of their occurrences in the training trees."""
    model = Model.load(path)
    table = unrefined_fragments(model) if model.kind == SrSettings.kind else fragments_of(model)
    types: Counter[int] = Counter()
    uses: Counter[int] = Counter()
    for size, n_types, count in table.size_histogram(table.select()):
        types[min(size, LARGEST_SIZE)] += n_types
        uses[min(size, LARGEST_SIZE)] += round(count)
    return types, uses


def product_rows(lab: Lab, stems: list[str], sizes: Sequence[int]) -> list[tuple[str, ...]]:
    """Lines for products of the first models: of the probabilities of trees (the paper's), and of rule posteriors."""
    kinds = [(kind, size) for size in sizes for kind in ("trees", "rules")]
    rows = []
    for kind, size in kinds:
        figures = lab.product(f"product-{kind}-{size}", stems[:size], PARTS, kind)
        numbers = (f"{figures[part][key]:.{digits}f}" for part in PARTS for key, digits in (("f1", 2), ("rate", 1)))
        rows.append((str(size), kind, *numbers))
    return rows


def write_page(lab: Lab, results: dict[str, list[Figures]], jobs: dict[str, list[Job]], scale: Scale) -> Page:
    """All tables and figures of the runs."""
    page = Page("Symbol-refined grammars: Shindo et al. (2012)", "shindo2012")
    options = "" if lab.treebank == "nltk" else f" TREEBANK={lab.treebank}"
    runs = {job.stem: one for name, own in jobs.items() for job, one in zip(own, results[name], strict=True)}
    page.made_with(f"make exp-shindo2012 SCALE={lab.scale}{options}", runs)
    page.text(f"Treebank: {lab.parts().sizes()}. F1 is EVALB's (``collins.prm``, all lengths); max-rule parsing.")
    page.section("One grammar")
    page.text(
        f"{scale.splits} splits with {scale.split_iterations} sweeps each, then {scale.site_iterations} joint sweeps"
        f" over fragments and subcategories; {scale.tsg_iterations} iterations of the TSG. Runs with seeds from 1 on;"
        " mean, minimum and maximum F1. Levels are levels of back-off; words back off to classes at any number of them."
        " The last column is the paper's F1 on section 23 after training on section 2."
    )
    page.text(
        f"The last lines are the recipe of the paper (``--recipe={RECIPE}``) with {scale.recipe_splits} splits of"
        f" {scale.split_iterations} sweeps and {scale.site_iterations} sweeps of local Gibbs sampling over sites: words"
        " of count <= 5 replaced by English signatures, no joint sampling, no restaurants of classes, and the paper's"
        " three choices of back-off."
    )
    page.table("f1", HEAD, [row_of(name, own) for name, own in results.items()])
    for name in ("recipe", "joint"):
        if name in results:
            best = best_on_dev(results[name])
            page.text(
                f"The paper selects the best of ten runs on dev; of the {len(results[name])} runs of ``{name}`` here,"
                f" the best on dev has {best[score_key('dev')]['f1']:.2f} on dev and"
                f" {best[score_key('test')]['f1']:.2f} on test."
            )
    if "joint" in results:
        stems = [job.stem for job in jobs["joint"]]
        sizes = [size for size in (2, 4, 8, 16) if size <= len(stems)]
        if sizes:
            page.section("Products")
            page.text(
                "Products of the first runs above, either of the rule posteriors or of the probabilities of the trees"
                " in all 100-best lists, as in the paper. Rates are in sentences per second of processor time."
            )
            page.table(
                "products",
                ("models", "product of", "dev F1", "dev rate", "test F1", "test rate"),
                product_rows(lab, stems, sizes),
                2,
            )
    compared = [name for name in ("tsg", "joint", "recipe") if name in results]
    if len(compared) > 1:
        add_sizes(page, {name: size_histograms(lab.model(jobs[name][0].stem)) for name in compared})
    page.section("Results of the paper")
    page.text(
        "F1 on section 23 of the Penn Treebank after training on section 2, and on sections 2 to 21. Numbers with (?)"
        " are quoted from memory."
    )
    page.table("published", ("grammar", "section 2", "sections 2-21"), PUBLISHED)
    page.listed(comparison(results))
    page.text(
        "Differences: the treebank; the number of iterations; the table has means over runs where the paper has the"
        " best of ten on the development set. The other lines than the recipe's keep all words and let them back off to"
        " classes, merge after 60 % of the sweeps of a split, sample sites and subcategories jointly, and have the mean"
        " of samples for a grammar. In the recipe:"
    )
    page.listed(RECIPES[RECIPE].deviations)
    return page


def comparison(results: dict[str, list[Figures]]) -> list[str]:
    """What differs from the paper, in figures: one sentence each."""
    f1 = {name: float(np.mean([one[score_key("test")]["f1"] for one in own])) for name, own in results.items()}
    steps = (
        ("cfg", "tsg", "The TSG has"),
        ("recipe-levels=1", "recipe-levels=2", "Of the recipe, P_sr-cfg adds"),
        ("recipe-levels=2", "recipe", "P_ru-cfg adds"),
        ("tsg", "recipe", "The recipe has"),
    )
    against = {"The TSG has": " on the CFG", "The recipe has": " on the TSG"}
    return [
        f"{text} {f1[after] - f1[before]:+.1f} points of F1 on test{against.get(text, '')}; in the paper"
        f" {published_f1(after) - published_f1(before):+.1f} (?)."
        for before, after, text in steps
        if before in f1 and after in f1
    ]


def published_f1(name: str) -> float:
    """The paper's F1 on section 23 after training on section 2."""
    return float(PUBLISHED[REPRODUCED[name]][1].split()[0])


def add_sizes(page: Page, histograms: dict[str, tuple[Counter[int], Counter[int]]]) -> None:
    """Types and uses of fragments by size."""
    page.section("Fragment sizes")
    page.text(
        "Fragments by size (in rules) in the last sample of seed 1, subcategories ignored: the number of different"
        " fragments (types), and of their occurrences in the training trees (uses). The last line counts size"
        f" {LARGEST_SIZE} and all larger sizes. The paper's figure counts rules by unrefined token; it finds about as"
        " many of size 1 in both grammars, and more of size 2 and above in the SR-TSG. Whether it counts types or uses"
        " is not said."
    )
    largest = max(max(uses) for _, uses in histograms.values())
    head = [f"{NAMES[name]} {counted}" for name in histograms for counted in ("types", "uses")]
    sizes = range(1, largest + 1)
    page.table(
        "sizes",
        ("size", *head),
        [(str(size), *(str(own[size]) for both in histograms.values() for own in both)) for size in sizes],
    )
    larger = {name: [sum(own[size] for size in sizes[1:]) for own in both] for name, both in histograms.items()}
    totals = [f"{NAMES[name]} {types:,} types and {uses:,} uses" for name, (types, uses) in larger.items()]
    page.text(f"Of size 2 and above: {'; '.join(totals)}.")
    drawn = {NAMES[name]: types for name, (types, _) in histograms.items()}
    page.figure("sizes", "Types of fragments by size", lambda axes: draw_sizes(axes, drawn, largest))


def draw_sizes(axes: Any, histograms: dict[str, Counter[int]], largest: int) -> None:
    sizes = np.arange(1, largest + 1)
    width = 0.8 / len(histograms)
    for place, (name, own) in enumerate(histograms.items()):
        axes.bar(sizes + (place - 0.5) * width, [own[size] for size in sizes.tolist()], width, label=name)
    axes.set_yscale("log")
    axes.set_xlabel("rules in a fragment")
    axes.set_ylabel("types")
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
