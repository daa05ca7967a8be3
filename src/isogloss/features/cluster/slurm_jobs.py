"""Slurm jobs that work on a plan, submitted by submitit.

Jobs and this process share a folder of runs, and a folder of this user for the files of submitit. This
process submits enough jobs for the runs and follows them. It can be stopped and restarted. A job that is
pre-empted or out of time writes a checkpoint of its run and is requeued. Idle jobs end after a while.
"""

import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2s
from pathlib import Path
from stat import S_ISDIR
from threading import Event as Flag

import submitit

from isogloss.core.atomic_files import writing
from isogloss.core.errors import ConfigError, RunError, StorageError, unknown_name
from isogloss.core.identity import identity
from isogloss.core.processes import Interrupted, interruption_requested, request_interruption
from isogloss.core.progress import Progress, no_progress
from isogloss.core.untrusted import user_cache
from isogloss.engine.work import Report, RunEvent, Work
from isogloss.engine.workers import Processes
from isogloss.features.cluster.pickled import Pickled, pack
from isogloss.runs.run import Run, RunContext, precision_here

FOLDER = "jobs"
"""Folder within the user's cache for the files of submitit: scripts, output and inputs of jobs."""

MINUTES = 60
"""Minutes of a job. Default: 60. A job that is out of time is queued again."""

MAX_TIMEOUTS = 1000
"""Maximum number of times a job may run out of time."""

IDLE_PATIENCE = 60.0
"""Seconds after which a job with nothing to do ends."""

