import numpy as np
from numpy.random import BitGenerator
from numpy.typing import NDArray

from tsgkit._chart import Chart

KINDS: tuple[str, ...]

class KBest:
    def __init__(self, chart: Chart) -> None: ...
    def derivation(self, number: int) -> tuple[NDArray[np.int32], float] | None: ...

def best_derivation(chart: Chart) -> tuple[NDArray[np.int32], float]: ...
def best_part(chart: Chart, symbol: int, start: int, end: int) -> tuple[NDArray[np.int32], float]: ...
def sample_derivations(
    chart: Chart, n_samples: int, bit_generator: BitGenerator
) -> list[tuple[NDArray[np.int32], float]]: ...
