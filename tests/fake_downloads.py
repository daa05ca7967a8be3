"""A local HTTP server that misbehaves on request, and archives made in memory: honest ones and traps."""

import io
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Behaviour = Callable[[BaseHTTPRequestHandler, bytes], None]


@dataclass
class Server:
    """Files by path. The behaviours of a path are used up one a request, the last one stays."""

    files: dict[str, bytes] = field(default_factory=dict)
    behaviours: dict[str, list[Behaviour]] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    port: int = 0

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}"

    def put(self, path: str, body: bytes, *behaviours: Behaviour) -> str:
        self.files[path] = body
        self.behaviours[path] = list(behaviours or [send()])
        return self.url(path)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.lstrip("/").partition("?")[0]
        self.requests.append((path, dict(handler.headers)))
        if path not in self.behaviours:
            handler.send_error(404)
            return
        todo = self.behaviours[path]
        (todo.pop(0) if len(todo) > 1 else todo[0])(handler, self.files[path])

    @property
    def starts(self) -> list[int]:
        """First byte of each requested range."""
        return [int(headers.get("Range", "bytes=0-")[6:-1]) for _, headers in self.requests]


def running() -> tuple[Server, ThreadingHTTPServer]:
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            server.answer(self)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Ignore clients that disconnect."""

    http = Quiet(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server.port = http.server_address[1]
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server, http


def send(
    *,
    etag: str = '"one"',
    cut: int | None = None,
    ranges: bool = True,
    headers: dict[str, str] | None = None,
    length: int | None = None,
    shift: int = 0,
) -> Behaviour:
    """Send the requested file or range: only ``cut`` bytes, with a false length, or a shifted range."""

    def behaviour(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        start = int(handler.headers.get("Range", "bytes=0-")[6:-1])
        fits = handler.headers.get("If-Range", etag) == etag
        part = bool(start) and ranges and fits
        if part and start >= len(body):
            handler.send_response(416)
            handler.send_header("Content-Range", f"bytes */{len(body)}")
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        first_start = start + shift if part else 0
        remaining_bodies = body[first_start:]
        handler.send_response(206 if part else 200)
        if part:
            handler.send_header("Content-Range", f"bytes {first_start}-{len(body) - 1}/{len(body)}")
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        if etag:
            handler.send_header("ETag", etag)
        if length != -1:
            handler.send_header("Content-Length", str(len(remaining_bodies) if length is None else length))
        handler.end_headers()
        handler.wfile.write(remaining_bodies if cut is None else remaining_bodies[:cut])

    return behaviour


def refuse(status: int, **headers: str) -> Behaviour:
    def behaviour(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return behaviour


def drip(seconds: float) -> Behaviour:
    """Send a byte every few hundredths of a second."""

    def behaviour(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        for place in range(len(body)):
            try:
                handler.wfile.write(body[place : place + 1])
            except OSError:
                return
            time.sleep(seconds)

    return behaviour


def hang(handler: BaseHTTPRequestHandler, _: bytes) -> None:
    time.sleep(1.0)


def drop(handler: BaseHTTPRequestHandler, _: bytes) -> None:
    """End the connection without a word."""


def send_chunks(*, cut: bool = False) -> Behaviour:
    """Send in chunks, without saying how much there is. ``cut``: without the last chunk."""

    def behaviour(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        middle_count = len(body) // 2
        for chunk in (body[:middle_count],) if cut else (body[:middle_count], body[middle_count:]):
            handler.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        if not cut:
            handler.wfile.write(b"0\r\n\r\n")

    return behaviour


Members = Iterable[tuple[str, bytes]]


def make_zip(members: Members, **options: object) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = int(options.get("mode", 0o100644)) << 16
            archive.writestr(info, body)
    return stream.getvalue()


def make_tar(members: Members, *, packed: bool = True) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz" if packed else "w") as archive:
        for name, body in members:
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return stream.getvalue()


def tarred_special(name: str, kind: bytes, target: str = "") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.type = kind
        info.linkname = target
        archive.addfile(info)
    return stream.getvalue()
