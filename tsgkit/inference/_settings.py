"""Settings of models: frozen dataclasses that refuse invalid values. All defaults are defined there and nowhere else.

Every model has a class of settings, which its entry names. The options of ``tsgkit train`` are the fields of these
classes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tsgkit._settings import Checked

# Multiples of the numbers of sweeps that a budget of time can choose from. With more sweeps the log joint still rises,
# but F1 on development data does not.
SHARES = tuple(2.0 * 0.85**step for step in range(32))


@dataclass(frozen=True, kw_only=True)
class Settings(Checked):
    """The base class of all settings.

    Attributes
    ----------
    kind : str
        The name of the model's entry.
    by_size : dict of str to str
        Settings whose default depends on the size of the treebank, which are None until `for_size`; with the rule in
        words.
    """

    kind: ClassVar[str]
    by_size: ClassVar[Mapping[str, str]] = {}

    def for_size(self, n_tokens: int) -> Self:
        """The settings for a treebank of this size: no setting of `by_size` is None."""
        return self

    def shorter(self) -> Iterator[Self]:
        """The same settings with other numbers of sweeps, the most accurate first; see `tsgkit.inference._budget`."""
        yield self


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
        super().__post_init__()
        self.require_least(0, "type_moves", "anneal_iterations")
        self.require_least(1, "batch", "average", "average_every", "anneal_from")

    def temperature(self, step: int) -> float:
        """The temperature in an iteration, counted from 1."""
        if step > self.anneal_iterations:
            return 1.0
        return self.anneal_from + (1.0 - self.anneal_from) * (step - 1) / self.anneal_iterations

    def with_sweeps(self, last: int, **settings: Any) -> Self:
        """The same with other numbers of sweeps; the samples for the mean come from the last half of the last phase.

        Parameters
        ----------
        last : int
            Sweeps of the last phase.
        **settings
            The settings that change.
        """
        average = min(self.average, max(last // 2, 1))
        every = min(self.average_every, max(last // (2 * average), 1))
        anneal_iterations = min(self.anneal_iterations, last)
        return replace(self, average=average, average_every=every, anneal_iterations=anneal_iterations, **settings)