ALIVE = ("PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "STOPPED")
"""States, as sacct names them, of jobs that run or will run."""

POLL_EVERY = 2.0
"""Seconds between two checks of runs and jobs."""


def check_parameters(parameters: Mapping[str, object]) -> None:
    """Raise ConfigError for parameters that submitit does not pass to Slurm."""
    valid = submitit.SlurmExecutor._valid_parameters()
    for name in parameters.keys() - valid:
        raise unknown_name("--slurm", "parameter", name, valid)
    if not isinstance(parameters.get("time", MINUTES), int):
        raise ConfigError(f"--slurm time={parameters['time']}: expected minutes, a whole number.")


def work_in_jobs(
    context: RunContext,
    runs: Sequence[Run],
    report: Report,
    *,
    jobs: int,
    parameters: Mapping[str, object],
    cluster: str = "slurm",
) -> None:
    """Submit jobs that work on a plan, and follow them until no run is left.

    The jobs continue if this process ends. ``cluster`` is a cluster of submitit. "local" stands for processes
    on this machine.
    """
    if context.store.url:
        raise ConfigError(
            f"--engine slurm: jobs get their work from files in a folder that all nodes see, and --out is "
            f"{context.store.url}. Name a folder, or let a job array run with this --out."
        )
    logging.getLogger("submitit").setLevel(logging.ERROR)  # It writes to standard output.
    plan = blake2s("".join(identity(run) for run in runs).encode(), digest_size=6).hexdigest()
    executor = _executor(context, parameters, cluster, private_folder(context.store.root) / plan)
    made_by_jobs = frozenset(identity(run) for run in runs)
    jobs_followed = JobsFollowed(
        context, runs, report, left_to_others=made_by_jobs, executor=executor, most=jobs
    )
    if cluster == "slurm":
        jobs_followed.find_again()
    jobs_followed.work()
    jobs_followed.close()


def private_folder(root: Path) -> Path:
    """Return the folder for the files of jobs. Other users must not be able to write to it.

    Inputs and results of jobs are unpickled, which runs code. Raises StorageError if others may write to the
    folder.
    """
    folder = user_cache() / FOLDER
    with writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
        is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        if not S_ISDIR(status.st_mode) or not is_own or status.st_mode & 0o022:
            raise StorageError(
                f"{folder}: others may write to this folder, and files of jobs are run as code. Make it "
                f"yours alone (chmod 700), or let XDG_CACHE_HOME name a folder of yours that all nodes see."
            )
        if status.st_mode & 0o077:  # Files in it follow the umask, so a group may have write access.
            folder.chmod(0o700)
    return folder / blake2s(str(root.resolve()).encode(), digest_size=6).hexdigest()


def _executor(
    context: RunContext, parameters: Mapping[str, object], cluster: str, folder: Path
) -> submitit.AutoExecutor:
    """Return an executor that submits jobs. Raises ConfigError without Slurm."""
    minutes = parameters.get("time", MINUTES)
    usual = {"job_name": f"isogloss-{context.store.root.name}", "cpus_per_task": context.threads}
    slurm_parameters = {f"slurm_{name}": value for name, value in {**usual, **parameters}.items()}
    try:
        executor = submitit.AutoExecutor(
            folder, cluster=cluster, **{f"{cluster}_max_num_timeout": MAX_TIMEOUTS}
        )
        executor.update_parameters(timeout_min=minutes, **slurm_parameters)
    except (RuntimeError, ValueError, TypeError) as error:
        raise ConfigError(f"--engine slurm: {error} Start it where jobs are submitted.") from error
    return executor


@dataclass(kw_only=True)
class JobsFollowed(Work):
    """Work on a plan that submits jobs and follows their runs."""

    executor: submitit.AutoExecutor
    most: int
    """Maximum number of jobs at the same time."""
    _jobs: list[submitit.Job[None]] = field(default_factory=list)
    """Jobs that have not ended, as far as this process knows."""
    _cancelled: list[str] = field(default_factory=list)
    _begun: set[str] = field(default_factory=set)
    _looks: int = 0
    """Runs checked since the last pause. Jobs lease runs in the order of the plan."""

    def find_again(self) -> None:
        """Follow the jobs of an earlier process with the same plan that are queued or running."""
        folder = self.executor.folder
        names = [path.name.removesuffix("_submitted.pkl") for path in folder.glob("*_submitted.pkl")]
        jobs: list[submitit.Job[None]] = [submitit.SlurmJob(folder, name) for name in names]
        self._jobs = [job for job in jobs if not job.paths.result_pickle.exists() and job.state in ALIVE]

    def attempt(self, run: Run, *, has_lease: bool = True) -> RunEvent:  # noqa: ARG002
        """Return the state of a run in the jobs, and report when a job starts it."""
        key = identity(run)
        store = self.context.store
        self._looks += 1
        if self._looks > 4 * self.most + 16:
            return RunEvent(key, "elsewhere")
        is_finished = store.is_finished(run)
        failure = store.failure(run)
        if key not in self._begun and (is_finished or store.leases.holder(key)):
            self._begun.add(key)
            self._say(RunEvent(key, "begun"))
        if is_finished:
            return RunEvent(key, "made")
        return RunEvent(key, "failed", failure) if failure else RunEvent(key, "elsewhere")

    def _wait(self, seconds: float) -> None:  # noqa: ARG002
        """Submit jobs for the runs that are ready, up to the limit, and wait for them."""
        self._looks = 0
        self._jobs = [job for job in self._jobs if not self._has_ended(job)]
        if self.most < 1 and not self._jobs:
            raise RunError(
                f"all Slurm jobs were ended from outside: {', '.join(self._cancelled)}. Finished runs are "
                f"kept; the same command goes on. What they said is in {self.executor.folder}."
            )
        while len(self._jobs) < min(self.most, self.agenda.open):
            self._jobs.append(self._submit_job())
        states = Counter(job.state.lower() for job in self._jobs)
        summary = ", ".join(f"{count} {state}" for state, count in states.items()) or "none"
        settled_runs = len(self.runs) - self.agenda.left
        total = len(self.runs)
        self.context.on_progress(Progress("runs in Slurm jobs", settled_runs, total, f"jobs: {summary}"))
        Flag().wait(POLL_EVERY)

    def close(self) -> None:
        """Remove jobs that have not begun from the queue, because all runs are settled."""
        for job in self._jobs:
            job.get_info()
            if job.state == "PENDING":
                job.cancel(check=False)

    def _has_ended(self, job: submitit.Job[None]) -> bool:
        """Return whether a job has ended.

        Raises RunError with the job's error if all other jobs would fail like it.
        """
        if not job.done():
            return False
        if not job.paths.result_pickle.exists():  # It was cancelled or killed, so it is not replaced.
            self.most -= 1
            self._cancelled.append(f"{job.job_id} ({job.state})")
        elif error := job.exception():
            *_, last_line = str(job.stderr() or error).strip().splitlines()
            raise RunError(
                f"Slurm job {job.job_id} failed: {last_line} All it said is in {job.paths.stderr}."
            )
        return True

    def _submit_job(self) -> submitit.Job[None]:
        try:
            context = replace(self.context, on_progress=no_progress)
            return self.executor.submit(PlanJob(pack((context, list(self.runs)))))
        except (RuntimeError, OSError) as error:
            raise ConfigError(f"--engine slurm: no job could be submitted. {error}") from error


# In a job


@dataclass(frozen=True)
class PlanJob:
    """A job that makes runs of a plan until none is left."""

    sent: Pickled

    def __call__(self) -> None:
        """Run the plan. On SIGTERM, write a checkpoint. Out of time, also requeue the job.

        SIGTERM may mean that a user cancelled the job, so Slurm decides whether it restarts.
        """
        warning_signal = signal.Signals[f"SIG{submitit.JobEnvironment.USR_SIG}"]
        signals = list[int]()
        queue_again = signal.getsignal(warning_signal)
        signal.signal(warning_signal, signal.SIG_IGN)  # Slurm also sends it to all child processes.

        def leave(signal_number: int, _: object) -> None:
            signals.append(signal_number)
            if not interruption_requested() and not request_interruption():
                raise Interrupted

        try:
            self._make(
                lambda: [
                    signal.signal(signal_number, leave) for signal_number in (warning_signal, signal.SIGTERM)
                ]
            )
        except Interrupted:
            for handled_signal in (warning_signal, signal.SIGTERM):
                signal.signal(handled_signal, lambda signal_number, _: signals.append(signal_number))
            while warning_signal not in signals:
                time.sleep(1)
            if callable(queue_again):
                queue_again(warning_signal, None)

    def _make(self, check_signals: Callable[[], object]) -> None:
        context, runs = self.sent.load()
        context = replace(context, precision=precision_here(context.store))
        check_signals()
        Processes(context, runs, _log, patience=IDLE_PATIENCE).work(1)

    def checkpoint(self) -> submitit.helpers.DelayedSubmission:
        """Return the job to submit after a restart. It equals this job."""
        return submitit.helpers.DelayedSubmission(self)


def _log(event: RunEvent) -> None:
    if event.state != "waiting":
        logging.getLogger("submitit").info("%s %s %s", event.state, event.run, event.message)
