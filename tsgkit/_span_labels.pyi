from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from tsgkit._forest import Forest

@final
class LabelScorer:
    def __init__(self, n_classes: int, weights: NDArray[np.float32]) -> None: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def n_outputs(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    def log_odds(self, words: NDArray[np.int32], classes: NDArray[np.int32]) -> NDArray[np.float64]: ...
    def weigh(
        self,
        forest: Forest,
        words: NDArray[np.int32],
        classes: NDArray[np.int32],
        output_of_label: NDArray[np.int32],
        power: float,
    ) -> None: ...

def learn_label_weights(
    n_classes: int,
    n_outputs: int,
    n_rows: int,
    sentences: Sequence[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int8]]],
    order: Sequence[Sequence[int]],
) -> NDArray[np.float32]: ...
