"""Base distributions P0 over the rules of the treebank, by name: what restaurants back off to in the end."""

from tsgkit.models._base_distributions import BASE_DISTRIBUTIONS, frequency, uniform

__all__ = ["BASE_DISTRIBUTIONS", "frequency", "uniform"]
