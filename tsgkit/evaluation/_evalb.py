"""EVALB: labelled bracketing recall, precision and F-measure of test trees against gold trees.

Last stage of the flow: trees again -> a score. Files have one tree per line; `tsgkit._brackets` counts the brackets of
each sentence, and the sums over the corpus give

    R = sum(matched) / sum(gold),   P = sum(matched) / sum(test),   F1 = 2PR / (P + R).
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from tsgkit._brackets import ROW_FIELDS, Scorer, format_table
from tsgkit._files import DAMAGED_ARCHIVE, TooLongError, open_binary, require_text, whole_text
from tsgkit._messages import counted
from tsgkit.errors import TreebankError, UsageError
from tsgkit.evaluation import _report
from tsgkit.evaluation._breakdown import (
    Confusion,
    LabelScore,
    LengthScore,
    most_confused,
    scores_by_label,
    scores_by_length,
)
from tsgkit.evaluation._parameters import BUNDLED, Parameters, load_parameters
from tsgkit.evaluation._scores import AlignedScore, Score, StrictScore

if TYPE_CHECKING:
    import numpy as np
    from nltk.tree import Tree

    from tsgkit.evaluation._significance import BootstrapTest

# A file (`-` is stdin), or trees: bracketed strings of one or more lines, nltk trees, or None for a failed parse.
Trees: TypeAlias = "str | os.PathLike[str] | Iterable[str | Tree | None]"

BATCH_SIZE = 10_000
# Fewer sentences may well have no punctuation.
ENOUGH_SENTENCES = 20


@dataclass(frozen=True)
class Problem:
    """Why a sentence counts as an error.

    Parameters
    ----------
    kind : str
        One of `tsgkit._brackets.PROBLEM_KINDS`.
    location : str
        ``file:line`` or ``file:line:column``.
    line : int
        Number of the sentence, from 1.
    message : str
        The error in words.
    """

    kind: str
    location: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.location}: {self.message}"


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The score of one test file.

    Parameters
    ----------
    gold_name, test_name : str
        The files.
    parameters : Parameters
        The settings used.
    all, cutoff : Score
        EVALB's sums over all sentences, and over those no longer than the cut-off length.
    strict : StrictScore
        The sums in which failed and mismatched sentences count as wrong.
    aligned : AlignedScore
        The same with punctuation by the gold tags: the score to compare models with.
    unused_labels : tuple of str
        Labels that the parameters delete or count as equal, and that occur in neither file.
    n_deleted_words : int
        The number of gold words that the parameters delete.
    problems : list of Problem
        Why sentences count as errors.
    stopped : bool
        Whether scoring stopped because of too many errors; the counts then cover the sentences before.
    n_errors : int
        The number of sentences that count as errors.
    rows, label_counts, confusion_counts
        The counts of sentences, labels and confusions, for `sentences`, `by_label` and `confusions`.

    Examples
    --------
    >>> gold = ["(TOP (S (NP (PRP I)) (VP (VBD saw) (NP (PRP you)))))"]
    >>> test = ["(TOP (S (NP (PRP I)) (VP (VBD saw)) (NP (PRP you))))"]
    >>> evaluation = evaluate(gold, test)
    >>> evaluation.f1
    75.0
    >>> evaluation.sentences["matched"]
    array([3], dtype=int32)
    """

    gold_name: str
    test_name: str
    parameters: Parameters
    all: Score
    cutoff: Score
    strict: StrictScore
    aligned: AlignedScore
    unused_labels: tuple[str, ...]
    n_deleted_words: int
    problems: list[Problem]
    stopped: bool
    n_errors: int = field(repr=False)
    rows: bytes = field(repr=False)
    label_counts: dict[str, tuple[int, int, int, int]] = field(repr=False)
    confusion_counts: dict[tuple[str, str], int] = field(repr=False)

    @property
    def recall(self) -> float:
        """EVALB's bracketing recall over all sentences, in percent."""
        return self.all.recall

    @property
    def precision(self) -> float:
        """EVALB's bracketing precision over all sentences, in percent."""
        return self.all.precision

    @property
    def f1(self) -> float:
        """EVALB's bracketing F-measure over all sentences, in percent."""
        return self.all.f1

    @property
    def sentences(self) -> np.ndarray:
        """One record per sentence, with the fields `tsgkit._brackets.ROW_FIELDS`.

        ``status`` is 0 for a valid sentence, 1 for an error, 2 for a skipped one; the fields ``all_gold``,
        ``all_test`` and ``all_words`` are the counts of the strict score, whatever the status, and those that begin
        with ``aligned_`` the counts of the aligned score.
        """
        import numpy as np  # noqa: PLC0415 - the command does not need it

        return np.frombuffer(self.rows, dtype=[(name, np.int32) for name in ROW_FIELDS])

    def iterate_rows(self) -> Iterator[tuple[int, ...]]:
        """The records of `sentences` as tuples, without numpy."""
        return struct.iter_unpack(f"={len(ROW_FIELDS)}i", self.rows)

    def table(self) -> str:
        """EVALB's table of sentences, byte for byte; without the line of totals if scoring stopped."""
        foot = "" if self.stopped else _report.table_foot(self.all)
        return _report.TABLE_HEAD + format_table(self.rows) + foot

    def summary(self) -> str:
        """EVALB's summary, byte for byte."""
        return _report.evalb_summary(self.all, self.cutoff, self.parameters.cutoff_len)

    def strict_summary(self) -> str:
        """The strict score in the layout of EVALB's summary."""
        return _report.strict_summary(self.strict)

    def aligned_summary(self) -> str:
        """The aligned score in the layout of EVALB's summary."""
        return _report.aligned_summary(self.aligned)

    def headline(self) -> str:
        """The three F-measures on one line."""
        return _report.headline(self)

    def __repr__(self) -> str:
        return f"<Evaluation of {counted(self.aligned.sentences, 'sentence')}: {self.headline()}>"

    def _repr_html_(self) -> str:
        """The three scores as a table, for notebooks."""
        return _report.html_table(self)

    def by_label(self) -> list[LabelScore]:
        """The score of every label, the most frequent gold label first."""
        return scores_by_label(self.label_counts)

    def by_length(self) -> list[LengthScore]:
        """The score by length of the gold sentence, in ranges of ten words."""
        return scores_by_length(self.iterate_rows())

    def confusions(self) -> list[Confusion]:
        """Pairs of gold and test labels over the same span that do not match, the most frequent first."""
        return most_confused(self.confusion_counts)

    def to_dict(self, *, sentences: bool = True) -> dict[str, Any]:
        """All results as plain values, for JSON; with `sentences`, one record per sentence as well.

        Parameters
        ----------
        sentences : bool
        """
        return _report.as_dict(self, sentences=sentences)


