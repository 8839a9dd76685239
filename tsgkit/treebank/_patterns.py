"""Patterns for labels and words: ``*`` is any text, ``?`` any character; a backslash makes the next one ordinary.

Cleaning, used by relabelling rules and by the options of bracket readers. Every ``*`` takes as little as it can, so
that matching never goes back: its time is bounded by the lengths of pattern and text, also for hostile ones.
"""

from dataclasses import dataclass

from tsgkit.errors import TreebankError

ANY = ""  # one character, whichever; no other item of a segment is empty


@dataclass(frozen=True)
class Pattern:
    """A pattern, split at its stars into segments of characters.

    Examples
    --------
    >>> Pattern.parse("*-*").match("NP-SBJ-1")
    ('NP', 'SBJ-1')
    >>> Pattern.parse("V?").match("VB"), Pattern.parse("V?").match("VBD")
    (('B',), None)
    """

    text: str
    segments: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, text: str) -> "Pattern":
        """The pattern of a text; an error if it ends with a backslash or is empty."""
        if not text:
            raise TreebankError("an empty pattern matches nothing")
        segments: list[list[str]] = [[]]
        characters = iter(text)
        for character in characters:
            if character == "*":
                segments.append([])
            elif character == "?":
                segments[-1].append(ANY)
            elif character == "\\":
                literal = next(characters, None)
                if literal is None:
                    raise TreebankError(f"pattern {text!r}: nothing follows the last backslash; write \\\\ for one")
                segments[-1].append(literal)
            else:
                segments[-1].append(character)
        return cls(text, tuple(map(tuple, segments)))

    @property
    def n_captured(self) -> int:
        """How many stars and question marks there are."""
        return len(self.segments) - 1 + sum(item == ANY for segment in self.segments for item in segment)

    def match(self, text: str) -> tuple[str, ...] | None:
        """What the stars and question marks stand for, if the whole text matches."""
        first, *others = self.segments
        captured = captured_at(first, text, 0)
        if captured is None:
            return None
        position = len(first)
        for number, segment in enumerate(others, start=1):
            found = self.find(segment, text, position, is_last=number == len(others))
            if found is None:
                return None
            start, more = found
            captured += (text[position:start], *more)
            position = start + len(segment)
        return captured if position == len(text) else None

    @staticmethod
    def find(
        segment: tuple[str, ...], text: str, position: int, *, is_last: bool
    ) -> tuple[int, tuple[str, ...]] | None:
        """Where a segment begins after a star, and what it captures."""
        last_start = len(text) - len(segment)
        for start in (last_start,) if is_last else range(position, last_start + 1):
            captured = captured_at(segment, text, start) if start >= position else None
            if captured is not None:
                return start, captured
        return None


def captured_at(segment: tuple[str, ...], text: str, start: int) -> tuple[str, ...] | None:
    """What the question marks of a segment stand for at a place of a text, or None if it does not match there."""
    part = text[start : start + len(segment)]
    if len(part) < len(segment) or any(item not in (ANY, found) for item, found in zip(segment, part, strict=True)):
        return None
    return tuple(found for item, found in zip(segment, part, strict=True) if item == ANY)
