"""Records: the result of a finished run. A run is finished if and only if its record exists.

A record contains only results determined by the run, so interrupted and uninterrupted runs have equal bytes.
Time, machine and versions are written to ``made.json`` in the same folder. The runs of a recipe are written
to ``plan.json``. Any of these files may have been written by others.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field

from isogloss.core import rows
from isogloss.core.atomic_files import write_bytes, write_text
from isogloss.core.checksums import CHECKSUMS, Checksum, as_text, difference, read_checksums, unseal
from isogloss.core.errors import StorageError, one_line, without_secrets
from isogloss.core.identity import ID, identity
from isogloss.core.shared_files import MOST_BYTES, IrregularFileError, entries, read_file
from isogloss.core.untrusted import convert_json, parse_json

RECORD, MADE, FAILED = "record.json", "made.json", "failed.json"
PLAN = "plan.json"

PLANNED_RUNS = "planned-runs.json.gz"
"""The runs of the last recipe, which later processes read instead of planning (``planning.stored_plans``)."""

PREDICTIONS = "predictions.parquet"
"""The predictions of a run (``data.result_files``)."""

DIFFERENCE = "difference.json"
"""In a model's folder: what its weights are the difference from (``encoders.added.differences``)."""

UNREAD = "could not be read"
"""In warnings, of runs whose records are damaged or from other programs."""


T = TypeVar("T")
Value = rows.Value
Row = rows.Row


RunId = Annotated[str, Field(pattern="^[0-9A-Za-z-]{1,64}$")]
"""The id of a run, which is the name of its folder."""


@dataclass(frozen=True)
class Published:
    """A number that a paper printed."""

    scale: str
    system: str
    inputs: str = field(default="", kw_only=True)
    encoder: str
    language: str
    measure: str
    value: float
    page: str


