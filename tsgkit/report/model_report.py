"""The report on a model: one page with how it was trained, what it learned, and how well it parses.

Every section is there only where it makes sense for the kind of model; all that comes from data is escaped.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from nltk.tree import Tree

from tsgkit import __version__
from tsgkit.drawing import Drawing
from tsgkit.errors import UsageError
from tsgkit.evaluation import Evaluation, evaluate, load_parameters
from tsgkit.evaluation.differences import f1_of_row
from tsgkit.models.fragments import Example, FragmentTable
from tsgkit.models.model import Model
from tsgkit.models.subcategories import SubcategoryTable
from tsgkit.parsing import Parse
from tsgkit.parsing.known_tree import NoDerivationError
from tsgkit.report.comparison import drawn, marked_drawing, marked_gold
from tsgkit.report.derivation import Derivation, Deriver
from tsgkit.report.page import escape, html_page, table
from tsgkit.report.plots import Series, bar_plot, line_plot
from tsgkit.treebank.trees import words

PARAMETERS = "collins"
N_LABELS = 20
N_HIERARCHIES = 6
N_COMMON = 4
# What the table of every iteration has, and how its plot is called.
HISTORIES = (
    ("log_joint", "Log joint probability"),
    ("acceptance", "Accepted proposals"),
    ("fragments", "Different fragments"),
    ("auxiliary", "Different auxiliary trees"),
    ("insertions", "Insertions"),
    ("mean_size", "Mean size of fragments"),
    ("symbols", "Refined symbols"),
    ("rules", "Different refined rules"),
)
SHORTEST, LONGEST = 5, 16  # of sample sentences, in words
MAX_CANDIDATES = 300  # a treebank may be large, and to derive all of it would take long
Item = TypeVar("Item")
KIND_NAMES = {
    "cfg": "Probabilistic context-free grammar",
    "tsg": "Tree-substitution grammar",
    "insertion": "Tree-substitution grammar with insertion",
    "srtsg": "Symbol-refined tree-substitution grammar",
}


@dataclass(frozen=True)
class ReportSettings:
    """How much is shown.

    Parameters
    ----------
    n_fragments : int
        Fragments, and as many auxiliary trees.
    n_derivations : int
    n_worst : int
        Sentences with gold tree and parse side by side.
    """

    n_fragments: int = 24
    n_derivations: int = 6
    n_worst: int = 10

    def __post_init__(self) -> None:
        for name in ("n_fragments", "n_derivations", "n_worst"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} {getattr(self, name)}: must be at least 0")


@dataclass
class Report:
    """What is reported on.

    Parameters
    ----------
    models : list of Model
        Chains: of one kind. What was learned is shown of the first.
    names : list of str
        What they are called.
    settings : ReportSettings
    gold : list of nltk.Tree
        Trees to compare with, clean; none for a report without scores.
    parses : list of Parse
        Of their sentences.
    source : str
        Where they come from.
    """

    models: list[Model]
    names: list[str]
    settings: ReportSettings = field(default_factory=ReportSettings)
    gold: list[Tree] = field(default_factory=list)
    parses: list[Parse] = field(default_factory=list)
    source: str = ""

    def __post_init__(self) -> None:
        kinds = {model.kind for model in self.models}
        if len(kinds) > 1:
            raise UsageError(f"chains are of one kind; these models are of the kinds {', '.join(sorted(kinds))}")
        self.model = self.models[0]
        self.deriver = Deriver(self.model)

    @property
    def table(self) -> FragmentTable:
        return self.deriver.table

    def page(self) -> str:
        """The whole page."""
        kind = KIND_NAMES.get(self.model.kind, self.model.kind)
        title = f"{kind}: {self.names[0]}"
        sections = (
            ("training", "Training", self.training()),
            ("sizes", "Sizes of fragments", self.sizes()),
            ("fragments", "The most useful fragments", self.useful_fragments()),
            ("auxiliary", "The most frequent auxiliary trees", self.auxiliary_trees()),
            ("subcategories", "Subcategories", self.subcategories()),
            ("derivations", "Derivations", self.derivations()),
            ("scores", "Scores", self.scores()),
            ("labels", "Scores by label", self.scores_by_label()),
            ("lengths", "Scores by length", self.scores_by_length()),
            ("worst", "The worst sentences", self.worst()),
        )
        made = [(name, heading, "".join(parts)) for name, heading, parts in sections]
        made = [section for section in made if section[2]]
        links = "".join(f'<li><a href="#{name}">{heading}</a></li>' for name, heading, _ in made)
        body = [f"<h1>{escape(title)}</h1>", self.overview(), f'<nav aria-label="Sections"><ul>{links}</ul></nav>']
        body += [f'<section id="{name}"><h2>{heading}</h2>{content}</section>' for name, heading, content in made]
        return html_page(title, body)

    # ---- how it was made ---------------------------------------------------------------------------------

    def overview(self) -> str:
        info, grammar = self.model.info, self.model.grammar
        facts = [
            ("Training trees", f"{info['trees']:,}" if "trees" in info else "unknown"),
            ("Words in them", f"{info['tokens']:,}" if "tokens" in info else "unknown"),
            ("Labels", f"{len(grammar.labels):,}"),
            ("Rules of the grammar", f"{grammar.n_rules:,}"),
        ]
        if "samples" in info:
            facts.append(("Samples in its mean", f"{info['samples']:,}"))
        facts.append(("tsgkit", str(info.get("tsgkit", __version__))))
        result = table(("", ""), facts)
        settings = info.get("settings")
        if isinstance(settings, dict):
            rows = [(name.replace("_", " "), value) for name, value in settings.items()]
            result += f"<details><summary>Settings</summary>{table(('Setting', 'Value'), rows)}</details>"
        return result

    def history(self, name: str) -> list[Series]:
        """What was recorded in every iteration, of every chain that has it."""
        found = []
        for model, title in zip(self.models, self.names, strict=True):
            values = model.state.get(f"history_{name}")
            if values is not None and len(values):
                found.append(Series(title, range(1, len(values) + 1), values.tolist()))
        return found

    def training(self) -> Iterator[str]:
        """Plots of every iteration, and how the chains ended."""
        plots = []
        for name, title in HISTORIES:
            series = self.history(name)
            # What never changes has no plot, such as sites where there are none.
            if series and any(min(each.y) != max(each.y) for each in series):
                plots.append(f"<div><h3>{title}</h3>{line_plot(title, series, 'iteration', title.lower())}</div>")
        if not plots:
            return
        rows = []
        for model, title in zip(self.models, self.names, strict=True):
            joint, accepted = (model.state.get(f"history_{name}", np.empty(0)) for name in ("log_joint", "acceptance"))
            if len(joint):
                half = joint[len(joint) // 2 :]
                means = (f"{joint[-1]:,.1f}", f"{half.mean():,.1f}", f"{half.max():,.1f}", f"{accepted.mean():.1%}")
                rows.append((title, model.info.get("seed", ""), f"{len(joint):,}", *means))
        head = ("Chain", "Seed", "Iterations", "Last log joint", "Mean of 2nd half", "Best of it", "Accepted")
        yield table(head, rows)
        yield f'<div class="plots">{"".join(plots)}</div>'

    # ---- what it learned ---------------------------------------------------------------------------------

    @property
    def has_fragments(self) -> bool:
        return self.model.kind != "cfg"

    def sizes(self) -> Iterator[str]:
        """How many fragments there are of each size."""
        if not self.has_fragments:
            return
        rows = self.table.size_histogram(self.table.select())
        names = [str(size) for size, *_ in rows]
        bars: list[tuple[str, list[float]]] = [
            ("types", [types for _, types, _ in rows]),
            ("places in the training trees", [places for _, _, places in rows]),
        ]
        plot = bar_plot("Sizes of fragments", names, bars, "rules of a fragment", "number", is_log=True)
        n_types, n_places = sum(types for _, types, _ in rows), sum(places for *_, places in rows)
        mean = sum(size * places for size, _, places in rows) / n_places
        yield (
            f"<p>{n_types:,} different fragments cover {n_places:,} places of the training trees; the mean fragment has"
            f" {mean:.2f} rules. A fragment of size 1 is a rule of the context-free grammar.</p>"
        )
        numbers = table(("Size", "Types", "Places"), rows, n_text=0)
        yield f'<div class="plots"><div>{plot}</div><div>{numbers}</div></div>'

    def useful_fragments(self) -> Iterator[str]:
        """Those that save the most: how often they are used, times the rules beyond the first."""
        if not self.has_fragments:
            return
        numbers = self.table.select(min_size=2, kind="initial")
        saved = {number: int(self.table.counts[number] * (self.table.sizes[number] - 1)) for number in numbers}
        best = sorted(numbers, key=lambda number: -saved[number])[: self.settings.n_fragments]
        if not best:
            return
        yield (
            "<p>The most useful fragments are those that save the most steps of derivations: how often one is used,"
            " times the rules that it has beyond the first. An arrow marks an open node.</p>"
        )
        yield self.cards(best)

    def auxiliary_trees(self) -> Iterator[str]:
        best = self.table.select(kind="auxiliary")[: self.settings.n_fragments] if self.has_fragments else []
        if best:
            yield "<p>Auxiliary trees are inserted at nodes with the label of their root; a star marks the foot.</p>"
            yield self.cards(best)

    def cards(self, numbers: Sequence[int]) -> str:
        """Fragments as pictures, with their counts and an example."""
        refined = self.refined_names()
        cards = []
        for number in numbers:
            fragment = self.table.fragment(number)
            picture = Drawing.of_fragment(fragment.tree, refined=refined).svg(standalone=False)
            used = (
                f"{fragment.count:,} place{'s'[: fragment.count != 1]}, {fragment.size} rule{'s'[: fragment.size != 1]}"
            )
            example = marked_example(self.table.example(number))
            cards.append(
                f'<div class="card"><p><strong>{used}</strong></p>{picture}<p class="quiet">{example}</p></div>'
            )
        return f'<div class="cards">{"".join(cards)}</div>'

    def refined_names(self) -> dict[str, tuple[str, str]]:
        """The labels and digits of the names of subcategories."""
        if self.model.kind != "srtsg":
            return {}
        subcategories = SubcategoryTable.of_model(self.model)
        labels = [subcategories.corpus.labels[label] for label in subcategories.label.tolist()]
        pairs = zip(subcategories.names, labels, strict=True)
        return {name: (label, name.removeprefix(label).removeprefix("-")) for name, label in pairs if name != label}

    def subcategories(self) -> Iterator[str]:
        """How the commonest labels were split, and what their subcategories have in common."""
        if self.model.kind != "srtsg":
            return
        found = SubcategoryTable.of_model(self.model)
        labels = found.labels()
        rows = [
            (label, len(each), sum(one.count for one in each))
            for label in labels
            for each in [found.subcategories(label, 0)]
        ]
        yield (
            "<p>A name has one digit for every split that was kept: NP-01 is half of NP-0. Beside each of the last ones"
            " stands what its nodes have most often below and above them in the last sample.</p>"
        )
        yield f"<details><summary>All {len(rows)} labels that were split</summary>"
        yield table(("Label", "Subcategories", "Nodes"), rows)
        yield "</details>"
        for label in labels[:N_HIERARCHIES]:
            yield f"<h3>{escape(label)}</h3>"
            yield hierarchy_table(found, label)

    def derivations(self) -> Iterator[str]:
        """Sample sentences with their fragments in colours."""
        chosen = self.sample_derivations()
        if not chosen:
            return
        whose = "Parses of the test sentences" if self.parses else "Training sentences"
        if self.parses and self.inserts:
            whose = "Parses of the test sentences, and training sentences where those have too few insertions"
        yield (
            f"<p>{whose}, each with its most probable derivation. Every fragment has a colour of its own; a ring is a"
            " substitution, a plus an insertion, with a dashed line to the foot.</p>"
        )
        for derivation in chosen:
            yield f"<h3>{escape(' '.join(derivation.words))}</h3>"
            yield f'<div class="scroll">{derivation.drawing().svg(standalone=False)}</div>'
            yield fragment_list(derivation)

    @property
    def inserts(self) -> bool:
        """Whether there are auxiliary trees."""
        return bool(self.table.is_auxiliary.any())

    def sample_derivations(self) -> list[Derivation]:
        """Derivations of sentences of medium length from all over; if there are auxiliary trees, with insertions."""
        wanted = self.settings.n_derivations
        found = self.derived(medium([parse.tree for parse in self.parses if not parse.fallback]))
        trained: list[Derivation] = []
        if self.model.corpus is not None and (not self.parses or self.inserts):
            decode = self.model.preparation.decode
            trained = self.derived([decode(tree) for tree in medium(self.model.corpus.trees())])
        if not self.inserts:
            return spread(found or trained, wanted)
        chosen = spread([each for each in found if has_insertion(each)], wanted)
        chosen += spread([each for each in trained if has_insertion(each)], wanted - len(chosen))
        return chosen or spread(found or trained, wanted)

    def derived(self, trees: Sequence[Tree]) -> list[Derivation]:
        """The derivations of the trees that have one."""
        found = []
        for tree in trees:
            try:
                derivation = self.deriver.derive(tree)
            except NoDerivationError:
                continue
            if derivation is not None:
                found.append(derivation)
        return found

    # ---- how well it parses ------------------------------------------------------------------------------

    @property
    def evaluation(self) -> Evaluation:
        if not hasattr(self, "_evaluation"):
            self._evaluation = evaluate(self.gold, [parse.tree for parse in self.parses], PARAMETERS)
        return self._evaluation

    def scores(self) -> Iterator[str]:
        """The score as a whole."""
        if not self.gold:
            return
        score, strict = self.evaluation.all, self.evaluation.strict
        fallbacks = sum(bool(parse.fallback) for parse in self.parses)
        together = f", by the product of {len(self.models)} models" if len(self.models) > 1 else ""
        yield f"<p>{escape(self.source)}, {len(self.gold):,} sentences{together}.</p>"
        rows = [
            (
                name,
                *(f"{value:.2f}" for value in (each.recall, each.precision, each.f1)),
                f"{each.complete_match:.2f}",
                f"{each.tagging_accuracy:.2f}",
            )
            for name, each in (("EVALB", score), ("Strict", strict))
        ]
        yield table(("", "Recall", "Precision", "F1", "Complete match", "Tags right"), rows)
        number = f"{fallbacks} sentence{'s'[: fallbacks != 1]}"
        yield f"<p>{number} without an analysis by the grammar got a fallback tree.</p>"

    def scores_by_label(self) -> Iterator[str]:
        found = [score for score in self.evaluation.by_label()[:N_LABELS] if score.gold] if self.gold else []
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
        confusions = self.evaluation.confusions()[:10]
        if confusions:
            rows = [(pair.gold or "(none)", pair.test or "(none)", pair.count) for pair in confusions]
            title = "The same words, another label"
            yield f"<details><summary>{title}</summary>{table(('Gold', 'Parsed', 'Times'), rows, n_text=2)}</details>"

    def scores_by_length(self) -> Iterator[str]:
        if not self.gold:
            return
        found = self.evaluation.by_length()
        names = [f"{score.shortest}–{score.longest}" for score in found]
        plot = bar_plot("F1 by length", names, [("F1", [score.f1 for score in found])], "words", "F1")
        rows = [
            (name, score.sentences, *(f"{value:.2f}" for value in (score.recall, score.precision, score.f1)))
            for name, score in zip(names, found, strict=True)
        ]
        head = ("Words", "Sentences", "Recall", "Precision", "F1")
        yield f'<div class="plots"><div>{plot}</div><div>{table(head, rows)}</div></div>'

    def worst(self) -> Iterator[str]:
        """The sentences with the lowest F1, gold tree and parse side by side."""
        if not self.gold or not self.settings.n_worst:
            return
        parameters = load_parameters(PARAMETERS)
        f1 = [f1_of_row(row) for row in self.evaluation.iterate_rows()]
        order = sorted((number for number, value in enumerate(f1) if value < 100), key=lambda number: f1[number])
        for number in order[: self.settings.n_worst]:
            gold, parse = self.gold[number], self.parses[number]
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


def spread(items: Sequence[Item], n_wanted: int) -> list[Item]:
    """So many of them, at even distances."""
    places = np.linspace(0, len(items) - 1, min(n_wanted, len(items))).round().astype(int)
    return [items[place] for place in places.tolist()]


def medium(trees: Iterable[Tree]) -> list[Tree]:
    """Of the trees of medium length, as many as are looked at."""
    return spread([tree for tree in trees if SHORTEST <= len(words(tree)) <= LONGEST], MAX_CANDIDATES)


def has_insertion(derivation: Derivation) -> bool:
    return any(step.is_auxiliary for step in derivation.steps)


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
    head = ("Subcategory", "Nodes", "Words", "Rules", "Parents")
    kinds = ("text", "", "text", "text", "text")
    cells = [f'<th scope="col" class="{kind}">{name}</th>' for name, kind in zip(head, kinds, strict=True)]
    rows = []
    for depth, name, count in subcategories.hierarchy(label):
        common = meaning.get(name)
        examples = (common.words, common.rules, common.parents) if common else ((), (), ())
        texts = [", ".join(f"{example} {number}" for example, number in part) for part in examples]
        parts = "".join(f'<td class="text quiet">{escape(text)}</td>' for text in texts)
        # Splits that were undone leave no row; the depth is that of the name.
        indent = "".join(f'<span class="rung hue{level}"></span>' for level in range(depth))
        rows.append(f'<tr><td class="name">{indent}{escape(name)}</td><td>{count:,}</td>{parts}</tr>')
    return (
        f'<div class="scroll"><table class="hierarchy"><thead><tr>{"".join(cells)}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
