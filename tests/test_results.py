"""The pages on results: their tables come from files of recorded runs, which say where they came from."""

import importlib.util
import json
import re

import pytest
from imports import ROOT

specification = importlib.util.spec_from_file_location("recorded_tables", ROOT / "docs" / "recorded_tables.py")
recorded = importlib.util.module_from_spec(specification)
specification.loader.exec_module(recorded)

FILES = sorted(path.stem for path in recorded.RESULTS.glob("*.json"))
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in recorded.RESULTS.glob("*.rst")}
SHOWN = [pair for text in PAGES.values() for pair in recorded.DIRECTIVE.findall(text)]
# Every table of these pages is recorded.
CONVERTED = ("cohn2010", "shindo2011", "shindo2012")


@pytest.mark.parametrize("name", FILES)
def test_a_file_says_how_its_numbers_came_about(name):
    record = recorded.read_record(name)
    assert set(record) == {"command", "commit", "versions", "runs", "tables"}
    assert re.fullmatch(r"[0-9a-f]{7,}\+?", record["commit"])
    assert "`" not in record["command"]
    assert record["versions"]["tsgkit"]
    assert record["tables"]
    for table in record["tables"].values():
        assert set(table) == {"head", "rows", "n_left"}
        assert table["rows"]
        assert all(len(row) == len(table["head"]) and all(type(cell) is str for cell in row) for row in table["rows"])


def test_all_tables_are_shown_once():
    recorded_tables = {(name, table) for name in FILES for table in recorded.read_record(name)["tables"]}
    assert len(SHOWN) == len(set(SHOWN))
    assert set(SHOWN) == recorded_tables


@pytest.mark.parametrize("name", CONVERTED)
def test_no_table_is_typed(name):
    assert recorded.DIRECTIVE.search(PAGES[name])
    assert ".. code-block:: text" not in PAGES[name]


def test_a_table_as_text(tmp_path):
    record = {"tables": {"f1": {"head": ["grammar", "F1"], "rows": [["CFG", "61.2"]], "n_left": 1}}}
    (tmp_path / "one.json").write_text(json.dumps(record), encoding="utf-8")
    table = recorded.read_record("one", tmp_path)["tables"]["f1"]
    assert recorded.table_text(table).split("\n")[:2] == ["grammar    F1", "CFG      61.2"]
