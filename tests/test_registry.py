"""Tables of parts that plug in."""

from importlib.metadata import EntryPoint

import pytest

from tsgkit import _registry as registry
from tsgkit.errors import UsageError
from tsgkit.registry import Registry

BUILT_IN = {"fraction": "fractions:Fraction", "decimal": "decimal:Decimal"}


@pytest.fixture
def table(monkeypatch):
    """A table with two entries of its own and those of another package."""
    points = [EntryPoint("path", "pathlib:PurePath", "shapes"), EntryPoint("broken", "no_such_module:X", "shapes")]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == "shapes" else [])
    return Registry("shape", "shapes", BUILT_IN)


def test_entries_of_others_are_found_by_entry_point(table):
    assert table.names == ("fraction", "decimal", "broken", "path")
    assert table["path"]("a/b").name == "b"
    assert table["fraction"](1, 2) * 2 == 1


def test_an_entry_is_imported_once(table):
    assert table["decimal"] is table["decimal"]


def test_unknown_names_are_listed(table):
    with pytest.raises(UsageError, match="shape 'cube': must be one of fraction, decimal"):
        table.require("cube")
    with pytest.raises(UsageError, match="--shape=cube: must be one of"):
        table.require("cube", "--shape")
    with pytest.raises(KeyError):
        table["cube"]


def test_an_entry_that_cannot_be_loaded_is_named(table):
    with pytest.raises(UsageError, match=r"the shape 'broken' of no_such_module:X: No module named"):
        table.require("broken")


def test_registered_entries(table):
    table.register("integer", int)
    assert table.names[-1] == "integer"
    assert table.require("integer")("3") == 3
    with pytest.raises(ValueError, match="there is a shape 'integer' already"):
        table.register("integer", int)


def test_another_package_cannot_replace_an_entry(monkeypatch):
    monkeypatch.setattr(registry, "entry_points", lambda group: [EntryPoint("decimal", "pathlib:PurePath", "shapes")])
    with pytest.raises(UsageError, match="pathlib:PurePath: names a shape 'decimal'"):
        Registry("shape", "shapes", BUILT_IN).require("decimal")
