"""Grammars in the files of other parsers: bitpar's, and disco-dop's ``.rules`` and ``.lex``."""

from tsgkit.grammar._formats import read_bitpar, read_discodop, write_bitpar, write_discodop

__all__ = ["read_bitpar", "read_discodop", "write_bitpar", "write_discodop"]
