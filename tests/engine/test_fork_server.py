"""Processes of ``--jobs`` begin at once: forked from one that has imported everything and has no threads."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from forked import Forked
from isogloss.core import processes
from isogloss.engine import engines, fork_server
from isogloss.engine.engines import Execution
from tiny import tiny


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Elsewhere processes are spawned, or have no /proc.")
def test_a_process_is_forked_without_threads_or_cuda_for_a_fraction_of_torch():
    language = "import probe; probe.main()"
    output = subprocess.check_output([sys.executable, "-c", language], text=True, cwd=Path(__file__).parent)
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


STAND_INS = """
import gc, json, sys
from isogloss.engine import fork_server

fork_server.IMPORTED_ONCE = ("xml.dom.minidom", "module_that_is_missing", "wsgiref.headers")
passes = sum(generation["collections"] for generation in gc.get_stats())
import isogloss.engine.preloaded

passes = sum(generation["collections"] for generation in gc.get_stats()) - passes
loaded = [name for name in fork_server.IMPORTED_ONCE if name in sys.modules]
print(json.dumps([loaded, passes, gc.get_freeze_count() > 1_000, gc.isenabled()]))
"""


def test_the_server_imports_what_is_installed_without_passes_of_the_collector():
    loaded_data, passes, has_frozen, is_enabled = json.loads(
        subprocess.check_output([sys.executable, "-c", STAND_INS], text=True)
    )
    assert loaded_data == ["xml.dom.minidom", "wsgiref.headers"]
    # The passes of Python's own imports of the module come before the collector is off.
    assert passes <= 1
    assert has_frozen and is_enabled


def test_the_server_imports_the_module_that_imports_everything(monkeypatch):
    preloaded_value = []
    context = SimpleNamespace(set_forkserver_preload=preloaded_value.extend)
    monkeypatch.setattr(fork_server, "get_context", lambda _: context)
    monkeypatch.setattr(fork_server, "get_all_start_methods", lambda: ["forkserver"])
    monkeypatch.setattr(sys, "platform", "linux")
    assert fork_server.start_method(uses_devices=False) is context
    assert preloaded_value == ["isogloss.engine.preloaded"]


COMPUTING = ("runs", "training", "tasks", "encoders", "diagnostics", "metrics")
"""Packages whose modules runs need."""

MOST_LATE = 10
"""Modules of torch and transformers that a run may import itself, such as one family's tokenizer."""

LATE = """
import sys
known = set(sys.modules)
import isogloss

isogloss.run(sys.argv[1], out=sys.argv[2], engine="serial", report=False)
print(*sorted(set(sys.modules) - known))
"""


@pytest.mark.slow
def test_runs_import_next_to_nothing_that_the_server_has_not_imported(tmp_path):
    words = [sys.executable, "-c", LATE, str(tiny(tmp_path)), str(tmp_path / "runs")]
    process = Forked(words, stdout=subprocess.PIPE)
    late = process.stdout.read().split()
    assert process.wait() == 0
    assert late
    assert not [name for name in late if name.split(".")[1:2] and name.split(".")[1] in COMPUTING]
    assert len([name for name in late if name.startswith(("torch.", "transformers."))]) <= MOST_LATE


def test_every_module_that_is_imported_once_exists():
    """The server skips what cannot be imported, so that a module with a new name would never be missed."""
    names = [name for name in fork_server.IMPORTED_ONCE if name.startswith("isogloss.")]
    assert len(names) > 10
    assert [name for name in names if find_spec(name) is None] == []
