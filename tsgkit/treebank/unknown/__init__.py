"""Unknown words: rare training words are replaced by classes, from which a grammar learns how new words behave.

One module for each unknown-word model; `model` says what a model is, `lexicon` has the vocabulary that uses one.
"""

from tsgkit.treebank.unknown.lexicon import Lexicon, UnknownWords, count_words, symbol_word, word_symbol
from tsgkit.treebank.unknown.model import ROOT_CLASS, UNKNOWN_WORDS, UnknownWordModel

__all__ = [
    "ROOT_CLASS",
    "UNKNOWN_WORDS",
    "Lexicon",
    "UnknownWordModel",
    "UnknownWords",
    "count_words",
    "symbol_word",
    "word_symbol",
]
