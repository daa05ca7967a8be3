"""Processes of ``--jobs`` begin at once: forked from one that has imported everything and has no threads."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from isogloss.core import processes
from isogloss.engine import engines, fork_server
from isogloss.engine.engines import Execution


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Elsewhere processes are spawned, or have no /proc.")
def test_a_process_is_forked_without_threads_or_cuda_for_a_fraction_of_torch():
    program = "import probe; probe.main()"
    output = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=Path(__file__).parent)
    facts = json.loads(output)
    assert facts["threads"] == [1, 1]
    assert not facts["cuda"] and not facts["torch here"]
    assert facts["seconds"] < 0.3 * facts["torch"]


@pytest.mark.skipif(sys.platform != "linux", reason="Elsewhere processes are spawned.")
@pytest.mark.parametrize(
    ("execution", "begins"),
    [
        (Execution(jobs=2), True),
        (Execution(jobs=1), False),
        (Execution(), True),
        (Execution(threads=4), False),
        (Execution(jobs=2, devices="cpu"), False),
        (Execution(engine="serial"), False),
    ],
)
def test_the_server_begins_early_where_several_jobs_are_forked(monkeypatch, execution, begins):
    start_time = []
    monkeypatch.setattr(fork_server, "ensure_running", lambda: start_time.append(True))
    monkeypatch.setattr(engines, "cores", lambda: 4)
    monkeypatch.setattr(fork_server, "GPU_FILES", ())
    fork_server.start_early(execution.processes)
    assert bool(start_time) is begins


def test_no_server_begins_for_one_of_several_launched_processes_or_beside_a_gpu(monkeypatch, tmp_path):
    start_time = []
    monkeypatch.setattr(fork_server, "ensure_running", lambda: start_time.append(True))
    monkeypatch.setattr(fork_server, "GPU_FILES", (str(tmp_path),))
    fork_server.start_early(2)
    monkeypatch.setattr(fork_server, "GPU_FILES", ())
    monkeypatch.setenv(processes.WORLD_SIZE_VARIABLES[0], "2")
    fork_server.start_early(2)
    assert not start_time
