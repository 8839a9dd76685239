"""What raw text brings: students of many kinds beside their teachers, on CRAFT and on the WSJ sample with Brown.

Usage:
  tools.experiments.raw_text [options] [TABLE...]
  tools.experiments.raw_text -h | --help | --version

Run it as ``python -m tools.experiments.raw_text`` with TSGKIT_TREEBANKS set to the folder of the treebanks; the text of
Brown is ``raw/brown.txt.xz`` beside it. All settings are chosen on the development part: of CRAFT, its first 500 trees.
After an interruption the same command continues; finished stages are not repeated. Without names, all tables are made.

Options:
  --folder=PATH      Folder for models, trees and scores [default: build/experiments/raw-text].
  --record=FILE      Write the tables and all runs to this file (JSON).
  -h --help          This text.
  --version          The version.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tsgkit._cli import command, parse_arguments
from tsgkit.evaluation._report import columns

from .lessons import Lesson, School, school_of
from .page import Table, spread, write_record

Figures = dict[str, Any]
SEEDS = (1, 2, 3)
GOLD_SIZES = (250, 500, 1000, 2000)
HEAD = ("F1", "least", "most", "EVALB", "tags", "new words")
BASE = Lesson(student_schedule="50+0")
LARGEST = Lesson(raw=18_000, teachers=1, student_schedule="4x50+0")
WSJ = Lesson(
    bank="wsj-sample",
    gold=1921,
    schedule="default",
    student_schedule="50+0",
    teachers=3,
    plain_seeds=True,
    text="brown",
)


class Tables:
    """The tables, and the runs they were made of.

    Parameters
    ----------
    school : School
    """

    def __init__(self, school: School) -> None:
        self.school = school
        self.runs: dict[str, Figures] = {}

    def noted(self, name: str, figures: Figures) -> Figures:
        """The figures of a run, which are recorded."""
        self.runs[name] = {key: value for key, value in figures.items() if key != "of"}
        return figures

    def lesson(self, lesson: Lesson, part: str = "dev") -> Figures:
        choices = ", ".join(f"{name} {value}" for name, value in lesson.choices.items())
        return self.noted(f"{part}: {choices}", self.school.lesson(lesson, part))

    def product(self, name: str, paths: Sequence[Path], lesson: Lesson, part: str = "dev") -> Figures:
        return self.noted(f"{part}: {name}", self.school.score(paths, lesson.bank, lesson.gold, part))

    def students(self, lesson: Lesson, seeds: Sequence[int] = SEEDS) -> list[Figures]:
        return [self.lesson(replace(lesson, seed=seed)) for seed in seeds]

    def teachers(self, lesson: Lesson, seeds: Sequence[int] = SEEDS) -> list[Figures]:
        """The scores of all teachers."""
        found = [pair for seed in seeds for pair in self.school.teachers(replace(lesson, seed=seed))]
        name = f"teacher of {lesson.gold} trees, {lesson.schedule}"
        scores = []
        for number, (path, trained) in enumerate(found, start=1):
            score = {**self.school.score([path], lesson.bank, lesson.gold), "training": trained["seconds"]}
            scores.append(self.noted(f"dev: {name} {number}", score))
        return scores

    def products(self, lesson: Lesson, seeds: Sequence[int] = SEEDS) -> list[Figures]:
        """The scores of the products of teachers."""
        result = []
        for seed in seeds:
            paths = [path for path, _ in self.school.teachers(replace(lesson, seed=seed))]
            name = f"product of {len(paths)} of {lesson.gold} trees, {lesson.schedule}, seed {seed}"
            result.append(self.product(name, paths, lesson))
        return result


def row(name: str, figures: Sequence[Figures]) -> list[str]:
    """Scores of several runs."""
    means = [f"{np.mean([each[key] for each in figures]):.2f}" for key in ("evalb", "tags", "new_tags")]
    return [name, str(len(figures)), *spread([each["f1"] for each in figures]), *means]


def craft(tables: Tables) -> Table:
    """Students of 1,000 trees of CRAFT and up to 18,000 sentences, beside their teachers."""
    eight = [path for seed in (1, 2) for path, _ in tables.school.teachers(replace(BASE, seed=seed))]
    default = replace(BASE, raw=0, student_schedule="200+300")
    rows = [
        row("1,000 trees", tables.teachers(BASE, (1, 2))),
        row("1,000 trees, default: 300 joint sweeps", [tables.lesson(default)]),
        row("product of four", tables.products(BASE)),
        row("product of eight", [tables.product("product of eight", eight, BASE)]),
        row("student of four, 1,000 sentences", [tables.lesson(replace(BASE, raw=1000, student_schedule="100+0"))]),
        row("student of four, 3,000 sentences", tables.students(BASE)),
        row("student of four, 6,000 sentences", [tables.lesson(replace(BASE, raw=6000))]),
        row("student of one, 3,000 sentences", tables.students(replace(BASE, teachers=1))),
        row("student of one, 18,000 sentences, four splits", [tables.lesson(LARGEST)]),
    ]
    return Table("craft", ["model", "runs", *HEAD], rows, 1)


def choices(tables: Tables) -> Table:
    """One choice changed at a time; 3,000 sentences unless stated otherwise, seed 1."""
    six = replace(BASE, raw=6000)
    lessons = {
        "as above": BASE,
        "100 sweeps after every split instead of 50": replace(BASE, student_schedule="100+0"),
        "60 joint sweeps at the end": replace(BASE, student_schedule="50+60"),
        "gold trees twice": replace(BASE, copies=2),
        "trees drawn from the teachers' grammars, each in turn": replace(BASE, trees="sampled"),
        "every second one of 6,000 sentences": replace(six, select="random"),
        "the half of 6,000 sentences with the surest trees": replace(six, select="confident"),
        "6,000 sentences": six,
        "6,000 sentences, four splits instead of five": replace(six, student_schedule="4x50+0"),
        "6,000 sentences, taught by the student": replace(six, first=3000, rounds=2, teachers=1),
    }
    rows = [row(name, [tables.lesson(lesson)]) for name, lesson in lessons.items()]
    return Table("choices", ["student", *HEAD[:1], *HEAD[3:]], [[each[0], each[2], *each[5:]] for each in rows], 1)


def gold(tables: Tables) -> Table:
    """1,000 sentences beside treebanks of different sizes."""
    rows = []
    for n_trees in GOLD_SIZES:
        lesson = replace(BASE, gold=n_trees, raw=1000)
        alone = tables.teachers(lesson, [1])
        student = tables.lesson(replace(lesson, student_schedule="100+0") if n_trees == 1000 else lesson)
        product = tables.products(lesson, [1])[0]
        scores = [float(np.mean([each["f1"] for each in alone])), product["f1"], student["f1"]]
        words = [float(np.mean([each["new_tags"] for each in alone])), student["new_tags"]]
        rows.append([f"{n_trees:,}", *(f"{value:.2f}" for value in (*scores, *words))])
    head = ["gold trees", "mean of four", "their product", "student", "new words before", "after"]
    return Table("gold", head, rows, 0)


def wsj(tables: Tables) -> Table:
    """The WSJ sample with text of Brown, on dev, and the chosen student on test."""
    paths = [tables.school.teacher(WSJ, seed)[0] for seed in SEEDS]
    student = replace(WSJ, raw=5000)
    joint = replace(student, student_schedule="50+60")
    rows = []
    for part in ("dev", "test"):
        singles = [
            tables.product(f"wsj, default, seed {seed}", [path], WSJ, part)
            for seed, path in zip(SEEDS, paths, strict=True)
        ]
        rows.append(row(f"{part}: 1,921 trees, default", singles))
        if part == "dev":
            rows.append(row(f"{part}: product of these three", [tables.product("wsj, three", paths, WSJ)]))
            rows.append(row(f"{part}: student of the three, 5,000 sentences", [tables.lesson(student)]))
        rows.append(row(f"{part}: the same with 60 joint sweeps", [tables.lesson(joint, part)]))
    return Table("wsj", ["model", "runs", *HEAD], rows, 1)


EXPERIMENTS: dict[str, Callable[[Tables], Table]] = {each.__name__: each for each in (craft, choices, gold, wsj)}


@command
def main(argv: list[str]) -> int:
    """Make the tables, print them and record them."""
    arguments = parse_arguments(__doc__, argv)
    tables = Tables(school_of(arguments["--folder"]))
    made = []
    for name in arguments["TABLE"] or EXPERIMENTS:
        made.append(EXPERIMENTS[name](tables))
        print(f"{name}\n{columns(made[-1].head, made[-1].rows, made[-1].n_left)}", flush=True)
    if arguments["--record"] is not None:
        used = "python -m tools.experiments.raw_text"
        write_record(Path(arguments["--record"]), used, tables.runs, made)
    return 0


if __name__ == "__main__":
    sys.exit(main(None))
