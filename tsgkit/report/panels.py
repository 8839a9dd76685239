"""The table of panels: the sections of a report, by name."""

from tsgkit.report._panels import PANELS, Panel

__all__ = ["PANELS", "Panel"]
