"""The same work in several processes, as a launcher starts them."""

import os
import socket
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing import get_context
from typing import Any

from isogloss.engine.fork_server import IMPORTED_ONCE


def run_in_processes(count: int, work: Callable[..., Any], *arguments: Any, **message: str) -> None:
    """Run work(rank, …) in a number of processes. ``said`` are further environment variables."""
    with socket.socket() as free_socket:
        free_socket.bind(("127.0.0.1", 0))
        port = free_socket.getsockname()[1]
    place = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), **message}
    starting = get_context("forkserver")
    starting.set_forkserver_preload([*IMPORTED_ONCE, "torch.distributed.fsdp"])
    processes = [
        starting.Process(target=_begin, args=(rank, place, partial(work, rank, *arguments)))
        for rank in range(count)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [item.exitcode for item in processes] == [0] * count


def _begin(rank: int, place: Mapping[str, str], work: Callable[[], Any]) -> None:
    os.environ.update(place, RANK=str(rank), LOCAL_RANK=str(rank))
    work()
