import numpy as np
from numpy.typing import ArrayLike, NDArray

def components_of(n_symbols: int, edges: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...
