"""Learning from raw text without files: what `tsgkit.train` does with ``raw``.

The same steps as `tsgkit.raw_text._teaching`, with the same result: teachers, the parses of their product, the corpus
of the student.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Any

from tsgkit.errors import JobError
from tsgkit.inference._chains import chain_seeds
from tsgkit.inference._loop import RunInMemory, Watch
from tsgkit.inference._settings import Settings
from tsgkit.inference._training import Training
from tsgkit.models._model import AnyModel, model_of
from tsgkit.parsing._product import parser_of
from tsgkit.raw_text._sentences import GivenSentences, RawSentences
from tsgkit.raw_text._settings import RawTextSettings
from tsgkit.raw_text._teaching import (
    known_words,
    record_of,
    require_same_preparation,
    seed_of_teachers,
    student_corpus,
)
from tsgkit.treebank import FlatCorpus

Path = str | os.PathLike[str]
# A file, several files, or the sentences themselves.
RawText = Path | Iterable[Path] | Iterable[Sequence[str]]


def raw_sentences(raw: RawText, settings: RawTextSettings) -> RawSentences:
    """The raw sentences that a user gave: of files, or in memory.

    Examples
    --------
    >>> list(raw_sentences([["It", "rains", "."]], RawTextSettings()))
    ['It rains .']
    """
    if isinstance(raw, str | os.PathLike):
        return RawSentences([raw], settings)
    given: list[Any] = list(raw)
    if given and all(isinstance(each, str | os.PathLike) for each in given):
        return RawSentences(given, settings)
    return GivenSentences(given, settings)


def corpus_with_raw_text(
    corpus: FlatCorpus,
    settings: Settings,
    raw: RawSentences,
    taught_by: Sequence[AnyModel] = (),
    *,
    seed: int,
    threads: int,
    watch: Watch,
) -> FlatCorpus:
    """The corpus of the student, as `tsgkit.raw_text.Teaching` makes it.

    Parameters
    ----------
    corpus : FlatCorpus
        The prepared treebank.
    settings : Settings
        Of the teachers.
    raw : RawSentences
    taught_by : sequence of estimators, Model or paths
        The teachers; unless given, they are trained.
    seed : int
        The student's.
    threads : int
        The result does not depend on it.
    watch : callable
        Called after every iteration of all teachers, counted together.

    Raises
    ------
    JobError
        If `watch` asks to stop.
    """
    raw.require_known(known_words(corpus))
    teachers = [model_of(teacher) for teacher in taught_by]
    for number, teacher in enumerate(teachers, start=1):
        require_same_preparation(corpus, teacher, f"taught_by, model {number}")
    for teacher_seed in () if teachers else chain_seeds(seed_of_teachers(seed), raw.settings.teachers):
        training = Training(corpus, settings, seed=teacher_seed, threads=threads)
        run = RunInMemory(training, shifted(watch, len(teachers) * training.iterations))
        teachers.append(run.run())
        if run.interrupted:
            raise JobError("stopped while the teachers were trained: there is no model yet")
    sentences = ((sentence.split(" "), None) for sentence in raw)
    parses = list(parser_of(teachers).parse_batch(sentences, threads=threads))
    trees = [parse.tree for parse in parses if not parse.fallback]
    return student_corpus(corpus, trees, record_of(raw, len(trees), len(parses) - len(trees)))


def shifted(watch: Watch, n_before: int) -> Watch:
    """The same callback, with so many iterations before the first."""
    return lambda iteration, record: watch(n_before + iteration, record)
