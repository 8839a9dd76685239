"""Imports point downwards: those of all sources are compared with the table in ``docs/layers.py``, which draws the
diagram of the design page.

An import counts wherever it stands: at the top of a module, inside a function, under ``TYPE_CHECKING``, as a
``cimport``, as a literal argument of ``import_module``, or as ``module:attribute`` in a registry. Stubs of compiled
modules do not count: they name types, and nothing is imported for them when code runs.
"""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def load_table():
    specification = importlib.util.spec_from_file_location("layers", ROOT / "docs" / "layers.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


layers = load_table()

# Imports that the table does not allow and that are still there, as (module, imported module). Nothing may be added.
KNOWN = {("tsgkit._grammar_index", "tsgkit.grammar.components")}


def sources():
    """All sources by the names of their modules; a ``.pxd`` counts for its module."""
    found = {}
    for path in sorted((ROOT / "tsgkit").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = [path]
    for path in sorted((ROOT / "tools").glob("*.py")):
        found[f"tsgkit.tools.{path.stem}".removesuffix(".__init__")] = [path]
    for path in sorted([*(ROOT / "ext" / "tsgkit").glob("*.pyx"), *(ROOT / "ext" / "tsgkit").glob("_[a-z]*.pxd")]):
        found.setdefault(f"tsgkit.{path.stem}", []).append(path)
    return found


SOURCES = sources()


def absolute(module, level, package):
    """The absolute name of what ``from ..module import`` in `package` names."""
    if not level:
        return module or ""
    base = package.split(".")[: len(package.split(".")) - level + 1]
    return ".".join([*base, *([module] if module else [])])


def python_imports(text, package):
    """The modules that a Python source imports, and names of `tsgkit` itself such as ``tsgkit.__version__``."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = absolute(node.module, node.level, package)
            for alias in node.names:
                name = f"{module}.{alias.name}"
                yield name if name in SOURCES or module == "tsgkit" else module
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (each.value for each in node.args if isinstance(each, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            entry = re.fullmatch(r"(tsgkit[\w.]*):\w+", node.value)
            if entry:
                yield entry[1]


STATEMENT = re.compile(r"^[ \t]*(?:from\s+(\.*)([\w.]*)\s+c?import\s+\(?([^#\n]*)|c?import\s+([^#\n]+))", re.MULTILINE)


def cython_imports(text, package):
    """The modules that a Cython source imports or cimports."""
    for dots, module, names, plain in STATEMENT.findall(text):
        if plain:
            yield from (name.split()[0] for name in plain.split(","))
            continue
        base = absolute(module, len(dots), package)
        for name in re.findall(r"(\w+)(?:\s+as\s+\w+)?", names) or [""]:
            yield f"{base}.{name}" if f"{base}.{name}" in SOURCES else base


def imports():
    """Every import of a module of tsgkit by another, as a pair."""
    pairs = set()
    for module, paths in SOURCES.items():
        for path in paths:
            package = module if path.stem == "__init__" else module.rpartition(".")[0]
            read = python_imports if path.suffix == ".py" else cython_imports
            found = read(path.read_text("utf-8"), package)
            pairs |= {(module, name) for name in found if re.match(r"tsgkit\b", name)}
    return pairs


IMPORTS = imports()


def test_imports_are_found():
    python = "import tsgkit.a, os\nfrom tsgkit import b\ndef f():\n    from ..c import d\nx = {'e': 'tsgkit.e:E'}\n"
    assert set(python_imports(python, "tsgkit.p.q")) == {"tsgkit.a", "os", "tsgkit.b", "tsgkit.p.c", "tsgkit.e"}
    cython = (
        "from tsgkit._types cimport x, y\n    cimport tsgkit._chart as c\nfrom . cimport _random\nfrom ._crp import Z\n"
    )
    assert set(cython_imports(cython, "tsgkit")) == {"tsgkit._types", "tsgkit._chart", "tsgkit._random", "tsgkit._crp"}
    assert ("tsgkit._chart", "tsgkit._grammar_index") in IMPORTS
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
    """If not, ``make layers`` writes it anew."""
    page = layers.PAGE.read_text("utf-8")
    assert layers.page_with_table(page) == page
    assert layers.DIAGRAM.read_text("utf-8") == layers.svg()
    assert f".. image:: {layers.DIAGRAM.relative_to(layers.DOCS)}" in page
