"""Treebanks: trees in a file become clean, binarised trees, and these the flat corpus."""

from tsgkit.treebank._binarize import Binarization, undo_label
from tsgkit.treebank._clean import Cleaning
from tsgkit.treebank._flat import FlatCorpus
from tsgkit.treebank._fragments import format_fragment, read_fragment
from tsgkit.treebank._prepare import Preparation, preparation_of, prepare
from tsgkit.treebank._sources import load, read_trees, write_trees
from tsgkit.treebank.unknown._lexicon import Lexicon, UnknownWords

__all__ = [
    "Binarization",
    "Cleaning",
    "FlatCorpus",
    "Lexicon",
    "Preparation",
    "UnknownWords",
    "format_fragment",
    "load",
    "preparation_of",
    "prepare",
    "read_fragment",
    "read_trees",
    "undo_label",
    "write_trees",
]
