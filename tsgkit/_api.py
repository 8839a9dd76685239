"""The functions of the package: train, load, parse, evaluate, read and draw trees, each with one call.

They are `tsgkit.train`, `tsgkit.load` and so on, and do what the commands of the same names do, with the same defaults
and the same results. Nothing is written to a file unless a path is given.
"""

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypedDict, Unpack, overload

from nltk.tree import Tree

from tsgkit._estimator_parameters import CommonParameters, InsertionParameters, SrtsgParameters, TsgParameters
from tsgkit._estimators import CFG, SRTSG, TSG, Callback, Estimator, InsertionTSG, estimator_of
from tsgkit._messages import kind_of
from tsgkit.drawing import Drawing
from tsgkit.drawing._arcs import ArcDrawing
from tsgkit.errors import TreebankError, UsageError
from tsgkit.evaluation import Evaluation, Parameters
from tsgkit.evaluation import evaluate as evaluate_lines
from tsgkit.evaluation._evalb import parameter_warnings
from tsgkit.evaluation._parameters import DEFAULT_PARAMETERS, parameters_named
from tsgkit.models._model import AnyModel, Model
from tsgkit.parsing._base import Sentence, require_sentences
from tsgkit.parsing._parse import Parse
from tsgkit.parsing._product import parser_of
from tsgkit.parsing._settings import ParserParameters, ParserSettings
from tsgkit.raw_text import RawTextSettings
from tsgkit.raw_text._in_memory import RawText
from tsgkit.report._derivation import derivation_of
from tsgkit.report._drawings import write_drawings
from tsgkit.treebank import _sources
from tsgkit.treebank._heads import HeadRules
from tsgkit.treebank._partial import GivenBracket, OpenSentences
from tsgkit.treebank._presets import head_rules_named, load_preset
from tsgkit.treebank._sources import Trees


