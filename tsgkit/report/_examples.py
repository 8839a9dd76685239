"""Example sentences with their gold trees, for the start of the web page."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from nltk.tree import Tree

from tsgkit.models._model import Model
from tsgkit.treebank._trees import words

N_EXAMPLES = 8
SHORTEST, LONGEST = 5, 14  # in words
MAX_READ = 2000  # trees of a treebank among which examples are chosen


@dataclass(frozen=True)
class Examples:
    """Trees, and where they come from."""

    source: str = ""
    trees: list[Tree] = field(default_factory=list)

    @classmethod
    def of_treebank(cls, trees: Iterable[Tree], source: str, model: Model) -> "Examples":
        """Sentences of medium length from a treebank, prepared as those of the model, with gold trees."""
        cleaning = model.preparation.cleaning
        clean = (cleaning.apply(tree) for tree in islice(trees, MAX_READ))
        return cls(source, chosen(cleaning.undo(tree) for tree in clean if tree is not None))

    @classmethod
    def of_training(cls, model: Model) -> "Examples":
        """Training sentences, where the model keeps them."""
        if model.corpus is None:
            return cls()
        decode = model.preparation.decode
        return cls("training", chosen(decode(tree) for tree in islice(model.corpus.trees(), MAX_READ)))


def chosen(trees: Iterator[Tree]) -> list[Tree]:
    """Some trees of medium length, evenly spaced."""
    fit = [tree for tree in trees if SHORTEST <= len(words(tree)) <= LONGEST]
    n_wanted = min(N_EXAMPLES, len(fit))
    return [fit[number * len(fit) // n_wanted] for number in range(n_wanted)]
