"""Unknown words: rare training words are replaced by classes, from which a grammar learns how new words behave.

One module for each unknown-word model; `model` says what a model is, `lexicon` has the closed vocabulary, with the
classes `UnknownWords` and `Lexicon` of `tsgkit.treebank`.
"""

from tsgkit.treebank.unknown._lexicon import count_words, symbol_word, word_symbol
from tsgkit.treebank.unknown._model import UNKNOWN_WORDS, UnknownWordModel

__all__ = [
    "UNKNOWN_WORDS",
    "UnknownWordModel",
    "count_words",
    "symbol_word",
    "word_symbol",
]
