"""Tasks in processes of this machine, one for each."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.connection import wait
from typing import Any

from tsgkit.distributed.base import (
    SECONDS_BETWEEN_REPORTS,
    Backend,
    ChunkTask,
    OnMessage,
    Outcome,
    Rescue,
    Shared,
    Task,
    outcome_of,
)
from tsgkit.distributed.hub import Hub, HubLink
from tsgkit.distributed.isolation import how_it_ended
from tsgkit.distributed.orphans import end_with_parent
from tsgkit.interruption import has_abandoned

# How long the answer of a process that has ended may be on its way.
SECONDS_FOR_ANSWERS = 60.0


class LocalBackend(Backend):
    """Every task in a process of its own: one that is killed takes no other with it."""

    hub: Hub | None = None

    def gather(self, task: Task, shared: Shared, items: Sequence[Any], on_message: OnMessage) -> Iterator[Outcome]:
        context = multiprocessing.get_context("spawn")
        answers: dict[int, dict[str, Any]] = {}
        answered = threading.Condition()
        begun: set[int] = set()

        def hear(index: int, message: dict[str, Any]) -> None:
            if "begun" in message:
                begun.add(index)
                return
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
                if hub.stopping:  # those that are still importing modules would take seconds to hear of it
                    for index in set(running) - begun:
                        running[index].kill()
                        answers.setdefault(index, {"value": None})
                for index in [index for index, process in running.items() if not process.is_alive()]:
                    process = running.pop(index)
                    process.join()
                    with answered:  # the answer of a process that ended well may be on its way
                        if process.exitcode == 0:
                            answered.wait_for(lambda own=index: own in answers, timeout=SECONDS_FOR_ANSWERS)  # type: ignore[misc]
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

    def stream(
        self, task: ChunkTask, shared: Shared, items: Iterable[Any], rescue: Rescue | None = None
    ) -> Iterator[Any]:
        """As for all, one after the other in this process: what is short has threads of its own."""
        return (task(shared, item) for item in items)


def run_in_process(task: Task, shared: Shared, item: Any, link: HubLink) -> None:
    """The whole life of a process of `LocalBackend`."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    link.send({"begun": True})
    link.send({"answer": outcome_of(task, shared, item, link)})
    if has_abandoned():
        os._exit(0)
