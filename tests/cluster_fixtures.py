"""Engines beyond this machine on this one: a Ray cluster of one node, Slurm jobs that are processes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from isogloss.features.cluster import engines


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A cluster of one node with two processors, to which this process is connected.

    By default Ray runs tasks with niceness 15, which is too slow with other tests on the same cores.
    """
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")
        ray.init(
            address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
        )
        yield
        ray.shutdown()


@pytest.fixture
def local_slurm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Jobs of Slurm as processes of this machine, submitit's "local" cluster."""
    pytest.importorskip("submitit")
    from isogloss.features.cluster.slurm_jobs import work_in_jobs

    def start(execution, *arguments):
        work_in_jobs(*arguments, jobs=execution.jobs, parameters=execution.slurm, cluster="local")

    monkeypatch.setattr(engines, "SLURM", replace(engines.SLURM, start=start))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
