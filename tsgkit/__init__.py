"""Tree-substitution grammars: learn fragments of any size from a treebank, read them, parse with them."""

__version__ = "0.1.0"