def evaluate(
    gold: Trees,
    test: Trees,
    params: str | os.PathLike[str] | Parameters = "collins",
    *,
    stop_on_errors: bool = False,
    quiet: bool = True,
) -> Evaluation:
    """Score test trees against gold trees: EVALB's score, the strict score and the aligned score.

    Parameters
    ----------
    gold, test : path, or iterable of str, nltk.Tree or None
        A file with one tree per line (plain, gzip or xz; ``-`` is stdin), or the trees themselves; None or an
        empty string is a failed parse.
    params : str, path or Parameters
        ``collins``, ``new``, or a parameter file.
    stop_on_errors : bool
        Whether to stop where EVALB would: at error number MAX_ERROR + 2.
    quiet : bool
        Whether to show no progress bar.

    Examples
    --------
    >>> from nltk.tree import Tree
    >>> tree = Tree.fromstring("(TOP (S (NP (PRP I)) (VP (VBD ran))))")
    >>> evaluate([tree], [tree]).f1
    100.0
    """
    parameters = params if isinstance(params, Parameters) else load_parameters(params)
    sources = (*read_source(gold, "gold"), *read_source(test, "test"))
    return score(*sources, parameters, stop_on_errors=stop_on_errors, quiet=quiet)


def score(
    gold_name: str,
    gold: bytes,
    test_name: str,
    test: bytes,
    parameters: Parameters,
    *,
    stop_on_errors: bool = False,
    quiet: bool = True,
) -> Evaluation:
    """Score the contents of two files; the names are for messages."""
    scorer = Scorer(gold, test, parameters, stop_on_errors)
    try:
        run(scorer, quiet)
    except OverflowError as error:
        raise TreebankError(str(error), f"{gold_name} or {test_name}") from None
    all_totals, cutoff_totals = scorer.totals
    return Evaluation(
        gold_name=gold_name,
        test_name=test_name,
        parameters=parameters,
        all=Score(**all_totals),
        cutoff=Score(**cutoff_totals),
        strict=StrictScore(**scorer.strict_totals),
        aligned=AlignedScore(**scorer.aligned_totals),
        unused_labels=unused_labels(parameters, scorer, gold, test),
        n_deleted_words=scorer.n_deleted_words,
        problems=[describe(problem, gold_name, test_name) for problem in scorer.problems],
        stopped=scorer.stopped,
        n_errors=scorer.n_errors,
        rows=scorer.rows,
        label_counts=scorer.label_counts,
        confusion_counts=scorer.confusions,
    )


