"""Settings of models: frozen dataclasses that refuse invalid values. All defaults are defined there and nowhere else.

Every model has a class of settings, which its entry names. The options of ``tsgkit train`` are the fields of these
classes.
"""

from dataclasses import dataclass
from typing import ClassVar

from tsgkit.settings import Checked


@dataclass(frozen=True, kw_only=True)
class Settings(Checked):
    """The base class of all settings.

    Attributes
    ----------
    kind : str
        The name of the model's entry.
    """

    kind: ClassVar[str]


@dataclass(frozen=True, kw_only=True)
class SamplingSettings(Settings):
    """Settings that all sampled models have.

    Parameters
    ----------
    recipe : str, optional
        The name of the recipe that the settings come from, if they come from one; see `tsgkit.inference.recipes`.
    batch : int
        Number of trees whose proposals are made together, given the counts without them; the result depends on it.
    type_moves : int
        Number of proposals after every sweep to change all occurrences of a fragment or refined rule at once.
    average : int
        Number of samples whose mean is the grammar.
    average_every : int
        Iterations between these samples; the last iteration is one of them.
    anneal_from : float
        The temperature of the first iteration; it decreases linearly to 1.
    anneal_iterations : int
        Number of iterations until the temperature is 1; 0 for no annealing.
    """

    recipe: str | None = None
    batch: int = 8
    type_moves: int = 0
    average: int = 20
    average_every: int = 10
    anneal_from: float = 1.0
    anneal_iterations: int = 0

    def __post_init__(self) -> None:
        self.require_least(0, "type_moves", "anneal_iterations")
        self.require_least(1, "batch", "average", "average_every", "anneal_from")

    def temperature(self, step: int) -> float:
        """The temperature in an iteration, counted from 1."""
        if step > self.anneal_iterations:
            return 1.0
        return self.anneal_from + (1.0 - self.anneal_from) * (step - 1) / self.anneal_iterations
