"""Rows of Python and of datasets as JSON lines, with the names of labels."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from isogloss.core.errors import DataError

Row = Mapping[str, Any]

Rows = Iterable[Mapping[Any, object]]
"""Rows of a split, by column: mappings, a ``datasets.Dataset`` or ``IterableDataset``, a pandas DataFrame."""

NO_LABEL = -1
"""The hub's label where annotators did not agree."""

VERSION = 1
"""Part of the fingerprints. Raise it when the lines generated from rows change."""


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
