"""Training runs and their scores, kept in a folder: finished runs are not repeated, interrupted ones continue.

A run is a model file and a JSON file of its scores, both named after the run.
"""

import functools
import json
import multiprocessing
import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from nltk.tree import Tree

from tsgkit._cli import choice, integer
from tsgkit._files import open_output
from tsgkit.errors import UsageError
from tsgkit.evaluation import evaluate
from tsgkit.inference._checkpoint import checkpoint_path
from tsgkit.inference._entry import MODELS
from tsgkit.inference._loop import Run
from tsgkit.inference._recipes import RECIPES
from tsgkit.inference._training import Training
from tsgkit.models._model import Model
from tsgkit.parsing import Parser
from tsgkit.parsing._product import ProductParser
from tsgkit.treebank import Binarization, FlatCorpus, UnknownWords, prepare

from .treebanks import Parts, find_treebank

SCALES = ("smoke", "small", "full")
Figures = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """A model to train and score.

    Attributes
    ----------
    name : str
        Name of its files, without the seed.
    model : str
        The name of its entry.
    settings : dict
        Settings of the training that differ from the defaults.
    seed : int
    binarization : Binarization
    unknown : UnknownWords
    objectives : sequence of str
        Objectives with which the parts are parsed.
    parts : sequence of str
        Which parts are parsed.
    truncated : bool
        Whether a tsg is also parsed with its truncated grammar.
    n_trees : int, optional
        Number of training trees, chosen at random; all unless given.
    span_power : float
        The power of the odds of labels of spans, see `tsgkit.parsing._settings`. Unless given, grammars decide alone,
        as in the papers.
    """

    name: str
    model: str
    settings: Figures = field(default_factory=dict)
    seed: int = 1
    binarization: Binarization = field(default_factory=lambda: Binarization("right", 0))
    unknown: UnknownWords = field(default_factory=UnknownWords)
    objectives: Sequence[str] = ("max-rule",)
    parts: Sequence[str] = ("dev",)
    truncated: bool = False
    n_trees: int | None = None
    span_power: float = 0.0

    @property
    def stem(self) -> str:
        return f"{self.name}-{self.seed}"

    @property
    def exports(self) -> tuple[str, ...]:
        """The grammars to parse with, by the suffixes of their file names."""
        return ("", ".truncated") if self.truncated else ("",)


def recipe_job(name: str, recipe: str, seed: int, settings: Figures | None = None, **options: Any) -> Job:
    """A job with all choices of a recipe, but for these settings."""
    found = RECIPES[recipe]
    chosen = replace(found.settings, **(settings or {}))
    values = {each.name: getattr(chosen, each.name) for each in fields(chosen)}
    differing = {each.name: values[each.name] for each in fields(chosen) if values[each.name] != each.default}
    preparation = {"binarization": found.binarization, "unknown": found.unknown}
    return Job(name, chosen.kind, differing, seed, **{**preparation, **options})


def score_key(part: str, objective: str = "max-rule", export: str = "") -> str:
    """The name of a score among the figures of a run."""
    return f"{part} {objective}{export}"


@dataclass
class Lab:
    """Where the runs of an experiment are made and kept.

    Attributes
    ----------
    folder : Path
    treebank, scale : str
        See `find_treebank`.
    jobs : int
        Number of runs in parallel.
    quiet : bool
    """

    folder: Path
    treebank: str
    scale: str
    jobs: int = 1
    quiet: bool = False

    @classmethod
    def of(cls, arguments: Figures, experiment: str) -> "Lab":
        """The lab for the options of an experiment."""
        scale = choice(arguments, "--scale", SCALES)
        treebank = arguments["--treebank"]
        default = Path("build") / "experiments" / f"{experiment}-{scale}-{os.path.basename(os.path.normpath(treebank))}"
        folder = Path(arguments["--folder"]) if arguments["--folder"] is not None else default
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder, treebank, scale, integer(arguments, "--jobs", 1), arguments["--quiet"])

    def parts(self) -> Parts:
        return treebank_parts(self.treebank, self.scale)

    def run(self, jobs: Iterable[Job]) -> dict[str, Figures]:
        """Run the jobs that are missing; returns the scores of each by its stem.

        Raises
        ------
        KeyboardInterrupt
            If the user stopped a run; the next call continues it.
        """
        jobs = list(jobs)
        kept = {job.stem: kept_figures(self.path(job.stem), job) for job in jobs}
        missing = [job for job in jobs if is_missing(job, kept[job.stem])]
        if self.jobs == 1 or len(missing) < 2:
            for job in missing:
                kept[job.stem] = carry_out(job, self)
            return kept
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self.jobs, mp_context=context) as pool:
            quiet = replace(self, quiet=True)
            waiting = [(job, pool.submit(carry_out, job, quiet)) for job in missing]
            for number, (job, result) in enumerate(waiting, start=1):
                kept[job.stem] = result.result()
                if not self.quiet:
                    print(f"{number} of {len(waiting)} runs: {job.stem} done", flush=True)
        return kept

    def path(self, stem: str) -> Path:
        return self.folder / f"{stem}.json"

    def model(self, stem: str) -> Path:
        return self.folder / f"{stem}.model"

    def product(
        self, name: str, stems: Sequence[str], parts: Sequence[str], kind: str = "rules", span_power: float = 0.0
    ) -> Figures:
        """The scores of a product of trained models, stored or computed now."""
        path = self.path(name)
        figures: Figures = read_figures(path)
        if figures.get("models") != list(stems):
            figures = {"models": list(stems)}
        for part in parts:
            if part not in figures:
                models = [Model.load(self.model(stem)) for stem in stems]
                parser = ProductParser(models, product=kind, span_power=span_power)
                figures[part] = score_of(parser, self.parts().part(part))
                write_figures(path, figures)
        return figures


