"""Sources and targets of trees: files, folders, globs, stdin, NLTK corpora, the bundled treebank.

First stage of the flow. `read_trees` streams: it holds one tree at a time (and, for a folder, the names of its files).
"""

import fnmatch
import glob
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from nltk.tree import Tree

from tsgkit._files import (
    COMPRESSED_ENDINGS,
    DAMAGED_ARCHIVE,
    ZIP_MAGIC,
    ZIP_REMEDY,
    TooLongError,
    lines_of,
    open_binary,
    open_output,
)
from tsgkit._guesses import similar_file
from tsgkit._messages import kind_of
from tsgkit._overwriting import note_input
from tsgkit._streams import FirstLines
from tsgkit.errors import TreebankError, TsgkitError, UsageError
from tsgkit.treebank._decoding import DAMAGED, decoded
from tsgkit.treebank._formats import (
    AUTO,
    ENCODING,
    FALLBACK,
    READERS,
    STRICT,
    WRITERS,
    ReadOptions,
    first_of,
    named_options,
    recognised,
    require_format,
    split_format,
)
from tsgkit.treebank._presets import Preset, load_preset
from tsgkit.treebank._trees import is_preterminal, preorder

NLTK_PREFIX = "nltk:"
# The presets of NLTK's corpora.
NLTK_PRESETS = {
    "treebank": "penn",
    "ptb": "penn",
    "alpino": "alpino",
    "cess_esp": "cess",
    "cess_cat": "cess",
    "floresta": "floresta",
    "sinica_treebank": "sinica",
}
# The share of bad trees above which skipping them is an error.
MAX_BAD = 0.05
BUNDLED = ("village",)
SPLITS = ("train", "dev", "test")
Source = str | os.PathLike[str]
# Whatever trees can be given as: trees, strings of brackets, or sources.
Trees: TypeAlias = Source | Tree | Iterable[Source | Tree]
# Beginnings of files that are not read.
DECOMPRESS = "decompress it, or compress it with gzip or xz"
ARCHIVES = {
    b"BZh": ("compressed by bzip2", DECOMPRESS),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", DECOMPRESS),
    b"\x1f\x9d": ("compressed by compress", DECOMPRESS),
    b"7z\xbc\xaf": ("a 7-Zip archive", "unpack it and name the folder or its files"),
    ZIP_MAGIC: ("a zip archive", ZIP_REMEDY),
}
TAR_MARK, TAR_MARK_AT = b"ustar", 257


def read_trees(
    sources: Trees,
    *,
    format: str = AUTO,
    treebank: str | Preset | None = None,
    skipped: list[TreebankError] | None = None,
    max_bad: float = MAX_BAD,
    unescape: bool = False,
    nfc: bool = False,
    encoding: str | None = None,
    reattached: list[str] | None = None,
) -> Iterator[Tree]:
    """Read trees from one or more sources, one after the other.

    Parameters
    ----------
    sources : str, path, nltk.Tree, or iterable of them
        Trees are passed on; a string that begins with a bracket is read as trees. Others are each a file
        (plain, gzip or xz), a folder (every file in it and below, in the order of their names), a glob pattern,
        ``-`` for stdin, ``nltk:NAME`` for an NLTK corpus with parsed sentences, or ``village``,
        ``village:train``, ``village:dev``, ``village:test`` for the bundled treebank.
    format : str
        The name of a reader: ``brackets``, ``export``, or one of another package, with its options if it has some
        (``NAME:OPTION=VALUE``); ``auto`` recognises the format of each file by its first lines.
    treebank : str or Preset, optional
        The name of a preset, or the path of a file with one: the format, the encoding, and whether trees are made
        continuous. What is given here besides wins.
    skipped : list, optional
        When given, bad trees are left out and their errors are appended here; otherwise the first one is raised.
    max_bad : float
        At the end, an error is raised if a larger share of the trees was skipped, or all of them.
    unescape : bool
        Whether words like ``-LRB-`` become the brackets they stand for.
    nfc : bool
        Whether text is normalised to Unicode's form C.
    encoding : str, optional
        Of the files; unless given, that which an XML file declares, and UTF-8 for all others.
    reattached : list, optional
        When given, discontinuous trees are made continuous, and the place of each is appended here;
        otherwise they are bad trees.

    Yields
    ------
    nltk.Tree
        As annotated: nothing is cleaned.

    Examples
    --------
    >>> tree = next(read_trees("village:train"))
    >>> tree.label()  # the empty outer bracket of the Penn Treebank
    ''
    """
    name, named = split_format(format)
    require_format(name)
    options = ReadOptions(unescape, nfc, encoding, skipped, reattached, named)
    preset = load_preset(treebank) if isinstance(treebank, str) else treebank
    n_before, n_trees = len(skipped or ()), 0
    if isinstance(sources, str | bytes | os.PathLike | Tree) or not isinstance(sources, Iterable):
        sources = [sources]
    for source in sources:
        for tree in trees_of(source, name, options, preset):
            n_trees += 1
            yield tree
    if skipped is not None:
        require_share(skipped[n_before:], n_trees, max_bad)


