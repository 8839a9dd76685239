"""Models as estimators: `fit` on trees, `predict` trees for sentences, `score` on held-out trees.

The whole flow behind one class for every model. Parameters, defaults and results are those of ``tsgkit train``: the
settings classes of the models hold the defaults. The interface is that of scikit-learn, whose `clone` and
`GridSearchCV` work on these classes; scikit-learn itself is not needed.
"""

import copy
import inspect
import numbers
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields, replace
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

from nltk.tree import Tree

from tsgkit._estimator_parameters import (
    COMMON,
    PARTS,
    CommonParameters,
    InsertionParameters,
    RunOptions,
    SrtsgParameters,
    TsgParameters,
    require_parts,
    with_parameters,
)
from tsgkit._guesses import nearest
from tsgkit._messages import counted
from tsgkit.errors import NotFittedError, SettingError, TreebankError, UsageError
from tsgkit.evaluation import Evaluation, Parameters
from tsgkit.evaluation._evalb import parameter_warnings
from tsgkit.inference._budget import within
from tsgkit.inference._callbacks import Callback, watch_of
from tsgkit.inference._chains import Plan
from tsgkit.inference._entry import MODELS, ModelEntry, entry_of
from tsgkit.inference._loop import RunInMemory
from tsgkit.inference._recipes import RECIPES
from tsgkit.inference._settings import Settings
from tsgkit.inference._start import Start
from tsgkit.inference._training import Training
from tsgkit.models._fragments import FragmentTable
from tsgkit.models._model import AnyModel, Model, model_of
from tsgkit.models._open_trees import with_open_sentences
from tsgkit.parsing._base import require_sentences
from tsgkit.parsing._held_out import held_out_score
from tsgkit.parsing._parse import Parse
from tsgkit.parsing._parser import Parser
from tsgkit.parsing._settings import ParserSettings
from tsgkit.raw_text import RawTextSettings
from tsgkit.raw_text._in_memory import RawText, corpus_with_raw_text, raw_sentences, shifted
from tsgkit.treebank import Binarization, Cleaning, FlatCorpus, UnknownWords, prepare
from tsgkit.treebank._partial import GivenBracket, OpenSentences, open_sentences
from tsgkit.treebank._presets import Preset, facts_of_preset, load_preset
from tsgkit.treebank._sources import Trees, read_trees

N_BEST_FRAGMENTS = 8


