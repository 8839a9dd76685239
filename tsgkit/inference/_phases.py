"""The protocol of phases: a training is a sequence of them, and each continues from the result of the one before.

Used by `tsgkit.inference._training`; every model implements it. A `Phase` is a plan: the number of its iterations, and
how it begins or continues from a checkpoint. It returns an `ActivePhase`, which iterates and can be saved and exported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from tsgkit.inference._settings import Settings
from tsgkit.models._model import Model, Stage
from tsgkit.treebank import FlatCorpus
from tsgkit.treebank._prepare import preparation_of

Record = dict[str, float]
State = Mapping[str, np.ndarray]


class ActivePhase(Protocol):
    """A phase that has begun."""

    def iterate(self, step: int) -> Record:
        """Do iteration number `step` of this phase, counted from 1; returns the quantities to record.

        All phases of a training record the same quantities.
        """
        ...

    def state(self) -> dict[str, np.ndarray]:
        """The arrays that `Phase.restore` needs."""
        ...

    def export(self) -> Model:
        """The model of the present state. It may contain the state, except means over samples."""
        ...

    def describe(self, record: Record) -> dict[str, str]:
        """The figures of a record that the progress bar shows."""
        ...


class Phase(Protocol):
    """A phase as planned."""

    @property
    def title(self) -> str:
        """What the phase is called in plots: one or two words."""
        ...

    @property
    def iterations(self) -> int:
        """The number of iterations; 0 for a model that is counted and not sampled."""
        ...

    @property
    def burn_in(self) -> int:
        """The first so many iterations of the phase sample other distributions than the rest."""
        ...

    def begin(self, before: Any) -> ActivePhase:
        """Begin with the result of the phase before; the first phase begins with the material of the training."""
        ...

    def restore(self, state: State, material: Any) -> ActivePhase:
        """Continue from a state.

        Raises
        ------
        KeyError, TypeError, ValueError, IndexError
            If it is not a state of this phase over this material.
        """
        ...


@dataclass(frozen=True)
class Averaging:
    """The iterations of a phase whose samples a mean contains.

    Attributes
    ----------
    samples : int
        The number of samples.
    every : int
        Iterations between samples; the last iteration is one of them.
    iterations : int
        Iterations of the phase.

    Examples
    --------
    >>> averaging = Averaging(samples=3, every=10, iterations=100)
    >>> [step for step in range(1, 101) if averaging.takes(step)]
    [80, 90, 100]
    """

    samples: int
    every: int
    iterations: int

    def takes(self, step: int) -> bool:
        """Whether the mean contains the sample of iteration number `step`."""
        n_left = self.iterations - step
        return n_left < self.samples * self.every and n_left % self.every == 0


def burn_in(phases: Sequence[Phase]) -> int:
    """The burn-in of a training: all phases but the last, and the burn-in of the last one."""
    *before, last = phases
    return sum(phase.iterations for phase in before) + last.burn_in


def sampled_model(
    settings: Settings, corpus: FlatCorpus, seed: int, *, stages: list[Stage], n_samples: int, state: State
) -> Model:
    """A model that is the mean of samples, with the state of the last sample and the training trees."""
    info = {"settings": asdict(settings), "seed": seed, "samples": n_samples}
    info |= {"trees": corpus.n_trees, "tokens": corpus.n_tokens}
    return Model(settings.kind, preparation_of(corpus), stages, info, dict(state), corpus)
