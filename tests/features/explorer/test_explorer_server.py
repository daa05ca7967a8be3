"""The explorer's server ends at the first signal, bounds requests, and keeps its token."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from forked import Forked

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
from isogloss.features.explorer import server as module

HOST = "there"
QUESTIONS = ("study", "sentences", "answer", "answers", "disagreements", "words", "neighbours")
SERVES = """
from types import SimpleNamespace
from isogloss import cli
from isogloss.cli import model_verbs
from isogloss.features.explorer import server

def explore(words, **_):
    server.serve(SimpleNamespace(**dict.fromkeys({questions}, lambda: {{}})), browser=False)

cli._command = lambda: explore
cli.main(["explore"])
"""
PATIENCE = 120.0
"""Seconds a busy machine may take until what is waited for."""


def half_of(*, headers: bool) -> bytes:
    """Return the beginning of a request: half of its headers, or half of its body."""
    start = f"POST /api/study HTTP/1.1\r\nhost: {HOST}\r\n".encode()
    return start if not headers else start + b"x-token: secret\r\ncontent-length: 100\r\n\r\n{"


@pytest.fixture
def explorer() -> SimpleNamespace:
    return SimpleNamespace(**dict.fromkeys(QUESTIONS, dict))


@pytest.fixture
def serve(explorer) -> Iterator[Callable[[float], int]]:
    """Give a function that serves with a time limit for requests and returns the port."""
    running = []

    def start(seconds: float) -> int:
        app = module.application(explorer, "secret", frozenset({HOST}), seconds)
        server = module.Server(module.server_settings(app, seconds))
        listener = socket.socket()
        listener.bind((module.HOST, 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        running.append((server, thread))
        while not server.started:
            time.sleep(0.01)
        return listener.getsockname()[1]

    yield start
    for server, thread in running:
        server.should_exit = True
        thread.join()


def answer_to(port: int, content: bytes) -> bytes:
    """Return all that a server sends until it closes the connection."""
    with socket.create_connection((module.HOST, port), PATIENCE) as connection:
        connection.sendall(content)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "status"),
    [(b"", b""), (b"POST /api", b""), (half_of(headers=False), b""), (half_of(headers=True), b"408")],
    ids=["nothing", "half a line", "half the headers", "half the body"],
)
def test_a_request_that_does_not_arrive_in_time_is_closed(serve, content, status):
    answer = answer_to(serve(0.1), content)
    assert status in answer.partition(b"\r\n")[0]
    assert not status or "did not arrive within" in json.loads(answer.partition(b"\r\n\r\n")[2])["error"]


@pytest.mark.slow
def test_connections_are_bounded_and_others_are_answered_meanwhile(serve, monkeypatch):
    monkeypatch.setattr(module, "MOST_CONNECTIONS", 4)
    port = serve(PATIENCE)
    connections = [socket.create_connection((module.HOST, port), PATIENCE) for _ in range(3)]
    request = (
        f"POST /api/study HTTP/1.1\r\nhost: {HOST}\r\nx-token: secret\r\nconnection: close\r\n\r\n".encode()
    )
    assert b"200 OK" in answer_to(port, request)
    connections += [socket.create_connection((module.HOST, port), PATIENCE) for _ in range(3)]
    assert connections[-1].recv(1) == b""
    for connection in connections:
        connection.close()


@pytest.fixture
def heeds_hangups() -> Iterator[None]:
    """Let new processes end at SIGHUP even where the tests were started by nohup."""
    old_handler = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, old_handler)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals of Unix")
@pytest.mark.usefixtures("heeds_hangups")
@pytest.mark.parametrize("half", [False, True], ids=["idle", "half a request"])
@pytest.mark.parametrize(("number", "exit_code"), [("SIGINT", 0), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_the_first_signal_ends_it_and_nothing_false_is_said(number, exit_code, half, monkeypatch):
    running = Forked(
        [sys.executable, "-c", SERVES.format(questions=QUESTIONS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    port, token = re.search(r":(\d+)/\?token=(\S+)", running.stdout.readline()).groups()
    connection = socket.create_connection((module.HOST, int(port)), PATIENCE)
    headers = (f"host: {module.HOST}:{port}", f"x-token: {token}", "content-length: 2")
    ask = "\r\n".join(("POST /api/study HTTP/1.1", *headers, "", ""))
    connection.sendall(f"{ask}{{}}".encode())
    assert b"200 OK" in connection.recv(65536)  # It serves, and heeds signals.
    if half:
        connection.sendall(ask.encode())
    else:
        connection.close()
    running.send_signal(getattr(signal, number))
    _, message = running.communicate()
    connection.close()
    assert running.wait(PATIENCE) == exit_code
    assert message == ("" if exit_code == 0 else "isogloss: ended.\n")


def test_the_browser_is_led_to_the_address_by_a_file_of_this_user_alone(monkeypatch):
    opened_pages = []

    def open_page(address: str) -> None:
        path = Path(address.removeprefix("file://"))
        opened_pages.append((address, path.read_text(encoding="utf-8"), path.parent.stat().st_mode & 0o077))

    monkeypatch.setattr(module.webbrowser, "open", open_page)
    with module._show_in_browser("http://127.0.0.1:1/?token=secret"):
        ((address, text, mode_bits),) = opened_pages
        assert "secret" not in address
        assert 'url=http://127.0.0.1:1/?token=secret"' in text
        assert mode_bits == 0
    assert not Path(address.removeprefix("file://")).exists()


def test_a_page_that_cannot_be_opened_does_not_end_the_server(monkeypatch):
    def fail(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "TemporaryDirectory", fail)
    is_serving = False
    with module._show_in_browser("http://127.0.0.1:1/?token=secret"):
        is_serving = True
    assert is_serving
