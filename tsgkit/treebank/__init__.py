"""Treebanks: trees in a file become clean, binarised trees, and these the flat corpus."""

from tsgkit.treebank._binarize import Binarization
from tsgkit.treebank._clean import Cleaning
from tsgkit.treebank._flat import FlatCorpus
from tsgkit.treebank._prepare import Preparation, prepare
from tsgkit.treebank._sources import load, read_trees, write_trees
from tsgkit.treebank.unknown._lexicon import Lexicon, UnknownWords

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
