"""The web server under load: requests per second, latency, and refusals above the limit.

Usage:
  tools.bench.load [options] [MODEL]
  tools.bench.load -h | --help | --version

Run it as ``python -m tools.bench.load``. It starts `tsgkit serve` on this machine, with a PCFG of the bundled
treebank unless a MODEL is given, and sends requests as fast as they are answered: from one client, from as many as
there are workers, from as many as can wait in the queue, and from many more. Then it does the same while slow clients
keep connections open, while others send bodies that are too large, and while crowds of clients send their bodies, or
the beginnings of requests, a byte per second, and connect again when they are refused. The exit code is 1 if a request
got anything but an answer or, above the limit, a 503.

Options:
  --seconds=N      duration of each measurement [default: 5]
  --threads=N      workers of the server [default: 2]
  --queue=N        length of its queue [default: 32]
  --askers=N       clients beyond both together, in the fourth measurement [default: 100]
  --timeout=S      timeout of the server [default: 5]
  --slow-bodies=N  clients that send their bodies slowly [default: 650]
  --partial=N      clients that send the beginnings of requests [default: 1100]
  -h --help        this text
  --version        the version
"""

import contextlib
import http.client
import json
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tsgkit._cli import command, integer, number, parse_arguments
from tsgkit._exit_codes import EXIT_FAILED
from tsgkit.errors import JobError
from tsgkit.models._cfg import cfg_model
from tsgkit.treebank import Binarization, UnknownWords, load, prepare

SENTENCES = ("The old man smiled .", "We saw the mill by the river .", "She said that it would rain in the morning .")
ANSWERED, BUSY, TOO_LARGE = 200, 503, 413
N_SLOW, N_LARGE = 8, 4
POST = b"POST /api/parse HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SLOW_BODY = POST + b"Content-Length: 60000\r\n\r\n" + b"x" * 30_000
PARTIAL = POST + b"X-Partial: "
LARGE_BODY = 2_000_000
PATIENCE = 60.0
# The server may close the connection while the rest of a large body is still being sent.
RESET = ("BrokenPipeError", "ConnectionResetError")


@dataclass
class Tally:
    """The responses to the clients of one measurement."""

    statuses: Counter[int | str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)  # until an answer; refusals do not count
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, status: int | str, seconds: float) -> None:
        with self.lock:
            self.statuses[status] += 1
            if status == ANSWERED:
                self.seconds.append(seconds)

    @property
    def n_failed(self) -> int:
        """Requests that got anything but an answer or a refusal."""
        return sum(count for status, count in self.statuses.items() if status not in (ANSWERED, BUSY))

    def line(self, name: str, n_askers: int, duration: float) -> str:
        median, last = (1000 * value for value in np.quantile(self.seconds or [0.0], [0.5, 0.99]))
        rate = self.statuses[ANSWERED] / duration
        return (
            f"{name:<18}{n_askers:>7}{rate:>11.1f}{median:>9.1f}{last:>9.1f}"
            f"{self.statuses[ANSWERED]:>10}{self.statuses[BUSY]:>7}{self.n_failed:>8}"
        )


@contextlib.contextmanager
def server(model: str, arguments: dict[str, Any]) -> Iterator[int]:
    """A server in a separate process; yields its port."""
    options = ["--port=0", *(f"{name}={arguments[name]}" for name in ("--threads", "--queue", "--timeout"))]
    worker = [sys.executable, "-m", "tsgkit", "serve", *options, model]
    # Its log goes to a file: a pipe that nobody reads would block it.
    with tempfile.NamedTemporaryFile("r") as log, open(log.name, "w") as target:
        process = subprocess.Popen(worker, stderr=target)
        try:
            while (port := re.search(r"http://[^/]*:(\d+)/", Path(log.name).read_text())) is None:
                if process.poll() is not None:
                    raise JobError(f"the server did not start: {Path(log.name).read_text()}")
                time.sleep(0.05)
            yield int(port[1])
        finally:
            process.terminate()
            process.wait()


