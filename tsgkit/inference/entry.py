"""The table of models: one entry for each, with all that others need to know about it.

Commands, parsers and reports ask the entry of a model and never its name. Entries of other packages are found by the
entry point group ``tsgkit.models``.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from tsgkit.errors import UsageError
from tsgkit.inference.phases import Phase
from tsgkit.inference.settings import Settings
from tsgkit.models.derivations import DerivationReader
from tsgkit.models.fragments import FragmentTable
from tsgkit.models.model import Model
from tsgkit.models.subcategories import SubcategoryTable
from tsgkit.models.tsg_predictive import DerivationCorrection
from tsgkit.registry import Registry
from tsgkit.treebank import Binarization, FlatCorpus, UnknownWords

PACKAGE = "package"  # among the information of a model: which package brings its entry, if not tsgkit


class ModelEntry(ABC):
    """A model that plugs in.

    Attributes
    ----------
    title : str
        Its name for people.
    settings : type
        The dataclass of its settings, which has its name, the `kind`, and all defaults.
    binarization : Binarization
        How trees are binarised for it, unless the user asks for something else.
    unknown : UnknownWords
        How rare words are classed for it, likewise.
    panels : tuple of str
        What the report on a model shows of it, in this order; see `tsgkit.report.panels`.
    """

    title: ClassVar[str]
    settings: ClassVar[type[Settings]]
    binarization: ClassVar[Binarization] = Binarization("right", 0, 1)
    unknown: ClassVar[UnknownWords] = UnknownWords("unicode", 1)
    panels: ClassVar[tuple[str, ...]] = ("training", "derivations")

    # Settings are those of the entry's own class, which no base class can name.
    @abstractmethod
    def phases(self, settings: Any) -> Sequence[Phase]:
        """The phases of its training, one after the other."""

    @abstractmethod
    def material(self, corpus: FlatCorpus, settings: Any, *, seed: int, threads: int) -> Any:
        """What the first phase begins with; made once for all phases."""

    @abstractmethod
    def fragments(self, model: Model) -> FragmentTable:
        """The fragments that a model of this kind has learned, with their counts or weights."""

    def derivations(self, model: Model) -> DerivationReader:
        """What cuts derivations with the model's grammar into fragments."""
        return DerivationReader(model.grammar)

    def subcategories(self, model: Model) -> SubcategoryTable:
        """The subcategories of the model's training trees."""
        raise UsageError(f"a {model.kind} model has no subcategories; train one with --model=srtsg")

    def correction(self, model: Model) -> DerivationCorrection:
        """The true probabilities of derivations over those of the model's grammar."""
        raise UsageError(f"a {model.kind} model cannot correct its samples; tsg and insertion models can")


MODELS: Registry[ModelEntry] = Registry(
    "model",
    "tsgkit.models",
    {
        "cfg": "tsgkit.inference.cfg:CFG",
        "tsg": "tsgkit.inference.tsg:TSG",
        "insertion": "tsgkit.inference.insertion:INSERTION",
        "srtsg": "tsgkit.inference.srtsg:SRTSG",
    },
)


def entry_of(model: Model) -> ModelEntry:
    """The entry of a model.

    Raises
    ------
    UsageError
        If nothing that is installed has one; the message names the package that does, if the model says so.
    """
    if model.kind in MODELS:
        return MODELS[model.kind]
    package = model.info.get(PACKAGE)
    missing = f"install the package {package}" if isinstance(package, str) else "install the package that brings it"
    raise UsageError(f"no model {model.kind!r} is installed: {missing}, or train one of {', '.join(MODELS.names)}")


def fragments_of(model: Model) -> FragmentTable:
    """The fragments of a model of any kind, with their counts or weights.

    Examples
    --------
    >>> from tsgkit.models.cfg import cfg_model
    >>> from tsgkit.treebank import load, prepare
    >>> corpus = prepare(load("village", "dev"), binarization=Binarization("right", 0), unknown=UnknownWords())
    >>> table = fragments_of(cfg_model(corpus))
    >>> table.fragment(table.select(root="TOP")[0]).brackets, table.measure
    ('(TOP (S ))', 'weight')
    """
    return entry_of(model).fragments(model)
