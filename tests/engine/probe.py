"""State of a process of ``--jobs`` at its start, and its cost until then."""

import json
import os
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

from isogloss.engine import fork_server


def report(channel: Connection) -> None:
    spent = time.process_time()
    import torch

    threads = [len(list(Path(f"/proc/{process}/task").iterdir())) for process in (os.getpid(), os.getppid())]
    channel.send({"seconds": spent, "threads": threads, "cuda": torch.cuda.is_initialized()})


def main() -> None:
    fork_server.start_early(2)
    facts = {"torch here": "torch" in sys.modules}
    method = fork_server.start_method(uses_devices=False)
    ours, theirs = method.Pipe()
    process = method.Process(target=report, args=(theirs,))  # type: ignore[attr-defined]
    process.start()
    facts |= ours.recv()
    process.join()
    start_time_before = time.process_time()
    import torch  # noqa: F401

    sys.stdout.write(json.dumps({**facts, "torch": time.process_time() - start_time_before}))
