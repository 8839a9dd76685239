"""Pictures: trees and derivations as SVG, in the terminal and for LaTeX; the report on a model; the web page.

Last stage of the flow, beside `tsgkit.evaluation`: it reads models and parses and changes nothing.
"""

from tsgkit.report.derivation import Derivation, Deriver, derivation_of
from tsgkit.report.drawing import Drawing

__all__ = ["Derivation", "Deriver", "Drawing", "derivation_of"]
