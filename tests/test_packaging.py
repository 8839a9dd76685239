"""What is said about the package in several places is the same everywhere."""

import re
import runpy
import tomllib
from pathlib import Path

import Cython.Build
import pytest
import setuptools

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
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == {*found, "tsgkit._tools"}


def test_the_command_is_called_like_the_package():
    """So that ``pipx run`` finds it."""
    assert PROJECT["project"]["name"] in PROJECT["project"]["scripts"]


def test_ci_tests_the_pythons_that_wheels_are_built_for():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    tested = re.findall(r'"(3\.\d+)"', re.search(r"^ *python: (.*)$", workflow, re.MULTILINE)[1])
    built = [f"3.{name[3:-2]}" for name in PROJECT["tool"]["cibuildwheel"]["build"]]
    classified = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["project"]["classifiers"]), re.MULTILINE)
    assert tested == built
    assert set(classified) <= set(tested)


CHECKERS = [".ci/run", ".pre-commit-config.yaml", ".github/workflows/ci.yml", "CONTRIBUTING.md"]


@pytest.mark.parametrize("name", CHECKERS)
def test_checks_are_targets_of_the_makefile(name):
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    # After `make`, or a value of a workflow's matrix.
    places = re.findall(r"\bmake ([a-z][a-z0-9-]*)|^ *target: \[?(.*)$", (ROOT / name).read_text("utf-8"), re.MULTILINE)
    used = {match for place in places for match in re.findall(r"(?:^|, )([a-z][a-z0-9-]*)", place[0] or place[1])}
    assert used
    assert used <= targets


def test_ci_runs_all_tests_once():
    """The test command of the README, then the slow tests, which it leaves out."""
    readme = (ROOT / "README.md").read_text("utf-8")
    assert re.search(r"^    make test\b", readme, re.MULTILINE)
    steps = re.findall(r"^step make (test(?:-slow|-all)?)$", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    assert steps == ["test", "test-slow"]


MODES = {
    "": ("-O3", False),
    "TSGKIT_CHECKED": ("-O1", True),
    "TSGKIT_QUICK": ("-O0", False),
    "TSGKIT_SANITIZE": ("-O1", False),
}


@pytest.mark.parametrize("variable", MODES)
def test_modes_of_the_build(tmp_path, monkeypatch, variable):
    """Users, who set none of the variables, get optimized modules without checks."""
    for name in filter(None, MODES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("TSGKIT_MODULES", raising=False)
    if variable:
        monkeypatch.setenv(variable, "1")
    (tmp_path / "ext").symlink_to(ROOT / "ext")
    monkeypatch.chdir(tmp_path)
    options = {}
    monkeypatch.setattr(Cython.Build, "cythonize", lambda extensions, **given: options.update(given) or extensions)
    monkeypatch.setattr(setuptools, "setup", lambda **given: options.update(given))
    runpy.run_path(str(ROOT / "setup.py"))
    optimization, has_checks = MODES[variable]
    modules = {extension.name: extension for extension in options["ext_modules"]}
    assert {f"tsgkit.{path.stem}" for path in (ROOT / "ext" / "tsgkit").glob("*.pyx")} < modules.keys()
    for extension in modules.values():
        assert optimization in extension.extra_compile_args
        assert ("-D_GLIBCXX_ASSERTIONS" in extension.extra_compile_args) == has_checks
        assert ("-fsanitize=address,undefined" in extension.extra_link_args) == (variable == "TSGKIT_SANITIZE")
    assert options["compiler_directives"]["boundscheck"] == has_checks
