"""Formats of treebank files: what a reader and a writer are, and the registries that name them.

First stage of the flow: a reader turns a file into trees, a writer turns trees into a file. A format is one module,
named in the registries below or by an entry point of another package (groups ``tsgkit.readers`` and
``tsgkit.writers``).
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from nltk.tree import Tree

from tsgkit import _plugins
from tsgkit._guesses import one_of
from tsgkit._registry import Registry
from tsgkit.errors import TreebankError, UsageError

AUTO = "auto"
ENCODING = "utf-8"
# The format of files that no reader recognises; its errors say what is wrong with them.
FALLBACK = "brackets"


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read; every reader gets these options and follows those that apply to its format.

    Attributes
    ----------
    unescape : bool
        Whether words like ``-LRB-`` become the brackets they stand for.
    nfc : bool
        Whether text is normalised to Unicode's form C. Lines are normalised before a reader gets them; a binary reader
        passes its labels and words through `normalised`.
    encoding : str, optional
        Of the file, if the user or a preset named it. Lines are decoded before a reader gets them, as UTF-8 without it;
        a binary reader finds the encoding itself unless it is given.
    skipped : list, optional
        When given, bad trees are left out and their errors are appended here; see `skip`.
    reattached : list, optional
        When given, discontinuous trees are made continuous, and the place of each is appended here; otherwise a
        discontinuous tree is a bad tree.
    named : mapping of str to str
        Values of the options that only this reader has.
    is_encoding_assumed : bool
        Whether the encoding is that of a preset, and not given by the user.
    is_format_assumed : bool
        Whether the format is that of a preset, and not given by the user.

    Examples
    --------
    >>> options = ReadOptions(skipped=[])
    >>> options.skip(TreebankError("empty node", "my.trees", 3))
    >>> print(*options.skipped)
    my.trees:3: empty node
    """

    unescape: bool = False
    nfc: bool = False
    encoding: str | None = None
    skipped: list[TreebankError] | None = None
    reattached: list[str] | None = None
    named: Mapping[str, str] = field(default_factory=dict)
    is_encoding_assumed: bool = False
    is_format_assumed: bool = False

    def skip(self, error: TreebankError) -> None:
        """Leave out a bad tree: record its error, or raise it if bad trees are not to be skipped."""
        if self.skipped is None:
            raise error
        self.skipped.append(error)

    def normalised(self, text: str) -> str:
        """`text` in the Unicode normal form that is asked for."""
        return unicodedata.normalize("NFC", text) if self.nfc else text


# The defaults: strict, and text as it is.
STRICT = ReadOptions()


@dataclass(frozen=True)
class Reader:
    """A format that trees are read from.

    Attributes
    ----------
    read : callable
        ``read(lines, path, options)`` yields the trees of one file, one at a time. `lines` are lines of text with their
        line ends (or the open file, if `is_binary`), `path` names the file in errors, `options` are `ReadOptions`. What
        is not a tree goes to ``options.skip`` as a `TreebankError` with path, line and column.
    recognise : callable, optional
        ``recognise(first_lines)`` says whether a file that begins with these lines has this format. It iterates over as
        many lines as it needs; they are read from the file only then. A format without it must be named.
    is_binary : bool
        Whether `read` gets the open file, as bytes, instead of lines.
    named_options : mapping of str to str
        Options that only this reader has, with their defaults. Users set them behind the name of the format:
        ``--format=NAME:OPTION=VALUE,OPTION=VALUE``.
    """

    read: Callable[[Any, str, ReadOptions], Iterator[Tree]]
    recognise: Callable[[Iterable[str]], bool] | None = None
    is_binary: bool = False
    named_options: Mapping[str, str] = field(default_factory=dict)


# Turns trees into the text of a whole file, piece by piece.
Writer: TypeAlias = Callable[[Iterable[Tree]], Iterator[str]]

READERS: Registry[Reader] = _plugins.READERS
WRITERS: Registry[Writer] = _plugins.WRITERS


def split_format(text: str) -> tuple[str, dict[str, str]]:
    """The name of a format and the options given behind it.

    Examples
    --------
    >>> split_format("export")
    ('export', {})
    >>> split_format("columns:word=2,tree=3")
    ('columns', {'word': '2', 'tree': '3'})
    """
    name, _, rest = text.partition(":")
    settings = [setting.partition("=") for setting in rest.split(",") if setting]
    for option, equals, _ in settings:
        if not equals:
            raise UsageError(f"format {text!r}: {option!r} has no value; write {name}:{option}=VALUE")
    return name, {option: value for option, _, value in settings}


def require_format(name: str) -> None:
    """Raise a `UsageError` unless `name` is that of a reader, or ``auto``."""
    if name != AUTO and name not in READERS:
        raise UsageError(f"format {name!r}: must be {one_of(name, (AUTO, *READERS.names))}")


def first_of(first_lines: Iterable[str]) -> str:
    """The first line that is not blank, to recognise a format by; '' if there is none."""
    return next((line for line in first_lines if line.strip()), "")


def recognised(first_lines: Iterable[str]) -> str:
    """The name of the first reader that recognises a file, or else `FALLBACK`; readers of other packages come first.

    Examples
    --------
    >>> recognised(["#FORMAT 3"]), recognised(["( (S (NP I) (VP ran)))"])
    ('export', 'brackets')
    """
    for name in sorted(READERS.names, key=READERS.built_in.__contains__):
        try:
            recognise = READERS[name].recognise
        except UsageError as error:
            raise UsageError(f"{error}; uninstall it, or name the format instead of {AUTO!r}") from error
        if recognise is not None and recognise(first_lines):
            return name
    return FALLBACK


def named_options(reader: Reader, name: str, given: Mapping[str, str]) -> dict[str, str]:
    """The options that only `reader` has: their defaults, replaced by those that are `given`."""
    unknown = [option for option in given if option not in reader.named_options]
    if unknown:
        known = f"it has {', '.join(reader.named_options)}" if reader.named_options else "it has none"
        raise UsageError(f"format {name!r}: no option {unknown[0]!r}; {known}")
    return {**reader.named_options, **given}
