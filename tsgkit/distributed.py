"""Where long jobs run: in processes of this machine, through joblib, or on a Dask cluster.

A *task* is a function of a module, called with a value that all share, an item of its own, and a link to whoever waits
for it. `gather` runs a few long tasks, each of which may fail alone; `stream` runs any number of short ones, in order
and with a bounded number under way. What is sent are plain values; nothing is saved but what a task itself writes.
"""

import contextlib
import json
import multiprocessing
import os
import secrets
import signal
import sys
import threading
import time
import traceback
import uuid
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, wait
from pathlib import Path
from typing import Any, Protocol, cast

from tsgkit import __version__
from tsgkit.errors import JobError, TsgkitError, UsageError, message_of
from tsgkit.overwriting import note_input
from tsgkit.streams import until_failure

BACKENDS = ("local", "joblib", "dask")
# How often a task is begun again when the process or the worker it ran on was lost.
ATTEMPTS = 4
# Items under way for every process or thread, so that none waits for its next one.
WINDOW = 4
SECONDS_BETWEEN_REPORTS = 0.2
# A question to the scheduler of a cluster costs more than a look at a socket.
SECONDS_BETWEEN_QUESTIONS = 1.0
SECONDS_FOR_WORKERS = 60.0
# When all are lost: whoever manages the cluster may have to find new machines.
SECONDS_FOR_NEW_WORKERS = 600.0
STOP = b"stop"

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
    def stream(self, task: ChunkTask, shared: Shared, items: Iterable[Any]) -> Iterator[Any]:
        """Run the task of every item, and yield the results in the order of the items.

        Items are taken as results are, so that any number of them needs little memory. When an item cannot be had, the
        results of those before it come all the same.
        """

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Let go of whatever is held."""


def make_backend(name: str, jobs: int | None = None, scheduler: str | None = None) -> Backend:
    """The backend of a name; that of Dask needs the address of a scheduler."""
    if name not in BACKENDS:
        raise UsageError(f"--backend={name}: must be one of {', '.join(BACKENDS)}")
    if (scheduler is None) == (name == "dask"):
        raise UsageError(
            "--backend=dask and --scheduler=ADDRESS go together; `dask scheduler` starts one and says its address"
        )
    if name == "local":
        return LocalBackend(jobs)
    if name == "joblib":
        return JoblibBackend(jobs)
    return DaskBackend(cast(str, scheduler), jobs)


# ---- what happens around a task ------------------------------------------------------------------------------


def outcome_of(task: Task, shared: Shared, item: Any, link: Link) -> dict[str, Any]:
    """Run a task; whatever goes wrong becomes part of the answer."""
    if link.stopped():
        return {"value": None}
    try:
        return {"value": task(shared, item, link)}
    except (TsgkitError, OSError, MemoryError) as error:
        return {"error": message_of(error) or type(error).__name__}
    except Exception:  # a mistake of ours: all of it is needed to find it
        return {"error": traceback.format_exc()}


def require_same_version(version: str) -> None:
    """Refuse to work for another tsgkit than the one installed here: results would differ without a word."""
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


# ---- processes of this machine -------------------------------------------------------------------------------


class Hub:
    """Where tasks in processes of this machine report, and hear that they should stop.

    A task whose hub has gone (its process was killed) stops, too.
    """

    def __init__(self, on_message: OnMessage) -> None:
        self.on_message = on_message
        self.key = secrets.token_bytes(16)
        self.listener = Listener(authkey=self.key)
        self.open: list[Connection] = []
        # Reentrant, because `stop` may be called from a signal handler at any point of this thread.
        self.lock = threading.RLock()
        self.stopping = self.closing = False
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self) -> None:
        while not self.closing:
            with contextlib.suppress(OSError, EOFError, AuthenticationError):  # one that died while it called
                connection = self.listener.accept()
                threading.Thread(target=self.listen, args=(connection,), daemon=True).start()

    def listen(self, connection: Connection) -> None:
        with self.lock:
            self.open.append(connection)
        with contextlib.suppress(EOFError, OSError), connection:
            if self.stopping:
                connection.send_bytes(STOP)
            while True:
                self.on_message(*json.loads(connection.recv_bytes()))
        with self.lock:
            self.open.remove(connection)

    def stop(self) -> None:
        with self.lock:
            self.stopping = True
            for connection in self.open:
                with contextlib.suppress(OSError):
                    connection.send_bytes(STOP)

    def close(self) -> None:
        self.closing = True
        with contextlib.suppress(OSError, EOFError):
            Client(self.listener.address, authkey=self.key).close()  # wakes `accept`
        self.thread.join()
        self.listener.close()


@dataclass
class HubLink:
    """A task's link to a `Hub`; it is sent as address and key, and connects where it is used."""

    address: Any
    key: bytes
    index: int

    def __post_init__(self) -> None:
        self.connection: Connection | None = None
        self.is_time = Throttle(SECONDS_BETWEEN_REPORTS)
        self.heard_stop = False

    def __reduce__(self) -> tuple[Any, ...]:
        return HubLink, (self.address, self.key, self.index)

    def connected(self) -> Connection:
        if self.connection is None:
            self.connection = Client(self.address, authkey=self.key)
        return self.connection

    def send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError, EOFError):  # nobody listens any more: `stopped` will say so
            self.connected().send_bytes(json.dumps([self.index, message]).encode())

    def report(self, message: dict[str, Any]) -> None:
        if self.is_time():
            self.send(message)

    def stopped(self) -> bool:
        try:
            connection = self.connected()
            if not self.heard_stop and connection.poll():
                self.heard_stop = connection.recv_bytes() == STOP
        except (OSError, EOFError):
            self.heard_stop = True
        return self.heard_stop


