"""Sphinx settings, the directive that puts the usage texts of all commands on a page, and equations without network."""

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))
from recorded_tables import MEASURED_OPTIONS, RESULTS, aligned_table, figure_columns, read_record

from tsgkit import __version__
from tsgkit._usage import command_names

project = "tsgkit"
author = "The tsgkit developers"
project_copyright = author
release = version = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser"]
# The pages on binarisation and unknown words are parts of the page on preprocessing.
exclude_patterns = ["_build", "data", "preprocessing-*.rst"]
# Docstrings mark names with single backticks.
default_role = "py:obj"
highlight_language = "text"

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections name the types, in words
numpydoc_show_class_members = False
templates_path = ["_templates"]

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"tsgkit {release}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]


class CommandUsages(Directive):
    """A section for every command, with its usage text as ``--help`` prints it."""

    def run(self) -> list[nodes.Node]:
        return [self.section(name) for name in command_names()]

    def section(self, name: str) -> nodes.section:
        usage = inspect.getdoc(importlib.import_module(f"tsgkit._tools.{name}")) or ""
        section = nodes.section(ids=[f"tsgkit-{name}"], names=[f"tsgkit {name}"])
        section += nodes.title(text=f"tsgkit {name}")
        section += nodes.literal_block(usage, usage, language="text")
        self.state.document.note_implicit_target(section, section)
        return section


class RecordedTable(Directive):
    """A table of a file of recorded runs, with the command and the commit that it came from."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        name, table = self.arguments
        record = read_record(name)
        self.state.document.settings.record_dependencies.add(str(RESULTS / f"{name}.json"))
        return [table_node(record["tables"][table]), sources("Recorded", record)]


class MeasuredTable(Directive):
    """A table of figures as aligned text: the heads of the columns in the first line, two spaces between columns."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = dict.fromkeys(MEASURED_OPTIONS, directives.unchanged_required)

    def run(self) -> list[nodes.Node]:
        if missing := [name for name in MEASURED_OPTIONS if name not in self.options]:
            raise self.error(f"a table says how it was measured: :{missing[0]}: is missing")
        try:
            table = aligned_table(list(self.content))
        except ValueError as problem:
            raise self.error(str(problem)) from None
        return [table_node(table), sources("Measured", self.options)]


class RecordedPlot(Directive):
    """The plot of a table of recorded runs, which the program that wrote the file drew."""

    required_arguments = 2
    option_spec: ClassVar[dict[str, Any]] = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        name, figure = self.arguments
        picture = f"{name}-{figure}.svg"
        if not (RESULTS / picture).exists():
            raise self.error(f"docs/results/{picture} does not exist")
        image = nodes.image(uri=picture, alt=self.options.get("alt", figure))
        return [image, sources("Recorded", read_record(name))]


def sources(how: str, record: dict[str, Any]) -> nodes.paragraph:
    """The line below a table that says where its figures come from; the command is literal, with all its dashes."""
    command = nodes.literal(text=record["command"])
    parts = (nodes.Text(f"{how} by "), command, nodes.Text(f", commit {record['commit']}."))
    return nodes.paragraph("", "", *parts, classes=["measured"])


def table_node(table: dict[str, Any]) -> nodes.table:
    """A table, its figures aligned to the right."""
    width = len(table["head"])
    group = nodes.tgroup(cols=width)
    group += [nodes.colspec(colwidth=1) for _ in range(width)]
    are_figures = figure_columns(table)
    group += nodes.thead("", row_node(table["head"], are_figures))
    group += nodes.tbody("", *(row_node(cells, are_figures) for cells in table["rows"]))
    return nodes.table("", group, classes=["figures"])


def row_node(cells: list[str], are_figures: list[bool]) -> nodes.row:
    entries = (
        nodes.entry("", nodes.paragraph(text=cell), classes=["figure"] * is_figure)
        for cell, is_figure in zip(cells, are_figures, strict=True)
    )
    return nodes.row("", *entries)


def keep_equations(app: Sphinx, what: str, *rest: Any) -> None:
    """Make literal blocks of the indented equations in the docstrings of modules."""
    lines: list[str] = rest[-1]
    if what != "module":
        return
    for place in range(len(lines) - 1, 0, -1):
        if lines[place].startswith("    ") and not lines[place - 1].strip():
            lines[place - 1 : place] = ["", "::", ""]


def write_inline(writer: Any, node: nodes.math) -> None:
    """An equation in a line, as MathML: browsers show it by themselves, and nothing is fetched from elsewhere."""
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def write_block(writer: Any, node: nodes.math_block) -> None:
    """An equation of its own."""
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    app.connect("autodoc-process-docstring", keep_equations)
    app.add_directive("command-usages", CommandUsages)
    app.add_directive("recorded-table", RecordedTable)
    app.add_directive("recorded-plot", RecordedPlot)
    app.add_directive("measured-table", MeasuredTable)
