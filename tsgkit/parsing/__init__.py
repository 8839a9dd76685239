"""Parsing: a coarse-to-fine cascade of weighted grammars turns sentences into trees."""

from tsgkit.parsing._parse import Parse
from tsgkit.parsing._parser import Parser
from tsgkit.parsing._settings import ParserSettings

__all__ = ["Parse", "Parser", "ParserSettings"]
