"""Tree-substitution grammars: learn fragments of any size from a treebank, read them, parse with them."""

from typing import Any

__version__ = "0.1.0"
__all__ = ["Parser"]


def __getattr__(name: str) -> Any:
    """`Parser` on first use, so that what needs no parser starts without numpy and nltk."""
    if name == "Parser":
        from tsgkit.parsing import Parser  # noqa: PLC0415

        return Parser
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