def unused_labels(parameters: Parameters, scorer: Scorer, *contents: bytes) -> tuple[str, ...]:
    """The labels that parameters delete or count as equal and that occur nowhere, each once."""
    equal = list(chain.from_iterable(parameters.eq_labels))
    deleted = (label for label in parameters.delete_labels if label not in equal and not scorer.has_label(label))
    # The scorer knows labels that count as equal whether they occur or not.
    absent = (label for label in equal if not any(opens(label).search(content) for content in contents))
    return tuple(dict.fromkeys([*deleted, *absent]))


def opens(label: str) -> re.Pattern[bytes]:
    """A bracket with this label, with or without function tags."""
    return re.compile(rb"\(\s*" + re.escape(label.encode("utf-8", "surrogateescape")) + rb"[-=\s()]")


def parameter_warnings(evaluation: Evaluation) -> Iterator[str]:
    """Why the parameters may not fit the treebank: they name labels that do not occur in it."""
    parameters, unused = evaluation.parameters, evaluation.unused_labels
    if not parameters.delete_labels or evaluation.aligned.sentences < ENOUGH_SENTENCES:
        return
    if not evaluation.n_deleted_words:
        listed = " ".join(parameters.delete_labels)
        yield (
            f"no word of {evaluation.gold_name} has a tag that the parameters delete ({listed}): punctuation counts as"
            " words; --params=FILE, in Python params, names the tags of your treebank"
        )
    elif unused and parameters not in map(load_parameters, BUNDLED):
        verb = "occurs" if len(unused) == 1 else "occur"
        yield f"the parameters name {' '.join(unused)}, which {verb} neither in the gold trees nor in the parses"


def run(scorer: Scorer, quiet: bool) -> None:
    """Score all sentences in batches, between which an interrupt is handled and the progress bar moves."""
    if quiet:
        while scorer.advance(BATCH_SIZE):
            pass
        return
    from tsgkit._progress import progress  # noqa: PLC0415 - its import takes longer than scoring

    n_bytes = scorer.n_bytes_left
    with progress((), "Scoring", "bytes", total=n_bytes) as bar:
        any_left = True
        while any_left:
            any_left = scorer.advance(BATCH_SIZE)
            bar.update(n_bytes - scorer.n_bytes_left - bar.n)


def describe(problem: tuple[Any, ...], gold_name: str, test_name: str) -> Problem:
    """An error in words."""
    kind, side, line, column, n_gold_words, n_test_words, gold_word, test_word = problem
    messages = {
        "unclosed": "unclosed bracket; each tree must be on one line",
        "extra close": "extra closing bracket",
        "stray text": f"{gold_word!r} is not inside a (TAG word) bracket",
        "length differs": f"{n_test_words} words where the gold tree has {n_gold_words}",
        "word differs": f"word {test_word!r} where the gold tree has {gold_word!r}",
        "gold longer": "missing; the gold file has more lines",
        "test longer": "extra line; the gold file has fewer lines",
    }
    # A missing line is reported for the file in which it is missing.
    name = gold_name if side == "gold" and kind != "gold longer" else test_name
    location = f"{name}:{line}:{column}" if column else f"{name}:{line}"
    return Problem(kind, location, line, messages[kind])


