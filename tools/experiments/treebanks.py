"""Treebanks for the experiments: NLTK's sample of the Penn Treebank, the Penn Treebank, the bundled one, or others."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nltk.tree import Tree

from tsgkit.errors import TreebankError, UsageError
from tsgkit.treebank import Cleaning, load, read_trees
from tsgkit.treebank._sources import NLTK_PREFIX, read_nltk

PARTS = ("train", "dev", "test")
# NLTK's sample consists of the files wsj_0001 to wsj_0199; the division into parts is ours.
SAMPLE_FILES = {"train": range(1, 100), "dev": range(100, 120), "test": range(120, 200)}
# The standard split; the papers' small setting trains on section 2 only.
SECTIONS = {"train": range(2, 22), "dev": range(22, 23), "test": range(23, 24)}
SMALL_TRAIN = range(2, 3)
SECTION_NAME = re.compile(r"\d\d")


@dataclass
class Parts:
    """A treebank in three parts, cleaned."""

    name: str
    train: list[Tree]
    dev: list[Tree]
    test: list[Tree]

    def part(self, name: str) -> list[Tree]:
        return {"train": self.train, "dev": self.dev, "test": self.test}[name]

    def sizes(self) -> str:
        """A description of its size."""
        counts = [f"{len(self.part(name)):,} {name} trees" for name in PARTS]
        return f"{self.name}: {', '.join(counts)}; {sum(len(tree.leaves()) for tree in self.train):,} training tokens"


def find_treebank(name: str, scale: str) -> Parts:
    """The treebank of an option.

    Parameters
    ----------
    name : str
        ``nltk`` (the sample that NLTK distributes), ``village`` (the bundled treebank), a folder of the Penn Treebank
        with its sections 00 to 24, or a folder with ``train.mrg``, ``dev.mrg`` and ``test.mrg``.
    scale : {"smoke", "small", "full"}
        ``smoke`` uses only a few trees of each part; ``small`` trains on section 2 of the Penn Treebank only.
    """
    if name == "nltk":
        parts = {part: nltk_sample(numbers) for part, numbers in SAMPLE_FILES.items()}
        found = Parts("NLTK's sample of the Penn Treebank", **parts)
    elif name == "village":
        found = Parts("the bundled treebank", *(cleaned(load(split=part)) for part in PARTS))
    else:
        found = folder_parts(Path(name), scale)
    if scale != "smoke":
        return found
    return Parts(f"a few trees of {found.name}", short(found.train, 60), short(found.dev, 10), short(found.test, 10))


def short(trees: list[Tree], number: int) -> list[Tree]:
    """The first `number` trees that are not long."""
    return [tree for tree in trees if len(tree.leaves()) <= 15][:number]


def cleaned(trees: Iterable[Tree]) -> list[Tree]:
    return [tree for tree in map(Cleaning().apply, trees) if tree is not None]


def nltk_sample(numbers: range) -> list[Tree]:
    """Trees of NLTK's sample, by the numbers of their files."""
    import nltk.corpus  # noqa: PLC0415 - takes long

    source = f"{NLTK_PREFIX}treebank"
    try:
        files = set(nltk.corpus.treebank.fileids())
    except LookupError:
        problem = "NLTK's sample of the Penn Treebank is not installed: python -m nltk.downloader treebank"
        raise TreebankError(problem, source) from None
    wanted = [f"wsj_{number:04}.mrg" for number in numbers if f"wsj_{number:04}.mrg" in files]
    return cleaned(read_nltk(source, files=wanted))


def folder_parts(folder: Path, scale: str) -> Parts:
    """The parts in a folder: three files, or the sections of the Penn Treebank."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; --treebank takes nltk, village or a folder")
    files = {part: folder / f"{part}.mrg" for part in PARTS}
    if all(path.is_file() for path in files.values()):
        return Parts(folder.name, *(cleaned(read_trees(path)) for path in files.values()))
    sections = {path.name: path for path in folder.iterdir() if path.is_dir() and SECTION_NAME.fullmatch(path.name)}
    wanted = {**SECTIONS, "train": SMALL_TRAIN} if scale == "small" else SECTIONS
    missing = [f"{number:02}" for numbers in wanted.values() for number in numbers if f"{number:02}" not in sections]
    if missing:
        raise UsageError(
            f"{folder}: neither train.mrg, dev.mrg and test.mrg nor the sections of the Penn Treebank"
            f" (no {', '.join(missing)})"
        )
    parts = {part: cleaned(read_sections(sections, numbers)) for part, numbers in wanted.items()}
    return Parts("the Penn Treebank", **parts)


def read_sections(folders: dict[str, Path], numbers: range) -> Iterator[Tree]:
    for number in numbers:
        yield from read_trees(os.fspath(folders[f"{number:02}"]))
