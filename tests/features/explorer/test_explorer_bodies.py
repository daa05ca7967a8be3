"""Requests that the explorer cannot understand are answered in a line, whatever their body is."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
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

    sentences = answers = disagreements = words = neighbours = answer


def send_body(name: str, body: bytes, questions: Any = None) -> tuple[int, bytes]:
    """Send a request to the application as a server does. Return status and body of its answer."""
    from isogloss.features.explorer.server import application

    app = application(questions or Answers(), TOKEN, frozenset({HOST}))
    headers = [(b"host", HOST.encode()), (b"x-token", TOKEN.encode())]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
        "path": f"/api/{name}", "raw_path": f"/api/{name}".encode(), "query_string": b"",
        "headers": headers, "scheme": "http",
        "server": ("127.0.0.1", 1), "client": ("127.0.0.1", 1), "root_path": "",
    }  # fmt: skip
    parts = [body]
    sent_value = list[dict[str, Any]]()

    async def receive() -> dict[str, Any]:
        if parts:
            return {"type": "http.request", "body": parts.pop(), "more_body": False}
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent_value.append(message)

    # A browser that another test left open keeps the event loop of this thread running.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, app(scope, receive, send)).result()
    return sent_value[0]["status"], b"".join(message.get("body", b"") for message in sent_value[1:])


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
    status, answer = send_body(name, body)
    assert status == 400
    assert json.loads(answer)["error"]


class Questions:
    """Questions that fail where an argument is not of the type that the explorer's own questions state."""

    def __init__(self) -> None:
        from isogloss.features.explorer.explorer import Explorer
        from isogloss.features.explorer.server import QUESTIONS

        for name in QUESTIONS:
            setattr(self, name, self.checking(getattr(Explorer, name)))

    @staticmethod
    def checking(question: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(question)
        def ask(**arguments: Any) -> dict[str, Any]:
            for name, value in arguments.items():
                stated_value = question.__annotations__.get(name)
                assert stated_value is not str or isinstance(value, str)
                assert stated_value in (str, object, list[object]) or all(
                    isinstance(part, float) for part in value
                )
            return {}

        return ask


ODD = [None, True, -1, 10**300, 1e308, [], [[1]], [None], ["a"], {}, {"a": [1]}]
STATED = [
    *(("sentences", name) for name in ("route", "language")),
    *(("answer", name) for name in ("route", "point", "language")),
    *(("disagreements", name) for name in ("route", "language")),
    *(("words", name) for name in ("adjusted", "first", "second")),
    *(("neighbours", name) for name in ("adjusted", "first", "word")),
]


@pytest.mark.parametrize("value", ODD, ids=str)
@pytest.mark.parametrize(("name", "argument"), STATED)
def test_an_argument_of_another_type_is_refused_by_name(name, argument, value):
    status, answer = send_body(name, json.dumps({argument: value}).encode(), Questions())
    if argument == "point" and value == []:
        assert status == 200
    else:
        assert status == 400
        assert f"{argument}: " in json.loads(answer)["error"]


def test_a_request_with_its_arguments_is_answered():
    assert send_body("answer", b'{"route": "r", "point": [0.5], "text": "a"}') == (
        200,
        b'{"route":"r","point":[0.5]}',
    )
