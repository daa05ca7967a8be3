"""Rows of datasets of the Hugging Face hub as JSON lines, and the library that reads them.

A described corpus may name any dataset of plain data (parquet, JSON, CSV, lines of text) at a commit. Code
that comes with a dataset is never run.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from isogloss.core.errors import ConfigError, DataError, add_location, one_line
from isogloss.data.files import File

if TYPE_CHECKING:
    from datasets import DatasetBuilder

Row = Mapping[str, Any]
Result = TypeVar("Result")

DEFAULT = "default"
"""Name of a dataset's only configuration in the library."""

READ_BY = ("parquet", "json", "csv", "text", "conll", "arrow", "cache")
"""Readers of the library that read only data. Others unpickle, or open archives with any content."""

NO_LABEL = -1
"""The hub's label where annotators did not agree."""

VERSION = 1
"""Part of the fingerprints. Raise it when the lines generated from rows change."""


def hub_file(dataset: str, path: str) -> File:
    """Return the rows of ``config/split`` of a dataset as a file that is generated when it is read."""
    config, _, split = path.rpartition("/")
    name = f"hub:{dataset}/{path}"

    def read() -> Iterator[str]:
        with add_location(name):
            builder = _builder(dataset, config, str(library().config.HF_DATASETS_CACHE))
            attempt(builder.download_and_prepare)
            yield from json_lines(attempt(lambda: builder.as_dataset(split=split)))

    facts = ("hub rows", str(VERSION), dataset, config, split)
    return File(name, read, lambda: sha256("\n".join(facts).encode()).hexdigest())


ADVICE = (
    "Check that the dataset has this configuration, split and commit, and that the network works. Data read "
    "earlier needs no network."
)


@lru_cache(maxsize=256)
def _builder(dataset: str, config: str, _cache: str) -> "DatasetBuilder":
    """Return the library's builder of a dataset at a commit, cached because its creation queries the hub.

    Raises DataError for a different commit, or for files that may contain more than data.
    """
    repository, _, commit = dataset.partition("@")
    builder: DatasetBuilder = attempt(
        lambda: library().load_dataset_builder(repository, config or None, revision=commit)
    )
    kinds = {kind.__module__.rpartition(".")[2] for kind in type(builder).__mro__}
    if kinds.isdisjoint(READ_BY):
        raise DataError(
            f"its files are not plain data ({type(builder).__name__}); expected "
            f"{', '.join(READ_BY[:4])}. Save the rows in one of these formats, and describe the files."
        )
    if str(builder.hash) != commit:  # Without a network the library takes any commit that it has.
        raise DataError(
            f"this commit is not on this machine (it has {builder.hash}), and the hub is not reachable. "
            f"{ADVICE}"
        )
    return builder


def json_lines(rows: Any) -> Iterator[str]:
    """Yield rows (mappings, a Dataset, a DataFrame) as JSON lines, with labels replaced by their names.

    Raises DataError, with the row's number, for a row that is not a mapping or has other types than JSON's.
    """
    labels = label_names(rows)
    if hasattr(rows, "with_format"):
        rows = rows.with_format(None)  # Python values instead of arrays, tensors or data frames.
    if not getattr(rows, "features", None) and hasattr(rows, "to_dict"):
        rows = rows.to_dict("records")
    mappings: Iterable[Any] = rows
    for row_index, row in enumerate(mappings):
        try:
            cells = with_label_names(row, labels)
            yield json.dumps(cells, ensure_ascii=False, default=lambda array: array.tolist()) + "\n"
        except (TypeError, AttributeError, ValueError, LookupError) as error:
            raise DataError(
                f"row {row_index}: {row!r:.60} ({error}); expected a mapping from columns to texts, "
                f"numbers or lists of them. Correct it."
            ) from error


def label_names(rows: Any) -> dict[str, list[str]]:
    """Return the names of labels by column, from the features of a dataset.

    Columns with lists of labels are included, columns without names of labels are not.
    """
    features = getattr(rows, "features", None) or {}
    kinds = {column: getattr(kind, "feature", kind) for column, kind in features.items()}
    names_by_column = {column: getattr(kind, "names", None) for column, kind in kinds.items()}
    return {column: list(names) for column, names in names_by_column.items() if names}


def with_label_names(row: Row, labels: Mapping[str, list[str]]) -> Row:
    """Return a row in which names of labels replace their numbers.

    Raises DataError for a number without a name.
    """
    return {**row, **{column: _label_name(row[column], names) for column, names in labels.items()}}


def _label_name(value: Any, names: list[str]) -> object:
    if isinstance(value, list):
        return [_label_name(item, names) for item in value]
    if isinstance(value, str) or value is None or value == NO_LABEL:
        return value
    if not 0 <= value < len(names):
        raise DataError(
            f"label {value}; expected 0 to {len(names) - 1} ({', '.join(names)}). Fetch it again."
        )
    return names[value]


def attempt(call: Callable[[], Result]) -> Result:
    """Call the library and return the result.

    Raises DataError, in one line, if the library fails.
    """
    # The library raises RuntimeError for a dataset that is a script.
    errors = (OSError, ValueError, KeyError, TypeError, RuntimeError, library().exceptions.DatasetsError)
    try:
        return call()
    except errors as error:
        raise DataError(f"it cannot be read ({one_line(error):.250}). {ADVICE}") from error


def library() -> Any:
    """Return the library datasets.

    Raises ConfigError if it is not installed.
    """
    try:
        import datasets
    except ImportError as error:
        raise ConfigError(
            "hub: the library datasets is not installed. Install it: pip install "
            '"isogloss[hub]"; or fetch the official files: isogloss fetch.'
        ) from error
    return datasets
