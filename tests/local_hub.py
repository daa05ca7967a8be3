"""A local hub of datasets, with the endpoints that the Hugging Face hub's client and a download use.

It serves the files of repositories at commits, and plain files under any other path, as GitHub does.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote, urlsplit

Files = dict[str, bytes]
API = re.compile(
    r"/api/datasets/(?P<name>[\w.-]+/[\w.-]+)(/(?P<verb>revision|tree)/(?P<revision>[^/]+)(/(?P<folder>.+))?)?/?"
)
RESOLVE = re.compile(r"/datasets/(?P<name>[\w.-]+/[\w.-]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
GONE = {"X-Error-Code": "RepoNotFound"}


@dataclass
class LocalHub:
    """Files by repository and branch, and by plain path. Every request is written down."""

    address: str = ""
    datasets: dict[str, dict[str, Files]] = field(default_factory=dict)
    plain: Files = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def put(self, name: str, files: Files, branch: str = "main") -> str:
        """Add a branch of a dataset, and give its commit."""
        self.datasets.setdefault(name, {})[branch] = files
        return commit_of(files)

    def files(self, name: str, revision: str) -> tuple[str, Files] | None:
        for branch, files in self.datasets.get(name, {}).items():
            if unquote(revision) in (branch, commit_of(files)):
                return commit_of(files), files
        return None

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        if (body := self.plain.get(unquote(path))) is not None:
            return 200, {"ETag": f'"{sha1(body).hexdigest()}"'}, body
        if match := API.fullmatch(path):
            result = self.files(match["name"], match["revision"] or "main")
            if result is None:
                is_there = match["name"] in self.datasets
                return 404, {"X-Error-Code": "RevisionNotFound"} if is_there else GONE, b"{}"
            commit, files = result
            text_below = f"{match['folder']}/" if match["folder"] else ""
            listed_entries = [
                entry(name, body) for name, body in files.items() if name.startswith(text_below)
            ]
            body = {"id": match["name"], "sha": commit, "siblings": [{"rfilename": name} for name in files]}
            return 200, {}, json.dumps(listed_entries if match["verb"] == "tree" else body).encode()
        if match := RESOLVE.fullmatch(path):
            result = self.files(match["name"], match["revision"])
            body = result and result[1].get(unquote(match["path"]))
            if not result or body is None:
                return 404, {"X-Error-Code": "EntryNotFound" if result else "RepoNotFound"}, b""
            return 200, {"X-Repo-Commit": result[0], "ETag": f'"{sha1(body).hexdigest()}"'}, body
        return 404, {}, b""


def entry(name: str, body: bytes) -> dict[str, object]:
    return {"type": "file", "path": name, "size": len(body), "oid": sha1(body).hexdigest()}


def commit_of(files: Files) -> str:
    return sha1(repr(sorted(files.items())).encode()).hexdigest()


@contextmanager
def local_hub() -> Iterator[LocalHub]:
    hub = LocalHub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def reply(self, *, with_body: bool) -> None:
            path = urlsplit(self.path).path
            hub.requests.append(f"{self.command} {path}")
            status, headers, body = hub.answer(path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.reply(with_body=False)

        def do_GET(self) -> None:
            self.reply(with_body=True)

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    hub.address = f"http://127.0.0.1:{http.server_address[1]}"
    Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield hub
    http.shutdown()
    http.server_close()
