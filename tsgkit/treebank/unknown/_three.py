"""Three classes of unknown words: the unknown-word model ``three`` (as in Shindo, Fujino and Nagata 2011)."""

from collections.abc import Collection

from tsgkit.treebank.unknown._model import ROOT_CLASS, UnknownWordModel, is_capital


def three_classes(word: str, is_first: bool, vocabulary: Collection[str], max_suffix: int) -> list[str]:
    """With a digit, capitalised, or neither.

    Examples
    --------
    >>> [three_classes(word, False, (), 0) for word in ("B-52", "Rome", "cat")]
    [['UNK-NUM', 'UNK'], ['UNK-CAPS', 'UNK'], ['UNK']]
    """
    if any(map(str.isdecimal, word)):
        return ["UNK-NUM", ROOT_CLASS]
    return ["UNK-CAPS", ROOT_CLASS] if word and is_capital(word[0]) else [ROOT_CLASS]


MODEL = UnknownWordModel(three_classes)
