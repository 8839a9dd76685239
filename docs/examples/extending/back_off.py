"""A back-off with four levels: between a refined symbol and its label stands the subcategory before the last split.

    H_{x_k}(r)  ->  C_{x_j}(r)  ->  I_x(r)  ->  P0(r)      where the last split has made k of j

A rule that was not seen under ``NP-01`` is then first looked for under all that was ``NP-0``. In a package of your own,
name `FOUR_LEVEL` as an entry point of the group ``tsgkit.back_offs``; users then train with ``tsgkit train
--model=srtsg --back-off=four-level``.
"""

import numpy as np

from tsgkit.models.back_off import REFINED, UNREFINED, BackOff, Level, RefinedSymbols


def before_the_split(symbols: RefinedSymbols) -> np.ndarray:
    """The restaurant of every refined symbol: halves of one symbol of the split before share one."""
    return symbols.parent


FOUR_LEVEL = BackOff((REFINED, Level("coarse", before_the_split), UNREFINED))
