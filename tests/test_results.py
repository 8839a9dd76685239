"""The pages on results: their tables come from files of recorded runs, which say where they came from."""

import importlib.util
import re

import pytest
from imports import ROOT

specification = importlib.util.spec_from_file_location("recorded_tables", ROOT / "docs" / "recorded_tables.py")
recorded = importlib.util.module_from_spec(specification)
specification.loader.exec_module(recorded)

FILES = sorted(path.stem for path in recorded.RESULTS.glob("*.json"))
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in recorded.RESULTS.glob("*.rst")}
OTHER_PAGES = {path.stem: path.read_text(encoding="utf-8") for path in recorded.RESULTS.parent.glob("*.rst")}
SHOWN = [pair for text in PAGES.values() for pair in recorded.DIRECTIVE.findall(text)]
# Every table of these pages is recorded.
CONVERTED = ("cohn2010", "shindo2011", "shindo2012", "index")
MEASURED = re.compile(r"^\.\. measured-table::\n((?:   :.*\n)*)\n((?:   .*\n)+)", flags=re.MULTILINE)


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
    assert ".. measured-table::" not in PAGES[name]


@pytest.mark.parametrize("name", PAGES)
def test_every_table_is_one_and_says_where_it_comes_from(name):
    text = PAGES[name]
    assert ".. code-block:: text" not in text, "tables are recorded-table or measured-table"
    check_measured_tables(text)


@pytest.mark.parametrize("name", {**PAGES, **OTHER_PAGES})
def test_no_figure_is_of_an_earlier_version(name):
    text = " ".join({**PAGES, **OTHER_PAGES}[name].split())
    assert not re.search(r"earlier (runs?|commits?|grammars?)\b|an earlier,|(that|those) of earlier versions", text)


# What has figures of its own, and no table: a section of a page of results.
FIGURE = re.compile(r"(?<![\w.])\d\d\.\d\d?(?![\w.])|\d (?:%|µs|ms|s|MB|GB)\b")
NAMES_ITS_ORIGIN = re.compile(r"recorded-(?:table|plot)::|measured-table::|commit ``?[0-9a-f]{7}|commit [0-9a-f]{7}")


@pytest.mark.parametrize("name", PAGES)
def test_every_section_with_figures_says_where_they_come_from(name):
    title, *sections = re.split(r"\n(?=[^\n]+\n[-^]{4,}\n)", PAGES[name])
    text = re.sub(r"(?m)^\.\. [\s\S]*?\n(?=\S|$)", "", title)
    for section in sections:
        heading = section.strip().partition("\n")[0]
        if FIGURE.search(section) and not NAMES_ITS_ORIGIN.search(section):
            assert re.search(r"(?:first|second|last|this) table|tables? of", section), f"{heading}: no commit"
    assert NAMES_ITS_ORIGIN.search(PAGES[name]) or not FIGURE.search(text)


@pytest.mark.parametrize("name", OTHER_PAGES)
def test_tables_of_other_pages_say_where_they_come_from(name):
    check_measured_tables(OTHER_PAGES[name])


def check_measured_tables(text):
    found = MEASURED.findall(text)
    assert len(found) == text.count(".. measured-table::")
    for options, body in found:
        commit = re.search(r"^   :commit: (.*)$", options, flags=re.MULTILINE)
        assert re.fullmatch("[0-9a-f]{7}", commit[1])
        assert re.search(r"^   :command: \S", options, flags=re.MULTILINE)
        table = recorded.aligned_table([line[3:] for line in body.splitlines()])
        assert len(table["rows"]) > 1


@pytest.mark.parametrize("name", re.findall(r"^.. recorded-plot:: (.*)$", "".join(PAGES.values()), flags=re.MULTILINE))
def test_plots_are_recorded(name):
    record, figure = name.split()
    assert (recorded.RESULTS / f"{record}-{figure}.svg").exists()
    assert figure in recorded.read_record(record)["tables"]


def test_aligned_text_is_a_table():
    lines = ["parser, model   F1  errors", "ours, one     82.5    0/60", "theirs           -       -"]
    table = recorded.aligned_table(lines)
    assert table["rows"] == [["ours, one", "82.5", "0/60"], ["theirs", "-", "-"]]
    assert recorded.figure_columns(table) == [False, True, True]
    with pytest.raises(ValueError, match="3 columns, but 2"):
        recorded.aligned_table([lines[0], "ours  82.5"])
