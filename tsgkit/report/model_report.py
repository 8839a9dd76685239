"""The report on a model: one page with how it was trained, what it learned, and how well it parses."""

from tsgkit.report._model_report import Report, ReportSettings

__all__ = ["Report", "ReportSettings"]
