"""Drawings as SVG: each fragment in its colour, on a light or dark background as the reader's system prefers.

All text is escaped. Colours are CSS custom properties, with plain attributes for programs without CSS.
"""

from html import escape
from unicodedata import combining, east_asian_width

from tsgkit.drawing._colours import FAINT, HUES, INK, MISSED, PAPER, RIGHT, WRONG, variables
from tsgkit.drawing._trees import BEGINS, FOOT, INSERTED, OPEN, Drawing, Layout, Node, lay_out

FONT_SIZE = 15.0
SMALL = 10.0
LEVEL = 54.0  # from a label to those below it
WORD_LEVEL = 36.0  # from a tag to its word
MARGIN = 14.0
GAP = 16.0
ABOVE, BELOW = 15.0, 6.0  # of a line of text, from its baseline
BADGE = 7.0
BOLD = 1.12  # how much wider words are than labels
OPEN_SIGN, FOOT_SIGN = "↓", "*"
MARKS = {"right": ("", RIGHT), "wrong": ("✗", WRONG), "missed": ("○", MISSED)}
NARROW, WIDE = frozenset("ijlftrI.,:;|!'`()[]"), frozenset("mwMW@%—")
# Not in a document's namespace: these are put into pages.
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"

STYLE = (
    f".tsg{{font-family:{FONT};font-size:{FONT_SIZE:g}px}}"
    ".tsg text{fill:var(--hue,var(--ink));text-anchor:middle}"
    ".tsg .word text{font-weight:600}"
    ".tsg .between text{font-size:12px;opacity:.8}"
    f".tsg .small{{font-size:{SMALL:g}px;fill:var(--faint)}}"
    ".tsg .line{stroke:var(--hue,var(--faint));stroke-width:1.6;fill:none}"
    ".tsg .dashed{stroke-dasharray:5 4}"
    ".tsg .halo{stroke:var(--hue);stroke-width:27;stroke-linecap:round;stroke-linejoin:round;fill:none;opacity:.15}"
    ".tsg .knot{fill:var(--paper);stroke:var(--hue,var(--faint));stroke-width:1.6}"
    ".tsg .badge{fill:var(--hue)}.tsg .plus{fill:var(--paper);font-weight:700;font-size:12px}"
    ".tsg .paper{fill:var(--paper)}"
    ".tsg .right text{fill:var(--right)}.tsg .wrong text{fill:var(--wrong)}.tsg .missed text{fill:var(--missed)}"
    + "".join(f".hue{number}{{--hue:var(--hue{number})}}" for number in range(len(HUES)))
)


def tree_style(selector: str = ":root") -> str:
    """The style of drawings in a page, with the colours as properties of `selector`."""
    return (
        f"{selector}{{{variables(dark=False)}}}"
        f"@media (prefers-color-scheme:dark){{{selector}{{{variables(dark=True)}}}}}{STYLE}"
    )


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """The approximate width of a text; sans-serif fonts differ little between systems."""
    return size * sum(map(letter_width, text))


def letter_width(char: str) -> float:
    if combining(char):
        return 0.0
    if east_asian_width(char) in "WF":
        return 1.0
    if char in NARROW:
        return 0.36
    if char in WIDE:
        return 0.92
    return 0.69 if char.isupper() or char.isdigit() else 0.58


def node_width(node: Node) -> float:
    """The width of a node."""
    width = text_width(node.text, 12.0 if node.is_intermediate else FONT_SIZE) * (BOLD if node.is_word else 1.0)
    width += text_width(node.small + shown_value(node), SMALL)
    if node.role == INSERTED:
        width += 4 * BADGE
    return width + (10.0 if node.role in (OPEN, FOOT) else 0.0)


def shown_value(node: Node) -> str:
    sign = MARKS[node.mark][0] if node.mark else ""
    return f"{sign}{node.value}"


def heights(drawing: Drawing) -> list[float]:
    """The baselines of all nodes."""
    y: list[float] = []
    for node in drawing.nodes:
        y.append(MARGIN + ABOVE if node.parent < 0 else y[node.parent] + (WORD_LEVEL if node.is_word else LEVEL))
    return y


def draw_svg(drawing: Drawing, *, standalone: bool = True, clickable: bool = False) -> str:
    """A drawing as an ``svg`` element.

    Parameters
    ----------
    drawing : Drawing
    standalone : bool
        Whether it contains its style and background; in a page, `tree_style` is the style of all drawings.
    clickable : bool
        Whether nodes are buttons, which can be reached with the keyboard.

    Examples
    --------
    >>> from nltk.tree import Tree
    >>> picture = draw_svg(Drawing.of_tree(Tree("X", ["<script>"])))
    >>> "&lt;script&gt;" in picture, "<script" in picture
    (True, False)
    """
    layout = lay_out(drawing, node_width, GAP)
    y = heights(drawing)
    width, height = layout.width + 2 * MARGIN, max(y, default=0.0) + BELOW + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tsg" role="{"group" if clickable else "img"}"'
        f' aria-label="{escape(visible(drawing.title))}" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="{FONT_SIZE:g}">'
    ]
    if standalone:
        parts.append(f"<style>{tree_style('.tsg')}</style>")
        parts.append(f'<rect class="paper" width="100%" height="100%" rx="6" fill="{PAPER[0]}"/>')
    parts += halos(drawing, layout, y)
    parts += [line(drawing, number, layout, y) for number, node in enumerate(drawing.nodes) if node.parent >= 0]
    parts += [
        label(node, number, layout.x[number] + MARGIN, y[number], clickable)
        for number, node in enumerate(drawing.nodes)
    ]
    return "".join([*parts, "</svg>"])


