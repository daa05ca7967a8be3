"""A hub on this machine: it really receives commits, as the Hugging Face hub's client makes them."""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import yaml

ATTRIBUTES = ".gitattributes"
"""Files that the hub itself adds to a new repository."""
OWNER = "me"
TOKEN = "hf_mine"
STRANGER = "hf_of_a_reader"


@dataclass
class Repository:
    """Files by branch, and their commit messages."""

    private: bool
    branches: dict[str, dict[str, bytes]] = field(
        default_factory=lambda: {"main": {ATTRIBUTES: b"*.bin lfs"}}
    )
    messages: list[str] = field(default_factory=list)


@dataclass
class FakeHub:
    """Repositories by name, and large files by the digest of their content."""

    address: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)

    def answer(self, method: str, path: str, token: str, body: bytes) -> tuple[int, Any]:
        if method == "PUT":  # Its address is the permission.
            digest = path.removeprefix("/large/")
            assert sha256(body).hexdigest() == digest
            self.large[digest] = body
            return 200, {}
        if token not in (TOKEN, STRANGER):
            return 401, {"error": "Invalid username or password."}
        if path == "/api/validate-yaml":
            return self._validated(json.loads(body)["content"])
        if token == STRANGER:
            return 403, {"error": "You don't have the rights to create a model under the namespace"}
        if path == "/api/repos/create":
            return self._created(json.loads(body))
        name = re.match(r"/(?:api/models/)?([\w.-]+/[\w.-]+?)(?:\.git)?(?:/|$)", path)[1]
        if urlsplit(path).path == f"/api/models/{name}":
            return 200, {"id": name, "private": self.repositories[name].private, "siblings": []}
        return self._inside(self.repositories[name], f"{self.address}/{name}", path, body)

    def _validated(self, card: str) -> tuple[int, Any]:
        data = yaml.safe_load(card.split("---\n")[1])
        return (200, {"errors": [], "warnings": []}) if isinstance(data, dict) else (400, {"errors": []})

    def _created(self, request: dict[str, Any]) -> tuple[int, Any]:
        name = f"{request.get('organization') or OWNER}/{request['name']}"
        address = {"url": f"{self.address}/{name}", "name": name}
        if name in self.repositories:
            return 409, {"error": "You already created this model repo", **address}
        self.repositories[name] = Repository(private=request.get("visibility") == "private")
        return 200, address

    def _inside(self, repository: Repository, address: str, path: str, body: bytes) -> tuple[int, Any]:
        verb, branch = urlsplit(path).path.split("/")[-2:]
        if branch == "refs":
            heads = [
                {"name": name, "ref": f"refs/heads/{name}", "targetCommit": "c" * 40}
                for name in repository.branches
            ]
            return 200, {"branches": heads, "converts": [], "tags": []}
        if verb == "branch":
            repository.branches.setdefault(branch, dict(repository.branches["main"]))
            return 200, {}
        if verb == "preupload":
            return 200, {
                "files": [
                    {
                        "path": file["path"],
                        "uploadMode": "lfs" if file["path"].endswith(".safetensors") else "regular",
                        "shouldIgnore": False,
                    }
                    for file in json.loads(body)["files"]
                ]
            }
        if verb == "objects":
            objects = json.loads(body)["objects"]
            hrefs = [{"upload": {"href": f"{self.address}/large/{row['oid']}"}} for row in objects]
            pairs = zip(objects, hrefs, strict=True)
            return 200, {"transfer": "basic", "objects": [{**pair, "actions": href} for pair, href in pairs]}
        if verb == "tree":
            files = repository.branches[branch]
            return 200, [self._entry(path, content) for path, content in files.items()]
        assert verb == "commit", path
        for line in (json.loads(item) for item in body.splitlines()):
            self._apply(line["key"], line["value"], repository, branch)
        return 200, {"commitUrl": f"{address}/commit/{'c' * 40}", "commitOid": "c" * 40}

    def _entry(self, path: str, content: bytes) -> dict[str, Any]:
        git = sha1(b"blob %d\0" % len(content) + content).hexdigest()
        digest = sha256(content).hexdigest()
        large_value = (
            {"lfs": {"oid": digest, "size": len(content), "pointerSize": 1}} if digest in self.large else {}
        )
        return {"type": "file", "path": path, "size": len(content), "oid": git, **large_value}

    def _apply(self, key: str, value: dict[str, Any], repository: Repository, branch: str) -> None:
        files = repository.branches[branch]
        if key == "header":
            repository.messages.append(value["summary"])
        elif key == "file":
            files[value["path"]] = base64.b64decode(value["content"])
        elif key == "lfsFile":
            files[value["path"]] = self.large[value["oid"]]
        else:
            assert key == "deletedFile"
            del files[value["path"]]


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    """Serve an empty hub."""
    hub = FakeHub()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            status, answer = hub.answer(self.command, self.path, token, body)
            encodings = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(encodings)))
            self.end_headers()
            self.wfile.write(encodings)

        do_GET = do_POST = do_PUT = _answer

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
