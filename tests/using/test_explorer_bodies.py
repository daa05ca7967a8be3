"""Requests that the explorer cannot understand are answered in a line, whatever their body is."""

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

HOST = "127.0.0.1:1"
TOKEN = "secret"


class Answers:
    """Answers every question of the explorer with its arguments."""

    def study(self) -> dict[str, Any]:
        return {}

    def answer(self, route: str, point: list[float], text: object, language: str = "") -> dict[str, Any]:
        return {"route": route, "point": point}

    sentences = disagreements = words = answer


def asked(name: str, body: bytes) -> tuple[int, bytes]:
    """Send a request to the application as a server does; return status and body of its answer."""
    from isogloss.using.explorer.server import application

    app = application(Answers(), TOKEN, frozenset({HOST}))
    headers = [(b"host", HOST.encode()), (b"x-token", TOKEN.encode())]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
        "path": f"/api/{name}", "raw_path": f"/api/{name}".encode(), "query_string": b"",
        "headers": headers, "scheme": "http",
        "server": ("127.0.0.1", 1), "client": ("127.0.0.1", 1), "root_path": "",
    }  # fmt: skip
    parts = [body]
    sent = list[dict[str, Any]]()

    async def receive() -> dict[str, Any]:
        if parts:
            return {"type": "http.request", "body": parts.pop(), "more_body": False}
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 30_000,
        b'{"route":' * 7_000,
        b'{"route": ' + b"[" * 200 + b"]" * 200 + b"}",
        b'{"point": ' + b"9" * 5_000 + b"}",
        b'{"point": 1e999}',
        b'{"point": NaN}',
        b"[]",
        b"null",
        b'"x"',
        b"\xff",
        b"{",
        b'{"unknown": 1}',
        b'{"self": 1}',
        b'{"route": "\\ud800"}',
        b" " * 70_000,
    ],
    ids=lambda body: body[:12].decode(errors="replace"),
)
@pytest.mark.parametrize("name", ["study", "answer"])
def test_a_request_of_an_odd_body_is_refused_in_a_line(name, body):
    status, answer = asked(name, body)
    assert status == 400
    assert json.loads(answer)["error"]


def test_a_request_with_its_arguments_is_answered():
    assert asked("answer", b'{"route": "r", "point": [0.5], "text": "a"}') == (
        200,
        b'{"route":"r","point":[0.5]}',
    )
