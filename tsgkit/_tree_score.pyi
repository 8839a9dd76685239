import numpy as np
from numpy.typing import NDArray

from tsgkit._grammar_index import GrammarIndex
from tsgkit._work_limit import WorkLimit

class TreeScorer:
    def __init__(self, grammar: GrammarIndex) -> None: ...
    @property
    def grammar(self) -> GrammarIndex: ...
    limit: WorkLimit
    def log_weight(
        self,
        rows: NDArray[np.int32],
        lexical_start: NDArray[np.int64],
        lexical_symbol: NDArray[np.int32],
        lexical_weight: NDArray[np.float64],
    ) -> float: ...
