"""A page with models of different kinds side by side: their sizes and training, their scores, where they differ."""

from collections.abc import Iterator, Sequence

from tsgkit.drawing import Drawing
from tsgkit.evaluation._differences import f1_of_row
from tsgkit.report._comparison import drawn, marked_drawing
from tsgkit.report._model_report import Report
from tsgkit.report._page import escape, html_page, table
from tsgkit.report._plots import bar_plot
from tsgkit.report._score_panels import N_LABELS
from tsgkit.treebank._trees import words

TITLE = "Models side by side"


def grouped(models: Sequence[str]) -> list[list[int]]:
    """The numbers of models of the same kind, in the order in which kinds come first.

    Examples
    --------
    >>> grouped(["tsg", "cfg", "tsg"])
    [[0, 2], [1]]
    """
    groups: dict[str, list[int]] = {}
    for number, kind in enumerate(models):
        groups.setdefault(kind, []).append(number)
    return list(groups.values())


def side_by_side_page(reports: Sequence[Report]) -> str:
    """The page on several models or groups of chains, all with the same test sentences, or all without any."""
    body = [f"<h1>{TITLE}</h1>", *summary(reports)]
    if all(report.gold for report in reports):
        for name, heading, content in (
            ("labels", "Scores by label", by_label(reports)),
            ("lengths", "Scores by length", by_length(reports)),
            ("differences", "Where they differ most", differences(reports)),
        ):
            text = "".join(content)
            body.append(f'<section id="{name}"><h2>{heading}</h2>{text}</section>' if text else "")
    return html_page(TITLE, body)


def name_of(report: Report) -> str:
    return ", ".join(report.names)


def summary(reports: Sequence[Report]) -> Iterator[str]:
    """One column for every model, one row for every fact."""
    columns = [{name: (value, note) for name, value, note in report.facts()} for report in reports]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = [("Kind", *(report.entry.title for report in reports))]
    for name in names:
        cells = [column.get(name, ("–", "")) for column in columns]
        rows.append((name, *(f"{value} ({note})" if note else value for value, note in cells)))
    yield table(("Model", *map(name_of, reports)), rows, n_text=len(reports) + 1)
    for report in reports:
        yield f"<p><strong>{escape(name_of(report))}</strong>: {escape(report.how_trained())}</p>"


def by_label(reports: Sequence[Report]) -> Iterator[str]:
    """F1 of every frequent label."""
    scores = [{score.label: score for score in report.evaluation.by_label()} for report in reports]
    labels = [score.label for score in reports[0].evaluation.by_label()[:N_LABELS] if score.gold]
    shown = [label or "(none)" for label in labels]
    f1 = [[found[label].f1 if label in found else 0.0 for label in labels] for found in scores]
    bars = [(name_of(report), values) for report, values in zip(reports, f1, strict=True)]
    rows = [
        (name, scores[0][label].gold, *(f"{values[number]:.2f}" for values in f1))
        for number, (name, label) in enumerate(zip(shown, labels, strict=True))
    ]
    head = ("Label", "Gold", *map(name_of, reports))
    plot = bar_plot("F1 by label", shown, bars, "label", "F1")
    yield f'<div class="plots"><div>{plot}</div><div>{table(head, rows)}</div></div>'


def by_length(reports: Sequence[Report]) -> Iterator[str]:
    """F1 of sentences of every length."""
    found = [report.evaluation.by_length() for report in reports]
    names = [f"{score.shortest}–{score.longest}" for score in found[0]]
    bars = [(name_of(report), [score.f1 for score in scores]) for report, scores in zip(reports, found, strict=True)]
    rows = [
        (name, found[0][number].sentences, *(f"{values[number]:.2f}" for _, values in bars))
        for number, name in enumerate(names)
    ]
    plot = bar_plot("F1 by length", names, bars, "words", "F1")
    head = ("Words", "Sentences", *map(name_of, reports))
    yield f'<div class="plots"><div>{plot}</div><div>{table(head, rows)}</div></div>'


def differences(reports: Sequence[Report]) -> Iterator[str]:
    """The sentences whose F1 differs most, with all trees."""
    parameters = reports[0].parameters
    f1 = [[f1_of_row(row) for row in report.evaluation.iterate_rows()] for report in reports]
    spread = [max(values) - min(values) for values in zip(*f1, strict=True)]
    order = sorted((number for number, value in enumerate(spread) if value > 0), key=lambda number: -spread[number])
    for number in order[: reports[0].settings.n_worst]:
        gold = reports[0].gold[number]
        yield f"<h3>Sentence {number + 1}</h3><p>{escape(' '.join(words(gold)))}</p>"
        yield '<div class="pair">'
        for report, values in zip(reports, f1, strict=True):
            tree = report.parses[number].tree
            is_marked = words(report.gold[number]) == words(tree)
            picture = marked_drawing(report.gold[number], tree, parameters) if is_marked else None
            yield drawn(f"{name_of(report)}: F1 {values[number]:.2f}", picture)
        yield drawn("Gold", Drawing.of_tree(gold))
        yield "</div>"
