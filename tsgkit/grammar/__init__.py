"""Grammars as values: weighted rules with a projection to treebank symbols, and their file formats."""

from tsgkit.grammar._weighted import GrammarError, GrammarReport, WeightedGrammar

__all__ = ["GrammarError", "GrammarReport", "WeightedGrammar"]
