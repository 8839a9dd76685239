"""Sphinx settings, the directive that puts the usage texts of all commands on a page, and equations without network."""

import importlib
import inspect
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

from tsgkit import __version__
from tsgkit.usage import command_names

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
        usage = inspect.getdoc(importlib.import_module(f"tsgkit.tools.{name}")) or ""
        section = nodes.section(ids=[f"tsgkit-{name}"], names=[f"tsgkit {name}"])
        section += nodes.title(text=f"tsgkit {name}")
        section += nodes.literal_block(usage, usage, language="text")
        self.state.document.note_implicit_target(section, section)
        return section


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
