"""The table of panels: the sections of a report, by name.

A model's entry lists those that show what it has learned; raw text and scores come after them for every model.
Panels of other packages are found by the entry point group ``tsgkit.panels``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tsgkit._registry import Registry


@dataclass(frozen=True)
class Panel:
    """A section of a report.

    Attributes
    ----------
    heading : str
    content : callable
        From a `tsgkit.report.model_report.Report` to the parts of the section, as HTML in which everything that comes
        from data is escaped (`tsgkit.report._page.escape`). A section without parts is left out.
    """

    heading: str
    content: Callable[[Any], Iterable[str]]


PANELS: Registry[Panel] = Registry(
    "panel",
    "tsgkit.panels",
    {
        "training": "tsgkit.report._training:TRAINING",
        "sizes": "tsgkit.report._model_panels:SIZES",
        "fragments": "tsgkit.report._model_panels:FRAGMENTS",
        "auxiliary": "tsgkit.report._model_panels:AUXILIARY",
        "subcategories": "tsgkit.report._model_panels:SUBCATEGORIES",
        "derivations": "tsgkit.report._model_panels:DERIVATIONS",
        "raw-text": "tsgkit.report._raw_text_panel:RAW_TEXT",
        "scores": "tsgkit.report._score_panels:SCORES",
        "labels": "tsgkit.report._score_panels:LABELS",
        "lengths": "tsgkit.report._score_panels:LENGTHS",
        "worst": "tsgkit.report._score_panels:WORST",
    },
)
COMMON_PANELS = ("raw-text", "scores", "labels", "lengths", "worst")  # of every report
