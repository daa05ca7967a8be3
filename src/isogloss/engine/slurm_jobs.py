"""Runs in jobs of Slurm, submitted by submitit: each job leases and makes one run after the other.

Jobs and this process share a folder of runs, and one of this user for what submitit writes. This process
submits as many as there are runs for, follows them, and can end and be started again. A job that is
pre-empted or out of time lets its run write a checkpoint, and is queued again. One with nothing to do for a
while ends.
"""

import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2s
from pathlib import Path

import submitit

from isogloss.core.atomic_files import writing
from isogloss.core.errors import ConfigError, RunError, StorageError, unknown_name
from isogloss.core.identity import identity
from isogloss.core.interruption import Interrupted, interruption_requested, request_interruption
from isogloss.core.paths import user_cache
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.engine.attempts import AttemptResult
from isogloss.engine.pickling import Pickled, pickled
from isogloss.engine.schedule import Schedule
from isogloss.engine.workers import Processes, Workers
from isogloss.runs.run import Run, RunContext, precision_here

FOLDER = "jobs"
"""Folder within the user's cache of what submitit writes: scripts, output, what jobs are sent."""

MINUTES = 60
"""Time of a job, unless it is given; a job that is out of time is queued again."""

MAX_TIMEOUTS = 1000
"""How often a job may be out of time."""

IDLE_PATIENCE = 60.0
"""Seconds after which a job with nothing to do ends."""

