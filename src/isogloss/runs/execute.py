"""Make and record runs of any kind, with warnings about their data."""

import platform
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from time import perf_counter
from traceback import extract_tb
from typing import Any, cast

from isogloss.core import VERSION
from isogloss.core.errors import IsoglossError, RunError, StorageError, one_line, without_secrets
from isogloss.core.identity import content, identity
from isogloss.core.plug_ins import package_of
from isogloss.core.processes import is_of_code
from isogloss.core.progress import Progress
from isogloss.core.records import PLANNED_RUNS, PREDICTIONS, Record, Row, read_made
from isogloss.core.run_parts import is_nested, parts_within
from isogloss.core.stored_parts import UnstorableError, check_id
from isogloss.data.corpus import is_translation
from isogloss.data.generated import generated_size
from isogloss.data.result_files import write_predictions
from isogloss.data.sources import Sources
from isogloss.runs.run import Run, RunContext, SplitRead, needs, runs_in
from isogloss.runs.trackers import TrackedRun, track_run
from isogloss.store.store import Store
from isogloss.training.memory import measured_peak, restart_measurement

LIBRARIES = ("torch", "transformers", "tokenizers")
"""Libraries whose versions every record has."""

SPLIT_NAMES = {"train": "training", "dev": "development", "test": "test"}


def make(context: RunContext, run: Run) -> Record:
    """Make one run whose dependencies are finished, and record it."""
    _check_id(context.store, run)
    context.store.start(run)
    start = perf_counter()
    restart_measurement()
    tracked_run = TrackedRun(
        id=identity(run),
        title=run.title,
        folder=context.store.root,
        settings=dict(_settings(run)),
        facts=_facts(run),
    )
    with (
        _threads(context.threads),
        _plug_ins_named(run),
        track_run(context.track, tracked_run, context.on_progress) as tracking,
    ):
        result = run.make(replace(context, on_progress=tracking.on_progress))
        tracking.finish(result.rows)
    if result.predictions:  # They precede the record, which marks the run as finished.
        write_predictions(context.store.folder(run) / PREDICTIONS, result.predictions)
    warnings = (*result.warnings, *dict.fromkeys(data_warnings(run, context.sources)))
    record = Record(
        id=identity(run),
        kind=run.name,
        title=run.title,
        run=content(run),
        needs=tuple(identity(dependency) for dependency in needs(run)),
        rows=result.rows,
        warnings=tuple(without_secrets(warning) for warning in warnings),
        read=run.data_read,
    )
    context.store.finish(record, _circumstances(perf_counter() - start, context, run))
    context.store.remove_leftovers(run)
    if scores := _main_scores(result.rows):
        context.on_progress(Progress(run.title, 1, 1, scores, rows=tuple(result.rows)))
    return record


def _check_id(store: Store, run: Run) -> None:
    """Raise StorageError if the file of planned runs gave a run the id of a different one."""
    try:
        check_id(run)
    except UnstorableError as error:
        raise StorageError(
            f"{store.root / PLANNED_RUNS}: {error}; somebody changed the file. Delete it and run again: "
            f"finished runs are kept."
        ) from error


def _main_scores(rows: Sequence[Row]) -> str:
    """Return the scores of languages in percent, by the main metric: "accuracy qaa 97.7, qab 74.2"."""
    main = [row for row in rows if row.get("main") and isinstance(row.get("score"), float)]
    scores = ", ".join(f"{row['language']} {100 * cast(float, row['score']):.1f}" for row in main)
    return f"{main[0]['metric']} {scores}" if main else ""


TRACKED_FACTS = ("diagnostic", "method", "source", "target", "pair", "pairs", "languages", "seed")
"""Settings that distinguish the runs of a study. A measurement of one run includes the settings of that
run."""


def _facts(run: Run) -> dict[str, str]:
    """Return the kind of a run, and its settings among ``TRACKED_FACTS``."""
    settings = dict(_settings(run.described_by)) | dict(_settings(run))
    values = {name: str(settings.get(name, "")) for name in TRACKED_FACTS}
    return {"kind": run.name} | {name: value for name, value in values.items() if value}


def _settings(part: Any, prefix: str = "") -> Iterator[tuple[str, str | int | float | bool]]:
    """Yield the fields of a run and of its parts by dotted names. Other runs are given by reference."""
    for field in fields(part):
        value = getattr(part, field.name)
        name = prefix + field.name
        if is_nested(field):
            yield from _settings(value, prefix)
        elif isinstance(value, int | float | str):
            yield name, value
        elif runs := runs_in(value):
            yield name, " ".join(run.reference for run in runs)
        elif is_dataclass(value):
            yield name, getattr(value, "name", type(value).__name__)
            yield from _settings(value, f"{name}.")
        elif value is not None:
            yield name, " ".join(str(part) for part in (value if isinstance(value, tuple) else (value,)))


