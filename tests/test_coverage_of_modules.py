"""Every module has a test file named after it, or the table of the design page says which tests cover it."""

import ast
import csv
import re
from pathlib import Path

import pytest
from imports import ROOT, SOURCES, all_imports, imports_of_file

TABLE = ROOT / "docs" / "tests-of-modules.csv"


def read_table():
    with open(TABLE, encoding="utf-8", newline="") as file:
        return {row["module"]: row["tests"].split() for row in csv.DictReader(file)}


def modules():
    """All modules that hold code: no packages, no lists of public names, no ``.pxd`` without a ``.pyx``."""
    for module, paths in SOURCES.items():
        has_code = any(path.suffix in (".py", ".pyx") and not path.stem.startswith("__") for path in paths)
        if has_code and not only_names(paths[0]):
            yield module


def only_names(path):
    """Whether a module has nothing but a docstring, imports and ``__all__``."""
    if path.suffix != ".py":
        return False
    _, *rest = ast.parse(path.read_text("utf-8")).body
    names = [node for node in rest if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"]
    return bool(names) and all(isinstance(node, ast.ImportFrom) or node in names for node in rest)


MODULES = list(modules())
LISTED = read_table()
IMPORTED: dict[str, set[str]] = {}
for importer, imported in all_imports():
    IMPORTED.setdefault(importer, set()).add(imported)
# Tests that start commands as a user does, by the name of the fixture or by the module.
RUNS_A_COMMAND = re.compile(r"""\btsgkit\(|"-m", "tsgkit"|\btsgkit\._tools\b""")


def own_test(module):
    """The test file that is named after a module, if there is one."""
    *packages, name = (
        part.removeprefix("_") for part in module.removeprefix("tsgkit.").removeprefix("_tools.").split(".")
    )
    if SOURCES[module][0].suffix != ".py":  # compiled modules have the tests of the package that uses them
        return next((ROOT / "tests").rglob(f"test_{name}.py"), None)
    path = ROOT.joinpath("tests", *packages, f"test_{name}.py")
    return path if path.is_file() else None


def reached_by(path):
    """The modules that a test imports, directly or through others."""
    waiting = list(imports_of_file(path, ".".join(path.relative_to(ROOT).with_suffix("").parts)))
    reached = set()
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += IMPORTED.get(module, ())
    return reached


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_tests(module):
    assert (own_test(module) is None) == (module in LISTED), "either a test file of its name or a line in the table"


@pytest.mark.parametrize("module", LISTED)
def test_listed_tests_reach_the_module(module):
    assert module in MODULES
    assert LISTED[module]
    for name in LISTED[module]:
        path = ROOT / name
        assert path.is_file()
        text = path.read_text("utf-8")
        if module in reached_by(path):
            continue
        package, _, name_of_command = module.rpartition(".")
        if package == "tsgkit._tools":
            assert re.search(rf"""["' ]{name_of_command}["' ]""", text)
        else:
            assert RUNS_A_COMMAND.search(text)


def test_the_table_is_sorted_and_shown():
    assert list(LISTED) == sorted(LISTED)
    assert f":file: {TABLE.name}" in Path(ROOT / "docs" / "design.rst").read_text("utf-8")