ALIVE = ("PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "STOPPED")
"""States, as sacct names them, of jobs that run or will."""

POLL_EVERY = 2.0
"""Seconds between two checks of runs and jobs."""


def check_parameters(parameters: Mapping[str, object]) -> None:
    """Raise ConfigError for parameters that submitit does not pass to Slurm."""
    valid = submitit.SlurmExecutor._valid_parameters()
    for name in parameters.keys() - valid:
        raise unknown_name("--slurm", "parameter", name, valid)
    if not isinstance(parameters.get("time", MINUTES), int):
        raise ConfigError(f"--slurm time={parameters['time']}: expected minutes, a whole number.")


@contextmanager
def slurm_workers(
    context: RunContext,
    runs: Sequence[Run],
    on_start: Callable[[Run], None],
    *,
    jobs: int,
    parameters: Mapping[str, object],
    cluster: str = "slurm",
) -> Iterator[Workers]:
    """Yield workers that submit jobs, which go on without this process unless all runs are finished.

    ``cluster`` is one of submitit's; "local" are processes of this machine.
    """
    if context.store.url:
        raise ConfigError(
            f"--engine slurm: jobs are told what to do by files in a folder that all nodes see, and --out is "
            f"{context.store.url}. Name a folder, or let a job array run with this --out."
        )
    logging.getLogger("submitit").setLevel(logging.ERROR)  # It speaks on standard output.
    plan = blake2s("".join(map(identity, runs)).encode(), digest_size=6).hexdigest()
    executor = _executor(context, parameters, cluster, private_folder(context.store.root) / plan)
    workers = SlurmJobs(context, runs, on_start, executor, jobs)
    if cluster == "slurm":
        workers.find_again()
    yield workers
    workers.close()


def private_folder(root: Path) -> Path:
    """Return where the files of jobs for a folder of runs lie, which its other users may not write to.

    What jobs are sent and return is unpickled, which runs code. StorageError where others may write there.
    """
    folder = user_cache() / FOLDER
    with writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        raise StorageError(
            f"{folder}: others may write to this folder, and what jobs write there is run as code. Make it "
            f"yours alone (chmod 700), or let XDG_CACHE_HOME name a folder of yours that all nodes see."
        )
    return folder / blake2s(str(root.resolve()).encode(), digest_size=6).hexdigest()


def _executor(
    context: RunContext, parameters: Mapping[str, object], cluster: str, folder: Path
) -> submitit.AutoExecutor:
    """Return an executor that submits jobs; ConfigError without Slurm."""
    minutes = parameters.get("time", MINUTES)
    usual = {"job_name": f"isogloss-{context.store.root.name}", "cpus_per_task": context.threads}
    prefixed = {f"slurm_{name}": value for name, value in {**usual, **parameters}.items()}
    try:
        executor = submitit.AutoExecutor(
            folder, cluster=cluster, **{f"{cluster}_max_num_timeout": MAX_TIMEOUTS}
        )
        executor.update_parameters(timeout_min=minutes, **prefixed)
    except (RuntimeError, ValueError, TypeError) as error:
        raise ConfigError(f"--engine slurm: {error} Start it where jobs are submitted.") from error
    return executor


class SlurmJobs:
    """Jobs that make the runs of a plan, and what they have come to so far."""

    def __init__(
        self,
        context: RunContext,
        runs: Sequence[Run],
        on_start: Callable[[Run], None],
        executor: submitit.AutoExecutor,
        most: int,
    ) -> None:
        self._store, self._on_progress, self._on_start = context.store, context.on_progress, on_start
        self._job = PlanJob(pickled((replace(context, on_progress=no_progress), [*runs])))
        self._executor, self._most = executor, most
        self._jobs: list[submitit.Job[None]] = []
        """Jobs that have not ended, as far as is known."""
        self._cancelled: list[str] = []
        self._left = {identity(run) for run in runs if not self._store.is_finished(run)}
        self._total = len(runs)
        self._waiting: dict[str, Run] = {}
        """Runs that can be made, by id, and have not ended."""
        self._seen: set[str] = set()
        """Those of them that a job has begun."""
        self._interrupted = False
        self._polled = 0.0

    @property
    def on_progress(self) -> OnProgress:  # noqa: D102
        return self._on_progress

    def find_again(self) -> None:
        """Take up the jobs of an earlier process with the same plan that wait in the queue or run."""
        folder = self._executor.folder
        names = [path.name.removesuffix("_submitted.pkl") for path in folder.glob("*_submitted.pkl")]
        jobs: list[submitit.Job[None]] = [submitit.SlurmJob(folder, name) for name in names]
        self._jobs = [job for job in jobs if not job.paths.result_pickle.exists() and job.state in ALIVE]

    def is_free(self) -> bool:
        """Return True: what cannot be made yet waits for a job."""
        return True

    def start(self, run: Run, expired: bytes) -> None:  # noqa: ARG002
        """Let a run be made by whatever job comes to it."""
        self._waiting[identity(run)] = run

    def ended(self, timeout: float) -> list[tuple[Run, AttemptResult]]:  # noqa: D102
        if self._interrupted:
            left, self._waiting = self._waiting, {}
            return [(run, AttemptResult("interrupted")) for run in left.values()]
        if time.monotonic() - self._polled < POLL_EVERY:
            time.sleep(timeout)
            return []
        self._polled = time.monotonic()
        ended = [(run, result) for run in self._first() if (result := self._result_of(run))]
        for run, _ in ended:
            del self._waiting[identity(run)]
            self._left.discard(identity(run))
        self._jobs = [job for job in self._jobs if not self._has_ended(job)]
        self._submit()
        return ended

    def interrupt(self) -> None:
        """Stop looking; the jobs go on."""
        self._interrupted = True

    def close(self) -> None:
        """Remove jobs that have not begun from the queue: all runs are finished."""
        for job in self._jobs:
            job.get_info()
            if job.state == "PENDING":
                job.cancel(check=False)

    def _first(self) -> list[Run]:
        """Return the runs among which are those being made: jobs take them in the order of the plan."""
        return list(self._waiting.values())[: 4 * self._most + 16]

    def _result_of(self, run: Run) -> AttemptResult | None:
        """Return the result of a run, if it has ended; report once that it is being made."""
        key = identity(run)
        if self._store.is_finished(run):
            result = AttemptResult("made")
        elif why := self._store.failure(run):
            result = AttemptResult("failed", why)
        else:
            result = None
        if key not in self._seen and (result or self._store.leases.holder(key)):
            self._seen.add(key)
            self._on_start(run)
        return result

    def _has_ended(self, job: submitit.Job[None]) -> bool:
        """Return whether a job has; RunError, with its own, for one that failed as all others would."""
        if not job.done():
            return False
        if (
            not job.paths.result_pickle.exists()
        ):  # Somebody cancelled it, or it was killed: not to be replaced.
            self._most -= 1
            self._cancelled.append(f"{job.job_id} ({job.state})")
        elif error := job.exception():
            *_, last = str(job.stderr() or error).strip().splitlines()
            raise RunError(f"Slurm job {job.job_id} failed: {last} All it said is in {job.paths.stderr}.")
        return True

    def _submit(self) -> None:
        """Submit jobs for the runs that wait, as many as may be."""
        if self._waiting and self._most < 1 and not self._jobs:
            raise RunError(
                f"all Slurm jobs were ended from outside: {', '.join(self._cancelled)}. Finished runs are "
                f"kept; the same command goes on. What they said is in {self._executor.folder}."
            )
        while len(self._jobs) < min(self._most, len(self._waiting)):
            self._jobs.append(self._submitted())
        states = Counter(job.state.lower() for job in self._jobs)
        summary = ", ".join(f"{count} {state}" for state, count in states.items()) or "none"
        done = self._total - len(self._left)
        self.on_progress(Progress("runs in Slurm jobs", done, self._total, f"jobs: {summary}"))

    def _submitted(self) -> submitit.Job[None]:
        try:
            return self._executor.submit(self._job)
        except (RuntimeError, OSError) as error:
            raise ConfigError(f"--engine slurm: no job could be submitted. {error}") from error


# In a job


@dataclass(frozen=True)
class PlanJob:
    """What a job does: runs of a plan, until there are none for it."""

    sent: Pickled

    def __call__(self) -> None:
        """Make runs; asked to end, let what is made write a checkpoint; out of time, queue the job again.

        SIGTERM may mean that somebody cancelled it: what becomes of it then, Slurm decides.
        """
        in_time, received = signal.Signals[f"SIG{submitit.JobEnvironment.USR_SIG}"], list[int]()
        queue_again = signal.getsignal(in_time)
        signal.signal(in_time, signal.SIG_IGN)  # Slurm sends it to all processes that are begun below, too.

        def leave(number: int, _: object) -> None:
            received.append(number)
            if not interruption_requested() and not request_interruption():
                raise Interrupted

        try:
            self._make(lambda: [signal.signal(number, leave) for number in (in_time, signal.SIGTERM)])
        except Interrupted:
            for handled in (in_time, signal.SIGTERM):
                signal.signal(handled, lambda number, _: received.append(number))
            while in_time not in received:
                time.sleep(1)
            if callable(queue_again):
                queue_again(in_time, None)

    def _make(self, heed: Callable[[], object]) -> None:
        context, runs = self.sent.loaded()
        workers = Processes(replace(context, precision=precision_here(context.store)), 1)
        try:
            heed()
            Schedule(context.store, runs, workers, _note, patience=IDLE_PATIENCE).run()
        finally:
            workers.close()

    def checkpoint(self) -> submitit.helpers.DelayedSubmission:
        """Return what is done when the job begins again: the same."""
        return submitit.helpers.DelayedSubmission(self)


def _note(run: Run, number: int, total: int) -> None:
    """Write what is being made into the output of the job."""
    logging.getLogger("submitit").info("[%d/%d] %s (%s)", number, total, run.title, identity(run))
