"""Models of unknown words: what a model is, and the registry that names them.

Preprocessing, before the flat corpus. A model names classes for a word, from the finest to the coarsest; a `Lexicon`
takes the finest that training supports. A model is one module, named in the registry below or by an entry point of
another package (group ``tsgkit.unknown_words``).
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tsgkit import _plugins
from tsgkit._registry import Registry

# The coarsest class. The names of all classes begin with it, so that no class is taken for a word.
ROOT_CLASS = "UNK"


@dataclass(frozen=True)
class UnknownWordModel:
    """A way to class words by their form.

    Attributes
    ----------
    classes : callable
        ``classes(word, is_first, vocabulary, max_suffix)`` names the classes of a word, finest first and ``UNK`` last.
        `is_first` says whether the word is the first of its sentence, `vocabulary` holds all words of the training
        trees, `max_suffix` is the setting of `UnknownWords`. What follows a class must be the same for all words.
    has_min_types : bool
        Whether a class of fewer rare training words than the setting ``min_types`` is merged into the next coarser one;
        otherwise every class that a rare training word has is kept.
    """

    classes: Callable[[str, bool, Collection[str], int], Sequence[str]]
    has_min_types: bool = False


UNKNOWN_WORDS: Registry[UnknownWordModel] = _plugins.UNKNOWN_WORDS


@lru_cache(1 << 16)
def is_capital(char: str) -> bool:
    return char.isupper() or char.istitle()
