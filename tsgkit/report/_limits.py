"""Limits of the web server: of requests, and of the connections that they come by."""

import resource
from dataclasses import dataclass, replace

from tsgkit._settings import Checked

# A connection has a socket and, while a long answer is sent, a temporary file.
DESCRIPTORS_PER_CONNECTION = 2
# Descriptors for everything else: models, standard streams, files of the page.
RESERVED_DESCRIPTORS = 64


@dataclass(frozen=True)
class Limits(Checked):
    """Limits of requests.

    Parameters
    ----------
    max_length : int
        Words per sentence.
    max_body : int
        Bytes per request.
    timeout : float
        Seconds until a response.
    threads : int
        Sentences parsed at the same time.
    queue : int
        Requests that may wait for a free thread; further requests are refused immediately.
    """

    max_length: int = 100
    max_body: int = 64 * 1024
    timeout: float = 20.0
    threads: int = 4
    queue: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_least(1, "max_length", "max_body", "threads")
        self.require("timeout", self.timeout > 0, "must be more than 0")
        self.require_least(0, "queue")


@dataclass(frozen=True)
class ConnectionLimits(Checked):
    """Limits of connections.

    Parameters
    ----------
    connections : int
        Connections at the same time.
    header_timeout : float
        Seconds for the header of a request.
    body_timeout : float
        Seconds for the body of a request.
    """

    connections: int = 500
    header_timeout: float = 10.0
    body_timeout: float = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_least(1, "connections")
        for name in ("header_timeout", "body_timeout"):
            self.require(name, getattr(self, name) > 0, "must be more than 0")

    def within_descriptors(self) -> "ConnectionLimits":
        """The same limits, with no more connections than open files are allowed; that limit is raised if possible."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        needed = RESERVED_DESCRIPTORS + DESCRIPTORS_PER_CONNECTION * self.connections
        if soft != resource.RLIM_INFINITY and soft < needed:
            soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft == resource.RLIM_INFINITY or soft >= needed:
            return self
        return replace(self, connections=max((soft - RESERVED_DESCRIPTORS) // DESCRIPTORS_PER_CONNECTION, 1))
