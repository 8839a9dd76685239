"""Treebanks: trees in a file become clean, binarised trees, and these the flat corpus."""

from tsgkit.treebank.binarize import Binarization
from tsgkit.treebank.clean import Cleaning
from tsgkit.treebank.flat import FlatCorpus
from tsgkit.treebank.prepare import Preparation, prepare
from tsgkit.treebank.sources import load, read_trees, write_trees
from tsgkit.treebank.unknown.lexicon import Lexicon, UnknownWords

__all__ = [
    "Binarization",
    "Cleaning",
    "FlatCorpus",
    "Lexicon",
    "Preparation",
    "UnknownWords",
    "load",
    "prepare",
    "read_trees",
    "write_trees",
]
