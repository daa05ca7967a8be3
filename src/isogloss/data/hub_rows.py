"""Rows of datasets of the Hugging Face hub as JSON lines, and the library that reads them.

Only data is read (parquet, JSON, CSV, lines of text), no code that comes with a dataset is ever run.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from isogloss.core.errors import ConfigError, DataError, one_line
from isogloss.data.files import File

if TYPE_CHECKING:
    from datasets import DatasetBuilder

Result = TypeVar("Result")

PINNED = re.compile(r"[\w.-]+(/[\w.-]+)?@[0-9a-f]{40}")
"""A dataset and the commit that is read."""

DEFAULT = "default"
"""What the library calls the only configuration of a dataset."""

READ_BY = ("parquet", "json", "csv", "text", "conll", "arrow", "cache")
"""Readers of the library that read data alone; others unpickle, or open archives of anything."""

NO_LABEL = -1
"""The hub's label where annotators did not agree."""

VERSION = 1
"""Part of the fingerprints; raise it when rows give other lines than before."""


def check_dataset(dataset: str) -> None:
    """Raise ConfigError unless a dataset is named with a whole commit."""
    if not PINNED.fullmatch(dataset):
        raise ConfigError(
            f"hub: found {dataset!r}; expected owner/name@COMMIT, all 40 digits of it: a branch "
            f"moves on, and a run could not say what it was trained on. The commits of a dataset are on its "
            f"page, under Files and versions."
        )


def hub_file(dataset: str, path: str) -> File:
    """Return the rows of ``config/split`` of a dataset as a file, which is made when it is read."""
    config, _, split = path.rpartition("/")
    name = f"hub:{dataset}/{path}"

    def read() -> Iterator[str]:
        builder = _builder(dataset, config, name)
        attempt(name, builder.download_and_prepare, ADVICE)
        return json_lines(attempt(name, lambda: builder.as_dataset(split=split), ADVICE), name)

    facts = ("hub rows", str(VERSION), dataset, config, split)
    return File(name, read, lambda: sha256("\n".join(facts).encode()).hexdigest())


ADVICE = (
    "Look whether the dataset has this configuration, split and commit, and whether the network is there; "
    "what was read before is read again without it."
)


def _builder(dataset: str, config: str, name: str) -> "DatasetBuilder":
    """Return the library's builder; DataError for another commit, or files that could be more than data."""
    repository, _, commit = dataset.partition("@")
    builder = attempt(
        name, lambda: library().load_dataset_builder(repository, config or None, revision=commit), ADVICE
    )
    kinds = {kind.__module__.rpartition(".")[2] for kind in type(builder).__mro__}
    if not kinds & {*READ_BY}:
        raise DataError(
            f"{name}: its files are no plain data ({type(builder).__name__}); expected "
            f"{', '.join(READ_BY[:4])}. Save the rows in one of these, and describe the files."
        )
    if str(builder.hash) != commit:  # Without a network the library takes any commit that it has.
        raise DataError(
            f"{name}: this commit is not on this machine (it has {builder.hash}), and the hub was not "
            f"asked. {ADVICE}"
        )
    return builder


def json_lines(rows: Any, where: str) -> Iterator[str]:
    """Yield rows (mappings, a Dataset, a DataFrame) as JSON lines, labels by their names.

    DataError, with its place, for a row that is no mapping or that JSON cannot say.
    """
    kinds = getattr(rows, "features", None) or {}
    labels = {column: names for column, kind in kinds.items() if (names := names_of(kind))}
    if not kinds and hasattr(rows, "to_dict"):
        rows = rows.to_dict("records")
    mappings: Iterable[Any] = rows
    for number, row in enumerate(mappings):
        try:
            cells = {**row, **{column: named(row[column], names, where) for column, names in labels.items()}}
            yield json.dumps(cells, ensure_ascii=False, default=lambda array: array.tolist()) + "\n"
        except (TypeError, AttributeError, ValueError, LookupError) as error:
            raise DataError(
                f"{where}: row {number}: {row!r:.60} ({error}); expected a mapping from columns to texts, "
                f"numbers or lists of them. Correct it."
            ) from error


def names_of(kind: object) -> list[str]:
    """Return the names of a label's values, also of a list of labels; none for any other column."""
    return list(getattr(kind, "names", None) or getattr(getattr(kind, "feature", None), "names", None) or ())


def named(value: Any, names: list[str], where: str) -> object:
    """Return the name of a label, or those of a list; DataError for a number that has none."""
    if isinstance(value, list):
        return [named(item, names, where) for item in value]
    if isinstance(value, str) or value is None or value == NO_LABEL:
        return value
    if not 0 <= value < len(names):
        raise DataError(f"{where}: label {value} of {len(names)} ({', '.join(names)}). Fetch it again.")
    return names[value]


FETCH = (
    "Look whether the dataset is there and the network is; or fetch the corpus's official files: isogloss "
    "fetch."
)


def attempt(name: str, call: Callable[[], Result], advice: str = FETCH) -> Result:
    """Call the library; DataError, in one line, where it fails."""
    # It raises RuntimeError for a dataset that is a script.
    errors = (OSError, ValueError, KeyError, TypeError, RuntimeError, library().exceptions.DatasetsError)
    try:
        return call()
    except errors as error:
        raise DataError(f"{name}: it cannot be read ({one_line(error):.250}). {advice}") from error


def library() -> Any:
    """Return the library datasets; ConfigError where it is not installed."""
    try:
        import datasets
    except ImportError as error:
        raise ConfigError(
            "hub: the library datasets is not installed. Install it: pip install "
            '"isogloss[hub]"; or fetch the official files: isogloss fetch.'
        ) from error
    return datasets
