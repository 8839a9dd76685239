"""Recipes: every choice of a published experiment, by one name."""

from tsgkit.inference._recipes import RECIPES, InsertionSettings, Recipe, SrSettings, TsgSettings

__all__ = ["RECIPES", "InsertionSettings", "Recipe", "SrSettings", "TsgSettings"]
