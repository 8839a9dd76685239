"""Tasks in joblib's processes."""

import signal
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any

from tsgkit._streams import until_failure
from tsgkit.distributed._base import (
    ATTEMPTS,
    WINDOW,
    ChunkTask,
    OnMessage,
    Outcome,
    Rescue,
    Shared,
    Task,
    lost,
    missing,
    outcome_of,
)
from tsgkit.distributed._hub import HubBackend, HubLink
from tsgkit.distributed._isolation import rescued
from tsgkit.distributed._orphans import watch_parent


class JoblibBackend(HubBackend):
    """Tasks in joblib's processes. When one is killed joblib ends them all, and what was not done is begun again."""

    def __init__(self, jobs: int | None = None) -> None:
        super().__init__(jobs)
        try:
            import joblib  # noqa: PLC0415 - optional
        except ImportError:
            raise missing("joblib") from None
        self.joblib = joblib

    def parallel(self, **options: Any) -> Any:
        return self.joblib.Parallel(n_jobs=self.jobs or 1, backend="loky", batch_size=1, **options)

    def gather(self, task: Task, shared: Shared, items: Sequence[Any], on_message: OnMessage) -> Iterator[Outcome]:
        call = self.joblib.delayed(run_in_pool)
        left = dict(enumerate(items))
        with self.opened_hub(on_message) as hub:
            for _ in range(ATTEMPTS):
                calls = [call(task, shared, item, hub.link(index)) for index, item in left.items()]
                try:
                    for index, answer in self.parallel(return_as="generator_unordered")(calls):
                        del left[index]
                        yield Outcome(index, **answer)
                except BrokenProcessPool:
                    continue
                return
            for index in left:
                yield Outcome(index, error=f"a process of joblib died, {ATTEMPTS} times")

    def stream(
        self, task: ChunkTask, shared: Shared, items: Iterable[Any], rescue: Rescue | None = None
    ) -> Iterator[Any]:
        """As for all; a window of items is done before the next one begins."""
        call = self.joblib.delayed(task)
        failures: list[Exception] = []
        numbered = enumerate(until_failure(items, failures), start=1)
        while window := list(islice(numbered, WINDOW * (self.jobs or 1))):
            done = self.window_results(call, shared, [item for _, item in window])
            if done is not None:
                yield from done
            elif rescue is not None:
                yield from (rescued(task, shared, item, rescue) for _, item in window)
            else:
                raise lost(f"parts {window[0][0]} to {window[-1][0]} of the input", "a process")
        if failures:
            raise failures[0]

    def window_results(self, call: Any, shared: Shared, items: Sequence[Any]) -> list[Any] | None:
        """The results of some items, or None if processes died again and again."""
        for _ in range(ATTEMPTS):
            try:
                return list(self.parallel()(call(shared, item) for item in items))
            except BrokenProcessPool:
                continue
        return None


def run_in_pool(task: Task, shared: Shared, item: Any, link: HubLink) -> tuple[int, dict[str, Any]]:
    """A task in one of joblib's processes, which outlives it."""
    watch_parent()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return link.index, outcome_of(task, shared, item, link)
    finally:
        signal.signal(signal.SIGINT, before)
