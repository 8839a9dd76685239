"""Where two parsers differ, sentence by sentence: the brackets that only one of them has right."""

from tsgkit.evaluation._differences import (
    Difference,
    Differences,
    Marks,
    ScoredBracket,
    find_differences,
    mark_brackets,
    scored_brackets,
)

__all__ = [
    "Difference",
    "Differences",
    "Marks",
    "ScoredBracket",
    "find_differences",
    "mark_brackets",
    "scored_brackets",
]
