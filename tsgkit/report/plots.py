"""Plots by matplotlib as SVG elements of a page, with text as text and with the colours of the page.

matplotlib is the extra ``plot``; it is imported for the first plot.
"""

import io
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tsgkit.drawing.colours import HUES
from tsgkit.errors import UsageError
from tsgkit.report.page import escape

# This colour is replaced by that of the page's text.
INK = "#010203"
STYLE = re.compile(r' style="([^"]*)"')
NAMED = re.compile(r' id="([^"]*)"')
USED = re.compile(r"url\(#([^)]*)\)|href=\"#([^\"]*)\"")
SIZE = (5.6, 3.2)


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


def line_plot(title: str, series: Sequence[Series], x_label: str, y_label: str) -> str:
    """Lines over a common axis, with a legend if there are several."""
    figure, axes = new_plot(x_label, y_label)
    for number, (name, x, y) in enumerate(series):
        axes.plot(x, y, color=hue(number), linewidth=1.3, label=literal(name))
    if len(series) > 1:
        axes.legend(frameon=False, labelcolor=INK)
    return inline_svg(figure, title)


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
    for number, (name, values) in enumerate(bars):
        places = [place + (number - (len(bars) - 1) / 2) * width for place in range(len(names))]
        axes.bar(places, values, width=width, color=hue(number), label=literal(name))
    step = max(1, -(-len(names) // 20))
    axes.set_xticks(range(0, len(names), step), [literal(name) for name in names[::step]])
    if sum(map(len, names[::step])) > 40:
        axes.tick_params(axis="x", rotation=60)
    if is_log:
        axes.set_yscale("log")
    if len(bars) > 1:
        axes.legend(frameon=False, labelcolor=INK)
    return inline_svg(figure, title)


def literal(text: str) -> str:
    """A text that matplotlib neither reads as a formula nor hides, as it hides names that begin with ``_``."""
    return ("\N{ZERO WIDTH SPACE}" if text.startswith("_") else "") + text.replace("$", r"\$")


def inline_svg(figure: Any, title: str) -> str:
    """A figure as an ``svg`` element of a page, without a style sheet, which would apply to the whole page."""
    import matplotlib as mpl  # noqa: PLC0415

    file = io.StringIO()
    # Identifiers depend on the salt: those of different plots must differ, and the same plot must always be the same.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = STYLE.sub(as_attributes, text)
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
