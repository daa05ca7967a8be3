"""Running recipes, and printing their plans."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import typer

from isogloss.cli.display import Display, emit, format_count
from isogloss.cli.options import ExecutionGroup, OutputOptions, RecipeGroup
from isogloss.core.errors import ConfigError, plain
from isogloss.core.identity import identity
from isogloss.engine.engines import Execution

if TYPE_CHECKING:
    from isogloss.api import Result
    from isogloss.planning.plan import Planned
    from isogloss.runs.run import Run
    from isogloss.training.setting import Peft


def run_and_report(
    recipes: Sequence[str],
    setup: RecipeGroup,
    execution: ExecutionGroup,
    output: OutputOptions,
    *,
    report: bool = True,
    command: str = "",
) -> None:
    """Run recipes with progress and, with ``report``, write their report. Exits with 1 if runs failed."""
    from isogloss import api

    with output.events as display:
        result = api.run(
            recipes,
            **setup.options(),
            **execution.options(),
            report=report,
            on_progress=display.on_progress,
            announce=display.announce,
            command=command,
        )
        _show_outcome(result, display)
    if report:
        from isogloss.cli.results import show_report

        show_report(result.report, as_json=output.as_json)
    _exit_if(result.outcome.failed)


def _show_outcome(result: "Result", display: Display, *, processes: int = 1) -> None:
    """Print the number of runs, and each kind of warning once, or the runs' ids as JSON."""
    outcome = result.outcome
    if display.as_json:
        emit({"event": "outcome", **asdict(outcome)})
    summary = f"{format_count(len(outcome.made), 'run')} made" + (
        f" in {processes} processes" if processes > 1 else ""
    )
    display.say(f"{summary}, {len(outcome.done)} were finished before, {len(outcome.failed)} failed.")
    for key, message in outcome.damaged.items():
        display.say(f"isogloss: run {key} was damaged. {message}")
    for key, message in outcome.died.items():
        display.say(f"isogloss: run {key}: {message}")
    kinds: dict[str, dict[str, str]] = {}
    for record in () if display.as_json or display.quiet else result.records:
        for text in record.warnings:
            kinds.setdefault(re.sub(r"[\d.,]+", "", text), {}).setdefault(record.id, text)
    for warnings in kinds.values():
        key, text = next(iter(warnings.items()))
        more = f" and {len(warnings) - 1} more" if len(warnings) > 1 else ""
        display.say(f"isogloss: run {key}{more}: {text}")


def _exit_if(failures: Mapping[str, str]) -> None:
    for key, message in failures.items():
        print(plain(f"isogloss: run {key} failed: {message}"), file=sys.stderr)
    if failures:
        raise typer.Exit(1)


def were_started_together(execution: Execution) -> bool:
    """Return whether this is one of several processes. Torch is only imported under a launcher.

    Raises ConfigError if the engine starts runs beyond this machine.
    """
    from isogloss.core.processes import is_launched

    if not is_launched():
        return False
    from isogloss.training.distributed import world_size

    if world_size() > 1 and execution.beyond:
        raise ConfigError(
            f"--engine {execution.engine}: this is one of {world_size()} processes of a launcher, which "
            f"compute each run together. Start isogloss without a launcher, or remove --engine."
        )
    return world_size() > 1


def run_together(
    recipes: Sequence[str],
    setup: RecipeGroup,
    execution: ExecutionGroup,
    output: OutputOptions,
    *,
    report: bool,
    command: str,
) -> None:
    """Run recipes as one of several processes, of which only the main one prints and writes the report."""
    from isogloss import api
    from isogloss.engine.engine import make_together
    from isogloss.engine.engines import parse_execution
    from isogloss.planning.plan import plan_recipes
    from isogloss.training.distributed import is_main_process, prepare_sharding, world_size

    options = parse_execution(**execution.options())
    if options.devices:
        raise ConfigError(
            "--devices: under a launcher each process has its own GPU. Remove it, and set "
            "CUDA_VISIBLE_DEVICES for the launcher instead."
        )
    prepare_sharding()
    plan = plan_recipes(recipes, **setup.options())
    is_main = is_main_process()
    with Display(quiet=output.quiet or not is_main, as_json=output.as_json and is_main) as display:
        if is_main:
            plan.write(command)
        outcome = make_together(plan, options, announce=display.announce, on_progress=display.on_progress)
        ids = tuple(identity(run) for run in plan.runs)
        _show_outcome(api.Result(plan.store.root, outcome=outcome, ids=ids), display, processes=world_size())
        result = api.report_alone(plan.store, display.on_progress) if is_main and report else None
    if result:
        from isogloss.cli.results import show_report

        show_report(result, as_json=output.as_json)
    if is_main:  # Launchers end all processes when one fails.
        _exit_if(outcome.failed)