@dataclass(frozen=True)
class Plan:
    """The runs that the last recipe requested, and their labels in reports."""

    title: str = ""
    recipe: str = ""
    command: str = ""
    scale: str = ""
    asked: str = ""
    runs: tuple[RunId, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    methods: dict[str, list[str]] = field(default_factory=dict)
    against: dict[str, str] = field(default_factory=dict)
    """Ids of models with a baseline in the recipe, each with the id of its baseline."""
    published: tuple[Published, ...] = ()


@dataclass(frozen=True)
class Made:
    """Time, machine and versions of a run, as far as they are known."""

    seconds: float | None = None
    device: str | None = None
    threads: int | None = None
    precision: str | None = None
    peak_memory: int | None = None
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DataRead:
    """Data that a model was trained on, including the data of its start, its teacher and its parts."""

    labels: tuple[str, ...] = ()
    """Languages whose labelled training examples it read."""
    dev: tuple[str, ...] = ()
    """Languages whose labelled development examples chose an epoch."""
    unlabelled: tuple[str, ...] = ()
    """Languages whose examples it read without labels."""
    translations: tuple[str, ...] = ()
    """Pairs such as en-sw, whose translated examples it read."""
    bitext: tuple[str, ...] = ()
    """Pairs of languages whose bitext it read."""
    plain: bool = False
    """Whether it was trained with only the loss of its task (``Method.plain``)."""
    taught: bool = False
    """Whether a teacher labelled the translations."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """The content of a run (``run``), the runs it needed, and the rows it made."""

    id: str
    kind: str
    title: str
    run: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    rows: Sequence[Row] = ()
    warnings: tuple[str, ...] = field(default=())
    read: DataRead | None = None
    """Data of a fine-tuned model. None in records of earlier versions and of other kinds of runs."""

    def __repr__(self) -> str:
        """Return id, title and number of rows in a line."""
        return f"Record({self.id!r}, {self.title!r:.200}, {len(self.rows)} rows)"

    def body(self) -> dict[str, Any]:
        """Return the record as it is written to disk, without empty optional fields."""
        body = {name: getattr(self, name) for name in Record.__dataclass_fields__}
        body["read"] = _without_empty(asdict(self.read)) if self.read else None
        return body if self.read else {name: value for name, value in body.items() if name != "read"}


def _without_empty(read: dict[str, Any]) -> dict[str, Any]:
    """Drop ``unlabelled`` if it is empty, so that records keep the form of versions without it."""
    return {name: value for name, value in read.items() if value or name != "unlabelled"}


def write_record(folder: Path, record: Record, files: Mapping[str, Checksum] | None = None) -> None:
    """Write the record atomically, after its checksum and the checksums of other ``files`` of the run.

    What killed processes left in the folder was removed before (``Store.start``).
    """
    body = record.body()
    body["warnings"] = [without_secrets(warning) for warning in record.warnings]
    body["rows"] = [{name: or_none(value) for name, value in row.items()} for row in record.rows]
    content = (json.dumps(body, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()
    checksums = as_text({**(files or {}), RECORD: Checksum.of(content)})
    write_text(folder, CHECKSUMS, checksums, is_swept=True)
    write_bytes(folder, RECORD, content, is_swept=True)


def or_none(value: T) -> T | None:
    """Return None for nan and infinities, which JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_record(folder: Path) -> Record:
    """Read a run's record. Raises StorageError, with what to do, if it is damaged or missing."""
    return read_with_checksums(folder)[0]


def read_with_checksums(folder: Path) -> tuple[Record, dict[str, Checksum]]:
    """Read a run's record as ``read_record`` does, and the checksums of its other files."""
    path = folder / RECORD
    try:
        files = read_checksums(folder)
        if files and RECORD not in files:
            raise _damage_error(path, f"{CHECKSUMS} has no checksum of it")
        checksum = files.pop(RECORD, None)
        content = read_file(folder, RECORD, max(checksum.size, MOST_BYTES) if checksum else MOST_BYTES)
        if checksum and (wrong := difference(Checksum.of(content), checksum)):
            raise _damage_error(path, wrong)
        body = parse_json(content)
        if not isinstance(body, dict) or body.keys() | {"read"} != Record.__dataclass_fields__.keys():
            raise _damage_error(path, f"its fields are not {', '.join(Record.__dataclass_fields__)}")
        record = convert_json(Record, body)
        wrong = _wrong(record, folder.name)
    except IrregularFileError as error:
        raise _damage_error(path, str(error.strerror)) from error
    except ValueError as error:
        raise _damage_error(path, one_line(error)) from error
    except OSError as error:
        raise StorageError(
            f"{path}: cannot read this record ({error.strerror or error}). Check the folder, or run again."
        ) from error
    if wrong:
        raise _damage_error(path, wrong)
    return record, files


def run_files(folder: Path, *names: str) -> Iterator[Path]:
    """Yield the files of these names in the folders below one, each folder read once: there may be many."""
    for run_folder in entries(folder) if folder.is_dir() else ():
        if run_folder.is_folder:
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                inside = entries(folder, run_folder.name)
                yield from (
                    folder / run_folder.name / entry.name
                    for entry in inside
                    if entry.name in names and entry.is_file
                )


def read_made(folder: Path) -> Made:
    """Return time, machine and versions of a run. If unknown, return an empty ``Made``."""
    with suppress(OSError, ValueError):
        return convert_json(Made, unseal(read_file(folder, MADE)))
    return Made()


@contextmanager
def understanding(path: Path) -> Iterator[None]:
    """Turn errors from the content of a record that isogloss did not write into a StorageError."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise _damage_error(path, f"its run is none of isogloss's: {one_line(error):.200}") from error


def _damage_error(path: Path, damage: str) -> StorageError:
    return StorageError(
        f"{path}: this record is damaged ({damage}). Delete the file and run again; only this run is "
        f"repeated."
    )


def _wrong(record: Record, name: str) -> str:
    """Describe how a record differs from its folder, its run and its kinds of rows. Empty if it does not."""
    if record.id != name:
        return f"id {record.id!r:.40} in folder {name!r:.40}"
    key, kind = identity(record.run), record.run.get("kind")
    if (key, kind) != (name, record.kind):
        return f"its run has the id {key} and the kind {kind!r:.40}"
    return rows.wrong_value(kind_of_run(record.kind, record.run), record.rows)


def kind_of_run(kind: str, run: Mapping[str, Any]) -> str:
    """Return the diagnostic of a measurement, else the kind of run."""
    diagnostic = run.get("diagnostic")
    return str(diagnostic.get("kind")) if isinstance(diagnostic, Mapping) else kind


def base_of(model: Path) -> str:
    """Return the id of the run that a model's weights are a difference from. Empty for other models."""
    try:
        base = str(parse_json(read_file(model, DIFFERENCE))["base"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    key = base.removeprefix("../../").removesuffix("/model")
    return key if ID.fullmatch(key) else ""
