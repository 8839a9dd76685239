"""A page that compares two parsers, and drawings of trees with correct and wrong brackets marked."""

from collections.abc import Iterator, Sequence

from nltk.tree import Tree

from tsgkit.drawing import Drawing
from tsgkit.evaluation._differences import (
    Difference,
    Differences,
    ScoredBracket,
    mark_brackets,
    phrases,
)
from tsgkit.evaluation._parameters import Parameters
from tsgkit.report._page import escape, html_page, table
from tsgkit.treebank._trees import preorder, words


def marked_drawing(gold: Tree, test: Tree, parameters: Parameters) -> Drawing:
    """A test tree with its correct and wrong brackets marked."""
    n_nodes = sum(1 for _ in preorder(test))
    return Drawing.of_tree(test, marks=mark_brackets(gold, test, parameters).of_test(n_nodes))


def marked_gold(gold: Tree, test: Tree, parameters: Parameters) -> Drawing:
    """A gold tree with the brackets marked that a test tree has or misses."""
    n_nodes = sum(1 for _ in preorder(gold))
    return Drawing.of_tree(gold, marks=mark_brackets(gold, test, parameters).of_gold(n_nodes))


def drawn(title: str, drawing: Drawing | None) -> str:
    picture = "<p>No tree for these words.</p>" if drawing is None else drawing.svg(standalone=False)
    return f'<div tabindex="0"><h4>{escape(title)}</h4>{picture}</div>'


def comparison_page(found: Differences, chosen: Sequence[Difference], parameters: Parameters) -> str:
    """A page on where two parsers differ.

    Parameters
    ----------
    found : Differences
    chosen : sequence of Difference
        The sentences to show.
    parameters : Parameters
    """
    return html_page(
        "Two parsers compared",
        [*summary(found), *(part for each in chosen for part in sentence_parts(each, parameters))],
    )


def summary(found: Differences) -> Iterator[str]:
    n_first, n_second = found.n_better
    n_all = found.first.all.sentences
    yield "<h1>Two parsers compared</h1>"
    rows = [
        (
            f"{name} = {evaluation.test_name}",
            f"{evaluation.recall:.2f}",
            f"{evaluation.precision:.2f}",
            f"{evaluation.f1:.2f}",
            f"{evaluation.strict.f1:.2f}",
            f"{evaluation.aligned.f1:.2f}",
            n_better,
        )
        for name, evaluation, n_better in (("A", found.first, n_first), ("B", found.second, n_second))
    ]
    yield table(("Parser", "Recall", "Precision", "F1", "Strict F1", "Aligned F1", "Better on"), rows)
    yield f"<p>{n_all} sentences; the same brackets on {n_all - len(found.sentences)}.</p>"
    if found.by_label():
        yield "<h2>Gold phrases found by one parser only</h2>"
        yield table(("Label", "Only A", "Only B"), [(label or "(none)", *rest) for label, *rest in found.by_label()])


def sentence_parts(each: Difference, parameters: Parameters) -> Iterator[str]:
    sentence = words(each.gold)
    yield f"<h2>Sentence {each.number}: A {each.first_f1:.2f}, B {each.second_f1:.2f}</h2>"
    yield f"<p>{escape(' '.join(sentence))}</p>"
    groups: Sequence[tuple[str, str, list[ScoredBracket]]] = (
        ("Only A found", "right", each.only_first),
        ("Only B found", "right", each.only_second),
        ("Wrong in A", "wrong", each.first_mistakes),
        ("Wrong in B", "wrong", each.second_mistakes),
    )
    items = [
        f'<li><span class="{kind}">{title}</span>: {escape(phrase)}</li>'
        for title, kind, brackets in groups
        for phrase in phrases(brackets, sentence)
    ]
    yield f"<ul>{''.join(items)}</ul>"
    yield '<div class="pair">'
    for name, tree in (("A", each.first), ("B", each.second)):
        yield drawn(name, None if tree is None else marked_drawing(each.gold, tree, parameters))
    yield drawn("Gold", Drawing.of_tree(each.gold))
    yield "</div>"
