"""Text into words, as the treebank of a model has them.

A treebank in the style of the Penn Treebank shows it by its words (``n't``, ``'s``, ``-LRB-``); its text is tokenised
by the rules of that treebank. Otherwise the words of the training trees decide. Text is cut at spaces, and what stands
between spaces is cut into known words and units (runs of letters, numbers, signs) such that the sum of

    -log p(w) for a known word w,    log n + c for an unknown unit

is smallest, with p the relative frequencies and n the number of training words. Text may be cut anywhere in scripts
that do not use spaces, elsewhere only beside signs.
"""

import math
import re
from collections.abc import Mapping

import numpy as np
from nltk.tokenize import TreebankWordTokenizer

from tsgkit.models._model import Model

PENN_SIGNS = frozenset(["n't", "'s", "'ll", "-LRB-", "``"])
UNKNOWN_COST, JOINED_COST = 4.0, 4.0
LONGEST_WORD = 30  # characters of a known word that is looked for inside of others
# Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar, Tibetan: written without spaces between words.
WITHOUT_SPACES = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
LETTERS = rf"(?:(?![{WITHOUT_SPACES}])[^\W\d_])+"
UNIT = re.compile(
    rf"\d+(?:[.,:/]\d+)*|{LETTERS}(?:[-'’.]{LETTERS})*|[{WITHOUT_SPACES}]+|([^\w\s])\1*|\w|\S", re.UNICODE
)
PIECE = re.compile(rf"\d+|{LETTERS}|[{WITHOUT_SPACES}]|([^\w\s])\1*|\S", re.UNICODE)


class WordTokenizer:
    """A tokenizer by the words of a treebank.

    Parameters
    ----------
    counts : mapping from str to number
        The words of the treebank.

    Examples
    --------
    >>> tokenizer = WordTokenizer({"l'": 5, "homme": 2, "dort": 1, ".": 9, "aujourd'hui": 1})
    >>> tokenizer.tokenize("L'homme dort aujourd'hui."), tokenizer.tokenize("l'homme")
    (["L'", 'homme', 'dort', "aujourd'hui", '.'], ["l'", 'homme'])
    """

    name = "the words of the training trees"

    def __init__(self, counts: Mapping[str, float]) -> None:
        total = math.log(sum(counts.values()) + 1)
        self.cost = {word: total - math.log(count) for word, count in counts.items() if count > 0}
        self.unknown_cost = total + UNKNOWN_COST

    def tokenize(self, text: str) -> list[str]:
        return [word for chunk in text.split() for word in self.cut(chunk)]

    def cut(self, chunk: str) -> list[str]:
        """The words of what stands between spaces."""
        if chunk in self.cost:
            return [chunk]
        borders = sorted({0, len(chunk), *(match.start() for match in PIECE.finditer(chunk))})
        units = {match.start(): match.end() for match in UNIT.finditer(chunk)}
        best: dict[int, tuple[float, int]] = {0: (0.0, 0)}  # by the end: cost and the start of the last word
        for number, start in enumerate(borders[:-1]):
            for end in borders[number + 1 :]:
                if end - start > LONGEST_WORD and end != borders[number + 1] and end != units.get(start):
                    continue
                is_unit = end in (units.get(start), borders[number + 1])
                cost = best[start][0] + self.cost_of(chunk[start:end], is_unit=is_unit)
                if cost < best.get(end, (math.inf, 0))[0]:
                    best[end] = (cost, start)
        words, end = [], len(chunk)
        while end:
            start = best[end][1]
            words.append(chunk[start:end])
            end = start
        return words[::-1]

    def cost_of(self, word: str, *, is_unit: bool) -> float:
        """The cost of a word; infinite if it is neither known nor a unit."""
        known = self.cost.get(word) or self.cost.get(word.lower())  # at the beginning of a sentence
        if known is not None:
            return known
        if not is_unit:
            return math.inf
        n_joints = sum(1 for _ in PIECE.finditer(word)) - 1 if not word[0].isdigit() else 0
        return self.unknown_cost + JOINED_COST * n_joints


class PennTokenizer:
    """The rules of the Penn Treebank."""

    name = "the rules of the Penn Treebank"

    def __init__(self) -> None:
        self.rules = TreebankWordTokenizer()

    def tokenize(self, text: str) -> list[str]:
        return [word for word in self.rules.tokenize(text, convert_parentheses=True) if word.strip()]


def tokenizer_of(model: Model) -> WordTokenizer | PennTokenizer:
    """The tokenizer for the treebank that a model was trained on."""
    counts = word_counts(model)
    if PENN_SIGNS & counts.keys() or not counts:
        return PennTokenizer()
    return WordTokenizer(counts)


def word_counts(model: Model) -> dict[str, float]:
    """The words of the training trees with their counts; without the trees, the words of the grammar, once each."""
    corpus = model.corpus
    if corpus is not None:
        counts = np.bincount(corpus.form[corpus.form >= 0], minlength=len(corpus.forms)).tolist()
        return dict(zip(corpus.forms, counts, strict=True))
    return dict.fromkeys(model.grammar.words, 1.0)
