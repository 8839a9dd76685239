"""One class for all unknown words: the unknown-word model ``one`` (as in Cohn and Blunsom 2010)."""

from collections.abc import Collection

from tsgkit.treebank.unknown._model import ROOT_CLASS, UnknownWordModel


def one_class(word: str, is_first: bool, vocabulary: Collection[str], max_suffix: int) -> list[str]:
    """The only class.

    Examples
    --------
    >>> one_class("Rome", False, (), 0)
    ['UNK']
    """
    return [ROOT_CLASS]


MODEL = UnknownWordModel(one_class)
