"""What a training in memory reports to its caller after every iteration."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tsgkit._messages import kind_of
from tsgkit.inference._phases import Record


@dataclass(frozen=True)
class Progress:
    """How far a training is.

    Attributes
    ----------
    iteration, iterations : int
        The iteration that was just done, counted from 1, and the number of all.
    record : dict of str to float
        The quantities that the model records, as ``log_joint``.
    seconds : float
        Since the training began.
    """

    iteration: int
    iterations: int
    record: Record
    seconds: float

    @property
    def log_joint(self) -> float:
        """The log of the joint probability of trees and derivations."""
        return self.record["log_joint"]

    @property
    def seconds_left(self) -> float:
        """An estimate, from the time that the iterations so far have taken."""
        return self.seconds / self.iteration * (self.iterations - self.iteration)


# Gets the progress after every iteration; training stops if it returns True.
Callback = Callable[[Progress], bool | None]


def watch_of(callback: Callback | None, iterations: int) -> Callable[[int, Record], bool]:
    """The callback of the training loop that calls that of a user."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback is a function of the progress, not {kind_of(callback)}")
    started = time.perf_counter()

    def watch(iteration: int, record: Record) -> bool:
        if callback is None:
            return False
        return callback(Progress(iteration, iterations, record, time.perf_counter() - started)) is True

    return watch
