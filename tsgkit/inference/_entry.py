"""The registry of models: one entry per model, with everything that other parts of tsgkit need to know about it.

Commands, parsers and reports use the entry of a model and never compare its name. Other packages add entries by the
entry point group ``tsgkit.models``.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from tsgkit._registry import Registry
from tsgkit.errors import UsageError
from tsgkit.inference._phases import Phase
from tsgkit.inference._settings import Settings
from tsgkit.inference._start import Start
from tsgkit.models._derivations import DerivationReader
from tsgkit.models._fragments import FragmentTable
from tsgkit.models._model import Model
from tsgkit.models._subcategories import SubcategoryTable
from tsgkit.models._tsg_predictive import DerivationCorrection
from tsgkit.treebank import Binarization, FlatCorpus, UnknownWords

PACKAGE = "package"  # the key in `Model.info` for the package that defines the model, if that is not tsgkit


class ModelEntry(ABC):
    """The entry of a model.

    Attributes
    ----------
    title : str
        The name of the model in reports.
    settings : type
        The dataclass of its settings. It defines the name of the model, `kind`, and all defaults.
    binarization : Binarization
        The default binarisation of the training trees.
    unknown : UnknownWords
        The default treatment of rare and unknown words.
    training_note : str
        What a reader must know to understand the plots of the training; for reports.
    panels : tuple of str
        The sections of a report on what the model has learned, in order; see `tsgkit.report.panels`.
    takes_open_trees : bool
        Whether the model samples trees that are not known; see `tsgkit.models._open_trees`.
    learns_span_labels : bool
        Whether the parser has a model of the labels of spans beside the grammar; see `tsgkit.models._span_labels`.
    """

    title: ClassVar[str]
    settings: ClassVar[type[Settings]]
    binarization: ClassVar[Binarization] = Binarization("right", 0, 1)
    unknown: ClassVar[UnknownWords] = UnknownWords("unicode", 1)
    training_note: ClassVar[str] = ""
    panels: ClassVar[tuple[str, ...]] = ("training", "derivations")
    takes_open_trees: ClassVar[bool] = False
    learns_span_labels: ClassVar[bool] = False

    # The type of `settings` is the class of the entry, which this base class cannot name.
    @abstractmethod
    def phases(self, settings: Any) -> Sequence[Phase]:
        """The phases of the training, in order; at least one."""

    @abstractmethod
    def material(self, corpus: FlatCorpus, settings: Any, *, seed: int, threads: int) -> Any:
        """What the first phase begins with, and what `Phase.restore` gets; computed once for all phases."""

    def skipped_phases(self, settings: Any, start: Start) -> int:
        """How many of the first phases a start has done already."""
        return 0

    def begin_with(self, start: Start, material: Any, settings: Any) -> Any:
        """What the first phase that is not skipped begins with, in place of the material.

        Raises
        ------
        UsageError
            If the model cannot begin with this start.
        """
        raise UsageError(f"{start.name}: a model {settings.kind} is not sampled and takes no start")

    @abstractmethod
    def fragments(self, model: Model) -> FragmentTable:
        """The fragments of a trained model, with their counts or weights."""

    def derivations(self, model: Model) -> DerivationReader:
        """A reader that splits derivations with the model's grammar into fragments."""
        return DerivationReader(model.grammar)

    def subcategories(self, model: Model) -> SubcategoryTable:
        """The subcategories of the training trees."""
        raise UsageError(f"a {model.kind} model has no subcategories; train one with --model=srtsg")

    def correction(self, model: Model) -> DerivationCorrection:
        """The ratio of the true probability of a derivation and its probability under the exported grammar."""
        raise UsageError(f"a {model.kind} model cannot correct its samples; tsg and insertion models can")


MODELS: Registry[ModelEntry] = Registry(
    "model",
    "tsgkit.models",
    {
        "cfg": "tsgkit.inference._cfg:CFG",
        "tsg": "tsgkit.inference._tsg:TSG",
        "insertion": "tsgkit.inference._insertion:INSERTION",
        "srtsg": "tsgkit.inference._srtsg:SRTSG",
    },
)


def entry_of(model: Model) -> ModelEntry:
    """The entry of a model.

    Parameters
    ----------
    model : Model

    Raises
    ------
    UsageError
        If no installed package defines the model; the message names the missing package, if the model file does.
    """
    if model.kind in MODELS:
        return MODELS[model.kind]
    package = model.info.get(PACKAGE)
    missing = f"install the package {package}" if isinstance(package, str) else "install the package that defines it"
    raise UsageError(f"no model {model.kind!r} is installed: {missing}, or train one of {', '.join(MODELS.names)}")


def fragments_of(model: Model) -> FragmentTable:
    """The fragments of any model, with their counts or weights.

    Parameters
    ----------
    model : Model

    Examples
    --------
    >>> import tsgkit
    >>> table = fragments_of(tsgkit.train("village:dev", model="cfg").model)
    >>> table.fragment(table.select(root="TOP")[0]).brackets, table.measure
    ('(TOP (S^TOP ))', 'weight')
    """
    return entry_of(model).fragments(model)
