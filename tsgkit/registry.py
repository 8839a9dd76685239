"""Tables of the parts that plug in: models, readers, objectives, models of unknown words, back-offs."""

from tsgkit._registry import Registry

__all__ = ["Registry"]
