"""Tree-substitution grammars: learn fragments of any size from a treebank, read them, parse with them.

Train, parse, score, draw:

>>> import tsgkit
>>> model = tsgkit.train("village:train", model="cfg", dev="village:dev")
>>> print(model.evaluation_.headline())
aligned F1 84.27, EVALB 84.27, strict 84.27
>>> (parse,) = tsgkit.parse([["the", "old", "man", "smiled", "."]], model)
>>> print(parse.tree)
(TOP (S (NP (DT the) (JJ old) (NN man)) (VP (VBD smiled)) (. .)))

The names of this module are what most programs need, and all are listed by ``dir(tsgkit)``. They are imported when
they are first used, so that ``import tsgkit`` is quick.
"""

import importlib as _importlib
import typing as _typing

__version__ = "0.1.0"

# Where each name is defined.
_HOMES = {
    "train": "tsgkit._api",
    "load": "tsgkit._api",
    "parse": "tsgkit._api",
    "evaluate": "tsgkit._api",
    "read_trees": "tsgkit._api",
    "draw": "tsgkit._api",
    "CFG": "tsgkit._estimators",
    "TSG": "tsgkit._estimators",
    "InsertionTSG": "tsgkit._estimators",
    "SRTSG": "tsgkit._estimators",
    "Parser": "tsgkit.parsing",
    "ParserSettings": "tsgkit.parsing",
    "Parse": "tsgkit.parsing",
    "Evaluation": "tsgkit.evaluation",
    "Cleaning": "tsgkit.treebank",
    "Binarization": "tsgkit.treebank",
    "UnknownWords": "tsgkit.treebank",
}
__all__ = [
    "CFG",
    "SRTSG",
    "TSG",
    "Binarization",
    "Cleaning",
    "Evaluation",
    "InsertionTSG",
    "Parse",
    "Parser",
    "ParserSettings",
    "UnknownWords",
    "draw",
    "evaluate",
    "load",
    "parse",
    "read_trees",
    "train",
]

if _typing.TYPE_CHECKING:
    from tsgkit._api import draw, evaluate, load, parse, read_trees, train
    from tsgkit._estimators import CFG, SRTSG, TSG, InsertionTSG
    from tsgkit.evaluation import Evaluation
    from tsgkit.parsing import Parse, Parser, ParserSettings
    from tsgkit.treebank import Binarization, Cleaning, UnknownWords


def __getattr__(name: str) -> object:
    """A public name, imported on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
