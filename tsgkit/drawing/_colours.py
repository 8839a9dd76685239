"""The colours of drawings: a hue for every fragment, on light and dark backgrounds, in print and in terminals."""

from collections.abc import Sequence

# (on a light background, on a dark one): all are easy to read there.
HUES = (
    ("#1d4ed8", "#7cb0ff"),
    ("#c2410c", "#fb923c"),
    ("#15803d", "#4ade80"),
    ("#7e22ce", "#c99bff"),
    ("#be185d", "#f78fbf"),
    ("#0f766e", "#2dd4bf"),
    ("#92610a", "#facc15"),
    ("#b91c1c", "#f98080"),
    ("#0369a1", "#38bdf8"),
    ("#4d7c0f", "#a3e635"),
    ("#a21caf", "#e879f9"),
    ("#4b5563", "#b8c1cc"),
)
# The same in terminals, as ANSI codes.
TERMINAL = (34, 33, 32, 35, 95, 36, 93, 31, 94, 92, 96, 90)
PAPER = ("#ffffff", "#15181d")
INK = ("#1f2328", "#e6e8eb")
FAINT = ("#6b7280", "#98a1ac")
RIGHT = ("#15803d", "#4ade80")
WRONG = ("#b91c1c", "#f98080")
MISSED = ("#92610a", "#facc15")


def assign_colours(parents: Sequence[int]) -> list[int]:
    """A colour for every fragment: in rotation, but never that of the parent fragment.

    Parameters
    ----------
    parents : sequence of int
        For every fragment the number of its parent fragment, which comes before it; -1 at the root.

    Examples
    --------
    >>> assign_colours([-1, 0, 0])
    [0, 1, 2]
    >>> assign_colours([-1, *([0] * 13)])[-3:]
    [11, 1, 2]
    """
    colours: list[int] = []
    for parent in parents:
        colour = (colours[-1] + 1) % len(HUES) if colours else 0
        if parent >= 0 and colours[parent] == colour:
            colour = (colour + 1) % len(HUES)
        colours.append(colour)
    return colours


def variables(dark: bool) -> str:
    """Declarations of all colours as CSS custom properties."""
    named = (("paper", PAPER), ("ink", INK), ("faint", FAINT), ("right", RIGHT), ("wrong", WRONG), ("missed", MISSED))
    pairs = [*named, *((f"hue{number}", hue) for number, hue in enumerate(HUES))]
    return "".join(f"--{name}:{value[dark]};" for name, value in pairs)
