"""The engines of clusters. ray and submitit are imported when they start work."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isogloss.engine.engines import Engine, Execution

if TYPE_CHECKING:
    from isogloss.engine.work import Report
    from isogloss.runs.run import Run, RunContext


def _start_ray(execution: Execution, context: "RunContext", runs: "Sequence[Run]", report: "Report") -> None:
    from isogloss.features.cluster.ray_workers import work_on_cluster

    work_on_cluster(
        context,
        runs,
        report,
        address=execution.address,
        jobs=execution.jobs,
        gpu_share=execution.gpu_share,
    )


def _start_slurm(
    execution: Execution, context: "RunContext", runs: "Sequence[Run]", report: "Report"
) -> None:
    from isogloss.features.cluster.slurm_jobs import work_in_jobs

    work_in_jobs(context, runs, report, jobs=execution.jobs or 1, parameters=execution.slurm)


def _check_slurm(execution: Execution) -> None:
    if execution.slurm:
        from isogloss.features.cluster.slurm_jobs import check_parameters

        check_parameters(execution.slurm)


RAY = Engine(about="on a Ray cluster", package="ray", options=("address", "gpu_share"), start=_start_ray)
SLURM = Engine(
    about="in jobs of Slurm", package="submitit", options=("slurm",), start=_start_slurm, check=_check_slurm
)
