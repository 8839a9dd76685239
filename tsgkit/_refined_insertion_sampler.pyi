from typing import Any

import numpy as np

from tsgkit._refined_sampler import RefinedSampler

class RefinedInsertionSampler(RefinedSampler):
    def __init__(
        self,
        trees: Any,
        symbol_label: Any,
        levels: Any,
        rule_base: Any,
        rule_class: Any,
        lexical_share: Any,
        class_word_base: Any,
        auxiliary_label: Any,
        top_rule: Any,
        stacked: bool = False,
        class_levels: Any = None,
        seed: int = 0,
    ) -> None: ...
    def insertions_of_nodes(self) -> np.ndarray: ...
    def set_insertions(self, feet: Any) -> None: ...
    def insertion_probabilities(self) -> np.ndarray: ...
    def set_insertion_probabilities(self, values: Any) -> None: ...
    def insertion_sweep(
        self, iteration: int, *, batch: int = 1, threads: int = 1, temperature: float = 1.0
    ) -> tuple[int, int, int]: ...
    def resample_insertions(self, iteration: int) -> None: ...
    def log_insertions(self) -> float: ...

def validate_auxiliary(trees: Any, n_symbols: Any, auxiliary_label: Any, top_rule: Any) -> None: ...
