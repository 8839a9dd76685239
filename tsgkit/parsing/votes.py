"""How several models vote on a sentence: what each is asked, and which tree has the most votes."""

from tsgkit.parsing._votes import Ballot, Product, Vote

__all__ = ["Ballot", "Product", "Vote"]
