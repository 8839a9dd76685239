"""Parsing: a coarse-to-fine cascade of weighted grammars turns sentences into trees."""

from tsgkit.parsing.parser import Parse, Parser

__all__ = ["Parse", "Parser"]
