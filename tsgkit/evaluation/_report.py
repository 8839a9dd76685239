"""Scores as text and as plain values: EVALB's own layout, and tables of what EVALB does not report.

Last stage of the flow: trees again -> a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tsgkit._brackets import ROW_FIELDS
from tsgkit.evaluation._scores import AlignedScore, BracketCounts, Score, StrictScore, percent

if TYPE_CHECKING:
    from tsgkit.evaluation._breakdown import Confusion, LabelScore, LengthScore
    from tsgkit.evaluation._evalb import Comparison, Evaluation
    from tsgkit.evaluation._significance import BootstrapTest

RULE = "=" * 76 + "\n"
# Columns and spelling are EVALB's: other programs parse them.
TABLE_HEAD = (
    "  Sent.                        Matched  Bracket   Cross        Correct Tag\n"
    " ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy\n"
) + RULE
N_CONFUSIONS = 10


def table_foot(score: Score) -> str:
    """The line of totals under EVALB's table, which leaves out the brackets if one side has none."""
    brackets = ""
    if score.gold and score.test:
        brackets = (
            f"{'':16}{score.recall:6.2f} {score.precision:6.2f} "
            f"{score.matched:6} {score.gold:5} {score.test:5}  {score.crossing:5}"
        )
    return f"{RULE}{brackets}  {score.words:5} {score.tags:5}   {score.tagging_accuracy:6.2f}\n"


def evalb_summary(all_sentences: Score, short_sentences: Score, cutoff_length: int) -> str:
    """EVALB's summary: one block for all sentences, one for short sentences."""
    return (
        f"=== Summary ===\n\n-- All --\n{evalb_block(all_sentences)}"
        f"\n-- len<={cutoff_length} --\n{evalb_block(short_sentences)}"
    )


def evalb_block(score: Score) -> str:
    # 0 / 0 as most C libraries print it.
    f_measure = f"{score.f1:6.2f}" if score.matched else "  -nan"
    return lines(
        ("Number of sentence", f"{score.sentences:6}"),
        ("Number of Error sentence", f"{score.errors:6}"),
        ("Number of Skip  sentence", f"{score.skips:6}"),
        ("Number of Valid sentence", f"{score.valid:6}"),
        ("Bracketing Recall", f"{score.recall:6.2f}"),
        ("Bracketing Precision", f"{score.precision:6.2f}"),
        ("Bracketing FMeasure", f_measure),
        ("Complete match", f"{score.complete_match:6.2f}"),
        ("Average crossing", f"{score.average_crossing:6.2f}"),
        ("No crossing", f"{percent(score.no_crossing, score.valid):6.2f}"),
        ("2 or less crossing", f"{percent(score.two_or_less_crossing, score.valid):6.2f}"),
        ("Tagging accuracy", f"{score.tagging_accuracy:6.2f}"),
    )


def strict_summary(score: StrictScore) -> str:
    """The strict score, in the layout of EVALB's blocks."""
    return "=== Strict: failed and mismatched sentences count as wrong ===\n\n" + summary_of_all(score)


def aligned_summary(score: AlignedScore) -> str:
    """The aligned score, in the layout of EVALB's blocks."""
    return "=== Aligned: the same, with punctuation by the gold tags ===\n\n" + summary_of_all(score)


def summary_of_all(score: StrictScore) -> str:
    return lines(
        ("Number of sentence", f"{score.sentences:6}"),
        ("Bracketing Recall", f"{score.recall:6.2f}"),
        ("Bracketing Precision", f"{score.precision:6.2f}"),
        ("Bracketing FMeasure", f"{score.f1:6.2f}"),
        ("Complete match", f"{score.complete_match:6.2f}"),
        ("Tagging accuracy", f"{score.tagging_accuracy:6.2f}"),
    )


def headline(evaluation: Evaluation) -> str:
    """The three F-measures on one line, the one to compare models with first."""
    n_left_out = evaluation.all.errors + evaluation.all.skips
    without = f" ({n_left_out} sentence{'s'[: n_left_out != 1]} left out)" if n_left_out else ""
    return (
        f"aligned F1 {evaluation.aligned.f1:.2f}, EVALB {evaluation.f1:.2f}{without}, strict {evaluation.strict.f1:.2f}"
    )


