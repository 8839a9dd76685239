"""Tasks in processes of this machine, one for each."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any

from tsgkit._interruption import has_abandoned
from tsgkit.distributed._base import (
    SECONDS_BETWEEN_REPORTS,
    ChunkTask,
    OnMessage,
    Outcome,
    Rescue,
    Shared,
    Task,
    outcome_of,
)
from tsgkit.distributed._hub import HubBackend, HubLink
from tsgkit.distributed._isolation import how_it_ended
from tsgkit.distributed._orphans import end_with_parent, leaving_interrupts_to_parent

# How long the answer of a process that has ended may be on its way.
SECONDS_FOR_ANSWERS = 60.0


class LocalBackend(HubBackend):
    """Every task in a process of its own: one that is killed takes no other with it."""

    def gather(self, task: Task, shared: Shared, items: Sequence[Any], on_message: OnMessage) -> Iterator[Outcome]:
        answers = Answers(on_message)
        waiting = deque(enumerate(items))
        running: dict[int, SpawnProcess] = {}
        with self.opened_hub(answers.hear) as hub:
            try:
                while running or (waiting and not hub.stopping):
                    while waiting and len(running) < (self.jobs or 1) and not hub.stopping:
                        index, item = waiting.popleft()
                        running[index] = started(task, shared, item, hub.link(index))
                    wait([process.sentinel for process in running.values()], timeout=SECONDS_BETWEEN_REPORTS)
                    if hub.stopping:  # those that are still importing modules would take seconds to hear of it
                        for index in set(running) - answers.begun:
                            running[index].kill()
                            answers.by_item.setdefault(index, {"value": None})
                    for index in [index for index, process in running.items() if not process.is_alive()]:
                        yield Outcome(index, **answers.of_process(index, running.pop(index)))
            finally:
                for process in running.values():
                    process.kill()
                    process.join()

    def stream(
        self, task: ChunkTask, shared: Shared, items: Iterable[Any], rescue: Rescue | None = None
    ) -> Iterator[Any]:
        """As for all, one after the other in this process: what is short has threads of its own."""
        return (task(shared, item) for item in items)


class Answers:
    """What the processes of `LocalBackend` report: that they have begun, how far they are, and their answers."""

    def __init__(self, on_message: OnMessage) -> None:
        self.on_message = on_message
        self.begun: set[int] = set()
        self.by_item: dict[int, dict[str, Any]] = {}
        self.changed = threading.Condition()

    def hear(self, index: int, message: dict[str, Any]) -> None:
        if "begun" in message:
            self.begun.add(index)
        elif "answer" not in message:
            self.on_message(index, message)
        else:
            with self.changed:
                self.by_item[index] = message["answer"]
                self.changed.notify_all()

    def of_process(self, index: int, process: SpawnProcess) -> dict[str, Any]:
        """The answer of a process that has ended; if it ended well, the answer may still be on its way."""
        process.join()
        assert process.exitcode is not None
        with self.changed:
            if process.exitcode == 0:
                self.changed.wait_for(lambda: index in self.by_item, timeout=SECONDS_FOR_ANSWERS)
        return self.by_item.pop(index, {"error": f"its process {how_it_ended(process.exitcode)}"})


def started(task: Task, shared: Shared, item: Any, link: HubLink) -> SpawnProcess:
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=run_in_process, args=(task, shared, item, link), daemon=True)
    with leaving_interrupts_to_parent():
        process.start()
    return process


def run_in_process(task: Task, shared: Shared, item: Any, link: HubLink) -> None:
    """The whole life of a process of `LocalBackend`."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    link.send({"begun": True})
    link.send({"answer": outcome_of(task, shared, item, link)})
    if has_abandoned():
        os._exit(0)
