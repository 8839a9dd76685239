"""Parsing: a coarse-to-fine cascade of weighted grammars turns sentences into trees."""

from tsgkit.parsing.parse import Parse
from tsgkit.parsing.parser import Parser
from tsgkit.parsing.settings import ParserSettings

__all__ = ["Parse", "Parser", "ParserSettings"]
