"""How well a model, or a product of models, parses trees that it was not trained on."""

from collections.abc import Sequence
from typing import Any

from nltk.tree import Tree

from tsgkit._progress import progress
from tsgkit.distributed import Link, require_same_version
from tsgkit.distributed._base import Shared
from tsgkit.evaluation import Evaluation, Parameters, evaluate
from tsgkit.evaluation._parameters import DEFAULT_PARAMETERS, parameters_named
from tsgkit.models._model import Model
from tsgkit.parsing._product import parser_of
from tsgkit.parsing._settings import ParserSettings
from tsgkit.treebank._trees import words


def held_out_score(
    models: Model | Sequence[Model],
    trees: Sequence[Tree],
    settings: ParserSettings | None = None,
    *,
    params: str | Parameters | None = None,
    threads: int = 1,
    quiet: bool = True,
) -> Evaluation:
    """Parse the words of trees (as annotated), and score what comes out.

    Parameters
    ----------
    models : Model or sequence of Model
        Several parse as a product.
    trees : sequence of nltk.Tree
    settings : ParserSettings, optional
        The defaults unless given.
    params : str or Parameters, optional
        Parameters of EVALB: ``collins``, ``new``, or a file; those of the treebank that the model was trained on, or
        ``collins``, unless given.
    threads : int
        The result does not depend on it.
    quiet : bool
        No progress bar.

    Examples
    --------
    >>> from tsgkit.models._cfg import cfg_model
    >>> from tsgkit.treebank import Binarization, UnknownWords, load, prepare
    >>> corpus = prepare(load(split="train"), binarization=Binarization("right", 1), unknown=UnknownWords())
    >>> 50 < held_out_score(cfg_model(corpus), list(load(split="dev"))).f1 < 100
    True
    """
    members = [models] if isinstance(models, Model) else list(models)
    preparation = members[0].preparation
    gold = [tree for tree in map(preparation.cleaning.apply, trees) if tree is not None]
    parses = parser_of(members, settings).parse_batch([(words(tree), None) for tree in gold], threads=threads)
    guess = [parse.tree for parse in progress(parses, "parsing", "sentences", total=len(gold), quiet=quiet)]
    if params is None:
        params = parameters_named(preparation.parameters or DEFAULT_PARAMETERS)
    return evaluate(map(preparation.cleaning.undo, gold), guess, params)


def score_model(shared: Shared, path: str, link: Link) -> dict[str, Any]:
    """The task of scoring a model file."""
    require_same_version(shared["version"])
    score = held_out_score(Model.load(path), shared["trees"], params=shared["params"], threads=shared["threads"])
    return {"f1": score.f1, "strict": score.strict.f1, "aligned": score.aligned.f1}
