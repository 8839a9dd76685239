"""The CFG rules of a corpus and how often each occurs: what every model starts from."""

from tsgkit.models._rules import TreeArrays, number_rules

__all__ = ["TreeArrays", "number_rules"]
