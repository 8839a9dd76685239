"""Parsing: a coarse-to-fine cascade of weighted grammars turns sentences into trees."""

from tsgkit.parsing._known_tree import KnownTreeParser, NoDerivationError
from tsgkit.parsing._parse import Parse
from tsgkit.parsing._parser import Parser
from tsgkit.parsing._product import ProductParser
from tsgkit.parsing._settings import ParserSettings

__all__ = ["KnownTreeParser", "NoDerivationError", "Parse", "Parser", "ParserSettings", "ProductParser"]
