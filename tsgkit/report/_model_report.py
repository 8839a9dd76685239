"""The report on a model: one page with how it was trained, what it learned, and how well it parses.

Which sections there are, the entry of the model says (`tsgkit.report.panels`); all that comes from data is escaped.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from nltk.tree import Tree

from tsgkit import __version__
from tsgkit.errors import UsageError
from tsgkit.evaluation import Evaluation, Parameters, evaluate, load_parameters
from tsgkit.inference._entry import entry_of
from tsgkit.models._fragments import FragmentTable
from tsgkit.models._model import Model
from tsgkit.parsing import Parse
from tsgkit.report._derivation import Deriver
from tsgkit.report._page import escape, html_page, table, tiles
from tsgkit.report._panels import COMMON_PANELS, PANELS
from tsgkit.report._training import diagnoses_of, phases_of, require_facts

PARAMETERS = "collins"


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
    seconds : float
        How long parsing took; 0 if it was not measured.
    threads : int
        Of the parser.
    parameters : Parameters
        Of EVALB, for the scores.
    """

    models: list[Model]
    names: list[str]
    settings: ReportSettings = field(default_factory=ReportSettings)
    gold: list[Tree] = field(default_factory=list)
    parses: list[Parse] = field(default_factory=list)
    source: str = ""
    seconds: float = 0.0
    threads: int = 1
    parameters: Parameters = field(default_factory=lambda: load_parameters(PARAMETERS))

    def __post_init__(self) -> None:
        kinds = {model.kind for model in self.models}
        if len(kinds) > 1:
            raise UsageError(f"chains are of one kind; these models are of the kinds {', '.join(sorted(kinds))}")
        for model, name in zip(self.models, self.names, strict=True):
            require_facts(model, name)
        self.model = self.models[0]
        self.entry = entry_of(self.model)
        self.deriver = Deriver(self.model)

    @property
    def table(self) -> FragmentTable:
        return self.deriver.table

    def page(self) -> str:
        """The whole page."""
        title = f"{self.entry.title}: {self.names[0]}"
        made = []
        for name in (*self.entry.panels, *COMMON_PANELS):
            panel = PANELS.require(name)
            made.append((name, panel.heading, "".join(panel.content(self))))
        made = [section for section in made if section[2]]
        links = "".join(f'<li><a href="#{name}">{heading}</a></li>' for name, heading, _ in made)
        body = [f"<h1>{escape(title)}</h1>", self.summary(), f'<nav aria-label="Sections"><ul>{links}</ul></nav>']
        body += [f'<section id="{name}"><h2>{heading}</h2>{content}</section>' for name, heading, content in made]
        return html_page(title, body)

    # ---- the summary -------------------------------------------------------------------------------------

    def summary(self) -> str:
        """What matters most: scores, speed, sizes, and how the model was trained."""
        result = tiles(self.facts()) + f"<p>{escape(self.how_trained())}</p>"
        settings = self.model.info.get("settings")
        if settings:
            rows = [(str(name).replace("_", " "), value) for name, value in settings.items()]
            result += f"<details><summary>Settings</summary>{table(('Setting', 'Value'), rows)}</details>"
        return result

    def facts(self) -> list[tuple[str, str, str]]:
        """Name, value and a note on it."""
        return [*self.score_facts(), *self.size_facts()]

    def score_facts(self) -> Iterator[tuple[str, str, str]]:
        if not self.gold:
            return
        evaluation = self.evaluation
        yield "F1", f"{evaluation.aligned.f1:.2f}", f"EVALB {evaluation.all.f1:.2f}, strict {evaluation.strict.f1:.2f}"
        n_fallbacks = sum(bool(parse.fallback) for parse in self.parses)
        yield "Test sentences", f"{len(self.gold):,}", f"{n_fallbacks:,} with fallback trees"
        if self.seconds:
            n_words = sum(len(parse.words) for parse in self.parses)
            note = f"{n_words / self.seconds:,.0f} words; {self.threads} thread{'s'[: self.threads != 1]}"
            yield "Sentences per second", f"{len(self.parses) / self.seconds:,.1f}", note

    def size_facts(self) -> Iterator[tuple[str, str, str]]:
        grammar = self.model.grammar
        yield "Rules of the grammar", f"{grammar.n_rules:,}", f"{len(grammar.labels):,} labels"
        if self.table.measure == "count":
            mean = float(np.average(self.table.sizes, weights=self.table.counts))
            yield "Different fragments", f"{int((self.table.counts > 0).sum()):,}", f"mean size {mean:.2f}"
        log_joint = [one for one in diagnoses_of(self) if one.quantity == "log_joint"]
        if log_joint:
            chains = f"{len(self.models)} chains" if len(self.models) > 1 else "halves of one chain"
            yield "R-hat of the log joint", f"{log_joint[0].r_hat:.3f}", chains

    def how_trained(self) -> str:
        """How the model was trained, in a sentence or two."""
        info = self.model.info
        trees = f"{info['trees']:,} trees" if "trees" in info else "a treebank of unknown size"
        tokens = f" with {info['tokens']:,} words" if "tokens" in info else ""
        text = f"Trained on {trees}{tokens}"
        if info.get("iterations"):
            phases = phases_of(self.model)
            parts = ", ".join(f"{phase.title}: {phase.iterations:,}" for phase in phases) if len(phases) > 1 else ""
            text += f" in {info['iterations']:,} iterations{f' ({parts})' if parts else ''}"
        if len(self.models) > 1:
            text += (
                f", {len(self.models)} chains with the seeds {', '.join(str(m.info.get('seed')) for m in self.models)}"
            )
        elif "seed" in info:
            text += f" with the seed {info['seed']}"
        if info.get("samples", 1) > 1:
            text += f"; the grammar is the mean of {info['samples']:,} samples"
        if self.model.span_labels is not None:
            text += ", and parses with a model of the labels of spans"
        return f"{text}. Made with tsgkit {info.get('tsgkit', __version__)}."

    @property
    def inserts(self) -> bool:
        """Whether there are auxiliary trees."""
        return bool(self.table.is_auxiliary.any())

    @cached_property
    def evaluation(self) -> Evaluation:
        """The scores of the parses."""
        return evaluate(self.gold, [parse.tree for parse in self.parses], self.parameters)
