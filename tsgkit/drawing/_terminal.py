"""Drawings as text: top-down if the terminal is wide enough, else as an indented list.

Colours are those of ANSI, one for every fragment; see `wants_colour` for when.
"""

import os
from typing import TextIO
from unicodedata import category, combining, east_asian_width

from tsgkit.drawing._colours import TERMINAL
from tsgkit.drawing._trees import BEGINS, FOOT, INSERTED, OPEN, Drawing, Node, lay_out

GAP = 2
SIGNS = {INSERTED: ("+", ""), BEGINS: ("•", ""), OPEN: ("", "↓"), FOOT: ("", "*")}
MARKS = {"right": ("", 32), "wrong": ("✗", 31), "missed": ("○", 33)}


def wants_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal that shows colours; never if ``NO_COLOR`` is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def printable(text: str) -> str:
    """A text without control characters.

    Examples
    --------
    >>> printable("a\\x1b[31mb")
    'a\\ufffd[31mb'
    """
    return "".join("\ufffd" if category(char) in ("Cc", "Cs", "Zl", "Zp") else char for char in text)


def columns(text: str) -> int:
    """The number of terminal columns of a text."""
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def shown(node: Node) -> str:
    """The text of a node: its label with subcategory, value and signs."""
    before, after = SIGNS.get(node.role, ("", ""))
    small = f"-{node.small}" if node.is_subcategory else node.small
    sign = MARKS[node.mark][0] if node.mark else ""
    value = f"={node.value}" if node.value else ""
    return printable(f"{before}{node.text}{small}{after}{value}{sign}")


def colour_of(node: Node) -> int:
    """The ANSI code of the colour of a node; 0 for the default."""
    if node.mark:
        return MARKS[node.mark][1]
    return TERMINAL[node.hue] if node.hue >= 0 else 0


class Canvas:
    """Characters in rows, each with a colour."""

    def __init__(self) -> None:
        self.rows: list[list[tuple[str, int]]] = []

    def put(self, row: int, column: int, text: str, colour: int) -> None:
        """Write a text; empty columns to its left are filled with spaces."""
        while len(self.rows) <= row:
            self.rows.append([])
        cells = self.rows[row]
        end = column + columns(text)
        cells.extend([(" ", 0)] * (end - len(cells)))
        for char in text:
            size = columns(char)
            if size == 0 and column:
                cells[column - 1] = (cells[column - 1][0] + char, colour)
                continue
            cells[column] = (char, colour)
            for place in range(column + 1, column + size):
                cells[place] = ("", colour)
            column += size

    def lines(self, colour: bool) -> list[str]:
        """The rows as text."""
        result = []
        for cells in self.rows:
            line, current = [], 0
            for char, own in cells:
                if colour and own != current and char.strip():
                    line.append("\x1b[0m" if own == 0 else f"\x1b[{own}m")
                    current = own
                line.append(char)
            text = "".join(line).rstrip()
            result.append(f"{text}\x1b[0m" if current else text)
        return result


def draw_text(drawing: Drawing, *, width: int | None = None, colour: bool = False) -> str:
    """A drawing as lines of text.

    Parameters
    ----------
    drawing : Drawing
    width : int, optional
        Maximum number of columns; a wider tree is drawn as an indented list. No limit by default.
    colour : bool
        Whether to use ANSI codes.
    """
    if not drawing.nodes:
        return ""
    layout = lay_out(drawing, lambda node: max(columns(shown(node)), 1), GAP)
    if width is not None and layout.width > width:
        return outline(drawing, colour=colour)
    canvas = Canvas()
    # The centres are rounded once, so that lines meet labels.
    middle = [int(x) for x in layout.x]
    row: list[int] = []
    children = drawing.children()
    for number, node in enumerate(drawing.nodes):
        row.append(0 if node.parent < 0 else row[node.parent] + (1 if node.is_word else 2))
        text = shown(node)
        canvas.put(row[number], max(middle[number] - columns(text) // 2, 0), text, colour_of(node))
        below = [child for child in children[number] if not drawing.nodes[child].is_word]
        if below:
            stops = {middle[child]: drawing.nodes[child].is_dashed for child in below}
            hue = drawing.nodes[below[0]].edge_hue
            draw_lines(canvas, row[number] + 1, middle[number], stops, TERMINAL[hue] if hue >= 0 else 0)
    return "\n".join(canvas.lines(colour)) + "\n"


def draw_lines(canvas: Canvas, row: int, above: int, stops: dict[int, bool], colour: int) -> None:
    """The lines between a node and its children.

    Parameters
    ----------
    canvas : Canvas
    row : int
        The row between them.
    above : int
        The column of the node above.
    stops : dict
        For the column of every child, whether its line is dashed.
    colour : int
    """
    left, right = min(*stops, above), max(*stops, above)
    for column in range(left, right + 1):
        goes_left, goes_right = column > left, column < right
        dashed = any(stops[stop] and min(stop, above) < column < max(stop, above) for stop in stops)
        sign = LINES[column == above, column in stops, goes_left, goes_right]
        canvas.put(row, column, "╌" if dashed and sign == "─" else sign, colour)


# By whether a line continues up, down, left, right.
LINES = {
    (True, True, False, False): "│",
    (True, False, True, True): "┴",
    (True, True, True, True): "┼",
    (True, True, True, False): "┤",
    (True, True, False, True): "├",
    (True, False, False, True): "└",
    (True, False, True, False): "┘",
    (False, True, False, True): "┌",
    (False, True, True, False): "┐",
    (False, True, True, True): "┬",
    (False, False, True, True): "─",
}


def outline(drawing: Drawing, *, colour: bool = False) -> str:
    """A drawing as an indented list, one node per line, words beside their tags.

    Examples
    --------
    >>> from nltk.tree import Tree
    >>> print(outline(Drawing.of_tree(Tree.fromstring("(S (NP (PRP I)) (VP (VBD ran)))"))), end="")
    S
    ├─ NP
    │  └─ PRP I
    └─ VP
       └─ VBD ran
    """
    return "\n".join(outline_lines(drawing, colour=colour)) + "\n"


def outline_lines(drawing: Drawing, *, colour: bool = False) -> list[str]:
    """The lines of `outline`."""
    children = drawing.children()
    lines: list[str] = []
    # The indentation of the children of a node.
    indent: dict[int, str] = {}
    for number, node in enumerate(drawing.nodes):
        if node.is_word and node.parent >= 0:
            continue
        before = ""
        indent[number] = ""
        if node.parent >= 0:
            is_last = children[node.parent][-1] == number
            before = indent[node.parent] + ("└" if is_last else "├") + ("╌ " if node.is_dashed else "─ ")
            indent[number] = indent[node.parent] + ("   " if is_last else "│  ")
        words = [shown(drawing.nodes[child]) for child in children[number] if drawing.nodes[child].is_word]
        text = " ".join([shown(node), *words])
        code = colour_of(node)
        lines.append(f"{before}\x1b[{code}m{text}\x1b[0m" if colour and code else before + text)
    return lines
