"""The web page and its JSON interface, as a Flask application; `tsgkit serve` runs it (`tsgkit.report._connections`).

The page loads everything from this server, and a content security policy enforces this.
"""

import ipaddress
import json
from collections.abc import Iterable
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from tsgkit import __version__
from tsgkit.drawing._svg import tree_style
from tsgkit.report._service import ParseService, RequestError
from tsgkit.report._turns import client_of

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
CODES = {400: "form", 404: "path", 405: "method", 413: "size", 415: "type"}


class HostCheck:
    """Which hosts a request may name, so that pages of other sites cannot send requests (DNS rebinding).

    Such a page is loaded from a name whose address is then changed to that of this server; its requests name that
    host. An address cannot be changed like this, so that addresses are safe.

    Parameters
    ----------
    names : iterable of str
        Names of this server, besides localhost.
    only_local : bool
        Whether of the addresses only those of this machine are accepted.

    Examples
    --------
    >>> check = HostCheck(["parser.example"], only_local=False)
    >>> check.allows("parser.example:8000"), check.allows("192.0.2.1"), check.allows("other.example")
    (True, True, False)
    """

    def __init__(self, names: Iterable[str] = (), *, only_local: bool = True) -> None:
        self.names = {"localhost", *(name.rstrip(".").lower() for name in names)}
        self.only_local = only_local

    def allows(self, host: str) -> bool:
        name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
        name = (name or port).lower()
        if name.startswith("[") and name.endswith("]"):
            name = name[1:-1]
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return name.removesuffix(".") in self.names
        return address.is_loopback or not self.only_local


def create_app(service: ParseService, hosts: HostCheck | None = None) -> Flask:
    """The application.

    Parameters
    ----------
    service : ParseService
    hosts : HostCheck
        Of this machine alone unless given.
    """
    allowed = hosts or HostCheck()
    app = Flask(__name__, static_folder="static", static_url_path="/static")
    # Requests just above the limit are refused here, with JSON; waitress refuses larger ones.
    app.config["MAX_CONTENT_LENGTH"] = service.limits.max_body

    @app.before_request
    def refuse_other_hosts() -> Response | None:
        if not allowed.allows(request.host):
            known = ", ".join(sorted(allowed.names))
            return problem(403, "host", f"{request.host}: this server answers to {known}; --allow-host adds names")
        return None

    @app.after_request
    def add_headers(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["X-Frame-Options"] = "DENY"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        response.headers["Cache-Control"] = "no-store" if request.path.startswith("/api/") else "no-cache"
        return response

    @app.errorhandler(HTTPException)
    def http_problem(error: HTTPException) -> Response:
        status = error.code or 500
        messages = {
            404: f"{request.path}: not found; the page is at /, the interface at /api/parse",
            405: f"{request.path} does not allow the method {request.method}",
            413: f"the request is larger than {service.limits.max_body} bytes",
        }
        return problem(status, CODES.get(status, "http"), messages.get(status, error.description or error.name))

    @app.errorhandler(RequestError)
    def request_problem(error: RequestError) -> Response:
        response = problem(error.status, error.code, error.message)
        if error.status == 503:
            response.headers["Retry-After"] = "1"
        return response

    @app.errorhandler(Exception)
    def internal_error(error: Exception) -> Response:
        app.logger.exception("a request failed")
        return problem(500, "internal", "internal error; see the log of the server")

    @app.get("/")
    def page() -> Response:
        return app.send_static_file("index.html")

    @app.get("/favicon.ico")
    def icon() -> Response:
        return app.send_static_file("icon.svg")

    @app.get("/tree.css")
    def style() -> Response:
        return Response(tree_style(":root,.tsg"), mimetype="text/css")

    @app.get("/api/about")
    def about() -> Response:
        return answer({"tsgkit": __version__, **service.about()})

    @app.get("/api/examples")
    def examples() -> Response:
        return answer(service.examples())

    @app.post("/api/parse")
    def parse() -> Response:
        # waitress tells whether the client has closed its connection; other servers may not.
        is_gone = request.environ.get("waitress.client_disconnected", lambda: False)
        return answer(service.answer(json_of_request(), client_of(request.remote_addr or ""), is_gone))

    return app


def json_of_request() -> Any:
    """The JSON value of the current request."""
    if request.mimetype != "application/json":
        # Also prevents requests from pages of other sites, which may send plain forms only.
        raise RequestError(415, "type", "the request must have the Content-Type application/json")
    try:
        return json.loads(request.get_data().decode("utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise RequestError(400, "form", f"the request is not JSON in UTF-8: {error}") from None


def answer(value: dict[str, Any], status: int = 200) -> Response:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return Response(text.encode("utf-8", "replace"), status, mimetype="application/json")


def problem(status: int, code: str, message: str) -> Response:
    return answer({"error": {"code": code, "message": message}}, status)
