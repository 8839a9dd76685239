from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

BOUNDARY_SIZE: int
PAIR_KINDS: int
LENGTH_SIZE: int
EXTRA_CLASSES: int

@final
class OpenCells:
    def __init__(self, weights: NDArray[np.float64]) -> None: ...
    @property
    def n_words(self) -> int: ...
    @property
    def has_weights(self) -> bool: ...
    def is_open(self, start: int, end: int) -> bool: ...
    def count(self) -> int: ...

@final
class CellScorer:
    def __init__(
        self,
        n_classes: int,
        boundary: NDArray[np.float32],
        pairs: NDArray[np.float32],
        lengths: NDArray[np.float32],
    ) -> None: ...
    @property
    def n_classes(self) -> int: ...
    def log_odds(self, words: NDArray[np.int32], classes: NDArray[np.int32]) -> NDArray[np.float64]: ...
    def open_cells(
        self, words: NDArray[np.int32], classes: NDArray[np.int32], smallest: float, power: float = 0.0
    ) -> OpenCells: ...

def learn_weights(
    n_classes: int,
    sentences: Sequence[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]],
    n_epochs: int,
    order: Sequence[Sequence[int]],
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]: ...
