"""The design page names every source; files are as short as it says."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "design.rst").read_text("utf-8")
LAYOUT = PAGE[PAGE.index(".. code-block:: text") : PAGE.index("Parts and their dependencies")]
COMPILED = sorted(path for path in (ROOT / "ext" / "tsgkit").iterdir() if not path.stem.startswith("__"))
PYTHON = sorted(path for path in (ROOT / "tsgkit").glob("*.py") if not path.stem.startswith("__"))
PACKAGES = sorted(path.parent for path in (ROOT / "tsgkit").glob("*/__init__.py") if path.parent.name != "tools")
FOLDERS = ("ext", "tsgkit", "tools", "tests", "docs")
SUFFIXES = {".py", ".pyx", ".pxd", ".pyi", ".hpp", ".cpp"}
MOST_LINES = 600


def lines_of(path):
    return path.read_text("utf-8").count("\n")


@pytest.mark.parametrize("path", [*COMPILED, *PYTHON, *PACKAGES], ids=lambda path: path.name)
def test_the_layout_names_every_source(path):
    names = {f"{path.stem}.pyx", f"{path.stem}.pxd"} if path.suffix in (".pyx", ".pxd") else {path.name}
    assert any(re.search(rf"(?<![\w/]){re.escape(name)}(?!\w)", LAYOUT) for name in names)


def test_headers_of_cpp():
    """Their table on the page, with their lengths."""
    headers = [path for path in COMPILED if path.suffix == ".hpp"]
    for path in headers:
        assert re.search(rf"\* - ``{path.name}``\n +- {lines_of(path)}\n", PAGE)
    assert f"{sum(map(lines_of, headers))} lines in all" in PAGE


def test_no_source_is_too_long():
    sources = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    assert {str(path.relative_to(ROOT)): lines_of(path) for path in sources if lines_of(path) > MOST_LINES} == {}