def print_plan(recipes: Sequence[str], setup: RecipeGroup, *, speed: float = 0, as_json: bool) -> None:
    """Print the runs of the recipes: what they are, their state, what they take, and totals.

    More than ``MOST_RUNS_LISTED`` runs have a line for each kind. JSON has a line for each run. ``speed`` in
    teraflops a second says how long trainings take.
    """
    from isogloss.planning.plan import plan_recipes
    from isogloss.runs.run import needs

    plan = plan_recipes(recipes, **setup.options(), assume=True)  # Also plans missing corpora.
    for warning in _plan_warnings(plan):
        print(plain(f"isogloss: {warning}"), file=sys.stderr)
    shared = {identity(run): 0 for run in plan.runs}
    for run in plan.runs:
        for dependency in needs(run):
            shared[identity(dependency)] += 1
    plan.store.refresh()
    finished_runs = {identity(run) for run in plan.runs if plan.store.is_finished(run)}
    operations = {
        key: run.operations(plan.sources.encoders) for key, run in zip(shared, plan.runs, strict=True)
    }
    rows = [
        (
            key,
            "done" if key in finished_runs else _state(run, plan),
            shared[key],
            _memory(run, plan),
            _operations(operations[key]),
            plan.titles[key],
        )
        for key, run in zip(shared, plan.runs, strict=True)
    ]
    display = Display(as_json=as_json)
    if as_json or len(rows) <= MOST_RUNS_LISTED:
        display.table(("run", "state", "needed by", "memory", "operations", "what"), rows)
    else:
        display.table(
            ("what", "runs", "done", "memory", "operations"), _group_runs(plan, finished_runs, operations)
        )
    _print_totals(plan, finished_runs, operations, speed=speed, as_json=as_json)


MOST_RUNS_LISTED = 20
"""Runs that a plan lists one by one on a screen."""

ASSUMED_SPEED = 0.2
"""Teraflops a second of one core of a server's processor, by the trainings of the quickstart."""


def _group_runs(
    plan: "Planned", finished_runs: Set[str], operations: Mapping[str, float | None]
) -> list[tuple[object, ...]]:
    """Return a line for each kind of run: how many, how many are done, most memory, and all operations."""
    from isogloss.core.sizes import format_size
    from isogloss.runs.run import peak_memory

    kinds: dict[str, list[Run]] = {}
    for run in plan.runs:
        kinds.setdefault(plan.titles[identity(run)].partition(":")[0], []).append(run)
    lines: list[tuple[object, ...]] = []
    for kind, runs in kinds.items():
        keys = [identity(run) for run in runs]
        memories = [peak_memory(run, plan.sources.encoders) for run in runs]
        memory = "unknown" if None in memories else format_size(max(filter(None, memories), default=0))
        counts = [operations[key] for key in keys]
        total = None if None in counts else sum(filter(None, counts))
        finished_count = sum(key in finished_runs for key in keys)
        lines.append(
            (kind, len(runs), finished_count or "", memory if any(memories) else "", _operations(total))
        )
    return lines


def _stored_models(plan: "Planned", finished_runs: Set[str]) -> tuple[int, int | None]:
    """Return the number and the bytes of the models that runs will store. None if a size is unknown."""
    sizes = [
        _model_bytes(run, plan)
        for run in plan.runs
        if run.name in MODEL_RUNS and identity(run) not in finished_runs
    ]
    known_sizes = [size for size in sizes if size is not None]
    return len(sizes), sum(known_sizes) if len(known_sizes) == len(sizes) else None


MODEL_RUNS = ("pretrain", "adjust", "fine-tune")
"""Kinds of runs that store a model."""

BYTES_OF_A_WEIGHT = 4


def _model_bytes(run: "Run", plan: "Planned") -> int | None:
    """Return the bytes of the weights of a run's model, including its encoder. None if unknown.

    With ``peft`` only the trained weights are stored.
    """
    encoder = getattr(run, "encoder", run)
    shape = encoder.shape(plan.sources.encoders) if hasattr(encoder, "shape") else None
    if shape is None:
        return None
    peft: "Peft | None" = getattr(run, "peft", None)
    trained_parameters = peft.trained(shape) if peft else None
    return BYTES_OF_A_WEIGHT * (shape.parameters if trained_parameters is None else trained_parameters)


