"""A local S3 server (moto's) in a separate process, which reads commands from its input.

"away" and "back": every connection breaks off, or none. "hold" and "go": leases of runs wait, or do not. So
processes that start at different times meet before the first run starts. "held" returns the number of waiting
machines (``environment_of`` gives each a name that its requests contain). "counts" returns the requests since
the last time, as JSON: by method and name of the file.

Requests are answered sequentially, because moto checks for an object and then writes it, in two steps. A real
server does both in one step.
"""

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import SHUT_RDWR
from threading import Event
from typing import Any

BUCKET = "bucket"


@dataclass
class S3:
    """A running server: its address, and the environment in which isogloss finds it."""

    process: subprocess.Popen[str]
    address: str

    def environment_of(self, machine: str = "") -> Mapping[str, str]:
        """Return the environment that lets a process find the server and identify itself by a name."""
        return {
            "AWS_SDK_UA_APP_ID": machine,
            "AWS_ENDPOINT_URL_S3": self.address,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def tell(self, command: str) -> str:
        """Give a command. Return what it says when it is obeyed."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the server has ended at {command!r}"
        return line.strip()


@contextmanager
def s3_server() -> Iterator[S3]:
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout
    try:
        yield S3(process, process.stdout.readline().strip())
    finally:
        process.kill()
        process.wait()


def serve() -> None:
    """Answer at a free port until the input ends. Say the address first, then each command obeyed."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    application = DomainDispatcherApplication(create_backend_app)
    lock = threading.Lock()
    away = Event()
    free_event = Event()
    free_event.set()
    held_parts: set[str] = set()
    requests: Counter[str] = Counter()

    def count() -> str:
        counts = json.dumps(requests)
        requests.clear()
        return counts

    obey: dict[str, Callable[[], object]] = {
        "away": away.set,
        "back": away.clear,
        "hold": free_event.clear,
        "held": lambda: len(held_parts),
        "go": free_event.set,
        "counts": count,
    }

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        if "/.claims/" in environ["PATH_INFO"] and "/.claims/check." not in environ["PATH_INFO"]:
            if not free_event.is_set():
                held_parts.add(environ["HTTP_USER_AGENT"].partition(" app/")[2])
            free_event.wait()
        is_listed = "list-type" in environ["QUERY_STRING"]
        requests["LIST" if is_listed else f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"] += 1
        if away.is_set():
            environ["werkzeug.socket"].shutdown(SHUT_RDWR)
            return []
        with lock:
            return list(application(environ, start))

    server = make_server("127.0.0.1", 0, answer, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    make_bucket(address)
    print(address, flush=True)  # noqa: T201 (that is how it speaks)
    for line in sys.stdin:
        print(obey[line.strip()](), flush=True)  # noqa: T201


def make_bucket(address: str) -> None:
    import boto3

    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=address, **keys).create_bucket(Bucket=BUCKET)


if __name__ == "__main__":
    serve()
