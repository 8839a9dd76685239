"""What refined rules back off to: descriptions of the hierarchy of restaurants between them and P0, by name."""

from tsgkit.models._back_off import BACK_OFFS, REFINED, UNREFINED, BackOff, Level, RefinedSymbols

__all__ = ["BACK_OFFS", "REFINED", "UNREFINED", "BackOff", "Level", "RefinedSymbols"]
