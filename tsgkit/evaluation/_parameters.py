"""EVALB's parameter files: which labels to delete, which labels and words are equal, and limits.

Last stage of the flow: trees again -> a score. The format is EVALB's: plain text, one ``KEY value`` per line, ``#``
comments. The two standard files come with the package, under the names ``collins`` and ``new``.
"""

import os
from dataclasses import dataclass
from typing import Any

from tsgkit._files import DAMAGED_ARCHIVE, TooLongError, open_binary, whole_text
from tsgkit._guesses import one_of
from tsgkit.errors import TsgkitError

BUNDLED = ("collins", "new")
DEFAULT_PARAMETERS = "collins"
FOLDER = os.path.join(os.path.dirname(__file__), "params")

NUMBERS = {"MAX_ERROR": "max_error", "CUTOFF_LEN": "cutoff_len", "LABELED": "labeled"}
LABELS = {
    "DELETE_LABEL": "delete_labels",
    "DELETE_LABEL_FOR_LENGTH": "delete_labels_for_length",
    "QUOTE_LABEL": "quote_labels",
}
PAIRS = {"EQ_LABEL": "eq_labels", "EQ_WORD": "eq_words"}
# The amount of debugging output of EVALB; scores do not depend on it.
IGNORED = ("DEBUG",)
INT64_MAX = 2**63 - 1
LARGEST_FILE = 1 << 24


class ParameterError(TsgkitError):
    """A parameter file is missing or has an invalid line: ``file:line:column: problem``."""


@dataclass(frozen=True)
class Parameters:
    """The settings of the scorer; without arguments, EVALB's own defaults.

    Parameters
    ----------
    max_error : int
        With more errors than this there is a warning; where scoring stops on errors, one more is tolerated.
    cutoff_len : int
        The second block of the summary is over sentences of at most this length.
    labeled : bool
        Whether labels must match, or only spans.
    delete_labels : tuple of str
        Words with these tags and brackets with these labels are deleted.
    delete_labels_for_length : tuple of str
        Words with these tags do not count for the length of a sentence.
    quote_labels : tuple of str
        Tags under which a ``'``, ``"`` or ``/`` may be a misplaced quotation mark.
    eq_labels, eq_words : tuple of (str, str)
        Pairs of labels or tags, and of words, that are equal.

    Examples
    --------
    >>> load_parameters("collins").eq_labels
    (('ADVP', 'PRT'),)
    """

    max_error: int = 10
    cutoff_len: int = 40
    labeled: bool = True
    delete_labels: tuple[str, ...] = ()
    delete_labels_for_length: tuple[str, ...] = ()
    quote_labels: tuple[str, ...] = ()
    eq_labels: tuple[tuple[str, str], ...] = ()
    eq_words: tuple[tuple[str, str], ...] = ()


def parameters_named(text: str) -> Parameters:
    """Parameters as a preset has them: the name of a bundled file, or the text of one.

    Examples
    --------
    >>> parameters_named("DELETE_LABEL PU").delete_labels
    ('PU',)
    """
    return load_parameters(text) if text in BUNDLED else parse_parameters(text)


def load_parameters(name: str | os.PathLike[str]) -> Parameters:
    """Load a bundled parameter file by name (`BUNDLED`), or any other by its path.

    Parameters
    ----------
    name : str or path
        A name of `BUNDLED`, or a file.

    Examples
    --------
    >>> parameters = load_parameters("collins")
    >>> parameters.cutoff_len, "TOP" in parameters.delete_labels
    (40, True)
    """
    path = os.path.join(FOLDER, f"{name}.prm") if name in BUNDLED else os.fspath(name)
    try:
        with open_binary(path) as file:
            content = whole_text(file, LARGEST_FILE)
    except FileNotFoundError:
        raise ParameterError(f"{path}: no such parameter file; give a file, or {one_of(path, BUNDLED)}") from None
    except DAMAGED_ARCHIVE as error:
        raise ParameterError(f"{path}: the compressed file is damaged ({error})") from None
    except TooLongError as error:
        raise ParameterError(f"{path}: {error}") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise ParameterError(f"{path}:{line}:{column}: not UTF-8 text") from None
    return parse_parameters(text, path)


def parse_parameters(text: str, path: str = "parameters") -> Parameters:
    """Read the text of a parameter file; `path` is its name in error messages.

    Examples
    --------
    >>> parse_parameters("LABELED 0")
    Parameters(max_error=10, cutoff_len=40, labeled=False, delete_labels=(), ..., eq_words=())
    """
    values: dict[str, Any] = {field: [] for field in (*LABELS.values(), *PAIRS.values())}
    for line_number, line in enumerate(text.split("\n"), start=1):
        # Only in the first column does `#` start a comment: it can be a label.
        if line.startswith("#") or not line.strip():
            continue
        if line[0].isspace():
            raise ParameterError(f"{path}:{line_number}:1: a key must be at the beginning of the line")
        key, *rest = line.split(maxsplit=1)
        value = rest[0].rstrip() if rest else ""
        column = line.index(value, len(key)) + 1
        if key in IGNORED:
            continue
        try:
            set_value(values, key, value)
        except UnknownKeyError as error:
            raise ParameterError(f"{path}:{line_number}:1: {error}") from None
        except ValueError as error:
            raise ParameterError(f"{path}:{line_number}:{column}: {error}") from None
    for field in (*LABELS.values(), *PAIRS.values()):
        values[field] = tuple(values[field])
    return Parameters(**values)


class UnknownKeyError(ValueError):
    pass


def set_value(values: dict[str, Any], key: str, value: str) -> None:
    """Add one line of a parameter file to `values`; an invalid line raises ValueError."""
    words = value.split()
    if key in NUMBERS:
        if len(words) != 1 or not words[0].removeprefix("-").isdecimal() or abs(int(words[0])) > INT64_MAX:
            raise ValueError(f"{key} takes one whole number, not {value!r}")
        values[NUMBERS[key]] = bool(int(value)) if key == "LABELED" else int(value)
    elif key in LABELS:
        if len(words) != 1:
            raise ValueError(f"{key} takes one label, not {value!r}; write one line for each")
        values[LABELS[key]].append(value)
    elif key in PAIRS:
        if len(words) != 2:
            raise ValueError(f"{key} takes two values, not {value!r}")
        values[PAIRS[key]].append(tuple(words))
    else:
        known = ", ".join((*NUMBERS, *LABELS, *PAIRS, *IGNORED))
        raise UnknownKeyError(f"unknown key {key!r}; the keys are {known}")