def trees_of(source: Source | Tree, format: str, options: ReadOptions, preset: Preset | None) -> Iterator[Tree]:
    """The trees of one source."""
    if isinstance(source, Tree):
        yield source
        return
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"trees are nltk.Tree, strings of brackets or paths, not {kind_of(source)}")
    text = os.fspath(source)
    if text.startswith(NLTK_PREFIX):
        yield from read_nltk(text, format, options, preset)
        return
    format, options = with_preset(format, options, preset)
    if isinstance(source, str) and source.lstrip().startswith("("):
        yield from READERS["brackets"].read(source.splitlines(keepends=True), "string", options)
        return
    for path in find_files(text, preset.files if preset is not None else ()):
        yield from read_file(path, format, options)


def with_preset(format: str, options: ReadOptions, preset: Preset | None) -> tuple[str, ReadOptions]:
    """The format and the options of a preset, where no others are given."""
    if preset is None:
        return format, options
    if format == AUTO:
        format, options = preset.format, replace(options, named=preset.options, is_format_assumed=True)
    elif format == preset.format:
        options = replace(options, named={**preset.options, **options.named})
    reattached = [] if preset.continuous and options.reattached is None else options.reattached
    assumed = options.encoding is None
    encoding = preset.encoding if assumed else options.encoding
    return format, replace(options, encoding=encoding, is_encoding_assumed=assumed, reattached=reattached)


def require_share(skipped: Sequence[TreebankError], n_trees: int, max_bad: float) -> None:
    """Raise an error if too many trees were bad."""
    n_all = n_trees + len(skipped)
    if skipped and (len(skipped) > max_bad * n_all or not n_trees):
        remedy = f"--max-bad={max_bad:g} allows fewer" if n_trees else "are --format and --treebank right?"
        raise TreebankError(f"too many bad trees: {lost_share(skipped, n_trees)}; {remedy}")


def lost_share(skipped: Sequence[TreebankError], n_trees: int) -> str:
    """How many trees were bad, in all and by reason."""
    n_all = n_trees + len(skipped)
    reasons = Counter(error.reason for error in skipped).most_common()
    listed = "".join(f", {reason} {count}" for reason, count in reasons)
    return f"{len(skipped)} of {n_all} ({len(skipped) / max(n_all, 1):.1%}){listed.replace(',', ':', 1)}"


def read_file(path: str, format: str, options: ReadOptions) -> Iterator[Tree]:
    """The trees of one file in a format, or in the one that is recognised."""
    with open_binary(path) as file:
        try:
            yield from read_open(file, path, format, options)
        except TreebankError as error:
            is_guessed = format == AUTO and not options.is_format_assumed and error.line is not None
            # A stream is gone, and a pipe would block.
            if not is_guessed or not os.path.isfile(path) or recognised_format(path) != FALLBACK:
                raise
            from tsgkit.treebank._guessed_preset import with_preset_guessed  # noqa: PLC0415 - for errors only

            raise with_preset_guessed(error, path) from None


