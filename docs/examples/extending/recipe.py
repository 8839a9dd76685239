"""A recipe: the choices of an experiment of your own, so that others repeat it with one option.

In a package of your own, name `QUICK` as an entry point of the group ``tsgkit.recipes``; users then train with
``tsgkit train --recipe=quick-tsg``.
"""

from tsgkit.inference.recipes import Recipe, TsgSettings
from tsgkit.treebank import Binarization, UnknownWords

QUICK = Recipe(
    title="A tree-substitution grammar in a minute",
    settings=TsgSettings(recipe="quick-tsg", iterations=50, type_moves=500, average=5, average_every=2),
    binarization=Binarization("right", 0, 1),
    unknown=UnknownWords("unicode", 1),
    parsing="--objective=max-rule",
    deviations=("There is no publication.",),
)
