"""Jobs of Slurm, here as processes of this machine: they share the work, and one that must go comes back."""

import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import isogloss
from isogloss.core.errors import ConfigError, StorageError
from isogloss.engine.engine import make_planned
from isogloss.engine.engines import Execution
from isogloss.planning.plan import plan_recipe
from isogloss.store.leases import leases_in
from isogloss.store.store import WORK
from killed import LONG, count_runs, descendants, is_alive, left, records, wait_until
from tiny import as_precise_as

pytest.importorskip("submitit")

from isogloss.features.cluster.slurm_jobs import FOLDER, private_folder


@pytest.mark.nightly
def test_jobs_share_the_work_and_one_that_has_to_go_writes_a_checkpoint_and_is_queued_again(
    tmp_path, local_slurm
):
    recipe = tmp_path / "r.toml"
    message = []
    recipe.write_text(LONG)
    whole_output = isogloss.run(recipe, out=tmp_path / "whole", jobs=1, report=False).out
    undisturbed_records = records(whole_output)
    folder = as_precise_as(whole_output, tmp_path / "runs")
    with ThreadPoolExecutor(1) as beside:
        removal = beside.submit(pre_empt_one, folder)
        outcome = make_planned(
            plan_recipe(recipe, out=folder),
            Execution(engine="slurm", jobs=2, slurm={"time": 10}),
            announce=lambda begun: message.append((begun.number, begun.total)),
        )
    assert (len(outcome.made), outcome.done, outcome.failed) == (3, [], {})
    assert records(folder) == undisturbed_records
    assert count_runs(folder) == dict.fromkeys(undisturbed_records, 1)
    assert left(folder) == []
    assert message == [(1, 3), (2, 3), (3, 3)]
    assert len(jobs(folder)) == 2
    wait_until(
        lambda: not any(is_alive(value) for value in jobs(folder))
    )  # The one that came back finds nothing to do.
    (output,) = private_folder(folder).glob(f"*/{removal.result()}_0_log.out")
    assert output.read_text().count("Requeued job") == 1


def pre_empt_one(path: Path) -> int:
    """Do to a job that trains what Slurm does before its time is over. Wait for the checkpoint."""
    wait_until(lambda: any(path.glob(f"*/{WORK}/checkpoint-*")))
    key = next(path.glob(f"*/{WORK}/checkpoint-*")).parents[1].name
    maker = int(leases_in(path).holder(key).partition(" ")[0])
    (job,) = [part for part in jobs(path) if maker in descendants(part)]
    for descendant in descendants(job):
        os.kill(descendant, signal.SIGUSR2)
    wait_until(lambda: any(step % 30 for step in steps(path / key)))
    return job


def steps(folder: Path) -> list[int]:
    return [int(path.name.rpartition("-")[2]) for path in folder.glob(f"{WORK}/checkpoint-*")]


def jobs(path: Path) -> list[int]:
    return [int(path.name.partition("_")[0]) for path in private_folder(path).glob("*/*_submitted.pkl")]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"partitoin": "gpu"},
            "--slurm: no parameter 'partitoin'. Did you mean 'partition'? Known: account, ",
        ),
        ({"time": "4h"}, "--slurm time=4h: expected minutes"),
    ],
)
def test_parameters_that_slurm_does_not_get_are_refused(parameters, message):
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
        isogloss.run("quickstart", engine="slurm", slurm=parameters)


def test_jobs_need_a_folder_that_all_nodes_see(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=r"--out.*memory://jobs"):
        isogloss.run("quickstart", out="memory://jobs", engine="slurm")


@pytest.mark.skipif(os.name == "nt", reason="folders have no such modes there")
def test_files_of_jobs_are_where_nobody_else_writes_for_they_are_run_as_code(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    runs = tmp_path / "shared"
    jobs = tmp_path / "isogloss" / FOLDER
    assert private_folder(runs).parent == jobs
    assert private_folder(runs) == private_folder(runs) != private_folder(tmp_path)
    assert jobs.stat().st_mode & 0o777 == 0o700
    assert not runs.exists()
    jobs.chmod(0o755)  # As an earlier version left it: new files in it would follow the umask.
    private_folder(runs)
    assert jobs.stat().st_mode & 0o777 == 0o700
    jobs.chmod(0o720)
    with pytest.raises(StorageError, match=r"jobs: .*700.*XDG_CACHE_HOME"):
        private_folder(runs)
