"""Settings of models: frozen dataclasses that refuse what cannot be, and the only place for defaults.

Every model has a class of its own, named in its entry. The command line shows and sets the same fields.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tsgkit.errors import UsageError


class SettingError(UsageError):
    """A setting has a value that it cannot have.

    Parameters
    ----------
    name : str
        The field.
    value : object
    problem : str
        What it must be.
    """

    def __init__(self, name: str, value: object, problem: str) -> None:
        self.name, self.value, self.problem = name, value, problem
        super().__init__(f"{name} {value!r}: {problem}")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The base of all settings.

    Attributes
    ----------
    kind : str
        The name of the model's entry.
    """

    kind: ClassVar[str]

    def require(self, name: str, holds: bool, problem: str) -> None:
        """Refuse the value of a setting unless a condition holds."""
        if not holds:
            raise SettingError(name, getattr(self, name), problem)

    def require_least(self, least: float, *names: str) -> None:
        """Refuse settings that are below a number, or no numbers."""
        for name in names:
            self.require(name, getattr(self, name) >= least, f"must be at least {least}")

    def require_choice(self, name: str, choices: Sequence[Any]) -> None:
        """Refuse a setting that is none of these."""
        self.require(name, getattr(self, name) in choices, f"must be one of {', '.join(map(str, choices))}")


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
