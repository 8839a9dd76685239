"""Tasks that may kill their process, each in a child process, so that only the child dies.

A sentence that takes all the memory, or meets a fault in compiled code, kills the worker that parses it, then the next
one that tries. `rescued` finds it: the items of a chunk are run one by one in a child process of the worker; one that
kills the child is given up, and a new child continues with the next.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from tsgkit.distributed._base import ChunkTask, Outcome, Rescue, Shared
from tsgkit.distributed._orphans import leaving_interrupts_to_parent, watch_parent

CHILD = "from tsgkit.distributed._isolation import serve; import sys; serve(int(sys.argv[1]))"


def rescued(task: ChunkTask, shared: Shared, item: Any, rescue: Rescue) -> Any:
    """The result of an item that kills its process, with the pieces that do given up."""
    pieces = rescue.pieces(item)
    results = [
        rescue.give_up(shared, piece, outcome.error) if outcome.error else outcome.value
        for piece, outcome in zip(pieces, run_isolated(task, shared, pieces), strict=True)
    ]
    return rescue.join(results)


def run_isolated(task: ChunkTask, shared: Shared, items: Sequence[Any]) -> Iterator[Outcome]:
    """Run the task of every item, in order, in a child process; the error of an outcome is how the child died.

    What the task itself raises is raised here.
    """
    child = None
    try:
        for index, item in enumerate(items):
            child = child or Child(task, shared)
            try:
                value = child.run(item)
            except (EOFError, OSError):
                yield Outcome(index, error=child.how_it_ended())
                child = None
            else:
                yield Outcome(index, value)
    finally:
        if child is not None:
            child.end()


class Child:
    """A child process that runs one task for many items.

    A new interpreter, because workers of a cluster may be processes that `multiprocessing` allows no children.
    """

    def __init__(self, task: ChunkTask, shared: Shared) -> None:
        self.connection, other = Pipe()
        try:
            with leaving_interrupts_to_parent():
                self.process = subprocess.Popen(
                    [sys.executable, "-c", CHILD, str(other.fileno())],
                    pass_fds=[other.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                )
        finally:
            other.close()
        self.connection.send((task, shared))

    def run(self, item: Any) -> Any:
        """The result for an item; an EOFError or OSError if the process dies."""
        self.connection.send(item)
        value, error = self.connection.recv()
        if error is not None:
            raise error
        return value

    def how_it_ended(self) -> str:
        self.end()
        return how_it_ended(self.process.returncode)

    def end(self) -> None:
        """Let the process end, and wait for it."""
        self.connection.close()
        self.process.wait()


def serve(descriptor: int) -> None:
    """The whole life of a child process: it ends when nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    watch_parent()
    connection: Any = Connection(descriptor)
    try:
        task, shared = connection.recv()
        while True:
            item = connection.recv()
            value = failure = None
            try:
                value = task(shared, item)
            except Exception as error:  # raised again where it is waited for
                failure = error
            connection.send((value, failure))
    except (EOFError, OSError):
        return


def how_it_ended(exit_code: int) -> str:
    """The end of a process in words."""
    if exit_code < 0:
        return f"was killed by signal {-exit_code} ({signal.strsignal(-exit_code)})"
    return f"ended with exit code {exit_code}"