def read_source(trees: Trees, role: str) -> tuple[str, bytes]:
    """The name of the file, or `role` for trees that are not a file, and the contents, one tree per line."""
    if not isinstance(trees, str | os.PathLike):
        return role, "".join(f"{one_line(tree)}\n" for tree in trees).encode()
    name = os.fspath(trees)
    try:
        with open_binary(name) as file:
            content = whole_text(file)
    except FileNotFoundError:
        from tsgkit.treebank._sources import has_trees  # noqa: PLC0415 - imports nltk, which the command does not need

        if not has_trees(name):
            raise
        raise UsageError(
            f"{name}: what is scored are files with one tree per line; `tsgkit prepare {name} -o FILE` writes one"
        ) from None
    except DAMAGED_ARCHIVE as error:
        raise TreebankError(f"the compressed file is damaged ({error})", name) from None
    except TooLongError as error:
        raise TreebankError(str(error), name) from None
    require_text(content, name)
    return name, content


def one_line(tree: str | Tree | None) -> str:
    """The brackets of a tree without line breaks."""
    if isinstance(tree, str):
        return " ".join(tree.split("\n"))
    if not tree:  # None, or a tree without children: a failed parse
        return ""
    from tsgkit.treebank._brackets import format_tree  # noqa: PLC0415 - imports nltk, which the command does not need

    return format_tree(tree)


@dataclass(frozen=True, repr=False)
class Comparison:
    """Two systems on the same gold trees.

    Parameters
    ----------
    first, second : Evaluation
        The two systems.
    evalb, strict, aligned : BootstrapTest
        Significance tests of the difference in EVALB's F1, in the strict and in the aligned F1.
    """

    first: Evaluation
    second: Evaluation
    evalb: BootstrapTest
    strict: BootstrapTest
    aligned: BootstrapTest

    def __repr__(self) -> str:
        f1 = f"aligned F1 {self.first.aligned.f1:.2f} and {self.second.aligned.f1:.2f}"
        return f"<Comparison: {f1}, difference {self.aligned.difference:.2f}, p = {self.aligned.p_value:.4f}>"

    def table(self) -> str:
        """Both systems side by side, with the differences and their significance."""
        return _report.comparison(self)


def compare(
    first: Evaluation, second: Evaluation, n_resamples: int = 10_000, seed: int = 1, *, quiet: bool = True
) -> Comparison:
    """Compare two evaluations against the same gold trees by a paired bootstrap over sentences.

    Parameters
    ----------
    first, second : Evaluation
        Results of `evaluate` with the same gold trees.
    n_resamples, seed : int
        See `tsgkit.evaluation._significance.paired_bootstrap`.
    quiet : bool
        Whether to show no progress bar.

    Examples
    --------
    >>> gold = ["(TOP (S (NP (PRP I)) (VP (VBD ran))))"] * 20
    >>> flat = ["(TOP (S (PRP I) (VBD ran)))"] * 20
    >>> comparison = compare(evaluate(gold, gold), evaluate(gold, flat), n_resamples=999)
    >>> comparison.evalb.difference, comparison.evalb.p_value
    (50.0, 0.001)
    """
    from tsgkit.evaluation._significance import paired_bootstrap  # noqa: PLC0415 - imports numpy

    pairs = paired_counts(first, second)
    tests = [paired_bootstrap(*pair, n_resamples, seed, quiet=quiet) for pair in pairs]
    return Comparison(first, second, *tests)


def paired_counts(first: Evaluation, second: Evaluation) -> list[tuple[np.ndarray, np.ndarray]]:
    """Counts (matched, gold, test) of every sentence under both systems: EVALB's, the strict and the aligned ones."""
    import numpy as np  # noqa: PLC0415

    if len(first.rows) != len(second.rows):
        n_rows = [len(evaluation.sentences) for evaluation in (first, second)]
        raise TreebankError(
            f"a paired test needs the same sentences, but {first.test_name} has {n_rows[0]} of them "
            f"and {second.test_name} {n_rows[1]}"
        )
    systems = []
    for evaluation in (first, second):
        rows = evaluation.sentences
        is_valid = rows["status"] == 0
        matched = np.where(is_valid, rows["matched"], 0)
        valid = [matched, np.where(is_valid, rows["gold"], 0), np.where(is_valid, rows["test"], 0)]
        counted = [matched, rows["all_gold"], rows["all_test"]]
        aligned = [rows[f"aligned_{name}"] for name in ("matched", "gold", "test")]
        systems.append([np.stack(columns, axis=1).astype(np.int64) for columns in (valid, counted, aligned)])
    return list(zip(*systems, strict=True))
