"""The panels of a report on what a model has learned: its fragments, its subcategories, derivations.

Which of them a model has, its entry says. What comes from data is escaped.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from nltk.tree import Tree

from tsgkit.drawing import Drawing
from tsgkit.models._fragments import Example
from tsgkit.models._subcategories import SubcategoryTable
from tsgkit.parsing._known_tree import NoDerivationError
from tsgkit.report._derivation import Derivation
from tsgkit.report._model_report import Report
from tsgkit.report._page import escape, table
from tsgkit.report._panels import Panel
from tsgkit.report._plots import bar_plot
from tsgkit.treebank._trees import words

N_HIERARCHIES = 6
N_COMMON = 4
SHORTEST, LONGEST = 5, 16  # of sample sentences, in words
MAX_CANDIDATES = 300  # a treebank may be large, and to derive all of it would take long
Item = TypeVar("Item")


def sizes(report: Report) -> Iterator[str]:
    """How many fragments there are of each size."""
    rows = report.table.size_histogram(report.table.select())
    names = [str(size) for size, *_ in rows]
    bars: list[tuple[str, list[float]]] = [
        ("types", [types for _, types, _ in rows]),
        ("occurrences in the training trees", [occurrences for _, _, occurrences in rows]),
    ]
    plot = bar_plot("Sizes of fragments", names, bars, "rules of a fragment", "number", is_log=True)
    n_types, n_occurrences = sum(types for _, types, _ in rows), sum(number for *_, number in rows)
    mean = sum(size * number for size, _, number in rows) / n_occurrences
    yield (
        f"<p>{n_types:,} different fragments have {n_occurrences:,} occurrences in the training trees; the mean one has"
        f" {mean:.2f} rules. A fragment of size 1 is a rule of the context-free grammar.</p>"
    )
    numbers = table(("Size", "Types", "Occurrences"), rows, n_text=0)
    yield f'<div class="plots"><div>{plot}</div><div>{numbers}</div></div>'


def useful_fragments(report: Report) -> Iterator[str]:
    """Those that save the most: how often they are used, times the rules beyond the first."""
    numbers = report.table.select(min_size=2, kind="initial")
    saved = {number: int(report.table.counts[number] * (report.table.sizes[number] - 1)) for number in numbers}
    best = sorted(numbers, key=lambda number: -saved[number])[: report.settings.n_fragments]
    if not best:
        return
    yield (
        "<p>The most useful fragments are those that save the most steps of derivations: how often one is used,"
        " times the rules that it has beyond the first. An arrow marks an open node.</p>"
    )
    yield cards(report, best)


def auxiliary_trees(report: Report) -> Iterator[str]:
    """Those that are inserted most often."""
    best = report.table.select(kind="auxiliary")[: report.settings.n_fragments]
    if best:
        yield "<p>Auxiliary trees are inserted at nodes with the label of their root; a star marks the foot.</p>"
        yield cards(report, best)


def cards(report: Report, numbers: Sequence[int]) -> str:
    """Fragments as pictures, with their counts and an example."""
    refined = report.deriver.reader.refined
    cards = []
    for number in numbers:
        fragment = report.table.fragment(number)
        picture = Drawing.of_fragment(fragment.tree, refined=refined).svg(standalone=False)
        used = f"{counted(fragment.count, 'occurrence')}, {counted(fragment.size, 'rule')}"
        example = marked_example(report.table.example(number))
        cards.append(f'<div class="card"><p><strong>{used}</strong></p>{picture}<p class="quiet">{example}</p></div>')
    return f'<div class="cards">{"".join(cards)}</div>'


def subcategories(report: Report) -> Iterator[str]:
    """How the commonest labels were split, and what their subcategories have in common."""
    found = report.entry.subcategories(report.model)
    labels = found.labels()
    rows = [
        (label, len(each), sum(one.count for one in each))
        for label in labels
        for each in [found.subcategories(label, 0)]
    ]
    yield (
        "<p>A name has one digit for every split that was kept: NP-01 is half of NP-0. Beside each of the last ones"
        " stand its most frequent words or phrases, and what its nodes have most often below and above them, in the"
        " last sample.</p>"
    )
    yield f"<details><summary>All {len(rows)} labels that were split</summary>"
    yield table(("Label", "Subcategories", "Nodes"), rows)
    yield "</details>"
    for label in labels[:N_HIERARCHIES]:
        yield f"<h3>{escape(label)}</h3>"
        yield hierarchy_table(found, label)


def derivations(report: Report) -> Iterator[str]:
    """Sample sentences with their fragments in colours."""
    chosen = sample_derivations(report)
    if not chosen:
        return
    whose = "Parses of the test sentences" if report.parses else "Training sentences"
    if report.parses and report.inserts:
        whose = "Parses of the test sentences, and training sentences where those have too few insertions"
    yield (
        f"<p>{whose}, each with its most probable derivation. Every fragment has a colour of its own; a ring is a"
        " substitution, a plus an insertion, with a dashed line to the foot.</p>"
    )
    for derivation in chosen:
        yield f"<h3>{escape(' '.join(derivation.words))}</h3>"
        yield f'<div class="scroll" tabindex="0">{derivation.drawing().svg(standalone=False)}</div>'
        yield fragment_list(derivation)


def sample_derivations(report: Report) -> list[Derivation]:
    """Derivations of sentences of medium length from all over; if there are auxiliary trees, with insertions."""
    wanted = report.settings.n_derivations
    if not wanted:
        return []
    found = derived(report, medium([parse.tree for parse in report.parses if not parse.fallback]))
    trained: list[Derivation] = []
    if report.model.corpus is not None and (not report.parses or report.inserts):
        decode = report.model.preparation.decode
        trained = derived(report, [decode(tree) for tree in medium(report.model.corpus.trees())])
    if not report.inserts:
        return spread(found or trained, wanted)
    chosen = spread([each for each in found if has_insertion(each)], wanted)
    chosen += spread([each for each in trained if has_insertion(each)], wanted - len(chosen))
    return chosen or spread(found or trained, wanted)


def derived(report: Report, trees: Sequence[Tree]) -> list[Derivation]:
    """The derivations of the trees that have one."""
    found = []
    for tree in trees:
        try:
            derivation = report.deriver.derive(tree)
        except NoDerivationError:
            continue
        if derivation is not None:
            found.append(derivation)
    return found


def spread(items: Sequence[Item], n_wanted: int) -> list[Item]:
    """So many of them, at even distances."""
    places = np.linspace(0, len(items) - 1, min(n_wanted, len(items))).round().astype(int)
    return [items[place] for place in places.tolist()]


def medium(trees: Iterable[Tree]) -> list[Tree]:
    """Of the trees of medium length, as many as are looked at."""
    return spread([tree for tree in trees if SHORTEST <= len(words(tree)) <= LONGEST], MAX_CANDIDATES)


def has_insertion(derivation: Derivation) -> bool:
    return any(step.is_auxiliary for step in derivation.steps)


def counted(number: float, what: str) -> str:
    """A number of things in words.

    Examples
    --------
    >>> counted(1, "rule"), counted(1200, "rule")
    ('1 rule', '1,200 rules')
    """
    return f"{number:,} {what}{'s'[: number != 1]}"


def marked_example(example: Example) -> str:
    """A training sentence with the words below a fragment marked."""
    before, inside, after = (
        escape(" ".join(part))
        for part in (
            example.words[: example.start],
            example.words[example.start : example.end],
            example.words[example.end :],
        )
    )
    return f"{before} <mark>{inside}</mark> {after}"


def fragment_list(derivation: Derivation) -> str:
    """The fragments of a derivation with their counts."""
    rows = [
        (f"{count:,}" if derivation.measure == "count" else f"{count:.4g}", step.brackets)
        for step, count in zip(derivation.steps, derivation.counts, strict=True)
    ]
    cells = "".join(
        f'<tr><td>{escape(count)}</td><td class="text"><code>{escape(name)}</code></td></tr>' for count, name in rows
    )
    head = f'<tr><th scope="col">{escape(derivation.measure)}</th><th scope="col" class="text">fragment</th></tr>'
    return (
        f"<details><summary>Its fragments</summary><table><thead>{head}</thead><tbody>{cells}</tbody></table></details>"
    )


def hierarchy_table(subcategories: SubcategoryTable, label: str) -> str:
    """The tree of a label's splits, and what the nodes of the last ones have in common."""
    meaning = {each.name: each for each in subcategories.subcategories(label, N_COMMON)}
    head = ("Subcategory", "Nodes", "Examples", "Rules", "Parents")
    kinds = ("text", "", "text", "text", "text")
    cells = [f'<th scope="col" class="{kind}">{name}</th>' for name, kind in zip(head, kinds, strict=True)]
    rows = []
    for depth, name, count in subcategories.hierarchy(label):
        common = meaning.get(name)
        examples: tuple[list[tuple[str, int]], ...] = ([], [], [])
        if common:
            examples = (common.words or subcategories.phrases(name, N_COMMON), common.rules, common.parents)
        texts = [", ".join(f"{example} {number}" for example, number in part) for part in examples]
        parts = "".join(f'<td class="text quiet">{escape(text)}</td>' for text in texts)
        # Splits that were undone leave no row; the depth is that of the name.
        indent = "".join(f'<span class="rung hue{level}"></span>' for level in range(depth))
        rows.append(f'<tr><td class="name">{indent}{escape(name)}</td><td>{count:,}</td>{parts}</tr>')
    return (
        f'<div class="scroll" tabindex="0"><table class="hierarchy"><thead><tr>{"".join(cells)}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


SIZES = Panel("Sizes of fragments", sizes)
FRAGMENTS = Panel("The most useful fragments", useful_fragments)
AUXILIARY = Panel("The most frequent auxiliary trees", auxiliary_trees)
SUBCATEGORIES = Panel("Subcategories", subcategories)
DERIVATIONS = Panel("Derivations", derivations)
