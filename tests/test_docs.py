"""Every ``>>>`` example runs and gives what it says; the manual leaves nothing public out."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import tsgkit

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(tsgkit.__path__, "tsgkit.")
    if module.name != "tsgkit.__main__"
)
PACKAGES = [name for name in MODULES if hasattr(importlib.import_module(name), "__all__")]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.rst"))]
# The pages belong to the source package, not to the installed one.
needs_pages = pytest.mark.skipif(
    not (ROOT / "docs").is_dir(), reason="there is no docs folder beside the tests"
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert not result.failed, "the examples that failed are printed above"


@needs_pages
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_examples_on_pages(path):
    result = doctest.testfile(
        str(path), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8"
    )
    assert not result.failed, "the examples that failed are printed above"


@needs_pages
@pytest.mark.parametrize("name", PACKAGES)
def test_api_pages_list_all_public_names(name):
    listed: set[str] = set()
    for page in (ROOT / "docs" / "api").glob("*.rst"):
        # What follows `.. automodule:: name`, up to the next module.
        for part in re.split(
            r"^\.\. (?:auto|current)?module:: ", page.read_text("utf-8"), flags=re.MULTILINE
        )[1:]:
            module, _, text = part.partition("\n")
            if module == name:
                listed.update(re.findall(r"^   (\w+)$", text, flags=re.MULTILINE))
    assert listed >= set(importlib.import_module(name).__all__)
