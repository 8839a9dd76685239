"""What all backends share: tasks, their outcomes, and what happens around a task."""

import contextlib
import os
import sys
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tsgkit import __version__
from tsgkit._messages import message_of
from tsgkit.errors import JobError, TsgkitError, UsageError

# How often a task is begun again when the process or the worker it ran on was lost.
ATTEMPTS = 4
# Items under way for every process or thread, so that none waits for its next one.
WINDOW = 4
SECONDS_BETWEEN_REPORTS = 0.2

Shared = dict[str, Any]


class Link(Protocol):
    """What a task knows of the one that waits for it."""

    def report(self, message: dict[str, Any]) -> None:
        """Say how far the task is; what comes too often is left out."""
        ...

    def stopped(self) -> bool:
        """Whether the task should end."""
        ...


Task = Callable[[Shared, Any, Link], Any]
ChunkTask = Callable[[Shared, Any], Any]
# Gets the number of an item and what its task reports.
OnMessage = Callable[[int, dict[str, Any]], None]


class Rescue(Protocol):
    """What to do with an item that kills the processes that work on it: it is divided, and its deadly pieces given up.

    It is sent to workers, as tasks are.
    """

    def pieces(self, item: Any) -> list[Any]:
        """The pieces of an item, each an item of the same task."""
        ...

    def give_up(self, shared: Shared, piece: Any, problem: str) -> Any:
        """A result for a piece whose process died."""
        ...

    def join(self, results: list[Any]) -> Any:
        """The result of an item from those of its pieces."""
        ...


@dataclass(frozen=True)
class Outcome:
    """How the task of an item ended.

    Attributes
    ----------
    index : int
        The item's number.
    value : object
        What the task returned; ``None`` if it failed, or was never begun because of `Backend.stop`.
    error : str
        Why it failed; ``''`` if it did not.
    """

    index: int
    value: Any = None
    error: str = ""


class Backend(ABC):
    """A place where tasks run.

    Parameters
    ----------
    jobs : int, optional
        How many at the same time.
    """

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs

    @abstractmethod
    def gather(self, task: Task, shared: Shared, items: Sequence[Any], on_message: OnMessage) -> Iterator[Outcome]:
        """Run the task of every item, and say how each ended, in whatever order they do."""

    @abstractmethod
    def stop(self) -> None:
        """Ask the tasks of `gather` to end; no more are begun."""

    @abstractmethod
    def stream(
        self, task: ChunkTask, shared: Shared, items: Iterable[Any], rescue: "Rescue | None" = None
    ) -> Iterator[Any]:
        """Run the task of every item, and yield the results in the order of the items.

        Items are taken as results are, so that any number of them needs little memory. When an item cannot be had, the
        results of those before it come all the same. An item that kills every process that works on it ends the job
        with a `JobError`, unless there is a `rescue`.
        """

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Let go of whatever is held."""


def outcome_of(task: Task, shared: Shared, item: Any, link: Link) -> dict[str, Any]:
    """Run a task; whatever goes wrong becomes part of the answer.

    Parameters
    ----------
    task : function
        Of a module.
    shared : object
        What all calls of the task have in common.
    item : object
    link : Link
    """
    if link.stopped():
        return {"value": None}
    try:
        return {"value": task(shared, item, link)}
    except (TsgkitError, OSError, MemoryError) as error:
        return {"error": message_of(error) or type(error).__name__}
    except Exception:  # a mistake of ours: all of it is needed to find it
        return {"error": traceback.format_exc()}


def require_same_version(version: str) -> None:
    """Refuse to work for another tsgkit than the one installed here: results would differ without a word.

    Parameters
    ----------
    version : str
        Of the job.
    """
    if version != __version__:
        raise UsageError(f"a worker has tsgkit {__version__}, the job comes from {version}; install the same on both")


def worker_name() -> str:
    """Who runs this task: a Dask worker by its name, or a process."""
    if "distributed" in sys.modules:
        with contextlib.suppress(ValueError):  # imported, but not at work for a cluster
            return f"worker {sys.modules['distributed'].get_worker().name}"
    return f"process {os.getpid()}"


class Throttle:
    """Says yes at most once in so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.last = seconds, 0.0

    def __call__(self) -> bool:
        now = time.monotonic()
        if now - self.last < self.seconds:
            return False
        self.last = now
        return True


def missing(packages: str) -> UsageError:
    return UsageError(f"this backend is not installed: pip install {packages}, or tsgkit with its extra `cluster`")


def lost(what: str, place: str) -> JobError:
    return JobError(
        f"{what}: {place} was lost while at work on it, {ATTEMPTS} times; if memory is short, --max-memory,"
        f" --max-length and fewer jobs at a time help; --resume keeps what is done"
    )
