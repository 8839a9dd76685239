"""Tasks on the workers of a Dask cluster."""

import json
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsgkit._overwriting import note_input
from tsgkit._streams import until_failure
from tsgkit.distributed._base import (
    ATTEMPTS,
    SECONDS_BETWEEN_REPORTS,
    WINDOW,
    Backend,
    ChunkTask,
    OnMessage,
    Outcome,
    Rescue,
    Shared,
    Task,
    Throttle,
    lost,
    missing,
    outcome_of,
)
from tsgkit.distributed._isolation import rescued
from tsgkit.errors import UsageError

# A question to the scheduler of a cluster costs more than a look at a socket.
SECONDS_BETWEEN_QUESTIONS = 1.0
SECONDS_FOR_WORKERS = 60.0
# When all are lost: whoever manages the cluster may have to find new machines.
SECONDS_FOR_NEW_WORKERS = 600.0


class DaskBackend(Backend):
    """Tasks on the workers of a Dask cluster; its scheduler begins those of a lost worker again on another.

    Parameters
    ----------
    scheduler : str
        Its address, such as ``tcp://10.0.0.1:8786``, or the path of its ``--scheduler-file``.
    jobs : int, optional
        Tasks under way at most; unless given, all those of `gather`, and a few for every thread of the cluster for
        `stream`.
    """

    def __init__(self, scheduler: str, jobs: int | None = None) -> None:
        super().__init__(jobs)
        try:
            import distributed  # noqa: PLC0415 - optional
        except ImportError:
            raise missing("dask distributed") from None
        self.dask = distributed
        try:
            # Dask itself would wait for ever for a file that is not there.
            address = scheduler
            if scheduler.endswith(".json"):
                note_input(scheduler)
                address = json.loads(Path(scheduler).read_text())["address"]
            self.client = distributed.Client(address, set_as_default=False, timeout=SECONDS_FOR_WORKERS)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"--scheduler={scheduler}: no Dask scheduler answers there ({error})") from None
        self.is_time_to_count = Throttle(SECONDS_BETWEEN_QUESTIONS)
        self.n_threads = 0
        self.stop_event: Any = None
        if not self.has_workers(SECONDS_FOR_WORKERS):
            self.client.close()
            raise UsageError(f"--scheduler={scheduler}: it has no workers; `dask worker {address}` starts one")

    def has_workers(self, seconds: float) -> bool:
        """Whether there is a worker, or comes one in so many seconds."""
        try:
            self.client.wait_for_workers(1, timeout=seconds)
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        self.client.close()

    def gather(self, task: Task, shared: Shared, items: Sequence[Any], on_message: OnMessage) -> Iterator[Outcome]:
        topic = f"tsgkit-{uuid.uuid4().hex}"
        self.stop_event = self.dask.Event(topic, client=self.client)
        self.client.subscribe_topic(topic, lambda event: on_message(*event[1]))
        waiting = deque(enumerate(items))
        sender = DaskSender(self, shared)
        pending: dict[Any, tuple[int, DaskTask]] = {}
        results = self.dask.as_completed(loop=self.client.loop)

        def wait_for(index: int, sent: DaskTask) -> None:
            pending[sent.future] = (index, sent)
            results.add(sent.future)

        def begin_next() -> None:
            index, item = waiting.popleft()
            wait_for(index, sender.send(outcome_of, item, DaskLink(topic, index), first=(task,)))

        try:
            for _ in range(min(self.jobs or len(items), len(items))):
                begin_next()
            for future in results:
                index, sent = pending.pop(future)
                try:
                    outcome = Outcome(index, **future.result())
                except self.lost_errors() as error:
                    if sender.send_again(sent, error):
                        wait_for(index, sent)
                        continue
                    outcome = Outcome(index, error=f"its workers were lost ({error})")
                yield outcome
                if waiting:
                    begin_next()
        finally:
            self.client.cancel(list(pending))
            self.client.unsubscribe_topic(topic)
            self.stop_event = None

    def stop(self) -> None:
        if self.stop_event is not None:
            self.stop_event.set()

    def stream(
        self, task: ChunkTask, shared: Shared, items: Iterable[Any], rescue: Rescue | None = None
    ) -> Iterator[Any]:
        """As for all; `shared` is sent once and stays on every worker."""
        sender = DaskSender(self, shared)
        window: deque[tuple[int, DaskTask]] = deque()
        failures: list[Exception] = []

        def take() -> Any:
            number, sent = window.popleft()
            may_divide = rescue is not None
            while True:
                try:
                    return sent.future.result()
                except self.lost_errors() as error:
                    if sender.send_again(sent, error):
                        continue
                    if not may_divide or not self.has_workers(SECONDS_FOR_NEW_WORKERS):
                        raise lost(f"part {number} of the input", f"a worker ({error})") from None
                    sent = sender.send(rescued, *sent.rest, rescue, first=(task,))
                    may_divide = False

        try:
            for number, item in enumerate(until_failure(items, failures), start=1):
                window.append((number, sender.send(task, item)))
                while len(window) >= self.limit():
                    yield take()
            while window:
                yield take()
        finally:
            self.client.cancel([sent.future for _, sent in window])
        if failures:
            raise failures[0]

    def limit(self) -> int:
        """How many items may be under way: a few for every thread of the cluster, which may grow and shrink."""
        if self.jobs is not None:
            return self.jobs
        if self.is_time_to_count():
            self.n_threads = sum(self.client.nthreads().values())
        return WINDOW * max(self.n_threads, 1)

    def lost_errors(self) -> tuple[type[BaseException], ...]:
        """What a future raises when its task could not be run to its end, whatever the task is."""
        return (self.dask.KilledWorker, CancelledError, self.dask.client.FutureCancelledError)


