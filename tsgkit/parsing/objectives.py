"""Objectives: which of a sentence's trees is the best one. Each is a value in a table, `OBJECTIVES`."""

from tsgkit.parsing._objectives import OBJECTIVES, PRODUCTS, Needs, Objective, best_by_rules

__all__ = ["OBJECTIVES", "PRODUCTS", "Needs", "Objective", "best_by_rules"]
