"""The HTTP server of the web page: waitress, with deadlines for slow clients and room for new connections.

waitress itself closes connections that are silent, and stops accepting at a limit. A client that sends one byte now
and then is never silent, and at the limit nobody is served until a connection is closed. Here every stage of a
request has a deadline, whatever arrives in it, and at the limit the connection that has waited longest makes room:
one of the client that has most of them.
"""

import errno
import json
import logging
import socket
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer
from waitress.task import ErrorTask, ThreadedTaskDispatcher
from waitress.utilities import Error

from tsgkit.report._limits import ConnectionLimits
from tsgkit.report._turns import client_of

ACCEPTED_AT_ONCE = 64
SEND_SECONDS = 60.0
IDLE_SECONDS = 60.0
ERROR_CODES = {400: "form", 408: "timeout", 413: "size", 431: "headers", 500: "internal", 501: "method"}


class RequestTimeoutError(Error):
    """A response: the request did not arrive in time."""

    code = 408
    reason = "Request Timeout"


class JsonErrorTask(ErrorTask):
    """An error of the HTTP layer as JSON, like all other errors."""

    def execute(self) -> None:
        error = self.request.error
        self.status = f"{error.code} {error.reason}"
        self.response_headers += [("Content-Type", "application/json"), ("X-Content-Type-Options", "nosniff")]
        self.set_close_on_finish()
        value = {"error": {"code": ERROR_CODES.get(error.code, "http"), "message": str(error.body)}}
        body = json.dumps(value).encode()
        self.content_length = len(body)
        self.write(body)


class Channel(HTTPChannel):
    """A connection that knows in which stage of a request it is, and since when.

    When a stage began is noted at the next round of maintenance, in no order between connections. `waits_since` is
    exact: when the connection was made, or its last request was answered.
    """

    error_task_class = JsonErrorTask
    request: Any

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.n_served = 0
        self.client = client_of(str(self.addr[0]))
        self.waits_since = time.monotonic()
        self.stage, self.stage_began = self.current_stage(), self.waits_since

    def current_stage(self) -> tuple[str, int]:
        """The stage, and the number of requests before it: a stage of the next request is another one."""
        if self.requests:
            name = "serving"
        elif self.total_outbufs_len or self.close_when_flushed:
            name = "sending"
        elif self.request is None:
            name = "idle"
        else:
            name = "body" if self.request.headers_finished else "header"
        return name, self.n_served

    def note_stage(self, now: float) -> str:
        stage = self.current_stage()
        if stage != self.stage:
            self.stage, self.stage_began = stage, now
        return stage[0]

    def service(self) -> None:
        super().service()
        self.n_served += 1
        self.waits_since = time.monotonic()

    def handle_write(self) -> None:
        if self.socket is not None:  # poll may report a socket as writable that was closed when it was read
            super().handle_write()

    def refuse(self, message: str) -> None:
        """Answer a request that is not complete, and close the connection."""
        with self.requests_lock:
            request = self.request
            if request is None or self.requests:
                return
            request.error, request.completed = RequestTimeoutError(message), True
            self.request = None
            self.requests.append(request)
            self.server.add_task(self)


class Server(TcpWSGIServer):
    """waitress' server with deadlines, and with room for new connections at the limit."""

    channel_class = Channel
    limits: ConnectionLimits
    next_channel_cleanup: float

    def readable(self) -> bool:
        now = time.monotonic()
        if now >= self.next_channel_cleanup:
            self.next_channel_cleanup = now + self.adj.cleanup_interval
            self.maintenance(now)
        return bool(self.accepting)

    def maintenance(self, now: float) -> None:
        """Apply the deadlines of all stages; there is none for the answer itself, which the service limits."""
        deadlines = {"idle": IDLE_SECONDS, "sending": SEND_SECONDS}
        deadlines |= {"header": self.limits.header_timeout, "body": self.limits.body_timeout}
        now = time.monotonic()
        for channel in list(self.active_channels.values()):
            name = channel.note_stage(now)
            if name == "serving" or now - channel.stage_began < deadlines[name]:
                continue
            if name in ("header", "body"):
                channel.refuse(f"the {name} of the request did not arrive within {deadlines[name]:g} s")
            else:
                channel.handle_close()  # at once: will_close would wait until the client reads

    def handle_accept(self) -> None:
        """Accept several connections: a flood of them must not take as many rounds of the loop."""
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted = self.accept()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):  # descriptors of other parts of the process
                    self.make_room()
                return
            if accepted is None:
                return
            connection, address = accepted
            if len(self.active_channels) >= self.limits.connections and not self.make_room():
                connection.close()
                continue
            try:
                self.set_socket_options(connection)
            except OSError:  # the client has closed it already
                connection.close()
                continue
            self.channel_class(self, connection, address, self.adj, map=self._map)

    def make_room(self) -> bool:
        """Close a connection that waits for its client: of the client with most connections, the oldest.

        Returns
        -------
        bool
            Whether there was one; requests that are being answered are never given up for others.
        """
        now = time.monotonic()
        channels = list(self.active_channels.values())
        n_of_client = Counter(channel.client for channel in channels)
        stages = [channel.note_stage(now) for channel in channels]
        for evicted in (("idle", "header", "body"), ("sending",)):
            found = [channel for channel, stage in zip(channels, stages, strict=True) if stage in evicted]
            if found:
                chosen = min(found, key=lambda channel: (-n_of_client[channel.client], channel.waits_since))
                chosen.handle_close()
                return True
        return False


def create_server(
    app: Callable[..., Any],
    place: socket.socket,
    limits: ConnectionLimits,
    *,
    threads: int,
    max_body: int,
    proxy: str | None = None,
) -> Server:
    """A server for a WSGI application.

    Parameters
    ----------
    app : callable
    place : socket
        It listens there.
    limits : ConnectionLimits
    threads : int
        Requests that are answered at the same time.
    max_body : int
        Largest body that the application accepts. Bodies of up to twice the size are read, so that the application
        can refuse them; larger ones are refused when their size is known.
    proxy : str, optional
        Address of a reverse proxy: its ``X-Forwarded-For`` is the address of the client.
    """
    # It would log every request that waits; how many may wait is up to the service.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    trusted = {"trusted_proxy": proxy, "trusted_proxy_count": 1, "trusted_proxy_headers": "x-forwarded-for"}
    adjustments = Adjustments(
        sockets=[place],
        threads=threads,
        asyncore_use_poll=True,  # select cannot watch descriptors above 1023
        cleanup_interval=1,
        max_request_header_size=1 << 14,
        max_request_body_size=2 * max_body + 1,
        inbuf_overflow=2 * max_body + 2,  # bodies stay in memory, and take no descriptor
        channel_request_lookahead=1,  # so that a connection is watched while its request is answered
        log_socket_errors=False,
        ident=None,
        **(trusted if proxy else {}),
    )
    dispatcher = ThreadedTaskDispatcher()
    dispatcher.set_thread_count(threads)
    info = (place.family, place.type, place.proto, place.getsockname())
    server = Server(app, {}, True, place, dispatcher=dispatcher, adj=adjustments, bind_socket=False, sockinfo=info)
    server.limits = limits
    return server
