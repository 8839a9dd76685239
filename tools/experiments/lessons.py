"""Stages of learning from raw text, kept in a folder: teachers, the trees they make of sentences, students, scores.

Every stage is named after what it depends on, so that experiments share stages and an interrupted one continues.
"""

import hashlib
import json
import lzma
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from nltk.tree import Tree

from tsgkit._files import open_output
from tsgkit.evaluation import evaluate
from tsgkit.inference._chains import chain_seeds
from tsgkit.inference._entry import MODELS
from tsgkit.inference._loop import RunInMemory
from tsgkit.inference._srtsg import SrSettings
from tsgkit.inference._start import Start
from tsgkit.inference._training import Training
from tsgkit.models._model import Model
from tsgkit.models._subcategories import SubcategoryTable
from tsgkit.parsing._product import parser_of
from tsgkit.parsing._settings import ParserSettings
from tsgkit.raw_text._teaching import known_words, seed_of_teachers, student_corpus
from tsgkit.treebank import Cleaning, FlatCorpus, prepare, read_trees
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._trees import words

Figures = dict[str, Any]
LONGEST = 60
CHUNK = 500


@dataclass(frozen=True)
class Lesson:
    """How one student is taught.

    Attributes
    ----------
    bank : str
        ``craft`` or ``wsj-sample``.
    gold : int
        The first trees of its training part are the treebank.
    seed : int
        Of the student; those of the teachers are spawned from it.
    teachers : int
    schedule, student_schedule : str
        Sweeps after every split and joint sweeps, ``100+0``, with a number of splits, ``4x100+0``; or ``default``.
    raw : int
        Sentences; 0 for a model of the treebank alone.
    text : str
        ``own`` (the sentences of the other training trees), ``brown``, or ``gold`` (those of the treebank).
    select : str
        ``all``; ``confident``: the half with the most certain trees; ``random``: every second one; ``short``: at most
        20 words.
    copies : int
        How often the gold trees are in the student's treebank.
    trees : str
        ``best``; ``sampled``: drawn from the grammar of one teacher, each in turn; ``two``: the two best.
    rounds : int
        With 2, students of four teachers are the teachers.
    first : int
        Sentences of the first of two rounds; 0 for as many as in the second.
    plain_seeds : bool
        Whether the seeds of the teachers are 1, 2, ...
    resample : int
        So many times the student draws new trees for the raw sentences from its grammar, and goes on with ten joint
        sweeps over the gold trees and these.
    """

    bank: str = "craft"
    gold: int = 1000
    seed: int = 1
    teachers: int = 4
    schedule: str = "100+0"
    student_schedule: str = "100+0"
    raw: int = 3000
    text: str = "own"
    select: str = "all"
    copies: int = 1
    trees: str = "best"
    rounds: int = 1
    resample: int = 0
    first: int = 0
    plain_seeds: bool = False

    @property
    def choices(self) -> Figures:
        """All that is not as usual; stages are named after it."""
        return {
            each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name) != each.default
        }


def settings_of(schedule: str) -> SrSettings:
    """The settings of a schedule."""
    if schedule == "default":
        return SrSettings()
    splits, _, sweeps = schedule.rpartition("x")
    split_iterations, joint_iterations = map(int, sweeps.split("+"))
    n_splits = int(splits) if splits else None
    return SrSettings(splits=n_splits, split_iterations=split_iterations, joint_iterations=joint_iterations)


