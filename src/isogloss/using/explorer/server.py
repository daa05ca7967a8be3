"""The explorer's server: 127.0.0.1 alone, a token in the address, one page without requests to others."""

import secrets
import socket
import webbrowser
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from hmac import compare_digest
from importlib.resources import files
from typing import Any

from isogloss.core.errors import ConfigError, IsoglossError, one_line
from isogloss.core.untrusted import fitting, parse_json
from isogloss.using.explorer import Explorer

HOST = "127.0.0.1"

LONGEST_BODY = 64 * 1024
"""Bytes of a request."""

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, JSONResponse, Response
    from starlette.routing import Route
except ModuleNotFoundError as error:
    raise ConfigError(
        f'explore: the package {error.name} is not installed. Install: pip install "isogloss[explore]"'
    ) from error


def application(explorer: Explorer, token: str, hosts: frozenset[str]) -> Starlette:
    """Return the application: the page at /, and each question at /api/NAME with JSON arguments."""
    questions: dict[str, Callable[..., dict[str, Any]]] = {
        name: getattr(explorer, name) for name in ("study", "sentences", "answer", "disagreements", "words")
    }
    text, policy = page()

    def allowed(request: Request) -> bool:
        """Other sites may neither ask (token) nor reach the server by a name of their own (host)."""
        request_token = request.query_params.get("token") or request.headers.get("x-token", "")
        return request.headers.get("host", "") in hosts and compare_digest(
            request_token.encode(), token.encode()
        )

    async def show(request: Request) -> Response:
        if not allowed(request):
            return Response("The address lacks its token: copy it from the terminal.", status_code=403)
        headers = {
            "content-security-policy": policy,
            "referrer-policy": "no-referrer",
            "cache-control": "no-store",
        }
        return HTMLResponse(text, headers=headers)

    async def answer(request: Request) -> Response:
        question = questions.get(request.path_params["name"])
        if not allowed(request) or question is None:
            return JSONResponse({"error": "not allowed"}, status_code=403)
        try:
            body = fitting(dict[str, Any], parse_json(await _body(request)))
            return JSONResponse(await run_in_threadpool(question, **body))
        except (IsoglossError, ValueError, TypeError) as error:
            return JSONResponse({"error": one_line(error)}, status_code=400)

    return Starlette(routes=[Route("/", show), Route("/api/{name}", answer, methods=["POST"])])


def page() -> tuple[str, str]:
    """Return the page and its content security policy: one script and one style sheet, by their hashes."""
    folder = files("isogloss.using.explorer")
    style, script, body = (
        (folder / name).read_text(encoding="utf-8") for name in ("page.css", "page.js", "page.html")
    )
    text = body.replace("/* page.css */", style).replace("/* page.js */", script)
    hashes = [b64encode(sha256(part.encode()).digest()).decode() for part in (style, script)]
    policy = (
        f"default-src 'none'; connect-src 'self'; style-src 'sha256-{hashes[0]}'; "
        f"script-src 'sha256-{hashes[1]}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return text, policy


def serve(explorer: Explorer, *, port: int = 0, browser: bool = True, quiet: bool = False) -> None:
    """Serve the page until Ctrl-C; ConfigError where the port is taken."""
    listener = socket.socket()
    try:
        listener.bind((HOST, port))
    except OSError as error:
        raise ConfigError(
            f"--port {port}: {error.strerror}. Choose another port, or 0 for a free one."
        ) from error
    address, token = f"{HOST}:{listener.getsockname()[1]}", secrets.token_urlsafe(16)
    url = f"http://{address}/?token={token}"
    if not quiet:
        print(f"{url}\nCtrl-C ends it.", flush=True)  # noqa: T201 (the address is the command's result)
    hosts = frozenset({address, address.replace(HOST, "localhost")})
    config = uvicorn.Config(application(explorer, token, hosts), log_level="warning", access_log=False)
    if browser:
        webbrowser.open(url)
    uvicorn.Server(config).run(sockets=[listener])


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LONGEST_BODY:
            raise ValueError(f"the request has more than {LONGEST_BODY} bytes")
    return body or b"{}"
