"""Tables of the pages on results: each is shown from the file of recorded runs that a program wrote, never typed.

A page of ``docs/results`` says ``.. recorded-table:: FILE TABLE`` for a table of ``docs/results/FILE.json``. The file
holds how its numbers came about and the tables::

    {"command": ..., "commit": ..., "versions": {...}, "runs": {...},
     "tables": {TABLE: {"head": [...], "rows": [[...], ...], "n_left": 1}, ...}}

`RecordedTable` is the Sphinx directive; ``tests/test_results.py`` checks files and pages.
"""

import json
import re
from pathlib import Path
from typing import Any

from tsgkit.evaluation.report import columns

RESULTS = Path(__file__).resolve().parent / "results"
DIRECTIVE = re.compile(r"^\.\. recorded-table:: (\S+) (\S+)$", re.MULTILINE)


def read_record(name: str, folder: Path = RESULTS) -> dict[str, Any]:
    """The recorded runs of a file."""
    record: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return record


def table_text(table: dict[str, Any]) -> str:
    """A table as text.

    Examples
    --------
    >>> print(table_text({"head": ["grammar", "F1"], "rows": [["CFG", "61.19"]], "n_left": 1}), end="")
    grammar     F1
    CFG      61.19
    """
    return columns(table["head"], table["rows"], table["n_left"])


def origin(record: dict[str, Any]) -> str:
    """How the numbers came about, as one sentence."""
    return f"{record['command']}, commit {record['commit']}"
