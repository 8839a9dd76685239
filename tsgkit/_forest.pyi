from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsgkit._work_limit import WorkLimit

DEFAULT_MAX_BYTES: int

@final
class Forest:
    def __init__(
        self,
        n_words: int,
        n_labels: int,
        rules: ArrayLike | None = None,
        posteriors: ArrayLike | None = None,
        n_states: int = 1,
    ) -> None: ...
    @property
    def n_words(self) -> int: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def n_states(self) -> int: ...
    @property
    def is_over_budget(self) -> bool: ...
    limit: WorkLimit
    max_bytes: int
    @property
    def rules(self) -> NDArray[np.int32]: ...
    @property
    def posteriors(self) -> NDArray[np.float64]: ...
    def node_posteriors(self) -> dict[tuple[int, int, int], float]: ...
    def best_tree(self, product: bool, root: int) -> tuple[NDArray[np.int32] | None, float]: ...

def product_of(n_labels: int, votes: Sequence[tuple[Forest, NDArray[np.int32]]], smallest: float) -> Forest: ...
