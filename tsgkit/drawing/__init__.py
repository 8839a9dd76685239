"""Drawings of trees and fragments: as SVG, in the terminal, for LaTeX.

Beside the flow, below `tsgkit.parsing`, so that notebooks can display parses.
"""

from tsgkit.drawing._arcs import ArcDrawing
from tsgkit.drawing._trees import Drawing

__all__ = ["ArcDrawing", "Drawing"]
