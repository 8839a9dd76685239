"""Which presets a file of brackets may need: a remedy for errors of files that are read without one.

First stage of the flow, on errors only. Many treebanks have brackets that are not those of the Penn Treebank; their
format cannot be recognised by a first line, but their presets can be tried on the beginning of the file.
"""

import fnmatch
import os

from tsgkit._files import DAMAGED_ARCHIVE, TooLongError, lines_of, open_binary
from tsgkit.errors import TreebankError, TsgkitError
from tsgkit.treebank._brackets import read_brackets
from tsgkit.treebank._decoding import decoded
from tsgkit.treebank._formats import ENCODING, FALLBACK, ReadOptions
from tsgkit.treebank._presets import load_preset, preset_names

# How much of a file is tried; a file of one line may be long.
MOST_LINES, MOST_BYTES = 2000, 1 << 22
# The beginning may end in the middle of a tree, and treebanks have bad trees.
MOST_BAD = 0.2


def with_preset_guessed(error: TreebankError, path: str) -> TreebankError:
    """The error of a file that was read as Penn brackets; its remedy names the presets that read the beginning."""
    names = presets_that_read(path)
    if not names:
        return error
    remedy = f"--treebank={' or '.join(names)} reads the beginning of this file"
    return TreebankError(f"{error.problem}; {remedy}", error.path, error.line, error.column, reason=error.reason)


def presets_that_read(path: str) -> list[str]:
    """The presets with brackets of their own that read the beginning of a file which is not in Penn brackets."""
    lines = beginning_of(path)
    if share_of_bad(lines, ENCODING, {}) <= 0.5:
        return []
    presets = [load_preset(name) for name in preset_names()]
    found = [
        preset
        for preset in presets
        if preset.format == FALLBACK
        and preset.options
        and share_of_bad(lines, preset.encoding or ENCODING, dict(preset.options)) <= MOST_BAD
    ]
    name = os.path.basename(path)
    matching = [each for each in found if any(fnmatch.fnmatchcase(name, pattern) for pattern in each.files)]
    return [preset.name for preset in matching or found]


def beginning_of(path: str) -> list[bytes]:
    """The first lines of a file; none if it cannot be read so far."""
    lines: list[bytes] = []
    n_bytes = 0
    try:
        with open_binary(path) as file:
            for line in lines_of(file):
                n_bytes += len(line)
                if len(lines) == MOST_LINES or n_bytes > MOST_BYTES:
                    break
                lines.append(line)
    except (OSError, TooLongError, *DAMAGED_ARCHIVE):
        return []
    return lines


def share_of_bad(lines: list[bytes], encoding: str, named: dict[str, str]) -> float:
    """The share of the trees in some lines that a variant of brackets does not read; 1 if there are no trees."""
    skipped: list[TreebankError] = []
    options = ReadOptions(skipped=skipped, named=named)
    try:
        n_good = sum(1 for _ in read_brackets(decoded(lines, "", encoding, is_assumed=True), "", options))
    except TsgkitError:  # not in this encoding
        return 1.0
    return len(skipped) / (n_good + len(skipped)) if n_good else 1.0
