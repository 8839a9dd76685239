"""Dependencies drawn as arcs: words in a row, an arrow from every head to its dependents.

Beside `tsgkit.drawing.trees`; the same outputs: SVG, text, LaTeX (tikz-dependency). Arcs over fewer words lie below
those over more, so that arcs that do not cross in the sentence do not touch in the drawing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from tsgkit.drawing.colours import FAINT, HUES, INK, PAPER
from tsgkit.drawing.latex import escape_latex
from tsgkit.drawing.svg import FONT_SIZE, MARGIN, SMALL, text_width, tree_style, visible
from tsgkit.treebank.dependencies import Dependency

GAP, RISE, ARROW = 18.0, 26.0, 4.0
WORD_LINE, TAG_LINE = 20.0, 36.0  # below the arcs


@dataclass(repr=False)
class ArcDrawing:
    """The dependencies of a sentence, to be drawn.

    Attributes
    ----------
    dependencies : sequence of Dependency

    Examples
    --------
    >>> drawing = ArcDrawing([Dependency("I", "PRP", 2, "NP"), Dependency("ran", "VBD", 0, "root")])
    >>> print(drawing)
    1  I    PRP  2  NP
    2  ran  VBD  0  root
    >>> "<path" in drawing.svg(), "I" in drawing.latex()
    (True, True)
    """

    dependencies: Sequence[Dependency]

    @property
    def sentence(self) -> str:
        """The words."""
        return " ".join(each.word for each in self.dependencies)

    def heights(self) -> list[int]:
        """For every dependency the height of its arc, from 1: above all arcs below it; 0 for the root."""
        spans = {
            place: (min(place, each.head - 1), max(place, each.head - 1))
            for place, each in enumerate(self.dependencies)
            if each.head
        }
        heights = [0] * len(self.dependencies)
        # highest[i]: of the arcs drawn so far over the gap between words i and i + 1.
        highest = [0] * max(len(self.dependencies), 1)
        for place, (start, end) in sorted(spans.items(), key=lambda item: item[1][1] - item[1][0]):
            heights[place] = 1 + max(highest[start:end], default=0)
            highest[start:end] = [heights[place]] * (end - start)
        return heights

    def svg(self, *, standalone: bool = True) -> str:
        """The drawing as an ``svg`` element; all text is escaped."""
        widths = [
            max(text_width(each.word), text_width(each.tag, SMALL), text_width(each.label, SMALL))
            for each in self.dependencies
        ]
        centres: list[float] = []
        x = MARGIN
        for width in widths:
            centres.append(x + width / 2)
            x += width + GAP
        heights = self.heights()
        base = MARGIN + RISE * (max(heights, default=0) + 1)
        width, height = max(x - GAP, MARGIN) + MARGIN, base + TAG_LINE + MARGIN
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="tsg" role="img"'
            f' aria-label="dependencies of: {escape(visible(self.sentence))}" width="{width:.0f}" height="{height:.0f}"'
            f' viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="{FONT_SIZE:g}">'
        ]
        if standalone:
            parts.append(f"<style>{tree_style('.tsg')}</style>")
            parts.append(f'<rect class="paper" width="100%" height="100%" rx="6" fill="{PAPER[0]}"/>')
        for place, each in enumerate(self.dependencies):
            parts.append(arc(centres, place, each, heights[place], base))
            parts.append(text(centres[place], base + WORD_LINE, each.word, INK[0], size=FONT_SIZE, kind="node word"))
            parts.append(text(centres[place], base + TAG_LINE, each.tag, FAINT[0]))
        return "".join([*parts, "</svg>"])

    def text(self, *, width: int | None = None, colour: bool = False) -> str:
        """The dependencies as a table: number, word, tag, head, label."""
        rows = [(str(number), *map(str, each)) for number, each in enumerate(self.dependencies, start=1)]
        widths = [max((len(row[column]) for row in rows), default=0) for column in range(5)]
        lines = ("  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows)
        return "".join(f"{line}\n" for line in lines)

    def latex(self) -> str:
        """The drawing for the LaTeX package ``tikz-dependency``."""
        words = " \\& ".join(escape_latex(each.word) for each in self.dependencies)
        edges = [
            f"\\deproot{{{number}}}{{{escape_latex(each.label)}}}"
            if not each.head
            else f"\\depedge{{{each.head}}}{{{number}}}{{{escape_latex(each.label)}}}"
            for number, each in enumerate(self.dependencies, start=1)
        ]
        inside = "\n".join(edges)
        row = f"\\begin{{deptext}}\n{words} \\\\\n\\end{{deptext}}"
        return f"\\begin{{dependency}}\n{row}\n{inside}\n\\end{{dependency}}\n"

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"<ArcDrawing of {len(self.dependencies)} words>"

    def __str__(self) -> str:
        return self.text().removesuffix("\n")


def arc(centres: Sequence[float], place: int, each: Dependency, height: int, base: float) -> str:
    """The arrow to a word from its head, or from above for the root."""
    x = centres[place]
    hue = place % len(HUES)
    colour = HUES[hue][0]
    pen = f'fill="none" stroke="{colour}" stroke-width="1.6"'
    if not each.head:
        line = f'<path class="line hue{hue}" d="M{x:.1f} {MARGIN:.1f}L{x:.1f} {base:.1f}" {pen}/>'
        label = text(x, MARGIN - 3, each.label, colour)
        return line + arrow(x, base, hue) + label
    # A little to the side, so that arrows that leave and arrive at a word are apart.
    start = centres[each.head - 1] + (4 if each.head - 1 < place else -4)
    top = base - RISE * height
    line = (
        f'<path class="line hue{hue}" d="M{start:.1f} {base:.1f}C{start:.1f} {top:.1f} {x:.1f} {top:.1f}'
        f' {x:.1f} {base:.1f}" {pen}/>'
    )
    # The middle of such a curve lies at three quarters of the height of its control points.
    label = text((start + x) / 2, base - 0.75 * RISE * height - 3, each.label, colour)
    return line + arrow(x, base, hue) + label


def arrow(x: float, y: float, hue: int) -> str:
    """The tip of an arrow that points down."""
    tip = f"M{x - ARROW:.1f} {y - 2 * ARROW:.1f}L{x:.1f} {y:.1f}L{x + ARROW:.1f} {y - 2 * ARROW:.1f}"
    return f'<path class="line hue{hue}" d="{tip}" fill="none" stroke="{HUES[hue][0]}" stroke-width="1.6"/>'


def text(x: float, y: float, shown: str, colour: str, *, size: float = SMALL, kind: str = "small") -> str:
    """A centred text."""
    content = escape(visible(shown), quote=False)
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="{size:g}"'
        f' fill="{colour}">{content}</text>'
    )