class Estimator:
    """A model that is trained by `fit`; the base of `CFG`, `TSG`, `InsertionTSG` and `SRTSG`.

    Parameters
    ----------
    seed : int
        The same seed gives the same model.
    threads : int
        For training, where the model can, and for parsing; the result does not depend on it.
    treebank : str, optional
        The preset of the treebank, such as ``cess``, or a file with one: how trees are read and cleaned, head rules,
        and parameters of the evaluation; ``tsgkit prepare --list-presets`` lists all.
    cleaning : Cleaning, optional
        How trees are cleaned; unless given, as the preset says, or by the default steps.
    binarization : Binarization, optional
        Unless given, the default of the model.
    unknown : UnknownWords, optional
        How rare and unknown words are classed; unless given, the default of the model.
    parsing : ParserSettings, optional
        How sentences are parsed; the defaults unless given.
    **settings
        The settings of the model, by name. Each has the default of the option of the same name of ``tsgkit train``.
        With `recipe`, all others that are not given are those of the recipe, and so are `binarization` and `unknown`.

    Attributes
    ----------
    history_ : dict of str to list of float
        What was recorded in every iteration; empty for models that are not sampled.
    evaluation_ : Evaluation or None
        The scores on the development trees that were given to `tsgkit.train`.
    """

    kind: ClassVar[str]
    history_: dict[str, list[float]]
    evaluation_: Evaluation | None
    seed: int
    threads: int
    treebank: str | None
    cleaning: Cleaning | None
    binarization: Binarization | None
    unknown: UnknownWords | None
    parsing: ParserSettings | None

    def __init__(self, **params: Any) -> None:
        names = self._param_names()
        if strays := [name for name in params if name not in names]:
            raise TypeError(self._stray(strays[0]))
        if params.get("recipe") is not None:
            names |= self._choices_of(params["recipe"])
        for name, default in names.items():
            setattr(self, name, params.get(name, default))
        self.history_, self.evaluation_ = {}, None
        self._model: Model | None = None
        self._parser: Parser | None = None
        self.settings()  # for its checks

    def __init_subclass__(cls) -> None:
        shown = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            for name, default in cls._param_names().items()
        ]
        cls.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        if cls.__doc__:  # which is missing if Python was told to leave docstrings out
            classes = [*cls._entry().settings.__mro__[::-1], Estimator]
            cls.__doc__ = with_parameters(cls.__doc__, classes, list(cls._param_names()))

    @classmethod
    def _entry(cls) -> ModelEntry:
        return MODELS.require(cls.kind)

    @classmethod
    def _param_names(cls) -> dict[str, Any]:
        """All parameters with their defaults."""
        return {each.name: each.default for each in fields(cls._entry().settings)} | COMMON

    @classmethod
    def _stray(cls, name: str) -> str:
        """What to say of a parameter that there is not: which estimators have it, or a guess."""
        problem = f"{cls.__name__} has no parameter {name!r}"
        if others := cls._others_with(name):
            return f"{problem}, only {others}"
        if name in (each.name for each in fields(ParserSettings)):
            return f"{problem}; it is a setting of the parser: parsing=tsgkit.ParserSettings({name}=...)"
        guess = nearest(name, [known for each in (cls, *ESTIMATORS.values()) for known in each._param_names()])
        if not guess or guess in cls._param_names():
            return problem + (f"; did you mean {guess}?" if guess else "")
        return f"{problem}; did you mean {guess}, of {cls._others_with(guess)}?"

    @classmethod
    def _others_with(cls, name: str) -> str:
        """The estimators that have a parameter, in words."""
        return " and ".join(each.__name__ for each in ESTIMATORS.values() if name in each._param_names())

    @classmethod
    def _choices_of(cls, name: str) -> dict[str, Any]:
        """The parameters that a recipe decides."""
        recipe = RECIPES.require(name, "recipe")
        if recipe.settings.kind != cls.kind:
            raise UsageError(f"recipe {name!r}: it is one for the model {recipe.settings.kind}")
        return {**asdict(recipe.settings), "binarization": recipe.binarization, "unknown": recipe.unknown}

    # ---- parameters ----------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters by name.

        Parameters
        ----------
        deep : bool
            For scikit-learn; no parameter is an estimator, so that it makes no difference.
        """
        return {name: getattr(self, name) for name in self._param_names()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters; what was trained before is unchanged.

        Examples
        --------
        >>> CFG().set_params(sed=1)
        Traceback (most recent call last):
            ...
        ValueError: CFG has no parameter 'sed'; did you mean seed?
        """
        names = self._param_names()
        if strays := [name for name in params if name not in names]:
            raise ValueError(self._stray(strays[0]))
        for name, value in params.items():
            setattr(self, name, value)
        self.settings()
        self._parser = None
        return self

    def settings(self) -> Settings:
        """The settings of the model, checked."""
        self._options()
        require_parts({name: getattr(self, name) for name in PARTS})
        make = self._entry().settings
        return make(**{each.name: getattr(self, each.name) for each in fields(make)})

    def _options(self) -> dict[str, int]:
        """Seed and threads, checked."""
        return asdict(RunOptions(self.seed, self.threads))

    # ---- training ------------------------------------------------------------------------------------

    def fit(
        self,
        trees: Trees,
        y: object = None,
        *,
        start: AnyModel | None = None,
        raw: RawText | None = None,
        raw_settings: RawTextSettings | None = None,
        taught_by: Sequence[AnyModel] = (),
        partial: OpenSentences | None = None,
        minutes: float | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Train on trees.

        Parameters
        ----------
        trees : path, nltk.Tree, str, or iterable of them
            As annotated; a string that begins with a bracket is a tree, any other names a source as for
            `tsgkit.read_trees`.
        y : object
            Not used; scikit-learn passes it.
        start : estimator, Model or path, optional
            A model of the same kind, trained on other trees: the training begins with its last sample, as with
            ``tsgkit train --start``; see `tsgkit.inference._start`.
        raw : path, or iterable of paths or of sentences, optional
            Sentences without trees to learn from, too: teachers trained on `trees` parse them by their product, and the
            model is trained on both. A file has one sentence per line; otherwise each sentence is a sequence of words.
        raw_settings : RawTextSettings, optional
            Number of teachers and of sentences; the defaults unless given.
        taught_by : sequence of estimators, Model or paths
            Teachers for `raw`, instead of new ones: of any kind, with trees cleaned and binarised in the same way.
        partial : path, or iterable of str or (words, brackets), optional
            Sentences whose trees are not known, or in part, for `TSG` only: a file as for ``tsgkit train --partial``,
            lines of one, or words with brackets ``(label or None, start, end)``. Those that no tree of the rules of
            `trees` fits are left out, with a warning.
        minutes : float, optional
            A budget of time, as with ``tsgkit train --time``: the numbers of splits and sweeps are chosen so that the
            training fits into it; not with `raw`.
        callback : callable, optional
            Called with a `Progress` after every iteration, those of teachers included; the training stops when it
            returns True.

        Returns
        -------
        Estimator
            Itself.
        """
        if minutes is not None and not isinstance(minutes, numbers.Real):
            raise SettingError("minutes", minutes, "must be a number")
        options, corpus = self._options(), self._corpus(trees)
        if partial is not None:
            corpus = self._opened(corpus, partial, start, raw, minutes)
        begin = None if start is None else Start(model_of(start))
        settings = self.settings() if minutes is None else self._settings_within(minutes, corpus, begin, raw)
        training = Training(corpus, settings, **options, begin=begin)
        n_before, watch = 0, watch_of(callback, training.iterations)
        if taught_by and raw is None:
            raise UsageError("taught_by goes with raw: teachers parse raw text")
        if raw is not None:
            if not training.iterations and not taught_by:
                raise UsageError(f"raw: a {self.kind} is counted, not sampled: all teachers would be equal")
            chosen = raw_settings or RawTextSettings()
            if taught_by:
                chosen = replace(chosen, teachers=len(taught_by))
            n_before = 0 if taught_by else chosen.teachers * training.iterations
            watch = watch_of(callback, n_before + training.iterations)
            sentences = raw_sentences(raw, chosen)
            corpus = corpus_with_raw_text(corpus, self.settings(), sentences, taught_by, watch=watch, **options)
            training = Training(corpus, self.settings(), **options, begin=begin)
        run = RunInMemory(training, shifted(watch, n_before))
        self._model, self._parser = run.run(), None
        self.history_, self.evaluation_ = run.history, None
        return self

    @property
    def _preset(self) -> Preset | None:
        return None if self.treebank is None else load_preset(self.treebank)

    def _corpus(self, trees: Trees) -> FlatCorpus:
        """The prepared treebank."""
        entry, preset = self._entry(), self._preset
        binarization = self.binarization or entry.binarization
        facts = {}
        if preset is not None:
            facts = facts_of_preset(preset)
            if self.binarization is None:
                binarization = replace(binarization, heads=preset.heads, rules=preset.rules)
        cleaning = self.cleaning if preset is None or self.cleaning is not None else preset.cleaning
        found = read_trees(trees, treebank=preset)
        return prepare(found, cleaning, binarization, self.unknown or entry.unknown, **facts)

    def _opened(self, corpus: FlatCorpus, partial: OpenSentences, *others: object) -> FlatCorpus:
        """The treebank and sentences whose trees are sampled as well."""
        if not self._entry().takes_open_trees:
            raise UsageError(f"partial: a {self.kind} needs a tree for every sentence; a tsg samples them")
        if any(other is not None for other in others):
            raise UsageError("partial does not go together with start, raw and minutes")
        found = with_open_sentences(corpus, open_sentences(partial))
        if found.left_out:
            warnings.warn(f"partial: {found.left_out_message()}", stacklevel=4)
        return found.corpus

    def _settings_within(
        self, minutes: float, corpus: FlatCorpus, begin: Start | None, raw: RawText | None
    ) -> Settings:
        if raw is not None:
            raise UsageError("minutes and raw do not go together: the time of teachers and parsing is not known before")
        plan = Plan(self.settings(), threads=self._options()["threads"]).for_corpus(corpus)
        return within(plan if begin is None else plan.after(begin), corpus, 60 * minutes, begin)[0].settings

    # ---- parsing -------------------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """The trained model."""
        if self._model is None:
            raise NotFittedError(f"this {type(self).__name__} is not trained yet: call fit")
        return self._model

    @property
    def parser(self) -> Parser:
        """The parser of the trained model."""
        if self._parser is None:
            self._parser = Parser(self.model, self.parsing)
        return self._parser

    def predict(self, sentences: Iterable[Sequence[str]]) -> list[Tree]:
        """The best tree of every sentence.

        Parameters
        ----------
        sentences : iterable of sequences of str
            The words of each sentence.
        """
        checked = ((words, None) for words in require_sentences(sentences))
        return [parse.tree for parse in self.parser.parse_batch(checked, threads=self.threads)]

    def parse(
        self,
        words: Sequence[str],
        tags: Sequence[str | None] | None = None,
        *,
        k: int = 1,
        confidence: bool = False,
        brackets: Sequence[GivenBracket] = (),
    ) -> Parse:
        """Everything about one sentence: the `k` best trees, probabilities, whether the tree is a fallback.

        Parameters
        ----------
        words : sequence of str
        tags : sequence of str or None, optional
            One per word; used as the setting `tags` of `parsing` says.
        k : int
            How many trees at most.
        confidence : bool
            Whether to compute the posterior probabilities of brackets.
        brackets : sequence of (label, start, end)
            What all trees must have; a label that is ``None`` is any.
        """
        return self.parser.analyse(words, tags, k=k, confidence=confidence, brackets=brackets)

    def score(self, trees: Trees, y: object = None) -> float:
        """The aligned F1, in percent, of the parses of held-out sentences; see `Evaluation`.

        Parameters
        ----------
        trees
            As for `fit`.
        y : object
            Not used; scikit-learn passes it.
        """
        return self.evaluate(trees).aligned.f1

    def evaluate(self, trees: Trees, params: str | Parameters | None = None) -> Evaluation:
        """Parse the words of held-out trees and score the result.

        Parameters
        ----------
        trees
            As for `fit`.
        params : str or Parameters, optional
            Parameters of EVALB: ``collins``, ``new``, or a file; unless given, those of the treebank's preset, or
            ``collins``.
        """
        held_out = list(read_trees(trees, treebank=self._preset))
        if not held_out:
            raise TreebankError("there are no trees to score")
        evaluation = held_out_score(self.model, held_out, self.parsing, params=params, threads=self.threads)
        for warning in parameter_warnings(evaluation):
            warnings.warn(warning, stacklevel=2)
        return evaluation

    # ---- what was learned ------------------------------------------------------------------------------

    def fragments(self) -> FragmentTable:
        """The fragments of the trained model, with their counts or weights."""
        return entry_of(self.model).fragments(self.model)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trained model to a file that the commands and `tsgkit.load` read."""
        self.model.save(path)

    @classmethod
    def of_model(cls, model: Model) -> "Estimator":
        """The estimator of a trained model, with the settings that it was trained with as parameters."""
        found = estimator_of(model.kind)
        saved = model.info.get("settings")
        names = found._param_names()
        settings = {name: value for name, value in saved.items() if name in names} if isinstance(saved, dict) else {}
        seed = model.info.get("seed", COMMON["seed"])
        entry, preparation = found._entry(), model.preparation
        unknown = preparation.lexicon.settings if preparation.lexicon else None
        estimator = found(
            **settings,
            seed=seed if isinstance(seed, int) else COMMON["seed"],
            cleaning=None if preparation.cleaning == Cleaning() else preparation.cleaning,
            binarization=None if preparation.binarization == entry.binarization else preparation.binarization,
            unknown=None if unknown == entry.unknown else unknown,
        )
        estimator._model = model
        histories = {name: value for name, value in model.state.items() if name.startswith("history_")}
        estimator.history_ = {name.removeprefix("history_"): value.tolist() for name, value in histories.items()}
        return estimator

    # ---- as a value ----------------------------------------------------------------------------------

    def __repr__(self) -> str:
        defaults = self._param_names()
        changed = (f"{name}={value!r}" for name, value in self.get_params().items() if value != defaults[name])
        shown = f"{type(self).__name__}({', '.join(changed)})"
        if self._model is None:
            return shown
        n_trees = self._model.info.get("trees", "?")
        trees = counted(n_trees, "tree") if isinstance(n_trees, int) else f"{n_trees} trees"
        return f"<{shown} trained on {trees}, {self._model.grammar.n_rules} rules>"

    def _repr_html_(self) -> str:
        """Size, scores and the most frequent fragments, for notebooks."""
        if self._model is None:
            return f"<code>{escape(repr(self))}</code>"
        info, grammar = self._model.info, self._model.grammar
        rows = [
            ("model", self._entry().title),
            ("trained on", f"{info.get('trees', '?')} trees, {info.get('tokens', '?')} tokens"),
            ("grammar", f"{grammar.n_rules} rules, {len(grammar.labels)} labels"),
        ]
        if self.evaluation_ is not None:
            rows.append(("held-out trees", self.evaluation_.headline()))
        if best := self._best_fragments():
            rows.append(("frequent fragments", "\n".join(best)))
        cells = (f"<tr><th>{name}</th><td><pre>{escape(text)}</pre></td></tr>" for name, text in rows)
        return f"<table><caption>{escape(type(self).__name__)}</caption><tbody>{''.join(cells)}</tbody></table>"

    def _best_fragments(self) -> list[str]:
        """The most frequent fragments that are larger than a rule, as brackets with their counts."""
        table = self.fragments()
        numbers = table.select(min_size=2, sort="count")[:N_BEST_FRAGMENTS]
        shown = [table.fragment(number) for number in numbers]
        return [f"{fragment.count:g}  {fragment.brackets}" for fragment in shown]

    def __getstate__(self) -> dict[str, Any]:
        """Parameters, and the bytes of the model file instead of arrays and indices."""
        state = {name: value for name, value in self.__dict__.items() if name not in ("_model", "_parser")}
        return state | {"_content": None if self._model is None else self._model.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        content = state.pop("_content")
        self.__dict__.update(state)
        self._parser = None
        self._model = None if content is None else Model.load(type(self).__name__, content)

    def __copy__(self) -> Self:
        """A copy that shares the model, which never changes."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = copy.copy(self)
        for name in self._param_names():
            setattr(made, name, copy.deepcopy(getattr(self, name), memo))
        return made

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of estimators."""
        from sklearn.utils import Tags, TargetTags  # noqa: PLC0415

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None


class CFG(Estimator):
    """A PCFG: relative frequencies of the rules of the binarised trees.

    It is counted in a moment, and the least accurate of the models.

    Examples
    --------
    >>> model = CFG().fit("village:train")
    >>> print(*model.predict([["the", "old", "man", "smiled", "."]]))
    (TOP (S (NP (DT the) (JJ old) (NN man)) (VP (VBD smiled)) (. .)))
    >>> round(model.score("village:dev"), 2)
    84.27
    """

    kind = "cfg"
    if TYPE_CHECKING:

        def __init__(self, **params: Unpack[CommonParameters]) -> None: ...


class TSG(Estimator):
    """A Bayesian tree-substitution grammar (Cohn & Blunsom 2010).

    Examples
    --------
    >>> model = TSG(iterations=20, average=2, seed=1)
    >>> model
    TSG(average=2, iterations=20, seed=1)
    >>> len(model.fit("village:dev").history_["log_joint"])
    20
    """

    kind = "tsg"
    if TYPE_CHECKING:

        def __init__(self, **params: Unpack[TsgParameters]) -> None: ...


class InsertionTSG(Estimator):
    """A tree-substitution grammar with insertion: auxiliary trees beside initial ones (Shindo et al. 2011).

    Examples
    --------
    >>> InsertionTSG(iterations=5, stacked=True).get_params()["stacked"]
    True
    """

    kind = "insertion"
    if TYPE_CHECKING:

        def __init__(self, **params: Unpack[InsertionParameters]) -> None: ...


class SRTSG(Estimator):
    """A symbol-refined tree-substitution grammar: with learned subcategories, the most accurate (Shindo et al. 2012).

    Examples
    --------
    >>> settings = {"splits": 1, "split_iterations": 5, "joint_iterations": 5, "average": 1}
    >>> model = SRTSG(**settings).fit("village:dev", callback=lambda progress: progress.iteration == 7)
    >>> len(model.history_["log_joint"])  # of 10
    7
    """

    kind = "srtsg"
    if TYPE_CHECKING:

        def __init__(self, **params: Unpack[SrtsgParameters]) -> None: ...


ESTIMATORS: dict[str, type[Estimator]] = {each.kind: each for each in (CFG, TSG, InsertionTSG, SRTSG)}


def estimator_of(kind: str) -> type[Estimator]:
    """The estimator of a model by its name; one is made for a model of another package.

    Examples
    --------
    >>> estimator_of("tsg").__name__
    'TSG'
    """
    if kind not in ESTIMATORS:
        entry = MODELS.require(kind)
        ESTIMATORS[kind] = type(kind, (Estimator,), {"kind": kind, "__doc__": entry.title, "__module__": __name__})
    return ESTIMATORS[kind]