def has_trees(source: str) -> bool:
    """Whether there is something of this name to read trees from, file, folder or other; it need not have any."""
    if os.path.exists(source) or source.startswith(NLTK_PREFIX):
        return True
    try:
        return bool(find_files(source))
    except TsgkitError:
        return False


def is_tree(line: str) -> bool:
    """Whether a line is a bracketed tree of at least two levels.

    Examples
    --------
    >>> is_tree("(S (NP (PRP I)) (VP (VBD ran)))"), is_tree("( a remark )"), is_tree("I ran")
    (True, False, False)
    """
    if not line.lstrip().startswith("("):
        return False
    try:
        trees = list(read_trees(line))
    except TreebankError:
        return False
    return len(trees) == 1 and not is_preterminal(trees[0])


def recognised_format(path: str) -> str:
    """The name of the reader that a file is read with, unless another is named."""
    with open_binary(path) as file:
        return recognised(FirstLines(file, ENCODING))


def read_open(file: BinaryIO, path: str, format: str, options: ReadOptions) -> Iterator[Tree]:
    """The trees of an open file, which errors call `path`."""
    first_lines = FirstLines(file, options.encoding or ENCODING)
    name = recognised(first_lines) if format == AUTO else format
    if options.is_format_assumed and name not in (AUTO, other := recognised_instead(name, first_lines)):
        name, options = other, replace(options, named={})
    next(iter(first_lines), None)  # takes the first line
    require_no_archive(b"".join(first_lines.taken[:1]), path)
    if format == AUTO and name == FALLBACK and is_unknown_xml(first_lines):
        known = ", ".join(READERS.names)
        raise TreebankError(f"XML of a kind that is not known; --format names a reader: {known}", path, 1)
    reader = READERS[name]
    chosen = replace(options, named=named_options(reader, name, options.named))
    if reader.is_binary and options.is_encoding_assumed:  # the file names its own
        chosen = replace(chosen, encoding=None)
    if not reader.is_binary:
        encoding = options.encoding or ENCODING
        lines = decoded(first_lines.all_lines(), path, encoding, is_assumed=options.is_encoding_assumed)
        yield from reader.read(map(options.normalised, lines) if options.nfc else lines, path, chosen)
        return
    try:
        yield from reader.read(first_lines.whole_file(), path, chosen)
    except DAMAGED_ARCHIVE as error:
        raise TreebankError(f"{DAMAGED} ({error})", path) from None
    except TooLongError as error:
        raise TreebankError(str(error), path) from None


def recognised_instead(name: str, first_lines: Iterable[str]) -> str:
    """The format of a file that `tsgkit prepare` may have written: brackets where a preset expects XML, and the like.

    Any other format than that of the preset remains an error: its labels would not be those that the preset cleans.
    """
    found = recognised(first_lines)
    if found != FALLBACK:
        is_other_xml = READERS[found].is_binary and READERS[name].is_binary
        return found if found in WRITERS and not is_other_xml else name
    is_bracket = first_of(first_lines).lstrip().startswith("(")
    return found if is_bracket and READERS[name].recognise is not None else name


def is_unknown_xml(first_lines: Iterable[str]) -> bool:
    """Whether a file that no reader recognises is XML, and not brackets between lines of markup."""
    first = first_of(first_lines).lstrip()
    if first.startswith(("<?xml", "<!DOCTYPE")):
        return True
    return first.startswith("<") and not any(line.lstrip().startswith("(") for line in first_lines)


def require_no_archive(beginning: bytes, path: str) -> None:
    """Raise an error if a file begins as one does that must be unpacked before."""
    for start, (kind, remedy) in ARCHIVES.items():
        if beginning.startswith(start):
            raise TreebankError(f"{kind}: {remedy}", path)
    if beginning[TAR_MARK_AT:].startswith(TAR_MARK):
        raise TreebankError("a tar archive: unpack it and name the folder or its files", path)


