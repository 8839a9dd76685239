import numpy as np
from numpy.typing import NDArray

from tsgkit._chart import Chart
from tsgkit._forest import Forest

class TreeRanking:
    def __init__(self, source: Chart | Forest, product: bool = False, root: int = -1) -> None: ...
    @property
    def is_over_budget(self) -> bool: ...
    def tree(self, number: int) -> tuple[NDArray[np.int32], float] | None: ...
