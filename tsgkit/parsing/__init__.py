"""Parsing: a chain of weighted grammars turns sentences into trees."""

from tsgkit.parsing.parser import Parse, Parser

__all__ = ["Parse", "Parser"]
