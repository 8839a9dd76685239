"""Pictures of trees and fragments: as SVG, in the terminal, for LaTeX.

Beside the flow, below `tsgkit.parsing`, so that a parse can show itself in a notebook.
"""

from tsgkit.drawing.trees import Drawing

__all__ = ["Drawing"]
