"""Clusters of several Ray nodes: which node makes which run, and what happens when parts of them die."""

import json
import os
import re
import signal
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import isogloss
from isogloss.engine.devices import HIDDEN
from isogloss.store.leases import leases_in
from isogloss.store.store import WORK
from killed import PATIENCE, command, count_runs, left, records, wait_until
from ray_nodes import NO_CARD, cluster_of, connect_to, makers, watch_nodes
from tiny import as_precise_as, tiny

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

MEETING = '''
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from isogloss.diagnostics.scores import TransferGap
from isogloss.methods.plain import SourceOnly


def meet(folder: str) -> None:
    """Wait until two processes are here, for a minute at most."""
    (Path(folder) / str(os.getpid())).mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + {patience}
    while len([*Path(folder).iterdir()]) < 2 and time.monotonic() < end:
        time.sleep(0.05)


@dataclass(frozen=True)
class Model(SourceOnly):
    """Trained while another one is."""

    name: ClassVar[str] = "meeting-model"
    folder: str = ""

    def train(self, setting):
        meet(self.folder)
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        (Path(self.folder) / str(os.getpid()) / visible).touch()
        return super().train(setting)


@dataclass(frozen=True)
class Gap(TransferGap):
    """Computed while another one is."""

    name: ClassVar[str] = "meeting-gap"
    folder: str = ""

    def measure(self, setting):
        meet(self.folder)
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        (Path(self.folder) / str(os.getpid()) / visible).touch()
        return super().measure(setting)
'''

RECIPE = """
title = "Nodes"
encoder = "shipped"

[align]
name = "fast-align"

[[adjust]]
name = "cross-lingual-adjustment"
bitext = "bitext"
pairs = ["qaa-qab", "qaa-qad"]
examples = [40]

[grid]
corpus = "wikiann"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 16
dev_examples = 8
optimization = {{ epochs = 1, learning_rate = 5e-4, batch_size = 8, precision = "float32" }}

[[grid.method]]
name = "meeting_on_ray:Model"
folder = "{models}"

[[measure]]
name = "scores"
examples = 8

[[measure]]
name = "meeting_on_ray:Gap"
folder = "{gaps}"
examples = 8
"""

NODES = {"head": {"num_cpus": 1}, "card": {"num_cpus": 2, "num_gpus": 1}, "plain": {"num_cpus": 1}}


@pytest.mark.nightly
def test_two_models_share_a_gpu_and_all_else_is_made_on_other_nodes(tmp_path: Path):
    (tmp_path / "meeting_on_ray.py").write_text(MEETING.replace("{patience}", "120"))
    meetings = {name: tmp_path / name for name in ("models", "gaps")}
    recipe = tiny(tmp_path, RECIPE.format(**meetings))
    folder = tmp_path / "runs"
    with cluster_of(**NODES) as (cluster, _), connect_to(cluster), watch_nodes() as nodes:
        outcome = isogloss.run(recipe, out=folder, engine="ray", gpu_share=0.5, report=False).outcome
    assert not outcome.failed
    assert count_runs(folder) == dict.fromkeys(outcome.made, 1)
    places = nodes_by_kind(folder, nodes)
    assert places == {
        "align": {"head", "plain"},
        "adjust": {"card"},
        "fine-tune": {"card"},
        "scores": {"card"},
        "meeting-gap": {"head", "plain"},
    }
    assert devices_at(meetings["models"]) == [NO_CARD] * 2  # Two processes at the same time.
    assert devices_at(meetings["gaps"]) == [HIDDEN] * 2


def nodes_by_kind(path: Path, nodes: Mapping[int, str]) -> dict[str, set[str]]:
    """Return the nodes that made runs, by the kind of run or the diagnostic."""
    places = defaultdict(set)
    for run, node in makers(path, nodes).items():
        record = json.loads((path / run / "record.json").read_text())
        name = record["title"].partition(":")[0] if record["kind"] == "measure" else record["kind"]
        places[name].add(node)
    return dict(places)