def ask(port: int, text: str) -> int | str:
    """The status of one request, or the error."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        body = json.dumps({"text": text})
        connection.request("POST", "/api/parse", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        if response.status == TOO_LARGE:  # far above the limit it comes from waitress, and is no JSON
            return TOO_LARGE
        value = json.loads(content)
        if response.status == ANSWERED and not value["trees"]:
            return "no tree"
        if response.status == BUSY and response.headers["Retry-After"] is None:
            return "no Retry-After"
        return response.status
    except (OSError, http.client.HTTPException, ValueError) as error:
        return type(error).__name__
    finally:
        connection.close()


def measure(port: int, n_askers: int, duration: float) -> Tally:
    """Send requests from `n_askers` threads for `seconds`."""
    tally = Tally()
    end = time.monotonic() + duration

    def keep_asking(own: int) -> None:
        place = own
        while time.monotonic() < end:
            started = time.monotonic()
            tally.add(ask(port, SENTENCES[place % len(SENTENCES)]), time.monotonic() - started)
            place += 1

    threads = [threading.Thread(target=keep_asking, args=(own,)) for own in range(n_askers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally


@contextlib.contextmanager
def meanwhile(n_threads: int, work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Background clients, each of which runs until its event is set."""
    stop = threading.Event()
    threads = [threading.Thread(target=work, args=(stop,)) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def trickle(port: int, stop: threading.Event) -> None:
    """A client that sends a byte now and then and never completes its request."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(POST + b"Content-Length: 1000\r\n\r\n")
        while not stop.wait(0.1):
            connection.sendall(b"x")


def crowd(port: int, n_clients: int, start: bytes, stop: threading.Event) -> None:
    """Many clients that send `start` and then a byte every second; one that was refused connects again."""
    open_now: dict[int, socket.socket] = {}
    while not stop.wait(1.0):
        for client in range(n_clients):
            try:
                if client not in open_now:
                    open_now[client] = socket.create_connection(("127.0.0.1", port), PATIENCE)
                    open_now[client].sendall(start)
                open_now[client].sendall(b"x")
            except OSError:
                if client in open_now:
                    open_now.pop(client).close()
    for connection in open_now.values():
        connection.close()


def send_too_much(port: int, refused: Counter[int | str], stop: threading.Event) -> None:
    """A client that repeatedly sends a body that is too large."""
    while not stop.is_set():
        refused[ask(port, "x" * LARGE_BODY)] += 1


def run(port: int, arguments: dict[str, Any]) -> int:
    """All measurements; returns how many requests failed."""
    threads, queue = integer(arguments, "--threads", 1), integer(arguments, "--queue", 0)
    askers, seconds = integer(arguments, "--askers", 1), number(arguments, "--seconds", 0)
    n_bodies, n_partial = integer(arguments, "--slow-bodies", 1), integer(arguments, "--partial", 1)
    print(f"{'':<18}{'clients':>7}{'answers/s':>11}{'p50 ms':>9}{'p99 ms':>9}{'answered':>10}{'busy':>7}{'failed':>8}")
    limit, refused = threads + queue, Counter[int | str]()
    alone = ("alone", contextlib.nullcontext())
    slow = (f"{N_SLOW} slow clients", meanwhile(N_SLOW, partial(trickle, port)))
    large = (f"{N_LARGE} large bodies", meanwhile(N_LARGE, partial(send_too_much, port, refused)))
    bodies = (f"{n_bodies} slow bodies", meanwhile(1, partial(crowd, port, n_bodies, SLOW_BODY)))
    headers = (f"{n_partial} partial", meanwhile(1, partial(crowd, port, n_partial, PARTIAL)))
    n_failed = 0
    for n_askers, (name, others) in (
        (1, alone),
        (threads, alone),
        (limit, alone),
        (limit + askers, alone),
        (threads, slow),
        (threads, large),
        (threads, bodies),
        (threads, headers),
    ):
        with others:
            tally = measure(port, n_askers, seconds)
        print(tally.line(name, n_askers, seconds), flush=True)
        # Up to the limit, a refusal is a failure too.
        n_failed += tally.n_failed + (tally.statuses[BUSY] if n_askers <= limit else 0)
    unclean = sum(count for status, count in refused.items() if status not in (TOO_LARGE, *RESET))
    counts = ", ".join(f"{count} x {status}" for status, count in sorted(refused.items(), key=str))
    print(f"bodies of {LARGE_BODY} bytes: {counts}")
    return n_failed + unclean


@command
def main(argv: list[str]) -> int:
    arguments = parse_arguments(__doc__, argv)
    with tempfile.TemporaryDirectory() as folder:
        path = arguments["MODEL"] or str(Path(folder, "cfg.model"))
        if arguments["MODEL"] is None:
            trees = load("village", "train")
            cfg_model(prepare(trees, binarization=Binarization("right", 1), unknown=UnknownWords())).save(path)
        with server(path, arguments) as port:
            n_failed = run(port, arguments)
    return EXIT_FAILED if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
