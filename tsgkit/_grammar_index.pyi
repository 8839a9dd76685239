import numpy as np
from numpy.typing import NDArray

from tsgkit.grammar.weighted import WeightedGrammar

RULE: np.dtype[np.void]

class GrammarIndex:
    def __init__(self, grammar: WeightedGrammar) -> None: ...
    @property
    def n_symbols(self) -> int: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def symbol_of_rank(self) -> NDArray[np.int32]: ...
    @property
    def rank_of_symbol(self) -> NDArray[np.int32]: ...