@overload
def train(
    trees: Trees,
    model: Literal["srtsg"] = "srtsg",
    *,
    dev: Trees | None = None,
    params: str | Parameters | None = None,
    raw: RawText | None = None,
    raw_settings: RawTextSettings | None = None,
    taught_by: Sequence[AnyModel] = (),
    start: AnyModel | None = None,
    minutes: float | None = None,
    callback: Callback | None = None,
    **settings: Unpack[SrtsgParameters],
) -> SRTSG: ...
@overload
def train(
    trees: Trees,
    model: Literal["tsg"],
    *,
    dev: Trees | None = None,
    params: str | Parameters | None = None,
    raw: RawText | None = None,
    raw_settings: RawTextSettings | None = None,
    taught_by: Sequence[AnyModel] = (),
    partial: OpenSentences | None = None,
    start: AnyModel | None = None,
    minutes: float | None = None,
    callback: Callback | None = None,
    **settings: Unpack[TsgParameters],
) -> TSG: ...
@overload
def train(
    trees: Trees,
    model: Literal["insertion"],
    *,
    dev: Trees | None = None,
    params: str | Parameters | None = None,
    raw: RawText | None = None,
    raw_settings: RawTextSettings | None = None,
    taught_by: Sequence[AnyModel] = (),
    start: AnyModel | None = None,
    minutes: float | None = None,
    callback: Callback | None = None,
    **settings: Unpack[InsertionParameters],
) -> InsertionTSG: ...
@overload
def train(
    trees: Trees,
    model: Literal["cfg"],
    *,
    dev: Trees | None = None,
    params: str | Parameters | None = None,
    **settings: Unpack[CommonParameters],
) -> CFG: ...
@overload  # a name that is not known before; a mistake in a setting of a known one is not to be hidden by this
def train(
    trees: Trees,
    model: str,
    *,
    dev: Trees | None = None,
    params: str | Parameters | None = None,
    raw: RawText | None = None,
    raw_settings: RawTextSettings | None = None,
    taught_by: Sequence[AnyModel] = (),
    partial: OpenSentences | None = None,
    start: AnyModel | None = None,
    minutes: float | None = None,
    callback: Callback | None = None,
    **settings: Unpack[CommonParameters],
) -> Estimator: ...
def train(
    trees: Trees,
    model: str = "srtsg",
    *,
    dev: Trees | None = None,
    params: str | Parameters | None = None,
    raw: RawText | None = None,
    raw_settings: RawTextSettings | None = None,
    taught_by: Sequence[AnyModel] = (),
    partial: OpenSentences | None = None,
    seed: int = 0,
    start: AnyModel | None = None,
    minutes: float | None = None,
    callback: Callback | None = None,
    **settings: Any,
) -> Estimator:
    """Train a model on a treebank, as ``tsgkit train`` does.

    Parameters
    ----------
    trees : path, nltk.Tree, str, or iterable of them
        As annotated; a string that begins with a bracket is a tree, any other names a source as for `read_trees`.
    model : str
        ``cfg``, ``tsg``, ``insertion`` or ``srtsg``, or a model of another package.
    dev : as `trees`, optional
        Held-out trees to score the model on; the result is its `evaluation_`.
    params : str or Parameters, optional
        For `dev`: ``collins``, ``new``, or an EVALB parameter file; unless given, those of `treebank`, or ``collins``.
    raw : path, or iterable of paths or of sentences, optional
        Sentences without trees to learn from, too; see `Estimator.fit`.
    raw_settings : RawTextSettings, optional
        Number of teachers and of sentences; the defaults unless given.
    taught_by : sequence of Estimator, Model or path
        Teachers for `raw`, instead of new ones.
    partial : path, or iterable of str or (words, brackets), optional
        Sentences whose trees are not known, or in part, for ``tsg`` only; see `Estimator.fit`.
    seed : int
        The same seed gives the same model.
    start : Estimator, Model or path, optional
        A model of the same kind, trained on other trees, with whose last sample the training begins.
    minutes : float, optional
        A budget of time: the numbers of splits and sweeps are chosen so that the training fits into it.
    callback : callable, optional
        Called with a `tsgkit.inference.callbacks.Progress` after every iteration; training stops if it returns True.
    **settings
        Parameters of the estimator: settings of the model, `threads`, `treebank`, `cleaning`, `binarization`,
        `unknown` and `parsing`.

    Returns
    -------
    Estimator
        A trained `CFG`, `TSG`, `InsertionTSG` or `SRTSG`.

    Examples
    --------
    >>> model = train("village:dev", model="tsg", iterations=10, average=1, seed=1)
    >>> model
    <TSG(average=1, iterations=10, seed=1) trained on 65 trees, ... rules>
    """
    if not isinstance(model, str):
        raise TypeError(
            f"model is a name, such as 'cfg', not {kind_of(model)}; an estimator is trained by its method fit,"
            " as in tsgkit.CFG().fit(trees)"
        )
    for name, value, needed in (("params", params, dev), ("raw_settings", raw_settings, raw)):
        if value is not None and needed is None:
            raise UsageError(f"{name} goes with {'dev' if name == 'params' else 'raw'}: alone it has no effect")
    estimator = estimator_of(model)(seed=seed, **settings)
    held_out = None if dev is None else read_trees(dev, treebank=estimator.treebank)
    learning: dict[str, Any] = {"raw": raw, "raw_settings": raw_settings, "taught_by": taught_by, "partial": partial}
    estimator.fit(trees, **learning, start=start, minutes=minutes, callback=callback)
    if held_out is not None:
        estimator.evaluation_ = estimator.evaluate(held_out, params)
    return estimator