def find_files(name: str, patterns: Sequence[str] = ()) -> list[str]:
    """The files of a source, in the order of their names; of a folder, those that match one of the patterns."""
    corpus, _, split = name.partition(":")
    if corpus in BUNDLED and not os.path.exists(name):
        folders = bundled_folders(corpus, split or None)
        return [str(path) for folder in folders for path in sorted(folder.glob("*.mrg"))]
    if name == "-" or os.path.isfile(name):
        return [name]
    if os.path.isdir(name):
        return files_in_folder(name, patterns)
    matches = sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path))
    if matches:
        return matches
    if os.path.exists(name):  # a pipe or a device
        return [name]
    problem = "there is no such file or folder, and nothing matches it as a pattern"
    raise TreebankError(f"{problem}{similar_file(name) if name else ''}", name or repr(name))


def files_in_folder(name: str, patterns: Sequence[str]) -> list[str]:
    """The files of a folder and of those in it that match one of the patterns, or all; hidden files do not count."""
    inside = sorted(path for path in Path(name).rglob("*") if path.is_file() and not path.name.startswith("."))
    if not inside:
        raise TreebankError("the folder has no files", name)
    names = [*patterns, *(f"{pattern}{ending}" for pattern in patterns for ending in COMPRESSED_ENDINGS)] or ["*"]
    found = [str(path) for path in inside if any(fnmatch.fnmatchcase(path.name, pattern) for pattern in names)]
    if not found:
        raise TreebankError(f"the folder has no files like {', '.join(patterns)}", name)
    return found


def decode_lines(path: str, encoding: str) -> Iterator[str]:
    """The lines of a file as text; errors name the line."""
    with open_binary(path) as file:
        yield from decoded(lines_of(file), path, encoding)


def read_nltk(
    name: str,
    format: str = AUTO,
    options: ReadOptions = STRICT,
    preset: Preset | None = None,
    files: Sequence[str] | None = None,
) -> Iterator[Tree]:
    """The trees of an NLTK corpus, or of some of its files.

    If the corpus consists of files in a format that tsgkit reads, these are read and not what NLTK makes of them: its
    readers follow the XML of Alpino and not the order of words, and make flat trees of bad ones.
    """
    import nltk.corpus  # noqa: PLC0415 - takes long, and only this source needs it
    from nltk.corpus.reader.api import SyntaxCorpusReader  # noqa: PLC0415
    from nltk.corpus.reader.dependency import DependencyCorpusReader  # noqa: PLC0415

    corpus_name = name.removeprefix(NLTK_PREFIX)
    corpus = getattr(nltk.corpus, corpus_name, None)
    if corpus is None or corpus_name.startswith("_"):
        raise TreebankError(f"NLTK has no corpus {corpus_name!r}; the names are those in nltk.corpus", name)
    try:
        names = list(corpus.fileids() if files is None else files)
        pointers = corpus.abspaths(names)
        for path in pointers:
            note_input(str(path))
    except LookupError as error:  # NLTK's message says how to download it
        raise TreebankError(f"the corpus is not on this machine\n{error}", name) from None
    except OSError as error:
        raise TreebankError(f"NLTK does not open the corpus: {error}", name) from None
    except (AttributeError, TypeError):
        raise TreebankError("this NLTK corpus has no parsed sentences", name) from None
    if isinstance(corpus, DependencyCorpusReader):
        raise TreebankError("dependency treebank: it has no phrases, which all models need", name)
    if not isinstance(corpus, SyntaxCorpusReader):
        yield from read_parsed_sentences(corpus, name, names, options)
        return
    if preset is None and corpus_name in NLTK_PRESETS:
        preset = replace(load_preset(NLTK_PRESETS[corpus_name]), continuous=False)  # only if asked
    format, options = with_preset(format, options, preset)
    for file_name, pointer in zip(names, pointers, strict=True):
        with pointer.open() as file:
            for tree in read_open(file, f"{name}/{file_name}", format, options):
                # As in NLTK, without the empty outer bracket.
                yield tree[0] if not tree.label() and len(tree) == 1 and isinstance(tree[0], Tree) else tree


