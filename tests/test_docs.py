"""Every ``>>>`` example runs and gives what it says; the manual leaves nothing public out."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import tsgkit
from tsgkit._usage import command_names

ROOT = Path(__file__).parent.parent
# Run from a checkout, not installed.
EXTRAS = {"tsgkit._spacy_component": "spacy"}  # modules that need more than the tests install
NOT_INSTALLED = ("bench", "experiments")


def module_names(folders, prefix):
    """The modules in and below `folders`; none is imported, so that a broken one fails only its own test."""
    for module in pkgutil.iter_modules(folders, prefix):
        yield module.name, module.ispkg
        if module.ispkg:
            name = module.name.removeprefix(prefix)
            yield from module_names([f"{folder}/{name}" for folder in folders], f"{module.name}.")


MODULES = {
    **dict(module_names(tsgkit.__path__, "tsgkit.")),
    "tsgkit._tools": True,
    **{f"tsgkit._tools.{name}": False for name in command_names()},
    **{
        name: is_package
        for part in NOT_INSTALLED
        for name, is_package in module_names([str(ROOT / "tools" / part)], f"tools.{part}.")
    },
}
del MODULES["tsgkit.__main__"]
PUBLIC = ["tsgkit", *(name for name in MODULES if "._" not in name and name.startswith("tsgkit."))]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.rst"))]


@pytest.mark.parametrize("name", ["tsgkit", *MODULES])
def test_examples_in_docstrings(name):
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name])
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert not result.failed, "the examples that failed are printed above"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_examples_on_pages(path, monkeypatch):
    monkeypatch.chdir(path.parent)  # pages name files in the folder they are in
    result = doctest.testfile(str(path), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8")
    assert not result.failed, "the examples that failed are printed above"


def names_of_api_pages():
    """What the pages document, as pairs of module and name."""
    for page in [*(ROOT / "docs" / "api").glob("*.rst"), ROOT / "docs" / "restaurants.rst"]:
        # A part is what follows `.. automodule:: name`, up to the next module.
        parts = re.split(r"^\.\. (?:auto|current)module:: ", page.read_text("utf-8"), flags=re.MULTILINE)
        for part in parts[1:]:
            module, _, text = part.partition("\n")
            yield from ((module, name) for name in re.findall(r"^(?:   |\.\. autoclass:: )(\w+)$", text, re.MULTILINE))


DOCUMENTED = set(names_of_api_pages())


@pytest.mark.parametrize("name", PUBLIC)
def test_api_pages_document_all_public_names(name):
    for each in importlib.import_module(name).__all__:
        # Some names of the package are those of a package below it, and documented there.
        assert {(name, each), (tsgkit._HOMES.get(each), each)} & DOCUMENTED, each


@pytest.mark.parametrize("name", command_names())
def test_every_command_is_introduced(name):
    """In the README, and in the table of the page on commands, which says where to read on."""
    assert f"    tsgkit {name} " in (ROOT / "README.md").read_text("utf-8")
    page = (ROOT / "docs" / "commands.rst").read_text("utf-8")
    assert f"``{name}``" in page.partition("Pages about each command")[2].partition("\n\nA ")[0]
