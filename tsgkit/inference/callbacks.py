"""What a training in memory reports to its caller after every iteration."""

from tsgkit.inference._callbacks import Progress

__all__ = ["Progress"]
