"""An unknown-word model with a class for every ending of two characters, and coarser classes for one character.

A grammar learns from rare training words with the same ending how a new word behaves.
"""

from tsgkit.treebank.unknown import UnknownWordModel


def ending_classes(word, is_first, vocabulary, max_suffix):
    """The classes of a word, finest first; ``UNK`` is always the last.

    Examples
    --------
    >>> ending_classes("walking", False, (), 0)
    ['UNK-ng', 'UNK-g', 'UNK']
    >>> ending_classes("I", True, (), 0)
    ['UNK-i', 'UNK']
    """
    ending = word[-2:].lower()
    return [f"UNK-{ending[start:]}" for start in range(len(ending))] + ["UNK"]


# A class with fewer than `min_types` rare training words is merged into the next coarser one.
MODEL = UnknownWordModel(ending_classes, has_min_types=True)
