"""A page of results: text, tables and figures as reStructuredText, for the manual."""

import json
import platform
import subprocess
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tsgkit import __version__
from tsgkit._files import open_output
from tsgkit.errors import UsageError
from tsgkit.evaluation._report import columns

Draw = Callable[[Any], None]
Figures = dict[str, Any]


class Page:
    """A page that is written piece by piece, with the file of recorded runs that its tables come from.

    The manual shows the tables from the file; see ``docs/recorded_tables.py``.

    Parameters
    ----------
    title : str
    stem : str
        The name of the page's file without its suffix, and the prefix of the names of its figures.
    """

    def __init__(self, title: str, stem: str) -> None:
        self.stem = stem
        self.pieces: list[str | Table] = [f"{title}\n{'=' * len(title)}\n"]
        self.figures: dict[str, Draw] = {}
        self.record: dict[str, Any] = {}

    def section(self, title: str) -> None:
        self.pieces.append(f"{title}\n{'-' * len(title)}\n")

    def text(self, text: str) -> None:
        """A paragraph."""
        self.pieces.append(textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n")

    def listed(self, sentences: Sequence[str]) -> None:
        """A list of sentences."""
        filled = (
            textwrap.fill(one, 118, break_long_words=False, break_on_hyphens=False, subsequent_indent="  ")
            for one in sentences
        )
        self.pieces.append("".join(f"* {one}\n" for one in filled))

    def table(self, name: str, head: Sequence[str], rows: Sequence[Sequence[str]], n_left: int = 1) -> None:
        self.pieces.append(Table(name, list(head), [list(row) for row in rows], n_left))

    def figure(self, name: str, caption: str, draw: Draw) -> None:
        """A figure, drawn when the page is written; `draw` gets matplotlib's axes."""
        self.figures[name] = draw
        self.pieces.append(f".. figure:: {self.stem}-{name}.svg\n   :alt: {caption}\n\n   {caption}\n")

    def made_with(self, command: str, runs: Mapping[str, Figures]) -> None:
        """The command, the commit and the versions with which the runs were computed, and the time of the training.

        The runs are recorded without the quantities of every iteration.
        """
        self.record = record_of(command, runs)
        versions = self.record["versions"]
        seconds = sum(figures["seconds"] or 0.0 for figures in runs.values())
        self.text(
            f"Computed by ``{command}`` with {', '.join(f'{name} {number}' for name, number in versions.items())}."
            f" All training runs together took {seconds / 60:.0f} minutes of processor time."
        )

    def write(self, folder: Path) -> str:
        """Write the page, its figures and its runs; returns the text with the tables in it."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, draw in self.figures.items():
            save_figure(draw, folder / f"{self.stem}-{name}.svg")
        save_record(
            folder / f"{self.stem}.json", self.record, [each for each in self.pieces if isinstance(each, Table)]
        )
        with open_output(folder / f"{self.stem}.rst") as file:
            file.write(
                "\n".join(piece if isinstance(piece, str) else piece.directive(self.stem) for piece in self.pieces)
            )
        return "\n".join(piece if isinstance(piece, str) else piece.text() for piece in self.pieces)


@dataclass(frozen=True)
class Table:
    """A table of a page."""

    name: str
    head: list[str]
    rows: list[list[str]]
    n_left: int

    def values(self) -> dict[str, Any]:
        """As the file of recorded runs has it."""
        return {"head": self.head, "rows": self.rows, "n_left": self.n_left}

    def directive(self, stem: str) -> str:
        """As the page has it."""
        return f".. recorded-table:: {stem} {self.name}\n"

    def text(self) -> str:
        """As the terminal has it."""
        return "".join(f"   {line}\n" for line in columns(self.head, self.rows, self.n_left).splitlines())


def record_of(command: str, runs: Mapping[str, Figures]) -> Figures:
    """How runs came about, and their figures without the quantities of every iteration."""
    versions = {name: version(name) for name in ("numpy", "nltk")}
    versions = {"tsgkit": __version__, "Python": platform.python_version(), **versions}
    kept = {stem: {name: figures[name] for name in figures if name != "history"} for stem, figures in runs.items()}
    return {"command": command, "commit": commit(), "versions": versions, "runs": kept}


def save_record(path: Path, record: Figures, tables: Sequence[Table]) -> None:
    """Write a file of recorded runs; see ``docs/recorded_tables.py``."""
    values = {table.name: table.values() for table in tables}
    with open_output(path) as file:
        file.write(json.dumps({**record, "tables": values}, indent=1, ensure_ascii=False) + "\n")


def write_record(path: Path, command: str, runs: Mapping[str, Figures], tables: Sequence[Table]) -> None:
    """Write the runs of a benchmark and the tables of them."""
    save_record(path, record_of(command, runs), tables)


def commit() -> str:
    """The commit of the checkout, with a plus sign if files differ from it; ``unknown`` outside of one."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        found = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, check=True, text=True)
        changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, check=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip() + ("+" if changed.stdout else "")


def require_matplotlib() -> None:
    """Raise an error before the work begins if the figures cannot be drawn."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise UsageError("the figures need matplotlib: pip install 'tsgkit[plot]'") from None
    # The same figure gives the same file.
    mpl.rcParams["svg.hashsalt"] = "tsgkit"


def save_figure(draw: Draw, path: Path) -> None:
    require_matplotlib()
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    draw(figure.add_subplot())
    figure.savefig(path, metadata={"Date": None})


def spread(values: Sequence[float], digits: int = 2) -> tuple[str, str, str]:
    """Mean, minimum and maximum."""
    return f"{np.mean(values):.{digits}f}", f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
