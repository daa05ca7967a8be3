"""The explorer's server: only 127.0.0.1, a token in the address, one page without requests to others."""

import asyncio
import logging
import secrets
import signal
import socket
import threading
import webbrowser
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from hashlib import sha256
from hmac import compare_digest
from html import escape
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_type_hints

from isogloss.core.errors import ConfigError, IsoglossError, one_line
from isogloss.core.untrusted import convert_json, parse_json
from isogloss.features.explorer.explorer import Explorer

HOST = "127.0.0.1"

QUESTIONS = ("study", "sentences", "answer", "answers", "disagreements", "words", "neighbours")
"""Methods of the explorer that the page may call."""

LONGEST_BODY = 64 * 1024
"""Bytes of a request."""

REQUEST_SECONDS = 10.0
MOST_CONNECTIONS = 256
"""Seconds in which a request has to arrive, and connections at once: further ones are refused."""

CLOSING_SECONDS = 1
"""Seconds in which requests that are being answered may end when the server does."""

SIGNALS = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, JSONResponse, Response
    from starlette.routing import Route
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ModuleNotFoundError as error:
    raise ConfigError(
        f'explore: the package {error.name} is not installed. Install: pip install "isogloss[explore]"'
    ) from error


def application(
    explorer: Explorer, token: str, hosts: frozenset[str], request_seconds: float = REQUEST_SECONDS
) -> Starlette:
    """Return the application: the page at /, and each question at /api/NAME with JSON arguments."""
    questions: dict[str, Callable[..., dict[str, Any]]] = {
        name: getattr(explorer, name) for name in QUESTIONS
    }
    text, policy = page()

    def is_allowed(request: Request) -> bool:
        """Other sites may neither ask (token) nor reach the server by their own name (host)."""
        request_token = request.query_params.get("token") or request.headers.get("x-token", "")
        return request.headers.get("host", "") in hosts and compare_digest(
            request_token.encode(), token.encode()
        )

    async def show(request: Request) -> Response:
        if not is_allowed(request):
            return Response("The address lacks its token: copy it from the terminal.", status_code=403)
        headers = {
            "content-security-policy": policy,
            "referrer-policy": "no-referrer",
            "cache-control": "no-store",
        }
        return HTMLResponse(text, headers=headers)

    async def answer(request: Request) -> Response:
        question = questions.get(request.path_params["name"])
        if not is_allowed(request) or question is None:
            return JSONResponse({"error": "not allowed"}, status_code=403)
        try:
            async with asyncio.timeout(request_seconds):
                content = await _body(request)
            body = convert_json(dict[str, Any], parse_json(content))
            return JSONResponse(await run_in_threadpool(question, **_check_arguments(question, body)))
        except TimeoutError:
            message = f"the request did not arrive within {request_seconds:.0f} s"
            return JSONResponse({"error": message}, status_code=408, headers={"connection": "close"})
        except (IsoglossError, ValueError, TypeError) as error:
            return JSONResponse({"error": one_line(error)}, status_code=400)

    return Starlette(routes=[Route("/", show), Route("/api/{name}", answer, methods=["POST"])])


def _check_arguments(question: Callable[..., Any], body: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a question in their types. Raises ValueError for an invalid one."""
    types = get_type_hints(question)
    arguments = {}
    for name, value in body.items():
        try:
            arguments[name] = convert_json(types.get(name, object), value)
        except ValueError as error:
            raise ValueError(f"{name:.60}: {error}") from None
    return arguments


def page() -> tuple[str, str]:
    """Return the page and its content security policy: one script and one style sheet, by their hashes."""
    folder = files("isogloss.features.explorer")
    style, script, body = (
        (folder / name).read_text(encoding="utf-8") for name in ("page.css", "page.js", "page.html")
    )
    text = body.replace("/* page.css */", style).replace("/* page.js */", script)
    hashes = [b64encode(sha256(part.encode()).digest()).decode() for part in (style, script)]
    policy = (
        f"default-src 'none'; img-src data:; connect-src 'self'; style-src 'sha256-{hashes[0]}'; "
        f"script-src 'sha256-{hashes[1]}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return text, policy


def serve(explorer: Explorer, *, port: int = 0, browser: bool = True, quiet: bool = False) -> None:
    """Serve the page until Ctrl-C. Raises ConfigError if the port is taken.

    SIGTERM and SIGHUP are raised again when the server has ended.
    """
    listener = socket.socket()
    try:
        listener.bind((HOST, port))
        listener.listen()  # A browser may ask before the server has started.
    except OSError as error:
        raise ConfigError(
            f"--port {port}: {error.strerror}. Choose another port, or 0 for a free one."
        ) from error
    address, token = f"{HOST}:{listener.getsockname()[1]}", secrets.token_urlsafe(16)
    url = f"http://{address}/?token={token}"
    if not quiet:
        print(f"{url}\nCtrl-C ends it.", flush=True)  # noqa: T201 (the address is the command's result)
    hosts = frozenset({address, address.replace(HOST, "localhost")})
    server = Server(server_settings(application(explorer, token, hosts)))
    with _show_in_browser(url) if browser else nullcontext():
        server.run(sockets=[listener])
    for signal_number in server.received:
        if signal_number != signal.SIGINT:
            signal.raise_signal(signal_number)


def server_settings(app: Starlette, request_seconds: float = REQUEST_SECONDS) -> uvicorn.Config:
    """Return the settings of the server: its limits, without lines about requests."""

    class Protocol(H11Protocol):  # type: ignore[misc]
        """HTTP with a time limit for requests: the library waits for headers without end."""

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            if len(self.connections) > MOST_CONNECTIONS:
                transport.close()
                return
            self._watch()

        def _watch(self) -> None:
            request = self.cycle
            self.loop.call_later(request_seconds, self._close_unless_asked, request)

        def _close_unless_asked(self, request: Any) -> None:
            """Close an idle connection. Check one with an open request again later."""
            if self.transport.is_closing():
                return
            if self.cycle is request and (request is None or self.cycle.response_complete):
                self.transport.close()
            else:
                self._watch()

    return uvicorn.Config(
        app,
        http=Protocol,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=CLOSING_SECONDS,
    )


class Server(uvicorn.Server):  # type: ignore[misc]
    """A server that ends at the first signal."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.received: list[int] = []

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End at a signal. The library raises SIGINT again, and leaves SIGHUP to others."""
        log = logging.getLogger("uvicorn.error")

        def end(signal_number: int, _: object) -> None:
            self.received.append(signal_number)
            self.should_exit = log.disabled = True  # It would show requests that are cancelled as errors.

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers = {
            signal_number: signal.signal(signal_number, end)
            for signal_number in SIGNALS
            if signal.getsignal(signal_number) != signal.SIG_IGN
        }
        try:
            yield
        finally:
            log.disabled = False
            for signal_number, handler in handlers.items():
                signal.signal(signal_number, handler)


@contextmanager
def _show_in_browser(url: str) -> Iterator[None]:
    """Open an address in the browser by a file that leads to it: all users see the words of commands."""
    with suppress(OSError), TemporaryDirectory(prefix="isogloss-") as folder:  # Only this user can read it.
        file = Path(folder) / "explore.html"
        file.write_text(f'<meta http-equiv="refresh" content="0;url={escape(url)}">', encoding="utf-8")
        webbrowser.open(file.as_uri())
        yield
        return
    yield


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LONGEST_BODY:
            raise ValueError(f"the request has more than {LONGEST_BODY} bytes")
    return body or b"{}"
