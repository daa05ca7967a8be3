"""Damaged files of runs (a disk that errs, a loss of power, an incomplete copy): set aside, and made again.

Each is compared with its checksum. Records always are; other files where an unfinished run needs them, or
where they are small: of the rest only the sizes are, as nobody wants to wait until all models are read.
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from isogloss.core.atomic_files import reading, writing
from isogloss.core.checksums import CHECKSUMS, Checksum, difference, read_checksums
from isogloss.core.errors import StorageError
from isogloss.core.identity import identity
from isogloss.core.records import RECORD, read_with_checksums
from isogloss.runs.run import Run, needs
from isogloss.store.store import DAMAGED, WORK, Store

SMALL = 1 << 20
"""Bytes of files that are read at each start, as records are."""

ADVICE = re.compile(r"\. Delete .*", re.DOTALL)
"""What the error of a record advises the user to do, and is done here."""


def quarantine_damage(store: Store, runs: Sequence[Run]) -> dict[str, str]:
    """Set damaged records, models and other files of finished runs aside; return what was wrong, by run.

    A run whose record or files were set aside has no record any more.
    """
    damage: dict[str, str] = {}
    read_later = set[str]()
    for run in reversed(runs):  # A run comes after those it needs.
        key = identity(run)
        is_finished = store.is_finished(run)
        if is_finished:
            folder = store.folder(run)
            damage[key] = " ".join(_quarantine_all(_damage(folder, is_needed=key in read_later)))
        if damage.get(key) or not is_finished:
            read_later |= set(map(identity, needs(run)))
    return {key: why for key, why in reversed(damage.items()) if why}


def quarantine_checkpoints(store: Store, run: Run) -> str:
    """Set damaged checkpoints of an unfinished run aside, so that it starts over; return what was wrong."""
    return " ".join(_quarantine_all(_checkpoints(store.folder(run) / WORK)))


def missing_file(store: Store, runs: Iterable[Run]) -> str:
    """Name a file that finished runs have lost since they were made; empty where all are there."""
    for folder in map(store.folder, runs):
        with suppress(ValueError):  # Damaged checksums are found at the next start.
            for name in (RECORD, *read_checksums(folder)):
                if not (folder / name).is_file():
                    return str(folder / name)
    return ""


def _quarantine_all(damage: Iterable[tuple[Path, str]]) -> Iterator[str]:
    for path, why in damage:
        if path.exists():
            _quarantine(path)
            yield f"{why} Set aside as {DAMAGED}{path.name}, and made again."
        else:
            yield f"{why} It is made again."


def _damage(folder: Path, *, is_needed: bool) -> Iterator[tuple[Path, str]]:
    try:
        _, written = read_with_checksums(folder)
    except StorageError as error:
        yield folder / RECORD, _reason(error)
        return
    damaged = dict[Path, str]()
    with reading(folder):
        for name, why in _differing(folder, written, is_needed=is_needed):
            damaged.setdefault(folder / Path(name).parts[0], f"{folder / name}: damaged ({why}).")
    if damaged:
        _quarantine(folder / RECORD)  # Without a record the run is unfinished.
    yield from damaged.items()


def _differing(
    folder: Path, written: Mapping[str, Checksum], *, is_needed: bool = True
) -> Iterator[tuple[str, str]]:
    """Yield names of files that are not as they were written, and how they differ.

    What is missing was removed by somebody who does not need it, unless an unfinished run does.
    """
    for name, expected in written.items():
        path = folder / name
        if not path.is_file():
            if is_needed:
                yield name, "it is missing"
            continue
        size = path.stat().st_size
        reads = size == expected.size and (is_needed or size <= SMALL)
        if why := difference(Checksum.of_file(path) if reads else Checksum(size, expected.crc32), expected):
            yield name, why


def _reason(error: StorageError) -> str:
    """Return what is wrong; raise the error where the operating system failed to read the file."""
    if getattr(error.__cause__, "errno", None) is not None:
        raise error
    return ADVICE.sub(".", str(error))


def _checkpoints(work: Path) -> Iterator[tuple[Path, str]]:
    """Yield damaged checkpoints that are later than the last whole one, from which a training resumes."""
    trainings: dict[Path, list[Path]] = {}
    for checkpoint in sorted(path for path in work.rglob("checkpoint-*") if path.is_dir()):
        trainings.setdefault(checkpoint.parent, []).append(checkpoint)
    for checkpoints in trainings.values():
        for checkpoint in reversed(checkpoints):
            with reading(checkpoint):
                if not (why := _unreadable(checkpoint)):
                    break
                yield checkpoint, f"{checkpoint}: this checkpoint is damaged ({why})."


def _unreadable(checkpoint: Path) -> str:
    try:
        written = read_checksums(checkpoint)
    except ValueError as error:
        return str(error)
    differing = (f"{name}: {why}" for name, why in _differing(checkpoint, written))
    return next(differing, "" if written else f"it has no {CHECKSUMS}")


def _quarantine(path: Path) -> None:
    """Rename a file or folder; what was set aside earlier is removed."""
    aside = path.with_name(f"{DAMAGED}{path.name}")
    with writing(aside), suppress(FileNotFoundError):  # Another process may have been quicker.
        if aside.is_dir():
            shutil.rmtree(aside)
        path.replace(aside)
