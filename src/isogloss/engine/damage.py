"""Quarantine damaged files of runs (disk errors, loss of power, incomplete copies) for recomputation.

Records are always compared with their checksums. Other files are compared if an unfinished run needs them or
if they are small. For the rest only sizes are compared, because reading all models takes too long.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from isogloss.core.atomic_files import reading, writing
from isogloss.core.checksums import CHECKSUMS, Checksum, difference, read_checksums
from isogloss.core.errors import StorageError
from isogloss.core.identity import identity
from isogloss.core.records import MADE, RECORD, read_with_checksums
from isogloss.core.shared_files import (
    IrregularFileError,
    entries,
    file_size,
    is_file,
    is_folder,
    is_taken,
    remove,
    rename,
)
from isogloss.runs.run import Run, needs
from isogloss.store.store import DAMAGED, WORK, Store

SMALL = 1 << 20
"""Bytes of files that are read at each start, as records are."""

ADVICE = re.compile(r"\. Delete .*", re.DOTALL)
"""Advice in the message of a damaged record, which this module carries out."""


def quarantine_damage(store: Store, runs: Sequence[Run]) -> dict[str, str]:
    """Set damaged records, models and other files of finished runs aside, and return the damage by run.

    A run whose record or files were set aside has no record any more.
    """
    damage: dict[str, str] = {}
    read_later = set[str]()
    for run in reversed(runs):  # A run comes after those it needs.
        key = identity(run)
        is_finished = store.is_finished(run)
        if is_finished:
            folder = store.folder(run)
            damage[key] = " ".join(_quarantine_all(folder, _damage(folder, is_needed=key in read_later)))
        if damage.get(key) or not is_finished:
            read_later |= {identity(dependency) for dependency in needs(run)}
    return {key: why for key, why in reversed(damage.items()) if why}


def quarantine_checkpoints(store: Store, run: Run) -> str:
    """Set damaged checkpoints of an unfinished run aside and return the damage.

    The run resumes from its last whole checkpoint or starts over.
    """
    return " ".join(_quarantine_all(store.folder(run), _checkpoints(store.folder(run))))


def missing_file(store: Store, runs: Iterable[Run]) -> str:
    """Name a file that finished runs have lost. Empty if all files exist."""
    for run in runs:
        folder = store.folder(run)
        with suppress(ValueError):  # Damaged checksums are found at the next start.
            for name in (RECORD, *read_checksums(folder)):
                if not is_file(folder, name):
                    return str(folder / name)
    return ""


def _quarantine_all(folder: Path, damage: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, why in damage:
        if is_taken(folder, name):
            _quarantine(folder, name)
            yield f"{why} Set aside as {DAMAGED}{Path(name).name}, and made again."
        else:
            yield f"{why} It is made again."


def _damage(folder: Path, *, is_needed: bool) -> Iterator[tuple[str, str]]:
    """Yield the names of damaged files and folders of a finished run, and the damage."""
    problems = dict[str, str]()
    checksums = dict[str, Checksum]()
    try:
        _, checksums = read_with_checksums(folder)
    except StorageError as error:
        problems[RECORD] = _reason(error)
    with reading(folder):
        for name, why in _differing(folder, checksums, is_needed=is_needed):
            problems.setdefault(name.partition("/")[0], f"{folder / name}: damaged ({why}).")
        for name in (MADE, CHECKSUMS):
            if is_taken(folder, name) and not is_file(folder, name):
                problems[name] = f"{folder / name}: damaged (it is not a regular file)."
    if problems and RECORD not in problems:
        _quarantine(folder, RECORD)  # Without a record the run is unfinished.
    yield from problems.items()


def _differing(
    folder: Path, checksums: Mapping[str, Checksum], *, is_needed: bool = True
) -> Iterator[tuple[str, str]]:
    """Yield names of files that differ from their checksums, and the difference.

    A missing file counts only if an unfinished run needs it. Otherwise somebody removed it on purpose.
    """
    for name, checksum in checksums.items():
        size = file_size(folder, name)
        if size is None:
            if is_taken(folder, name):
                yield name, "it is not a regular file"
            elif is_needed:
                yield name, "it is missing"
            continue
        is_read = size == checksum.size and (is_needed or size <= SMALL)
        actual = Checksum.of_file(folder, name) if is_read else Checksum(size, checksum.crc32)
        if why := difference(actual, checksum):
            yield name, why


def _reason(error: StorageError) -> str:
    """Describe the damage. Raises the error if the operating system failed to read the file."""
    cause = error.__cause__
    if getattr(cause, "errno", None) is not None and not isinstance(cause, IrregularFileError):
        raise error
    return ADVICE.sub(".", str(error))


def _checkpoints(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield damaged checkpoints that are later than the last whole one, from which a training resumes."""
    trainings: dict[str, list[str]] = {}
    for name in sorted(_folders_below(folder, WORK)):
        training, _, step = name.rpartition("/")
        if step.startswith("checkpoint-"):
            trainings.setdefault(training, []).append(name)
    for names in trainings.values():
        for name in reversed(names):
            with reading(folder / name):
                if not (why := _unreadable(folder / name)):
                    break
                yield name, f"{folder / name}: this checkpoint is damaged ({why})."


def _folders_below(folder: Path, name: str) -> Iterator[str]:
    for entry in entries(folder, name) if is_folder(folder, name) else ():
        if entry.is_folder:
            yield f"{name}/{entry.name}"
            yield from _folders_below(folder, f"{name}/{entry.name}")


def _unreadable(checkpoint: Path) -> str:
    try:
        checksums = read_checksums(checkpoint)
    except ValueError as error:
        return str(error)
    differing = (f"{name}: {why}" for name, why in _differing(checkpoint, checksums))
    return next(differing, "" if checksums else f"it has no {CHECKSUMS}")


def _quarantine(folder: Path, name: str) -> None:
    """Rename a file or folder, in place of an earlier one that was set aside."""
    folder_name, slash, base = name.rpartition("/")
    new_name = f"{folder_name}{slash}{DAMAGED}{base}"
    with writing(folder / new_name), suppress(FileNotFoundError):  # Another process may have been quicker.
        remove(folder, new_name)
        rename(folder, name, new_name)
