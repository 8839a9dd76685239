"""A page of results: text, tables and figures as reStructuredText, for the manual."""

import platform
import textwrap
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tsgkit import __version__
from tsgkit.errors import UsageError
from tsgkit.evaluation.report import columns
from tsgkit.files import open_output

Draw = Callable[[Any], None]


class Page:
    """A page that is written piece by piece.

    Parameters
    ----------
    title : str
    stem : str
        The name of the page's file without its suffix, and the prefix of the names of its figures.
    """

    def __init__(self, title: str, stem: str) -> None:
        self.stem = stem
        self.pieces = [f"{title}\n{'=' * len(title)}\n"]
        self.figures: dict[str, Draw] = {}

    def section(self, title: str) -> None:
        self.pieces.append(f"{title}\n{'-' * len(title)}\n")

    def text(self, text: str) -> None:
        """A paragraph."""
        self.pieces.append(textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n")

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]], n_left: int = 1) -> None:
        lines = columns(head, rows, n_left).splitlines()
        self.pieces.append(".. code-block:: text\n\n" + "".join(f"   {line}\n" for line in lines))

    def figure(self, name: str, caption: str, draw: Draw) -> None:
        """A figure, drawn when the page is written; `draw` gets matplotlib's axes."""
        self.figures[name] = draw
        self.pieces.append(f".. figure:: {self.stem}-{name}.svg\n   :alt: {caption}\n\n   {caption}\n")

    def made_with(self, command: str, seconds: float) -> None:
        """The command, the versions and the time with which the results were computed."""
        versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "nltk"))
        self.text(
            f"Computed by ``{command}`` with tsgkit {__version__}, Python {platform.python_version()}, {versions}."
            f" All training runs together took {seconds / 60:.0f} minutes of processor time."
        )

    def write(self, folder: Path) -> str:
        """Write the page and its figures; returns the text."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, draw in self.figures.items():
            save_figure(draw, folder / f"{self.stem}-{name}.svg")
        text = "\n".join(self.pieces)
        with open_output(folder / f"{self.stem}.rst") as file:
            file.write(text)
        return text


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
