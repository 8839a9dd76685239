"""The panels of a report on how well a model parses: as a whole, by label and length, and the worst sentences.

The same for all models; there are none where nothing was parsed. What comes from data is escaped.
"""

from collections.abc import Iterator

from tsgkit.drawing import Drawing
from tsgkit.evaluation._differences import f1_of_row
from tsgkit.report._comparison import drawn, marked_drawing, marked_gold
from tsgkit.report._model_report import Report
from tsgkit.report._page import escape, table
from tsgkit.report._panels import Panel
from tsgkit.report._plots import bar_plot
from tsgkit.treebank._trees import words

N_LABELS = 20


def scores(report: Report) -> Iterator[str]:
    """The score as a whole."""
    if not report.gold:
        return
    evaluation = report.evaluation
    fallbacks = sum(bool(parse.fallback) for parse in report.parses)
    together = f", by the product of {len(report.models)} models" if len(report.models) > 1 else ""
    yield f"<p>{escape(report.source)}, {len(report.gold):,} sentences{together}.</p>"
    rows = [
        (
            name,
            *(f"{value:.2f}" for value in (each.recall, each.precision, each.f1)),
            f"{each.complete_match:.2f}",
            f"{each.tagging_accuracy:.2f}",
        )
        for name, each in (("Aligned", evaluation.aligned), ("EVALB", evaluation.all), ("Strict", evaluation.strict))
    ]
    yield table(("Score", "Recall", "Precision", "F1", "Complete match", "Tags right"), rows)
    number = f"{fallbacks} sentence{'s'[: fallbacks != 1]}"
    yield f"<p>{number} without an analysis by the grammar got a fallback tree.</p>"


def scores_by_label(report: Report) -> Iterator[str]:
    """The score of every frequent label, and what labels are taken for others."""
    found = [score for score in report.evaluation.by_label()[:N_LABELS] if score.gold] if report.gold else []
    if not found:
        return
    names = [score.label or "(none)" for score in found]
    plot = bar_plot("F1 by label", names, [("F1", [score.f1 for score in found])], "label", "F1")
    rows = [
        (name, score.gold, score.test, *(f"{value:.2f}" for value in (score.recall, score.precision, score.f1)))
        for name, score in zip(names, found, strict=True)
    ]
    head = ("Label", "Gold", "Parsed", "Recall", "Precision", "F1")
    yield f'<div class="plots"><div>{plot}</div><div>{table(head, rows)}</div></div>'
    confusions = report.evaluation.confusions()[:10]
    if confusions:
        rows = [(pair.gold or "(none)", pair.test or "(none)", pair.count) for pair in confusions]
        title = "The same words, another label"
        yield f"<details><summary>{title}</summary>{table(('Gold', 'Parsed', 'Times'), rows, n_text=2)}</details>"


def scores_by_length(report: Report) -> Iterator[str]:
    """The score of sentences of every length."""
    if not report.gold:
        return
    found = report.evaluation.by_length()
    names = [f"{score.shortest}–{score.longest}" for score in found]
    plot = bar_plot("F1 by length", names, [("F1", [score.f1 for score in found])], "words", "F1")
    rows = [
        (name, score.sentences, *(f"{value:.2f}" for value in (score.recall, score.precision, score.f1)))
        for name, score in zip(names, found, strict=True)
    ]
    head = ("Words", "Sentences", "Recall", "Precision", "F1")
    yield f'<div class="plots"><div>{plot}</div><div>{table(head, rows)}</div></div>'


def worst(report: Report) -> Iterator[str]:
    """The sentences with the lowest F1, gold tree and parse side by side."""
    if not report.gold or not report.settings.n_worst:
        return
    parameters = report.parameters
    f1 = [f1_of_row(row) for row in report.evaluation.iterate_rows()]
    order = sorted((number for number, value in enumerate(f1) if value < 100), key=lambda number: f1[number])
    for number in order[: report.settings.n_worst]:
        gold, parse = report.gold[number], report.parses[number]
        fallback = f", a fallback tree ({parse.fallback})" if parse.fallback else ""
        yield f"<h3>Sentence {number + 1}: F1 {f1[number]:.2f}{fallback}</h3>"
        yield f'<p>{escape(" ".join(words(gold)))}</p><div class="pair">'
        if words(gold) == words(parse.tree):
            yield drawn("Gold, ○ missed", marked_gold(gold, parse.tree, parameters))
            yield drawn("Parsed, ✗ wrong", marked_drawing(gold, parse.tree, parameters))
        else:
            yield drawn("Gold", Drawing.of_tree(gold))
            yield drawn("Parsed", Drawing.of_tree(parse.tree))
        yield "</div>"


SCORES = Panel("Scores", scores)
LABELS = Panel("Scores by label", scores_by_label)
LENGTHS = Panel("Scores by length", scores_by_length)
WORST = Panel("The worst sentences", worst)