def read_parsed_sentences(corpus: Any, name: str, files: Sequence[str], options: ReadOptions) -> Iterator[Tree]:
    """The trees that a reader of NLTK makes, each checked to be a tree over tagged words."""
    number = 0
    try:
        for number, tree in enumerate(corpus.parsed_sents(files), start=1):
            try:
                validate_tree(tree)
            except ValueError as reason:
                options.skip(TreebankError(str(reason), name, number))
            else:
                yield tree
    except (AttributeError, NotImplementedError):
        raise TreebankError("this NLTK corpus has no parsed sentences", name) from None
    except TsgkitError:
        raise
    except Exception as error:
        problem = f"NLTK's reader failed: {type(error).__name__}: {error}"
        raise TreebankError(problem, name, number + 1) from None


def validate_tree(tree: object) -> None:
    """Raise a ValueError unless a value from another program is a tree over tagged words."""
    if not isinstance(tree, Tree):
        raise ValueError(f"not a phrase-structure tree but {type(tree).__name__}")
    for node in preorder(tree):
        if not isinstance(node.label(), str):
            raise ValueError(f"label {node.label()!r} is not a string")
        if not len(node):
            raise ValueError(f"empty node ({node.label()} )")
        if any(isinstance(child, tuple) for child in node):
            raise ValueError(f"no tree: NLTK's reader made a flat one of a bad tree, under {node.label()!r}")
        if not all(isinstance(child, Tree | str) for child in node):
            raise ValueError(f"no tree: a word under {node.label()!r} is not a string")
        if not is_preterminal(node) and not all(isinstance(child, Tree) for child in node):
            raise ValueError(f"words beside phrases: under {node.label()!r}")


def bundled_folders(name: str, split: str | None = None) -> list[Path]:
    """The folders of a bundled treebank."""
    if name not in BUNDLED:
        raise UsageError(f"treebank {name!r}: the bundled ones are {', '.join(BUNDLED)}")
    if split is not None and split not in SPLITS:
        raise UsageError(f"{name}:{split}: the parts are {', '.join(SPLITS)}")
    data = Path(str(resources.files("tsgkit.treebank"))) / "data" / name
    return [data / part for part in ([split] if split else SPLITS)]


def load(name: str = "village", split: str | None = None) -> list[Tree]:
    """The trees of a bundled treebank, as annotated.

    Parameters
    ----------
    name : str
        ``"village"``: short documents of ordinary English, written for this project.
    split : {"train", "dev", "test"}, optional
        One part; all of them by default.

    Examples
    --------
    >>> trees = load("village", split="dev")
    >>> len(trees) > 40
    True
    """
    files = [path for folder in bundled_folders(name, split) for path in sorted(folder.glob("*.mrg"))]
    return list(read_trees(files))


def write_trees(trees: Iterable[Tree], path: Source = "-", format: str = "line") -> None:
    """Write trees to a file, whole or not at all.

    Parameters
    ----------
    trees : iterable of nltk.Tree
    path : str or path
        ``-`` is stdout; a file whose name ends in ``.gz`` or ``.xz`` is compressed.
    format : str
        The name of a writer: ``line`` (one tree per line), ``pretty`` (indented, over several lines), ``export`` (Negra
        export), or one of another package.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_trees([Tree.fromstring("(S (NP (PRP I)) (VP (VBD ran)))")], f"{folder}/trees.mrg.gz")
    ...     print(*read_trees(f"{folder}/trees.mrg.gz"))
    (S (NP (PRP I)) (VP (VBD ran)))
    """
    write = WRITERS.require(format)
    with open_output(path) as file:
        file.writelines(write(trees))
