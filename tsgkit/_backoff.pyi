from typing import Protocol

import numpy as np

class RuleLevels(Protocol):
    """What a `tsgkit.models.back_off.Levels` has."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def contexts(self) -> list[np.ndarray]: ...
    @property
    def n_used(self) -> int: ...

WORD_KINDS: tuple[str, ...]

def level_names(levels: RuleLevels) -> tuple[str, ...]: ...
def level_number(names: tuple[str, ...], kind: str) -> int: ...