def compute_without_recording(context: RunContext, run: Run) -> None:
    """Compute a part of a training that the main process records."""
    with _threads(context.threads), _plug_ins_named(run):
        run.make(context)


@contextmanager
def _plug_ins_named(run: Run) -> Iterator[None]:
    """Turn an error in a plug-in's code into an error that stops only its run and names its package."""
    import torch

    try:
        yield
    except (IsoglossError, torch.OutOfMemoryError):
        raise
    except BaseException as error:
        if not is_of_code(error) or not (packages := _packages_of(run)):
            raise
        line = extract_tb(error.__traceback__)[-1]
        raise RunError(
            f"{one_line(error)} ({Path(line.filename).name}:{line.lineno}), in a run with "
            f"plug-ins of {', '.join(packages)}. Mend them, or remove them."
        ) from error


def _packages_of(run: Run) -> list[str]:
    """Return the modules of plug-ins in a run with their packages, and the packages that its parts name."""
    packages = dict[str, None]()
    for part in parts_within(run):
        module = type(part).__module__
        if package := package_of(module):
            packages[f"{module} ({package})"] = None
        if package_name := getattr(part, "package", None):
            packages[str(package_name)] = None
    return list(packages)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    import torch

    previous = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(previous)


def _circumstances(seconds: float, context: RunContext, run: Run) -> dict[str, object]:
    """Return the time, device, memory and library versions of a run."""
    import torch

    has_gpu = torch.cuda.is_available()
    return {
        "seconds": round(seconds, 3),
        "device": torch.cuda.get_device_name() if has_gpu else platform.processor() or platform.machine(),
        "threads": context.threads,
        "precision": context.resolve_precision(run.precision),
        "peak_memory": measured_peak(),
        "versions": {"isogloss": VERSION, "python": platform.python_version()}
        | {name: version(name) for name in (*LIBRARIES, *run.libraries)},
    }


def data_warnings(run: Run, sources: Sources) -> Iterator[str]:
    """Yield remarks on how files were read, and splits with fewer examples than requested."""
    for split in run.splits_read:
        yield from sources.remarks(split.corpus, split.language, split.split)
        has_labels = "bitext" not in sources.corpus(split.corpus).tasks
        # The run of the translation counts the examples lost in it.
        if split.examples and not (has_labels and is_translation(split.language)):
            yield from _warning(split, _size(split, sources))


def size_warnings(runs: Iterable[Run]) -> list[str]:
    """List the splits of built-in corpora with fewer examples than a plan requests, without reading them."""
    splits = dict.fromkeys(split for run in runs for split in run.splits_read)
    sizes = {split: generated_size(split.corpus, split.language, split.split) for split in splits}
    warnings = [_warning(split, size) for split, size in sizes.items() if size is not None]
    return list(dict.fromkeys(warning for split_warnings in warnings for warning in split_warnings))


def _size(split: SplitRead, sources: Sources) -> int:
    size = generated_size(split.corpus, split.language, split.split)
    if size is not None:
        return size
    examples = sources.stream(split.corpus, split.language, split.split, treebanks=split.treebanks)
    return sum(1 for _ in islice(examples, split.examples))


def _warning(split: SplitRead, size: int) -> Iterator[str]:
    if size < split.examples:
        yield (
            f"asked for {split.examples:,} {SPLIT_NAMES[split.split]} examples of {split.language} in "
            f"{split.corpus}: there are {size:,}; all were read."
        )


def seconds_left(runs: Iterable[Run], done: Collection[str], store: Store) -> tuple[float, int]:
    """Estimate the remaining seconds of unfinished runs, and count the runs without an estimate.

    Runs are assumed to be sequential. The estimate of a run is the mean of the finished runs with its method
    or diagnostic and its corpus.
    """
    took: dict[tuple[str, ...], list[float]] = defaultdict(list)
    left: list[tuple[str, ...]] = []
    for run in runs:
        part = getattr(run, "method", None) or getattr(run, "diagnostic", None)
        group = (run.name, getattr(part, "name", ""), getattr(run, "corpus", ""))
        if identity(run) not in done:
            left.append(group)
            continue
        if (seconds := read_made(store.folder(run)).seconds) is not None:
            took[group].append(seconds)
    means = [sum(took[group]) / len(took[group]) for group in left if group in took]
    return sum(means), len(left) - len(means)
