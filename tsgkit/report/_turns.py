"""Whose request is answered next: a bounded queue that is fair between clients.

A free worker takes a request of the client that has the fewest at work, and among those the client that was called
least recently. So a client with a hundred requests and one with a single request take turns.
"""

import ipaddress
import threading
import time
from collections import Counter, deque
from collections.abc import Callable

POLL_SECONDS = 0.1  # how often a request that waits checks whether its client is still there
IPV6_NETWORK = 64  # bits that identify a client: a household has all addresses below them


def client_of(address: str) -> str:
    """Who sends requests from an address: the address itself, or the network of an IPv6 address.

    Examples
    --------
    >>> client_of("192.0.2.7"), client_of("2001:db8:1:2:3::4"), client_of("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8:1:2::/64', '192.0.2.7')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, IPV6_NETWORK), strict=False))


class BusyError(Exception):
    """No worker is free, and the queue is full or the time is up."""


class GoneError(Exception):
    """The client has closed its connection."""


class Ticket:
    """A request that waits."""

    def __init__(self, client: str) -> None:
        self.client, self.is_called, self.is_refused = client, False, False


class Turns:
    """Workers, and the requests that wait for them.

    Parameters
    ----------
    n_workers : int
        Requests at work at the same time.
    n_places : int
        Requests that may wait. When one more comes, the client with most of them loses its newest.
    """

    def __init__(self, n_workers: int, n_places: int) -> None:
        self.n_workers, self.n_places = n_workers, n_places
        self.changed = threading.Condition()
        self.at_work: Counter[str] = Counter()
        # By client, the least recently called first.
        self.waiting: dict[str, deque[Ticket]] = {}

    @property
    def n_waiting(self) -> int:
        return sum(map(len, self.waiting.values()))

    def take(self, client: str, deadline: float, is_gone: Callable[[], bool]) -> None:
        """Wait for a worker; `give_back` ends the turn.

        Parameters
        ----------
        client : str
        deadline : float
            By the monotonic clock.
        is_gone : callable
            Whether nobody waits for the answer any more.

        Raises
        ------
        BusyError, GoneError
        """
        with self.changed:
            ticket = Ticket(client)
            self.waiting.setdefault(client, deque()).append(ticket)
            self.call()
            if self.n_waiting > self.n_places:
                self.refuse_one(client)
            while not ticket.is_called:
                if ticket.is_refused:
                    raise BusyError
                if is_gone() or time.monotonic() >= deadline:
                    self.remove(ticket)
                    raise GoneError if is_gone() else BusyError
                self.changed.wait(min(POLL_SECONDS, max(deadline - time.monotonic(), 0.0)))

    def give_back(self, client: str) -> None:
        """End a turn of a client."""
        with self.changed:
            self.at_work[client] -= 1
            if not self.at_work[client]:
                del self.at_work[client]
            self.call()

    def call(self) -> None:
        """Give free workers to those that wait."""
        while self.waiting and self.at_work.total() < self.n_workers:
            client = min(self.waiting, key=self.at_work.__getitem__)  # of equal ones the first
            ticket = self.waiting[client].popleft()
            rest = self.waiting.pop(client)
            if rest:
                self.waiting[client] = rest  # now the most recently called
            self.at_work[client] += 1
            ticket.is_called = True
        self.changed.notify_all()

    def refuse_one(self, client: str) -> None:
        """Refuse the newest request of the client with most of them; of equal ones `client`, who came last."""
        most = max(self.waiting, key=lambda each: (len(self.waiting[each]), each == client))
        ticket = self.waiting[most][-1]
        ticket.is_refused = True
        self.remove(ticket)
        self.changed.notify_all()

    def remove(self, ticket: Ticket) -> None:
        tickets = self.waiting[ticket.client]
        tickets.remove(ticket)
        if not tickets:
            del self.waiting[ticket.client]
