"""What is said about the package in several places is the same everywhere."""

import re
import tomllib
from pathlib import Path

import tsgkit

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_citation_names_this_version():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == tsgkit.__version__
    assert re.search(r"^license: (.*)$", citation, re.MULTILINE)[1] == PROJECT["project"]["license"]


def test_every_package_is_listed():
    """Of the folder of the commands, benchmarks and experiments are not installed."""
    found = {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "tsgkit").rglob("__init__.py")}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == {*found, "tsgkit.tools"}


def test_the_command_is_called_like_the_package():
    """So that ``pipx run`` finds it."""
    assert PROJECT["project"]["name"] in PROJECT["project"]["scripts"]
