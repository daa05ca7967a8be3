"""A Ray cluster of several nodes on this machine, and which of them made which run."""

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from isogloss.store.leases import LEASES
from killed import PATIENCE, descendants

NODE = "ISOGLOSS_TEST_NODE"
"""Environment variable with the name of the node that a process belongs to."""

SAMPLE_EVERY = 0.3
"""Seconds between two checks of the cluster's processes, less than the time to import torch."""

MEMORY = 78 * 2**20
"""Bytes of shared memory of a node."""

NO_CARD = "GPU-of-no-machine"
"""Name of the GPU that each node's processes are shown, unless they are given one, or none."""


PORTS = (
    "metrics_agent_port",
    "metrics_export_port",
    "runtime_env_agent_port",
    "dashboard_agent_listen_port",
)
"""Ports of a node's agents."""


def wait_longer(patch: pytest.MonkeyPatch) -> None:
    """Let nodes start on a busy machine: Ray waits 15 seconds for the ports of agents, and 30 for a node."""
    from ray._private import node, services
    from ray._raylet import persist_port

    get_node = services.get_node
    start_processes = node.Node.start_ray_processes

    def get_node_patiently(*arguments: Any, **options: Any) -> Any:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return get_node(*arguments, **options)
            except RuntimeError:
                if time.monotonic() > end:
                    raise

    def start_with_ports(start_time: Any) -> None:
        for name in PORTS:
            persist_port(start_time.get_session_dir_path(), start_time.node_id, name, -1)
        start_processes(start_time)

    patch.setattr(services, "get_node", get_node_patiently)
    patch.setattr(node.Node, "start_ray_processes", start_with_ports)


@contextmanager
def cluster_of(**nodes: Mapping[str, int]) -> Iterator[Any]:
    """Start nodes with declared resources, the first as the head. Yield the cluster and its nodes by name.

    A declared GPU needs no card: torch sees none here.
    """
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        wait_longer(patch)
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_agent_register_timeout_ms", str(1000 * PATIENCE))
        patch.setenv("RAY_enable_worker_prestart", "0")
        patch.setenv("RAY_memory_monitor_refresh_ms", "0")  # Other programs may fill this machine's memory.
        cluster = Cluster()
        try:
            started_nodes = {
                name: cluster.add_node(
                    object_store_memory=MEMORY,
                    include_dashboard=False,
                    env_vars={NODE: name, "CUDA_VISIBLE_DEVICES": NO_CARD},
                    **resources,
                )
                for name, resources in nodes.items()
            }
            yield cluster, started_nodes
        finally:
            cluster.shutdown()


@contextmanager
def connect_to(cluster: Any) -> Iterator[None]:
    """Connect this process to a cluster."""
    import ray

    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def watch_nodes() -> Iterator[dict[int, str]]:
    """Yield the node of each process below this one, by its number, as far as they have begun."""
    nodes: dict[int, str] = {}
    event = threading.Event()

    def sample() -> None:
        while not event.wait(SAMPLE_EVERY):
            for pid in descendants(os.getpid()):
                if name := _node(pid):
                    nodes.setdefault(pid, name)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield nodes
    finally:
        event.set()
        thread.join()


def _node(pid: int) -> str:
    with suppress(OSError):
        for variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            name, _, value = variable.decode(errors="replace").partition("=")
            if name == NODE:
                return value
    return ""


def makers(path: Path, nodes: Mapping[int, str]) -> dict[str, str]:
    """Return the node of each finished run, by the log of leases."""
    return {run: nodes.get(pid, "?") for run, pid in processes(path).items()}


def processes(folder: Path) -> dict[str, int]:
    """Return the number of the process that finished each run, by the log of leases."""
    finished_parts: dict[str, int] = {}
    for path in (folder / LEASES / "log").iterdir():
        for line in (json.loads(item) for item in path.open()):
            if line["event"] == "finished" and (folder / line["run"] / "record.json").exists():
                finished_parts[line["run"]] = int(path.name.split("-")[1])
    return finished_parts
