"""The coarse-to-fine cascade of a symbol-refined grammar: rules of the treebank, earlier splits, and all of it.

At the end of training, when a model is exported. A stage of an earlier split has the symbols that the refined ones were
then.
"""

from collections.abc import Sequence

import numpy as np

from tsgkit.models._model import Stage
from tsgkit.models._srtsg import RefinedGrammar, Subcategories
from tsgkit.models._srtsg_sites import SiteGrammar


def ancestors(splits: Sequence[Subcategories], split: int) -> np.ndarray:
    """For every refined symbol the one it was before the splits after number `split`.

    Examples
    --------
    >>> first = Subcategories.whole(2).split(root=0)
    >>> ancestors([first, first.split(root=0)], 1).tolist()
    [0, 1, 1, 2, 2]
    """
    ancestor = np.arange(len(splits[-1].label))
    for later in splits[: split - 1 : -1]:
        ancestor = later.parent[ancestor]
    return ancestor


def rule_cascade(refined: RefinedGrammar, splits: Sequence[Subcategories]) -> list[Stage]:
    """The grammar of treebank rules, that of the middle split, and that of all splits."""
    fine = refined.grammar()
    same = np.arange(len(fine.labels), dtype=np.int32)
    stages = [Stage(refined.raw_grammar(fine))]
    middle = (len(splits) + 1) // 2
    if middle == len(splits):
        return [*stages, Stage(fine, same, fine.label.astype(np.int32))]
    coarse, symbol_map = refined.projected(fine, ancestors(splits, middle))
    return [*stages, Stage(coarse, same, coarse.label.astype(np.int32)), Stage(fine, same, symbol_map)]


def site_cascade(sites: SiteGrammar, splits: Sequence[Subcategories], symbols: np.ndarray) -> list[Stage]:
    """The grammar of treebank rules, refined rules of the middle and of the last split, and the transform.

    Parameters
    ----------
    sites : SiteGrammar
    splits : sequence of Subcategories
    symbols : ndarray, one per node
        The refined symbol of every node of the trees.
    """
    fine = sites.grammar()
    same = np.arange(len(fine.labels), dtype=np.int32)
    middle = ancestors(splits, (len(splits) + 1) // 2)
    last = np.arange(len(middle))
    refined, coarse = sites.coarse_grammar(symbols, middle)
    stages = [Stage(refined.raw_grammar(coarse)), Stage(coarse, same, coarse.label.astype(np.int32))]
    if middle.max() < last.max():
        _, flat = sites.coarse_grammar(symbols, last)
        # Beside the refined symbols, both have the same for every label.
        others = np.arange(flat.n_symbols - len(last)) + middle.max() + 1
        stages.append(Stage(flat, same, np.concatenate([middle, others]).astype(np.int32)))
    return [*stages, Stage(fine, same, sites.symbol_map(fine, last if len(stages) > 2 else middle))]
