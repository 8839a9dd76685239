"""The HTTP server with clients that are slow, many, silent or gone. All of them are on this machine."""

import http.client
import json
import re
import resource
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress

import pytest

from tsgkit.errors import UsageError
from tsgkit.report._limits import DESCRIPTORS_PER_CONNECTION, RESERVED_DESCRIPTORS, ConnectionLimits

pytest.importorskip("waitress", reason="waitress is not installed")
from tsgkit.report._connections import create_server

pytestmark = pytest.mark.xdist_group("pictures")

HEADER = b"POST /api/parse HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
NEVER = 3600.0
N_SLOW, N_PARTIAL = 650, 1100


@pytest.fixture
def many_descriptors():
    """As many open files as the tests of crowds need, with some of the server's in the same process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 3000
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"at most {hard} open files are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed) if soft != resource.RLIM_INFINITY else soft, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Running:
    """A server in a thread, with an application that notes who asks and can be made to wait."""

    def __init__(self, **options):
        self.go, self.asked, self.gone = threading.Event(), [], threading.Event()
        self.place = socket.create_server(("127.0.0.1", 0))
        self.port = self.place.getsockname()[1]
        limits = ConnectionLimits(**{"header_timeout": NEVER, "body_timeout": NEVER, **options.pop("limits", {})})
        self.server = create_server(self.app, self.place, limits, **{"threads": 2, "max_body": 1000, **options})
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()

    def app(self, environ, start_response):
        body = environ["wsgi.input"].read()
        self.asked.append(environ["REMOTE_ADDR"])
        if environ["PATH_INFO"] == "/wait":
            while not self.go.wait(0.01):
                if environ["waitress.client_disconnected"]():
                    self.gone.set()
                    break
        answer = b"x" * int(body or b"2")
        start_response("200 OK", [("Content-Length", str(len(answer)))])
        return [answer]

    def connect(self, start=b"", source="127.0.0.1"):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=600, source_address=(source, 0))
        connection.sendall(start)
        return connection

    def ask(self, path="/", body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("POST" if body else "GET", path, body, headers or {})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, content

    def open_channels(self):
        return len(self.server.active_channels)

    def close(self):
        self.go.set()
        left = list(self.server._map.values())
        self.server._map.clear()  # the loop ends when there is nothing to watch
        self.server.pull_trigger()
        self.thread.join(30)
        self.server.task_dispatcher.shutdown()
        for each in (*left, self.place):
            each.close()


@contextmanager
def running(**options):
    started = Running(**options)
    try:
        yield started
    finally:
        started.close()


def wait_for(condition, seconds=600):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)


def is_open(connection):
    connection.settimeout(0.05)
    try:
        return connection.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


def everything(connection):
    """What a server sends until it closes the connection."""
    found = b""
    connection.settimeout(60)
    with suppress(ConnectionResetError):
        while part := connection.recv(4096):
            found += part
    return found


def trickle(connection, piece):
    """Send a piece now and then until the connection is closed."""
    with suppress(OSError):
        for _ in range(600):
            connection.sendall(piece)
            time.sleep(0.1)


@pytest.mark.parametrize(
    ("stage", "start", "piece"),
    [
        ("header", b"GET / HTTP/1.1\r\n", b"X-More: 1\r\n"),
        ("body", HEADER + b"Content-Length: 900\r\n\r\n", b"1"),
        ("body", HEADER + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n1\r\n"),
    ],
)
def test_bytes_now_and_then_do_not_extend_a_deadline(stage, start, piece):
    with running(limits={f"{stage}_timeout": 0.3}) as server, server.connect(start) as connection:
        sender = threading.Thread(target=trickle, args=(connection, piece))
        sender.start()
        answer = everything(connection)
        sender.join()
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.")
        assert b"408 Request Timeout" in head.splitlines()[0]
        assert f"the {stage} of the request did not arrive within 0.3 s" in json.loads(body)["error"]["message"]
        assert not server.asked
        wait_for(lambda: not server.open_channels())
        assert server.ask() == (200, b"xx")


def test_deadlines_are_for_each_request():
    """A connection may live longer than the deadline of a request."""
    with running(limits={"header_timeout": 1.0, "body_timeout": 1.0}) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
        end = time.monotonic() + 3.0
        while time.monotonic() < end:
            connection.request("POST", "/", b"3", {"Content-Type": "text/plain"})
            assert connection.getresponse().read() == b"xxx"
            time.sleep(0.05)
        assert server.open_channels() == 1
        connection.close()


def test_an_answer_that_takes_long_has_no_deadline_here():
    request = b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"
    with running(limits={"header_timeout": 0.1, "body_timeout": 0.1}) as server, server.connect(request) as connection:
        wait_for(lambda: server.asked)
        time.sleep(2.5)  # several rounds of maintenance
        server.go.set()
        assert b"200 OK" in connection.recv(4096)


def test_a_connection_at_the_limit_makes_room():
    with running(limits={"connections": 4}) as server, ExitStack() as stack:
        partial = [stack.enter_context(server.connect(b"GET / HT")) for _ in range(4)]
        wait_for(lambda: server.open_channels() == 4)
        assert server.ask() == (200, b"xx")
        assert not is_open(partial[0])
        assert all(map(is_open, partial[1:]))


def test_the_client_with_most_connections_makes_room():
    with running(limits={"connections": 5}) as server, ExitStack() as stack:
        modest = stack.enter_context(server.connect(b"GET", source="127.0.0.2"))
        wait_for(lambda: server.open_channels() == 1)
        greedy = [stack.enter_context(server.connect(b"GET", source="127.0.0.3")) for _ in range(40)]
        wait_for(lambda: not is_open(greedy[35]))
        assert is_open(modest)
        assert all(map(is_open, greedy[-4:]))


def test_requests_that_are_being_answered_are_not_given_up_for_others():
    with running(limits={"connections": 3}) as server, ExitStack() as stack:
        waiting = [stack.enter_context(server.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")) for _ in range(2)]
        wait_for(lambda: len(server.asked) == 2)
        late = [stack.enter_context(server.connect(b"GET")) for _ in range(6)]
        wait_for(lambda: not is_open(late[4]))
        assert is_open(late[5])
        server.go.set()
        for connection in waiting:
            assert b"200 OK" in connection.recv(4096)


def test_who_closes_the_connection_is_noticed():
    with running() as server:
        connection = server.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for(lambda: server.asked)
        assert not server.gone.is_set()
        connection.close()
        wait_for(server.gone.is_set)
        wait_for(lambda: not server.open_channels())


def test_who_does_not_read_the_answer(monkeypatch):
    monkeypatch.setattr("tsgkit.report._connections.SEND_SECONDS", 0.5)
    with running() as server:
        connection = server.connect()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n12000000")
        wait_for(lambda: server.asked)
        wait_for(lambda: not server.open_channels())
        connection.close()


def test_bodies_that_are_too_large():
    with running(max_body=1000) as server:
        connection = server.connect(HEADER + b"Content-Length: 2001\r\n\r\n")
        answer = everything(connection)
        assert b"413 Request Entity Too Large" in answer
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "size"
        assert server.ask(body=b"3") == (200, b"xxx")
        connection.close()
        connection = server.connect(b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * 3000)
        assert b"431 Request Header Fields Too Large" in everything(connection)
        connection.close()


def test_only_a_proxy_says_who_asks():
    header = {"X-Forwarded-For": "192.0.2.1"}
    with running() as server:
        server.ask(headers=header)
        assert server.asked == ["127.0.0.1"]
    with running(proxy="127.0.0.1") as server:
        server.ask(headers=header)
        assert server.asked == ["192.0.2.1"]
    with running(proxy="192.0.2.99") as server:
        server.ask(headers=header)
        assert server.asked == ["127.0.0.1"]


def test_connections_stay_below_the_limit_of_open_files():
    code = (
        "import resource, sys; from tsgkit.report._limits import ConnectionLimits;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, tuple(map(int, sys.argv[1:])));"
        "print(ConnectionLimits(connections=100).within_descriptors().connections,"
        " resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    full = RESERVED_DESCRIPTORS + DESCRIPTORS_PER_CONNECTION * 100
    for soft, hard, expected in ((128, 1024, (100, full)), (128, 164, (50, 164)), (512, 1024, (100, 512))):
        done = subprocess.run([sys.executable, "-c", code, str(soft), str(hard)], capture_output=True, check=True)
        assert tuple(map(int, done.stdout.split())) == expected
    for values in ({"connections": 0}, {"header_timeout": 0.0}, {"body_timeout": float("nan")}):
        with pytest.raises(UsageError):
            ConnectionLimits(**values)


# ---- what was found --------------------------------------------------------------------------------------


@contextmanager
def serving(model, *options):
    command = [sys.executable, "-m", "tsgkit", "serve", "--port=0", *options, str(model)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        found = None
        while found is None:
            line = process.stderr.readline()
            assert line, "the server did not start"
            found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        yield process, int(found[1])
    finally:
        process.terminate()
        process.communicate(timeout=600)


def parse(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request(
        "POST", "/api/parse", json.dumps({"text": "The old man smiled ."}), {"Content-Type": "application/json"}
    )
    response = connection.getresponse()
    assert json.loads(response.read())["trees"]
    connection.close()
    return response.status


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_clients", "start"),
    [
        # Bodies that waitress keeps in temporary files, each a descriptor more.
        (N_SLOW, HEADER + b"Content-Length: 1000000\r\n\r\n" + b"x" * 600_000),
        (N_SLOW, HEADER + b"Content-Length: 60000\r\n\r\n" + b"x" * 30_000),
        (N_PARTIAL, b"POST /api/parse HTTP/1.1\r\nHost: localhost\r\nConte"),
    ],
    ids=["large bodies", "slow bodies", "partial requests"],
)
def test_crowds_of_slow_clients(paths, many_descriptors, n_clients, start):
    """With deadlines that never pass, the server answers others while the crowd is connected."""
    options = ("--header-timeout=3600", "--body-timeout=3600")
    with serving(paths["cfg"], *options) as (process, port), ExitStack() as stack:
        for number in range(n_clients):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=600))
            with suppress(OSError):  # refused, or closed to make room
                connection.sendall(start)
            if number % 100 == 99:
                assert parse(port) == 200
        for _ in range(5):
            assert parse(port) == 200
        assert process.poll() is None
