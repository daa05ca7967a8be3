"""Processes that start at once: each is forked from a process that has imported everything.

A new Python takes seconds to import torch and transformers. Tests kill, pause or end processes, which need a
separate number, streams, environment, folder and exit code. Forked processes have these. Other tests start
`isogloss` as a program (cli/test_streams.py).
"""

import fcntl
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from multiprocessing import util
from pathlib import Path
from runpy import run_module, run_path
from typing import Any

from filelock import FileLock

PROGRAM = (sys.executable, "-m", "isogloss")


class Forked:
    """A process of this Python with a module, script or code; used as one of ``subprocess.Popen`` is."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int | None = None,
        stderr: int | None = None,
        start_new_session: bool = False,
    ) -> None:
        assert words[0] == sys.executable
        self.args = [str(word) for word in words]
        self.returncode = None
        request = {
            "words": self.args[1:],
            "environment": dict(os.environ if env is None else env),
            "folder": str(cwd or Path.cwd()),
            "session": start_new_session,
            "hangups": signal.getsignal(signal.SIGHUP) != signal.SIG_IGN,
        }
        streams = [_stream(stdin, 0), _stream(stdout, 1), _stream(stderr, 2)]
        (_, self.stdout, self.stderr), theirs = zip(*streams, strict=True)
        self._line = _connect()
        socket.send_fds(self._line, [b"."], theirs)
        for index in theirs:
            os.close(index)
        self._line.sendall(json.dumps(request).encode() + b"\n")
        self._answers = self._line.makefile("r")
        self.pid = int(self._answers.readline())

    def poll(self) -> int | None:
        """Return the exit code, minus the signal's number after a signal, or None during the run."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._line], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(int(self._answers.readline()))
            self._answers.close()
            self._line.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[Any, Any]:
        """Read both streams sequentially, and wait."""
        streams = [stream and stream.read() for stream in (self.stdout, self.stderr)]
        self.wait(timeout)
        return streams[0], streams[1]

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def run_to_end(
    words: Sequence[object], *, check: bool = False, **_: object
) -> subprocess.CompletedProcess[str]:
    """Run a process to its end, used as ``subprocess.run`` is; what it prints is captured."""
    process = Forked([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = process.communicate()
    completed_process = subprocess.CompletedProcess(process.args, process.wait(), output, errors)
    if check:
        completed_process.check_returncode()
    return completed_process


def _stream(stdin: int | None, inherited_value: int) -> tuple[Any, int]:
    """Return the test's end of a stream, if any, and the end of the process."""
    if stdin == subprocess.PIPE:
        ours, theirs = os.pipe()
        return os.fdopen(ours, encoding="utf-8"), theirs
    if stdin == subprocess.DEVNULL:
        return None, os.open(os.devnull, os.O_RDWR)
    return None, os.dup(inherited_value if stdin is None else stdin)


def _connect() -> socket.socket:
    line = socket.socket(socket.AF_UNIX)
    line.connect(_server())
    return line


_lines: list[socket.socket] = []
"""Message that keeps the server for further requests of this process."""


@cache
def _server() -> str:
    """Return the address of the server of all processes that test, which the first of them starts."""
    name = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    address = str(Path(tempfile.gettempdir(), f"isogloss-{name}"))
    with FileLock(f"{address}.lock"):
        _lines.append(socket.socket(socket.AF_UNIX))
        with suppress(OSError):
            _lines[0].connect(address)
            return address
        server = socket.socket(socket.AF_UNIX)
        server.bind(address)
        server.listen()
        command = [sys.executable, __file__, str(server.fileno())]
        subprocess.Popen(command, pass_fds=[server.fileno()], start_new_session=True)
        server.close()
        _lines[0].connect(address)
    return address


@dataclass
class Server:
    """Server that forks a process for each request, and reports its number and its end."""

    listening: socket.socket
    running: dict[int, socket.socket] = field(default_factory=dict)
    ready: selectors.DefaultSelector = field(default_factory=selectors.DefaultSelector)

    def serve(self) -> list[str]:
        """Return, in each new process, the words of its command."""
        wake_sockets, wakes = socket.socketpair()
        wakes.setblocking(False)
        signal.set_wakeup_fd(wakes.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for waited_seconds in (self.listening, wake_sockets):
            self.ready.register(waited_seconds, selectors.EVENT_READ)
        while True:
            for key, _ in self.ready.select():
                if key.fileobj is self.listening:
                    self.ready.register(self.listening.accept()[0], selectors.EVENT_READ)
                elif key.fileobj is wake_sockets:
                    wake_sockets.recv(4096)
                    self.tell_of_ended()
                elif begun := self.forked(key.fileobj):
                    wakes.close()
                    return become(*begun)
            if len(self.ready.get_map()) == 2 and not self.running:
                address = Path(self.listening.getsockname())
                for path in (address, address.with_name(f"{address.name}.lock")):
                    path.unlink(missing_ok=True)
                sys.exit()

    def forked(self, line: socket.socket) -> tuple[Mapping[str, Any], Sequence[int]] | None:
        """Read a request, if the line is open, and fork. Return the request only in the new process."""
        self.ready.unregister(line)
        _, streams, *_ = socket.recv_fds(line, 1, 3)
        if not streams:
            return line.close()
        with line.makefile("rb") as lines:
            request = json.loads(lines.readline())
        if pid := os.fork():
            for stream in streams:
                os.close(stream)
            line.sendall(f"{pid}\n".encode())
            self.running[pid] = line
            return None
        signal.set_wakeup_fd(-1)
        for other_line in (
            line,
            *self.running.values(),
            *(key.fileobj for key in self.ready.get_map().values()),
        ):
            other_line.close()
        self.ready.close()
        return request, streams

    def tell_of_ended(self) -> None:
        with suppress(ChildProcessError):
            while (status := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                with self.running.pop(status[0]) as line, suppress(OSError):
                    line.sendall(f"{status[1]}\n".encode())


def become(request: Mapping[str, Any], streams: Sequence[int]) -> list[str]:
    """Be the process of a program that has just begun."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for index, stream in enumerate(streams):
        os.dup2(stream, index)
        os.close(stream)
    # The server may have been started by nohup.
    signal.signal(signal.SIGHUP, signal.SIG_DFL if request["hangups"] else signal.SIG_IGN)
    if request["session"]:
        os.setsid()
    if request["session"] and os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[:1] = [
        request["folder"],
        *(part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part),
    ]
    for name, index, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        stream = os.fdopen(index, mode, encoding="utf-8", errors="backslashreplace", closefd=False)
        setattr(sys, name, stream)
    util.spawnv_passfds = Understudy(util.spawnv_passfds)
    return request["words"]


class Understudy:
    """A process with everything imported, which waits to become the fork server of ``--jobs``."""

    def __init__(self, start: Callable[..., int]) -> None:
        self.start = start
        self.line, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid:
            theirs.close()
        else:
            self.line.close()
            self.wait(theirs)

    def __call__(self, path: str, words: Sequence[str], numbers: Sequence[int]) -> int:
        """Start a process of this Python, which gets open files. Return its number."""
        program = os.fsdecode(words[-1])
        if self.line.fileno() < 0 or "multiprocessing.forkserver" not in program:
            return self.start(path, words, numbers)
        socket.send_fds(self.line, [b"."], numbers)
        self.line.sendall(json.dumps([program, list(numbers), dict(os.environ)]).encode() + b"\n")
        self.line.close()
        return self.pid

    def wait(self, line: socket.socket) -> None:
        """Run the code of a process, with its files under the numbers that they have in it."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _, received_files, *_ = socket.recv_fds(line, 1, 16)
        if not received_files:
            os._exit(0)
        with line.makefile("rb") as lines:
            program, numbers, environment = json.loads(lines.readline())
        line.close()
        aside_flags = [fcntl.fcntl(index, fcntl.F_DUPFD, 100) for index in received_files]
        for value in received_files:
            os.close(value)
        for value, folder in zip(aside_flags, numbers, strict=True):
            os.dup2(value, folder)
            os.close(value)
        os.environ.update(environment)
        exec(program, {"__name__": "__main__"})
        os._exit(0)


def run(words: Sequence[str]) -> None:
    """Do what Python does with the words of its command line."""
    match words:
        case "-m", module, *remainder:
            sys.argv[1:] = remainder
            run_module(module, run_name="__main__", alter_sys=True)
        case "-c", program, *remainder:
            sys.argv[:] = ["-c", *remainder]
            exec(program, {"__name__": "__main__"})
        case script, *remainder:
            sys.argv[1:] = remainder
            sys.path.insert(0, str(Path(script).parent))
            run_path(script, run_name="__main__")


if __name__ == "__main__":
    from isogloss.engine.fork_server import IMPORTED_ONCE

    os.fsync = lambda index: None  # No test cuts the power, and disks are slow.
    for module in ("isogloss.cli", "isogloss.engine.engines", *IMPORTED_ONCE):
        import_module(module)
    run(Server(socket.socket(fileno=int(sys.argv[1]))).serve())
