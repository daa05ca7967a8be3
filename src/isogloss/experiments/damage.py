"""Damaged files of runs (a disk that errs, a loss of power, an incomplete copy): set aside, and made again.

Each is compared with its checksum. Records always are; other files where an unfinished run needs them, or
where they are small: of the rest only the sizes are, as nobody wants to wait until all models are read.
Runs of earlier versions have no checksums: of theirs it is looked whether they can be read.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from isogloss.core.checksums import Checksum, difference, read_checksums
from isogloss.core.errors import DataError, InputError, StorageError
from isogloss.core.identity import identity
from isogloss.core.records import RECORD, Row, reading, writing
from isogloss.data.examples import read_examples
from isogloss.data.files import disk_file
from isogloss.data.result_files import ENDING, PREDICTIONS, read_predictions, read_tensors
from isogloss.encoders.folders import check_weights, read_config
from isogloss.experiments.context import EXAMPLES, LINKS
from isogloss.experiments.needs import needs
from isogloss.experiments.runs import Run
from isogloss.experiments.store import DAMAGED, WORK, Store

SMALL = 1 << 20
"""Bytes of files that are read at each start, as records are."""

ADVICE = re.compile(r"\. (Delete|Copy|Correct) .*", re.DOTALL)
"""What an error advises the user to do, and is done here."""

_LINKS = re.compile(r"(\d+-\d+(:\S+)?( (?=\d)|$))*")
"""A line of links in Pharaoh's format, with or without scores."""


def set_damage_aside(store: Store, runs: Sequence[Run]) -> dict[str, str]:
    """Set damaged records, models and other files of finished runs aside; return what was wrong, by run.

    A run whose record or files were set aside has no record any more.
    """
    found: dict[str, str] = {}
    read_later, needed = set[str](), set[str]()
    for run in reversed(runs):  # A run comes after those it needs.
        key = identity(run)
        if store.is_finished(run):
            each = _damage(store, run, is_needed=key in read_later, is_leaf=key not in needed)
            if why := " ".join(_all_set_aside(each)):
                found[key] = why
        needed |= set(map(identity, needs(run)))
        if not store.is_finished(run):
            read_later |= set(map(identity, needs(run)))
    return dict(reversed(found.items()))


def set_checkpoints_aside(store: Store, run: Run) -> str:
    """Set damaged checkpoints of an unfinished run aside, so that it starts over; return what was wrong."""
    return " ".join(_all_set_aside(_checkpoints(store.folder(run) / WORK)))


def _all_set_aside(damage: Iterable[tuple[Path, str]]) -> Iterator[str]:
    for path, why in damage:
        if path.exists():
            _set_aside(path)
            yield f"{why} Set aside as {DAMAGED}{path.name}, and made again."
        else:
            yield f"{why} It is made again."


def _damage(store: Store, run: Run, *, is_needed: bool, is_leaf: bool) -> Iterator[tuple[Path, str]]:
    folder = store.folder(run)
    try:
        rows, written = store.record(run).rows, read_checksums(folder)
    except StorageError as error:
        yield folder / RECORD, _reason(error)
        return
    damaged = dict[Path, str]()
    with reading(folder):
        for name, why in _differing(folder, written, is_needed=is_needed):
            damaged.setdefault(folder / Path(name).parts[0], f"{folder / name}: damaged ({why}).")
    known = {Path(name).parts[0] for name in written}
    for path, check in _files(folder, reads_all=is_needed or is_leaf):
        if path.name not in known and path.exists():
            try:
                check(path, rows)
            except InputError as error:
                damaged[path] = _reason(error)
    if damaged:
        _set_aside(folder / RECORD)  # Without a record the run is unfinished.
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


def _reason(error: InputError) -> str:
    """Return what is wrong; raise the error where the operating system failed to read the file."""
    if getattr(error.__cause__, "errno", None) is not None:
        raise error
    return ADVICE.sub(".", str(error))


def _checkpoints(work: Path) -> Iterator[tuple[Path, str]]:
    for checkpoint in sorted(path for path in work.rglob("checkpoint-*") if path.is_dir()):
        with reading(checkpoint):
            if why := _unreadable(checkpoint):
                yield checkpoint, f"{checkpoint}: this checkpoint is damaged ({why})."


Check = Callable[[Path, Sequence[Row]], object]
"""Raise InputError where a file or folder is damaged, or does not match the rows of its run's record."""


def _files(folder: Path, *, reads_all: bool) -> Iterator[tuple[Path, Check]]:
    """Yield the possible files of a run besides its record, each with a check that needs no checksum."""
    yield folder / "model", _check_model
    yield folder / PREDICTIONS, lambda path, _: read_predictions(path)
    for path in sorted(folder.glob(f"*{ENDING}")):
        if not path.name.startswith((".", DAMAGED)):
            yield path, lambda path, _: read_tensors(path)
    if reads_all:
        yield folder / LINKS, _check_links
        yield folder / EXAMPLES, _check_examples


def _check_model(model: Path, _: Sequence[Row]) -> None:
    read_config(model)
    check_weights(model, "AutoModel")


def _check_links(path: Path, rows: Sequence[Row]) -> None:
    file, number = disk_file(path), 0
    for number, line in file.lines():
        if not _LINKS.fullmatch(line):
            raise file.broken(number, f"{line!r}", "links i-j, or i-j:score")
    _check_count(path, number, rows[0]["pairs"])


def _check_examples(path: Path, rows: Sequence[Row]) -> None:
    _check_count(path, sum(1 for _ in read_examples(path)), rows[0]["translated"])


def _check_count(path: Path, found: int, expected: object) -> None:
    if found != expected:
        raise DataError(f"{path}: {found} lines; the run's record says {expected}.")


def _unreadable(checkpoint: Path) -> str:
    """Return why a checkpoint cannot be gone on from; empty where it can."""
    try:
        written = read_checksums(checkpoint)
    except ValueError as error:
        return str(error)
    differing = (f"{name}: {why}" for name, why in _differing(checkpoint, written))
    return next(differing, "") if written else _misformed(checkpoint)


def _misformed(checkpoint: Path) -> str:
    """Return the same for a checkpoint without checksums."""
    from safetensors import SafetensorError, safe_open

    for path in sorted(checkpoint.iterdir()):
        try:
            if path.suffix == ".json":
                json.loads(path.read_bytes())
            elif path.suffix == ".safetensors":
                with safe_open(path, framework="numpy"):  # Compares its header with the file's length.
                    pass
        except (SafetensorError, ValueError) as error:
            return f"{path.name}: {' '.join(str(error).split())}"
    return ""


def _set_aside(path: Path) -> None:
    """Rename a file or folder; what was set aside earlier is removed."""
    aside = path.with_name(f"{DAMAGED}{path.name}")
    with writing(aside):
        if aside.is_dir():
            shutil.rmtree(aside)
        path.replace(aside)
