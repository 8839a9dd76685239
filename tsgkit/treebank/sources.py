"""Where trees come from and go to: files, folders, globs, stdin, NLTK corpora, the bundled treebank.

`read_trees` streams: it holds one tree at a time (and, for a folder, the names of its files).
"""

import glob
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path

from nltk.tree import Tree

from tsgkit.errors import TreebankError, UsageError
from tsgkit.files import DAMAGED_ARCHIVE, TooLongError, lines_of, open_binary, open_output
from tsgkit.treebank.brackets import format_tree, read_brackets
from tsgkit.treebank.export import format_export, read_export
from tsgkit.treebank.trees import is_preterminal, preorder

NLTK_PREFIX = "nltk:"
BUNDLED = ("village",)
SPLITS = ("train", "dev", "test")
READ_FORMATS = ("auto", "brackets", "export")
WRITE_FORMATS = ("line", "pretty", "export")
Source = str | os.PathLike[str]
SURROGATE = re.compile("[\ud800-\udfff]")


def read_trees(
    sources: Source | Iterable[Source],
    *,
    format: str = "auto",
    skipped: list[TreebankError] | None = None,
    unescape: bool = False,
    nfc: bool = False,
    encoding: str = "utf-8",
    reattached: list[str] | None = None,
) -> Iterator[Tree]:
    """Read trees from one or more sources, one after the other.

    Parameters
    ----------
    sources : str, path, or iterable of them
        Each a file (plain, gzip or xz), a folder (every file in it and below, in the order of their
        names), a glob pattern, ``-`` for stdin, ``nltk:NAME`` for an NLTK corpus with parsed sentences, or
        ``village``, ``village:train``, ``village:dev``, ``village:test`` for the bundled treebank.
    format : {"auto", "brackets", "export"}
        How files are written; ``auto`` looks at their beginning.
    skipped : list, optional
        When given, bad trees are left out and their errors are put here; otherwise the first one is raised.
    unescape : bool
        Whether words like ``-LRB-`` become the brackets they stand for.
    nfc : bool
        Whether text is brought to Unicode's normal form C.
    encoding : str
        Of the files.
    reattached : list, optional
        When given, discontinuous trees (of export files) are made continuous, and where they stood is put here;
        otherwise they are bad.

    Yields
    ------
    nltk.Tree
        As they are in the source, nothing cleaned.

    Examples
    --------
    >>> tree = next(read_trees("village:train"))
    >>> tree.label()  # the empty outer bracket of the Penn Treebank
    ''
    """
    if format not in READ_FORMATS:
        raise UsageError(f"format {format!r}: must be one of {', '.join(READ_FORMATS)}")
    if isinstance(sources, str | os.PathLike):
        sources = [sources]
    for source in sources:
        name = os.fspath(source)
        if name.startswith(NLTK_PREFIX):
            yield from read_nltk(name, skipped)
            continue
        for path in find_files(name):
            lines = decode_lines(path, encoding)
            first = list(itertools.islice(lines, 1))
            chosen = format if format != "auto" else guess_format(first)
            lines = itertools.chain(first, lines)
            if chosen == "export":
                yield from read_export(lines, path, skipped=skipped, nfc=nfc, reattached=reattached)
            else:
                yield from read_brackets(lines, path, skipped=skipped, unescape=unescape, nfc=nfc)


def guess_format(first_lines: list[str]) -> str:
    return "export" if first_lines and first_lines[0].startswith(("#FORMAT", "#BOS", "#BOT", "%%")) else "brackets"


def find_files(name: str) -> list[str]:
    """The files that a source on the command line stands for, in the order of their names."""
    corpus, _, split = name.partition(":")
    if corpus in BUNDLED and not os.path.exists(name):
        folders = bundled_folders(corpus, split or None)
        return [str(path) for folder in folders for path in sorted(folder.glob("*.mrg"))]
    if name == "-" or os.path.isfile(name):
        return [name]
    if os.path.isdir(name):
        inside = sorted(path for path in Path(name).rglob("*") if path.is_file() and not path.name.startswith("."))
        if not inside:
            raise TreebankError("the folder has no files", name)
        return [str(path) for path in inside]
    matches = sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path))
    if matches:
        return matches
    if os.path.exists(name):  # a pipe or a device
        return [name]
    raise TreebankError("there is no such file or folder, and nothing matches it as a pattern", name)


