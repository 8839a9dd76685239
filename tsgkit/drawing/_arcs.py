"""Dependencies drawn as arcs: words in a row, an arrow from every head to its dependents.

Beside `tsgkit.drawing._trees`; the same outputs: SVG, text, LaTeX (tikz-dependency). Arcs over fewer words lie below
those over more, and leave their head farther from its middle. So arcs that do not cross in the sentence do not touch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from nltk.tree import Tree

from tsgkit._messages import counted
from tsgkit.drawing._colours import FAINT, HUES, INK, PAPER
from tsgkit.drawing._latex import escape_latex
from tsgkit.drawing._svg import FONT_SIZE, MARGIN, SMALL, text_width, tree_style, visible
from tsgkit.treebank._clean import Cleaning
from tsgkit.treebank._dependencies import Dependency, dependencies_of
from tsgkit.treebank._heads import HeadRules

GAP, RISE, ARROW, CORNER = 18.0, 22.0, 4.0, 9.0
APART = 5.0  # arcs that leave a word
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

    @classmethod
    def of_tree(cls, tree: Tree, rules: HeadRules, cleaning: Cleaning | None = None) -> "ArcDrawing":
        """The dependencies of a tree as annotated: cleaned, by default of traces alone, but with its function tags."""
        steps = replace(cleaning or Cleaning(repeats=False, root=""), functions=False)
        clean = steps.apply(tree)
        return cls([] if clean is None else dependencies_of(clean, rules))

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

    def starts(self, centres: Sequence[float]) -> list[float]:
        """For every dependency, where its arc leaves the head: towards the dependent, higher arcs nearer the middle."""
        heights = self.heights()
        starts = [centres[max(each.head - 1, 0)] for each in self.dependencies]
        sides: dict[tuple[int, int], list[int]] = {}
        for place, each in enumerate(self.dependencies):
            if each.head:
                sides.setdefault((each.head - 1, 1 if place >= each.head else -1), []).append(place)
        for (head, side), places in sides.items():
            room = abs(centres[head + side] - centres[head]) / 2 - ARROW
            step = min(APART, max(room, 1.0) / len(places))
            for number, place in enumerate(sorted(places, key=lambda place: -heights[place]), start=1):
                starts[place] += side * step * number
        return starts

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
        heights, starts = self.heights(), self.starts(centres)
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
            top = base - RISE * heights[place] if each.head else MARGIN
            parts.append(arc(starts[place] if each.head else None, centres[place], top, base, place % len(HUES)))
            middle = (starts[place] + centres[place]) / 2 if each.head else centres[place]
            parts.append(text(middle, top - 4, each.label, FAINT[0]))
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
        return f"<ArcDrawing of {counted(len(self.dependencies), 'word')}>"

    def __str__(self) -> str:
        return self.text().removesuffix("\n")


def arc(start: float | None, end: float, top: float, base: float, hue: int) -> str:
    """The arrow from a head at `start` to a word at `end`, or from above to the root: up, across, and down."""
    down = f"L{end:.1f} {base:.1f}M{end - ARROW:.1f} {base - 2 * ARROW:.1f}L{end:.1f} {base:.1f}"
    tip = f"{down}L{end + ARROW:.1f} {base - 2 * ARROW:.1f}"
    if start is None:
        path = f"M{end:.1f} {top:.1f}{tip}"
    else:
        radius = min(CORNER, abs(end - start) / 2)
        inner, outer = (start + radius, end - radius) if start < end else (start - radius, end + radius)
        path = (
            f"M{start:.1f} {base:.1f}L{start:.1f} {top + radius:.1f}C{start:.1f} {top:.1f} {start:.1f} {top:.1f}"
            f" {inner:.1f} {top:.1f}L{outer:.1f} {top:.1f}C{end:.1f} {top:.1f} {end:.1f} {top:.1f}"
            f" {end:.1f} {top + radius:.1f}{tip}"
        )
    return f'<path class="line hue{hue}" d="{path}" fill="none" stroke="{HUES[hue][0]}" stroke-width="1.6"/>'


def text(x: float, y: float, shown: str, colour: str, *, size: float = SMALL, kind: str = "small") -> str:
    """A centred text."""
    content = escape(visible(shown), quote=False)
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="{size:g}"'
        f' fill="{colour}">{content}</text>'
    )
