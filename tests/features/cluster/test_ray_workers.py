"""Ray as the engine: records of one process, whatever dies. No run is repeated or left running."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

import isogloss
from isogloss.core.errors import ConfigError
from isogloss.core.processes import Interrupted, request_interruption
from isogloss.store.leases import LEASES, leases_in
from isogloss.store.store import WORK
from killed import RECIPE, command, count_runs, descendants, is_alive, left, records, wait_until
from tiny import TINY, as_precise_as, tiny

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

FAILING = '''
from dataclasses import dataclass
from typing import ClassVar

from isogloss.training.setting import Method, Reads


@dataclass(frozen=True)
class Failing(Method):
    """Fails."""

    name: ClassVar[str] = "failing"
    uses: ClassVar[tuple[str, ...]] = ("source",)

    def reads(self, source, target):
        return Reads(train=source, dev=source)

    def train(self, setting):
        raise KeyError(7)
'''
"""A method of the user, in a module next to the recipe."""


def test_a_killed_task_is_made_again_and_the_records_are_those_of_one_process(cluster, undisturbed_study):
    folder, uninterruptible = undisturbed_study
    out_folder = as_precise_as(folder, folder / "task")
    killed_keys = []
    messages = []
    message = []

    def kill_once(progress):
        messages.append(progress.what)
        trained_names = {path.parents[1].name for path in out_folder.glob(f"*/{WORK}/checkpoint-*")}
        for key in sorted(trained_names):
            maker = maker_of(key, out_folder)
            if maker and not killed_keys:
                os.kill(maker, signal.SIGKILL)
                killed_keys.append(key)

    outcome = isogloss.run(
        folder / "r.toml",
        out=out_folder,
        engine="ray",
        report=False,
        on_progress=kill_once,
        announce=message.append,
    ).outcome
    (key,) = killed_keys
    assert list(outcome.died) == [key]
    why = r"its process ended without giving the run back \(\d+ on .+\); it .+"
    assert re.fullmatch(why, outcome.died[key])
    assert records(out_folder) == uninterruptible
    assert count_runs(out_folder) == dict.fromkeys(uninterruptible, 1)
    assert left(out_folder) == []
    makers = {path.name for path in (out_folder / LEASES / "log").iterdir() if "finished" in path.read_text()}
    assert len(makers) >= 2
    assert sorted(item.number for item in dict.fromkeys(message)) == [1, 2, 3]
    assert any(re.fullmatch(rf"fine-tuning on \S+ \({key} on .+\)", kind) for kind in messages)


@pytest.mark.nightly
def test_asked_to_leave_tasks_write_a_checkpoint(cluster, undisturbed_study):
    folder, _ = undisturbed_study
    recipe = folder / "seldom.toml"
    text = RECIPE.replace("checkpoint_every = 4", "checkpoint_every = 1000")
    recipe.write_text(text.replace("epochs = 2", "epochs = 100"))
    out_folder = folder / "leaving"

    def leave(progress):
        if progress.what.startswith("fine-tuning") and progress.done:
            request_interruption()

    with pytest.raises(Interrupted):
        isogloss.run(recipe, out=out_folder, engine="ray", report=False, on_progress=leave)
    assert list(out_folder.glob(f"*/{WORK}/checkpoint-*"))


def maker_of(key: str, path: Path) -> int:
    """Return the number of the process that makes a run. 0 if none does."""
    return int(leases_in(path).holder(key).partition(" ")[0] or 0)


@pytest.mark.nightly
def test_a_failing_plug_in_stops_what_needs_it_and_nothing_else(cluster, tmp_path):
    (tmp_path / "failing_on_ray.py").write_text(FAILING)
    text = TINY.partition('[[measure]]\nname = "interpolation"')[0]
    recipe = tiny(tmp_path, text.replace('name = "bilingual"', 'name = "failing_on_ray:Failing"'))
    sample = {"grid.seeds": [0], "grid.examples": 4}
    outcome = isogloss.run(recipe, out=tmp_path / "runs", engine="ray", changes=sample, report=False).outcome
    own_part = [why for why in outcome.failed.values() if not why.startswith("needs run")]
    assert len(own_part) == 1
    assert own_part[0].startswith("KeyError: 7 (failing_on_ray.py:")
    assert len(outcome.failed) == 3  # The model, its scores, and what compares these.
    assert len(outcome.made) == 3


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no path means two things here")
def test_a_node_that_does_not_see_the_folder_is_named(cluster, tmp_path):
    (tmp_path / "out").mkdir()
    opened_stream = os.open(
        tmp_path / "out", os.O_RDONLY
    )  # A path to it that leads nowhere in other processes.
    text = f"/proc/self/fd/{opened_stream}/runs"
    try:
        with pytest.raises(ConfigError) as error:
            isogloss.run(tiny(tmp_path), out=text, engine="ray", report=False)
    finally:
        os.close(opened_stream)
    assert re.fullmatch(
        rf"Ray node .+: it does not see {text}: what this machine wrote is missing. The folder of runs "
        r"\(--out\) must be one that all nodes share, under the same path.",
        str(error.value),
    )
    assert not records(tmp_path / "out" / "runs")


AGENTS = ("ray::DashboardAgent", "ray::RuntimeEnvAgent")
"""Processes of Ray that wait a minute for a dead server before they end."""


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:  # It has ended.
        return ""


@pytest.mark.nightly
def test_a_killed_driver_leaves_no_process_and_started_again_it_comes_to_the_same(cluster, undisturbed_study):
    folder, uninterruptible = undisturbed_study
    field = folder / "driver"
    running = subprocess.Popen(command(folder, field.name, "ray"), stdout=subprocess.PIPE)
    wait_until(lambda: any(field.glob(f"*/{WORK}/checkpoint-*")) or running.poll() is not None)
    child_pids = [pid for pid in descendants(running.pid) if not command_line(pid).startswith(AGENTS)]
    running.kill()
    output, _ = running.communicate()
    assert (running.returncode, output) == (-signal.SIGKILL, b"")
    wait_until(lambda: not any(is_alive(child_pid) for child_pid in child_pids))
    assert len(child_pids) > 5
    assert records(field) != uninterruptible
    isogloss.run(folder / "r.toml", out=field, engine="ray", report=False)
    assert records(field) == uninterruptible
    assert left(field) == []


@pytest.mark.nightly
def test_reports_that_are_lost_with_their_queue_leave_no_run_behind(cluster, undisturbed_study):
    folder, undisturbed_fields = undisturbed_study
    out_folder = as_precise_as(folder, folder / "queue")
    killed_pids = []

    def kill_queue(progress):
        if not killed_pids and any(out_folder.glob(f"*/{WORK}/checkpoint-*")):
            killed_pids.extend(
                pid for pid in descendants(os.getpid()) if command_line(pid).startswith("ray::_QueueActor")
            )
            for pid in killed_pids:
                os.kill(pid, signal.SIGKILL)

    outcome = isogloss.run(
        folder / "r.toml", out=out_folder, engine="ray", report=False, on_progress=kill_queue
    ).outcome
    assert killed_pids
    assert {*outcome.made, *outcome.done} == undisturbed_fields.keys()
    assert records(out_folder) == undisturbed_fields
    assert left(out_folder) == []


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", "ray start --head"),
        ("ray://here:10001", "--address auto.*ray job submit"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_at_once(tmp_path, address, message):
    with pytest.raises(ConfigError, match=f"^--address {address}: .*{message}"):
        isogloss.run(tiny(tmp_path), out=tmp_path / "runs", engine="ray", address=address)


def test_a_cluster_that_does_not_start_here_is_not_said_to_have_an_address(tmp_path, monkeypatch):
    def fail(**_):
        raise RuntimeError("The current node timed out during startup.")

    monkeypatch.setattr("ray.init", fail)
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with pytest.raises(ConfigError, match=r"^--engine ray: .*timed out.*processes"):
        isogloss.run(tiny(tmp_path), out=tmp_path / "runs", engine="ray")
