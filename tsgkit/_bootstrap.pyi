import numpy as np
from numpy.random import BitGenerator
from numpy.typing import NDArray

def resample_differences(
    bit_generator: BitGenerator,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    differences: NDArray[np.float64],
) -> None: ...
