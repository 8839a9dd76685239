"""Settings of models: frozen dataclasses that refuse what cannot be, and the only place for defaults.

Every model has a class of its own, named in its entry. The command line shows and sets the same fields.
"""

from dataclasses import dataclass
from typing import ClassVar

from tsgkit.settings import Checked


@dataclass(frozen=True, kw_only=True)
class Settings(Checked):
    """The base of all settings.

    Attributes
    ----------
    kind : str
        The name of the model's entry.
    """

    kind: ClassVar[str]


@dataclass(frozen=True, kw_only=True)
class SamplingSettings(Settings):
    """What all models that are sampled have in common.

    Parameters
    ----------
    type_moves : int
        After every sweep, so many proposals to change a fragment or refined rule in all its occurrences at once; 0 for
        none.
    average : int
        The grammar is the mean over so many samples, the last of those taken every `average_every` iterations.
    average_every : int
    anneal_from : float
        The temperature of the first iteration; it falls to 1 along a straight line.
    anneal_iterations : int
        Iterations until the temperature is 1; 0 for no annealing.
    """

    type_moves: int = 0
    average: int = 20
    average_every: int = 10
    anneal_from: float = 1.0
    anneal_iterations: int = 0

    def __post_init__(self) -> None:
        self.require_least(0, "type_moves", "anneal_iterations")
        self.require_least(1, "average", "average_every", "anneal_from")

    def temperature(self, step: int) -> float:
        """The temperature in an iteration, counted from 1."""
        if step > self.anneal_iterations:
            return 1.0
        return self.anneal_from + (1.0 - self.anneal_from) * (step - 1) / self.anneal_iterations
