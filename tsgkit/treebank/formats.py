"""Formats of treebank files: what a reader and a writer are, and the registries that name them."""

from tsgkit.treebank._formats import READERS, WRITERS, Reader, ReadOptions

__all__ = ["READERS", "WRITERS", "ReadOptions", "Reader"]
