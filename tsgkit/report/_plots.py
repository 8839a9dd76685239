"""Plots by matplotlib as SVG elements of a page, with text as text and with the colours of the page.

matplotlib is the extra ``plot``; it is imported for the first plot.
"""

import io
import json
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tsgkit.drawing._colours import HUES
from tsgkit.errors import UsageError
from tsgkit.report._page import escape

# This colour is replaced by that of the page's text.
INK = "#010203"
STYLE = re.compile(r' style="([^"]*)"')
NAMED = re.compile(r' id="([^"]*)"')
USED = re.compile(r"url\(#([^)]*)\)|href=\"#([^\"]*)\"")
SIZE = (5.6, 3.2)
BAR = "bar-"
POINTS = 72  # of an inch: the unit of SVG files by matplotlib
MAX_VALUES = 1500  # of a line, that a page shows as numbers


class Mark(NamedTuple):
    """Where something begins on the horizontal axis, and what."""

    x: float
    name: str


class Series(NamedTuple):
    """A line of a plot."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


def new_plot(x_label: str, y_label: str) -> tuple[Any, Any]:
    """A figure and its axes."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise UsageError("plots need matplotlib: pip install 'tsgkit[plot]'") from None
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    axes.tick_params(colors=INK, which="both")
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)
    axes.grid(visible=True, axis="y", color=INK, alpha=0.15)
    return figure, axes


def hue(number: int) -> str:
    return HUES[number % len(HUES)][0]


def line_plot(title: str, series: Sequence[Series], x_label: str, y_label: str, marks: Sequence[Mark] = ()) -> str:
    """Lines over a common axis, with a legend if there are several, and with the values for the script of the page."""
    figure, axes = new_plot(x_label, y_label)
    for number, (name, x, y) in enumerate(series):
        axes.plot(x, y, color=hue(number), linewidth=1.3, label=literal(name))
    for mark in marks:
        axes.axvline(mark.x, color=INK, linewidth=0.8, linestyle="dashed", alpha=0.6)
        place = (mark.x, 1.0)
        axes.annotate(
            literal(mark.name),
            place,
            xytext=(3, 2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            color=INK,
            fontsize=8,
        )
    if len(series) > 1:
        figure.legend(frameon=False, labelcolor=INK, loc="outside upper right", ncols=3)
    picture = inline_svg(figure, title)
    return f'<div data-plot="{escape(json.dumps(values_of(figure, axes, series, x_label)))}">{picture}</div>'


def values_of(figure: Any, axes: Any, series: Sequence[Series], x_label: str) -> dict[str, Any]:
    """The values of a plot, and where its axes are in the picture."""
    longest = max((each.x for each in series), key=len)
    step = max(1, -(-len(longest) // MAX_VALUES))
    box, height = axes.get_window_extent(), figure.get_figheight() * POINTS
    scale = POINTS / figure.dpi
    edges = (box.x0 * scale, height - box.y1 * scale, box.x1 * scale, height - box.y0 * scale)
    return {
        "box": [round(edge, 2) for edge in edges],
        "limits": [float(limit) for limit in axes.get_xlim()],
        "x": list(longest)[::step],
        "series": [{"name": each.name, "y": [rounded(value) for value in each.y[::step]]} for each in series],
        "label": x_label,
    }


def rounded(value: float) -> float | None:
    """A value as the page shows it; None for one that is not finite, which JSON does not have."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def bar_plot(
    title: str,
    names: Sequence[str],
    bars: Sequence[tuple[str, Sequence[float]]],
    x_label: str,
    y_label: str,
    *,
    is_log: bool = False,
) -> str:
    """Groups of bars, one group for every name; with a logarithmic axis if `is_log`."""
    figure, axes = new_plot(x_label, y_label)
    width = 0.8 / len(bars)
    notes: list[str] = []
    for number, (name, values) in enumerate(bars):
        places = [place + (number - (len(bars) - 1) / 2) * width for place in range(len(names))]
        drawn = axes.bar(places, values, width=width, color=hue(number), label=literal(name))
        for bar, group, value in zip(drawn, names, values, strict=True):
            bar.set_gid(f"{BAR}{len(notes)}")
            notes.append(f"{group}: {name} {value:,.2f}".removesuffix(".00"))
    step = max(1, -(-len(names) // 20))
    axes.set_xticks(range(0, len(names), step), [literal(name) for name in names[::step]])
    if sum(map(len, names[::step])) > 40:
        axes.tick_params(axis="x", rotation=60)
    if is_log:
        axes.set_yscale("log")
    if len(bars) > 1:
        figure.legend(frameon=False, labelcolor=INK, loc="outside upper right", ncols=3)
    return inline_svg(figure, title, notes)


def literal(text: str) -> str:
    """A text that matplotlib neither reads as a formula nor hides, as it hides names that begin with ``_``."""
    return ("\N{ZERO WIDTH SPACE}" if text.startswith("_") else "") + text.replace("$", r"\$")


def inline_svg(figure: Any, title: str, notes: Sequence[str] = ()) -> str:
    """A figure as an ``svg`` element of a page, without a style sheet, which would apply to the whole page.

    `notes` are shown at bars, which are named by their numbers.
    """
    import matplotlib as mpl  # noqa: PLC0415

    file = io.StringIO()
    # Identifiers depend on the salt: those of different plots must differ, and the same plot must always be the same.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = STYLE.sub(as_attributes, text)
    for number, note in enumerate(notes):
        text = text.replace(f'<g id="{BAR}{number}">', f"<g><title>{escape(note)}</title>", 1)
    used = {first or second for first, second in USED.findall(text)}
    text = NAMED.sub(lambda match: match[0] if match[1] in used else "", text)
    text = text.replace(INK, "currentColor")
    for number, (light, _) in enumerate(HUES):
        text = text.replace(light, f"var(--hue{number})")
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1).strip()


def as_attributes(match: re.Match[str]) -> str:
    """The declarations of a style attribute as SVG attributes, which the content security policy allows."""
    attributes = []
    for declaration in match[1].split(";"):
        name, _, value = declaration.partition(":")
        name, value = name.strip(), value.strip()
        if name == "font":
            size = re.search(r"[\d.]+px", value)
            name, value = "font-size", size[0] if size else "10px"
        if name and name != "font-family":
            attributes.append(f' {name}="{value}"')
    return "".join(attributes)
