"""Show parses and their derivations on a local web page.

Usage:
  tsgkit serve [options] MODEL...
  tsgkit serve -h | --help | --version

Type a sentence; see its best trees with their probabilities, how sure the model is of every phrase, what else it
considers, and the fragments that make up a tree, each with its training examples. Several models of the same treebank
parse together, as in `tsgkit parse`. POST /api/parse answers programs; the manual describes it. Needs Flask and
waitress: pip install 'tsgkit[web]'. Ctrl-C ends it.

Options:
  --host=ADDRESS       where to listen; 127.0.0.1 is this machine alone. There is no login: whoever can reach the
                       address can use it [default: 127.0.0.1]
  --port=N             0 for any that is free [default: 8000]
  --max-length=N       words of a sentence [default: 100]
  --max-body=BYTES     of a request [default: 65536]
  --max-memory=MB      of the chart of a sentence, for every thread [default: 512]
  --timeout=SECONDS    until an answer; a sentence that takes longer is answered with 503 [default: 20]
  --threads=N          sentences at a time [default: 4]
  --queue=N            requests that may wait for a free thread; what comes while so many do is answered with 503 at
                       once [default: 32]
  -q, --quiet          do not say where the page is
  -h, --help           this text
  --version            the version
"""

import ipaddress
import logging
import os
import socket
import sys

from tsgkit.cli import command, integer, number, parse_arguments
from tsgkit.errors import UsageError
from tsgkit.models.model import Model
from tsgkit.parser_options import parser_settings
from tsgkit.report.service import SERVICE_CHANGES, Limits, ParseService

# Threads of the server beyond those of requests that are at work or wait: they refuse what is too much, and send files.
SPARE_THREADS = 4
MAX_CONNECTIONS = 1000


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens at an address."""
    try:
        (family, *_, place), *_ = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        return socket.create_server(place[:2], family=family)
    except OSError as error:
        problem = error.strerror or error
        raise UsageError(f"--host={host} --port={port}: {problem}; choose others, or --port=0 for any") from None


@command
def main(argv: list[str]) -> int:
    """Serve until interrupted."""
    arguments = parse_arguments(__doc__, argv)
    port = integer(arguments, "--port", 0)
    if port > 65535:
        raise UsageError(f"--port={port}: must be at most 65535")
    limits = Limits(
        max_length=integer(arguments, "--max-length", 1),
        max_body=integer(arguments, "--max-body", 1),
        timeout=number(arguments, "--timeout", 0),
        threads=integer(arguments, "--threads", 1),
        queue=integer(arguments, "--queue", 0),
    )
    settings = parser_settings(arguments, **SERVICE_CHANGES)
    try:
        from waitress import create_server  # noqa: PLC0415 - an optional extra

        from tsgkit.report.web import create_app  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(f"serve needs {error.name}: pip install 'tsgkit[web]'") from None
    paths = arguments["MODEL"]
    models = [Model.load(path) for path in paths]
    service = ParseService(models, [os.path.basename(path) for path in paths], limits, settings)
    host = arguments["--host"]
    app = create_app(service, only_local=is_loopback(host))
    with listening(host, port) as place:
        # Requests a good deal above the limit are still read to their end, so that the answer is ours.
        server = create_server(
            app,
            sockets=[place],
            threads=limits.threads + limits.queue + SPARE_THREADS,
            connection_limit=MAX_CONNECTIONS,
            max_request_body_size=limits.max_body + (1 << 20),
            ident=None,
        )
        if not arguments["--quiet"]:
            shown = f"[{host}]" if ":" in host else host
            address = f"http://{shown}:{place.getsockname()[1]}/"
            print(f"tsgkit: {address} (Ctrl-C to end)", file=sys.stderr, flush=True)
        # It would note every request that waits; how many may, and what happens to others, is up to us.
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        try:
            server.run()
        finally:
            server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
