"""Show parses and their derivations on a local web page.

Usage:
  tsgkit serve [options] MODEL...
  tsgkit serve -h | --help | --version

Type sentences, or choose an example; see the best trees with their probabilities, how sure the model is of every
phrase, what else it considers, and the fragments that make up a tree, each with its training examples. Trees can be
compared with gold trees. Several models of the same treebank parse together, as in `tsgkit parse`. POST /api/parse
answers programs; the manual describes it. Needs Flask and waitress: pip install 'tsgkit[web]'. Ctrl-C ends it.

Options:
  --host=ADDRESS       where to listen; 127.0.0.1 is this machine alone. There is no login: whoever can reach the
                       address can use it [default: 127.0.0.1]
  --port=N             0 for any that is free [default: 8000]
  --allow-host=NAMES   names of this server besides localhost, separated by commas; requests to other names are refused
  --proxy=ADDRESS      of a reverse proxy: its X-Forwarded-For header says who sends a request
  --examples=TREEBANK  example sentences with gold trees to compare with (as for `tsgkit prepare`); unless given,
                       training sentences, where the model keeps them
  --treebank=NAME      for --examples: the preset of the treebank (see `tsgkit prepare`), or a file with one
  --heads=RULES        for dependencies: penn, leftmost, rightmost, another preset or a file (default:
                       those of --treebank, or of the model's treebank, or penn)
  --max-length=N       words of a sentence [default: 100]
  --max-body=BYTES     of a request [default: 65536]
  --max-memory=MB      of the chart of a sentence, for every thread [default: 512]
  --timeout=SECONDS    until an answer; a sentence that takes longer is answered with 503 [default: 20]
  --threads=N          sentences at a time [default: 4]
  --queue=N            requests that may wait for a free thread; what comes while so many do is answered with 503 at
                       once [default: 32]
  --connections=N      connections at the same time; the limit of open files may allow fewer [default: 500]
  --header-timeout=SECONDS  for the header of a request [default: 10]
  --body-timeout=SECONDS    for the body of a request [default: 20]
  -q, --quiet          do not say where the page is
  -h, --help           this text
  --version            the version
"""

import ipaddress
import os
import socket
import sys
from typing import Any

from tsgkit._cli import command, integer, number, parse_arguments
from tsgkit._options import head_rules_of, preset_of
from tsgkit._parser_options import parser_settings
from tsgkit.errors import UsageError
from tsgkit.models._model import Model
from tsgkit.report._examples import Examples
from tsgkit.report._limits import ConnectionLimits, Limits
from tsgkit.report._service import SERVICE_CHANGES, ParseService
from tsgkit.treebank import read_trees

# Threads of the server beyond those of requests that are at work or wait: they refuse what is too much, and send files.
SPARE_THREADS = 4


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


def allowed_names(arguments: dict[str, Any]) -> list[str]:
    """The names by which the server may be asked for."""
    given = [name for name in (arguments["--allow-host"] or "").split(",") if name]
    return [*given, arguments["--host"], *([] if is_loopback(arguments["--host"]) else [socket.gethostname()])]


def limits_of(arguments: dict[str, Any]) -> tuple[Limits, ConnectionLimits]:
    """The limits of requests and of connections."""
    requests = Limits(
        max_length=integer(arguments, "--max-length", 1),
        max_body=integer(arguments, "--max-body", 1),
        timeout=number(arguments, "--timeout", 0),
        threads=integer(arguments, "--threads", 1),
        queue=integer(arguments, "--queue", 0),
    )
    connections = ConnectionLimits(
        connections=integer(arguments, "--connections", 1),
        header_timeout=number(arguments, "--header-timeout", 0),
        body_timeout=number(arguments, "--body-timeout", 0),
    )
    return requests, connections


@command
def main(argv: list[str]) -> int:
    """Serve until interrupted."""
    arguments = parse_arguments(__doc__, argv)
    port = integer(arguments, "--port", 0)
    if port > 65535:
        raise UsageError(f"--port={port}: must be at most 65535")
    try:
        from tsgkit.report._connections import create_server  # noqa: PLC0415 - an optional extra
        from tsgkit.report._web import HostCheck, create_app  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(f"serve needs {str(error.name).partition('.')[0]}: pip install 'tsgkit[web]'") from None
    limits, asked = limits_of(arguments)
    settings = parser_settings(arguments, **SERVICE_CHANGES)
    paths, host = arguments["MODEL"], arguments["--host"]
    models = [Model.load(path) for path in paths]
    examples = None
    if arguments["--examples"] is not None:
        trees = read_trees(arguments["--examples"], treebank=preset_of(arguments))
        examples = Examples.of_treebank(trees, arguments["--examples"], models[0])
    names = [os.path.basename(path) for path in paths]
    service = ParseService(models, names, limits, settings, examples, head_rules=head_rules_of(arguments))
    app = create_app(service, HostCheck(allowed_names(arguments), only_local=is_loopback(host)))
    connections = asked.within_descriptors()
    if connections != asked and not arguments["--quiet"]:
        print(f"tsgkit: the limit of open files allows {connections.connections} connections", file=sys.stderr)
    with listening(host, port) as place:
        threads = limits.threads + limits.queue + SPARE_THREADS
        server = create_server(
            app, place, connections, threads=threads, max_body=limits.max_body, proxy=arguments["--proxy"]
        )
        if not arguments["--quiet"]:
            shown = f"[{host}]" if ":" in host else host
            address = f"http://{shown}:{place.getsockname()[1]}/"
            print(f"tsgkit: {address} (Ctrl-C to end)", file=sys.stderr, flush=True)
        try:
            server.run()
        finally:
            server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