class LocalBackend(Backend):
    """Every task in a process of its own: one that is killed takes no other with it."""

    hub: Hub | None = None

    def gather(self, task: Task, shared: Shared, items: Sequence[Any], on_message: OnMessage) -> Iterator[Outcome]:
        context = multiprocessing.get_context("spawn")
        answers: dict[int, dict[str, Any]] = {}
        answered = threading.Condition()

        def hear(index: int, message: dict[str, Any]) -> None:
            if "answer" not in message:
                on_message(index, message)
                return
            with answered:
                answers[index] = message["answer"]
                answered.notify_all()

        waiting = deque(enumerate(items))
        running: dict[int, Any] = {}
        self.hub = hub = Hub(hear)
        try:
            while running or (waiting and not hub.stopping):
                while waiting and len(running) < (self.jobs or 1) and not hub.stopping:
                    index, item = waiting.popleft()
                    link = HubLink(hub.listener.address, hub.key, index)
                    process = context.Process(target=run_in_process, args=(task, shared, item, link), daemon=True)
                    process.start()
                    running[index] = process
                wait([process.sentinel for process in running.values()], timeout=SECONDS_BETWEEN_REPORTS)
                for index in [index for index, process in running.items() if not process.is_alive()]:
                    process = running.pop(index)
                    process.join()
                    with answered:  # the answer of a process that ended well may be on its way
                        if process.exitcode == 0:
                            answered.wait_for(lambda own=index: own in answers, timeout=SECONDS_FOR_WORKERS)  # type: ignore[misc]
                    answer = answers.pop(index, {"error": f"its process {how_it_ended(process.exitcode)}"})
                    yield Outcome(index, **answer)
        finally:
            for process in running.values():
                process.kill()
                process.join()
            self.hub = None
            hub.close()

    def stop(self) -> None:
        if self.hub is not None:
            self.hub.stop()

    def stream(self, task: ChunkTask, shared: Shared, items: Iterable[Any]) -> Iterator[Any]:
        """As for all, one after the other in this process: what is short has threads of its own."""
        return (task(shared, item) for item in items)


def run_in_process(task: Task, shared: Shared, item: Any, link: HubLink) -> None:
    """The whole life of a process of `LocalBackend`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    link.send({"answer": outcome_of(task, shared, item, link)})


def how_it_ended(exit_code: int) -> str:
    if exit_code < 0:
        return f"was killed by signal {-exit_code} ({signal.strsignal(-exit_code)})"
    return f"ended with exit code {exit_code}"


# ---- joblib --------------------------------------------------------------------------------------------------


class JoblibBackend(Backend):
    """Tasks in joblib's processes. When one is killed joblib ends them all, and what was not done is begun again."""

    hub: Hub | None = None

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
        self.hub = hub = Hub(on_message)
        try:
            for _ in range(ATTEMPTS):
                calls = [
                    call(task, shared, item, HubLink(hub.listener.address, hub.key, index))
                    for index, item in left.items()
                ]
                try:
                    for index, answer in self.parallel(return_as="generator_unordered")(calls):
                        del left[index]
                        yield Outcome(index, **answer)
                except BrokenProcessPool:
                    continue
                return
            for index in left:
                yield Outcome(index, error=f"a process of joblib died, {ATTEMPTS} times")
        finally:
            self.hub = None
            hub.close()

    def stop(self) -> None:
        if self.hub is not None:
            self.hub.stop()

    def stream(self, task: ChunkTask, shared: Shared, items: Iterable[Any]) -> Iterator[Any]:
        """As for all; a window of items is done before the next one begins."""
        call = self.joblib.delayed(task)
        failures: list[Exception] = []
        numbered = enumerate(until_failure(items, failures), start=1)
        while window := list(islice(numbered, WINDOW * (self.jobs or 1))):
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    done = self.parallel()(call(shared, item) for _, item in window)
                    break
                except BrokenProcessPool:
                    if attempt == ATTEMPTS:
                        raise lost(f"parts {window[0][0]} to {window[-1][0]} of the input", "a process") from None
            yield from done
        if failures:
            raise failures[0]


def run_in_pool(task: Task, shared: Shared, item: Any, link: HubLink) -> tuple[int, dict[str, Any]]:
    """A task in one of joblib's processes, which outlives it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return link.index, outcome_of(task, shared, item, link)
    finally:
        signal.signal(signal.SIGINT, before)


# ---- Dask ----------------------------------------------------------------------------------------------------


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

    def stream(self, task: ChunkTask, shared: Shared, items: Iterable[Any]) -> Iterator[Any]:
        """As for all; `shared` is sent once and stays on every worker."""
        sender = DaskSender(self, shared)
        window: deque[tuple[int, DaskTask]] = deque()
        failures: list[Exception] = []

        def take() -> Any:
            number, sent = window.popleft()
            while True:
                try:
                    return sent.future.result()
                except self.lost_errors() as error:
                    if not sender.send_again(sent, error):
                        raise lost(f"part {number} of the input", f"a worker ({error})") from None

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
        return self.backend.client.scatter(self.value, broadcast=True, hash=False)

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

            self.heard_stop = distributed.Event(self.topic, client=distributed.get_client()).is_set()
        return self.heard_stop


# ---- shared --------------------------------------------------------------------------------------------------


def missing(packages: str) -> UsageError:
    return UsageError(f"this backend is not installed: pip install {packages}, or tsgkit with its extra `cluster`")


def lost(what: str, place: str) -> JobError:
    return JobError(
        f"{what}: {place} was lost while at work on it, {ATTEMPTS} times; if memory is short, --max-memory,"
        f" --max-length and fewer jobs at a time help; --resume keeps what is done"
    )