def decode_lines(path: str, encoding: str) -> Iterator[str]:
    """The lines of a file, decoded one by one so that an error has a place."""
    number = 0
    try:
        with open_binary(path) as file:
            for line in lines_of(file):
                number += 1
                text = line.decode(encoding)
                if SURROGATE.search(text):
                    raise TreebankError(f"not text in {encoding}: half a character; is another right?", path, number)
                yield text.removeprefix("\ufeff") if number == 1 else text
    except UnicodeDecodeError as error:
        problem = f"not valid {encoding}: byte {error.object[error.start]:#04x}; is another encoding right?"
        column = len(error.object[: error.start].decode(encoding, errors="replace")) + 1
        raise TreebankError(problem, path, number, column) from None
    except TooLongError as error:
        raise TreebankError(str(error), path, number + 1) from None
    except (LookupError, UnicodeError):  # a codec that has nothing to do with text
        raise UsageError(f"encoding {encoding!r}: not known") from None
    except DAMAGED_ARCHIVE as error:
        raise TreebankError(f"the compressed file is damaged or cut short ({error})", path, number + 1) from None


def read_nltk(name: str, skipped: list[TreebankError] | None = None, files: list[str] | None = None) -> Iterator[Tree]:
    """The parsed sentences of an NLTK corpus, or of some of its files, each checked to be a tree of tagged words."""
    import nltk.corpus  # noqa: PLC0415 - takes long, and only this source needs it

    corpus_name = name.removeprefix(NLTK_PREFIX)
    corpus = getattr(nltk.corpus, corpus_name, None)
    if corpus is None or corpus_name.startswith("_"):
        raise TreebankError(f"NLTK has no corpus {corpus_name!r}; the names are those in nltk.corpus", name)
    try:
        sentences = corpus.parsed_sents() if files is None else corpus.parsed_sents(files)
    except LookupError as error:  # NLTK's own text says how to download it
        raise TreebankError(f"the corpus is not on this machine\n{error}", name) from None
    except (AttributeError, NotImplementedError, TypeError):
        raise TreebankError("this NLTK corpus has no parsed sentences", name) from None
    for number, tree in enumerate(sentences, start=1):
        problem = what_is_wrong(tree)
        if not problem:
            yield tree
        elif skipped is None:
            raise TreebankError(problem, name, number)
        else:
            skipped.append(TreebankError(problem, name, number))


def what_is_wrong(tree: object) -> str:
    """Why a value from elsewhere is not a tree of tagged words; ``''`` if it is."""
    if not isinstance(tree, Tree):
        return f"not a phrase-structure tree but {type(tree).__name__}"
    for node in preorder(tree):
        if not isinstance(node.label(), str):
            return f"label {node.label()!r} is not a string"
        if not len(node):
            return f"empty node ({node.label()} )"
        if not is_preterminal(node) and not all(isinstance(child, Tree) for child in node):
            return f"words beside phrases under {node.label()!r}"
    return ""


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


def format_trees(trees: Iterable[Tree], format: str = "line") -> Iterator[str]:
    """Each tree as text with its line end.

    Parameters
    ----------
    trees : iterable of nltk.Tree
    format : {"line", "pretty", "export"}
        One tree a line, indented over many lines, or Negra export.
    """
    if format not in WRITE_FORMATS:
        raise UsageError(f"format {format!r}: must be one of {', '.join(WRITE_FORMATS)}")
    if format == "export":
        yield "#FORMAT 3\n"
    for number, tree in enumerate(trees, start=1):
        if format == "export":
            yield f"{format_export(tree, number)}\n"
        else:
            yield f"{format_tree(tree, pretty=format == 'pretty')}\n"


def write_trees(trees: Iterable[Tree], path: Source = "-", format: str = "line") -> None:
    """Write trees to a file, whole or not at all; ``-`` is stdout, names in .gz and .xz are packed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_trees([Tree.fromstring("(S (NP (PRP I)) (VP (VBD ran)))")], f"{folder}/trees.mrg.gz")
    ...     print(*read_trees(f"{folder}/trees.mrg.gz"))
    (S (NP (PRP I)) (VP (VBD ran)))
    """
    with open_output(path) as file:
        file.writelines(format_trees(trees, format))
