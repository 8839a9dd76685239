"""Phases: a training is a sequence of them, each an algorithm that goes on from where the one before has come.

What a model brings to the training loop. A `Phase` is a plan: how long it takes, and how it begins, or goes on from a
checkpoint. What it then makes is an `ActivePhase`, which iterates and can be saved and exported at any time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from tsgkit.inference.settings import Settings
from tsgkit.models.model import Model, Stage
from tsgkit.treebank import FlatCorpus
from tsgkit.treebank.prepare import preparation_of

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
        """All that `Phase.restore` needs."""
        ...

    def export(self) -> Model:
        """The model of the present state; it may keep the state, but for means over samples."""
        ...

    def describe(self, record: Record) -> dict[str, str]:
        """What the progress bar shows of a record."""
        ...


class Phase(Protocol):
    """A phase as it is planned."""

    @property
    def iterations(self) -> int:
        """How many there are; 0 for a model that is not sampled but counted."""
        ...

    @property
    def burn_in(self) -> int:
        """The iteration of the phase after which all others sample the same distribution."""
        ...

    def begin(self, before: Any) -> ActivePhase:
        """Begin where the phase before has come; the first one begins with the material of the training."""
        ...

    def restore(self, state: State, material: Any) -> ActivePhase:
        """Go on from a state.

        Raises
        ------
        KeyError, TypeError, ValueError, IndexError
            If it is not a state of this phase over this material.
        """
        ...


@dataclass(frozen=True)
class Averaging:
    """Which iterations of a phase a mean takes its samples from.

    Attributes
    ----------
    samples : int
        How many: the last of those taken every so many iterations, the last iteration among them.
    every : int
    iterations : int
        Of the phase.

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
        """Whether the mean takes the sample of iteration number `step`."""
        n_left = self.iterations - step
        return n_left < self.samples * self.every and n_left % self.every == 0


def burn_in(phases: Sequence[Phase]) -> int:
    """The iteration of a training after which all others sample the same distribution, that of the last phase."""
    *before, last = phases
    return sum(phase.iterations for phase in before) + last.burn_in


def sampled_model(
    settings: Settings, corpus: FlatCorpus, seed: int, *, stages: list[Stage], n_samples: int, state: State
) -> Model:
    """A model that is the mean of samples and keeps the last of them with its corpus."""
    info = {"settings": asdict(settings), "seed": seed, "samples": n_samples}
    info |= {"trees": corpus.n_trees, "tokens": corpus.n_tokens}
    return Model(settings.kind, preparation_of(corpus), stages, info, dict(state), corpus)
