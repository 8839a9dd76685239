"""The report on a model: one page with how it was trained, what it learned, and how well it parses.

Which sections there are, the entry of the model says (`tsgkit.report.panels`); all that comes from data is escaped.
"""

from dataclasses import dataclass, field
from functools import cached_property

from nltk.tree import Tree

from tsgkit import __version__
from tsgkit.errors import UsageError
from tsgkit.evaluation import Evaluation, evaluate
from tsgkit.inference.entry import entry_of
from tsgkit.models.fragments import FragmentTable
from tsgkit.models.model import Model
from tsgkit.parsing import Parse
from tsgkit.report.derivation import Deriver
from tsgkit.report.page import escape, html_page, table
from tsgkit.report.panels import PANELS, SCORE_PANELS

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
        self.entry = entry_of(self.model)
        self.deriver = Deriver(self.model)

    @property
    def table(self) -> FragmentTable:
        return self.deriver.table

    def page(self) -> str:
        """The whole page."""
        title = f"{self.entry.title}: {self.names[0]}"
        made = []
        for name in (*self.entry.panels, *SCORE_PANELS):
            panel = PANELS.require(name)
            made.append((name, panel.heading, "".join(panel.content(self))))
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

    @property
    def inserts(self) -> bool:
        """Whether there are auxiliary trees."""
        return bool(self.table.is_auxiliary.any())

    @cached_property
    def evaluation(self) -> Evaluation:
        """The scores of the parses."""
        return evaluate(self.gold, [parse.tree for parse in self.parses], PARAMETERS)
