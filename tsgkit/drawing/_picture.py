"""Drawings as PNG and PDF: the SVG of a drawing, painted by matplotlib.

After `tsgkit.drawing._svg`, whose elements it knows and no others: lines, paths of straight lines and cubic curves,
circles and text. So there is one layout for all formats. matplotlib is used since it needs no library of the system, is
the extra `plot` already, and embeds its own fonts.
"""

import io
import re
from typing import Any
from xml.etree import ElementTree

from tsgkit.errors import UsageError

RESOLUTION = 144  # dots per inch of a PNG; a unit of the SVG is 1/96 inch
UNITS_PER_INCH, POINTS_PER_UNIT = 96.0, 0.75
COMMAND = re.compile(r"([MLC])([^MLC]*)")


def paint(svg: str, form: str) -> bytes:
    """The bytes of a picture.

    Parameters
    ----------
    svg : str
        As `tsgkit.drawing._svg.draw_svg` and `tsgkit.drawing._arcs` write it.
    form : {"png", "pdf"}
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - an extra
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise UsageError(f"a {form} needs matplotlib: pip install 'tsgkit[plot]'; .svg needs nothing") from None
    root = ElementTree.fromstring(svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    figure = Figure(figsize=(width / UNITS_PER_INCH, height / UNITS_PER_INCH), dpi=RESOLUTION)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.set_axis_off()
    for order, element in enumerate(root.iter()):
        paint_element(axes, element.tag.rpartition("}")[2], element, order)
    buffer = io.BytesIO()
    metadata = {"CreationDate": None} if form == "pdf" else {"Software": None}
    figure.savefig(buffer, format=form, metadata=metadata)
    return buffer.getvalue()


def paint_element(axes: Any, tag: str, element: ElementTree.Element, order: int) -> None:
    """Add one element to the picture; later ones are above earlier ones."""
    from matplotlib import patches  # noqa: PLC0415
    from matplotlib.path import Path  # noqa: PLC0415

    value = element.attrib
    style: dict[str, Any] = {"zorder": order, "alpha": float(value.get("opacity", 1))}
    if tag == "text":
        paint_text(axes, element, order)
        return
    edge = value.get("stroke", "none")
    pen = {"linewidth": float(value.get("stroke-width", 0)) * POINTS_PER_UNIT, "edgecolor": edge}
    if "stroke-dasharray" in value:
        pen["linestyle"] = (0, tuple(float(each) for each in value["stroke-dasharray"].split()))
    if tag == "line":
        ends = [(float(value[f"x{end}"]), float(value[f"y{end}"])) for end in (1, 2)]
        axes.add_patch(patches.PathPatch(Path(ends), facecolor="none", **pen, **style))
    elif tag == "path":
        vertices, codes = path_of(value["d"])
        ends_of_lines = {"capstyle": value.get("stroke-linecap", "butt"), "joinstyle": "round"}
        fill = value.get("fill", "none")
        axes.add_patch(patches.PathPatch(Path(vertices, codes), facecolor=fill, **ends_of_lines, **pen, **style))
    elif tag == "circle":
        centre = (float(value["cx"]), float(value["cy"]))
        axes.add_patch(patches.Circle(centre, float(value["r"]), facecolor=value.get("fill"), **pen, **style))


def path_of(text: str) -> tuple[list[tuple[float, float]], list[int]]:
    """The points and matplotlib's codes of a path.

    Examples
    --------
    >>> path_of("M0 1L2 3")
    ([(0.0, 1.0), (2.0, 3.0)], [1, 2])
    """
    codes = {"M": 1, "L": 2, "C": 4}
    vertices: list[tuple[float, float]] = []
    found: list[int] = []
    for command, numbers in COMMAND.findall(text):
        values = [float(number) for number in re.findall(r"-?[\d.]+", numbers)]
        points = list(zip(values[::2], values[1::2], strict=True))
        vertices += points
        found += [codes[command]] * len(points)
    return vertices, found


def paint_text(axes: Any, element: ElementTree.Element, order: int) -> None:
    """Text with its smaller parts beside it: sub- and superscripts."""
    value = element.attrib
    size = float(value.get("font-size", 15))
    x, y = float(value["x"]), float(value["y"])
    parts = [(element.text or "", size, 0.0, value.get("fill", "black"))]
    rise = 0.0
    for part in element:
        rise += float(part.attrib.get("dy", 0))
        parts.append((part.text or "", float(part.attrib.get("font-size", size)), rise, value.get("fill", "black")))
    drawn: list[Any] = []
    for text, points, lowered, colour in parts:
        placed = axes.text(x, y + lowered, text, fontsize=points * POINTS_PER_UNIT, color=colour, zorder=order)
        placed.set_parse_math(False)
        placed.set_verticalalignment("baseline")
        drawn.append(placed)
    widths = [each.get_window_extent().width * UNITS_PER_INCH / RESOLUTION for each in drawn]
    left = x - sum(widths) / 2 if value.get("text-anchor") == "middle" else x
    for placed, width in zip(drawn, widths, strict=True):
        placed.set_x(left)
        left += width