def _print_totals(
    plan: "Planned",
    finished_runs: Set[str],
    operations: Mapping[str, float | None],
    *,
    speed: float,
    as_json: bool,
) -> None:
    from isogloss.core.sizes import format_size
    from isogloss.runs.execute import seconds_left

    total = _Total([count for key, count in operations.items() if key not in finished_runs], speed)
    models, size = _stored_models(plan, finished_runs)
    seconds, unlike = seconds_left(plan.runs, finished_runs, plan.store)
    packages = plan.sources.missing_packages
    if as_json:
        counts = {
            "runs": len(operations),
            "done": len(finished_runs),
            "to make": len(operations) - len(finished_runs),
        }
        stored_models = {"models": models, "model bytes": size}
        requirements = {"requires": list(packages)} if packages else {}
        left = {"hours left": seconds / 3600, "unlike": unlike}
        emit({**counts, **stored_models, **requirements, **total.numbers, **left})
    else:
        disk = f", about {format_size(size)} of disk" if size else ""
        model_line = f"Models to store: {models}{disk}\n" if models else ""
        print(model_line, total, *(f"requires: {name}\n" for name in packages), sep="", end="")
        unlike_note = f" (and {unlike} unlike any of them)" if unlike else ""
        estimate = (
            f", {seconds / 3600:.2g} hours of one job by those made here{unlike_note}" if seconds else ""
        )
        states = f"{len(finished_runs)} done, {len(operations) - len(finished_runs)} to make"
        print(f"{format_count(len(operations), 'run')}: {states}{estimate}")


def _state(run: "Run", plan: "Planned") -> str:
    if holder := plan.store.leases.holder(identity(run)):
        return f"made by {holder}"
    return "failed" if plan.store.failure(run) else "to do"


@dataclass(frozen=True)
class _Total:
    """The operations of the unfinished trainings, and their time at a speed."""

    operations: Sequence[float | None]
    speed: float

    @property
    def numbers(self) -> Mapping[str, float]:
        """Operations, number of trainings of unknown size, and hours if a speed is given."""
        total = sum(count for count in self.operations if count)
        hours = {"hours": total / self.speed / 1e12 / 3600} if self.speed else {}
        return {"operations": total, "unknown": sum(count is None for count in self.operations), **hours}

    def __str__(self) -> str:
        """Return a line for people, or "" if nothing is trained."""
        numbers = self.numbers
        if not numbers["operations"]:
            return ""
        speed = self.speed or ASSUMED_SPEED
        assumption = "" if self.speed else ", about one core (--speed: yours)"
        needed_hours = numbers["operations"] / speed / 1e12 / 3600
        hours = f", {needed_hours:.2g} hours at {speed:g} TFLOP/s{assumption}"
        trainings = format_count(int(numbers["unknown"]), "training")
        unknown_part = f" (and {trainings} of unknown size)" if numbers["unknown"] else ""
        return f"Training: about {numbers['operations']:.1e} operations{unknown_part}{hours}\n"


def _operations(count: float | None) -> str:
    if count is None:
        return "unknown"
    return f"{count:.1e}" if count else ""


def _plan_warnings(plan: "Planned") -> Iterator[str]:
    """Yield missing data and assumptions of a plan, and questions that its runs cannot decide."""
    from isogloss.engine.engine import check_packages
    from isogloss.planning.encoders import list_unreplicated
    from isogloss.runs.execute import size_warnings
    from isogloss.runs.fine_tune import assumed_sizes

    yield from _unread_sources(plan)
    yield from assumed_sizes(plan.runs)
    yield from size_warnings(plan.runs)
    yield from list_unreplicated(plan.runs)
    with plan.sources.assuming_packages():
        check_packages(plan.runs)


def _unread_sources(plan: "Planned") -> Iterator[str]:
    """Yield the corpora and hub encoders that could not be read: not on this machine, or without labels."""
    from isogloss.runs.estimates import ASSUMED_SHAPES
    from isogloss.runs.run import unresolved_models

    missing: dict[str, list[str]] = {}
    for corpus, split, language in plan.sources.assumed:
        missing.setdefault(f"{corpus} {split}", []).append(language)
    if missing:
        names = ", ".join(
            f"{corpus_split} {' '.join(sorted(languages))}"
            for corpus_split, languages in sorted(missing.items())
        )
        yield (
            f"not checked, because not on this machine: {names}. The ids of the runs will change when their "
            f"data is available (--data DIR)."
        )
    for corpus, split, language in plan.sources.unlabelled:
        yield f"{corpus} {language}: no labels, so no score on {split}."
    for source in unresolved_models(plan.runs):
        size = " Its published size is assumed." if source in ASSUMED_SHAPES else ""
        yield (
            f"{source}: not checked, because it is not on this machine and the Hugging Face hub is "
            f"unreachable.{size}"
        )


def _memory(run: "Run", plan: "Planned") -> str:
    from isogloss.core.sizes import format_size
    from isogloss.runs.run import peak_memory

    memory = peak_memory(run, plan.sources.encoders)
    if memory is None:
        return "unknown"
    return format_size(memory) if memory else ""