@dataclass
class DaskTask:
    """A task that was sent to the cluster."""

    function: Callable[..., Any]
    first: tuple[Any, ...]
    rest: tuple[Any, ...]
    shared: Any = None
    future: Any = None
    n_attempts: int = 0


class DaskSender:
    """Sends tasks that share a value. The value lies on the workers, and is sent again if it was lost with them."""

    def __init__(self, backend: DaskBackend, shared: Shared) -> None:
        self.backend, self.value = backend, shared
        self.shared = self.scatter()

    def scatter(self) -> Any:
        # In a list, because the keys of a dict would be names on the whole cluster, and chains and parsing both have
        # "version" and "plan": what one job releases must not be what the next one has just sent.
        (shared,) = self.backend.client.scatter([self.value], broadcast=True, hash=False)
        return shared

    def send(self, function: Callable[..., Any], *rest: Any, first: tuple[Any, ...] = ()) -> DaskTask:
        """Have `function(*first, shared, *rest)` called somewhere."""
        task = DaskTask(function, first, rest)
        self.begin(task)
        return task

    def begin(self, task: DaskTask) -> None:
        task.shared = self.shared
        task.n_attempts += 1
        task.future = self.backend.client.submit(task.function, *task.first, self.shared, *task.rest, pure=False)

    def send_again(self, task: DaskTask, error: BaseException) -> bool:
        """Begin a task again that was lost; whether that makes sense."""
        if isinstance(error, self.backend.dask.KilledWorker) or task.n_attempts == ATTEMPTS:
            return False  # the scheduler has begun it again and again already
        if not self.backend.has_workers(SECONDS_FOR_NEW_WORKERS):
            return False
        if task.shared is self.shared:  # else it was sent again for another task already
            self.shared = self.scatter()
        self.begin(task)
        return True


@dataclass
class DaskLink:
    """A task's link by way of the scheduler."""

    topic: str
    index: int

    def __post_init__(self) -> None:
        self.is_time = Throttle(SECONDS_BETWEEN_REPORTS)
        self.is_time_to_ask = Throttle(SECONDS_BETWEEN_QUESTIONS)
        self.heard_stop = False

    def report(self, message: dict[str, Any]) -> None:
        if self.is_time():
            import distributed  # noqa: PLC0415 - optional

            worker = distributed.get_worker()
            worker.log_event(self.topic, (self.index, {**message, "worker": str(worker.name)}))

    def stopped(self) -> bool:
        if not self.heard_stop and self.is_time_to_ask():
            import distributed  # noqa: PLC0415 - optional

            is_asked = distributed.Event(self.topic, client=distributed.get_client()).is_set()
            self.heard_stop = is_asked or is_cancelled(distributed.get_worker())
        return self.heard_stop


def is_cancelled(worker: Any) -> bool:
    """Whether nobody waits for the task of this thread any more: its client was killed, for instance."""
    task = worker.state.tasks.get(worker.get_current_task())
    return task is None or task.state in ("cancelled", "released", "forgotten")