def html_table(evaluation: Evaluation) -> str:
    """The three scores as an HTML table; there is no text of the files in it."""
    heads = ("", "Recall", "Precision", "F1", "Complete match", "Tagging accuracy", "Sentences")
    scores: list[tuple[str, Score | StrictScore, int]] = [
        ("Aligned", evaluation.aligned, evaluation.aligned.sentences),
        ("EVALB", evaluation.all, evaluation.all.valid),
        ("Strict", evaluation.strict, evaluation.strict.sentences),
    ]
    body = ""
    for name, one, n_sentences in scores:
        figures = (one.recall, one.precision, one.f1, one.complete_match, one.tagging_accuracy)
        cells = (name, *(f"{figure:.2f}" for figure in figures), n_sentences)
        body += f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    head = "".join(f"<th>{cell}</th>" for cell in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def lines(*entries: tuple[str, str]) -> str:
    return "".join(f"{name:<26}= {value}\n" for name, value in entries)


def columns(head: Sequence[str], rows: Sequence[Sequence[str]], n_left: int = 1) -> str:
    """A table with columns as wide as needed; the first `n_left` columns are aligned left."""
    table = [head, *rows]
    widths = [max(len(row[index]) for row in table) for index in range(len(head))]
    return "".join(
        "  ".join(
            cell.ljust(width) if index < n_left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        + "\n"
        for row in table
    )


def rates(score: BracketCounts | LabelScore) -> tuple[str, str, str]:
    return f"{score.recall:.2f}", f"{score.precision:.2f}", f"{score.f1:.2f}"


def printed(label: str) -> str:
    """The label as a table shows it: the outer bracket of ``( (S ...))`` has the empty label."""
    return label or "(none)"


def label_table(scores: Sequence[LabelScore], confusions: Sequence[Confusion]) -> str:
    """Scores by label, and the most frequent label confusions."""
    head = ("Label", "Gold", "matched", "Test", "matched", "Recall", "Prec.", "F1")
    rows = [
        (
            printed(score.label),
            str(score.gold),
            str(score.matched_gold),
            str(score.test),
            str(score.matched_test),
            *rates(score),
        )
        for score in scores
    ]
    text = "=== By label ===\n\n" + columns(head, rows)
    if confusions:
        pairs = [(printed(pair.gold), printed(pair.test), str(pair.count)) for pair in confusions[:N_CONFUSIONS]]
        text += "\nSame span, different label:\n\n" + columns(("Gold", "Test", "Count"), pairs, n_left=2)
    return text


def length_table(scores: Sequence[LengthScore]) -> str:
    """Scores by length of the gold sentence."""
    head = ("Length", "Sentences", "Valid", "Gold", "Test", "Matched", "Recall", "Prec.", "F1", "Complete")
    rows = [
        (
            f"{score.shortest}-{score.longest}",
            *(str(n) for n in (score.sentences, score.valid, score.gold, score.test, score.matched)),
            *rates(score),
            f"{percent(score.complete, score.valid):.2f}",
        )
        for score in scores
    ]
    return "=== By length ===\n\n" + columns(head, rows)


def comparison(pair: Comparison) -> str:
    """Two systems side by side, the differences, and the paired bootstrap test."""
    first, second = pair.first, pair.second
    return (
        f"A = {first.test_name}\nB = {second.test_name}\n"
        f"\n=== EVALB ===\n\n{side_by_side(first.all, second.all)}\n{significance(pair, pair.evalb)}"
        f"\n=== Strict ===\n\n{side_by_side(first.strict, second.strict)}\n{significance(pair, pair.strict)}"
        f"\n=== Aligned ===\n\n{side_by_side(first.aligned, second.aligned)}\n{significance(pair, pair.aligned)}"
    )


def side_by_side(first: Score | StrictScore, second: Score | StrictScore) -> str:
    scores = (
        ("Recall", first.recall, second.recall),
        ("Precision", first.precision, second.precision),
        ("F1", first.f1, second.f1),
        ("Complete match", first.complete_match, second.complete_match),
        ("Tagging accuracy", first.tagging_accuracy, second.tagging_accuracy),
    )
    rows = [(name, f"{a:.2f}", f"{b:.2f}", f"{a - b:+.2f}") for name, a, b in scores]
    if isinstance(first, Score) and isinstance(second, Score):
        counts = (("Errors", first.errors, second.errors), ("Skips", first.skips, second.skips))
        rows += [(name, str(a), str(b), f"{a - b:+d}") for name, a, b in counts]
    return columns(("", "A", "B", "A - B"), rows)


def significance(pair: Comparison, test: BootstrapTest) -> str:
    return (
        f"F1 difference {test.difference:+.2f}, 95 % interval {test.low:+.2f} to {test.high:+.2f}, "
        f"p = {test.p_value:.4f}\n"
        f"(paired bootstrap over {pair.first.all.sentences} sentences, two-sided, "
        f"{test.n_resamples} resamples, seed {test.seed})\n"
    )


def as_dict(evaluation: Evaluation, *, sentences: bool) -> dict[str, Any]:
    """All results of an evaluation as plain values."""
    result: dict[str, Any] = {
        "gold": evaluation.gold_name,
        "test": evaluation.test_name,
        "parameters": asdict(evaluation.parameters),
        "all": score_dict(evaluation.all),
        "cutoff": score_dict(evaluation.cutoff),
        "strict": score_dict(evaluation.strict),
        "aligned": score_dict(evaluation.aligned),
        "unused_labels": list(evaluation.unused_labels),
        "deleted_words": evaluation.n_deleted_words,
        "errors": [asdict(problem) for problem in evaluation.problems],
        "stopped": evaluation.stopped,
    }
    if sentences:
        result["sentences"] = [
            {"id": number, **dict(zip(ROW_FIELDS, row, strict=True))}
            for number, row in enumerate(evaluation.iterate_rows(), start=1)
        ]
    return result


def score_dict(score: Score | StrictScore | LabelScore | LengthScore) -> dict[str, Any]:
    """The counts and the rates of a score; a rate with the denominator 0 is null."""
    result = asdict(score)
    for name, whole in (
        ("recall", score.gold),
        ("precision", score.test),
        ("f1", score.gold + score.test),
    ):
        result[name] = getattr(score, name) if whole else None
    if isinstance(score, Score | StrictScore):
        n_sentences = score.valid if isinstance(score, Score) else score.sentences
        result["complete_match"] = score.complete_match if n_sentences else None
        result["tagging_accuracy"] = score.tagging_accuracy if score.words else None
    if isinstance(score, Score):
        result["valid"] = score.valid
        result["average_crossing"] = score.average_crossing if score.valid else None
    return result