@dataclass
class School:
    """Where the stages are made and kept."""

    folder: Path
    treebanks: Path
    brown: Path
    n_dev: int = 500
    parse_seconds: float = 0.0

    # ---- data ----------------------------------------------------------------------------------------

    def trees(self, bank: str, part: str) -> list[Tree]:
        key = (bank, part)
        if key not in self.cached_trees:
            cleaned = map(Cleaning().apply, read_trees(self.treebanks / bank / f"{part}.mrg"))
            self.cached_trees[key] = [tree for tree in cleaned if tree is not None]
        return self.cached_trees[key]

    @cached_property
    def cached_trees(self) -> dict[tuple[str, str], list[Tree]]:
        return {}

    def corpus(self, bank: str, gold: int) -> FlatCorpus:
        entry = MODELS["srtsg"]
        return prepare(self.trees(bank, "train")[:gold], binarization=entry.binarization, unknown=entry.unknown)

    def sentences(self, lesson: Lesson) -> list[list[str]]:
        """The raw sentences, of at most `LONGEST` words."""
        if lesson.text == "brown":
            with lzma.open(self.brown, "rt", encoding="utf-8") as file:
                found = [line.split() for line in file]
            # The sentences are by genre: a fixed permutation makes the first ones a sample of all.
            order = np.random.Generator(np.random.PCG64(0)).permutation(len(found))
            texts = [found[place] for place in order]
        else:
            trees = self.trees(lesson.bank, "train")
            texts = [words(tree) for tree in (trees[: lesson.gold] if lesson.text == "gold" else trees[lesson.gold :])]
        return list(islice((text for text in texts if 0 < len(text) <= LONGEST), lesson.raw))

    # ---- stages --------------------------------------------------------------------------------------

    def stage(self, name: str, depends_on: Any, make: Callable[[Path], Figures]) -> tuple[Path, Figures]:
        """The path of a stage's result and its figures; made unless it is there."""
        digest = hashlib.sha256(repr(depends_on).encode()).hexdigest()[:12]
        path = self.folder / f"{name}-{digest}"
        notes = path.with_suffix(".json")
        if not notes.exists():
            started = time.process_time()
            figures = make(path)
            figures = {"seconds": round(time.process_time() - started, 2), "of": repr(depends_on), **figures}
            notes.write_text(json.dumps(figures))
        return path, json.loads(notes.read_text())

    def train(self, corpus: FlatCorpus, schedule: str, seed: int, path: Path) -> Figures:
        model = RunInMemory(Training(corpus, settings_of(schedule), seed=seed), lambda iteration, record: False).run()
        model.save(path)
        return {"trees": corpus.n_trees, "tokens": corpus.n_tokens, "rules": model.grammar.n_rules}

    def teacher(self, lesson: Lesson, seed: int) -> tuple[Path, Figures]:
        """A model of the treebank alone."""
        corpus = lambda: self.corpus(lesson.bank, lesson.gold)  # noqa: E731
        depends_on = (lesson.bank, lesson.gold, lesson.schedule, seed)
        return self.stage("teacher", depends_on, lambda path: self.train(corpus(), lesson.schedule, seed, path))

    def teachers(self, lesson: Lesson) -> list[tuple[Path, Figures]]:
        if lesson.rounds == 2:
            # The students of the first round learn from the same trees with different seeds.
            before = replace(lesson, rounds=1, raw=lesson.first or lesson.raw, first=0, teachers=4)
            return self.students(before, lesson.teachers)
        seeds = chain_seeds(seed_of_teachers(lesson.seed), lesson.teachers)
        if lesson.plain_seeds:
            seeds = list(range(1, lesson.teachers + 1))
        return [self.teacher(lesson, seed) for seed in seeds]

    def parses(self, lesson: Lesson) -> list[tuple[str, float]]:
        """A line and a confidence for every raw sentence; an empty line for a fallback tree."""
        paths = [path for path, _ in self.teachers(lesson)]
        sentences = self.sentences(lesson)
        result: list[tuple[str, float]] = []
        for first in range(0, len(sentences), CHUNK):
            chunk = sentences[first : first + CHUNK]
            depends_on = ([path.name for path in paths], lesson.trees, first, chunk)
            make = lambda path, chunk=chunk, first=first: self.parse(paths, lesson, chunk, first, path)  # noqa: E731
            path, figures = self.stage("parses", depends_on, make)
            self.parse_seconds += figures["seconds"]
            result += [tuple(pair) for pair in json.loads(path.read_text())]
        return result

    def parser(self, paths: Sequence[Path], settings: ParserSettings | None = None) -> Any:
        key = (tuple(paths), settings)
        if key not in self.parsers:
            self.parsers.clear()
            self.parsers[key] = parser_of([Model.load(path) for path in paths], settings)
        return self.parsers[key]

    @cached_property
    def parsers(self) -> dict[Any, Any]:
        return {}

    def parse(self, paths: list[Path], lesson: Lesson, chunk: list[list[str]], first: int, output: Path) -> Figures:
        n_trees = 2 if lesson.trees == "two" else 1
        settings = None
        if lesson.trees == "sampled":
            paths = [paths[first // CHUNK % len(paths)]]
            settings = ParserSettings(objective="mpp-sampled", n_samples=1, seed=lesson.seed)
        parser = self.parser(paths, settings)
        lines = []
        started = time.process_time()
        for parse in parser.parse_batch([(text, None) for text in chunk], k=n_trees, first_number=first):
            confidence = float(np.exp(parse.scores[0] / len(paths) / len(parse.words)))
            shown = [] if parse.fallback else [format_tree(tree) for tree in parse.trees[:n_trees]]
            lines.append(("\n".join(shown), confidence))
        output.write_text(json.dumps(lines))
        return {"sentences": len(chunk), "parsing": time.process_time() - started}

    # ---- students ------------------------------------------------------------------------------------

    def chosen(self, lesson: Lesson) -> list[str]:
        """The trees that are learned from."""
        pairs = [(line, confidence) for line, confidence in self.parses(lesson) if line]
        if lesson.select == "confident":
            middle = float(np.median([confidence for _, confidence in pairs]))
            pairs = [pair for pair in pairs if pair[1] >= middle]
        elif lesson.select == "random":
            pairs = pairs[::2]
        elif lesson.select == "short":
            pairs = [pair for pair in pairs if len(Tree.fromstring(pair[0].split("\n")[0]).leaves()) <= 20]
        return [tree for line, _ in pairs for tree in line.split("\n")]

    def student_treebank(self, lesson: Lesson) -> FlatCorpus:
        gold = self.corpus(lesson.bank, lesson.gold)
        decode = self.trees(lesson.bank, "train")[: lesson.gold] * (lesson.copies - 1)
        return student_corpus(gold, [*decode, *map(Tree.fromstring, self.chosen(lesson))])

    def student(self, lesson: Lesson, seed: int | None = None) -> tuple[Path, Figures]:
        """The student; a model of the treebank alone if there is no raw text."""
        seed = lesson.seed if seed is None else seed
        if not lesson.raw:
            return self.teacher(replace(lesson, schedule=lesson.student_schedule), seed)
        if lesson.resample:
            return self.stage("student", (lesson.choices, seed), lambda path: self.resampled(lesson, seed, path))
        make = lambda path: self.train(self.student_treebank(lesson), lesson.student_schedule, seed, path)  # noqa: E731
        return self.stage("student", (lesson.choices, seed), make)

    def resampled(self, lesson: Lesson, seed: int, output: Path) -> Figures:
        """A student that draws the trees of the raw sentences again from its own grammar."""
        model = Model.load(self.student(replace(lesson, resample=lesson.resample - 1), seed)[0])
        settings = ParserSettings(objective="mpp-sampled", n_samples=1, seed=seed + lesson.resample)
        drawn = parser_of([model], settings).parse_batch([(text, None) for text in self.sentences(lesson)])
        trees = [parse.tree for parse in drawn if not parse.fallback]
        corpus = student_corpus(self.corpus(lesson.bank, lesson.gold), trees)
        sweeps = replace(settings_of("50+10"), splits=len(SubcategoryTable.of_model(model).splits))
        training = Training(corpus, sweeps, seed=seed + lesson.resample, begin=Start(model))
        RunInMemory(training, lambda iteration, record: False).run().save(output)
        return {"trees": corpus.n_trees, "tokens": corpus.n_tokens, "rules": 0}

    def students(self, lesson: Lesson, number: int) -> list[tuple[Path, Figures]]:
        """Several students of the same teachers."""
        return [self.student(lesson, seed) for seed in [lesson.seed, *chain_seeds(lesson.seed, number - 1)]]

    # ---- scores --------------------------------------------------------------------------------------

    def score(self, paths: Sequence[Path], bank: str, gold: int, part: str = "dev") -> Figures:
        """Scores of a model or a product: F1, tags, tags of words that the gold trees do not have, speed."""
        n_trees = self.n_dev if bank == "craft" else None
        depends_on = ([path.name for path in paths], bank, gold, part, n_trees)
        trees = self.trees(bank, part)[:n_trees]
        make = lambda path: self.scored(paths, trees, self.corpus(bank, gold), path)  # noqa: E731
        return self.stage("score", depends_on, make)[1]

    def scored(self, paths: Sequence[Path], trees: list[Tree], gold: FlatCorpus, output: Path) -> Figures:
        parser = self.parser(paths)
        parser.analyse(words(trees[0]))
        started = time.process_time()
        parses = list(parser.parse_batch([(words(tree), None) for tree in trees]))
        seconds = time.process_time() - started
        undo = parser.models()[0].preparation.cleaning.undo
        score = evaluate(map(undo, trees), [parse.tree for parse in parses], "collins")
        vocabulary = known_words(gold)
        tags = [
            (word in vocabulary, own == other)
            for tree, parse in zip(trees, parses, strict=True)
            for (word, own), (_, other) in zip(tree.pos(), parse.tree.pos(), strict=True)
        ]
        new = [is_right for is_known, is_right in tags if not is_known]
        with open_output(output) as file:
            file.writelines(f"{format_tree(parse.tree)}\n" for parse in parses)
        return {
            "f1": score.aligned.f1,
            "evalb": score.f1,
            "tags": 100 * float(np.mean([is_right for _, is_right in tags])),
            "new_words": len(new),
            "new_tags": 100 * float(np.mean(new)),
            "fallbacks": sum(bool(parse.fallback) for parse in parses),
            "parsing": seconds,
            "sentences": len(trees),
        }

    def lesson(self, lesson: Lesson, part: str = "dev") -> Figures:
        """All figures of a lesson."""
        path, trained = self.student(lesson)
        score = self.score([path], lesson.bank, lesson.gold, part)
        return {**score, "training": trained["seconds"], "trees": trained["trees"], "tokens": trained["tokens"]}


def school_of(folder: str) -> School:
    """The stages in a folder, of the treebanks that TSGKIT_TREEBANKS names and the raw text beside them."""
    treebanks = Path(os.environ["TSGKIT_TREEBANKS"])
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    return School(path, treebanks, treebanks.parent / "raw" / "brown.txt.xz")