def devices_at(meeting: Path) -> list[str]:
    """Return the visible devices of each process that was at a meeting."""
    return [path.name for path in meeting.glob("*/*")]


def kill_head(nodes: Mapping[str, Any], driver: subprocess.Popen[str], path: Path) -> None:
    """Kill all processes of the head."""
    del driver, path
    for processes in list(nodes["head"].all_processes.values()):
        for process in processes:
            kill(process.process.pid)


def kill_coordinator(nodes: Mapping[str, Any], driver: subprocess.Popen[str], path: Path) -> None:
    """Kill only the process of the head that coordinates the cluster."""
    del driver, path
    (gcs_server,) = nodes["head"].all_processes["gcs_server"]
    kill(gcs_server.process.pid)


def kill_own_supervisor(nodes: Mapping[str, Any], driver: subprocess.Popen[str], path: Path) -> None:
    """Kill what supervises the node that the command is connected to."""
    del driver, path
    (raylet,) = nodes["head"].all_processes["raylet"]
    kill(raylet.process.pid)


def kill_node(nodes: Mapping[str, Any], driver: subprocess.Popen[str], path: Path) -> None:
    """Kill what supervises the node without the command. Its workers end with it."""
    del driver, path
    (raylet,) = nodes["other"].all_processes["raylet"]
    kill(raylet.process.pid)


def kill_worker(nodes: Mapping[str, Any], driver: subprocess.Popen[str], path: Path) -> None:
    """Kill a process that makes a run."""
    del nodes, driver
    kill(int(leases_in(path).holder(find_training(path)).partition(" ")[0]))


def kill_driver(nodes: Mapping[str, Any], driver: subprocess.Popen[str], path: Path) -> None:
    """Kill the command."""
    del nodes, path
    driver.kill()


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def find_training(path: Path) -> str:
    """Return a current run with a checkpoint. Empty without one."""
    runs = {path.parents[1].name for path in path.glob(f"*/{WORK}/checkpoint-*")}
    return next((run for run in sorted(runs) if leases_in(path).holder(run)), "")


HEAD_LOST = r"isogloss: .*\(\S+:\d+\) .*\b20 s\b.*\(ray start --head\).*\n"
"""One line."""

NODE_AND_HEAD_LOST = r"isogloss: .*\(\S+:\d+\) .*\(the raylet, \S+:\d+\) .*\(ray start --head\).*\n"
"""One line."""


SUPERVISOR_LOST = r"isogloss: .*\(the raylet, \S+:\d+\) .*\(ray start --address \S+:\d+\).*\n"
"""One line."""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("disturb", "status", "message"),
    [
        (kill_coordinator, 1, HEAD_LOST),
        (kill_head, 1, NODE_AND_HEAD_LOST),
        (kill_own_supervisor, 1, SUPERVISOR_LOST),
        (kill_node, 0, ""),
        (kill_worker, 0, ""),
        (kill_driver, -signal.SIGKILL, ""),
    ],
)
def test_whatever_is_killed_the_same_folder_is_finished_and_nothing_made_twice(
    undisturbed_study, disturb, status: int, message: str
):
    folder, undisturbed_value = undisturbed_study
    field = as_precise_as(folder, folder / disturb.__name__)
    with cluster_of(head={"num_cpus": 1}, other={"num_cpus": 1}) as (cluster, nodes):
        words = [*command(folder, field.name, "ray"), "--address", cluster.address]
        driver = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: find_training(field) or driver.poll() is not None)
        disturb(nodes, driver, field)
        output, messages = driver.communicate(timeout=PATIENCE)
    assert (driver.returncode, output) == (status, ""), messages
    assert re.fullmatch(message, messages)
    finished_records = records(field)
    if status == 0:
        assert finished_records == undisturbed_value
    isogloss.run(folder / "r.toml", out=field, jobs=1, report=False)
    assert finished_records.items() <= records(field).items()
    assert records(field) == undisturbed_value
    assert count_runs(field) == dict.fromkeys(undisturbed_value, 1)
    assert left(field) == []