@functools.lru_cache(maxsize=1)
def treebank_parts(treebank: str, scale: str) -> Parts:
    return find_treebank(treebank, scale)


def carry_out(job: Job, lab: Lab) -> Figures:
    """Train and score a model, except for what is already done."""
    path, output = lab.path(job.stem), lab.model(job.stem)
    figures = kept_figures(path, job)
    parts = lab.parts()
    if "rules" not in figures:
        trees = chosen_trees(parts.train, job.n_trees)
        corpus = prepare(trees, binarization=job.binarization, unknown=job.unknown)
        figures |= trained(job, corpus, output, lab.quiet)
        write_figures(path, figures)
        checkpoint_path(output).unlink(missing_ok=True)
    for export in job.exports:
        model = None
        for part in job.parts:
            for objective in job.objectives:
                key = score_key(part, objective, export)
                if key not in figures:
                    model = model or Model.load(f"{output}{export}")
                    parser = Parser(model, objective=objective, span_power=job.span_power)
                    figures[key] = score_of(parser, parts.part(part))
                    write_figures(path, figures)
    return figures


def chosen_trees(trees: Sequence[Tree], number: int | None) -> list[Tree]:
    """So many trees in their order, chosen at random; a larger choice contains the smaller ones."""
    order = np.random.Generator(np.random.PCG64(0)).permutation(len(trees))
    return [trees[place] for place in np.sort(order[:number])]


def trained(job: Job, corpus: FlatCorpus, output: Path, quiet: bool) -> Figures:
    """Train a model and write it; returns its time, size and history."""
    is_whole = not checkpoint_path(output).exists()
    started = time.process_time()
    run = Run(training_of(job, corpus), output, resume=True, force=True, quiet=quiet)
    model = run.run()
    if run.interrupted:
        raise KeyboardInterrupt
    if job.truncated:
        other = training_of(job, corpus, truncated=True)
        other.restore(run.training.state(), run.done)
        other.model().save(f"{output}.truncated")
    return {
        "seconds": time.process_time() - started if is_whole else None,
        "rules": model.grammar.n_rules,
        "history": run.history,
    }


def training_of(job: Job, corpus: FlatCorpus, **others: Any) -> Training:
    """The training of a model, with these settings beside those of the job."""
    settings = MODELS[job.model].settings(**job.settings, **others)
    return Training(corpus, settings, seed=job.seed)


def score_of(parser: Parser, gold: Sequence[Tree]) -> Figures:
    """Accuracy and speed of a parser on the sentences of these trees."""
    started = time.process_time()
    parses = list(parser.parse_batch([(tree.leaves(), None) for tree in gold]))
    seconds = time.process_time() - started
    score = evaluate(gold, [parse.tree for parse in parses])
    return {
        "f1": score.f1,
        "strict": score.strict.f1,
        "tags": score.strict.tagging_accuracy,
        "rate": len(gold) / seconds,
        "seconds": seconds,
        "fallbacks": sum(bool(parse.fallback) for parse in parses),
    }


def job_settings(job: Job) -> Figures:
    """The settings on which the scores of a run depend, as plain JSON."""
    names = ("model", "settings", "seed", "binarization", "unknown")
    settings = {name: getattr(job, name) for name in names}
    settings |= {name: asdict(settings[name]) for name in ("binarization", "unknown")}
    settings |= {"n_trees": job.n_trees} if job.n_trees is not None else {}
    return json.loads(json.dumps(settings))


def is_missing(job: Job, figures: Figures) -> bool:
    keys = [score_key(part, name, export) for part in job.parts for name in job.objectives for export in job.exports]
    return "rules" not in figures or any(key not in figures for key in keys)


def kept_figures(path: Path, job: Job) -> Figures:
    """The stored scores of a run; it must have had the same settings."""
    figures = read_figures(path)
    if figures and figures.get("job") != job_settings(job):
        raise UsageError(f"{path}: a run with other settings; give another --folder, or remove the file")
    return figures or {"job": job_settings(job)}


def read_figures(path: Path) -> Figures:
    if not path.exists():
        return {}
    try:
        figures = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        figures = None
    if not isinstance(figures, dict):
        raise UsageError(f"{path}: not the scores of a run; remove the file to repeat the run")
    return figures


def write_figures(path: Path, figures: Figures) -> None:
    with open_output(path) as file:
        json.dump(figures, file)
