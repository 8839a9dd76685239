"""Tables of the pages on results: each is shown from the file of recorded runs that a program wrote, never typed.

A page of ``docs/results`` says ``.. recorded-table:: FILE TABLE`` for a table of ``docs/results/FILE.json``. The file
holds how its numbers came about and the tables::

    {"command": ..., "commit": ..., "versions": {...}, "runs": {...},
     "tables": {TABLE: {"head": [...], "rows": [[...], ...], "n_left": 1}, ...}}

Tables of experiments that no program records are aligned text in ``.. measured-table::``, with command and commit.
Both are Sphinx directives in ``conf.py``; ``tests/test_results.py`` checks files and pages.
"""

import json
import re
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
DIRECTIVE = re.compile(r"^\.\. recorded-table:: (\S+) (\S+)$", re.MULTILINE)
# What a table that was not recorded by a program must say.
MEASURED_OPTIONS = ("command", "commit")
FIGURE = re.compile(r"-|[<x+-]? ?\d[\d.,/%+()? -]*")


def read_record(name: str, folder: Path = RESULTS) -> dict[str, Any]:
    """The recorded runs of a file."""
    record: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return record


def aligned_table(lines: list[str]) -> dict[str, Any]:
    """A table from aligned text: columns are separated by two spaces or more, and ``-`` is an empty cell.

    Examples
    --------
    >>> aligned_table(["parser            F1", "Berkeley, four  78.7", "ours            82.5"])
    {'head': ['parser', 'F1'], 'rows': [['Berkeley, four', '78.7'], ['ours', '82.5']]}
    """
    head, *rows = [re.split(r" {2,}", line.strip()) for line in lines if line.strip()]
    for row in rows:
        if len(row) != len(head):
            raise ValueError(f"{len(head)} columns, but {len(row)} in the row {row}")
    return {"head": head, "rows": rows}


def figure_columns(table: dict[str, Any]) -> list[bool]:
    """For every column, whether it has figures alone, which are aligned to the right.

    Examples
    --------
    >>> figure_columns({"head": ["parser", "F1"], "rows": [["A", "78.7 (?)"], ["B", "-"]]})
    [False, True]
    """
    return [all(FIGURE.fullmatch(row[place]) for row in table["rows"]) for place in range(len(table["head"]))]
