"""The search for one sentence's trees: what an objective can ask once the charts are filled."""

from tsgkit.parsing._search import Candidate, Search

__all__ = ["Candidate", "Search"]