def halos(drawing: Drawing, layout: Layout, y: list[float]) -> list[str]:
    """The coloured area behind every fragment: along its edges, and part of those to its frontier nodes."""
    paths: dict[int, list[str]] = {}
    hue_of: dict[int, int] = {}
    middle = -ABOVE / 2 + 2
    for number, node in enumerate(drawing.nodes):
        if node.step >= 0 and node.hue >= 0:
            hue_of[node.step] = node.hue
            here = f"{layout.x[number] + MARGIN:.1f} {y[number] + middle:.1f}"
            paths.setdefault(node.step, []).append(f"M{here}L{here}")
        if node.parent < 0 or drawing.nodes[node.parent].step < 0:
            continue
        parent = drawing.nodes[node.parent]
        share = 1.0 if node.step == parent.step else 0.4
        x1, y1 = layout.x[node.parent] + MARGIN, y[node.parent] + middle
        x2, y2 = layout.x[number] + MARGIN, y[number] + middle
        end = f"{x1 + share * (x2 - x1):.1f} {y1 + share * (y2 - y1):.1f}"
        paths.setdefault(parent.step, []).append(f"M{x1:.1f} {y1:.1f}L{end}")
    return [
        f'<path class="halo hue{hue_of[step]}" data-step="{step}" d="{"".join(path)}" fill="none"'
        f' stroke="{HUES[hue_of[step]][0]}" stroke-width="27" stroke-linecap="round" opacity="0.15"/>'
        for step, path in sorted(paths.items())
    ]


def line(drawing: Drawing, number: int, layout: Layout, y: list[float]) -> str:
    """The line from a node up to its parent."""
    node = drawing.nodes[number]
    x1, y1 = layout.x[node.parent] + MARGIN, y[node.parent] + BELOW
    x2, y2 = layout.x[number] + MARGIN, y[number] - ABOVE
    hue, colour = hue_class(node.edge_hue), ink(node.edge_hue, FAINT)
    dashes = ' stroke-dasharray="5 4"' if node.is_dashed else ""
    drawn = (
        f'<line class="line{hue}{" dashed" if node.is_dashed else ""}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}"'
        f' y2="{y2:.1f}" stroke="{colour}" stroke-width="1.6"{dashes}/>'
    )
    if node.role in (BEGINS, OPEN):
        drawn += (
            f'<circle class="knot{hue}" cx="{x2:.1f}" cy="{y2:.1f}" r="3" fill="{PAPER[0]}" stroke="{colour}"'
            ' stroke-width="1.6"/>'
        )
    return drawn


def hue_class(hue: int) -> str:
    return f" hue{hue}" if hue >= 0 else ""


def ink(hue: int, otherwise: tuple[str, str]) -> str:
    """The colour for programs without CSS."""
    return HUES[hue][0] if hue >= 0 else otherwise[0]


def visible(text: str) -> str:
    """A text without the control characters that XML forbids: each becomes a replacement character.

    Examples
    --------
    >>> visible("a\\x00b")
    'a\\ufffdb'
    """
    return "".join(
        char
        if char in "\t\n\r" or (char >= " " and not "\ud800" <= char <= "\udfff" and char not in "\ufffe\uffff")
        else "\ufffd"
        for char in text
    )


def label(node: Node, number: int, x: float, y: float, clickable: bool) -> str:
    """The text of a node, with the small text beside it."""
    classes = ["node"]
    classes += ["word"] * node.is_word + ["between"] * node.is_intermediate
    classes += [name for name in (node.role, node.mark) if name]
    colour = MARKS[node.mark][1][0] if node.mark else ink(node.hue, INK)
    size = ' font-size="12"' if node.is_intermediate else ""
    focus = ' tabindex="0" role="button"' if clickable and not node.is_word else ""
    parts = [
        f'<g class="{" ".join(classes)}{hue_class(node.hue)}" data-node="{number}" data-step="{node.step}"{focus}>'
    ]
    if node.note:
        parts.append(f"<title>{escape(visible(node.note), quote=False)}</title>")
    if node.role == INSERTED:
        badge = x - node_width(node) / 2 + BADGE
        parts.append(
            f'<circle class="badge" cx="{badge:.1f}" cy="{y - 5:.1f}" r="{BADGE:g}" fill="{colour}"/>'
            f'<text class="plus" x="{badge:.1f}" y="{y - 1:.1f}" text-anchor="middle" font-size="12"'
            f' fill="{PAPER[0]}">+</text>'
        )
    sign = {OPEN: OPEN_SIGN, FOOT: FOOT_SIGN}.get(node.role, "")
    text = escape(visible(node.text) + sign, quote=False)
    if node.small:
        drop = ' dy="4"' if node.is_subcategory else ""
        text += f'<tspan class="small"{drop} font-size="{SMALL:g}">{escape(visible(node.small), quote=False)}</tspan>'
    value = shown_value(node)
    if value:
        rise = -9 if node.small and node.is_subcategory else -5
        value = escape(visible(value), quote=False)
        text += f'<tspan class="small" dx="1" dy="{rise}" font-size="{SMALL:g}">{value}</tspan>'
    parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="{colour}"{size}>{text}</text></g>')
    return "".join(parts)
