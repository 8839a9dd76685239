"""Imports point downwards: those of all sources are compared with the table in ``docs/layers.py``, which draws the
diagram of the design page."""

import importlib.util

import pytest
from imports import ROOT, SOURCES, all_imports, cython_imports, python_imports


def load_table():
    specification = importlib.util.spec_from_file_location("layers", ROOT / "docs" / "layers.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


layers = load_table()

# Imports that the table does not allow and that are still there, as (module, imported module). Nothing may be added.
KNOWN = set()
# The tables of `tsgkit._plugins` are names of modules, so that commands can list them without importing anything; each
# table is used by the part that it names modules of.
IMPORTS = {(module, name) for module, name in all_imports() if module != "tsgkit._plugins"}


def test_imports_are_found():
    python = (
        "import tsgkit.a, os\nfrom tsgkit import b\ndef f():\n    from ..c import d\nx = {'e': 'tsgkit.e:E'}\n"
        "y = f'tsgkit.treebank.unknown.{x}:MODEL', f'tsgkit {x}'\n"
    )
    found = set(python_imports(python, "tsgkit.p.q"))
    assert found > {"tsgkit.a", "os", "tsgkit.b", "tsgkit.p.c", "tsgkit.e", "tsgkit.treebank.unknown._one"}
    assert all("." in name for name in found - {"os"})
    cython = (
        "from tsgkit._types cimport x, y\n    cimport tsgkit._chart as c\nfrom . cimport _random\nfrom ._crp import Z\n"
    )
    assert set(cython_imports(cython, "tsgkit")) == {"tsgkit._types", "tsgkit._chart", "tsgkit._random", "tsgkit._crp"}
    assert ("tsgkit._derivations", "tsgkit._chart") in IMPORTS
    assert ("tsgkit", "tsgkit.parsing") in IMPORTS


@pytest.mark.parametrize("module", SOURCES)
def test_every_module_belongs_to_a_part(module):
    layers.part_of(module)


def test_the_table_points_downwards():
    seen = set()
    for part in layers.PARTS:
        assert set(part.imports) <= seen
        seen.add(part.name)


def between_parts():
    """The imports between modules of different parts."""
    for module, imported in sorted(IMPORTS):
        source, target = layers.part_of(module), layers.part_of(imported)
        if source is not target:
            yield module, imported, source, target


def test_only_what_the_table_allows_is_imported():
    wrong = {
        (module, imported) for module, imported, source, target in between_parts() if target.name not in source.imports
    }
    assert wrong == KNOWN


@pytest.mark.parametrize("part", layers.PARTS, ids=lambda part: part.name)
def test_the_table_allows_only_what_is_imported(part):
    used = {target.name for _, _, source, target in between_parts() if source is part}
    assert set(part.imports) <= used


def test_the_page_shows_the_table():
    """If not, ``make layers`` writes it again."""
    page = layers.PAGE.read_text("utf-8")
    assert layers.page_with_table(page) == page
    assert layers.DIAGRAM.read_text("utf-8") == layers.svg()
    assert f".. image:: {layers.DIAGRAM.relative_to(layers.DOCS)}" in page
