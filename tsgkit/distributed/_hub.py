"""Where tasks in processes of this machine report, and hear that they should stop."""

import contextlib
import json
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

from tsgkit.distributed._base import SECONDS_BETWEEN_REPORTS, Backend, OnMessage, Throttle

STOP = b"stop"


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

    def link(self, index: int) -> "HubLink":
        """The link of the task of an item, to be sent to its process."""
        return HubLink(self.listener.address, self.key, index)

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


class HubBackend(Backend):
    """A backend whose tasks are processes of this machine, which report to a hub."""

    hub: Hub | None = None

    @contextlib.contextmanager
    def opened_hub(self, on_message: OnMessage) -> Iterator[Hub]:
        """The hub of one call of `gather`."""
        self.hub = hub = Hub(on_message)
        try:
            yield hub
        finally:
            self.hub = None
            hub.close()

    def stop(self) -> None:
        if self.hub is not None:
            self.hub.stop()


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