def load(path: str | os.PathLike[str]) -> Estimator:
    """Read a model that `Estimator.save` or ``tsgkit train`` wrote.

    Parameters
    ----------
    path : path

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     train("village:dev", model="cfg").save(f"{folder}/cfg.model")
    ...     load(f"{folder}/cfg.model")
    <CFG() trained on 65 trees, ... rules>
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"what is loaded is the path of a model file, not {kind_of(path)}")
    return Estimator.of_model(Model.load(path))


def parse(
    sentences: Iterable[Sequence[str]],
    model: AnyModel | Sequence[AnyModel],
    *,
    k: int = 1,
    confidence: bool = False,
    threads: int = 1,
    brackets: Iterable[Sequence[GivenBracket]] | None = None,
    **settings: Unpack[ParserParameters],
) -> list[Parse]:
    """Parse sentences, as ``tsgkit parse`` does.

    Parameters
    ----------
    sentences : iterable of sequences of str
        The words of each sentence.
    model : Estimator, Model, path, or sequence of them
        Several models decide together.
    k : int
        How many trees at most for every sentence.
    confidence : bool
        Whether to compute the posterior probabilities of brackets.
    threads : int
        The result does not depend on it.
    brackets : iterable of sequences of (label, start, end), optional
        For each sentence, brackets that its trees must have; a label that is ``None`` is any.
    **settings
        Settings of the parser (`ParserSettings`), such as ``objective="mpd"``.

    Examples
    --------
    >>> model = train("village:train", model="cfg")
    >>> [each.fallback or "ok" for each in parse([["I", "ran", "."], ["He", "smiled", "."]], model)]
    ['ok', 'ok']
    >>> print(parse([["He", "smiled", "."]], model, brackets=[[("VP", 1, 2)]])[0].tree)
    (TOP (S (NP (PRP He)) (VP (VBD smiled)) (. .)))
    >>> parse("I ran .", model)
    Traceback (most recent call last):
        ...
    TypeError: sentences are sequences of words, not the string 'I ran .'; split it, as in ['I ran .'.split()]
    """
    checked: list[Sentence] = [(words, None) for words in require_sentences(sentences)]
    if brackets is not None:
        given = list(brackets)
        if len(given) != len(checked):
            raise UsageError(f"brackets for {len(given)} sentences, but there are {len(checked)}")
        checked = [(sentence[0], None, found) for sentence, found in zip(checked, given, strict=True)]
    models = list(model) if isinstance(model, Iterable) and not isinstance(model, str) else [model]
    parser = parser_of(models, ParserSettings().with_changes(**settings))
    return list(parser.parse_batch(checked, threads=threads, k=k, confidence=confidence))


def evaluate(
    gold: Trees, test: Trees, params: str | Parameters | None = None, *, treebank: str | None = None
) -> Evaluation:
    """Score parses against gold trees, as ``tsgkit eval`` does.

    Parameters
    ----------
    gold, test : path, nltk.Tree, str, or iterable of them
        A file with one tree per line, or the trees; a string that begins with a bracket is a tree. A `Parse` stands
        for its best tree; in an iterable, ``None`` or an empty string stands for a failed parse.
    params : str or Parameters, optional
        ``collins``, ``new``, or an EVALB parameter file; unless given, those of `treebank`, or ``collins``.
    treebank : str, optional
        The preset of a treebank, or a file with one: its parameters.

    Examples
    --------
    >>> gold = "(TOP (S (NP (PRP I)) (VP (VBD saw) (NP (PRP you)))))"
    >>> evaluate(gold, "(TOP (S (NP (PRP I)) (VP (VBD saw)) (NP (PRP you))))").f1
    75.0
    """
    if params is None:
        params = parameters_named(DEFAULT_PARAMETERS if treebank is None else load_preset(treebank).parameters)
    result = evaluate_lines(scored_trees(gold), scored_trees(test), params)
    for problem in result.problems:
        if problem.kind in ("gold longer", "test longer"):  # never meant
            warnings.warn(f"{problem.location}: {problem.message}", stacklevel=2)
            break
    for warning in parameter_warnings(result):
        warnings.warn(warning, stacklevel=2)
    return result


def scored_trees(given: Any) -> Any:
    """Trees as the scorer takes them: files as they are, everything else as trees."""
    if isinstance(given, os.PathLike) or (isinstance(given, str) and os.path.isfile(given)):
        return given
    if isinstance(given, str | Tree):
        return read_trees(given)
    if isinstance(given, Parse):
        return [given.tree]
    what = "what is scored are nltk.Tree, strings of brackets and parses, or one file of trees, not"
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise TypeError(f"{what} {kind_of(given)}")
    found = [each.tree if isinstance(each, Parse) else each for each in given]
    for each in found:
        if each is not None and not isinstance(each, str | Tree):
            raise TypeError(f"{what} {kind_of(each)} among several")
    return found


class ReadParameters(TypedDict, total=False):
    """The options of `tsgkit.treebank.read_trees`."""

    format: str
    treebank: str | None
    skipped: list[TreebankError] | None
    max_bad: float
    unescape: bool
    nfc: bool
    encoding: str | None
    reattached: list[str] | None


def read_trees(trees: Trees, **options: Unpack[ReadParameters]) -> list[Tree]:
    """Read trees from any source.

    Parameters
    ----------
    trees : path, nltk.Tree, str, or iterable of them
        A file (plain, gzip or xz), a folder, a glob pattern, ``nltk:NAME``, ``village:train`` and so on; or the trees
        themselves, as `nltk.Tree` or as strings that begin with a bracket.
    **options
        Those of `tsgkit.treebank.read_trees`: ``treebank`` (a preset), ``format``, ``encoding``, ...

    Examples
    --------
    >>> len(read_trees("village:dev"))
    65
    >>> print(*read_trees("(S (NP I) (VP ran))"))
    (S (NP I) (VP ran))
    """
    return list(_sources.read_trees(trees, **options))


def draw(
    tree: Tree | str | Parse,
    path: str | os.PathLike[str] | None = None,
    *,
    model: AnyModel | None = None,
    heads: str | os.PathLike[str] | None = None,
) -> Drawing | ArcDrawing:
    """Draw a tree, its most probable derivation under a model, or its dependencies.

    Parameters
    ----------
    tree : nltk.Tree, str or Parse
        Of a string, the tree that its brackets denote; of a parse, its best tree.
    path : path, optional
        Where to write the drawing; the suffix is the format: ``.svg``, ``.html``, ``.tex``, ``.txt``, ``.png`` or
        ``.pdf``.
    model : Estimator, Model or path, optional
        Draw the derivation, each fragment in a different colour.
    heads : str or path, optional
        Draw dependencies by these head rules, as arcs: ``penn``, ``leftmost``, ``rightmost``, another preset, or a
        file.

    Returns
    -------
    Drawing or ArcDrawing
        Notebooks display it; ``print`` prints it as text.

    Examples
    --------
    >>> print(draw("(S (NP (PRP I)) (VP (VBD ran)))"))
        S
     ┌──┴─┐
    NP   VP
     │    │
    PRP  VBD
     I   ran
    """
    given = tree.tree if isinstance(tree, Parse) else tree
    found = [given] if isinstance(given, Tree) else read_trees(given)
    if len(found) != 1:
        raise UsageError(f"one tree is drawn at a time, not {len(found)}")
    if model is not None and heads is not None:
        raise UsageError("a derivation is not drawn as arcs: give model or heads, not both")
    drawing: Drawing | ArcDrawing
    if heads is not None:
        drawing = ArcDrawing.of_tree(found[0], HeadRules.parse(head_rules_named(heads), str(heads)))
    elif model is not None:
        drawing = derivation_of(model, found[0]).drawing()
    else:
        shown = found[0][0] if not found[0].label() and len(found[0]) == 1 else found[0]
        drawing = Drawing.of_tree(shown)
    if path is not None:
        write_drawings([drawing], path)
    return drawing
