"""Drawings as files: the suffix of a file decides its format.

After the drawing itself (`tsgkit.drawing._trees`). SVG, HTML, LaTeX and text need nothing else; PNG and PDF are painted
by matplotlib (`tsgkit.drawing._picture`).
"""

import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from tsgkit._files import new_file, open_output
from tsgkit.errors import UsageError
from tsgkit.report._page import escape, html_page

# Formats by the suffixes of files.
SUFFIXES = {".svg": "svg", ".html": "html", ".tex": "latex", ".txt": "text", ".png": "png", ".pdf": "pdf"}
TEXT_FORMATS = ("text", "svg", "html", "latex")
PICTURES = ("png", "pdf")
FORMATS = (*TEXT_FORMATS, *PICTURES)
ONE_EACH = ("svg", *PICTURES)


class Drawable(Protocol):
    """What can be written: a `tsgkit.drawing.Drawing`, or dependencies as arcs."""

    @property
    def sentence(self) -> str: ...

    def svg(self, *, standalone: bool = True) -> str: ...

    def text(self, *, width: int | None = None, colour: bool = False) -> str: ...

    def latex(self) -> str: ...


def format_of(path: str | os.PathLike[str], default: str = "text") -> str:
    """The format that the suffix of a file stands for; without one, `default`.

    Examples
    --------
    >>> format_of("tree.svg"), format_of("tree.tex"), format_of("-")
    ('svg', 'latex', 'text')
    >>> format_of("tree.jpg")
    Traceback (most recent call last):
        ...
    tsgkit.errors.UsageError: tree.jpg: the suffix of a drawing is .svg, .html, .tex, .txt, .png, .pdf or none
    """
    suffix = Path(path).suffix.lower()
    if suffix and suffix not in SUFFIXES:
        raise UsageError(f"{os.fspath(path)}: the suffix of a drawing is {', '.join(SUFFIXES)} or none")
    return SUFFIXES.get(suffix, default)


def write_drawings(
    drawings: Iterable[Drawable], path: str | os.PathLike[str], form: str | None = None, **options: Any
) -> None:
    """Write drawings to a file, whole or not at all.

    Parameters
    ----------
    drawings : iterable of Drawing
    path : path
        ``-`` is the standard output.
    form : str, optional
        One of `FORMATS`; unless given, that of the suffix.
    **options
        For text: `width` and `colour`, see `tsgkit.drawing._terminal.draw_text`.
    """
    form = form or format_of(path)
    if form in PICTURES:
        from tsgkit.drawing._picture import paint  # noqa: PLC0415 - imports matplotlib

        if str(path) == "-":
            raise UsageError(f"--format={form}: name a file with --output=FILE.{form}")
        content = paint(only_one(drawings, form).svg(), form)
        with new_file(path) as file:
            file.write(content)
        return
    with open_output(path) as text_file:
        text_file.writelines(rendered(drawings, form, options))


def only_one(drawings: Iterable[Drawable], form: str) -> Drawable:
    """The drawing, if it is the only one."""
    found = list(itertools.islice(drawings, 2))
    if len(found) != 1:
        many = "there are several" if found else "there is none"
        raise UsageError(f"--format={form}: draws exactly one tree, and {many}; select one with --number")
    return found[0]


def rendered(drawings: Iterable[Drawable], form: str, options: dict[str, Any]) -> Iterator[str]:
    """The drawings as the text of a file."""
    if form == "svg":
        yield only_one(drawings, form).svg() + "\n"
    elif form == "html":
        parts = [
            f'<p class="quiet">{escape(each.sentence)}</p><div class="scroll">{each.svg(standalone=False)}</div>'
            for each in drawings
        ]
        yield html_page("Trees", parts)
    else:
        for number, drawing in enumerate(drawings):
            yield "\n" if number else ""
            yield drawing.latex() if form == "latex" else drawing.text(**options)
